"""`rpcqm status`: what the queues do now."""

import argparse
import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from rpcqm.base.text import iso_time
from rpcqm.base.units import duration_text
from rpcqm.cli.errors import UsageMistake
from rpcqm.cli.options import add_local_options
from rpcqm.cli.output import counted, print_json, time_text
from rpcqm.cli.overview import print_overview
from rpcqm.cli.parser import Parser, add_command
from rpcqm.cli.queue_rates import QueueRates, print_queues, queue_rates
from rpcqm.cli.session import with_server
from rpcqm.cli.watching import add_interval, add_pattern, is_wanted, show

if TYPE_CHECKING:
    from rpcqm.client.maintenance import Status
    from rpcqm.client.queue_manager import QueueManagerClient

DETAILS = """\
IN/s and OUT/s are messages that came and left within --interval, a second; with --interval 0 they
are the averages since the start. OLDEST is how long the oldest message of the queue has been there;
of several priorities the first message of each is looked at. OPEN counts who has the queue open,
WAITING the reads that wait for a message. Queues to other queue managers have format names."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "status",
        "Show what the queues do: messages in and out, the oldest message, waiting readers.",
        [
            ("rpcqm status", "all queues"),
            ("rpcqm status orders --watch", "those with `orders` in their names, every second"),
            ("rpcqm status --interval 10s --json", "rates over ten seconds, for a program"),
            ("rpcqm status --overview", "all of it at a glance, and what needs attention"),
        ],
        run,
        DETAILS,
    )
    add_pattern(parser)
    parser.add_argument(
        "--watch", action="store_true", help="look again and again until Ctrl-C ends it"
    )
    parser.add_argument(
        "--overview",
        action="store_true",
        help="tell totals and what needs attention, not queues; with --json the last hour too",
    )
    add_interval(parser, "time over which rates are told: milliseconds, or `5s` (default 1s)")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    add_local_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Look twice, and print what is there and what has changed; then after each interval."""
    if arguments.overview:
        return _run_overview(arguments)

    async def work(client: "QueueManagerClient") -> None:
        before: Status | None = None
        if arguments.interval:
            before = await client.maintenance.status()
            await asyncio.sleep(arguments.interval / 1000)

        async def look() -> Callable[[], None]:
            nonlocal before
            now = await client.maintenance.status()
            rows = [
                row
                for row in queue_rates(before, now)
                if is_wanted(arguments.pattern, row.queue.name)
            ]
            before = now if arguments.interval else None
            return lambda: _print(arguments, now, rows)

        await show(arguments, look)

    return with_server(arguments, "tell what the queues do", work, administrators_only=True)


def _run_overview(arguments: argparse.Namespace) -> int:
    """Print the overview; then after each interval."""
    if arguments.pattern is not None:
        raise UsageMistake("--overview is of all queues: leave out PATTERN.")

    async def work(client: "QueueManagerClient") -> None:
        async def look() -> Callable[[], None]:
            overview = await client.maintenance.overview()
            return lambda: print_json(overview) if arguments.json else print_overview(overview)

        await show(arguments, look)

    return with_server(arguments, "tell what happens", work, administrators_only=True)


def _print(arguments: argparse.Namespace, now: "Status", rows: list[QueueRates]) -> None:
    if arguments.json:
        print_json(_for_programs(now, rows))
        return
    messages = counted(sum(row.queue.messages for row in rows), "message")
    running = duration_text(now.now - now.started)
    print(
        f"Running for {running}, since {time_text(now.started)}; {messages} in "
        f"{counted(len(rows), 'queue')}."
    )
    print_queues(now, rows)


def _for_programs(now: "Status", rows: list[QueueRates]) -> dict[str, object]:
    return {
        "now": iso_time(now.now),
        "started": iso_time(now.started),
        "queues": [
            {
                "queue": row.queue.name,
                "messages": row.queue.messages,
                "bytes": row.queue.bytes,
                "came": row.queue.entered,
                "left": row.queue.left,
                "in_per_second": round(row.rate_in, 3),
                "out_per_second": round(row.rate_out, 3),
                "oldest": iso_time(row.queue.oldest),
                "open": row.queue.open_handles,
                "waiting": row.queue.waiting_readers,
            }
            for row in rows
        ],
    }
