"""`rpcqm find`: the messages that meet conditions, in one queue or in all.

The queue manager looks through its queues itself, a page at a time. From one that is not ours every
message that can be peeked at is fetched, and from ours for who has not logged on.
"""

import argparse
import asyncio
import shlex
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from rpcqm.base.text import visible
from rpcqm.cli.errors import NothingCame, UsageMistake
from rpcqm.cli.found_lines import Lines
from rpcqm.cli.message_choice import add_conditions, given_conditions
from rpcqm.cli.options import QUEUE_HELP, add_server_options, queue_name
from rpcqm.cli.output import ProgressDisplay, counted, json_line
from rpcqm.cli.parser import Parser, add_command, whole_number
from rpcqm.cli.session import with_server

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

PAGE = 100
_MOST = 1_000_000_000
DETAILS = """\
A message is found if it meets every condition that is given. The text of --body is looked for in
what the body says, whatever its encoding: UTF-8, UTF-16, text of ActiveX, documents and values of
.NET. Messages stay where they are; those that somebody holds are not seen, as by `rpcqm peek`.
With --all every queue is looked through that you may peek at, with its journal and its subqueues,
dead letters, and what waits for other queue managers.
Ctrl-C ends the search and says how many messages were looked at, and how to go on. The exit status
is 4 if nothing was found.
Over --server, of a queue manager that is no rpcqm or without --user every message is fetched to be
looked at, which takes longer."""


def add(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "find",
        "Find messages by what they are and what they say.",
        [
            ("rpcqm find orders --label 'order*' --since 2h", "in one queue"),
            ("rpcqm find --all --body 'Müller & Söhne'", "in all, whatever the bodies' encoding"),
            ("rpcqm find DeadLetter$ --class 'NACK_*' --json", "each as JSON on a line"),
            (r"rpcqm find orders --regex 'order [0-9]{5}\b' --limit 10", "the first ten"),
        ],
        run,
        DETAILS,
    )
    parser.add_argument("queue", metavar="QUEUE", nargs="*", help=QUEUE_HELP)
    parser.add_argument("--all", action="store_true", help="all queues that you may peek at")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=whole_number(1, _MOST, "a number"),
        help="no more than so many messages",
    )
    parser.add_argument(
        "--after", metavar="PLACE", help="go on behind what an earlier search has looked at last"
    )
    parser.add_argument("--json", action="store_true", help="print each message as JSON on a line")
    add_conditions(parser)
    add_server_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what is found as it is found."""
    if bool(arguments.queue) is arguments.all:
        raise UsageMistake("Name one queue or several, or give --all for every queue.")
    conditions = given_conditions(arguments)
    if not conditions:
        raise UsageMistake(
            "There is no condition; `rpcqm find --help` lists them, and `rpcqm peek QUEUE --all` "
            "shows every message."
        )
    searched = _Searched(arguments)

    async def work(client: "QueueManagerClient") -> None:
        try:
            await _search(client, arguments, conditions, searched)
        except asyncio.CancelledError:  # by Ctrl-C
            searched.tell(interrupted=True)
            raise

    where = "all queues" if arguments.all else ", ".join(f"`{each}`" for each in arguments.queue)
    return with_server(arguments, f"search {where}", work)


class _Searched:
    """What has been looked at and found so far, and what is to be searched."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.queue: str | None = None
        self.after: str | None = arguments.after
        self.found = self.looked_at = self.unread = 0
        self._unread_first: list[str] = []
        self._limit = arguments.limit

    @property
    def left(self) -> int:
        """How many more are wanted of the next page."""
        return PAGE if self._limit is None else min(self._limit - self.found, PAGE)

    def count(self, page: dict[str, Any]) -> None:
        """Count a page, behind which the next one goes on."""
        self.found += len(page["messages"])
        self.looked_at += page["looked_at"]
        self.unread += page["unread"]
        for each in page["unread_first"][: _NAMED - len(self._unread_first)]:
            self._unread_first.append(f"{each['lookup_id']} in {each['queue']}")
        self.after = page["next"]

    def tell(self, interrupted: bool = False) -> None:
        """Say on standard error what was not read, how to go on, and how much was looked at.

        Where standard error is no terminal, the counts of a search that is complete are left out.
        """
        told = [f"{counted(self.found, 'message')} found, {self.looked_at:,} looked at."]
        if self.unread:
            more = " …" if self.unread > len(self._unread_first) else ""
            told.append(f"{_UNREAD.format(self.unread)} {', '.join(self._unread_first)}{more}")
        if self.after is not None:
            queue = "--all" if self.queue is None else shlex.quote(self.queue)
            told.append(f"The search goes on with `{queue} --after {self.after}`.")
        if len(told) > 1 or interrupted or sys.stderr.isatty():
            print(visible("\n".join(told), keep="\n"), file=sys.stderr)


_NAMED = 3
_UNREAD = (
    "{:,} of these may match, but were not read whole, because their bodies have over 256 KiB or "
    "too many values:"
)


async def _search(
    client: "QueueManagerClient",
    arguments: argparse.Namespace,
    conditions: dict[str, str],
    searched: _Searched,
) -> None:
    write = _write_json if arguments.json else Lines(len(arguments.queue) != 1).write
    with ProgressDisplay("Looked at", scrolls=sys.stdout.isatty()) as progress:
        for queue in [None] if arguments.all else arguments.queue:
            searched.queue = queue
            async with aclosing(_pages(client, arguments, conditions, searched)) as pages:
                async for page in pages:
                    for message in page["messages"]:
                        write(message)
                    searched.count(page)
                    progress.advance_to(searched.looked_at)
                    if not searched.left:
                        break
            if not searched.left:
                break
    if searched.found or searched.unread:
        searched.tell()
    if not searched.found:
        looked_at = counted(searched.looked_at, "message")
        raise NothingCame(f"Nothing meets the conditions; {looked_at} looked at.")


async def _pages(
    client: "QueueManagerClient",
    arguments: argparse.Namespace,
    conditions: dict[str, str],
    searched: _Searched,
) -> AsyncGenerator[dict[str, Any], None]:
    """Pages of the search in a queue, or in all."""
    # Only now, because it takes time to load, and mistakes and --help need none of it.
    from rpcqm.base.errors import RpcFault
    from rpcqm.cli.filters import as_options
    from rpcqm.client.maintenance import MaintenanceError

    name = None if searched.queue is None else queue_name(arguments, searched.queue)
    begun = False
    while not begun or searched.after is not None:
        try:
            page = await client.maintenance.search(
                name, conditions, searched.after, searched.left, whole=arguments.json
            )
        except MaintenanceError as error:
            raise UsageMistake(f"{as_options(str(error))}.") from error
        except RpcFault:
            if arguments.server is None or begun:
                raise
            break  # another queue manager, or an earlier rpcqm, makes no searches
        begun = True
        yield page
    if not begun:
        # Only now, because few searches need it.
        from rpcqm.cli.find_elsewhere import pages_from

        elsewhere = pages_from(client, arguments, conditions, searched.queue, searched.after)
        async with aclosing(elsewhere) as pages:
            async for page in pages:
                yield page


def _write_json(message: dict[str, Any]) -> None:
    print(json_line(message), flush=True)
