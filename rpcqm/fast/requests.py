"""What waits for the end of a turn: messages on their way, ends of reads (`fast.turn`)."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName


class Kind(NamedTuple):
    """What the messages of one run have in common.

    `flags` are the FLAG_... bits of their positions.
    """

    recoverable: bool
    flags: int


class Composed(NamedTuple):
    """Columns of messages: what is kept of each, their priorities, when they expire."""

    packets: list[bytes]
    priorities: list[int]
    expiries: list[int]


class TemplatedMessage(Protocol):
    """A message on its way into a queue, and the request that brought it."""

    @property
    def priority(self) -> int: ...

    @property
    def administration(self) -> FormatName | None:
        """Where acknowledgements go, if the message asks for any."""

    @property
    def sender(self) -> Identity:
        """Whose rights count for that; Anonymous where nothing follows from an arrival."""

    def compose(self, ordinal: int, now: int) -> bytes:
        """What is kept of it: its packet, sent `now` (seconds since 1970) with a number of this
        queue manager."""

    def expiry(self, now: int) -> int:
        """When it expires if it comes `now`, both milliseconds since 1970; or NEVER."""

    @staticmethod
    def composed(messages: Sequence[Any], ordinals: Sequence[int], now: int) -> Composed:
        """As `composed_each`, of messages of this class."""

    def accepted(self) -> None:
        """Its commit is under way: it will not go the careful way."""

    def stored(self) -> None:
        """It is as durable as it asks for, and visible."""

    def carefully(self) -> None:
        """Go the careful way: nothing has happened yet."""

    @property
    def response(self) -> bytes:
        """The answer, known once it is composed."""


class TemplatedRemoval(Protocol):
    """The end of a read that removes its message, and the request that asks for it."""

    @property
    def descriptor(self) -> object:
        """What has the message locked: an open queue, or a lease."""

    def removing(self) -> None:
        """The commit of its removal is under way: the read is over."""

    def removed(self) -> None:
        """The message is gone, durably."""

    def carefully(self) -> None:
        """Go the careful way: nothing has happened yet."""

    @property
    def response(self) -> bytes:
        """The answer."""


def composed_each(
    messages: Sequence[TemplatedMessage], ordinals: Sequence[int], now: int
) -> Composed:
    """What messages that come `now`, in milliseconds since 1970, tell one by one."""
    return Composed(
        [
            message.compose(ordinal, now // 1000)
            for message, ordinal in zip(messages, ordinals, strict=True)
        ],
        [message.priority for message in messages],
        [message.expiry(now) for message in messages],
    )
