"""`rpcqm dead-letter`: look at undelivered and expired messages, and send them again."""

import argparse
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import iso_time
from rpcqm.cli.errors import CommandError, UsageMistake
from rpcqm.cli.options import add_local_options, add_server_options, queue_name
from rpcqm.cli.output import (
    ProgressDisplay,
    Table,
    counted,
    print_fields,
    print_json,
    time_text,
)
from rpcqm.cli.parser import (
    LOOKUP_IDENTIFIER,
    Parser,
    add_command,
    add_commands,
    amount_in,
)
from rpcqm.cli.session import if_told, with_server
from rpcqm.client.names import DEAD_LETTER_QUEUES
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.operations.codes import CLASS_PREFIX, CLASSES

if TYPE_CHECKING:
    from rpcqm.client.message import ReceivedMessage
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.client.remote_read import QueueReader

LIST_DETAILS = """\
A dead letter tells why it is one by its class. A transactional message is kept by the queue
manager that it was sent from. Another one is kept by the queue manager where it could go no
further: by its own while it has not left, else by the one that could not deliver it, or where it
was purged or not received in time. So look there, too: `rpcqm dead-letter list --server b`."""

RESEND_DETAILS = """\
A message is sent anew, with a new identifier and new times, to the queue that it was for or to
another one, and leaves the dead-letter queue in the same commit. With --queue, messages that wait
for a queue elsewhere are sent elsewhere in the same way; one that asks for it becomes a dead
letter when it leaves its outgoing queue so."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    parser = commands.add_parser(
        "dead-letter",
        help="list, inspect and resend dead letters",
        description="Look at messages that could not be delivered or were not received in time.",
    )
    letters = add_commands(parser)
    _add_list(letters)
    _add_inspect(letters)
    _add_resend(letters)


def _add_list(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "list",
        "List the dead letters.",
        [
            ("rpcqm dead-letter list", "both system queues"),
            ("rpcqm dead-letter list --queue undelivered", "those of an application's own"),
        ],
        run_list,
        LIST_DETAILS,
    )
    _add_queue(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    add_server_options(parser)


def _add_queue(parser: Parser) -> None:
    parser.add_argument(
        "--queue",
        metavar="Q",
        help="another queue than the two dead-letter queues of the system, also an outgoing one "
        "by its format name",
    )


def _add_inspect(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "inspect",
        "Show everything about a dead letter.",
        [("rpcqm dead-letter inspect 288230376151711745", "by what `list` shows")],
        run_inspect,
    )
    _add_lookup(parser)
    _add_queue(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    add_server_options(parser)


def _add_lookup(parser: Parser, nargs: str | None = None) -> None:
    parser.add_argument(
        "lookup_id",
        metavar="LOOKUP-ID",
        nargs=nargs,
        type=LOOKUP_IDENTIFIER,
        help="the message's lookup identifier",
    )


def _add_resend(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "resend",
        "Send dead letters again.",
        [
            ("rpcqm dead-letter resend 288230376151711745", "one, to where it was for"),
            ("rpcqm dead-letter resend --all --to orders", "all of them, to another queue"),
        ],
        run_resend,
        RESEND_DETAILS,
    )
    _add_lookup(parser, "?")
    parser.add_argument("--all", action="store_true", help="every one that is there now")
    parser.add_argument("--to", metavar="QUEUE", help="another queue than the one it was for")
    parser.add_argument(
        "--ttbr",
        metavar="S",
        type=amount_in("s", 0, INFINITE - 1, "a number of seconds"),
        help="time in which it has to be received: seconds, or `5min` (default as before)",
    )
    _add_queue(parser)
    add_local_options(parser)


def run_list(arguments: argparse.Namespace) -> int:
    """List the dead letters."""

    async def work(client: "QueueManagerClient") -> None:
        found = [letter async for letter in _letters(client, arguments)]
        leaving = await _is_outgoing(client, arguments)
        if arguments.json:
            print_json([_summary(path, message, leaving) for path, message in found])
            return
        table = Table(["LOOKUP ID", "SINCE", "IT WAS FOR", "WHY", "LABEL"])
        for _, message in found:
            lookup, since = message.lookup_identifier, time_text(message.arrival_time)
            why = _reason(message, leaving)
            table.add(lookup, since, _destination(message), why, message.label)
        table.print()

    return with_server(arguments, "list the dead letters", work)


def run_inspect(arguments: argparse.Namespace) -> int:
    """Show one dead letter."""

    async def work(client: "QueueManagerClient") -> None:
        from rpcqm.cli.message_bodies import without_repetition
        from rpcqm.cli.messages import as_json

        path, message = await _letter(client, arguments)
        leaving = await _is_outgoing(client, arguments)
        shown = _summary(path, message, leaving) | as_json(message)
        if arguments.json:
            print_json(shown)
        else:
            print_fields(_for_people(without_repetition(shown)))

    return with_server(arguments, f"inspect {arguments.lookup_id}", work)


def run_resend(arguments: argparse.Namespace) -> int:
    """Send one or all dead letters again."""
    if arguments.all is (arguments.lookup_id is not None):
        raise UsageMistake("Either a lookup identifier or --all is needed.")

    async def work(client: "QueueManagerClient") -> None:
        if arguments.all:
            await _resend_all(client, arguments)
        else:
            await _resend(client, arguments, *await _letter(client, arguments))
            print("Resent 1 message.")

    return with_server(arguments, "resend", work)


def _paths(arguments: argparse.Namespace) -> tuple[str, ...]:
    return DEAD_LETTER_QUEUES if arguments.queue is None else (arguments.queue,)


async def _letters(
    client: "QueueManagerClient", arguments: argparse.Namespace
) -> AsyncIterator[tuple[str, "ReceivedMessage"]]:
    """Each message with the path name of its queue; bodies are not read."""
    for path in _paths(arguments):
        async with _opened(client, arguments, path, peek_only=True) as reader:
            async for message in reader.browse(body=0):
                yield path, message


def _opened(
    client: "QueueManagerClient",
    arguments: argparse.Namespace,
    path: str,
    peek_only: bool = False,
) -> "QueueReader":
    return client.open_reader(queue_name(arguments, path), peek_only=peek_only, outgoing=True)


async def _letter(
    client: "QueueManagerClient", arguments: argparse.Namespace
) -> tuple[str, "ReceivedMessage"]:
    for path in _paths(arguments):
        async with _opened(client, arguments, path, peek_only=True) as reader:
            try:
                return path, await reader.peek_by_lookup_identifier(arguments.lookup_id)
            except MQError as error:
                if error.status is not HResult.MQ_ERROR_MESSAGE_NOT_FOUND:
                    raise
    raise CommandError(
        f"There is no dead letter {arguments.lookup_id}; `rpcqm dead-letter list` shows them."
    )


async def _resend_all(client: "QueueManagerClient", arguments: argparse.Namespace) -> None:
    """Send what is there now again; raises CommandError if some of it stays."""
    to = None if arguments.to is None else queue_name(arguments, arguments.to)
    staying: Counter[str] = Counter()
    with ProgressDisplay("Resent") as progress:
        for path in _paths(arguments):
            name = queue_name(arguments, path)
            async for some in client.maintenance.resend_dead_letters(name, to, arguments.ttbr):
                progress.advance(some.messages)
                for each in some.staying:
                    staying[f"{each.detail} ({each.code})"] += each.messages
    if staying:
        raise CommandError(f"{progress.count:,} resent; {_why_they_stay(staying)}.")
    print(f"Resent {counted(progress.count, 'message')}.")


def _why_they_stay(staying: Counter[str]) -> str:
    """How many letters stay, and why; of several reasons how many each."""
    total, verb = staying.total(), "stays" if staying.total() == 1 else "stay"
    if len(staying) == 1:
        (reason,) = staying
        return f"{total:,} {verb}: {reason}"
    reasons = (f"{number:,} because {reason}" for reason, number in staying.most_common())
    return f"{total:,} {verb}: {', '.join(reasons)}"


async def _resend(
    client: "QueueManagerClient",
    arguments: argparse.Namespace,
    path: str,
    message: "ReceivedMessage",
) -> None:
    if arguments.to is None and message.destination_queue_format_name is None:
        raise CommandError("The message does not say what queue it was for; give --to QUEUE.")
    to = None if arguments.to is None else queue_name(arguments, arguments.to)
    await client.maintenance.resend_dead_letter(
        queue_name(arguments, path), message.lookup_identifier, to, arguments.ttbr
    )


def _destination(message: "ReceivedMessage") -> str:
    name = message.destination_queue_format_name
    return str(name).removeprefix("DIRECT=OS:") if name is not None else ""


async def _is_outgoing(client: "QueueManagerClient", arguments: argparse.Namespace) -> bool:
    """Whether the messages are on their way to a queue elsewhere, and not dead yet."""
    if arguments.queue is None:
        return False
    name = queue_name(arguments, arguments.queue)
    return await if_told(client.management.outgoing_queue(name)) is not None


def _reason(message: "ReceivedMessage", leaving: bool) -> str:
    """Why a message is dead, in words, by the class that it has since then."""
    if leaving:
        return "not dead: it is on its way"
    number = message.message_class
    if isinstance(number, MessageClass) and number >= MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q:
        meaning = CLASSES[number.name.removeprefix(CLASS_PREFIX)]
        return meaning[:1].lower() + meaning[1:].rstrip(".")
    return _likely_reason(message)


def _likely_reason(message: "ReceivedMessage", now: float | None = None) -> str:
    """The reason that follows from the rest of a message that older versions have kept."""
    limit = message.time_to_be_received
    died = message.arrival_time or (time.time() if now is None else now)
    if limit != INFINITE and died >= message.sent_time + limit:
        return "not received in time"
    return "purged, deleted, or not delivered"


def _summary(path: str, message: "ReceivedMessage", leaving: bool) -> dict[str, object]:
    return {
        "queue": path,
        "lookup_id": str(message.lookup_identifier),
        "since": iso_time(message.arrival_time),
        "destination": _destination(message),
        "class": _class_name(message.message_class),
        "reason": _reason(message, leaving),
        "likely_reason": _likely_reason(message),
        "id": str(message.identifier),
        "label": message.label,
        "body_size": message.body_size,
    }


def _class_name(number: int) -> str:
    if isinstance(number, MessageClass):
        return number.name.removeprefix(CLASS_PREFIX)
    return f"0x{number:04X}"


def _for_people(shown: dict[str, object]) -> dict[str, object]:
    """The fields that have a value, with names and values that read well."""
    return {
        name.replace("_", " ").capitalize(): _worded(value)
        for name, value in shown.items()
        if value is not None and value != [] and value != "" and name != "likely_reason"
    }


def _worded(value: object) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else value
