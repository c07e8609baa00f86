"""`rpcqm trace`: messages on their way to a queue, or the places of one message."""

import argparse
from typing import TYPE_CHECKING

from rpcqm.cli import outgoing
from rpcqm.cli.errors import CommandError
from rpcqm.cli.message_search import explain_message
from rpcqm.cli.options import QUEUE_HELP, add_server_options, queue_name
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.session import with_server
from rpcqm.codec.packet.types import MessageIdentifier

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

DETAILS = """\
Of a queue elsewhere it shows what still waits, the next hop, how connecting went, and which
acknowledgements have come. Of a message it shows in which queues here it is; by which hops the last
10,000 messages were sent and which acknowledgements of them came, since the start; and what else
happened as far as its queues have event trails (`rpcqm queue set QUEUE --trail`)."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "trace",
        "Show where messages to another queue manager are, or where one message is.",
        [
            (r"rpcqm trace 'DIRECT=OS:other\private$\orders'", "what was sent there"),
            (
                r"rpcqm trace '{b612fe70-822d-4a0a-bb8c-fa25e3950d10}\1'",
                "a message, by what `rpcqm send` printed",
            ),
        ],
        run,
        DETAILS,
    )
    parser.add_argument(
        "subject",
        metavar="QUEUE-OR-ID",
        help=f"the identifier of a message, or a queue: {QUEUE_HELP}",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_server_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Trace one message, or all messages on their way to a queue."""
    try:
        return explain_message(arguments, MessageIdentifier.parse(arguments.subject))
    except ValueError:
        name = queue_name(arguments, arguments.subject)

    async def work(client: "QueueManagerClient") -> None:
        found = await client.management.outgoing_queue(name)
        if found is None:
            raise CommandError(
                f"Nothing was sent from here to `{arguments.subject}` lately; `rpcqm queue list "
                "--outgoing` lists where messages are on their way to."
            )
        outgoing.print_one(found, arguments.json)

    return with_server(arguments, f"trace `{arguments.subject}`", work, administrators_only=True)
