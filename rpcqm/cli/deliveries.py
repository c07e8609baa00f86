"""Options of `rpcqm queue create` and `set` for poison messages, and how `show` tells of them."""

import argparse

from rpcqm.cli.errors import UsageMistake
from rpcqm.cli.parser import Parser, whole_number

POISON = "poison"
MAXIMUM_DELIVERIES = 0xFFFF_FFFF


def add_options(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument(
        "--max-deliveries",
        metavar="N",
        type=_limit,
        help="move a message to a subqueue when it was given back N times (aborted, released, or "
        "its reader lost), or never: `unlimited`",
    )
    parser.add_argument(
        "--poison", metavar="SUBQUEUE", help=f"which subqueue that is (default {POISON})"
    )


def _limit(text: str) -> int:
    if text.lower() == "unlimited":
        return 0
    return whole_number(1, MAXIMUM_DELIVERIES, "a number of deliveries")(text)


def check(arguments: argparse.Namespace) -> None:
    """Raise UsageMistake for options that do not go together."""
    if arguments.poison is not None and not arguments.max_deliveries:
        raise UsageMistake("--poison needs --max-deliveries, after which messages go there.")


def for_programs(limit: tuple[int, str] | None) -> dict[str, object]:
    """Members of JSON; none if the server did not tell."""
    if limit is None:
        return {}
    return {"max_deliveries": limit[0] or None, "poison": limit[1] if limit[0] else None}


def for_people(limit: tuple[int, str] | None) -> dict[str, object]:
    """Fields of a list; none if the server did not tell."""
    if limit is None:
        return {}
    return {"Deliveries": f"at most {limit[0]}, then ;{limit[1]}" if limit[0] else "unlimited"}
