"""The numbers by which layers name what is in them, and which of those are not read.

EtherTypes, IP protocols and ports are those of IANA's registries, protocols of PPP too.
"""

import enum
from collections.abc import Mapping


class LinkType(enum.IntEnum):
    """Link types that are read, as tcpdump.org/linktypes numbers them."""

    NULL = 0
    ETHERNET = 1
    PPP = 9
    RAW_BSD = 12
    RAW_OPENBSD = 14
    PPPOE = 51
    RAW = 101
    CISCO_HDLC = 104
    LOOP = 108
    LINUX_SLL = 113
    MPLS = 219
    IPV4 = 228
    IPV6 = 229
    LINUX_SLL2 = 276


IPV4, IPV6, MPLS, MPLS_MULTICAST, PPPOE = 0x0800, 0x86DD, 0x8847, 0x8848, 0x8864
BRIDGED, BACKBONE, PPP_IN_GRE, ERSPAN, ERSPAN_III = 0x6558, 0x88E7, 0x880B, 0x88BE, 0x22EB
TAGS = frozenset({0x8100, 0x88A8, 0x9100, 0x9200, 0x9300})
"""What an EtherType says in front of a VLAN tag."""
LEAST_ETHERTYPE = 0x0600
"""Smaller numbers are the length of a frame of IEEE 802.3."""

ICMP, TCP, UDP, IPV6_FRAGMENT, AUTHENTICATION = 1, 6, 17, 44, 51
IPV4_IN_IP, IPV6_IN_IP, GRE, ETHERNET_IN_IP, MPLS_IN_IP, ETHERNET = 4, 41, 47, 97, 137, 143
EXTENSIONS = frozenset({0, 43, 60, 135, 139, 140})
"""IPv6 extension headers that have their length in units of 8 octets."""

PPP_IPV4, PPP_IPV6, PPP_MPLS, PPP_MPLS_MULTICAST = 0x0021, 0x0057, 0x0281, 0x0283
LEAST_PPP_CONTROL = 0x4000
"""Protocols of PPP from here on set links up, and carry nothing."""

VXLAN_PORT, VXLAN_OF_LINUX, GENEVE_PORT, GRE_PORT, MPLS_PORT = 4789, 8472, 6081, 4754, 6635

OTHER_ETHERTYPES = frozenset(
    {
        *(0x0806, 0x0842, 0x2000, 0x22F0, 0x6002, 0x6003, 0x8035, 0x809B, 0x80F3, 0x8137),
        *(0x8808, 0x8809, 0x8863, 0x886D, 0x887B, 0x8899, 0x888E, 0x88CA, 0x88CC, 0x88E1),
        *(0x88E3, 0x88F5, 0x88F6, 0x88F7, 0x8902, 0x8912, 0x9000, 0x9001, 0x9003),
    }
)
"""What carries no connection: ARP, wake-up calls, discovery, spanning trees, logon to a port,
clocks, tests of links."""
OTHER_PROTOCOLS = frozenset({1, 2, 3, 8, 9, 33, 46, 58, 59, 88, 89, 102, 103, 112, 113, 132, 136})
"""What carries no connection of TCP: control, routing, other transports."""

UNREAD_ETHERTYPES: Mapping[int, str] = {
    0x22F3: "TRILL",
    0x88E5: "MACsec",
    0x8903: "FabricPath",
    0x8926: "VN-Tag",
    0x893F: "E-Tag",
    0x894F: "NSH",
}
UNREAD_PROTOCOLS: Mapping[int, str] = {50: "IPsec ESP", 108: "IPComp", 115: "L2TPv3"}
UNREAD_PORTS: Mapping[int, str] = {
    1194: "OpenVPN",
    1701: "L2TP",
    2152: "GTP",
    3544: "Teredo",
    4341: "LISP",
    4500: "IPsec over UDP",
    4790: "VXLAN-GPE",
    5247: "CAPWAP",
}
UNREAD_PPP: Mapping[int, str] = {
    0x003D: "multilink PPP",
    0x0053: "encrypted PPP",
    0x00FD: "compressed PPP",
}
NETMON_LINKS: Mapping[int, int] = {
    0: LinkType.ETHERNET,
    1: LinkType.ETHERNET,
    2: 6,
    3: 10,
    6: 105,
    7: LinkType.RAW,
    8: LinkType.RAW,
    9: LinkType.RAW,
}
"""The link types of what Windows' Network Monitor calls networks: Ethernet, token rings, FDDI,
Wi-Fi, tunnels, wireless networks of providers, IP."""
NETMON_NETWORKS = 1 << 16
"""From here on link types are numbers of networks of Network Monitor that have none."""
UNREAD_LINKS: Mapping[int, str] = {
    6: "token ring",
    10: "FDDI",
    105: "Wi-Fi",
    119: "Wi-Fi",
    127: "Wi-Fi",
    163: "Wi-Fi",
    189: "USB",
    220: "USB",
    239: "NFLOG",
    249: "USB",
}
"""Link types, as tcpdump.org numbers them, whose frames are not read."""
