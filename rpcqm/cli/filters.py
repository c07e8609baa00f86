"""Conditions of a command, as the queue manager gets them."""

import re
from functools import partial

from rpcqm.base.clock import SystemClock
from rpcqm.base.errors import MQError
from rpcqm.cli.errors import UsageMistake
from rpcqm.codec.filters.written import (
    CONDITIONS,
    Surroundings,
    no_names,
    read_filter,
    written_filter,
)

_NAMED = re.compile(rf"({'|'.join(sorted(CONDITIONS, key=len, reverse=True))})\b")


def absolute(texts: dict[str, str]) -> dict[str, str]:
    """The same conditions in forms that mean the same wherever and whenever they are read.

    Times without a zone are local ones. Who a sender is the queue manager says. Raises UsageMistake
    for a condition that is wrong.
    """
    sender = {name: text for name, text in texts.items() if name == "sender"}
    others = {name: text for name, text in texts.items() if name not in sender}
    surroundings = Surroundings(SystemClock().now(), no_names, local=True)
    try:
        return written_filter(read_filter(others, surroundings)) | sender
    except MQError as error:
        raise UsageMistake(f"{as_options(error.detail)}.") from None


def as_options(sentence: str) -> str:
    """A sentence about a condition, or about two, which are called as their options are."""
    named = partial(_NAMED.sub, lambda found: f"--{found[1].replace('_', '-')}", count=1)
    before, beyond, after = sentence.partition(" is beyond ")
    return f"{named(before)}{beyond}{named(after) if beyond else after}"
