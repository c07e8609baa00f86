"""`rpcqm queue rename`: give a private queue another name."""

import argparse
from typing import TYPE_CHECKING

from rpcqm.base.text import visible
from rpcqm.cli.errors import UsageMistake
from rpcqm.cli.options import QUEUE_HELP, add_local_options, queue_name
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.session import with_server
from rpcqm.client.names import HERE, is_format_name, path_name

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

DETAILS = """\
The queue keeps its messages, its journal, its subqueues, its permissions, and what is open.
Commands and programs on this machine that use the old name are told the new one; queue managers
elsewhere that send to the old name get MQ_ERROR_QUEUE_NOT_FOUND. Tokens for the queue follow it."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "rename",
        "Give a private queue another name, and print its path name.",
        [("rpcqm queue rename orders orders-2026", "whatever is in it or has it open")],
        run,
        DETAILS,
    )
    parser.add_argument("queue", metavar="OLD", help=QUEUE_HELP)
    parser.add_argument("new_name", metavar="NEW", help="`bills`, or in full `.\\private$\\bills`")
    add_local_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Rename the queue."""
    name = queue_name(arguments, arguments.queue)
    if is_format_name(arguments.new_name):
        raise UsageMistake(
            f"A queue gets a name like `orders`, not a format name like `{arguments.new_name}`."
        )
    queue_name(arguments, arguments.new_name)
    path = path_name(arguments.new_name, HERE)

    async def work(client: "QueueManagerClient") -> None:
        await client.queues.rename(name, path)
        print(visible(str(path)))

    return with_server(arguments, f"rename `{arguments.queue}` to `{arguments.new_name}`", work)
