"""Filters as people and programs write them: one text for each condition.

The command line, `/api/v1` and the pages have the same names for conditions, and read their texts
here.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import cut
from rpcqm.base.units import amount
from rpcqm.codec.bodies.described import class_name
from rpcqm.codec.filters.message_filter import MessageFilter
from rpcqm.codec.filters.patterns import pattern_of_glob
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.identifier import Sid

LONGEST_CONDITION = 1_000
"""Characters of a condition of a search.

Bound `search.condition` [characters]: the search is refused with one sentence.
"""
_HIGHEST_SIZE = 1 << 32
_PRIORITIES = range(8)
_HIGHEST_CLASS = 0xFFFF

SidNamed = Callable[[str], Sid | None]
"""The SID of an account by its name; None if there is no such account."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of texts: the time now, in milliseconds since 1970, and names of accounts.

    Times without a zone are UTC, or local ones of the computer if `local` says so.
    """

    now: int
    sid_named: SidNamed
    local: bool = False


def no_names(name: str) -> Sid | None:
    """For another machine's messages, whose accounts have no names here."""
    return None


def read_filter(texts: Mapping[str, str], surroundings: Surroundings) -> MessageFilter:
    """The filter that texts by the names of CONDITIONS write; absent ones are None.

    Raises MQError(MQ_ERROR_INVALID_PARAMETER) with one sentence for the first invalid text.
    """
    values: dict[str, Any] = {}
    for name, text in texts.items():
        condition = CONDITIONS.get(name)
        if condition is None:
            raise _wrong(f"{cut(name)} is no condition; there are {', '.join(CONDITIONS)}")
        if len(text) > LONGEST_CONDITION:
            had = f"{len(text):,} characters"
            raise _wrong(f"{name} has {had}, a condition has at most {LONGEST_CONDITION:,}")
        try:
            values[condition.field] = condition.read(text, surroundings)
        except ValueError as error:
            raise _wrong(f"{name}: {error}") from None
    wanted = MessageFilter(**values)
    _check_ranges(wanted)
    return wanted


def _wrong(sentence: str) -> MQError:
    return MQError(HResult.MQ_ERROR_INVALID_PARAMETER, sentence)


def _check_ranges(wanted: MessageFilter) -> None:
    for first, last in (("since", "until"), ("size_min", "size_max")):
        low, high = getattr(wanted, first), getattr(wanted, last)
        if low is not None and high is not None and low > high:
            raise _wrong(f"{first} is beyond {last}, so that no message can meet both")


def written_filter(wanted: MessageFilter) -> dict[str, str]:
    """Texts that `read_filter` reads as the same filter, at any time and place."""
    texts = {}
    for name, condition in CONDITIONS.items():
        value = getattr(wanted, condition.field)
        if value is not None and value is not False:
            texts[name] = condition.write(value)
    return texts


def _text(text: str, surroundings: Surroundings) -> str:
    if not text:
        raise ValueError("a text is wanted")
    return text


def _glob(text: str, surroundings: Surroundings) -> str:
    pattern_of_glob(text)
    return text


def _identifier(text: str, surroundings: Surroundings) -> MessageIdentifier:
    return MessageIdentifier.read(text)


def _sender(text: str, surroundings: Surroundings) -> Sid:
    try:
        return Sid.parse(text.upper())
    except ValueError:
        found = surroundings.sid_named(text)
    if found is None:
        raise ValueError(f"`{cut(text)}` is neither an account here nor a SID like S-1-5-21-1-2-3")
    return found


def _moment(text: str, surroundings: Surroundings) -> int:
    """A time in ISO 8601, or a duration before now."""
    try:
        return max(surroundings.now - amount(text, "ms"), 0)
    except ValueError:
        pass  # it is a date, or invalid
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None and not surroundings.local:
            moment = moment.replace(tzinfo=UTC)
        return max(round(moment.astimezone(UTC).timestamp() * 1000), 0)
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"`{cut(text)}` is neither a time like 2026-11-28T10:30 nor how long ago, like 2h"
        ) from None


def _moment_text(value: int) -> str:
    return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds")


def _size(text: str, surroundings: Surroundings) -> int:
    try:
        size = int(text) if _DIGITS.fullmatch(text) else amount(text, "B")
    except ValueError as error:
        raise ValueError(f"`{cut(text)}` {error}") from None
    if size > _HIGHEST_SIZE:
        raise ValueError(f"no message has {size:,} bytes")
    return size


_DIGITS = re.compile(r"\d{1,20}", re.ASCII)


def _priorities(text: str, surroundings: Surroundings) -> frozenset[int]:
    """`3`, `0,7` or `4-7`."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = (first, last if dash else first)
        if not all(len(each) == 1 and each.isascii() and each.isdigit() for each in ends):
            raise ValueError(f"`{cut(text)}` is no priority; they are 0 to 7, like 3, 0,7 or 4-7")
        low, high = map(int, ends)
        if low > high or high not in _PRIORITIES:
            raise ValueError(f"`{cut(text)}` is no priority; they are 0 to 7, like 3, 0,7 or 4-7")
        found |= set(range(low, high + 1))
    return frozenset(found)


def _classes(text: str, surroundings: Surroundings) -> frozenset[int]:
    """Names with or without their prefix, patterns of names, or numbers; commas part them."""
    found: set[int] = set()
    for part in text.split(","):
        found |= _classes_named(part.strip())
    return frozenset(found)


def _classes_named(text: str) -> set[int]:
    if _NUMBER.fullmatch(text) and int(text, 0) <= _HIGHEST_CLASS:
        return {int(text, 0)}
    pattern = pattern_of_glob(text.upper().removeprefix("MQMSG_CLASS_"))
    found = {int(each) for each in MessageClass if pattern.fullmatch(class_name(each))}
    if not found:
        raise ValueError(
            f"`{cut(text)}` is no class; there are NORMAL, ACK_RECEIVE, NACK_ACCESS_DENIED …, "
            "patterns like NACK_*, and numbers"
        )
    return found


_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]{1,4}|0|[1-9][0-9]{0,4}", re.ASCII)


def _yes_or_no(text: str, surroundings: Surroundings) -> bool:
    if text.lower() not in _TRUTHS:
        raise ValueError(f"`{cut(text)}` is neither yes nor no")
    return _TRUTHS[text.lower()]


_TRUTHS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def _numbers(values: frozenset[int]) -> str:
    return ",".join(map(str, sorted(values)))


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition: its reader, its writer, the `field` of a filter that it sets, and its help."""

    field: str
    read: Callable[[str, Surroundings], object]
    write: Callable[..., str]
    help: str
    example: str = ""


CONDITIONS: Mapping[str, Condition] = {
    "label": Condition("label", _glob, str, "a pattern of the label: *, ? and […]", "order*"),
    "body": Condition("body", _text, str, "a text that the body says, in whatever encoding", "42"),
    "regex": Condition(
        "regex", _text, str, "a regular expression (RE2) for the label or the body", "order [0-9]+"
    ),
    "correlation_id": Condition(
        "correlation_id", _identifier, str, r"the correlation identifier, {GUID}\N or its 40 digits"
    ),
    "sender": Condition("sender", _sender, str, "who sent it: an account here, or a SID", "alice"),
    "since": Condition(
        "since", _moment, _moment_text, "arrived at this time or later, or so long ago", "2h"
    ),
    "until": Condition(
        "until", _moment, _moment_text, "arrived at this time or before", "2026-11-28T10:30"
    ),
    "class": Condition(
        "classes", _classes, _numbers, "classes by name, pattern or number", "NACK_*"
    ),
    "size_min": Condition("size_min", _size, str, "bytes of the body at least", "10KB"),
    "size_max": Condition("size_max", _size, str, "bytes of the body at most", "1MB"),
    "priority": Condition("priorities", _priorities, _numbers, "priorities", "4-7"),
    "transactional": Condition(
        "transactional", _yes_or_no, lambda v: "yes" if v else "no", "sent in a transaction", "no"
    ),
    "ignore_case": Condition(
        "ignore_case", _yes_or_no, lambda v: "yes", "capital and small letters are the same", "yes"
    ),
}
"""All conditions, in the order of forms and help."""
