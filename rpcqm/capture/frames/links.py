"""Link layers: Ethernet with its tags, LLC, PPP, and the pseudo-headers of captures."""

from rpcqm.capture.frames import numbers
from rpcqm.capture.frames.ends import OTHER, Unread
from rpcqm.capture.frames.numbers import LinkType
from rpcqm.capture.frames.octets import Octets
from rpcqm.capture.frames.packets import packet
from rpcqm.capture.frames.steps import Place, step, step_to

MOST_TAGS = 256
"""Tags or labels in a row: networks have a handful."""

_INET = 2
_INET6_FAMILIES = frozenset({10, 24, 28, 30})
_SNAP, _IP_IN_LLC = 0xAAAA03, 0x060603
_ETHERTYPES_IN_SNAP = frozenset({0x000000, 0x0000F8})
_BRIDGED_IN_SNAP, _BRIDGED_ETHERNET = 0x0080C2, frozenset({1, 7})
_CISCO = 0x00000C
_LLC_IN_LINUX, _GRE_IN_LINUX = 4, 778


@step(
    "Ethernet",
    "II, IEEE 802.3; of pktmon also IP packets without it",
    link=(LinkType.ETHERNET,),
)
def ethernet_frame(frame: Octets, at: int) -> Place:
    """A frame as it was captured. Some writers have IP packets among frames of Ethernet."""
    found = ethernet(frame, at)
    odd = isinstance(found, Unread) or (isinstance(found, tuple) and found[0] is llc)
    return (packet, at) if odd and _is_packet(frame, at) else found


@step(
    "Ethernet in others",
    "",
    ethertype=(numbers.BRIDGED,),
    protocol=(numbers.ETHERNET,),
)
def ethernet(frame: Octets, at: int) -> Place:
    return ethertype(frame, at + 12)


def _is_packet(frame: Octets, at: int) -> bool:
    """Whether a whole IP packet begins here, by its own length."""
    left = len(frame.data) - at
    version = frame.number(at, 1, 0xF0) >> 4
    if version == 4:
        return left >= 20 and frame.number(at + 2, 2) == left
    return version == 6 and left >= 40 and frame.number(at + 4, 2) + 40 == left


@step("VLAN", f"IEEE 802.1Q and QinQ, {MOST_TAGS} tags at most")
def ethertype(frame: Octets, at: int) -> Place:
    """At an EtherType, with any tags before the last one."""
    for _ in range(MOST_TAGS):
        kind = frame.number(at, 2)
        if kind not in numbers.TAGS:
            return behind_type(frame, kind, at + 2)
        at += 4
    return Unread(f"more than {MOST_TAGS} tags in a row")


def behind_type(frame: Octets, kind: int, at: int) -> Place:
    """Behind an EtherType."""
    if kind < numbers.LEAST_ETHERTYPE:
        return llc, at
    following = step_to("ethertype", kind)
    if following is not None:
        return following, at
    if kind in numbers.OTHER_ETHERTYPES:
        return OTHER
    return Unread(numbers.UNREAD_ETHERTYPES.get(kind, f"EtherType 0x{kind:04X}"))


def _behind_known(frame: Octets, kind: int, at: int) -> Place:
    """Behind what is an EtherType, and no length: small ones are protocols of other links."""
    return behind_type(frame, kind, at) if kind >= numbers.LEAST_ETHERTYPE else OTHER


@step("LLC", "SNAP, IP, and Ethernet that was bridged")
def llc(frame: Octets, at: int) -> Place:
    head = frame.number(at, 3)
    if head == _IP_IN_LLC:
        return packet, at + 3
    if head != _SNAP:
        # Spanning trees, NetBEUI, IPX, IS-IS.
        return OTHER
    organization, kind = frame.number(at + 3, 3), frame.number(at + 6, 2)
    if organization in _ETHERTYPES_IN_SNAP:
        return _behind_known(frame, kind, at + 8)
    if organization == _BRIDGED_IN_SNAP and kind in _BRIDGED_ETHERNET:
        return ethernet, at + 10
    if organization in (_BRIDGED_IN_SNAP, _CISCO):
        return OTHER
    return Unread(f"SNAP of organization 0x{organization:06X}")


@step("Provider backbone bridges", "IEEE 802.1ah", ethertype=(numbers.BACKBONE,))
def backbone(frame: Octets, at: int) -> Place:
    return ethernet, at + 4


@step("PPPoE", "sessions; RFC 2516", ethertype=(numbers.PPPOE,), link=(LinkType.PPPOE,))
def pppoe(frame: Octets, at: int) -> Place:
    if frame.number(at + 1, 1):
        return OTHER
    return ppp, at + 6


@step("PPP", "IPv4, IPv6, MPLS", link=(LinkType.PPP,))
def ppp(frame: Octets, at: int) -> Place:
    """With address and control in front of it, or without; RFC 1661."""
    if frame.number(at, 2) == 0xFF03:
        at += 2
    # A compressed protocol is one octet, and that is odd.
    size = 1 if frame.number(at, 1, 1) else 2
    protocol = frame.number(at, size)
    following = step_to("ppp", protocol)
    if following is not None:
        return following, at + size
    if protocol >= numbers.LEAST_PPP_CONTROL:
        return OTHER
    return Unread(numbers.UNREAD_PPP.get(protocol, f"PPP protocol 0x{protocol:04X}"))


@step("Cisco HDLC", "frames of an EtherType", link=(LinkType.CISCO_HDLC,))
def hdlc(frame: Octets, at: int) -> Place:
    return ethertype, at + 2


@step("Linux cooked", "v1 and v2", link=(LinkType.LINUX_SLL,))
def cooked(frame: Octets, at: int) -> Place:
    return _cooked(frame, frame.number(at + 2, 2), at + 14, at + 16)


@step("Linux cooked v2", "", link=(LinkType.LINUX_SLL2,))
def cooked_2(frame: Octets, at: int) -> Place:
    return _cooked(frame, frame.number(at + 8, 2), at, at + 20)


def _cooked(frame: Octets, hardware: int, type_at: int, behind: int) -> Place:
    kind = frame.number(type_at, 2)
    if hardware == _GRE_IN_LINUX and (following := step_to("gre", kind)) is not None:
        return following, behind
    if kind == _LLC_IN_LINUX:
        return llc, behind
    if kind in numbers.TAGS:
        return ethertype, behind + 2
    return _behind_known(frame, kind, behind)


@step("BSD loopback", "in both byte orders", link=(LinkType.NULL, LinkType.LOOP))
def loopback(frame: Octets, at: int) -> Place:
    """Behind the address family, in whichever byte order."""
    family = frame.number(at, 4)
    families = {family, int.from_bytes(family.to_bytes(4, "big"), "little")}
    return (packet, at + 4) if _INET in families or families & _INET6_FAMILIES else OTHER
