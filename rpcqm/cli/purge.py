"""`rpcqm purge`: delete all messages of a queue."""

import argparse
import contextlib
from typing import TYPE_CHECKING

from rpcqm.base.errors import MQError, RpcFault
from rpcqm.cli.options import QUEUE_HELP, add_server_options, queue_name
from rpcqm.cli.output import counted
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.session import with_server
from rpcqm.codec.names.format_name import FormatName

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "purge",
        "Delete all messages of a queue.",
        [
            ("rpcqm purge orders", "there is no way back"),
            ("rpcqm purge 'orders;JOURNAL'", "only the copies in its journal"),
        ],
        run,
    )
    parser.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    add_server_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Purge the queue, and say how many messages went, where the caller may know it."""
    name = queue_name(arguments, arguments.queue)

    async def work(client: "QueueManagerClient") -> None:
        async with client.open_reader(name) as reader:
            before = await _message_count(client, name)
            await reader.purge()
        after = await _message_count(client, name)
        print("Purged." if before is None else f"Purged {_removed(before, after)}.")

    return with_server(arguments, f"purge `{arguments.queue}`", work)


def _removed(before: int, after: int | None) -> str:
    """What went, less what came meanwhile."""
    return counted(max(before - (after or 0), 0), "message")


async def _message_count(client: "QueueManagerClient", name: FormatName) -> int | None:
    """None for callers who may purge a queue but are no administrators."""
    with contextlib.suppress(MQError, RpcFault):
        return (await client.management.queue_information(name)).message_count
    return None
