"""Options of `rpcqm queue create` and `set` that bound a queue's journal, and how `show` tells."""

import argparse
from typing import TYPE_CHECKING

from rpcqm.base.units import duration_text
from rpcqm.cli.parser import Parser, amount_in, whole_number

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.codec.names.format_name import FormatName

MOST = 0xFFFF_FFFF
UNLIMITED = "unlimited"


def add_options(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument(
        "--journal-max-age",
        metavar="S",
        type=_age,
        help="remove copies from its journal that are older: seconds, `30d`, or `unlimited`",
    )
    parser.add_argument(
        "--journal-max-messages",
        metavar="N",
        type=_messages,
        help="keep the latest N copies in its journal, or `unlimited`",
    )


def _age(text: str) -> int:
    return 0 if text.lower() == UNLIMITED else amount_in("s", 1, MOST, "a number of seconds")(text)


def _messages(text: str) -> int:
    return 0 if text.lower() == UNLIMITED else whole_number(1, MOST, "a number of copies")(text)


def given(arguments: argparse.Namespace) -> bool:
    """Whether anything is said of the journal's bounds."""
    return arguments.journal_max_age is not None or arguments.journal_max_messages is not None


async def set_bounds(
    client: "QueueManagerClient", name: "FormatName", arguments: argparse.Namespace
) -> None:
    """Set what was given; the other bound stays."""
    if not given(arguments):
        return
    age, messages = await client.maintenance.journal_bounds(name)
    if arguments.journal_max_age is not None:
        age = arguments.journal_max_age
    if arguments.journal_max_messages is not None:
        messages = arguments.journal_max_messages
    await client.maintenance.set_journal_bounds(name, age, messages)


def for_programs(bounds: tuple[int, int] | None) -> dict[str, object]:
    """Members of JSON; none if the server did not tell."""
    if bounds is None:
        return {}
    return {"journal_max_age": bounds[0] or None, "journal_max_messages": bounds[1] or None}


def for_people(bounds: tuple[int, int] | None) -> dict[str, object]:
    """Fields of a list; none if the server did not tell, or nothing is bounded."""
    if bounds is None or not any(bounds):
        return {}
    age = f"{duration_text(bounds[0])} old at most" if bounds[0] else ""
    messages = f"the latest {bounds[1]:,}" if bounds[1] else ""
    return {"Journal keeps": ", ".join(filter(None, (messages, age)))}
