"""Every field of a packet with its offset ([MS-MQMQ] 2.2.19 and 2.2.20, [MS-MQQB] 2.2)."""

import re
import struct
from collections.abc import Iterator
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.capture.ndr_fields import StubField
from rpcqm.codec.layout import Structure
from rpcqm.codec.packet.base import BASE_HEADER_SIZE, BaseHeader, SessionHeader
from rpcqm.codec.packet.fields import INTERNAL, NAMES_OFFSET, PACKET_TYPE
from rpcqm.codec.packet.internal import (
    ConnectionParametersHeader,
    EstablishConnectionHeader,
    InternalHeader,
    PacketType,
)
from rpcqm.codec.packet.properties import MessagePropertiesStart
from rpcqm.codec.packet.security import SecurityHeaderStart
from rpcqm.codec.packet.transaction import TransactionHeaderStart
from rpcqm.codec.packet.user import UserHeaderStart
from rpcqm.codec.packet.user_message import UserMessage

_GUID = "16s"
Fields = tuple[tuple[str, str], ...]


def _fields(kind: type[Structure]) -> Fields:
    """The fields' names in the specifications, and their `struct` formats."""
    return tuple((_named(name), code) for name, code in kind.formats().items() if name != "padding")


def _named(name: str) -> str:
    title = "".join(word.capitalize() for word in name.split("_"))
    return "TimeStamp" if title == "Timestamp" else re.sub("Id$", "ID", title)


HEADERS = {
    "BaseHeader": _fields(BaseHeader),
    "UserHeader": _fields(UserHeaderStart),
    "InternalHeader": _fields(InternalHeader),
    "SessionHeader": _fields(SessionHeader),
    "ConnectionParametersHeader": _fields(ConnectionParametersHeader),
    "EstablishConnectionHeader": _fields(EstablishConnectionHeader),
    "TransactionHeader": _fields(TransactionHeaderStart),
    "SecurityHeader": _fields(SecurityHeaderStart),
    "MessagePropertiesHeader": _fields(MessagePropertiesStart),
}
_INTERNAL_HEADERS = {
    PacketType.SESSION_ACK: "SessionHeader",
    PacketType.ESTABLISH_CONNECTION: "EstablishConnectionHeader",
    PacketType.CONNECTION_PARAMETERS: "ConnectionParametersHeader",
}
_INTERNAL_AT, _INTERNAL = INTERNAL
_TYPE_AT, _TYPE = PACKET_TYPE


def _fixed(octets: bytes, at: int, header: str) -> Iterator[StubField]:
    for name, code in HEADERS[header]:
        size = struct.calcsize("<" + code)
        if at + size > len(octets):
            raise DecodeError(f"{header}.{name} is cut short", at)
        (value,) = struct.unpack_from("<" + code, octets, at)
        yield StubField(
            at, size, f"{header}.{name}", UUID(bytes_le=value) if code == _GUID else value
        )
        at += size


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
    yield from _fixed(octets, 0, "BaseHeader")
    if octets[_INTERNAL_AT] & _INTERNAL:
        yield from _fixed(octets, BASE_HEADER_SIZE, "InternalHeader")
        kind = octets[_TYPE_AT] & _TYPE
        if kind in _INTERNAL_HEADERS:
            start = BASE_HEADER_SIZE + InternalHeader.size()
            yield from _fixed(octets, start, _INTERNAL_HEADERS[PacketType(kind)])
        return
    yield from _message(octets)


def _message(octets: bytes) -> Iterator[StubField]:
    packet = UserMessage(octets)
    layout = packet.layout
    yield from _fixed(octets, BASE_HEADER_SIZE, "UserHeader")
    header = packet.user_header
    for name, start, end, value in (
        ("DestinationQueue", NAMES_OFFSET, layout.admin_queue, header.destination_queue),
        ("AdminQueue", layout.admin_queue, layout.response_queue, header.admin_queue),
    ):
        yield StubField(start, end - start, f"UserHeader.{name}", value)
    behind = [layout.connector_type, layout.transaction, layout.security, layout.properties]
    end = min(each for each in behind if each >= 0)
    start = layout.response_queue
    yield StubField(start, end - start, "UserHeader.ResponseQueue", header.response_queue)
    if layout.connector_type >= 0:
        connector = layout.connector_type, 16, "UserHeader.ConnectorType", header.connector_type
        yield StubField(*connector)
    if layout.transaction >= 0:
        yield from _fixed(octets, layout.transaction, "TransactionHeader")
    if layout.security >= 0:
        yield from _fixed(octets, layout.security, "SecurityHeader")
    yield from _properties(octets, packet)
    if packet.has_session_header:
        yield from _fixed(octets, packet.packet_size, "SessionHeader")


def _properties(octets: bytes, packet: UserMessage) -> Iterator[StubField]:
    layout = packet.layout
    name = "MessagePropertiesHeader"
    yield from _fixed(octets, layout.properties, name)
    size = layout.extension - layout.label
    yield StubField(layout.label, size, f"{name}.Label", packet.label)
    size = layout.body - layout.extension
    extension = bytes(octets[layout.extension : layout.body])
    yield StubField(layout.extension, size, f"{name}.ExtensionData", extension)
    yield StubField(
        layout.body,
        layout.body_size,
        f"{name}.MessageBody",
        bytes(octets[layout.body : layout.body + layout.body_size]),
    )
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
