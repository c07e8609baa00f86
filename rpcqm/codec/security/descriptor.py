"""Security descriptors in self-relative form: who owns an object and who may do what with it.

The text form is in `sddl`, the decision in `access_check`.
"""

import enum
import struct
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.codec.layout import Buffer, padded, require, take
from rpcqm.codec.security.identifier import Sid

_ACE_HEADER = struct.Struct("<BBH")
_ACL_HEADER = struct.Struct("<BBHHH")
_DESCRIPTOR_HEADER = struct.Struct("<BBHIIII")
_ACL_SIZE_AT_MOST = 0xFFFF


class SecurityInformation(enum.IntFlag):
    """Which parts of a descriptor a call is about ([MS-MQMQ] 2.2.3)."""

    OWNER_SECURITY_INFORMATION = 0x00000001
    GROUP_SECURITY_INFORMATION = 0x00000002
    DACL_SECURITY_INFORMATION = 0x00000004
    SACL_SECURITY_INFORMATION = 0x00000008


OWNER_GROUP_AND_DACL = (
    SecurityInformation.OWNER_SECURITY_INFORMATION
    | SecurityInformation.GROUP_SECURITY_INFORMATION
    | SecurityInformation.DACL_SECURITY_INFORMATION
)


class AceType(enum.IntEnum):
    """[MS-DTYP] 2.4.4.1 AceType."""

    ACCESS_ALLOWED_ACE_TYPE = 0x00
    ACCESS_DENIED_ACE_TYPE = 0x01
    SYSTEM_AUDIT_ACE_TYPE = 0x02
    SYSTEM_ALARM_ACE_TYPE = 0x03
    ACCESS_ALLOWED_COMPOUND_ACE_TYPE = 0x04
    ACCESS_ALLOWED_OBJECT_ACE_TYPE = 0x05
    ACCESS_DENIED_OBJECT_ACE_TYPE = 0x06
    SYSTEM_AUDIT_OBJECT_ACE_TYPE = 0x07
    SYSTEM_ALARM_OBJECT_ACE_TYPE = 0x08
    ACCESS_ALLOWED_CALLBACK_ACE_TYPE = 0x09
    ACCESS_DENIED_CALLBACK_ACE_TYPE = 0x0A
    ACCESS_ALLOWED_CALLBACK_OBJECT_ACE_TYPE = 0x0B
    ACCESS_DENIED_CALLBACK_OBJECT_ACE_TYPE = 0x0C
    SYSTEM_AUDIT_CALLBACK_ACE_TYPE = 0x0D
    SYSTEM_ALARM_CALLBACK_ACE_TYPE = 0x0E
    SYSTEM_AUDIT_CALLBACK_OBJECT_ACE_TYPE = 0x0F
    SYSTEM_ALARM_CALLBACK_OBJECT_ACE_TYPE = 0x10
    SYSTEM_MANDATORY_LABEL_ACE_TYPE = 0x11
    SYSTEM_RESOURCE_ATTRIBUTE_ACE_TYPE = 0x12
    SYSTEM_SCOPED_POLICY_ID_ACE_TYPE = 0x13


class AceFlags(enum.IntFlag):
    """[MS-DTYP] 2.4.4.1 AceFlags."""

    OBJECT_INHERIT_ACE = 0x01
    CONTAINER_INHERIT_ACE = 0x02
    NO_PROPAGATE_INHERIT_ACE = 0x04
    INHERIT_ONLY_ACE = 0x08
    INHERITED_ACE = 0x10
    SUCCESSFUL_ACCESS_ACE_FLAG = 0x40
    FAILED_ACCESS_ACE_FLAG = 0x80


class Control(enum.IntFlag):
    """[MS-DTYP] 2.4.6 Control, from its least significant bit."""

    OD = 0x0001
    GD = 0x0002
    DP = 0x0004
    DD = 0x0008
    SP = 0x0010
    SD = 0x0020
    DT = 0x0040
    SS = 0x0080
    DC = 0x0100
    SC = 0x0200
    DI = 0x0400
    SI = 0x0800
    PD = 0x1000
    PS = 0x2000
    RM = 0x4000
    SR = 0x8000


_OBJECT_TYPES = frozenset({0x05, 0x06, 0x07, 0x0B, 0x0C, 0x0F})
_RESERVED_TYPES = frozenset({0x03, 0x04, 0x08, 0x0E, 0x10})
_KNOWN_TYPES = frozenset(AceType)


@dataclass(frozen=True, slots=True)
class Ace:
    """One entry of an access control list ([MS-DTYP] 2.4.4).

    `sid` is None for the types without a published layout, whose bytes are kept in `data`;
    otherwise `data` is what follows the SID: padding, a condition or an attribute.
    """

    type: int
    flags: int = 0
    mask: int = 0
    sid: Sid | None = None
    object_type: UUID | None = None
    inherited_object_type: UUID | None = None
    data: bytes = b""

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> tuple[Self, int]:
        """Read one entry, and return the offset behind it; raises DecodeError if it is damaged."""
        require(buffer, offset, _ACE_HEADER.size, "ACE")
        kind, flags, size = _ACE_HEADER.unpack_from(buffer, offset)
        if size < _ACE_HEADER.size or size % 4:
            raise DecodeError(f"ACE of {size} bytes", offset)
        raw = take(buffer, offset, size, "ACE")
        if kind in _RESERVED_TYPES or kind not in _KNOWN_TYPES:
            return cls(kind, flags, data=raw[4:]), offset + size
        return cls._decode_body(kind, flags, raw), offset + size

    @classmethod
    def _decode_body(cls, kind: int, flags: int, raw: bytes) -> Self:
        require(raw, 4, 4, "access mask")
        mask = int.from_bytes(raw[4:8], "little")
        position = 8
        types: list[UUID | None] = [None, None]
        if kind in _OBJECT_TYPES:
            present = int.from_bytes(take(raw, 8, 4, "ACE object flags"), "little")
            position = 12
            for index in range(2):
                if present >> index & 1:
                    types[index] = UUID(bytes_le=take(raw, position, 16, "ACE object type"))
                    position += 16
        sid = Sid.decode(raw, position)
        position += sid.encoded_size
        return cls(kind, flags, mask, sid, types[0], types[1], raw[position:])

    def encode(self) -> bytes:
        """The entry's bytes, a multiple of four."""
        body = padded(self._encode_body())
        return _ACE_HEADER.pack(self.type, self.flags, 4 + len(body)) + body

    def _encode_body(self) -> bytes:
        if self.sid is None:
            return self.data
        parts = [self.mask.to_bytes(4, "little")]
        if self.type in _OBJECT_TYPES:
            guids = (self.object_type, self.inherited_object_type)
            present = sum(1 << index for index, guid in enumerate(guids) if guid)
            parts.append(present.to_bytes(4, "little"))
            parts.extend(guid.bytes_le for guid in guids if guid)
        return b"".join((*parts, self.sid.encode(), self.data))


@dataclass(frozen=True, slots=True)
class Acl:
    """An access control list, its entries in the order in which they are looked at.

    Source: [MS-DTYP] 2.4.5. `revision` is 2, or 4 when entries for directory objects occur.
    """

    aces: tuple[Ace, ...] = ()
    revision: int = 2

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> Self:
        """Read a list; raises DecodeError if it is damaged."""
        require(buffer, offset, _ACL_HEADER.size, "ACL")
        revision, _, size, count, _ = _ACL_HEADER.unpack_from(buffer, offset)
        if revision not in (2, 4) or size < _ACL_HEADER.size:
            raise DecodeError(f"ACL of revision {revision} with {size} bytes", offset)
        raw = take(buffer, offset, size, "ACL")
        position, aces = _ACL_HEADER.size, []
        for _ in range(count):
            ace, position = Ace.decode(raw, position)
            aces.append(ace)
        return cls(tuple(aces), revision)

    def encode(self) -> bytes:
        """The list's bytes.

        Raises MQError(MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR) if they are more than AclSize can
        tell (65535).
        """
        body = b"".join(ace.encode() for ace in self.aces)
        size = _ACL_HEADER.size + len(body)
        if size > _ACL_SIZE_AT_MOST:
            raise MQError(
                HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR,
                f"an access control list of {size} bytes is too long",
            )
        return _ACL_HEADER.pack(self.revision, 0, size, len(self.aces), 0) + body


@dataclass(frozen=True, slots=True)
class SecurityDescriptor:
    """Owner, group and the two access control lists of an object ([MS-DTYP] 2.4.6).

    `dacl` is None where the descriptor has none, which lets everybody do everything; an empty
    list lets nobody. `control` holds the flags that do not follow from the other attributes.
    """

    owner: Sid | None = None
    group: Sid | None = None
    sacl: Acl | None = None
    dacl: Acl | None = None
    control: int = 0
    resource_manager_control: int = 0

    @classmethod
    def decode(cls, buffer: Buffer) -> Self:
        """Read the self-relative form; raises DecodeError if it is damaged."""
        require(buffer, 0, _DESCRIPTOR_HEADER.size, "security descriptor")
        revision, sbz1, control, *offsets = _DESCRIPTOR_HEADER.unpack_from(buffer)
        if revision != 1 or not control & Control.SR:
            raise DecodeError("security descriptor is not self-relative of revision 1", 0)
        for offset in offsets:
            if 0 < offset < _DESCRIPTOR_HEADER.size:
                raise DecodeError("part of a security descriptor overlaps its header", offset)
        owner, group, sacl, dacl = offsets
        return cls(
            Sid.decode(buffer, owner) if owner else None,
            Sid.decode(buffer, group) if group else None,
            Acl.decode(buffer, sacl) if sacl and control & Control.SP else None,
            Acl.decode(buffer, dacl) if dacl and control & Control.DP else None,
            control & ~int(Control.SR),
            sbz1,
        )

    def encode(self) -> bytes:
        """The self-relative form: header, SACL, DACL, owner, group."""
        control = int(self.control | Control.SR)
        control |= Control.SP if self.sacl else 0
        control |= Control.DP if self.dacl else 0
        position, offsets, body = _DESCRIPTOR_HEADER.size, [], []
        for part in (self.sacl, self.dacl, self.owner, self.group):
            raw = part.encode() if part else b""
            offsets.append(position if raw else 0)
            body.append(raw)
            position += len(raw)
        sacl, dacl, owner, group = offsets
        head = _DESCRIPTOR_HEADER.pack(
            1, self.resource_manager_control, control, owner, group, sacl, dacl
        )
        return head + b"".join(body)

    def replaced(self, other: "SecurityDescriptor", parts: int) -> "SecurityDescriptor":
        """A copy in which the `parts` (SecurityInformation) are those of `other`."""
        flags = sum(flag for part, flag in _CONTROL_OF.items() if parts & part)

        def source(part: SecurityInformation) -> "SecurityDescriptor":
            return other if parts & part else self

        return SecurityDescriptor(
            source(SecurityInformation.OWNER_SECURITY_INFORMATION).owner,
            source(SecurityInformation.GROUP_SECURITY_INFORMATION).group,
            source(SecurityInformation.SACL_SECURITY_INFORMATION).sacl,
            source(SecurityInformation.DACL_SECURITY_INFORMATION).dacl,
            self.control & ~flags | other.control & flags,
            self.resource_manager_control,
        )

    def selected(self, parts: int) -> "SecurityDescriptor":
        """A copy with only the `parts` (SecurityInformation) of this descriptor."""
        return SecurityDescriptor().replaced(self, parts)


_CONTROL_OF = {
    SecurityInformation.OWNER_SECURITY_INFORMATION: int(Control.OD),
    SecurityInformation.GROUP_SECURITY_INFORMATION: int(Control.GD),
    SecurityInformation.DACL_SECURITY_INFORMATION: int(
        Control.DP | Control.DD | Control.DT | Control.SS | Control.DC | Control.DI | Control.PD
    ),
    SecurityInformation.SACL_SECURITY_INFORMATION: int(
        Control.SP | Control.SD | Control.SC | Control.SI | Control.PS
    ),
}


def parts_of(descriptor: SecurityDescriptor) -> SecurityInformation:
    """Which parts a descriptor has; the list that lets in everybody is one, too."""
    present = {
        SecurityInformation.OWNER_SECURITY_INFORMATION: descriptor.owner,
        SecurityInformation.GROUP_SECURITY_INFORMATION: descriptor.group,
        SecurityInformation.DACL_SECURITY_INFORMATION: descriptor.dacl,
        SecurityInformation.SACL_SECURITY_INFORMATION: descriptor.sacl,
    }
    parts = SecurityInformation(0)
    for part, value in present.items():
        if value is not None:
            parts |= part
    if descriptor.control & Control.DP:
        parts |= SecurityInformation.DACL_SECURITY_INFORMATION
    return parts
