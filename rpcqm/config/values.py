"""Entries for the keys of files: how a value is read, and the sentence about a wrong one.

Both the configuration and the directory are described by these entries.
"""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from rpcqm.base.text import visible
from rpcqm.codec.names.path_name import PathName

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong: its place, and a sentence about it."""

    where: str
    text: str

    def __str__(self) -> str:
        return visible(f"{self.where}: {self.text}")


class ConfigurationError(Exception):
    """Something that was set cannot be used; `mistakes` are sentences, each with its place."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class Entry:
    """One key: `read` gives its value or raises ValueError; `form` says what it should be."""

    read: Callable[[object], object]
    form: str
    required: bool = False

    def value(self, name: str, value: object) -> object:
        """The value in its final type; raises ValueError with a sentence if it cannot be read."""
        try:
            return self.read(value)
        except ValueError:
            raise ValueError(f"`{name}` is {self.form}, not {shown(value)}.") from None


def shown(value: object) -> str:
    """A value as sentences about mistakes show it; for a list or a table, only its type."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, UUID | PathName):
        return str(value)
    return repr(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def closest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like a mistyped one; "" if no known name is like it."""
    return next(iter(difflib.get_close_matches(name, list(known), 1)), "")


def unknown(what: str, name: str, close: str) -> str:
    """The sentence about an unknown name; `close` is a known name that resembles it, or ""."""
    return f"there is no {what} `{name}`" + (f"; did you mean `{close}`?" if close else ".")


def string(value: object) -> str:
    """Read a text, which may be empty; raises ValueError."""
    if not isinstance(value, str):
        raise ValueError
    return value


def text(value: object) -> str:
    """Read a text that has more than blanks; raises ValueError."""
    if not string(value).strip():
        raise ValueError
    return str(value)


def truth(value: object) -> bool:
    """Read true or false; raises ValueError."""
    if not isinstance(value, bool):
        raise ValueError
    return value


def whole(value: object) -> int:
    """Read a whole number; raises ValueError, also for true and false, which Python counts."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError
    return value


def whole_within(low: int, high: int) -> Callable[[object], int]:
    """A reader of whole numbers between two bounds, which are allowed themselves."""

    def read(value: object) -> int:
        if not low <= whole(value) <= high:
            raise ValueError
        return whole(value)

    return read


def each(read: Callable[[object], T], count: int | None = None) -> Callable[[object], list[T]]:
    """A reader of lists, of `count` values if it is given."""

    def read_all(value: object) -> list[T]:
        if not isinstance(value, list) or (count is not None and len(value) != count):
            raise ValueError
        return [read(item) for item in value]

    return read_all
