"""`rpcqm purge`: delete all messages of a queue."""

import argparse
from typing import TYPE_CHECKING

from rpcqm.cli.options import QUEUE_HELP, add_server_options, queue_name
from rpcqm.cli.output import counted
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.session import if_told, with_server
from rpcqm.codec.property_values import ManagementQueueLocation

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

PURGE_DETAILS = """\
A message that asks for it becomes a dead letter. By the format name of a queue elsewhere,
administrators purge what waits here to be sent there. What is being sent, or has arrived in order
and waits for its final acknowledgement, stays until that is decided. What has been sent over HTTP
and has no receipt goes if `rpcqm network pause` comes first."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "purge",
        "Delete all messages of a queue.",
        [
            ("rpcqm purge orders", "there is no way back"),
            ("rpcqm purge 'orders;JOURNAL'", "only the copies in its journal"),
            (
                r"rpcqm purge 'DIRECT=OS:other\private$\orders'",
                "what waits here to be sent to another queue manager",
            ),
        ],
        run,
        PURGE_DETAILS,
    )
    parser.add_argument("queue", metavar="QUEUE", help=QUEUE_HELP)
    add_server_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Purge the queue, and print the number of messages if the caller may know it."""
    name = queue_name(arguments, arguments.queue)

    async def work(client: "QueueManagerClient") -> None:
        async with client.open_reader(name, outgoing=True) as reader:
            before = await if_told(client.management.queue_information(name))
            await reader.purge()
        after = await if_told(client.management.queue_information(name))
        if before is None:
            print("Purged.")
            return
        came = 0 if after is None else after.message_count
        print(f"Purged {counted(max(before.message_count - came, 0), 'message')}.")
        if came and before.location == ManagementQueueLocation.MGMT_QUEUE_REMOTE_LOCATION:
            print(f"{counted(came, 'message')} stayed: being sent, or not decided about yet.")

    return with_server(arguments, f"purge `{arguments.queue}`", work)
