"""What both capture formats have in common: records, byte order, and what is plausible."""

import enum

Record = tuple[int, int, bytes, int, int]
"""Nanoseconds since 1970, link type, captured octets, original length, offset in the file."""

MAXIMUM_RECORD = 1 << 24
"""Longer records are damage: no link layer has frames of 16 MiB."""


class LinkType(enum.IntEnum):
    """Link types that are understood, as tcpdump.org/linktypes numbers them."""

    NULL = 0
    ETHERNET = 1
    RAW_BSD = 12
    RAW_OPENBSD = 14
    RAW = 101
    LOOP = 108
    LINUX_SLL = 113
    IPV4 = 228
    IPV6 = 229
    LINUX_SLL2 = 276
