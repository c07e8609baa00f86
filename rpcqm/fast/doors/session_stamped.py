"""Transactional messages of our own that get their stamps together ([MS-MQQB] 3.1.7.1.3).

They are recognised by the shapes of their packets (`outgoing_runs`), locked in one step, and leave
once their stamps are durable. All others go the careful way.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.connection.together import Locked, SendingQueue
from rpcqm.binary.sequence import Stamp
from rpcqm.codec.names.format_name import FormatName
from rpcqm.fast.doors.session_outgoing import LeavingObserver
from rpcqm.fast.doors.session_shapes import Shape
from rpcqm.qm.engine import QueueManagerEngine

_FLAGS_SIZE = 4
"""The octets of a TransactionHeader before the stamp."""
_STAMP = struct.Struct("<QII")


class Recognised(NamedTuple):
    """A message that leaves as it is stored, but for its stamp.

    `identifier` are the octets of its identifier, `latest` the time until which it may leave
    (seconds since 1970).
    """

    lookup_identifier: int
    identifier: bytes
    packet: bytes
    shape: Shape
    latest: int

    def stamped(self, stamp: Stamp) -> bytes:
        """Its packet with a stamp."""
        at = self.shape.form.transaction + _FLAGS_SIZE
        octets = _STAMP.pack(stamp.sequence.value, stamp.number, stamp.previous)
        return b"".join((self.packet[:at], octets, self.packet[at + _STAMP.size :]))


class Runs(Protocol):
    """The parts of `OutgoingRuns` that stamping uses."""

    shadow: LeavingObserver | None

    def leaves_unchanged(self, name: FormatName, packet: bytes) -> bool:
        """Whether messages like one leave as they are stored."""

    def count_sent(self, count: int) -> None:
        """Count messages that were sent together."""


class LeavingStamped:
    """The messages that leave over one connection once their stamps are durable."""

    def __init__(
        self,
        runs: Runs,
        engine: QueueManagerEngine,
        sending: SendingQueue,
        connection: PeerConnection,
    ) -> None:
        self._runs, self._engine = runs, engine
        self._sending, self._connection = sending, connection
        self._now = engine.clock.now() // 1000
        self._asked: dict[Shape, bool] = {}
        self._told: list[Recognised] = []

    def packets(self, locked: Sequence[Locked]) -> list[bytes]:
        """The packets to send, in the order of the numbers, without messages that were removed."""
        packets = [packet for each in locked if (packet := self._packet(each)) is not None]
        self._tell()
        return packets

    def _packet(self, message: Locked) -> bytes | None:
        assert isinstance(message, Recognised)
        stamp = self._sending.stamp_in_flight(message.lookup_identifier)
        if stamp is None:
            return None
        if self._is_as_it_was(message):
            return self._recognised(message, stamp)
        found = self._engine.positions.message_at(self._sending.queue, message.lookup_identifier)
        return self._sending.stamped_packet(found, self._connection)

    def _is_as_it_was(self, message: Recognised) -> bool:
        """Whether a message is in time, and those of its shape still leave as they are stored."""
        shape = message.shape
        if message.latest < self._now:
            return False
        if shape not in self._asked:
            name = self._sending.name
            self._asked[shape] = self._runs.leaves_unchanged(name, message.packet)
        return self._asked[shape]

    def _recognised(self, message: Recognised, stamp: Stamp) -> bytes:
        packet = message.stamped(stamp)
        if self._runs.shadow is not None:
            key = message.lookup_identifier
            self._runs.shadow.compare_stamped(self._sending, key, stamp, packet)
        self._told.append(message)
        return packet

    def _tell(self) -> None:
        """Report the recognised messages as sent."""
        if self._told:
            keys, identifiers, packets, *_ = zip(*self._told, strict=True)
            trace, address = self._engine.message_trace, self._connection.address
            trace.sent_together(self._sending.queue, keys, identifiers, packets, address)
            self._runs.count_sent(len(keys))
