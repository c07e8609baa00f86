"""What a frame turns out to hold."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Segment:
    """A TCP segment: both IP addresses, where it begins, and its octets on the wire."""

    addresses: bytes
    at: int
    length: int


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of an IP packet: `start` is its place there, `more` whether others are behind it.

    `may_hold_tcp`: whether the packet may carry a connection, as far as this fragment tells.
    """

    addresses: bytes
    identifier: int
    protocol: int
    start: int
    more: bool
    at: int
    length: int
    may_hold_tcp: bool


@dataclass(frozen=True, slots=True)
class Other:
    """Something that is part of no connection, and need not be told: ARP, name resolution."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Something in which connections may be, and which is not read."""

    kind: str


@dataclass(frozen=True, slots=True)
class Damaged:
    """A header that cannot be."""

    reason: str


End = Segment | Fragment | Other | Unread | Damaged

OTHER = Other()
