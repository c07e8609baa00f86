"""Connection-oriented PDUs: bytes to values and back.

One frozen dataclass per PDU, with the field names of [C706] 12.6.4. `unpack` takes one whole PDU
and raises DecodeError for any other octets. Both byte orders are read; the project itself writes
little-endian PDUs only.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.rpc.constants import RPC_VERS, WHOLE, PduType, PfcFlags

HEADER = struct.Struct("<BBBBIHHI")
"""rpc_vers, rpc_vers_minor, PTYPE, pfc_flags, packed_drep, frag_length, auth_length, call_id."""
REQUEST_BODY = struct.Struct("<IHH")
"""alloc_hint, p_cont_id, opnum."""
BIG_REQUEST_BODY = struct.Struct(">IHH")
WHOLE_REQUEST = struct.Struct("<8sHHIIHH")
"""The octets before frag_length, auth_length, call_id; then alloc_hint, p_cont_id, opnum."""
RESPONSE_BODY = struct.Struct("<IHBB")
"""alloc_hint, p_cont_id, cancel_count, reserved."""
WHOLE_RESPONSE = struct.Struct("<8sHHIIHBB")
"""The octets before frag_length, auth_length, call_id; then as RESPONSE_BODY."""
TRAILER = struct.Struct("<BBBBI")
"""auth_type, auth_level, auth_pad_length, auth_reserved, auth_context_id."""
BIG_TRAILER = struct.Struct(">BBBBI")

HEADER_LENGTH = HEADER.size
REQUEST_LENGTH = HEADER_LENGTH + REQUEST_BODY.size
RESPONSE_LENGTH = WHOLE_RESPONSE.size
FAULT_LENGTH = 32
TRAILER_LENGTH = TRAILER.size
OBJECT_LENGTH = 16

LITTLE_ENDIAN = 0x00000010
"""packed_drep of little-endian integers, ASCII and IEEE floats, as a little-endian number."""


def whole_heads(ptype: PduType) -> tuple[bytes, bytes]:
    """How PDUs of one fragment begin in both minor versions, up to their frag_length."""
    drep = LITTLE_ENDIAN.to_bytes(4, "little")
    first, second = (bytes((RPC_VERS, minor, ptype, WHOLE)) + drep for minor in (0, 1))
    return first, second


Fields = dict[str, Any]
"""The fields of a PDU of some kind, by their names."""


class PaddingError(DecodeError):
    """An auth_pad_length that its PDU has no room for."""


class Layout:
    """Fixed fields in both byte orders; reading past the end is a DecodeError."""

    __slots__ = ("_big", "_little", "size")

    def __init__(self, fields: str) -> None:
        self._little = struct.Struct("<" + fields)
        self._big = struct.Struct(">" + fields)
        self.size = self._little.size

    def pack(self, big_endian: bool, *values: object) -> bytes:
        return (self._big if big_endian else self._little).pack(*values)

    def unpack(self, big_endian: bool, data: bytes, offset: int) -> tuple[Any, ...]:
        if offset + self.size > len(data):
            raise DecodeError("the PDU is too short", offset)
        return (self._big if big_endian else self._little).unpack_from(data, offset)


_HEADER = Layout("BBBB4sHHI")
_TRAILER = Layout("BBBBI")
_SYNTAX = Layout("16sHH")
_REQUEST = Layout("IHH")
_RESPONSE = Layout("IHBB")
_FAULT = Layout("IHBBII")
_BIND = Layout("HHIB")
_BIND_PADDING = 3
_ACK = Layout("HHIH")
_ELEMENT = Layout("HBx")
_RESULTS = Layout("B3x")
_RESULT = Layout("HH")
_NAK = Layout("HB")
_VERSION = Layout("BB")
_OBJECT = Layout("16s")


def pad_length(length: int, alignment: int) -> int:
    """How many octets bring `length` to a multiple of `alignment`."""
    return -length % alignment


def pack_uuid(uuid: UUID, big_endian: bool = False) -> bytes:
    return uuid.bytes if big_endian else uuid.bytes_le


def unpack_uuid(octets: bytes, big_endian: bool = False) -> UUID:
    return UUID(bytes=octets) if big_endian else UUID(bytes_le=octets)


@dataclass(frozen=True, slots=True)
class SyntaxId:
    """p_syntax_id_t: an abstract or a transfer syntax with its version."""

    uuid: UUID
    major: int = 0
    minor: int = 0

    def pack(self, big_endian: bool = False) -> bytes:
        # The version is one 32-bit number with the major version in its low half.
        first, second = (self.minor, self.major) if big_endian else (self.major, self.minor)
        return _SYNTAX.pack(big_endian, pack_uuid(self.uuid, big_endian), first, second)

    @classmethod
    def unpack(cls, data: bytes, offset: int, big_endian: bool = False) -> Self:
        octets, first, second = _SYNTAX.unpack(big_endian, data, offset)
        major, minor = (second, first) if big_endian else (first, second)
        return cls(unpack_uuid(octets, big_endian), major, minor)

    def __str__(self) -> str:
        return f"{self.uuid} v{self.major}.{self.minor}"


NULL_SYNTAX = SyntaxId(UUID(int=0))


@dataclass(frozen=True, slots=True)
class ContextElement:
    """p_cont_elem_t: one proposed presentation context."""

    p_cont_id: int
    abstract_syntax: SyntaxId
    transfer_syntaxes: tuple[SyntaxId, ...]


@dataclass(frozen=True, slots=True)
class ContextAnswer:
    """p_result_t: the answer to one proposed presentation context.

    `result` is a ContextResult; `reason` a ProviderReason, or the feature bits of negotiate_ack.
    """

    result: int
    reason: int = 0
    transfer_syntax: SyntaxId = NULL_SYNTAX


@dataclass(frozen=True, slots=True)
class SecurityTrailer:
    """sec_trailer with its authentication token ([MS-RPCE] 2.2.2.11)."""

    auth_type: int
    auth_level: int
    auth_context_id: int
    auth_value: bytes
    auth_pad_length: int = 0
    auth_reserved: int = 0

    def pack(self, big_endian: bool = False) -> bytes:
        """The trailer and its token, without the padding that precedes them."""
        head = _TRAILER.pack(
            big_endian,
            self.auth_type,
            self.auth_level,
            self.auth_pad_length,
            self.auth_reserved,
            self.auth_context_id,
        )
        return head + self.auth_value

    @classmethod
    def unpack(cls, data: bytes, offset: int, big_endian: bool = False) -> Self:
        auth_type, level, pad, reserved, context_id = _TRAILER.unpack(big_endian, data, offset)
        value = bytes(data[offset + TRAILER_LENGTH :])
        return cls(auth_type, level, context_id, value, pad, reserved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pdu:
    """The header fields that all PDUs have ([C706] 12.6.3.1)."""

    call_id: int
    pfc_flags: int = WHOLE
    auth: SecurityTrailer | None = None
    rpc_vers_minor: int = 0
    big_endian: bool = False

    ptype: ClassVar[PduType]

    def pack(self) -> bytes:
        """The PDU's bytes; padding before the trailer is the trailer's `auth_pad_length`."""
        body, auth_length = self.pack_body(), 0
        if self.auth is not None:
            body += bytes(self.auth.auth_pad_length) + self.auth.pack(self.big_endian)
            auth_length = len(self.auth.auth_value)
        header = _HEADER.pack(
            self.big_endian,
            RPC_VERS,
            self.rpc_vers_minor,
            self.ptype,
            self.pfc_flags,
            bytes(4) if self.big_endian else b"\x10\0\0\0",
            HEADER_LENGTH + len(body),
            auth_length,
            self.call_id,
        )
        return header + body

    def pack_body(self) -> bytes:
        return b""

    @classmethod
    def unpack_body(cls, data: bytes, big_endian: bool, flags: int) -> Fields:
        """The PDU's own fields; `data` is the PDU without padding, trailer and token."""
        return {}


_P = TypeVar("_P", bound=type[Pdu])
_CLASSES: dict[int, type[Pdu]] = {}


def _register(ptype: PduType) -> Callable[[_P], _P]:
    def register(cls: _P) -> _P:
        cls.ptype = ptype
        _CLASSES[ptype] = cls
        return cls

    return register


@dataclass(frozen=True, slots=True)
class Header:
    """The common header of a PDU whose body has not been read."""

    rpc_vers: int
    rpc_vers_minor: int
    ptype: int
    pfc_flags: int
    frag_length: int
    auth_length: int
    call_id: int
    big_endian: bool


def unpack_header(data: bytes) -> Header:
    """The first 16 octets of a PDU; refuses data representations that cannot be read."""
    if len(data) < HEADER_LENGTH:
        raise DecodeError("the PDU has no whole header", len(data))
    big_endian = is_big_endian(bytes(data[4:8]))
    vers, minor, ptype, flags, _, frag_length, auth_length, call_id = _HEADER.unpack(
        big_endian, data, 0
    )
    return Header(vers, minor, ptype, flags, frag_length, auth_length, call_id, big_endian)


def is_big_endian(packed_drep: bytes) -> bool:
    """The byte order that a drep announces; EBCDIC and foreign floats are refused."""
    integers, characters = packed_drep[0] >> 4, packed_drep[0] & 0x0F
    if integers > 1 or characters != 0 or packed_drep[1] != 0:
        raise DecodeError(f"unsupported data representation {packed_drep.hex()}", 4)
    return integers == 0


def unpack(data: bytes) -> Pdu:
    """One whole PDU as its dataclass; raises DecodeError, and nothing else, if it is malformed."""
    header = unpack_header(data)
    if header.rpc_vers != RPC_VERS or header.rpc_vers_minor > 1:
        raise DecodeError(f"RPC version {header.rpc_vers}.{header.rpc_vers_minor}", 0)
    cls = _CLASSES.get(header.ptype)
    if cls is None:
        raise DecodeError(f"unknown PDU type {header.ptype}", 2)
    if header.frag_length != len(data):
        raise DecodeError(f"frag_length {header.frag_length} of a PDU of {len(data)}", 8)
    body_end, auth = _unpack_auth(data, header)
    fields = cls.unpack_body(data[:body_end], header.big_endian, header.pfc_flags)
    return cls(
        call_id=header.call_id,
        pfc_flags=header.pfc_flags,
        auth=auth,
        rpc_vers_minor=header.rpc_vers_minor,
        big_endian=header.big_endian,
        **fields,
    )


def _unpack_auth(data: bytes, header: Header) -> tuple[int, SecurityTrailer | None]:
    if header.auth_length == 0:
        return len(data), None
    offset = len(data) - header.auth_length - TRAILER_LENGTH
    if offset < HEADER_LENGTH:
        raise DecodeError(f"auth_length {header.auth_length} leaves no room", 10)
    auth = SecurityTrailer.unpack(data, offset, header.big_endian)
    if auth.auth_pad_length > max(0, offset - REQUEST_LENGTH):
        raise PaddingError(f"auth_pad_length {auth.auth_pad_length} leaves no room", offset + 2)
    if header.ptype in (PduType.request, PduType.response):
        return offset - auth.auth_pad_length, auth
    # The other bodies know their length; what a peer calls padding may be part of them.
    return offset, auth


@_register(PduType.request)
@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Pdu):
    """[C706] 12.6.4.9; `object_uuid` is present when PFC_OBJECT_UUID is set."""

    alloc_hint: int = 0
    p_cont_id: int
    opnum: int
    object_uuid: UUID | None = None
    stub_data: bytes = b""

    def pack_body(self) -> bytes:
        fixed = _REQUEST.pack(self.big_endian, self.alloc_hint, self.p_cont_id, self.opnum)
        if self.object_uuid is not None:
            fixed += pack_uuid(self.object_uuid, self.big_endian)
        return fixed + self.stub_data

    @classmethod
    def unpack_body(cls, data: bytes, big_endian: bool, flags: int) -> Fields:
        alloc_hint, context_id, opnum = _REQUEST.unpack(big_endian, data, HEADER_LENGTH)
        start, object_uuid = REQUEST_LENGTH, None
        if flags & PfcFlags.PFC_OBJECT_UUID:
            (octets,) = _OBJECT.unpack(big_endian, data, start)
            start, object_uuid = start + OBJECT_LENGTH, unpack_uuid(octets, big_endian)
        return {
            "alloc_hint": alloc_hint,
            "p_cont_id": context_id,
            "opnum": opnum,
            "object_uuid": object_uuid,
            "stub_data": bytes(data[start:]),
        }


@_register(PduType.response)
@dataclass(frozen=True, slots=True, kw_only=True)
class Response(Pdu):
    """[C706] 12.6.4.10."""

    alloc_hint: int = 0
    p_cont_id: int
    cancel_count: int = 0
    stub_data: bytes = b""

    def pack_body(self) -> bytes:
        fixed = (self.alloc_hint, self.p_cont_id, self.cancel_count, 0)
        return _RESPONSE.pack(self.big_endian, *fixed) + self.stub_data

    @classmethod
    def unpack_body(cls, data: bytes, big_endian: bool, flags: int) -> Fields:
        hint, context_id, cancels, _ = _RESPONSE.unpack(big_endian, data, HEADER_LENGTH)
        return {
            "alloc_hint": hint,
            "p_cont_id": context_id,
            "cancel_count": cancels,
            "stub_data": bytes(data[RESPONSE_LENGTH:]),
        }


@_register(PduType.fault)
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Pdu):
    """[C706] 12.6.4.7; `flags` is the octet whose low bit announces extended error information."""

    alloc_hint: int = FAULT_LENGTH
    p_cont_id: int = 0
    cancel_count: int = 0
    flags: int = 0
    status: int
    stub_data: bytes = b""

    def pack_body(self) -> bytes:
        fixed = (self.alloc_hint, self.p_cont_id, self.cancel_count, self.flags, self.status, 0)
        return _FAULT.pack(self.big_endian, *fixed) + self.stub_data

    @classmethod
    def unpack_body(cls, data: bytes, big_endian: bool, flags: int) -> Fields:
        hint, context_id, cancels, own, status, _ = _FAULT.unpack(big_endian, data, HEADER_LENGTH)
        return {
            "alloc_hint": hint,
            "p_cont_id": context_id,
            "cancel_count": cancels,
            "flags": own,
            "status": status,
            "stub_data": bytes(data[FAULT_LENGTH:]),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proposal(Pdu):
    max_xmit_frag: int
    max_recv_frag: int
    assoc_group_id: int = 0
    p_context_elem: tuple[ContextElement, ...]

    def pack_body(self) -> bytes:
        parts = [
            _BIND.pack(
                self.big_endian,
                self.max_xmit_frag,
                self.max_recv_frag,
                self.assoc_group_id,
                len(self.p_context_elem),
            ),
            bytes(_BIND_PADDING),
        ]
        for element in self.p_context_elem:
            count = len(element.transfer_syntaxes)
            parts.append(_ELEMENT.pack(self.big_endian, element.p_cont_id, count))
            parts.append(element.abstract_syntax.pack(self.big_endian))
            parts.extend(syntax.pack(self.big_endian) for syntax in element.transfer_syntaxes)
        return b"".join(parts)

    @classmethod
    def unpack_body(cls, data: bytes, big_endian: bool, flags: int) -> Fields:
        xmit, recv, group, count = _BIND.unpack(big_endian, data, HEADER_LENGTH)
        offset, elements = HEADER_LENGTH + _BIND.size + _BIND_PADDING, []
        for _ in range(count):
            element, offset = _unpack_element(data, offset, big_endian)
            elements.append(element)
        return {
            "max_xmit_frag": xmit,
            "max_recv_frag": recv,
            "assoc_group_id": group,
            "p_context_elem": tuple(elements),
        }


def _unpack_element(data: bytes, offset: int, big_endian: bool) -> tuple[ContextElement, int]:
    context_id, count = _ELEMENT.unpack(big_endian, data, offset)
    offset += _ELEMENT.size
    syntaxes = [
        SyntaxId.unpack(data, offset + index * _SYNTAX.size, big_endian)
        for index in range(1 + count)
    ]
    element = ContextElement(context_id, syntaxes[0], tuple(syntaxes[1:]))
    return element, offset + len(syntaxes) * _SYNTAX.size


@_register(PduType.bind)
@dataclass(frozen=True, slots=True, kw_only=True)
class Bind(_Proposal):
    """[C706] 12.6.4.3."""


@_register(PduType.alter_context)
@dataclass(frozen=True, slots=True, kw_only=True)
class AlterContext(_Proposal):
    """[C706] 12.6.4.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Acknowledgement(Pdu):
    max_xmit_frag: int
    max_recv_frag: int
    assoc_group_id: int
    sec_addr: bytes = b""
    p_result_list: tuple[ContextAnswer, ...]

    def pack_body(self) -> bytes:
        port = self.sec_addr + b"\0" if self.sec_addr else b""
        fixed = (self.max_xmit_frag, self.max_recv_frag, self.assoc_group_id, len(port))
        head = _ACK.pack(self.big_endian, *fixed) + port
        parts = [head, bytes(pad_length(HEADER_LENGTH + len(head), 4))]
        parts.append(_RESULTS.pack(self.big_endian, len(self.p_result_list)))
        for answer in self.p_result_list:
            parts.append(_RESULT.pack(self.big_endian, answer.result, answer.reason))
            parts.append(answer.transfer_syntax.pack(self.big_endian))
        return b"".join(parts)

    @classmethod
    def unpack_body(cls, data: bytes, big_endian: bool, flags: int) -> Fields:
        xmit, recv, group, length = _ACK.unpack(big_endian, data, HEADER_LENGTH)
        offset = HEADER_LENGTH + _ACK.size + length
        address = bytes(data[HEADER_LENGTH + _ACK.size : offset])
        if len(address) < length:
            raise DecodeError("the secondary address is cut short", offset)
        offset += pad_length(offset, 4)
        (count,) = _RESULTS.unpack(big_endian, data, offset)
        offset += _RESULTS.size
        step = _RESULT.size + _SYNTAX.size
        return {
            "max_xmit_frag": xmit,
            "max_recv_frag": recv,
            "assoc_group_id": group,
            "sec_addr": address.removesuffix(b"\0"),
            "p_result_list": tuple(
                _unpack_answer(data, offset + index * step, big_endian) for index in range(count)
            ),
        }


def _unpack_answer(data: bytes, offset: int, big_endian: bool) -> ContextAnswer:
    result, reason = _RESULT.unpack(big_endian, data, offset)
    syntax = SyntaxId.unpack(data, offset + _RESULT.size, big_endian)
    return ContextAnswer(result, reason, syntax)


@_register(PduType.bind_ack)
@dataclass(frozen=True, slots=True, kw_only=True)
class BindAck(_Acknowledgement):
    """[C706] 12.6.4.4; `sec_addr` is without its terminating NUL."""


@_register(PduType.alter_context_resp)
@dataclass(frozen=True, slots=True, kw_only=True)
class AlterContextResp(_Acknowledgement):
    """[C706] 12.6.4.2."""


@_register(PduType.bind_nak)
@dataclass(frozen=True, slots=True, kw_only=True)
class BindNak(Pdu):
    """[C706] 12.6.4.5; extended error information ([MS-RPCE] 2.2.2.9) is left unread."""

    provider_reject_reason: int
    versions: tuple[tuple[int, int], ...] = ((5, 0),)

    def pack_body(self) -> bytes:
        head = _NAK.pack(self.big_endian, self.provider_reject_reason, len(self.versions))
        body = head + b"".join(_VERSION.pack(self.big_endian, *each) for each in self.versions)
        return body + bytes(pad_length(HEADER_LENGTH + len(body), 4))

    @classmethod
    def unpack_body(cls, data: bytes, big_endian: bool, flags: int) -> Fields:
        reason, count = _NAK.unpack(big_endian, data, HEADER_LENGTH)
        start = HEADER_LENGTH + _NAK.size
        versions = tuple(
            _VERSION.unpack(big_endian, data, start + index * _VERSION.size)
            for index in range(count)
        )
        return {"provider_reject_reason": reason, "versions": versions}


@_register(PduType.auth3)
@dataclass(frozen=True, slots=True, kw_only=True)
class Auth3(Pdu):
    """rpc_auth_3, the last leg of an odd handshake ([MS-RPCE] 2.2.2.10)."""

    pad: bytes = bytes(4)

    def pack_body(self) -> bytes:
        return self.pad

    @classmethod
    def unpack_body(cls, data: bytes, big_endian: bool, flags: int) -> Fields:
        return {"pad": bytes(data[HEADER_LENGTH:])}


@_register(PduType.shutdown)
@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown(Pdu):
    """[C706] 12.6.4.11: the server asks the client to close the connection."""


@_register(PduType.co_cancel)
@dataclass(frozen=True, slots=True, kw_only=True)
class CoCancel(Pdu):
    """[C706] 12.6.4.6: cancel the call, the reply is still wanted."""


@_register(PduType.orphaned)
@dataclass(frozen=True, slots=True, kw_only=True)
class Orphaned(Pdu):
    """[C706] 12.6.4.8: abort the call, no reply is wanted."""
