"""The outcome of an action for a message."""

import enum
from dataclasses import dataclass


class Result(enum.Enum):
    """The kinds of outcomes."""

    DONE = enum.auto()
    FAILED = enum.auto()
    """A failure for this message; others may succeed. It counts towards poison."""
    TROUBLE = enum.auto()
    """A failure for every message: a program or a host is missing. It is not counted; the rule
    waits."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result, and a sentence about it without a full stop."""

    result: Result
    told: str


def done(told: str) -> Outcome:
    """The action succeeded."""
    return Outcome(Result.DONE, told)


def failed(told: str) -> Outcome:
    """The action failed for this message."""
    return Outcome(Result.FAILED, told)


def trouble(told: str) -> Outcome:
    """The action cannot succeed for any message now."""
    return Outcome(Result.TROUBLE, told)
