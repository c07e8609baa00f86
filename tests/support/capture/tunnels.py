"""Frames of every kind around an IP packet, made by hand as the specifications draw them."""

import random
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping

from tests.support.capture.captures import TIME, ethernet

Wrap = Callable[[bytes], bytes]

_NEAR = bytes([198, 51, 100, 1, 198, 51, 100, 2])
"""The addresses of both ends of a tunnel."""
_NEAR_6 = bytes.fromhex("20010db8" + "00" * 11 + "01" + "20010db8" + "00" * 11 + "02")


def _numbers(*words: int) -> bytes:
    return struct.pack(f"!{len(words)}H", *words)


def type_of(packet: bytes) -> int:
    return 0x0800 if packet[0] >> 4 == 4 else 0x86DD


def plain(packet: bytes) -> bytes:
    return ethernet(packet, type_of(packet))


def inner(packet: bytes) -> bytes:
    """A frame whose addresses are those of real network cards."""
    return bytes.fromhex("001b21aabb01001b21aabb02") + plain(packet)[12:]


def outer(protocol: int, body: bytes, options: bytes = b"") -> bytes:
    """An IPv4 packet from one end of a tunnel to the other."""
    head = 20 + len(options)
    fixed = (0x40 + head // 4, 0, head + len(body), zlib.crc32(body) & 0xFFFF, 0, 64, protocol, 0)
    return struct.pack("!BBHHHBBH", *fixed) + _NEAR + options + body


def outer_6(protocol: int, body: bytes) -> bytes:
    return struct.pack("!IHBB", 6 << 28, len(body), protocol, 64) + _NEAR_6 + body


def udp(port: int, body: bytes) -> bytes:
    """The port of the sender tells flows apart, as tunnels do."""
    return outer(
        17, _numbers(49152 + zlib.crc32(body[40:80]) % 9999, port, 8 + len(body), 0) + body
    )


def gre(flags: int, kind: int, body: bytes, more: bytes = b"") -> bytes:
    return outer(47, _numbers(flags, kind) + more + body)


def _tags(*tags: int) -> Wrap:
    def wrap(packet: bytes) -> bytes:
        tagged = b"".join(_numbers(tag, 0x2000 + n) for n, tag in enumerate(tags))
        return bytes(12) + tagged + plain(packet)[12:]

    return wrap


def _labels(*labels: int) -> bytes:
    last = len(labels) - 1
    return b"".join(
        struct.pack("!I", label << 12 | (n == last) << 8 | 64) for n, label in enumerate(labels)
    )


def _ppp(packet: bytes) -> bytes:
    return _numbers(0x21 if packet[0] >> 4 == 4 else 0x57) + packet


def _session(body: bytes) -> bytes:
    return ethernet(struct.pack("!BBHH", 0x11, 0, 7, len(body)) + body, 0x8864)


def _geneve(kind: int, body: bytes, options: bytes = b"") -> bytes:
    head = struct.pack("!BBHI", len(options) // 4, 0, kind, 0x123400)
    return plain(udp(6081, head + options + body))


def _vxlan(body: bytes, port: int = 4789) -> bytes:
    return plain(udp(port, struct.pack("!II", 0x08000000, 0x123400) + body))


def _llc(body: bytes) -> bytes:
    return bytes(12) + _numbers(len(body)) + body


_ROUTES = struct.pack("!HHBB4s", 0, 0x0800, 0, 4, bytes(4))[2:] + bytes(4)
_ERSPAN_2 = struct.pack("!HHI", 0x1005, 0x0801, 3)
_EXTENSIONS = bytes([43, 0, *bytes(6)]) + bytes([60, 1, *bytes(14)])


def _erspan_3(kind: int, further: bool) -> bytes:
    head = struct.pack("!HHIHH", 0x2005, 1, 99, 0, kind << 10 | further)
    return head + bytes(8 * further)


def _with_extensions(packet: bytes) -> bytes:
    """4in6 or 6in6 behind extension headers, the last of which is for authentication."""
    protocol = 4 if packet[0] >> 4 == 4 else 41
    authentication = bytes([protocol, 4]) + bytes(22)
    return plain(outer_6(0, _EXTENSIONS + bytes([51, 0, *bytes(6)]) + authentication + packet))


def _in_ip(packet: bytes) -> int:
    return 4 if packet[0] >> 4 == 4 else 41


WRAPS: Mapping[str, Wrap] = {
    "plain": plain,
    "VLAN": _tags(0x8100),
    "QinQ": _tags(0x88A8, 0x8100),
    "40 tags": _tags(*[0x9100] * 40),
    "LLC and SNAP": lambda p: _llc(bytes.fromhex("aaaa03000000") + _numbers(type_of(p)) + p),
    "LLC in a VLAN": lambda p: (
        bytes(12)
        + _numbers(0x8100, 5)
        + _llc(bytes.fromhex("aaaa03000000") + _numbers(type_of(p)) + p)[12:]
    ),
    "bridged in SNAP": lambda p: _llc(bytes.fromhex("aaaa030080c200070000") + inner(p)),
    "MPLS": lambda p: ethernet(_labels(100) + p, 0x8847),
    "MPLS of three labels": lambda p: ethernet(_labels(100, 200, 300) + p, 0x8848),
    "MPLS with a control word": lambda p: ethernet(_labels(9) + bytes(4) + inner(p), 0x8847),
    "MPLS with numbered control words": lambda p: ethernet(
        _labels(9) + struct.pack("!I", zlib.crc32(p) & 0xFFFF) + inner(p), 0x8847
    ),
    "MPLS without a control word": lambda p: ethernet(_labels(9) + inner(p), 0x8847),
    "MPLS with addresses of zeros": lambda p: ethernet(_labels(9) + plain(p), 0x8847),
    "MPLS with other addresses": lambda p: ethernet(_labels(9) + b"\x9c" + inner(p)[1:], 0x8847),
    "MPLS in IP": lambda p: plain(outer(137, _labels(5, 6) + p)),
    "MPLS in UDP": lambda p: plain(udp(6635, _labels(5) + p)),
    "PPPoE": lambda p: _session(_ppp(p)),
    "PPPoE with a short protocol": lambda p: _session(_ppp(p)[1:]),
    "backbone": lambda p: ethernet(struct.pack("!I", 77) + inner(p), 0x88E7),
    "GRE": lambda p: plain(gre(0, type_of(p), p)),
    "GRE with a checksum": lambda p: plain(gre(0x8000, type_of(p), p, bytes(4))),
    "GRE with a key": lambda p: plain(gre(0x2000, 0x6558, inner(p), bytes(4))),
    "GRE with all": lambda p: plain(gre(0xF000, type_of(p), p, bytes(12) + _ROUTES)),
    "GRE with Ethernet": lambda p: plain(gre(0, 0x6558, inner(p))),
    "GRE over IPv6": lambda p: plain(outer_6(47, _numbers(0, type_of(p)) + p)),
    "GRE in UDP": lambda p: plain(udp(4754, _numbers(0, type_of(p)) + p)),
    "PPTP": lambda p: plain(gre(0x3081, 0x880B, b"\xff\x03" + _ppp(p), bytes(12))),
    "ERSPAN I": lambda p: plain(gre(0, 0x88BE, inner(p))),
    "ERSPAN II": lambda p: plain(gre(0x1000, 0x88BE, inner(p), bytes(4) + _ERSPAN_2)),
    "ERSPAN III": lambda p: plain(gre(0x1000, 0x22EB, inner(p), bytes(4) + _erspan_3(0, False))),
    "ERSPAN III with IP": lambda p: plain(gre(0x1000, 0x22EB, p, bytes(4) + _erspan_3(2, True))),
    "VXLAN": lambda p: _vxlan(inner(p)),
    "VXLAN of Linux": lambda p: _vxlan(inner(p), 8472),
    "VXLAN behind options": lambda p: plain(
        outer(17, udp(4789, b"\x08" + bytes(7) + inner(p))[20:], b"\x01" * 4)
    ),
    "VXLAN over IPv6": lambda p: plain(outer_6(17, udp(4789, b"\x08" + bytes(7) + inner(p))[20:])),
    "GENEVE": lambda p: _geneve(0x6558, inner(p)),
    "GENEVE with options": lambda p: _geneve(0x6558, inner(p), bytes(4 * (1 + p[-1] % 5))),
    "GENEVE with IP": lambda p: _geneve(type_of(p), p),
    "IP in IP": lambda p: plain(outer(_in_ip(p), p)),
    "IP in IPv6": lambda p: plain(outer_6(_in_ip(p), p)),
    "IPv6 extensions": _with_extensions,
    "EtherIP": lambda p: plain(outer(97, b"\x30\0" + inner(p))),
    "Ethernet in IPv6": lambda p: plain(outer_6(143, inner(p))),
    "VLAN in VXLAN in a VLAN": lambda p: _tags(0x8100)(_vxlan(_tags(0x88A8, 0x8100)(p))[14:]),
    "GENEVE in GRE in VXLAN": lambda p: _vxlan(plain(gre(0, 0x6558, _geneve(0x6558, inner(p))))),
    "IP without Ethernet": lambda p: p,
}
"""Ethernet frames around a packet."""

LINKS: Mapping[str, tuple[int, Wrap]] = {
    "BSD loopback": (0, lambda p: struct.pack("<I", 2 if p[0] >> 4 == 4 else 24) + p),
    "PPP": (9, lambda p: b"\xff\x03" + _ppp(p)),
    "PPPoE without Ethernet": (51, lambda p: _session(_ppp(p))[14:]),
    "raw": (101, lambda p: p),
    "Cisco HDLC": (104, lambda p: b"\x0f\0" + _numbers(type_of(p)) + p),
    "cooked": (113, lambda p: bytes(14) + _numbers(type_of(p)) + p),
    "cooked with GRE": (113, lambda p: _numbers(0, 778) + bytes(10) + _numbers(0x6558) + inner(p)),
    "MPLS without Ethernet": (219, lambda p: _labels(4) + p),
    "cooked v2": (276, lambda p: _numbers(type_of(p)) + bytes(18) + p),
}
"""Frames of other link types."""


def nested(packet: bytes, kinds: Iterable[str]) -> bytes:
    """An Ethernet frame with a packet in tunnels in one another, the innermost first."""
    frame = plain(packet)
    for kind in kinds:
        is_packet = frame[12:14] in (b"\x08\0", b"\x86\xdd")
        frame = WRAPS[kind](frame[14:] if is_packet else _vxlan(frame)[14:])
    return frame


def in_itself(times: int) -> bytes:
    """A frame in a tunnel in a tunnel…"""
    frame = plain(outer(6, bytes(20)))
    for _ in range(times):
        frame = _vxlan(frame)
    return frame


UNREAD: Mapping[str, tuple[int, bytes]] = {
    "Teredo": (1, plain(udp(3544, bytes(40)))),
    "L2TP": (1, plain(udp(1701, bytes(40)))),
    "IPsec ESP": (1, plain(outer(50, bytes(40)))),
    "IP protocol 200": (1, plain(outer(200, bytes(40)))),
    "MACsec": (1, ethernet(bytes(40), 0x88E5)),
    "EtherType 0x1234": (1, ethernet(bytes(40), 0x1234)),
    "compressed PPP": (1, _session(b"\0\xfd" + bytes(40))),
    "Wi-Fi (link type 127)": (127, bytes(40)),
    "NFLOG (link type 239)": (239, bytes(40)),
    "link type 147": (147, bytes(40)),
    "more than 32 layers": (1, in_itself(9)),
    "more than 256 tags in a row": (1, _tags(*[0x8100] * 300)(outer(6, bytes(20)))),
    "more than 256 labels in a row": (1, ethernet(bytes(4000), 0x8847)),
}
"""Frames of what is not read, by what is told of them."""


def pieces(packet: bytes, size: int, identifier: int) -> list[bytes]:
    """The fragments of an IP packet, without other options; of IPv4 or IPv6."""
    if packet[0] >> 4 == 4:
        head, body = packet[:20], packet[20:]
    else:
        head, body = packet[:40], packet[40:]
    size &= ~7
    starts = range(0, max(len(body), 1), size)
    return [
        _piece(head, body[at : at + size], at, at + size < len(body), identifier) for at in starts
    ]


def _piece(head: bytes, body: bytes, at: int, more: bool, identifier: int) -> bytes:
    if len(head) == 20:
        fixed = struct.pack("!HHH", 20 + len(body), identifier & 0xFFFF, more << 13 | at // 8)
        return head[:2] + fixed + head[8:] + body
    extension = struct.pack("!BBHI", head[6], 0, at | more, identifier)
    length = struct.pack("!H", 8 + len(body))
    return head[:4] + length + b"\x2c" + head[7:] + extension + body


def broken(
    frames: Iterable[bytes], size: int, outside: bool, rng: random.Random
) -> list[list[bytes]]:
    """Ethernet frames with IP packets, fragmented inside of a tunnel or outside of it."""
    made: list[list[bytes]] = []
    for number, frame in enumerate(frames):
        if outside:
            parts = [plain(each) for each in pieces(_vxlan(frame)[14:], size, number)]
        else:
            parts = [_vxlan(plain(each)) for each in pieces(frame[14:], size, number)]
        rng.shuffle(parts)
        made.append(parts)
    return made


def timed_pcap(groups: Iterable[Iterable[bytes]], link: int = 1) -> bytes:
    """A capture in which the frames of a group have one time, and groups a millisecond each."""
    out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, link)]
    for number, group in enumerate(groups):
        seconds, rest = divmod(TIME + number * 1_000_000, 1_000_000_000)
        for frame in group:
            out.append(struct.pack("<IIII", seconds, rest, len(frame), len(frame)) + frame)
    return b"".join(out)
