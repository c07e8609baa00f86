"""Optional callables that take, send and remove several messages in one step.

Without them every packet that arrives, and every message that leaves, is handled alone, with the
same outcome.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.binary.connection.peer_connection import MessageSender, PeerConnection
from rpcqm.binary.sequence import Stamp
from rpcqm.binary.session_host import TakeTogether
from rpcqm.codec.names.format_name import FormatName
from rpcqm.qm.protocol_records import Changes

NewRecords = dict[bytes, bytes | None]
"""Changes of records that are being gathered."""

TakesTogether = Callable[[PeerConnection], TakeTogether]
"""Gives the callable that takes several packets of a connection in one step."""


class Locked(Protocol):
    """A message of an outgoing queue that is locked to be sent."""

    @property
    def lookup_identifier(self) -> int: ...


@dataclass(slots=True)
class StampedWindow:
    """Messages of one window that leave once their stamps are durable, in the order of these.

    `together` were locked in one step, in front of those that were locked `alone`.
    """

    together: list[Locked] = field(default_factory=list)
    alone: list[Message] = field(default_factory=list)
    changes: NewRecords = field(default_factory=dict)
    """The changes of records that make their stamps durable."""

    def __len__(self) -> int:
        return len(self.together) + len(self.alone)

    def __iter__(self) -> Iterator[Locked]:
        yield from self.together
        yield from self.alone


class SendingQueue(MessageSender, Protocol):
    """An outgoing queue whose messages are being sent."""

    queue: OutgoingQueue
    name: FormatName
    in_flight: dict[int, None]

    def number(self, key: int, changes: NewRecords) -> None:
        """Give a message the next number, with the changes that keep it."""

    def stamp_in_flight(self, key: int) -> Stamp | None:
        """The stamp of a message; None if it is not sent any more."""

    def stamped_packet(self, message: Message, connection: PeerConnection) -> bytes | None:
        """The packet of a message with its stamp; None if it is not sent after all."""

    def changes_without(self, key: int) -> Changes:
        """The changes of records that delete a message's number."""


class SendsTogether(Protocol):
    """Sends and removes several messages in one step; False where each has to be handled alone."""

    def fill(
        self, sending: SendingQueue, connection: PeerConnection, window: StampedWindow, room: int
    ) -> bool:
        """Send the next messages, or lock and number them, up to `room` together with others."""

    def stamped(
        self, sending: SendingQueue, connection: PeerConnection, locked: Sequence[Locked]
    ) -> list[bytes]:
        """The packets of messages that were locked together, once their stamps are durable."""

    def delivered(self, queue: OutgoingQueue, keys: Sequence[int]) -> bool:
        """Remove messages that the next hop has."""

    def arrived_in_order(
        self, sending: SendingQueue, keys: Sequence[int], changes: Changes
    ) -> bool:
        """Remove messages that have arrived in order, and make `changes` of their records."""
