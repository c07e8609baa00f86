"""References to objects as octets: OBJREF and DUALSTRINGARRAY ([MS-DCOM] 2.2.18, 2.2.19).

They are little-endian, whatever the byte order of the call. An IPID is its 16 octets as they are on
the wire; other identifiers are UUID, or int for an OXID or OID.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias
from uuid import UUID

from rpcqm.base.errors import DecodeError

SIGNATURE = 0x574F454D
SIGNATURE_EXTENDED = 0x4E535956
SORF_NOPING = 0x1000

NCACN_IP_TCP = 7
"""The protocol sequence of TCP in a STRINGBINDING ([C706] appendix I)."""
AUTHZ_NONE = 0xFFFF

_HEADER = struct.Struct("<II16s")
_STD = struct.Struct("<IIQQ16s")
_ARRAY = struct.Struct("<HH")
_CUSTOM = struct.Struct("<16sII")
_EXTENDED = struct.Struct("<II")
_ELEMENT = struct.Struct("<16sII")


@dataclass(frozen=True, slots=True)
class StringBinding:
    """One way to a server: `address` is a host, with `[port]` for an object exporter."""

    tower_id: int
    address: str


@dataclass(frozen=True, slots=True)
class SecurityBinding:
    """One authentication type that a server takes, and its principal name for that, if any."""

    authn_svc: int
    princ_name: str = ""


@dataclass(frozen=True, slots=True)
class DualStringArray:
    """The addresses of a server, and its authentication types, the preferred first."""

    strings: tuple[StringBinding, ...] = ()
    securities: tuple[SecurityBinding, ...] = ()

    @property
    def entries(self) -> tuple[bytes, int]:
        """The array as octets without its head, and the offset of the security bindings in it.

        The offset is in units of two octets, as wSecurityOffset is.
        """
        strings = b"".join(
            struct.pack("<H", each.tower_id) + _text(each.address) for each in self.strings
        )
        strings = (strings or b"\0\0") + b"\0\0"
        securities = b"".join(
            struct.pack("<HH", each.authn_svc, AUTHZ_NONE) + _text(each.princ_name)
            for each in self.securities
        )
        return strings + (securities or b"\0\0") + b"\0\0", len(strings) // 2

    def pack(self) -> bytes:
        octets, offset = self.entries
        return _ARRAY.pack(len(octets) // 2, offset) + octets

    @classmethod
    def of_entries(cls, octets: bytes, security_offset: int) -> "DualStringArray":
        """Read the octets of `entries`; raises DecodeError."""
        return cls(*_bindings(octets, security_offset * 2))

    @classmethod
    def unpack(cls, octets: bytes, offset: int = 0) -> "tuple[DualStringArray, int]":
        """The array at `offset`, and its end; raises DecodeError."""
        if len(octets) - offset < _ARRAY.size:
            raise DecodeError("a DUALSTRINGARRAY without its head", offset)
        entries, security_offset = _ARRAY.unpack_from(octets, offset)
        start, end = offset + _ARRAY.size, offset + _ARRAY.size + entries * 2
        if end > len(octets):
            raise DecodeError("a DUALSTRINGARRAY that is cut off", offset)
        return cls.of_entries(octets[start:end], security_offset), end


def _bindings(
    octets: bytes, middle: int
) -> tuple[tuple[StringBinding, ...], tuple[SecurityBinding, ...]]:
    if middle > len(octets) or len(octets) % 2:
        raise DecodeError("a DUALSTRINGARRAY without its security bindings")
    strings = []
    offset = 0
    while (tower := _word(octets, offset, middle)) != 0:
        address, offset = _read_text(octets, offset + 2, middle)
        strings.append(StringBinding(tower, address))
    securities = []
    offset, end = middle, len(octets)
    while (service := _word(octets, offset, end)) != 0:
        name, offset = _read_text(octets, offset + 4, end)
        securities.append(SecurityBinding(service, name))
    return tuple(strings), tuple(securities)


def _word(octets: bytes, offset: int, end: int) -> int:
    """The number at `offset`; 0, which ends the bindings, where the octets end."""
    return int.from_bytes(octets[offset : min(offset + 2, end)], "little")


def _text(text: str) -> bytes:
    return text.encode("utf-16-le") + b"\0\0"


def _read_text(octets: bytes, start: int, end: int) -> tuple[str, int]:
    place = start
    while place < end:
        if octets[place] == octets[place + 1] == 0:
            return octets[start:place].decode("utf-16-le", "replace"), place + 2
        place += 2
    raise DecodeError("a binding without its end", start)


@dataclass(frozen=True, slots=True)
class StdObjRef:
    """An interface of an object, and the number of references that come with it (STDOBJREF)."""

    flags: int
    public_refs: int
    oxid: int
    oid: int
    ipid: bytes

    def pack(self) -> bytes:
        return _STD.pack(self.flags, self.public_refs, self.oxid, self.oid, self.ipid)


@dataclass(frozen=True, slots=True)
class ObjRefStandard:
    """The usual reference; `bindings` are those of the object resolver."""

    FLAGS: ClassVar[int] = 1
    iid: UUID
    std: StdObjRef
    bindings: DualStringArray = field(default_factory=DualStringArray)

    def pack(self) -> bytes:
        return _head(self.FLAGS, self.iid) + self.std.pack() + self.bindings.pack()


@dataclass(frozen=True, slots=True)
class ObjRefHandler:
    """A reference that names the class of its handler at the client."""

    FLAGS: ClassVar[int] = 2
    iid: UUID
    std: StdObjRef
    clsid: UUID
    bindings: DualStringArray = field(default_factory=DualStringArray)

    def pack(self) -> bytes:
        head = _head(self.FLAGS, self.iid) + self.std.pack()
        return head + self.clsid.bytes_le + self.bindings.pack()


@dataclass(frozen=True, slots=True)
class ObjRefCustom:
    """An object in octets that only its class `clsid` can read."""

    FLAGS: ClassVar[int] = 4
    iid: UUID
    clsid: UUID
    data: bytes

    def pack(self) -> bytes:
        custom = _CUSTOM.pack(self.clsid.bytes_le, 0, len(self.data))
        return _head(self.FLAGS, self.iid) + custom + self.data


@dataclass(frozen=True, slots=True)
class ObjRefExtended:
    """A reference with an envoy context, whose identifier is `data_id`."""

    FLAGS: ClassVar[int] = 8
    iid: UUID
    std: StdObjRef
    bindings: DualStringArray
    data_id: UUID
    data: bytes

    def pack(self) -> bytes:
        rounded = len(self.data) + -len(self.data) % 8
        return (
            _head(self.FLAGS, self.iid)
            + self.std.pack()
            + struct.pack("<I", SIGNATURE_EXTENDED)
            + self.bindings.pack()
            + _EXTENDED.pack(1, SIGNATURE_EXTENDED)
            + _ELEMENT.pack(self.data_id.bytes_le, len(self.data), rounded)
            + self.data.ljust(rounded, b"\0")
        )


ObjRef: TypeAlias = ObjRefStandard | ObjRefHandler | ObjRefCustom | ObjRefExtended


def unpack_objref(octets: bytes) -> ObjRef:
    """The reference in octets, whatever follows it; raises DecodeError."""
    if len(octets) < _HEADER.size:
        raise DecodeError("an OBJREF without its head")
    signature, flags, iid = _HEADER.unpack_from(octets)
    if signature != SIGNATURE:
        raise DecodeError(f"an OBJREF with the signature {signature:#010x}", 0)
    read = _READERS.get(flags)
    if read is None:
        raise DecodeError(f"an OBJREF with the flags {flags:#x}", 4)
    try:
        return read(UUID(bytes_le=iid), octets, _HEADER.size)
    except struct.error as error:
        raise DecodeError("an OBJREF that is cut off") from error


def _head(flags: int, iid: UUID) -> bytes:
    return _HEADER.pack(SIGNATURE, flags, iid.bytes_le)


def _read_standard(iid: UUID, octets: bytes, offset: int) -> ObjRefStandard:
    std = StdObjRef(*_STD.unpack_from(octets, offset))
    return ObjRefStandard(iid, std, DualStringArray.unpack(octets, offset + _STD.size)[0])


def _read_handler(iid: UUID, octets: bytes, offset: int) -> ObjRefHandler:
    std = StdObjRef(*_STD.unpack_from(octets, offset))
    offset += _STD.size
    clsid = UUID(bytes_le=struct.unpack_from("16s", octets, offset)[0])
    return ObjRefHandler(iid, std, clsid, DualStringArray.unpack(octets, offset + 16)[0])


def _read_custom(iid: UUID, octets: bytes, offset: int) -> ObjRefCustom:
    """The data is all octets that follow; cbExtension and the reserved field are ignored."""
    clsid, _, _ = _CUSTOM.unpack_from(octets, offset)
    return ObjRefCustom(iid, UUID(bytes_le=clsid), octets[offset + _CUSTOM.size :])


def _read_extended(iid: UUID, octets: bytes, offset: int) -> ObjRefExtended:
    std = StdObjRef(*_STD.unpack_from(octets, offset))
    offset += _STD.size
    (first,) = struct.unpack_from("<I", octets, offset)
    bindings, offset = DualStringArray.unpack(octets, offset + 4)
    count, second = _EXTENDED.unpack_from(octets, offset)
    if first != SIGNATURE_EXTENDED or second != SIGNATURE_EXTENDED or count != 1:
        raise DecodeError("an OBJREF_EXTENDED without its signatures", offset)
    data_id, size, rounded = _ELEMENT.unpack_from(octets, offset + _EXTENDED.size)
    start = offset + _EXTENDED.size + _ELEMENT.size
    if size == 0 or rounded != size + -size % 8 or start + rounded > len(octets):
        raise DecodeError("an envoy context with a wrong size", start)
    data = octets[start : start + size]
    return ObjRefExtended(iid, std, bindings, UUID(bytes_le=data_id), data)


_READERS: dict[int, Callable[[UUID, bytes, int], ObjRef]] = {
    1: _read_standard,
    2: _read_handler,
    4: _read_custom,
    8: _read_extended,
}
