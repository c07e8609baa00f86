"""A request as the pages see it, and what they give back."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.text import number_of_64_bits
from rpcqm.console.texts import text
from rpcqm.http.exchange import HttpStream
from rpcqm.operations.operations import Operations

REFUSALS = (HResult.MQ_ERROR_ACCESS_DENIED, HResult.MQ_ERROR_PRIVILEGE_NOT_HELD)
"""Statuses of what the caller may not do."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a form or of a query, in order; a name may come again."""

    values: tuple[tuple[str, str], ...] = ()

    def text(self, name: str, default: str = "") -> str:
        """The first value of a field, or the default."""
        return next((value for each, value in self.values if each == name), default)

    def all(self, name: str) -> list[str]:
        """All values of a field."""
        return [value for each, value in self.values if each == name]

    def checked(self, name: str) -> bool:
        """Whether a box is ticked."""
        return bool(self.text(name))

    def number(self, name: str, default: int = 0) -> int:
        """A whole number, the default for an empty field; raises MQError for another text."""
        written = self.number_or_none(name)
        return default if written is None else written

    def number_or_none(self, name: str) -> int | None:
        """A whole number, None for an empty field; raises MQError for another text."""
        written = self.text(name).strip()
        return whole_number(name, written) if written else None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of somebody who has logged on; `now` is milliseconds since 1970.

    `form` is empty unless the form that was sent is one of ours.
    """

    operations: Operations
    identity: Identity
    now: int
    query: Fields = field(default_factory=Fields)
    form: Fields = field(default_factory=Fields)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a template is filled with; `template` is another one than the page's own."""

    values: Mapping[str, object]
    template: str = ""


@dataclass(frozen=True, slots=True)
class Redirect:
    """Where to go on, below /console, and what is said there."""

    to: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Download:
    """A file; `stream` gives it piece by piece, instead of `octets`."""

    octets: bytes
    name: str
    content_type: str = "application/octet-stream"
    stream: HttpStream | None = None


Outcome = Shown | Redirect | Download
Show = Callable[[Asked], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page: `show` answers GET, `act` a form that was sent to the same path.

    `entry` is the key of its text in the navigation, for those pages that are there; `title` that
    of its title. One that is `administrators`' is in the navigation of nobody else.
    """

    path: str
    title: str
    template: str
    show: Show
    act: Show | None = None
    entry: str = ""
    administrators: bool = False


def whole_number(name: str, written: str) -> int:
    """A number that is not negative, of 64 bits; raises MQError."""
    number = number_of_64_bits(written)
    if number is None:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, text("wrong.number", name=name))
    return number
