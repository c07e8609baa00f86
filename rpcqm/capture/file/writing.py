"""Writes connections as a pcapng file: the frames that would have carried their octets."""

import ipaddress
import struct
from typing import IO

from rpcqm.capture.frames.numbers import LinkType

_SECTION = struct.Struct("<IHHq")
_INTERFACE = struct.Struct("<HHI")
_RESOLUTION = struct.Struct("<HHB3xHH")
_PACKET = struct.Struct("<IIIII")
_BLOCK = struct.Struct("<II")
_LENGTH = struct.Struct("<I")
_TCP = struct.Struct("!HHIIBBHHH")
_SECTION_HEADER, _INTERFACE_DESCRIPTION, _ENHANCED_PACKET = 0x0A0D0D0A, 1, 6
_SYN, _ACK, _FIN = 2, 16, 1
_SEGMENT = 32_000
"""Octets of one frame at most: an IP packet has room for 65,535, headers among them."""
_WINDOW = 65535
_MASK = 0xFFFFFFFF

Address = tuple[str, int]

LOCAL_SOCKET = ("127.200.0.1", 1)
"""The address that stands for the server's end of a local socket; no host has it."""
LOCAL_CLIENT = "127.200.0.2"
"""What stands for the other ends, each with a port of its own."""


class CaptureWriter:
    """A pcapng file of raw IP packets; times are nanoseconds since 1970."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._write(_SECTION_HEADER, _SECTION.pack(0x1A2B3C4D, 1, 0, -1))
        described = _INTERFACE.pack(LinkType.RAW, 0, 0) + _RESOLUTION.pack(9, 1, 9, 0, 0)
        self._write(_INTERFACE_DESCRIPTION, described)

    def _write(self, kind: int, body: bytes) -> None:
        body += bytes(-len(body) % 4)
        length = 12 + len(body)
        self._file.write(_BLOCK.pack(kind, length) + body + _LENGTH.pack(length))

    def packet(self, time: int, octets: bytes) -> None:
        """One IP packet."""
        head = _PACKET.pack(0, time >> 32, time & _MASK, len(octets), len(octets))
        self._write(_ENHANCED_PACKET, head + octets)

    def connection(self, time: int, client: Address, server: Address) -> "WrittenConnection":
        """Begin a connection, as its three-way handshake would have done."""
        return WrittenConnection(self, time, client, server)


class WrittenConnection:
    """One connection in a capture: what each side sends is appended in order."""

    def __init__(self, writer: CaptureWriter, time: int, client: Address, server: Address) -> None:
        self._writer = writer
        self._sides = client, server
        self._next = [1, 1]
        self._send(time, 0, b"", _SYN, 0)
        self._send(time, 1, b"", _SYN | _ACK, 0)

    def client_sent(self, time: int, octets: bytes) -> None:
        self._data(time, 0, octets)

    def server_sent(self, time: int, octets: bytes) -> None:
        self._data(time, 1, octets)

    def close(self, time: int) -> None:
        self._send(time, 0, b"", _FIN | _ACK)
        self._send(time, 1, b"", _FIN | _ACK)

    def _data(self, time: int, side: int, octets: bytes) -> None:
        for start in range(0, len(octets), _SEGMENT):
            piece = octets[start : start + _SEGMENT]
            self._send(time, side, piece, _ACK)
            self._next[side] = (self._next[side] + len(piece)) & _MASK

    def _send(self, time: int, side: int, data: bytes, flags: int, seq: int | None = None) -> None:
        (source, source_port), (target, target_port) = self._sides[side], self._sides[1 - side]
        number = self._next[side] if seq is None else seq
        ack = self._next[1 - side] if flags & _ACK else 0
        head = _TCP.pack(source_port, target_port, number, ack, 0x50, flags, _WINDOW, 0, 0)
        self._writer.packet(time, _ip(source, target, head + data))


def _ip(source: str, target: str, body: bytes) -> bytes:
    """An IP packet without checksums, which readers do not ask of captures."""
    one, other = ipaddress.ip_address(source), ipaddress.ip_address(target)
    addresses = one.packed + other.packed
    if one.version == 4:
        total = 20 + len(body)
        return struct.pack("!BBHHHBBH", 0x45, 0, total, 0, 0x4000, 64, 6, 0) + addresses + body
    return struct.pack("!IHBB", 0x60000000, len(body), 6, 64) + addresses + body
