"""The packets of one connection that carries the binary protocol of [MS-MQQB]."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.call import MSMQ_BINARY, Conversation
from rpcqm.capture.file.problems import Problems
from rpcqm.codec.packet.acknowledgement import PacketKind, identify_message
from rpcqm.codec.packet.base import BASE_HEADER_SIZE, SIGNATURE_OCTETS, VERSION, frame_size
from rpcqm.codec.packet.fields import INTERNAL, PACKET_TYPE, SIGNATURE
from rpcqm.codec.packet.internal import PacketType, decode_internal_packet
from rpcqm.codec.packet.message import PacketMessage

PORT = 1801
_INTERNAL_AT, _INTERNAL = INTERNAL
_TYPE_AT, _TYPE = PACKET_TYPE
_SIGNATURE_AT = SIGNATURE.start

_NAMES = {
    PacketType.SESSION_ACK: "SessionAck",
    PacketType.ESTABLISH_CONNECTION: "EstablishConnection",
    PacketType.CONNECTION_PARAMETERS: "ConnectionParameters",
}


def begins_packet(data: bytes, at: int = 0) -> bool:
    """Whether a packet plausibly begins at `at`."""
    return data.startswith(SIGNATURE_OCTETS, at + _SIGNATURE_AT) and data[at] == VERSION


@dataclass(slots=True, eq=False, repr=False)
class BinaryPacket:
    """One packet: a message or one of a session's own; the same face as a Call's."""

    conversation: Conversation
    octets: bytes
    from_client: bool
    time: int
    offset: int
    note: str = field(default="", init=False)
    _decoded: Any = field(default=None, init=False)

    protocol = MSMQ_BINARY
    interface_name = MSMQ_BINARY
    opnum = None
    sealed = False
    duration_ms = None
    status = None
    status_name = None

    @property
    def request_size(self) -> int:
        return len(self.octets) if self.from_client else 0

    @property
    def response_size(self) -> int:
        return 0 if self.from_client else len(self.octets)

    @property
    def is_message(self) -> bool:
        return not self.octets[_INTERNAL_AT] & _INTERNAL

    @property
    def name(self) -> str:
        """UserMessage, OrderAck and the like by the protocol's own names."""
        if self.is_message:
            return str(self._message_kind().value)
        kind = self.octets[_TYPE_AT] & _TYPE if len(self.octets) > _TYPE_AT else 0
        return _NAMES[PacketType(kind)] if kind in _NAMES else f"InternalPacket {kind}"

    def _message_kind(self) -> PacketKind:
        message = self.decoded_request()
        # A damaged packet counts as an ordinary message.
        with suppress(DecodeError):
            if isinstance(message, PacketMessage):
                return identify_message(message)
        return PacketKind.USER_MESSAGE

    def decoded_request(self) -> Any:
        """A PacketMessage or an internal packet; None if it cannot be read, and `note` says why."""
        if self._decoded is None:
            try:
                if self.is_message:
                    self._decoded = PacketMessage(self.octets)
                else:
                    self._decoded = decode_internal_packet(self.octets)
            except DecodeError as error:
                self.note = f"the packet cannot be read: {error}"
        return self._decoded

    def decoded_response(self) -> None:
        """Packets have no answer of their own."""


class BinaryConversation:
    """Both sides of one connection."""

    def __init__(
        self,
        conversation: Conversation,
        problems: Problems,
        emit: Callable[[BinaryPacket], None],
    ) -> None:
        self.conversation = conversation
        self.from_client = PacketStream(self, True, problems, emit)
        self.from_server = PacketStream(self, False, problems, emit)


class PacketStream:
    """Cuts what one side sends into packets."""

    def __init__(
        self,
        owner: BinaryConversation,
        from_client: bool,
        problems: Problems,
        emit: Callable[[BinaryPacket], None],
    ) -> None:
        self._owner = owner
        self._from_client = from_client
        self._problems = problems
        self._emit = emit
        self._buffer = bytearray()
        self._need = BASE_HEADER_SIZE
        self._searching = False

    def take(self, data: bytes, time: int, offset: int) -> None:
        """Take the next octets."""
        self._buffer += data
        if len(self._buffer) < self._need:
            return
        at = self._search(0) if self._searching else 0
        while len(self._buffer) - at >= BASE_HEADER_SIZE:
            try:
                size = frame_size(self._buffer[at : at + BASE_HEADER_SIZE])
            except DecodeError as error:
                self._problems.add("packet", offset, f"octets that are no packet: {error}")
                at = self._search(at + 1)
                continue
            if len(self._buffer) - at < size:
                self._need = size
                break
            packet = bytes(self._buffer[at : at + size])
            owner = self._owner.conversation
            self._emit(BinaryPacket(owner, packet, self._from_client, time, offset))
            at += size
        else:
            self._need = BASE_HEADER_SIZE
        del self._buffer[:at]

    def _search(self, start: int) -> int:
        """The offset of the next packet; the end of the octets without one."""
        found = self._buffer.find(SIGNATURE_OCTETS, start + _SIGNATURE_AT)
        self._searching = found < 0
        if found >= 0:
            return found - _SIGNATURE_AT
        return max(len(self._buffer) - SIGNATURE.stop + 1, start, 0)

    def gap(self, count: int, time: int, offset: int) -> None:
        """Octets were not captured."""
        side = "client" if self._from_client else "server"
        self._problems.add("gap", offset, f"{count} octets of the {side} were not captured")
        self._buffer.clear()
        self._need, self._searching = BASE_HEADER_SIZE, True
