"""The requests that wait for the end of a turn: messages, and ends of reads (`fast.turn`)."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName


class Kind(NamedTuple):
    """The common properties of the messages of one run.

    `flags` are the FLAG_... bits of their positions.
    """

    recoverable: bool
    flags: int


class Composed(NamedTuple):
    """Columns of messages: stored octets, priorities, expiries."""

    packets: list[bytes]
    priorities: list[int]
    expiries: list[int]


class TemplatedMessage(Protocol):
    """A message on its way into a queue, and its request."""

    @property
    def priority(self) -> int: ...

    @property
    def administration(self) -> FormatName | None:
        """The queue for acknowledgements, if the message asks for any."""

    @property
    def sender(self) -> Identity:
        """The account whose rights count for that; Anonymous if an arrival has no effects."""

    def compose(self, ordinal: int, now: int) -> bytes:
        """The stored octets: its packet, sent `now` (seconds since 1970) with a number of this
        queue manager."""

    def expiry(self, now: int) -> int:
        """The time of its expiry if it comes `now`, both milliseconds since 1970; or NEVER."""

    @staticmethod
    def composed(messages: Sequence[Any], ordinals: Sequence[int], now: int) -> Composed:
        """The result of `composed_each` for messages of this class."""

    def accepted(self) -> None:
        """Note that the commit is under way: the message will not go the careful way."""

    def stored(self) -> None:
        """Note that it is as durable as it asks for, and visible."""

    def carefully(self) -> None:
        """Go the careful way: nothing has happened yet."""

    @property
    def response(self) -> bytes:
        """The answer; available once the message is composed."""


class TemplatedRemoval(Protocol):
    """The end of a read that removes its message, and its request."""

    @property
    def descriptor(self) -> object:
        """The holder of the message's lock: an open queue, or a lease."""

    def removing(self) -> None:
        """Note that the commit of the removal is under way: the read is over."""

    def removed(self) -> None:
        """Note that the message is durably gone."""

    def carefully(self) -> None:
        """Go the careful way: nothing has happened yet."""

    @property
    def response(self) -> bytes:
        """The answer."""


def composed_each(
    messages: Sequence[TemplatedMessage], ordinals: Sequence[int], now: int
) -> Composed:
    """The columns of messages that come `now`, in milliseconds since 1970, composed one by one."""
    return Composed(
        [
            message.compose(ordinal, now // 1000)
            for message, ordinal in zip(messages, ordinals, strict=True)
        ],
        [message.priority for message in messages],
        [message.expiry(now) for message in messages],
    )
