"""Every field of a packet with its offset ([MS-MQMQ] 2.2.19 and 2.2.20, [MS-MQQB] 2.2)."""

import struct
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.capture.ndr_fields import StubField
from rpcqm.codec.packet.internal import PacketType
from rpcqm.codec.packet.user_message import UserMessage

_GUID = "16s"

BASE_HEADER = (
    ("VersionNumber", "B"),
    ("Reserved", "B"),
    ("Flags", "H"),
    ("Signature", "I"),
    ("PacketSize", "I"),
    ("TimeToReachQueue", "I"),
)
USER_HEADER = (
    ("SourceQueueManager", _GUID),
    ("QueueManagerAddress", _GUID),
    ("TimeToBeReceived", "I"),
    ("SentTime", "I"),
    ("MessageID", "I"),
    ("Flags", "I"),
)
INTERNAL_HEADER = (("Reserved", "H"), ("Flags", "H"))
SESSION_HEADER = (
    ("AckSequenceNumber", "H"),
    ("RecoverableMsgAckSeqNumber", "H"),
    ("RecoverableMsgAckFlags", "I"),
    ("UserMsgSequenceNumber", "H"),
    ("RecoverableMsgSeqNumber", "H"),
    ("WindowSize", "H"),
    ("Reserved", "H"),
)
CONNECTION_PARAMETERS_HEADER = (
    ("RecoverableAckTimeout", "I"),
    ("AckTimeout", "I"),
    ("Reserved", "H"),
    ("WindowSize", "H"),
)
ESTABLISH_CONNECTION_HEADER = (
    ("ClientGuid", _GUID),
    ("ServerGuid", _GUID),
    ("TimeStamp", "I"),
    ("OperatingSystem", "H"),
    ("Reserved", "H"),
)
TRANSACTION_HEADER = (
    ("Flags", "I"),
    ("TxSequenceID", "Q"),
    ("TxSequenceNumber", "I"),
    ("PreviousTxSequenceNumber", "I"),
)
SECURITY_HEADER = (
    ("Flags", "H"),
    ("SecurityIdSize", "H"),
    ("EncryptionKeySize", "H"),
    ("SignatureSize", "H"),
    ("SenderCertSize", "I"),
    ("ProviderInfoSize", "I"),
)
MESSAGE_PROPERTIES_HEADER = (
    ("Flags", "B"),
    ("LabelLength", "B"),
    ("MessageClass", "H"),
    ("CorrelationID", "20s"),
    ("BodyType", "I"),
    ("ApplicationTag", "I"),
    ("MessageSize", "I"),
    ("AllocationBodySize", "I"),
    ("PrivacyLevel", "I"),
    ("HashAlgorithm", "I"),
    ("EncryptionAlgorithm", "I"),
    ("ExtensionSize", "I"),
)
INTERNAL_HEADERS = {
    PacketType.SESSION_ACK: ("SessionHeader", SESSION_HEADER),
    PacketType.ESTABLISH_CONNECTION: ("EstablishConnectionHeader", ESTABLISH_CONNECTION_HEADER),
    PacketType.CONNECTION_PARAMETERS: (
        "ConnectionParametersHeader",
        CONNECTION_PARAMETERS_HEADER,
    ),
}
_BASE, _INTERNAL_AT = 16, 16
_IN = 1 << 3
Fields = tuple[tuple[str, str], ...]


def _fixed(octets: bytes, at: int, header: str, fields: Fields) -> Iterator[StubField]:
    for name, code in fields:
        size = struct.calcsize("<" + code)
        if at + size > len(octets):
            raise DecodeError(f"{header}.{name} is cut short", at)
        (value,) = struct.unpack_from("<" + code, octets, at)
        yield StubField(at, size, f"{header}.{name}", _value(code, value))
        at += size


def _value(code: str, value: Any) -> Any:
    return UUID(bytes_le=value) if code == _GUID else value


def packet_fields(octets: bytes) -> tuple[list[StubField], str]:
    """The fields of a packet in their order, and why there are no more, if something is wrong."""
    found: list[StubField] = []
    try:
        for field in _all(octets):
            found.append(field)
    except (DecodeError, ValueError) as error:
        return found, str(error)
    return found, ""


def _all(octets: bytes) -> Iterator[StubField]:
    yield from _fixed(octets, 0, "BaseHeader", BASE_HEADER)
    if octets[2] & _IN:
        yield from _fixed(octets, _INTERNAL_AT, "InternalHeader", INTERNAL_HEADER)
        kind = octets[_INTERNAL_AT + 2] & 15
        if kind in INTERNAL_HEADERS:
            name, fields = INTERNAL_HEADERS[PacketType(kind)]
            yield from _fixed(octets, _INTERNAL_AT + 4, name, fields)
        return
    yield from _message(octets)


def _message(octets: bytes) -> Iterator[StubField]:
    packet = UserMessage(octets)
    layout = packet.layout
    yield from _fixed(octets, _BASE, "UserHeader", USER_HEADER)
    header = packet.user_header
    for name, start, end, value in (
        ("DestinationQueue", 64, layout.admin_queue, header.destination_queue),
        ("AdminQueue", layout.admin_queue, layout.response_queue, header.admin_queue),
    ):
        yield StubField(start, end - start, f"UserHeader.{name}", value)
    behind = [layout.connector_type, layout.transaction, layout.security, layout.properties]
    end = min(each for each in behind if each >= 0)
    start = layout.response_queue
    yield StubField(start, end - start, "UserHeader.ResponseQueue", header.response_queue)
    if layout.connector_type >= 0:
        yield from _fixed(octets, layout.connector_type, "UserHeader", (("ConnectorType", _GUID),))
    if layout.transaction >= 0:
        yield from _fixed(octets, layout.transaction, "TransactionHeader", TRANSACTION_HEADER)
    if layout.security >= 0:
        yield from _fixed(octets, layout.security, "SecurityHeader", SECURITY_HEADER)
    yield from _properties(octets, packet)
    if packet.has_session_header:
        yield from _fixed(octets, packet.packet_size, "SessionHeader", SESSION_HEADER)


def _properties(octets: bytes, packet: UserMessage) -> Iterator[StubField]:
    layout = packet.layout
    name = "MessagePropertiesHeader"
    yield from _fixed(octets, layout.properties, name, MESSAGE_PROPERTIES_HEADER)
    size = layout.extension - layout.label
    yield StubField(layout.label, size, f"{name}.Label", packet.label)
    size = layout.body - layout.extension
    extension = bytes(octets[layout.extension : layout.body])
    yield StubField(layout.extension, size, f"{name}.ExtensionData", extension)
    yield StubField(layout.body, layout.body_size, f"{name}.MessageBody", packet.body)
    trailers = (
        ("DebugHeader", layout.debug),
        ("SRMPEnvelopeHeader", layout.envelope),
        ("CompoundMessageHeader", layout.compound),
        ("SoapHeader", layout.soap),
        ("MultiQueueFormatHeader", layout.multi_queue),
    )
    present = [(header, at) for header, at in trailers if at >= 0]
    ends = [at for _, at in present][1:] + ([layout.end] if present else [])
    for (header, at), end in zip(present, ends, strict=True):
        yield StubField(at, end - at, header, bytes(octets[at:end]))
