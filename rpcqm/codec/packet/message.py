"""Attributes of messages, each read from its packet when it is asked for.

`attributes` has the table of attributes and packet fields, `builder` writes packets. This module
is the one to import from.
"""

from dataclasses import fields
from functools import lru_cache
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import NULL_GUID, Buffer
from rpcqm.codec.names.format_name import FormatName, direct_from_wire, from_user_header
from rpcqm.codec.packet.attributes import PACKET_FIELDS, MessageAttributes
from rpcqm.codec.packet.builder import build_user_message
from rpcqm.codec.packet.enums import (
    EVERY_ACKNOWLEDGEMENT,
    AcknowledgementsRequested,
    DeliveryGuarantee,
    EncryptionAlgorithm,
    HashAlgorithm,
    MessageAuthenticationLevel,
    MessageClass,
    PrivacyLevel,
    SenderIdentifierType,
)
from rpcqm.codec.packet.fields import (
    ACKNOWLEDGEMENTS,
    ADMINISTRATION_TYPE,
    APPLICATION_TAG,
    BODY_TYPE,
    CLASS,
    CORRELATION_ID,
    DESTINATION_TYPE,
    ENCRYPTION_ALGORITHM,
    HASH_ALGORITHM,
    MESSAGE_ID,
    NAMES_OFFSET,
    NEGATIVE_JOURNALING,
    POSITIVE_JOURNALING,
    PREVIOUS_TX_SEQUENCE_NUMBER,
    PRIORITY,
    PRIVACY_LEVEL,
    QUEUE_MANAGER_ADDRESS,
    QUEUE_TYPE,
    RESPONSE_TYPE,
    SENT_TIME,
    SOURCE_QUEUE_MANAGER,
    TIME_TO_BE_RECEIVED,
    TIME_TO_REACH_QUEUE,
    TRACING,
    TX_SEQUENCE_ID,
    TX_SEQUENCE_NUMBER,
)
from rpcqm.codec.packet.security import ProviderInfo, SecurityFlags, locate_security_data
from rpcqm.codec.packet.transaction import TRANSACTION_HEADER_SIZE, TransactionFlags
from rpcqm.codec.packet.types import NULL_IDENTIFIER, MessageIdentifier, TxSequenceID
from rpcqm.codec.packet.user import QueueFormatType, UserFlags, decode_queue_name
from rpcqm.codec.packet.user_message import UserMessage

__all__ = [
    "PACKET_FIELDS",
    "MessageAttributes",
    "MessageIdentifier",
    "PacketMessage",
    "build_user_message",
    "read_attributes",
]

_SOURCE_AT, _ADDRESS_AT = SOURCE_QUEUE_MANAGER.start, QUEUE_MANAGER_ADDRESS.start
_PRIORITY_AT, _PRIORITY = PRIORITY
_TRACING_AT, _TRACING = TRACING
_NEGATIVE_AT, _NEGATIVE = NEGATIVE_JOURNALING
_POSITIVE_AT, _POSITIVE = POSITIVE_JOURNALING
_DELIVERY_MODE = UserFlags.DM.bits
_ID, _ID_MASK = TransactionFlags.ID.offset, TransactionFlags.ID.mask
_CONNECTOR, _FINAL_ACK = TransactionFlags.CG.bits, TransactionFlags.FA.bits
_FIRST, _LAST = TransactionFlags.FM.bits, TransactionFlags.LM.bits
_SEQUENCE, _SEQUENCE_NUMBER = TX_SEQUENCE_ID.start, TX_SEQUENCE_NUMBER.start
_PREVIOUS_NUMBER = PREVIOUS_TX_SEQUENCE_NUMBER.start
_ACKNOWLEDGEMENTS, _CLASS, _CORRELATION = ACKNOWLEDGEMENTS.start, CLASS.start, CORRELATION_ID.start
_BODY_TYPE, _APPLICATION_TAG = BODY_TYPE.start, APPLICATION_TAG.start
_PRIVACY_LEVEL, _HASH_ALGORITHM = PRIVACY_LEVEL.start, HASH_ALGORITHM.start
_ENCRYPTION_ALGORITHM = ENCRYPTION_ALGORITHM.start
_NO_GUID, _NO_CORRELATION = NULL_GUID.bytes, NULL_IDENTIFIER.encode()
_QUEUE_TYPES = tuple(map(QueueFormatType, range(QUEUE_TYPE + 1)))
_REQUESTS = tuple(map(AcknowledgementsRequested, range(EVERY_ACKNOWLEDGEMENT + 1)))
_SENDER_TYPES = tuple(SenderIdentifierType)
_CLASSES = {int(value): value for value in MessageClass}
_PRIVACY_LEVELS = {int(value): value for value in PrivacyLevel}
_HASH_ALGORITHMS = {int(value): value for value in HashAlgorithm}
_ENCRYPTION_ALGORITHMS = {int(value): value for value in EncryptionAlgorithm}
_AUTHENTICATION_LEVELS = {int(value): value for value in MessageAuthenticationLevel}


@lru_cache(maxsize=256)
def _guid_of(octets: bytes) -> UUID:
    """A GUID of a packet: many packets have those of the same queue managers."""
    return UUID(bytes_le=octets)


class PacketMessage(UserMessage):
    """The attributes of a message, each read from its packet when it is asked for.

    An attribute whose header is not there has its default ([MS-MQDMPR] 3.1.7.1.31). Every
    access raises DecodeError, and nothing else, where the bytes are not a packet.
    """

    __slots__ = ()

    def _number(self, offset: int, size: int = 4) -> int:
        return int.from_bytes(self.buffer[offset : offset + size], "little")

    def _guid(self, offset: int) -> UUID:
        octets = bytes(self.buffer[offset : offset + 16])
        return _guid_of(octets) if octets != _NO_GUID else NULL_GUID

    # BaseHeader

    @property
    def priority(self) -> int:
        """0 with a TransactionHeader, whatever the packet says ([MS-MQDMPR] 3.1.7.1.32)."""
        return 0 if self.has_transaction_header else self.buffer[_PRIORITY_AT] & _PRIORITY

    @property
    def tracing_requested(self) -> bool:
        return bool(self.buffer[_TRACING_AT] & _TRACING)

    @property
    def time_to_reach_queue(self) -> int:
        return int.from_bytes(self.buffer[TIME_TO_REACH_QUEUE], "little")

    # UserHeader

    @property
    def source_machine_identifier(self) -> UUID:
        return self._guid(_SOURCE_AT)

    @property
    def destination_queue_manager_identifier(self) -> UUID:
        return self._guid(_ADDRESS_AT)

    @property
    def time_to_be_received(self) -> int:
        return int.from_bytes(self.buffer[TIME_TO_BE_RECEIVED], "little")

    @property
    def sent_time(self) -> int:
        return int.from_bytes(self.buffer[SENT_TIME], "little")

    @property
    def identifier(self) -> MessageIdentifier:
        return MessageIdentifier(
            self._guid(_SOURCE_AT), int.from_bytes(self.buffer[MESSAGE_ID], "little")
        )

    @property
    def delivery_guarantee(self) -> DeliveryGuarantee:
        recoverable = self.user_flags & _DELIVERY_MODE
        return DeliveryGuarantee.RECOVERABLE if recoverable else DeliveryGuarantee.EXPRESS

    @property
    def negative_journaling_requested(self) -> bool:
        return bool(self.buffer[_NEGATIVE_AT] & _NEGATIVE)

    @property
    def positive_journaling_requested(self) -> bool:
        return bool(self.buffer[_POSITIVE_AT] & _POSITIVE)

    @property
    def destination_queue_type(self) -> QueueFormatType:
        return _QUEUE_TYPES[self.user_flags >> DESTINATION_TYPE & QUEUE_TYPE]

    @property
    def administration_queue_type(self) -> QueueFormatType:
        return _QUEUE_TYPES[self.user_flags >> ADMINISTRATION_TYPE & QUEUE_TYPE]

    @property
    def response_queue_type(self) -> QueueFormatType:
        return _QUEUE_TYPES[self.user_flags >> RESPONSE_TYPE & QUEUE_TYPE]

    @property
    def destination_queue_format_name(self) -> FormatName | None:
        return self._queue_name(NAMES_OFFSET, self.user_flags >> DESTINATION_TYPE & QUEUE_TYPE)

    @property
    def administration_queue_format_name(self) -> FormatName | None:
        return self._queue_name(self.layout.admin_queue, self.administration_queue_type)

    @property
    def response_queue_format_name(self) -> FormatName | None:
        kind = self.response_queue_type
        if kind == QueueFormatType.NONE:
            return None
        administration = self.administration_queue_format_name
        return self._queue_name(self.layout.response_queue, kind, administration)

    def _queue_name(
        self, offset: int, kind: int, administration: FormatName | None = None
    ) -> FormatName | None:
        if kind == QueueFormatType.NONE:
            return None
        wire, _ = decode_queue_name(self.buffer, offset, kind)
        if isinstance(wire, str):  # without the two GUIDs, which cost most of the time
            return direct_from_wire(wire)
        source, destination = self._guid(_SOURCE_AT), self._guid(_ADDRESS_AT)
        return from_user_header(QueueFormatType(kind), wire, source, destination, administration)

    @property
    def connector_type_identifier(self) -> UUID | None:
        offset = self.layout.connector_type
        return self._guid(offset) if offset >= 0 else None

    # TransactionHeader

    @property
    def transaction_identifier(self) -> int | None:
        offset = self.layout.transaction
        return self._number(offset) >> _ID & _ID_MASK if offset >= 0 else None

    @property
    def final_ack_required(self) -> bool:
        return self._transaction_flag(_FINAL_ACK)

    @property
    def first_in_transaction(self) -> bool:
        return self._transaction_flag(_FIRST)

    @property
    def last_in_transaction(self) -> bool:
        return self._transaction_flag(_LAST)

    def _transaction_flag(self, mask: int) -> bool:
        offset = self.layout.transaction
        return offset >= 0 and bool(self.buffer[offset] & mask)

    @property
    def transactional_message_sequence_identifier(self) -> TxSequenceID | None:
        offset = self.layout.transaction
        return TxSequenceID.from_value(self._number(offset + _SEQUENCE, 8)) if offset >= 0 else None

    @property
    def transaction_sequence_number(self) -> int:
        offset = self.layout.transaction
        return self._number(offset + _SEQUENCE_NUMBER) if offset >= 0 else 0

    @property
    def transaction_previous_sequence_number(self) -> int:
        offset = self.layout.transaction
        return self._number(offset + _PREVIOUS_NUMBER) if offset >= 0 else 0

    @property
    def connector_queue_manager_identifier(self) -> UUID | None:
        if not self._transaction_flag(_CONNECTOR):
            return None
        return self._guid(self.layout.transaction + TRANSACTION_HEADER_SIZE)

    # SecurityHeader

    @property
    def authentication_level(self) -> int:
        level = self._security_flags().AS
        return _AUTHENTICATION_LEVELS.get(level, level)

    @property
    def is_called_authenticated(self) -> bool:
        """Whether AS or AU is set, which its sender must leave clear."""
        flags = self._security_flags()
        return bool(flags.AS or flags.AU)

    @property
    def sender_identifier_type(self) -> SenderIdentifierType:
        kind = self._security_flags().ST
        if kind > SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER:
            raise DecodeError(f"sender of type {kind}", self.layout.security)
        return _SENDER_TYPES[kind]

    @property
    def sender_identifier(self) -> bytes:
        return self._security_data(0)

    @property
    def symmetric_key(self) -> bytes:
        return self._security_data(1)

    @property
    def signature(self) -> bytes:
        return self._security_data(2)

    @property
    def sender_certificate(self) -> bytes:
        return self._security_data(3)

    @property
    def authentication_provider_type(self) -> int:
        provider = self._security_data(4)
        return ProviderInfo.decode(provider).provider_type if provider else 0

    @property
    def authentication_provider_name(self) -> str:
        provider = self._security_data(4)
        return ProviderInfo.decode(provider).provider_name if provider else ""

    def _security_flags(self) -> SecurityFlags:
        offset = self.layout.security
        return SecurityFlags(self._number(offset, 2) if offset >= 0 else 0)

    def _security_data(self, index: int) -> bytes:
        offset = self.layout.security
        if offset < 0:
            return b""
        start, size = locate_security_data(self.buffer, offset)[index]
        return bytes(self.buffer[start : start + size])

    # MessagePropertiesHeader; `label` and `body` are UserMessage's.

    def _property(self, offset: int, size: int = 4) -> int:
        return self._number(self.layout.properties + offset, size)

    @property
    def acknowledgements_requested(self) -> AcknowledgementsRequested:
        return _REQUESTS[self._property(_ACKNOWLEDGEMENTS, 1) & EVERY_ACKNOWLEDGEMENT]

    @property
    def message_class(self) -> int:
        """A MessageClass, or the plain number of an application's own class."""
        number = self._property(_CLASS, 2)
        return _CLASSES.get(number, number)

    @property
    def correlation_identifier(self) -> MessageIdentifier:
        offset = self.layout.properties + _CORRELATION
        if self.buffer[offset : offset + len(_NO_CORRELATION)] == _NO_CORRELATION:
            return NULL_IDENTIFIER
        return MessageIdentifier.decode(self.buffer, offset)

    @property
    def body_type(self) -> int:
        return self._property(_BODY_TYPE)

    @property
    def application_tag(self) -> int:
        return self._property(_APPLICATION_TAG)

    @property
    def privacy_level(self) -> int:
        """A PrivacyLevel, or a number that the specification does not know."""
        number = self._property(_PRIVACY_LEVEL)
        return _PRIVACY_LEVELS.get(number, number)

    @property
    def hash_algorithm(self) -> int:
        """A HashAlgorithm, or a number that the specification does not know."""
        number = self._property(_HASH_ALGORITHM)
        return _HASH_ALGORITHMS.get(number, number)

    @property
    def encryption_algorithm(self) -> int:
        """An EncryptionAlgorithm, or a number that the specification does not know."""
        number = self._property(_ENCRYPTION_ALGORITHM)
        return _ENCRYPTION_ALGORITHMS.get(number, number)

    @property
    def extension(self) -> bytes:
        return bytes(self.buffer[self.layout.extension : self.layout.body])

    # The headers behind the body

    @property
    def tracing_queue_identifier(self) -> UUID | None:
        header = self.debug_header
        return header.queue_identifier if header else None

    @property
    def destination_multi_queue_format_name(self) -> tuple[FormatName, ...]:
        header = self.multi_queue_format_header
        return header.destination if header else ()

    @property
    def administration_multi_queue_format_name(self) -> tuple[FormatName, ...]:
        header = self.multi_queue_format_header
        return header.administration if header else ()

    @property
    def response_multi_queue_format_name(self) -> tuple[FormatName, ...]:
        header = self.multi_queue_format_header
        return header.response if header else ()

    @property
    def multiple_destination_signature(self) -> bytes:
        header = self.multi_queue_format_header
        return header.signature if header else b""

    @property
    def soap_envelope(self) -> str:
        header = self.srmp_envelope_header
        return header.data if header else ""

    @property
    def soap_compound_message(self) -> bytes:
        header = self.compound_message_header
        return header.data if header else b""

    @property
    def soap_header(self) -> str:
        header = self.soap
        return header.header if header else ""

    @property
    def soap_body(self) -> str:
        header = self.soap
        return header.body if header else ""


_READ_FROM_PACKET = tuple(
    field.name for field in fields(MessageAttributes) if field.name in PACKET_FIELDS
)


def read_attributes(packet: Buffer | PacketMessage) -> MessageAttributes:
    """All attributes of a message, Deserialize Message From Buffer; raises DecodeError.

    Source: [MS-MQDMPR] 3.1.7.1.31.
    """
    message = packet if isinstance(packet, PacketMessage) else PacketMessage(packet)
    return MessageAttributes(**{name: getattr(message, name) for name in _READ_FROM_PACKET})
