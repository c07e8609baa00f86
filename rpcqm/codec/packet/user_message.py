"""UserMessage: a whole message packet, of which each part is decoded when it is asked for."""

import functools
from typing import NamedTuple

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import Buffer, align4, decode_text, require
from rpcqm.codec.packet.base import (
    BASE_HEADER_SIZE,
    LARGEST_KEPT_PACKET,
    SESSION_HEADER_SIZE,
    SessionHeader,
    frame_size,
)
from rpcqm.codec.packet.fields import (
    ADMINISTRATION_TYPE,
    BASE_FLAGS,
    CLASS,
    DEBUG_HEADER,
    DESTINATION_TYPE,
    INTERNAL,
    NAMES_OFFSET,
    PACKET_SIZE,
    QUEUE_MANAGER_ADDRESS,
    QUEUE_TYPE,
    RESPONSE_TYPE,
    SESSION_HEADER,
    USER_FLAGS,
)
from rpcqm.codec.packet.multi_queue import MultiQueueFormatHeader, locate_multi_queue
from rpcqm.codec.packet.properties import (
    DebugHeader,
    locate_properties,
    validate_properties,
)
from rpcqm.codec.packet.security import ProviderInfo, SecurityHeader, security_header_end
from rpcqm.codec.packet.soap import SoapHeader, locate_soap
from rpcqm.codec.packet.srmp import (
    CompoundMessageHeader,
    SRMPEnvelopeHeader,
    locate_attached_body,
    locate_compound,
    locate_envelope,
)
from rpcqm.codec.packet.transaction import (
    TRANSACTION_HEADER_SIZE,
    TransactionFlags,
    TransactionHeader,
)
from rpcqm.codec.packet.user import (
    UserFlags,
    UserHeader,
    decode_queue_name,
    queue_name_end,
    validate_flags,
)

ABSENT = -1
"""Offset of a header that the packet does not have."""

_TH, _SH, _CQ = UserFlags.TH.bits, UserFlags.SH.bits, UserFlags.CQ.bits
_MQ, _AH, _HH = UserFlags.MQ.bits, UserFlags.AH.bits, UserFlags.HH.bits
_TRAILERS = _MQ | _AH | _HH
_NAMES_OF_ANSWERS = UserFlags.AQ.bits | UserFlags.RQ.bits
_INTERNAL_AT, _INTERNAL = INTERNAL
_SESSION_HEADER_AT, _SESSION_HEADER = SESSION_HEADER
_DEBUG_HEADER_AT, _DEBUG_HEADER = DEBUG_HEADER
_SRMP_AT, _SRMP = UserFlags.AH.octet(USER_FLAGS)
_CONNECTOR = TransactionFlags.CG.bits
_BASE_FLAGS_AT, _BASE_FLAGS_HIGH = range(BASE_FLAGS.start, BASE_FLAGS.stop)
_CLASS_AT, _CLASS_HIGH = range(CLASS.start, CLASS.stop)
_MOST_REMEMBERED = 128
"""Octets of a security header that is validated once: without a signature none is longer."""


class PacketLayout(NamedTuple):
    """Where the parts of a packet start; `end` is behind the last header but SessionHeader."""

    admin_queue: int
    response_queue: int
    connector_type: int
    transaction: int
    security: int
    properties: int
    label: int
    extension: int
    body: int
    body_size: int
    properties_end: int
    debug: int
    envelope: int
    compound: int
    soap: int
    multi_queue: int
    end: int


class UserMessage:
    """A UserMessage packet ([MS-MQMQ] 2.2.20, [MS-MQRR] 2.2.5.1).

    Nothing is decoded before it is asked for. Every access raises DecodeError, and nothing else,
    where the bytes are not a packet; `validate` checks all of it at once.
    """

    __slots__ = ("_layout", "buffer")

    def __init__(self, buffer: Buffer) -> None:
        require(buffer, 0, NAMES_OFFSET, "packet")
        self.buffer = buffer
        self._layout: PacketLayout | None = None

    @property
    def layout(self) -> PacketLayout:
        """Where everything is, found once."""
        layout = self._layout
        if layout is None:
            layout = self._layout = _locate(self.buffer)
        return layout

    # Fields with fixed places.

    @property
    def base_flags(self) -> int:
        """BaseHeader.Flags."""
        return self.buffer[_BASE_FLAGS_AT] | self.buffer[_BASE_FLAGS_HIGH] << 8

    @property
    def packet_size(self) -> int:
        """BaseHeader.PacketSize."""
        return int.from_bytes(self.buffer[PACKET_SIZE], "little")

    @property
    def user_flags(self) -> int:
        """UserHeader.Flags."""
        return int.from_bytes(self.buffer[USER_FLAGS], "little")

    @property
    def has_session_header(self) -> bool:
        """Whether a SessionHeader follows the packet's own bytes."""
        return bool(self.buffer[_SESSION_HEADER_AT] & _SESSION_HEADER)

    @property
    def has_transaction_header(self) -> bool:
        return bool(self.user_flags & _TH)

    @property
    def size(self) -> int:
        """All bytes of the packet, its SessionHeader included (G18)."""
        return self.packet_size + (SESSION_HEADER_SIZE if self.has_session_header else 0)

    @property
    def is_srmp(self) -> bool:
        """Whether the message came by HTTP ([MS-MQRR] 2.2.5.1.2)."""
        return is_srmp(self.buffer)

    # Headers, decoded whole.

    @property
    def user_header(self) -> UserHeader:
        return UserHeader.decode(self.buffer, BASE_HEADER_SIZE)[0]

    @property
    def transaction_header(self) -> TransactionHeader | None:
        offset = self.layout.transaction
        return TransactionHeader.decode(self.buffer, offset)[0] if offset >= 0 else None

    @property
    def security_header(self) -> SecurityHeader | None:
        offset = self.layout.security
        return SecurityHeader.decode(self.buffer, offset)[0] if offset >= 0 else None

    @property
    def debug_header(self) -> DebugHeader | None:
        offset = self.layout.debug
        return DebugHeader.decode(self.buffer, offset)[0] if offset >= 0 else None

    @property
    def srmp_envelope_header(self) -> SRMPEnvelopeHeader | None:
        offset = self.layout.envelope
        return SRMPEnvelopeHeader.decode(self.buffer, offset)[0] if offset >= 0 else None

    @property
    def compound_message_header(self) -> CompoundMessageHeader | None:
        offset = self.layout.compound
        return CompoundMessageHeader.decode(self.buffer, offset)[0] if offset >= 0 else None

    @property
    def soap(self) -> SoapHeader | None:
        offset = self.layout.soap
        return SoapHeader.decode(self.buffer, offset)[0] if offset >= 0 else None

    @property
    def multi_queue_format_header(self) -> MultiQueueFormatHeader | None:
        offset = self.layout.multi_queue
        return MultiQueueFormatHeader.decode(self.buffer, offset)[0] if offset >= 0 else None

    @property
    def session_header(self) -> SessionHeader | None:
        if not self.has_session_header:
            return None
        return SessionHeader.decode(self.buffer, self.packet_size)

    # Offsets that a reader of parts of the packet needs ([MS-MQRR] 3.1.4.7, ppPacketSections).

    @property
    def body_offset(self) -> int:
        """Where the body starts: the size of the headers before it."""
        return self.layout.body

    @property
    def body_size(self) -> int:
        """Bytes of the body, its padding not counted."""
        return self.body_span[1]

    @property
    def trailer_offset(self) -> int:
        """Where the headers behind the body start, or the packet ends."""
        return self.layout.properties_end

    @property
    def srmp_end(self) -> int:
        """Where the headers start that follow those of a message that came by HTTP."""
        return align4(locate_compound(self.buffer, self.layout.compound)[1])

    @property
    def body(self) -> bytes:
        """MessagePropertiesHeader.MessageBody, or what the HTTP request has attached (G210)."""
        start, size = self.body_span
        return bytes(self.buffer[start : start + size])

    @property
    def body_span(self) -> tuple[int, int]:
        """Where the body starts, and its size."""
        layout = self.layout
        if layout.body_size or layout.compound < 0:
            return layout.body, layout.body_size
        return locate_attached_body(self.buffer, layout.compound)

    @property
    def label(self) -> str:
        """MessagePropertiesHeader.Label."""
        layout = self.layout
        if layout.extension == layout.label:
            return ""
        return decode_text(self.buffer[layout.label : layout.extension], "label", layout.label)

    def validate(self) -> None:
        """Refuse, with a DecodeError, a packet that breaks a rule of its sections.

        Checked are sizes, bounds, flags and identifiers, and that the buffer holds the packet
        and nothing else; bits that a receiver has to ignore are ignored.
        """
        size = frame_size(self.buffer, LARGEST_KEPT_PACKET)
        if self.buffer[_INTERNAL_AT] & _INTERNAL:
            raise DecodeError("internal packet instead of a message", _INTERNAL_AT)
        self._validate_sizes(size)
        self._validate_user_header()
        validate_properties(self.buffer, self.layout.properties)
        if self.layout.security >= 0:
            self._validate_security()
        if self.layout.end > self.layout.properties_end:
            self._validate_trailers()

    def _validate_sizes(self, size: int) -> None:
        end = self.layout.end
        if not end <= self.packet_size <= align4(end):
            raise DecodeError(f"PacketSize {self.packet_size} for {end} bytes", PACKET_SIZE.start)
        if len(self.buffer) != size:
            raise DecodeError(f"packet of {size} in {len(self.buffer)} bytes", PACKET_SIZE.start)

    def _validate_user_header(self) -> None:
        """Names that are there are read; where the others end the layout has found."""
        flags = self.user_flags
        _validate_flags(flags)
        destination = flags >> DESTINATION_TYPE & QUEUE_TYPE
        if destination in (3, 5) and not any(self.buffer[QUEUE_MANAGER_ADDRESS]):
            raise DecodeError("destination without its queue manager", QUEUE_MANAGER_ADDRESS.start)
        decode_queue_name(self.buffer, NAMES_OFFSET, destination)
        if flags & _NAMES_OF_ANSWERS:
            administration = flags >> ADMINISTRATION_TYPE & QUEUE_TYPE
            decode_queue_name(self.buffer, self.layout.admin_queue, administration)
            response = flags >> RESPONSE_TYPE & QUEUE_TYPE
            decode_queue_name(self.buffer, self.layout.response_queue, response)

    def _validate_security(self) -> None:
        octets = bytes(self.buffer[self.layout.security : self.layout.properties])
        small = len(octets) <= _MOST_REMEMBERED
        (_validate_security if small else _validate_security.__wrapped__)(octets)

    def _validate_trailers(self) -> None:
        readers = {
            self.layout.envelope: SRMPEnvelopeHeader.decode,
            self.layout.compound: CompoundMessageHeader.decode,
            self.layout.soap: SoapHeader.decode,
            self.layout.multi_queue: MultiQueueFormatHeader.decode,
        }
        for offset, read in readers.items():
            if offset >= 0:
                read(self.buffer, offset)


@functools.lru_cache(maxsize=256)  # most messages have come from few senders
def _validate_security(octets: bytes) -> None:
    header = SecurityHeader.decode(octets)[0]
    header.validate()
    if header.provider_info:
        ProviderInfo.decode(header.provider_info)


@functools.lru_cache(maxsize=256)
def _validate_flags(flags: int) -> None:
    validate_flags(UserFlags(flags))


def properties_start(buffer: Buffer) -> int:
    """Where MessagePropertiesHeader starts, without the rest of the layout.

    Raises DecodeError where the bytes are not a packet.
    """
    return _locate_headers(buffer, int.from_bytes(buffer[USER_FLAGS], "little"))[-1]


def locate_body(buffer: Buffer) -> tuple[int, int]:
    """Where the body of a packet starts, and its size, without the rest of the layout.

    Raises DecodeError where the bytes are not a packet.
    """
    return locate_properties(buffer, properties_start(buffer))[2:4]


def is_srmp(buffer: Buffer) -> bool:
    """Whether a message came by HTTP ([MS-MQRR] 2.2.5.1.2)."""
    return bool(buffer[_SRMP_AT] & _SRMP)


def class_of(buffer: Buffer) -> int:
    """The number of a message's class, found without the rest of the layout.

    Raises DecodeError where the bytes are not a packet.
    """
    properties = properties_start(buffer)
    require(buffer, properties, CLASS.stop, "MessagePropertiesHeader")
    return buffer[properties + _CLASS_AT] | buffer[properties + _CLASS_HIGH] << 8


def _locate_headers(buffer: Buffer, flags: int) -> tuple[int, int, int, int, int, int]:
    """Where names, ConnectorType, transaction, security and properties start, before the body."""
    destination = flags >> DESTINATION_TYPE & QUEUE_TYPE
    admin = response = connector = queue_name_end(buffer, NAMES_OFFSET, destination)
    if flags & _NAMES_OF_ANSWERS:
        response = queue_name_end(buffer, admin, flags >> ADMINISTRATION_TYPE & QUEUE_TYPE)
        connector = queue_name_end(buffer, response, flags >> RESPONSE_TYPE & QUEUE_TYPE)
    position = connector + 16 if flags & _CQ else connector
    transaction = security = ABSENT
    if flags & _TH:
        transaction = position
        position = _transaction_end(buffer, position)
    if flags & _SH:
        security = position
        position = security_header_end(buffer, position)
    return admin, response, connector, transaction, security, position


def _locate(buffer: Buffer) -> PacketLayout:
    flags = int.from_bytes(buffer[USER_FLAGS], "little")
    admin, response, connector, transaction, security, properties = _locate_headers(buffer, flags)
    label, extension, body, body_size, end = locate_properties(buffer, properties)
    return PacketLayout(
        admin,
        response,
        connector if flags & _CQ else ABSENT,
        transaction,
        security,
        properties,
        label,
        extension,
        body,
        body_size,
        end,
        *_locate_trailers(buffer, end, flags),
    )


def _transaction_end(buffer: Buffer, offset: int) -> int:
    require(buffer, offset, TRANSACTION_HEADER_SIZE, "TransactionHeader")
    connector = buffer[offset] & _CONNECTOR
    return offset + TRANSACTION_HEADER_SIZE + (16 if connector else 0)


def _locate_trailers(
    buffer: Buffer, position: int, flags: int
) -> tuple[int, int, int, int, int, int]:
    if not (buffer[_DEBUG_HEADER_AT] & _DEBUG_HEADER or flags & _TRAILERS):
        return ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, position
    debug = envelope = compound = soap = multi_queue = ABSENT
    if buffer[_DEBUG_HEADER_AT] & _DEBUG_HEADER:
        debug = position
        position = DebugHeader.decode(buffer, position)[1]
    if flags & _AH:
        envelope = position
        compound = align4(locate_envelope(buffer, envelope)[1])
        position = align4(locate_compound(buffer, compound)[1])
    if flags & _HH:
        soap = position
        position = locate_soap(buffer, position)[1]
    if flags & _MQ:
        multi_queue = align4(position)
        position = locate_multi_queue(buffer, multi_queue)[1]
    return debug, envelope, compound, soap, multi_queue, position
