"""`rpcqm send`: send messages to a queue."""

import argparse
import asyncio
import contextlib
import itertools
import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.cli import not_before
from rpcqm.cli.body_kinds import PLAIN_KINDS
from rpcqm.cli.errors import CommandError, UsageMistake, reason
from rpcqm.cli.execute import TRANSACTION_VARIABLE
from rpcqm.cli.full import why_full
from rpcqm.cli.options import QUEUE_HELP, add_server_options, queue_name
from rpcqm.cli.output import ProgressDisplay
from rpcqm.cli.parser import Parser, add_command, amount_in, one_of, whole_number
from rpcqm.cli.session import with_server
from rpcqm.client.message_fields import check_size, message_identifier
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested, BodyType, PrivacyLevel
from rpcqm.codec.packet.trace_context import parse_traceparent
from rpcqm.codec.packet.types import NULL_IDENTIFIER, MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.client.sending import QueueSender

Send = Callable[[OutgoingMessage], Coroutine[object, None, MessageIdentifier]]

STANDARD_INPUT = "-"
MAXIMUM_SECONDS = 0xFFFF_FFFE
MAXIMUM_COUNT = 1_000_000_000
IN_FLIGHT = 32
"""Messages on their way at the same time; more would not be faster, and take memory."""

XML_TYPES = (
    *("boolean", "byte", "unsignedByte", "short", "unsignedShort", "int", "unsignedInt", "long"),
    *("unsignedLong", "float", "double", "decimal", "string", "char", "dateTime", "guid"),
    "base64Binary",
)
KINDS = {kind.lower(): kind for kind in (*PLAIN_KINDS, *(f"xml:{name}" for name in XML_TYPES))}
LINES = ("text", "json", "csv")
"""The kinds of lines that `rpcqm.cli.message_lines` reads."""
WITHOUT_BODY = (
    "The message is sent without a body; --body TEXT, --file FILE or a pipe (`… | rpcqm send …`) "
    "give it one, and --body '' leaves it out without a word."
)

ACKNOWLEDGEMENTS = {
    "arrival": AcknowledgementsRequested.ACK_POS_ARRIVAL,
    "receive": AcknowledgementsRequested.ACK_POS_RECEIVE,
    "no-arrival": AcknowledgementsRequested.ACK_NEG_ARRIVAL,
    "no-receive": AcknowledgementsRequested.ACK_NEG_RECEIVE,
    "full-reach-queue": AcknowledgementsRequested.ACK_FULL_REACH_QUEUE,
    "full-receive": AcknowledgementsRequested.ACK_FULL_RECEIVE,
    "nack-reach-queue": AcknowledgementsRequested.ACK_NACK_REACH_QUEUE,
    "nack-receive": AcknowledgementsRequested.ACK_NACK_RECEIVE,
}
DETAILS = """\
Prints the identifier of each message. A message is recoverable (on the disk before its
identifier is printed) unless --express is given. With --transactional all of a command's
messages belong to one transaction: all of them arrive or none does. Without --body, --file and -
the body is what a pipe or a redirected file brings until its end, and nothing on a terminal; in a
loop that reads a file, --body '' keeps the loop's lines for the loop.

What --body says is text (VT_BSTR), as ActiveXMessageFormatter of .NET, Visual Basic and the client
library read it; files and standard input are octets without a type. With --type they are what you
say: `xml` is a document as it is, or other text as XmlMessageFormatter writes a string; `json` is
checked and sent in UTF-8; `bytes`, `int`, `long` (64 bits), `double`, `bool`, `date`, `currency`
(a decimal number) and `guid` are values of ActiveXMessageFormatter; `null` is its empty one.
`xml:TYPE` is a value of XmlMessageFormatter for a program that reads that type, `xml:int` for one
that reads an int: boolean, byte, unsignedByte, short, unsignedShort, int, unsignedInt, long,
unsignedLong, float, double, decimal, string, char, dateTime, guid and base64Binary (octets).

A dead letter of a transactional message is kept here, whatever it died of. Another message is
kept here only while it has not left: what the queue manager of its queue cannot deliver is a dead
letter there. This side is not told that its queue does not exist or that it may not write to it,
also with --ack, unless `send_insecure_nacks` is on there."""


_TOO_LARGE = HResult.MQ_ERROR_INSUFFICIENT_RESOURCES


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "send",
        "Send messages to a queue.",
        [
            ("rpcqm send orders --body 'two apples' --label fruit", "a short text"),
            ("tar c etc | rpcqm send backups", "what comes by a pipe, octet by octet"),
            ("rpcqm send bills --file bill.xml --transactional", "exactly once"),
            ("rpcqm send orders --body 42 --type int", "a number for a program"),
            ("rpcqm send orders --body 42 --type xml:int", "for an XmlMessageFormatter of .NET"),
            ("rpcqm send orders --file order.json --type json", "a document, checked before"),
            ("rpcqm send reminders --body 'call Ann' --not-before 2h", "sent in two hours"),
            ("rpcqm send orders --lines orders.txt --transactional", "a line each, all or none"),
            ("rpcqm send orders --body x --count 100000", "many, with progress on a terminal"),
            (
                "rpcqm send orders --body x --ack full-receive --admin-queue acks",
                "acknowledged in `acks`",
            ),
        ],
        run,
        DETAILS,
    )
    parser.add_argument(
        "queue", metavar="QUEUE", help=f"{QUEUE_HELP}; several, with commas, all get the message"
    )
    _add_body(parser)
    _add_properties(parser)
    _add_times_and_answers(parser)
    _add_acknowledgements(parser)
    add_server_options(parser)


def _add_body(parser: Parser) -> None:
    body = parser.add_mutually_exclusive_group()
    body.add_argument("--body", metavar="T", help="the body; text unless --type says otherwise")
    body.add_argument("--file", metavar="F", help="a file that holds the body; - is standard input")
    body.add_argument(
        "standard_input",
        metavar=STANDARD_INPUT,
        nargs="?",
        choices=[STANDARD_INPUT],
        help="the body is on standard input, whatever that is",
    )
    parser.add_argument(
        "--lines",
        metavar="F",
        help="a file of which each line is a message of its own; - is standard input",
    )
    parser.add_argument(
        "--lines-as",
        metavar="text|json|csv",
        type=one_of({kind: kind for kind in LINES}, "kind of lines"),
        default="text",
        help="what the lines are: bodies (the default), or messages as `peek --format json` and "
        "`csv` print them",
    )
    parser.add_argument(
        "--type",
        metavar="KIND",
        type=one_of(KINDS, "type of body"),
        help=f"what the body is, for the receiver's formatter: {', '.join(PLAIN_KINDS)}, xml:TYPE",
    )


def _add_properties(parser: Parser) -> None:
    parser.add_argument("--label", metavar="T", default="", help="what the message is about")
    parser.add_argument(
        "--priority",
        metavar="0-7",
        type=whole_number(0, 7, "a priority"),
        default=3,
        help="higher ones are received first (default 3)",
    )
    parser.add_argument(
        "--express", action="store_true", help="keep it in memory only: faster, lost on a restart"
    )
    parser.add_argument(
        "--transactional", action="store_true", help="send in a transaction of its own"
    )
    parser.add_argument(
        "--dead-letter",
        action="store_true",
        help="keep it as a dead letter when it cannot be delivered, or is not received in time "
        "(there, if it is not transactional and has left)",
    )
    parser.add_argument(
        "--dead-letter-queue",
        metavar="Q",
        help="the same, but in this queue of the queue manager that it is sent from",
    )
    parser.add_argument(
        "--journal", action="store_true", help="keep a copy in the journal of this computer"
    )
    parser.add_argument(
        "--traceparent",
        metavar="C",
        type=_traceparent,
        help="the context of a trace that the message belongs to, in its extension (W3C)",
    )
    parser.add_argument(
        "--encrypt",
        action="store_true",
        help="encrypt the body on its way with AES-256; not by direct name",
    )


def _add_times_and_answers(parser: Parser) -> None:
    seconds = amount_in("s", 0, MAXIMUM_SECONDS, "a number of seconds")
    parser.add_argument(
        "--ttbr",
        metavar="S",
        type=seconds,
        help="time in which it has to be received: seconds, or `5min`",
    )
    parser.add_argument(
        "--ttrq",
        metavar="S",
        type=seconds,
        help="time in which it has to reach the queue, likewise",
    )
    parser.add_argument(
        "--correlation-id",
        metavar="X",
        type=_correlation_identifier,
        default=NULL_IDENTIFIER,
        help="identifier of the message that this one answers, or 40 hexadecimal digits",
    )
    parser.add_argument(
        "--response-queue", metavar="Q", help="queue in which the sender expects an answer"
    )
    parser.add_argument(
        "--not-before",
        metavar="TIME",
        type=not_before.moment,
        help="let the queue manager hold it back until then: `2026-12-24T18:00`, or `90min` from "
        "now; prints an ID for `rpcqm scheduled`",
    )
    parser.add_argument(
        "--count",
        metavar="N",
        type=whole_number(1, MAXIMUM_COUNT, "a number"),
        default=1,
        help="send it so many times",
    )


def _add_acknowledgements(parser: Parser) -> None:
    parser.add_argument(
        "--ack",
        metavar="KIND",
        action="append",
        type=_acknowledgement,
        default=[],
        help=f"acknowledgements to ask for, any of {', '.join(ACKNOWLEDGEMENTS)}",
    )
    parser.add_argument(
        "--admin-queue", metavar="Q", help="queue that acknowledgements go to; --ack needs it"
    )


def _acknowledgement(text: str) -> AcknowledgementsRequested:
    """One kind or several with commas."""
    wanted = AcknowledgementsRequested.NONE
    for word in text.lower().split(","):
        if word not in ACKNOWLEDGEMENTS:
            kinds = ", ".join(ACKNOWLEDGEMENTS)
            raise argparse.ArgumentTypeError(f"`{word}` is no acknowledgement; there are {kinds}")
        wanted |= ACKNOWLEDGEMENTS[word]
    return wanted


def _traceparent(text: str) -> str:
    context = parse_traceparent(text)
    if context is None:
        raise argparse.ArgumentTypeError("not 00-<32 digits>-<16 digits>-<2 digits>, hexadecimal")
    return str(context)


def _correlation_identifier(text: str) -> MessageIdentifier:
    try:
        return message_identifier(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(arguments: argparse.Namespace) -> int:
    """Send, and print the identifiers."""
    names = [queue_name(arguments, name) for name in arguments.queue.split(",")]
    if arguments.express and arguments.transactional:
        raise UsageMistake(
            "--express and --transactional do not go together: messages of a transaction are "
            "recoverable."
        )
    if arguments.ack and not arguments.admin_queue:
        raise UsageMistake("--ack needs --admin-queue, where the acknowledgements go.")
    _check_lines(arguments)
    message = _message(arguments)
    try:
        check_size(message)
    except ValueError as error:
        sentence = f"Cannot send to `{arguments.queue}`: the {error}"
        raise CommandError(f"{sentence} ({_TOO_LARGE.name}).") from error

    if arguments.not_before is not None:
        return not_before.send(arguments, names, message)

    total, messages = _all_of(arguments, message)

    async def send(client: "QueueManagerClient") -> None:
        async with client.open_sender(*names) as sender:
            if arguments.transactional:
                identifiers = await _in_transaction(client, sender, messages, total)
                print("\n".join(map(str, identifiers)))
            else:
                await _send_many(sender.send, messages, total, print)

    async def work(client: "QueueManagerClient") -> None:
        try:
            await send(client)
        except MQError as error:
            full = error.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES and not error.detail
            if full and (why := await why_full(client, arguments)):
                raise MQError(error.status, why) from error
            raise

    return with_server(arguments, f"send to `{arguments.queue}`", work)


def _check_lines(arguments: argparse.Namespace) -> None:
    """Refuse what does not go together with a file of lines, before anything is sent or kept."""
    if arguments.lines is None:
        if arguments.lines_as != "text":
            raise UsageMistake("--lines-as says how a file is read: name it with --lines.")
        return
    if arguments.body is not None or arguments.file or arguments.standard_input:
        raise UsageMistake("--lines says what the bodies are: leave --body, --file and - out.")
    if arguments.count != 1 or arguments.not_before is not None:
        raise UsageMistake("--lines does not go together with --count and --not-before.")
    if arguments.lines_as != "text" and arguments.type is not None:
        raise UsageMistake(
            "--type is for lines of text; JSON and CSV say themselves what they are."
        )


def _all_of(
    arguments: argparse.Namespace, message: OutgoingMessage
) -> tuple[int | None, Iterable[OutgoingMessage]]:
    """The messages, and how many they are if that is known.

    A file's lines are read once before anything is sent, so that nothing of a wrong one is.
    """
    file = arguments.lines
    if file is None:
        return arguments.count, itertools.repeat(message, arguments.count)
    from rpcqm.cli import message_lines  # only now: few commands read a file of lines

    typed = partial(_typed_line, arguments)
    total = message_lines.check(file, arguments.lines_as, message, typed)
    return total, message_lines.messages_of(file, arguments.lines_as, message, typed)


def _typed_line(arguments: argparse.Namespace, octets: bytes) -> tuple[bytes, int]:
    """The body of a line: text, unless --type says otherwise, or it is no UTF-8."""
    from rpcqm.codec.bodies.kinds import body_of  # only now, as above

    if arguments.type is not None:
        try:
            return body_of(arguments.type, octets)
        except ValueError as error:
            raise UsageMistake(f"--type {arguments.type}: {error}.") from None
    with contextlib.suppress(ValueError):
        return octets.decode().encode("utf-16-le"), BodyType.VT_BSTR
    return octets, BodyType.VT_EMPTY


async def _in_transaction(
    client: "QueueManagerClient",
    sender: "QueueSender",
    messages: Iterable[OutgoingMessage],
    count: int | None,
) -> list[MessageIdentifier]:
    """Send in one transaction; the identifiers count once it is committed.

    In a command of `rpcqm receive --transactional --exec` it is the transaction of the message.
    """
    identifiers: list[MessageIdentifier] = []
    async with client.begin_transaction(_joined()) as transaction:
        await _send_many(
            lambda one: sender.send(one, transaction), messages, count, identifiers.append
        )
    return identifiers


def _joined() -> UUID | None:
    """The transaction of the message for which `rpcqm receive --exec` runs this command."""
    named = os.environ.get(TRANSACTION_VARIABLE, "")
    try:
        return UUID(named) if named else None
    except ValueError:
        raise UsageMistake(f"{TRANSACTION_VARIABLE} names no transaction: {named}.") from None


async def _send_many(
    send: Send,
    messages: Iterable[OutgoingMessage],
    count: int | None,
    tell: Callable[[MessageIdentifier], object],
) -> None:
    """Keep several on their way, and tell the identifiers in the order of sending."""
    on_the_way: deque[asyncio.Task[MessageIdentifier]] = deque()
    try:
        with ProgressDisplay("Sent", count, scrolls=sys.stdout.isatty()) as progress:
            for message in messages:
                on_the_way.append(asyncio.ensure_future(send(message)))
                if len(on_the_way) >= IN_FLIGHT:
                    tell(await on_the_way.popleft())
                    progress.advance()
            while on_the_way:
                tell(await on_the_way.popleft())
                progress.advance()
    finally:
        for task in on_the_way:
            task.cancel()
        await asyncio.gather(*on_the_way, return_exceptions=True)


def _message(arguments: argparse.Namespace) -> OutgoingMessage:
    acknowledgements = AcknowledgementsRequested.NONE
    for wanted in arguments.ack:
        acknowledgements |= wanted
    octets = _body(arguments)
    body, body_type = (b"", 0) if arguments.lines is not None else _typed(arguments, octets)
    return OutgoingMessage(
        body=body,
        body_type=body_type,
        label=arguments.label,
        priority=arguments.priority,
        recoverable=not arguments.express,
        time_to_be_received=INFINITE if arguments.ttbr is None else arguments.ttbr,
        time_to_reach_queue=INFINITE if arguments.ttrq is None else arguments.ttrq,
        acknowledgements=acknowledgements,
        administration_queue=_other_queue(arguments, arguments.admin_queue),
        response_queue=_other_queue(arguments, arguments.response_queue),
        correlation_identifier=arguments.correlation_id,
        dead_letter=arguments.dead_letter,
        dead_letter_queue=_other_queue(arguments, arguments.dead_letter_queue),
        journal=arguments.journal,
        privacy=PrivacyLevel.ADVANCED if arguments.encrypt else PrivacyLevel.NONE,
        traceparent=arguments.traceparent or "",
    )


def _other_queue(arguments: argparse.Namespace, text: str | None) -> FormatName | None:
    return None if text is None else queue_name(arguments, text)


def _typed(arguments: argparse.Namespace, octets: bytes) -> tuple[bytes, int]:
    """The body and its type; UsageMistake if the octets are not what --type says.

    What --body says is text, unless it is no UTF-8; other bodies have no type of their own.
    """
    # Only now, because --help and most mistakes need none of it.
    from rpcqm.codec.bodies.kinds import body_of

    if arguments.type is not None:
        try:
            return body_of(arguments.type, octets)
        except ValueError as error:
            raise UsageMistake(f"--type {arguments.type}: {error}.") from None
    if arguments.body is not None:
        with contextlib.suppress(ValueError):
            return body_of("text", octets)
    return octets, BodyType.VT_EMPTY


def _body(arguments: argparse.Namespace) -> bytes:
    if arguments.lines is not None:
        return b""
    if STANDARD_INPUT in (arguments.standard_input, arguments.file):
        return _standard_input(arguments)
    if arguments.body is not None:
        return str(arguments.body).encode("utf-8", "surrogateescape")
    if arguments.file is None:
        return _unasked_input(arguments)
    try:
        return Path(arguments.file).read_bytes()
    except OSError as error:
        raise CommandError(f"{arguments.file} cannot be read: {reason(error)}.") from error


def _unasked_input(arguments: argparse.Namespace) -> bytes:
    """What a pipe or a file on standard input holds, if no option says where the body is.

    A terminal is not read: a message without a body is sent, and the person is told.
    """
    if sys.stdin is None or arguments.password_stdin or arguments.type == "null":
        return b""
    if sys.stdin.isatty():
        print(f"rpcqm: {WITHOUT_BODY}", file=sys.stderr)
        return b""
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # it is closed, or no stream of the system
        return b""
    if stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind):
        return sys.stdin.buffer.read()
    return b""


def _standard_input(arguments: argparse.Namespace) -> bytes:
    """All octets until the end, whatever they are."""
    if arguments.password_stdin:
        raise UsageMistake(
            "Standard input cannot hold the password and the body; name a file with --file."
        )
    if sys.stdin is None:
        raise CommandError("Standard input cannot be read: it is closed.")
    return sys.stdin.buffer.read()
