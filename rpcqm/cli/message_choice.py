"""Which messages of a queue a command is about: by identifiers, by a filter, or all of them."""

import argparse
from collections.abc import Mapping

from rpcqm.cli.errors import UsageMistake
from rpcqm.cli.parser import LOOKUP_IDENTIFIER, Parser

CONDITIONS: Mapping[str, tuple[str, str]] = {
    "label": ("PATTERN", "whose label is like this: * ? and […] stand for others, as `order*`"),
    "body": ("TEXT", "whose body says this, in whatever encoding"),
    "regex": ("RE", "whose label or body has what this regular expression (RE2) describes"),
    "correlation_id": ("ID", "with this correlation identifier"),
    "sender": ("WHO", "that this account, or SID, has sent"),
    "since": ("TIME", "that came at this time or later: `2026-11-28T10:30`, or `2h` ago"),
    "until": ("TIME", "that came at this time or before"),
    "class": ("CLASS", "of these classes: `NACK_*`, names or numbers with commas"),
    "size_min": ("BYTES", "with so many bytes in the body at least: `10KB`"),
    "size_max": ("BYTES", "with so many bytes in the body at most"),
    "priority": ("N", "of these priorities: `3`, `0,7` or `4-7`"),
    "transactional": ("yes|no", "that were sent in a transaction, or not"),
}
"""The conditions of `rpcqm.codec.filters.written`, which takes time to load."""


def add_choice(parser: Parser, default: str) -> None:
    """Add the options that choose; `default` says what is meant without any."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--lookup-id",
        metavar="N",
        action="append",
        type=LOOKUP_IDENTIFIER,
        help=f"the message with this lookup identifier; may be given again ({default})",
    )
    which.add_argument("--all", action="store_true", help="all that are there now")
    add_conditions(parser)


def add_conditions(parser: Parser) -> None:
    """Add an option for each condition; a message meets all that are given."""
    group = parser.add_argument_group("only messages")
    for name, (metavar, words) in CONDITIONS.items():
        option = f"--{name.replace('_', '-')}"
        group.add_argument(option, dest=f"where_{name}", metavar=metavar, help=words)
    group.add_argument(
        "--ignore-case",
        dest="where_ignore_case",
        action="store_const",
        const="yes",
        help="capital and small letters are the same to --label, --body and --regex",
    )


def conditions(arguments: argparse.Namespace) -> dict[str, str]:
    """The conditions of the filter, by their names; empty without any. Raises UsageMistake."""
    texts = given_conditions(arguments)
    if texts and arguments.lookup_id:
        raise UsageMistake("Lookup identifiers and conditions do not go together.")
    return texts


def given_conditions(arguments: argparse.Namespace) -> dict[str, str]:
    """The conditions that are given, by their names; raises UsageMistake for a wrong one."""
    names = (*CONDITIONS, "ignore_case")
    given = {name: getattr(arguments, f"where_{name}") for name in names}
    texts = {name: text for name, text in given.items() if text is not None}
    if set(texts) == {"ignore_case"}:
        raise UsageMistake("--ignore-case needs --label, --body or --regex beside it.")
    if not texts:
        return texts
    from rpcqm.cli.filters import absolute  # only now, because it takes time to load

    return absolute(texts)
