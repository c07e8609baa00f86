"""`rpcqm top`: what a queue manager does, live in a terminal."""

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from rpcqm.cli.cluster_lines import active_line
from rpcqm.cli.errors import ExitStatus
from rpcqm.cli.options import add_local_options
from rpcqm.cli.overview import print_overview
from rpcqm.cli.parser import Parser, add_command, amount_in
from rpcqm.cli.queue_rates import print_queues
from rpcqm.cli.session import with_server
from rpcqm.cli.top_picture import MOST_ROWS, ORDERS, Looks, Picture, View
from rpcqm.cli.top_tables import NAMES, Tables, print_table
from rpcqm.cli.watching import EVERY_SECOND, LONGEST_INTERVAL, add_pattern

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

SHORTEST_INTERVAL = 100
"""Milliseconds between two looks."""
PURPOSE = "tell what the queue manager does"

DETAILS = f"""\
What needs attention stands above the queues. Keys: `2` shows leases instead of the queues, `3`
open transactions, `4` sessions with other queue managers, `1` the queues again, `t` the next table:
who holds what, and for how long. `/` filters the rows by what is in them, `s` sorts by the next
column; queues also by `m` messages, `z` size, `i` and `o` the rates, `a` the oldest message, `w`
waiting reads, `n` name. `r` reverses the order, the space bar stops the picture, arrows scroll, `q`
quits. {MOST_ROWS} queues are shown; a filter finds the others. When the queue manager goes, the
last picture stays, and it goes on when the queue manager is there again. Where the output is no
terminal, or with --once, one picture is printed as plain text."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "top",
        "Watch the queue manager in the terminal: what needs attention, and the busiest queues.",
        [
            ("rpcqm top", "until `q` is pressed"),
            ("rpcqm top --sort oldest", "the queue with the oldest message first"),
            ("rpcqm top --once", "one picture as plain text"),
            ("rpcqm top --once --table leases", "who holds which messages, as plain text"),
        ],
        run,
        DETAILS,
    )
    add_pattern(parser)
    parser.add_argument("--once", action="store_true", help="print one picture as plain text")
    parser.add_argument(
        "--table",
        choices=list(NAMES),
        default="queues",
        help="which table is shown first (default queues)",
    )
    parser.add_argument(
        "--sort",
        choices=list(ORDERS),
        default="messages",
        help="what comes first (default messages)",
    )
    parser.add_argument(
        "--interval",
        metavar="MS",
        type=amount_in("ms", SHORTEST_INTERVAL, LONGEST_INTERVAL, "a number of milliseconds"),
        default=EVERY_SECOND,
        help="time between two looks: milliseconds, or `5s` (default 1s)",
    )
    add_local_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show pictures until the user quits; or print one."""
    view = View(arguments.sort, arguments.pattern or "", tables=Tables(arguments.table))
    if arguments.once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _print_once(arguments, view)
    first: list[Picture] = []

    async def look(client: "QueueManagerClient") -> None:
        first.append(await Looks(client).look(view.tables.shown != "queues"))

    # Refusals and a queue manager that is not there are told before the screen is taken over.
    with_server(arguments, PURPOSE, look, administrators_only=True)
    # Only now, because it takes time to load, and only this command needs it.
    from rpcqm.cli.top_screen import TopScreen

    screen = TopScreen(arguments, first[0], view)
    screen.run()
    return ExitStatus.OK if screen.return_code == 0 else ExitStatus.REFUSED


def _print_once(arguments: argparse.Namespace, view: View) -> int:
    async def work(client: "QueueManagerClient") -> None:
        looks = Looks(client)
        await looks.look()
        await asyncio.sleep(arguments.interval / 1000)
        picture = await looks.look(view.tables.shown != "queues")
        print_overview(picture.overview)
        if picture.cluster is not None:
            print(active_line(picture.cluster))
        print()
        if picture.flight is None:
            print_queues(picture.status, view.chosen(picture))
        else:
            print_table(picture.flight, view.tables, view.pattern)

    return with_server(arguments, PURPOSE, work, administrators_only=True)
