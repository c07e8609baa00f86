"""IP packets: their headers, extension headers and fragments, and what they carry."""

from rpcqm.capture.frames import numbers
from rpcqm.capture.frames.ends import OTHER, Damaged, End, Fragment, Segment, Unread
from rpcqm.capture.frames.numbers import LinkType
from rpcqm.capture.frames.octets import Octets
from rpcqm.capture.frames.steps import Place, step, step_to

_MOST_EXTENSIONS = 16
"""Real packets have two or three; more are an attempt to keep the reader busy."""


@step("IPv4", "with options, and in fragments")
def version_4(frame: Octets, at: int) -> Place:
    header = frame.number(at, 1, 15) * 4
    if header < 20:
        return Damaged(f"an IPv4 header of {header} octets")
    # Segmentation by the network card leaves 0 as the total length.
    total = frame.amount(at + 2, 2) or len(frame.data) - at
    place, protocol = frame.number(at + 6, 2, 0x3FFF), frame.number(at + 9, 1)
    addresses = frame.octets(at + 12, 8)
    begin, length = at + header, max(total - header, 0)
    if place:
        identifier = frame.number(at + 4, 2)
        start, more = (place & 0x1FFF) * 8, bool(place & 0x2000)
        holds = may_hold_tcp(frame, protocol, begin, start)
        return Fragment(addresses, identifier, protocol, start, more, begin, length, holds)
    return carried(frame, protocol, begin, begin + length, addresses)


@step("IPv6", "with extension headers, and in fragments")
def version_6(frame: Octets, at: int) -> Place:
    length = frame.amount(at + 4, 2) or max(len(frame.data) - at - 40, 0)
    protocol, addresses = frame.number(at + 6, 1), frame.octets(at + 8, 32)
    return carried(frame, protocol, at + 40, at + 40 + length, addresses)


@step(
    "IP",
    "",
    ethertype=(numbers.IPV4, numbers.IPV6),
    protocol=(numbers.IPV4_IN_IP, numbers.IPV6_IN_IP),
    ppp=(numbers.PPP_IPV4, numbers.PPP_IPV6),
    link=(
        LinkType.RAW_BSD,
        LinkType.RAW_OPENBSD,
        LinkType.RAW,
        LinkType.IPV4,
        LinkType.IPV6,
    ),
)
def packet(frame: Octets, at: int) -> Place:
    """Behind whatever says that an IP packet follows."""
    frame.begin_packet(at)
    version = frame.number(at, 1) >> 4
    if version == 4:
        return version_4(frame, at)
    if version == 6:
        return version_6(frame, at)
    return Damaged(f"an IP packet of version {version}")


def carried(frame: Octets, protocol: int, at: int, end: int, addresses: bytes) -> Place:
    """What an IP packet of these addresses carries, behind its extension headers."""
    for _ in range(_MOST_EXTENSIONS):
        if protocol == numbers.TCP:
            return Segment(addresses, at, max(end - at, 0))
        if protocol == numbers.IPV6_FRAGMENT and len(addresses) == 32:
            return _fragment_6(frame, at, end, addresses)
        size = _extension_size(frame, protocol, at)
        if not size:
            return _other(frame, protocol, at)
        protocol, at = frame.number(at, 1), at + size
    return Damaged(f"more than {_MOST_EXTENSIONS} extension headers of an IP packet")


def _extension_size(frame: Octets, protocol: int, at: int) -> int:
    """The octets of an extension header; 0 if the protocol is not one."""
    if protocol in numbers.EXTENSIONS:
        return (frame.number(at + 1, 1) + 1) * 8
    return (frame.number(at + 1, 1) + 2) * 4 if protocol == numbers.AUTHENTICATION else 0


def _fragment_6(frame: Octets, at: int, end: int, addresses: bytes) -> End:
    protocol, place, identifier = (
        frame.number(at + n, size) for n, size in ((0, 1), (2, 2), (4, 4))
    )
    start, begin = place & 0xFFF8, at + 8
    holds = may_hold_tcp(frame, protocol, begin, start)
    length = max(end - begin, 0)
    return Fragment(addresses, identifier, protocol, start, bool(place & 1), begin, length, holds)


def _other(frame: Octets, protocol: int, at: int) -> Place:
    following = step_to("protocol", protocol)
    if following is not None:
        return following, at
    if protocol in numbers.OTHER_PROTOCOLS:
        return OTHER
    return Unread(numbers.UNREAD_PROTOCOLS.get(protocol, f"IP protocol {protocol}"))


@step("UDP", "", protocol=(numbers.UDP,))
def datagram(frame: Octets, at: int) -> Place:
    port = frame.number(at + 2, 2)
    following = step_to("port", port)
    if following is not None:
        return following, at + 8
    kind = numbers.UNREAD_PORTS.get(port) or numbers.UNREAD_PORTS.get(frame.number(at, 2))
    return Unread(kind) if kind else OTHER


def may_hold_tcp(frame: Octets, protocol: int, at: int, start: int) -> bool:
    """Whether a packet of which this is a fragment may carry a connection.

    Of UDP the first fragment tells; the others are of no account without it.
    """
    if protocol == numbers.UDP:
        known = not start and frame.has(at, 4)
        return known and step_to("port", frame.number(at + 2, 2)) is not None
    return protocol not in numbers.OTHER_PROTOCOLS
