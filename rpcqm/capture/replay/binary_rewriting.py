"""Captured messages of the binary protocol as they are sent again, to another server and later."""

from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.binary import BinaryPacket
from rpcqm.capture.conversation.binary_progress import kind_of
from rpcqm.capture.replay.mapping import QUEUE_MANAGER, Mapping
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.fields import (
    DESTINATION_TYPE,
    NAMES_OFFSET,
    PACKET_SIZE,
    QUEUE_MANAGER_ADDRESS,
    QUEUE_TYPE,
    SENT_TIME,
    SOURCE_QUEUE_MANAGER,
    TIME_TO_REACH_QUEUE,
)
from rpcqm.codec.packet.internal import FinalAckBody
from rpcqm.codec.packet.patch import set_time_to_reach_queue, without_session_header
from rpcqm.codec.packet.transaction import TransactionHeaderStart
from rpcqm.codec.packet.user import QueueFormatType, decode_queue_name, encode_direct_name
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.types.mqvalues import INFINITE

SEQUENCE = "transaction sequence"

_ACKNOWLEDGEMENTS = (PacketKind.ORDER_ACK, PacketKind.FINAL_ACK)


class Rewriter:
    """Makes the messages of one client those of a client that is there now."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._sequences: set[bytes] = set()

    def message(self, captured: BinaryPacket, seconds_later: int) -> bytes:
        """The packet to send; DecodeError for one that cannot be read.

        Names and identifiers are the live ones, times are as much later; of each sequence the
        first message that was captured is the first there is.
        """
        packet = bytearray(without_session_header(captured.octets))
        layout = UserMessage(packet).layout
        self._identify(packet, SOURCE_QUEUE_MANAGER)
        self._identify(packet, QUEUE_MANAGER_ADDRESS)
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
        due = int.from_bytes(packet[TIME_TO_REACH_QUEUE], "little")
        if due != INFINITE:
            set_time_to_reach_queue(packet, min(max(due + seconds, 0), INFINITE))
        sent = int.from_bytes(packet[SENT_TIME], "little")
        packet[SENT_TIME] = min(max(sent + seconds, 0), INFINITE).to_bytes(4, "little")

    def _begin_sequence(self, packet: bytearray, header: int) -> None:
        sequence = bytes(packet[TransactionHeaderStart.place("tx_sequence_id", header)])
        if sequence not in self._sequences:
            self._sequences.add(sequence)
            previous = TransactionHeaderStart.place("previous_tx_sequence_number", header)
            packet[previous] = bytes(previous.stop - previous.start)

    def _acknowledge(self, packet: bytearray, body: int) -> None:
        """Put the live sequence and the live sender into an acknowledgement."""
        place = FinalAckBody.place("tx_sequence_id", body)
        live = self._mapping.live(SEQUENCE, int.from_bytes(packet[place], "little"))
        packet[place] = int(live).to_bytes(8, "little")
        self._identify(packet, FinalAckBody.place("source_guid", body))

    def _readdressed(self, packet: bytearray, end: int) -> bytes:
        kind = UserMessage(packet).user_flags >> DESTINATION_TYPE & QUEUE_TYPE
        if kind == QueueFormatType.DIRECT:
            name, _ = decode_queue_name(packet, NAMES_OFFSET, kind)
            if not isinstance(name, str):
                raise DecodeError("a direct name that is none", NAMES_OFFSET)
            packet[NAMES_OFFSET:end] = encode_direct_name(self._mapping.direct_name(name))
            packet[PACKET_SIZE] = len(packet).to_bytes(4, "little")
        return bytes(packet)
