"""Lists of queues that are narrowed by a pattern, and shown again and again."""

import argparse
import asyncio
import fnmatch
import sys
from collections.abc import Awaitable, Callable

from rpcqm.base.text import folded
from rpcqm.cli.parser import Parser, amount_in
from rpcqm.codec.names.format_name import without_prefix

LONGEST_INTERVAL = 86_400_000
"""Milliseconds between two looks: a day."""
EVERY_SECOND = 1000
WILDCARDS = frozenset("*?[")
_CLEAR = "\x1b[H\x1b[J"

Look = Callable[[], Awaitable[Callable[[], None]]]
"""Asks, and returns what prints the answer."""


def add_pattern(parser: Parser) -> None:
    """Add the argument that narrows a list of queues."""
    parser.add_argument(
        "pattern",
        metavar="PATTERN",
        nargs="?",
        help="only queues with this in their names; with * or ? the whole name, as in 'ord*'",
    )


def add_watch(parser: Parser) -> None:
    """Add the options that repeat a look."""
    parser.add_argument(
        "--watch", action="store_true", help="look again and again until Ctrl-C ends it"
    )
    add_interval(parser, "time between two looks: milliseconds, or `5s` (default 1s)")


def add_interval(parser: Parser, meaning: str) -> None:
    """Add the option for the time between two looks."""
    parser.add_argument(
        "--interval",
        metavar="MS",
        type=amount_in("ms", 0, LONGEST_INTERVAL, "a number of milliseconds"),
        default=EVERY_SECOND,
        help=meaning,
    )


def is_wanted(pattern: str | None, name: str) -> bool:
    """Whether a pattern lets a path name or a format name through, in any case of letters."""
    if pattern is None:
        return True
    wanted, whole = folded(without_prefix(pattern)), folded(name)
    if not WILDCARDS & set(wanted):
        return wanted in whole
    return any(fnmatch.fnmatchcase(each, wanted) for each in (whole, whole.rpartition("\\")[2]))


async def show(arguments: argparse.Namespace, look: Look) -> None:
    """Look once, or with --watch until the command is interrupted.

    A terminal is cleared before each answer, other outputs get one answer after the other.
    """
    while True:
        tell = await look()
        if arguments.watch and sys.stdout.isatty():
            print(_CLEAR, end="")
        tell()
        sys.stdout.flush()
        if not arguments.watch:
            return
        await asyncio.sleep(arguments.interval / 1000)
