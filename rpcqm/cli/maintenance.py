"""`rpcqm maintenance`: take no new messages while readers go on."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rpcqm.cli.options import add_local_options
from rpcqm.cli.output import print_json
from rpcqm.cli.overview import standing_text
from rpcqm.cli.parser import Parser, add_command, add_commands
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

DETAILS = """\
Programs that send get MQ_ERROR_SERVICE_NOT_AVAILABLE, or 503 over HTTP, with the reason. Other
queue managers keep what is for queues here and send it again later; nothing is lost, and order is
kept. Who receives, peeks, moves messages here or commits what was sent before goes on, and so do
acknowledgements, dead letters, journals and what waits to be sent elsewhere. /readyz answers 503.
It holds over restarts until `rpcqm maintenance off`."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    about = "Take no new messages for a time, while readers go on."
    parser = commands.add_parser(
        "maintenance", help=about[0].lower() + about[1:-1], description=about
    )
    actions = add_commands(parser)
    on = add_command(
        actions,
        "on",
        "Take no new message by any door, over restarts too.",
        [
            (
                "rpcqm maintenance on --reason 'a new disk, until 18:00'",
                "everybody who sends sees it",
            )
        ],
        run_on,
        DETAILS,
    )
    on.add_argument("--reason", metavar="TEXT", default="", help="why; everybody may read it")
    add_local_options(on)
    off = add_command(
        actions, "off", "Take messages again.", [("rpcqm maintenance off", "it is done")], run_off
    )
    add_local_options(off)
    status = add_command(
        actions,
        "status",
        "Tell whether it is in maintenance or disconnected: since when, by whom, and why.",
        [("rpcqm maintenance status --json", "for a program")],
        run_status,
    )
    status.add_argument("--json", action="store_true", help="print a JSON object")
    add_local_options(status)


def run_on(arguments: argparse.Namespace) -> int:
    """Have the queue manager take no new message."""

    async def work(client: "QueueManagerClient") -> None:
        await client.maintenance.maintain(True, arguments.reason)
        print("In maintenance: no new message is taken until `rpcqm maintenance off`.")

    return with_server(arguments, "begin maintenance", work, administrators_only=True)


def run_off(arguments: argparse.Namespace) -> int:
    """Have the queue manager take messages again."""

    async def work(client: "QueueManagerClient") -> None:
        await client.maintenance.maintain(False)
        print("Messages are taken again.")

    return with_server(arguments, "end maintenance", work, administrators_only=True)


def run_status(arguments: argparse.Namespace) -> int:
    """Print the orders that hold."""

    async def work(client: "QueueManagerClient") -> None:
        told = await client.maintenance.overview()
        orders = {name: told[name] for name in ("maintenance", "disconnected")}
        if arguments.json:
            print_json(orders)
        else:
            _print(orders)

    return with_server(arguments, "tell which orders hold", work, administrators_only=True)


def _print(orders: Mapping[str, Any]) -> None:
    holding = {name: order for name, order in orders.items() if order is not None}
    if not holding:
        print("Messages are taken, and the network is used.")
    for name, order in holding.items():
        print(f"{name.capitalize()} {standing_text(order)}")
