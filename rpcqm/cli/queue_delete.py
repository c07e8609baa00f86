"""`rpcqm queue delete`: delete a queue, after a question if there are messages in it."""

import argparse
import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING

from rpcqm.base.errors import HResult, MQError, RpcFault
from rpcqm.cli import outgoing
from rpcqm.cli.errors import CommandError
from rpcqm.cli.options import QUEUE_HELP, add_server_options, queue_name
from rpcqm.cli.output import counted
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.session import if_told, with_server
from rpcqm.codec.names.format_name import FormatName

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

DETAILS = """\
Messages that ask for a dead letter become one; the others, and the copies in the journal, are gone.
On a terminal the command asks first if there are any."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    parser = add_command(
        commands,
        "delete",
        "Delete a queue, with every message in it, its journal and its subqueues.",
        [
            ("rpcqm queue delete orders", "there is no way back"),
            (
                r"rpcqm queue delete 'DIRECT=OS:other\private$\orders'",
                "what waits here to be sent there, and the outgoing queue",
            ),
        ],
        run,
        DETAILS,
    )
    parser.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    parser.add_argument(
        "--if-empty", action="store_true", help="refuse it while there are messages"
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing, also on a terminal")
    add_server_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Delete the queue."""
    name = queue_name(arguments, arguments.queue)

    async def work(client: "QueueManagerClient") -> None:
        await _consider_messages(client, name, arguments)
        try:
            await client.queues.delete(name)
        except MQError as error:
            missing = error.status is HResult.MQ_ERROR_QUEUE_NOT_FOUND
            if (
                missing
                and await _is_elsewhere(client, name)
                and await outgoing.delete(client, name)
            ):
                return
            denied = error.status is HResult.MQ_ERROR_ACCESS_DENIED
            if denied and await _is_fixed(client, name):
                raise CommandError(
                    f"Cannot delete `{arguments.queue}`: the directory file lists it; take it out "
                    "there first."
                ) from error
            raise

    return with_server(arguments, f"delete `{arguments.queue}`", work)


async def _is_elsewhere(client: "QueueManagerClient", name: FormatName) -> bool:
    """Whether the queue may be on another machine; True if the server does not tell."""
    with contextlib.suppress(MQError, RpcFault):
        return not await client.management.is_here(name)
    return True


async def _is_fixed(client: "QueueManagerClient", name: FormatName) -> bool:
    """Whether the directory file lists the queue; False if its machine does not tell."""
    with contextlib.suppress(MQError, RpcFault):
        known = await client.management.queue_information(name)
        public = await client.queues.public()
        return any(queue.fixed and queue.format_name == known.format_name for queue in public)
    return False


async def _consider_messages(
    client: "QueueManagerClient", name: FormatName, arguments: argparse.Namespace
) -> None:
    """Refuse a queue with messages, or ask; raises CommandError if it is to stay."""
    asks = not arguments.yes and _on_a_terminal()
    if not (arguments.if_empty or asks):
        return
    known = await if_told(client.management.queue_information(name))
    if known is None:
        if arguments.if_empty:
            raise CommandError(f"Cannot delete `{arguments.queue}`: nobody tells if it is empty.")
        return
    messages, copies = known.message_count, known.journal_message_count
    if not messages + copies:
        return
    there = _amount(messages, copies)
    if arguments.if_empty:
        raise CommandError(f"Cannot delete `{arguments.queue}`: it has {there}.")
    question = f"`{arguments.queue}` has {there}. Delete it with them? [y/N] "
    answer = await asyncio.get_running_loop().run_in_executor(None, _answer, question)
    if answer.strip().lower() not in ("y", "yes"):
        raise CommandError(f"`{arguments.queue}` stays.")


def _on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _answer(question: str) -> str:
    """What is typed; nothing at the end of the input."""
    with contextlib.suppress(EOFError):
        return input(question)
    return ""


def _amount(messages: int, copies: int) -> str:
    told = counted(messages, "message")
    if not copies:
        return told
    return f"{told}, and {copies:,} in its journal"
