"""Captured messages of the binary protocol as they are sent again, to another server and later."""

from uuid import UUID, uuid4

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.binary import BinaryPacket
from rpcqm.capture.conversation.binary_progress import kind_of
from rpcqm.capture.replay.mapping import Mapping
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.base import INFINITE
from rpcqm.codec.packet.patch import set_time_to_reach_queue, without_session_header
from rpcqm.codec.packet.user import QueueFormatType, decode_queue_name, encode_direct_name
from rpcqm.codec.packet.user_message import UserMessage

QUEUE_MANAGER = "queue manager"
SEQUENCE = "transaction sequence"

_SIZE, _TIME_TO_REACH_QUEUE = slice(8, 12), slice(12, 16)
_SOURCE, _ADDRESS, _SENT_TIME = slice(16, 32), slice(32, 48), slice(52, 56)
_NAMES = 64
_PREVIOUS_NUMBER = 16
_ACKNOWLEDGEMENTS = (PacketKind.ORDER_ACK, PacketKind.FINAL_ACK)
_ACKNOWLEDGED_SOURCE = slice(16, 32)


class Rewriter:
    """Makes the messages of one client those of a client that is there now."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._sequences: set[bytes] = set()

    def client(self, captured: UUID) -> UUID:
        """Who a captured queue manager is now: somebody new, so that nothing is a duplicate."""
        live = self._mapping.live(QUEUE_MANAGER, captured)
        if live == captured:
            live = uuid4()
            self._mapping.learn(QUEUE_MANAGER, captured, live)
        return UUID(str(live))

    def message(self, captured: BinaryPacket, seconds_later: int) -> bytes:
        """The packet to send; DecodeError for one that cannot be read.

        Names and identifiers are the live ones, times are as much later; of each sequence the
        first message that was captured is the first there is.
        """
        packet = bytearray(without_session_header(captured.octets))
        layout = UserMessage(packet).layout
        self._identify(packet, _SOURCE)
        self._identify(packet, _ADDRESS)
        self._postpone(packet, seconds_later)
        if layout.transaction >= 0:
            self._begin_sequence(packet, layout.transaction)
        if kind_of(captured) in _ACKNOWLEDGEMENTS:
            self._acknowledge(packet, layout.body)
        return self._readdressed(packet, layout.admin_queue)

    def _identify(self, packet: bytearray, place: slice) -> None:
        known = UUID(bytes_le=bytes(packet[place]))
        if known != NULL_GUID:
            packet[place] = self._mapping.live(QUEUE_MANAGER, known).bytes_le

    def _postpone(self, packet: bytearray, seconds: int) -> None:
        due = int.from_bytes(packet[_TIME_TO_REACH_QUEUE], "little")
        if due != INFINITE:
            set_time_to_reach_queue(packet, min(max(due + seconds, 0), INFINITE))
        sent = int.from_bytes(packet[_SENT_TIME], "little")
        packet[_SENT_TIME] = min(max(sent + seconds, 0), INFINITE).to_bytes(4, "little")

    def _begin_sequence(self, packet: bytearray, header: int) -> None:
        sequence = bytes(packet[header + 4 : header + 12])
        if sequence not in self._sequences:
            self._sequences.add(sequence)
            previous = header + _PREVIOUS_NUMBER
            packet[previous : previous + 4] = bytes(4)

    def _acknowledge(self, packet: bytearray, body: int) -> None:
        """An acknowledgement names the server's own sequence, and who sent the message."""
        sequence = int.from_bytes(packet[body : body + 8], "little")
        live = self._mapping.live(SEQUENCE, sequence)
        packet[body : body + 8] = int(live).to_bytes(8, "little")
        if packet[body:][_ACKNOWLEDGED_SOURCE].strip(b"\0"):
            self._identify(packet, slice(body + 16, body + 32))

    def _readdressed(self, packet: bytearray, end: int) -> bytes:
        kind = packet[61] >> 2 & 7
        if kind == QueueFormatType.DIRECT:
            name, _ = decode_queue_name(packet, _NAMES, kind)
            if not isinstance(name, str):
                raise DecodeError("a direct name that is none", _NAMES)
            packet[_NAMES:end] = encode_direct_name(self._mapping.direct_name(name))
            packet[_SIZE] = len(packet).to_bytes(4, "little")
        return bytes(packet)
