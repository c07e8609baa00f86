"""Values from another queue manager, which may send any value (G292)."""

from collections.abc import Collection
from typing import TypeVar

from rpcqm.base.errors import HResult, MQError

T = TypeVar("T")

_MOST_TEXTS = 100_000
"""Texts of a list: queue managers have some thousand queues."""


def refuse(value: object) -> MQError:
    """The error for a meaningless value."""
    return MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"{value!r:.80}")


def one_of(value: object, choices: Collection[T]) -> T:
    """One of the specified values; raises MQ_ERROR_INVALID_PARAMETER for others."""
    for choice in choices:
        if isinstance(value, str) and value == choice:
            return choice
    raise refuse(value)


def whole(value: object, bits: int = 64) -> int:
    """An unsigned number, 0 for no value; raises MQ_ERROR_INVALID_PARAMETER for others."""
    if value is None:
        return 0
    if type(value) is not int or not -(1 << (bits - 1)) <= value < 1 << bits:
        raise refuse(value)
    return value & ((1 << bits) - 1)


def texts(value: object) -> list[object]:
    """A list of texts; raises MQ_ERROR_INVALID_PARAMETER for others."""
    found = [] if value is None else value
    if not isinstance(found, list | tuple) or len(found) > _MOST_TEXTS:
        raise refuse(value)
    if not all(isinstance(each, str) for each in found):
        raise refuse(value)
    return list(found)
