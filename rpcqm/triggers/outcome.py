"""What has come of doing something for a message."""

import enum
from dataclasses import dataclass


class Result(enum.Enum):
    """How it went."""

    DONE = enum.auto()
    FAILED = enum.auto()
    """For this message; others may go well. It counts towards poison."""
    TROUBLE = enum.auto()
    """For every message: a program or a host is not there. Nothing counts, and the rule waits."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it went, and a sentence about it without a full stop."""

    result: Result
    told: str


def done(told: str) -> Outcome:
    """It went well."""
    return Outcome(Result.DONE, told)


def failed(told: str) -> Outcome:
    """It went wrong for this message."""
    return Outcome(Result.FAILED, told)


def trouble(told: str) -> Outcome:
    """It cannot go well for any message now."""
    return Outcome(Result.TROUBLE, told)
