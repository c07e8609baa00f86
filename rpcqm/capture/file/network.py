"""Link and network layers: where the IP packet of a frame is, and what it carries."""

import ipaddress
import struct
from collections import OrderedDict
from collections.abc import Callable

from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.record import LinkType

TCP = 6
NO_PACKET = -1

_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN_TAGS = frozenset({0x8100, 0x88A8, 0x9100})
_INET6_FAMILIES = frozenset({10, 24, 28, 30})
_INET = 2
_ROUTING_AND_OPTIONS = frozenset({0, 43, 60, 135})
_FRAGMENT, _AUTHENTICATION = 44, 51
_MAXIMUM_EXTENSIONS = 16
"""Real packets have two or three; more are an attempt to keep the reader busy."""
_MAXIMUM_DATAGRAMS = 256
"""How many packets may wait for fragments, so that forged ones cannot fill memory."""
_MAXIMUM_DATAGRAM = 65535

_FIXED_4 = struct.Struct("!BxHHHxB2x8s")
_FIXED_6 = struct.Struct("!IHBx32s")

Payload = tuple[int, bytes, bytes, int]
"""Protocol, both addresses, what was captured, and how long it was on the wire."""


def _ethernet(data: bytes) -> int:
    return _behind_type(data, 12)


def _behind_type(data: bytes, at: int) -> int:
    """Behind an EtherType at `at`, and any VLAN tags."""
    while at + 2 <= len(data):
        kind = data[at] << 8 | data[at + 1]
        if kind in _VLAN_TAGS:
            at += 4
        else:
            return at + 2 if kind in (_IPV4, _IPV6) else NO_PACKET
    return NO_PACKET


def _cooked(data: bytes) -> int:
    return _behind_type(data, 14)


def _cooked_2(data: bytes) -> int:
    if len(data) < 20:
        return NO_PACKET
    kind = data[0] << 8 | data[1]
    if kind in _VLAN_TAGS:
        return _behind_type(data, 22)
    return 20 if kind in (_IPV4, _IPV6) else NO_PACKET


def _family(data: bytes) -> int:
    """Behind the address family of the loopback types, in whichever byte order."""
    little, big = int.from_bytes(data[:4], "little"), int.from_bytes(data[:4], "big")
    families = {little, big}
    return 4 if _INET in families or families & _INET6_FAMILIES else NO_PACKET


def _raw(data: bytes) -> int:
    return 0


PACKET_OFFSETS: dict[int, Callable[[bytes], int]] = {
    LinkType.NULL: _family,
    LinkType.ETHERNET: _ethernet,
    LinkType.RAW_BSD: _raw,
    LinkType.RAW_OPENBSD: _raw,
    LinkType.RAW: _raw,
    LinkType.LOOP: _family,
    LinkType.LINUX_SLL: _cooked,
    LinkType.IPV4: _raw,
    LinkType.IPV6: _raw,
    LinkType.LINUX_SLL2: _cooked_2,
}
"""For each link type that is understood: where a frame's IP packet is, or NO_PACKET."""


class _Datagram:
    """The fragments of one IP packet."""

    __slots__ = ("parts", "received", "total")

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}
        self.received = 0
        self.total: int | None = None

    def add(self, start: int, data: bytes, last: bool) -> bytes | None:
        """Add a fragment; returns the whole payload once no octet of it is missing."""
        if start + len(data) > _MAXIMUM_DATAGRAM:
            return None
        if len(self.parts.get(start, b"")) < len(data):
            self.received += len(data) - len(self.parts.get(start, b""))
            self.parts[start] = data
        if last:
            self.total = start + len(data)
        if self.total is None or self.received < self.total:
            return None
        return self._joined(self.total)

    def _joined(self, total: int) -> bytes | None:
        whole = bytearray()
        for start in sorted(self.parts):
            if start > len(whole):
                return None
            part = self.parts[start]
            if start + len(part) > len(whole):
                whole += part[len(whole) - start :]
        return bytes(whole[:total]) if len(whole) >= total else None


class Network:
    """Finds what the IP packets of frames carry, and puts fragments together."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._datagrams: OrderedDict[tuple[bytes, int, int], _Datagram] = OrderedDict()
        self._unknown_links: set[int] = set()

    def payload(self, link: int, data: bytes, offset: int) -> Payload | None:
        """The payload of the IP packet in a frame; None without IP, or for a damaged packet."""
        locate = PACKET_OFFSETS.get(link)
        if locate is None:
            self._unknown_link(link, offset)
            return None
        at = locate(data)
        if at < 0 or at >= len(data):
            return None
        version = data[at] >> 4
        if version == 4:
            return self._version_4(data, at, offset)
        if version == 6:
            return self._version_6(data, at, offset)
        self._problems.add("network", offset, f"an IP packet of version {version}")
        return None

    def _unknown_link(self, link: int, offset: int) -> None:
        if link not in self._unknown_links:
            self._unknown_links.add(link)
            self._problems.add("link type", offset, f"frames of link type {link} are not read")
        else:
            self._problems.counts["link type"] += 1

    def _version_4(self, data: bytes, at: int, offset: int) -> Payload | None:
        header = (data[at] & 15) * 4
        if header < 20 or at + header > len(data):
            self._problems.add("network", offset, "an IPv4 header is cut short")
            return None
        _, total, identifier, fragment, protocol, addresses = _FIXED_4.unpack_from(data, at)
        # Segmentation by the network card leaves 0 here.
        total = total or len(data) - at
        body = data[at + header : at + total]
        if fragment & 0x3FFF:
            start, last = (fragment & 0x1FFF) * 8, not fragment & 0x2000
            return self._fragment(protocol, addresses, identifier, start, body, last)
        return protocol, addresses, body, max(total - header, 0)

    def _version_6(self, data: bytes, at: int, offset: int) -> Payload | None:
        if at + 40 > len(data):
            self._problems.add("network", offset, "an IPv6 header is cut short")
            return None
        _, length, protocol, addresses = _FIXED_6.unpack_from(data, at)
        length = length or len(data) - at - 40
        return self._behind_extensions(data, at + 40, length, protocol, addresses)

    def _behind_extensions(
        self, data: bytes, at: int, length: int, protocol: int, addresses: bytes
    ) -> Payload | None:
        end = at + length
        for _ in range(_MAXIMUM_EXTENSIONS):
            if protocol == _FRAGMENT and at + 8 <= len(data):
                place = data[at + 2] << 8 | data[at + 3]
                identifier = int.from_bytes(data[at + 4 : at + 8], "big")
                body, last = data[at + 8 : end], not place & 1
                start = place & 0xFFF8
                return self._fragment(data[at], addresses, identifier, start, body, last)
            size = _extension_size(data, at, protocol)
            if not size:
                return protocol, addresses, data[at:end], max(end - at, 0)
            protocol, at = data[at], at + size
        return None

    def _fragment(
        self,
        protocol: int,
        addresses: bytes,
        identifier: int,
        start: int,
        body: bytes,
        last: bool,
    ) -> Payload | None:
        key = addresses, identifier, protocol
        datagram = self._datagrams.setdefault(key, _Datagram())
        whole = datagram.add(start, body, last)
        if whole is not None:
            del self._datagrams[key]
            return protocol, addresses, whole, len(whole)
        if len(self._datagrams) > _MAXIMUM_DATAGRAMS:
            self._datagrams.popitem(last=False)
            self._problems.add("network", 0, "an IP packet whose fragments are not all there")
        return None

    def finish(self) -> None:
        """Tell what was never completed."""
        for _ in self._datagrams:
            self._problems.add("network", 0, "an IP packet whose fragments are not all there")
        self._datagrams.clear()


def _extension_size(data: bytes, at: int, protocol: int) -> int:
    """The octets of an IPv6 extension header; 0 if the protocol is not one."""
    if at + 2 > len(data):
        return 0
    if protocol in _ROUTING_AND_OPTIONS:
        return (data[at + 1] + 1) * 8
    return (data[at + 1] + 2) * 4 if protocol == _AUTHENTICATION else 0


def address_text(address: bytes, port: int) -> str:
    """`192.0.2.1:1801` or `[2001:db8::1]:1801`."""
    if len(address) == 4:
        return f"{address[0]}.{address[1]}.{address[2]}.{address[3]}:{port}"
    found = ipaddress.IPv6Address(address)
    return f"{found.ipv4_mapped}:{port}" if found.ipv4_mapped else f"[{found}]:{port}"
