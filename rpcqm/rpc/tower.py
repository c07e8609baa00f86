"""Protocol towers: how the endpoint mapper names an interface at an address ([C706] appendix L)."""

import ipaddress
import struct
from dataclasses import dataclass
from typing import Self

from rpcqm.base.errors import DecodeError
from rpcqm.rpc.pdu import SyntaxId, unpack_uuid

MAXIMUM_FLOORS = 6
"""Towers with more floors are refused ([MS-RPCE] 3.1.3.5.3)."""

# Protocol identifiers of floors ([C706] appendix I).
UUID_FLOOR = 0x0D
RPC_CONNECTION_ORIENTED = 0x0B
DOD_TCP = 0x07
DOD_IP = 0x09

_COUNT = struct.Struct("<H")
_UUID_AND_MAJOR = struct.Struct("<16sH")


@dataclass(frozen=True, slots=True)
class Floor:
    """One protocol: its identifier, what belongs to it (`left`), and its address (`right`)."""

    protocol: int
    left: bytes
    right: bytes

    def pack(self) -> bytes:
        left = bytes([self.protocol]) + self.left
        return _COUNT.pack(len(left)) + left + _COUNT.pack(len(self.right)) + self.right


@dataclass(frozen=True, slots=True)
class Tower:
    """An interface in a transfer syntax over the floors below: protocol, port, host."""

    interface: SyntaxId
    transfer_syntax: SyntaxId
    floors: tuple[Floor, ...]

    @property
    def protocols(self) -> tuple[int, ...]:
        """The identifiers of the floors below the first two."""
        return tuple(floor.protocol for floor in self.floors)

    @property
    def tcp_port(self) -> int | None:
        """The TCP port that the tower names."""
        for floor in self.floors:
            if floor.protocol == DOD_TCP and len(floor.right) == 2:
                return int.from_bytes(floor.right, "big")
        return None

    def pack(self) -> bytes:
        floors = (_syntax_floor(self.interface), _syntax_floor(self.transfer_syntax), *self.floors)
        return _COUNT.pack(len(floors)) + b"".join(floor.pack() for floor in floors)

    @classmethod
    def unpack(cls, octets: bytes) -> Self:
        """Read a tower; raises DecodeError if it is not the tower of an interface."""
        (count,) = _read(_COUNT, octets, 0)
        if not 2 <= count <= MAXIMUM_FLOORS:
            raise DecodeError(f"a tower of {count} floors", 0)
        offset, floors = _COUNT.size, []
        for _ in range(count):
            floor, offset = _read_floor(octets, offset)
            floors.append(floor)
        return cls(_syntax_of(floors[0]), _syntax_of(floors[1]), tuple(floors[2:]))


def tcp_tower(interface: SyntaxId, transfer_syntax: SyntaxId, host: str, port: int) -> Tower:
    """The tower of ncacn_ip_tcp; a host name or an IPv6 address becomes 0.0.0.0."""
    try:
        address = ipaddress.IPv4Address(host).packed
    except ValueError:  # a floor has room for an IPv4 address only
        address = bytes(4)
    return Tower(
        interface,
        transfer_syntax,
        (
            Floor(RPC_CONNECTION_ORIENTED, b"", bytes(2)),
            Floor(DOD_TCP, b"", port.to_bytes(2, "big")),
            Floor(DOD_IP, b"", address),
        ),
    )


def _syntax_floor(syntax: SyntaxId) -> Floor:
    left = _UUID_AND_MAJOR.pack(syntax.uuid.bytes_le, syntax.major)
    return Floor(UUID_FLOOR, left, _COUNT.pack(syntax.minor))


def _syntax_of(floor: Floor) -> SyntaxId:
    if floor.protocol != UUID_FLOOR or len(floor.left) != 18 or len(floor.right) != 2:
        raise DecodeError("a tower that does not begin with an interface and a syntax")
    octets, major = _UUID_AND_MAJOR.unpack(floor.left)
    return SyntaxId(unpack_uuid(octets), major, _COUNT.unpack(floor.right)[0])


def _read_floor(octets: bytes, offset: int) -> tuple[Floor, int]:
    left, offset = _read_counted(octets, offset)
    right, offset = _read_counted(octets, offset)
    if not left:
        raise DecodeError("a floor without a protocol", offset)
    return Floor(left[0], left[1:], right), offset


def _read_counted(octets: bytes, offset: int) -> tuple[bytes, int]:
    (count,) = _read(_COUNT, octets, offset)
    start, end = offset + _COUNT.size, offset + _COUNT.size + count
    if end > len(octets):
        raise DecodeError("a tower cut short", offset)
    return bytes(octets[start:end]), end


def _read(layout: struct.Struct, octets: bytes, offset: int) -> tuple[int, ...]:
    if offset + layout.size > len(octets):
        raise DecodeError("a tower cut short", offset)
    return layout.unpack_from(octets, offset)
