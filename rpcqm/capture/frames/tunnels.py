"""Tunnels: MPLS, GRE with what it carries, VXLAN, GENEVE."""

from rpcqm.capture.frames import numbers
from rpcqm.capture.frames.ends import OTHER, Damaged, Unread
from rpcqm.capture.frames.links import MOST_TAGS, behind_type, ethernet, ppp
from rpcqm.capture.frames.numbers import LinkType
from rpcqm.capture.frames.octets import Octets
from rpcqm.capture.frames.packets import packet
from rpcqm.capture.frames.steps import Place, Step, step, step_to

_CHECKSUM, _ROUTING, _KEY, _SEQUENCE, _ACKNOWLEDGED = 0x8000, 0x4000, 0x2000, 0x1000, 0x0080
_GRE_FLAGS, _GRE_VERSION = _CHECKSUM | _ROUTING | _KEY | _SEQUENCE | _ACKNOWLEDGED, 7
_MOST_ROUTES = 64
_VXLAN_HAS_NETWORK = 0x08
_FRAME_OF_ETHERNET, _FRAME_OF_IP = 0, 2


@step(
    "MPLS",
    "IP, and Ethernet with a control word or without",
    ethertype=(numbers.MPLS, numbers.MPLS_MULTICAST),
    protocol=(numbers.MPLS_IN_IP,),
    port=(numbers.MPLS_PORT,),
    ppp=(numbers.PPP_MPLS, numbers.PPP_MPLS_MULTICAST),
    link=(LinkType.MPLS,),
)
def mpls(frame: Octets, at: int) -> Place:
    for _ in range(MOST_TAGS):
        at += 4
        if frame.number(at - 2, 1, 1):
            return _behind_labels(frame, at)
    return Unread(f"more than {MOST_TAGS} labels in a row")


def _behind_labels(frame: Octets, at: int) -> Place:
    """No label tells what is behind it: the first four bits do, as RFC 4928 explains."""
    kind = frame.number(at, 1, 0xF0) >> 4
    if kind in (4, 6):
        return packet, at
    if kind == 1:
        # Tests of the connection (RFC 5586).
        return OTHER
    if kind:
        return ethernet, at
    # A control word (RFC 4385) begins so, and most addresses of Ethernet.
    places = (at + 4, at) if not frame.number(at, 2) else (at, at + 4)
    for place in places:
        if _is_ethernet(frame, place):
            return ethernet, place
    return ethernet, at + 4


def _is_ethernet(frame: Octets, at: int) -> bool:
    """Whether an EtherType that is known is where a frame that begins here has it."""
    if not frame.has(at, 14):
        return False
    kind = frame.number(at + 12, 2)
    known = step_to("ethertype", kind) is not None
    return known or kind in numbers.TAGS or kind in numbers.OTHER_ETHERTYPES


@step(
    "GRE",
    "with checksum, key, sequence number and routing; version 1 (PPTP); in UDP",
    protocol=(numbers.GRE,),
    port=(numbers.GRE_PORT,),
)
def gre(frame: Octets, at: int) -> Place:
    """RFC 2784, RFC 2890, and RFC 1701, of which the routing is."""
    flags, kind = frame.number(at, 2, _GRE_FLAGS | _GRE_VERSION), frame.number(at + 2, 2)
    if flags & _GRE_VERSION > 1:
        return Damaged(f"GRE of version {flags & _GRE_VERSION}")
    at += 4
    if flags & (_CHECKSUM | _ROUTING):
        at += 4
    at += 4 * (bool(flags & _KEY) + bool(flags & _SEQUENCE))
    if flags & _GRE_VERSION:
        return _pptp(frame, flags, kind, at)
    if flags & _ROUTING:
        at = _behind_routes(frame, at)
    if kind == numbers.ERSPAN:
        return (erspan_2 if flags & _SEQUENCE else erspan_1), at
    following = step_to("gre", kind)
    if following is not None:
        return following, at
    # A GRE packet without contents asks whether the other end is alive.
    return behind_type(frame, kind, at) if kind >= numbers.LEAST_ETHERTYPE else OTHER


def _pptp(frame: Octets, flags: int, kind: int, at: int) -> Place:
    """GRE of version 1 (RFC 2637): PPP, or nothing but an acknowledgement."""
    if kind != numbers.PPP_IN_GRE:
        return Damaged(f"GRE of version 1 that holds 0x{kind:04X}")
    if not flags & _SEQUENCE:
        return OTHER
    return ppp, at + 4 * bool(flags & _ACKNOWLEDGED)


def _behind_routes(frame: Octets, at: int) -> int:
    """Behind the source routes, which end with one that is empty."""
    for _ in range(_MOST_ROUTES):
        family, length = frame.number(at, 2), frame.number(at + 3, 1)
        at += 4 + length
        if not family and not length:
            break
    return at


@step("ERSPAN I", "")
def erspan_1(frame: Octets, at: int) -> Place:
    return ethernet, at


@step("ERSPAN II", "")
def erspan_2(frame: Octets, at: int) -> Place:
    return ethernet, at + 8


@step("ERSPAN", "types I, II and III", gre=(numbers.ERSPAN_III,))
def erspan_3(frame: Octets, at: int) -> Place:
    """The type of the frame and whether a further header follows stand at its end."""
    kind, further = frame.number(at + 10, 2, 0x7C00) >> 10, frame.number(at + 11, 1, 1)
    inside: dict[int, Step] = {_FRAME_OF_ETHERNET: ethernet, _FRAME_OF_IP: packet}
    if kind not in inside:
        return Unread(f"ERSPAN III with frames of type {kind}")
    return inside[kind], at + 12 + 8 * further


@step(
    "VXLAN",
    "at ports 4789 and 8472; RFC 7348",
    port=(numbers.VXLAN_PORT, numbers.VXLAN_OF_LINUX),
)
def vxlan(frame: Octets, at: int) -> Place:
    if not frame.number(at, 1, _VXLAN_HAS_NETWORK):
        return OTHER
    return ethernet, at + 8


@step("GENEVE", "with options; RFC 8926", port=(numbers.GENEVE_PORT,))
def geneve(frame: Octets, at: int) -> Place:
    version, options = frame.number(at, 1, 0xC0) >> 6, frame.number(at, 1, 0x3F)
    if version:
        return Damaged(f"GENEVE of version {version}")
    return behind_type(frame, frame.number(at + 2, 2), at + 8 + 4 * options)


@step("EtherIP", "RFC 3378", protocol=(numbers.ETHERNET_IN_IP,))
def ethernet_in_ip(frame: Octets, at: int) -> Place:
    return ethernet, at + 2
