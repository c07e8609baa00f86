"""Who watches what becomes of messages, to tell traces of it (docs/traces.md).

Nobody watches unless traces are configured; the events look for that once, also for many messages.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.codec.packet.enums import MessageClass

if TYPE_CHECKING:
    from rpcqm.store.transaction import StoreTransaction


class MessageWatch(Protocol):
    """Told of messages; it raises nothing, and changes nothing.

    Moments are nanoseconds since 1970, as `now` gives them.
    """

    def now(self) -> int:
        """This moment."""

    def arrived(self, queue: Queue, message: Message, begun: int) -> None:
        """A message is in a queue, as durable as it asks for."""

    def arrived_together(self, queue: Queue, stored: Sequence[bytes], begun: int) -> None:
        """The same for several, by their octets as they are kept."""

    def refused(self, queue: Queue, message: Message, status: str) -> None:
        """A queue does not take a message; `status` is the name of an HRESULT."""

    def rejected(self, message: Message, reason: MessageClass) -> None:
        """A message of another queue manager is refused before a queue is asked for room."""

    def received(self, queue: Queue, message: Message, begun: int, settles: bool = True) -> None:
        """A reader gets a message; it `settles` later whether it is removed or given back.

        One that does not settle has got it when `deleted` has been committed.
        """

    def released(self, queue: Queue, key: int) -> None:
        """A message that was received has been given back."""

    def moved(self, queue: Queue, key: int) -> None:
        """A message has been moved elsewhere."""

    def deleted(
        self, change: "StoreTransaction", queue: Queue, key: int, reason: MessageClass
    ) -> None:
        """A message is removed by a commit."""

    def sent(self, queue: Queue, packets: Iterable[tuple[int, bytes]], address: str) -> None:
        """Messages go out to their next hop: keys and packets."""

    def acknowledged(self, queue: Queue, key: int) -> None:
        """The next hop has a message."""

    def turned_away(self, queue: Queue, key: int, reason: str) -> None:
        """The next hop does not want a message."""
