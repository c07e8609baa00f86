"""Security identifiers, their text form and the two-letter names that SDDL has for them."""

import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import Buffer, require

_SUB_AUTHORITIES_AT_MOST = 15
_TEXT = re.compile(r"S-1-(0x[0-9A-Fa-f]{12}|0|[1-9][0-9]{0,9})((?:-(?:0|[1-9][0-9]{0,9}))*)")


@dataclass(frozen=True, slots=True)
class Sid:
    """A principal: a 48-bit authority and up to 15 32-bit sub-authorities ([MS-DTYP] 2.4.2)."""

    authority: int
    sub_authorities: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.authority < 1 << 48:
            raise ValueError(f"{self.authority} is no identifier authority")
        if len(self.sub_authorities) > _SUB_AUTHORITIES_AT_MOST:
            raise ValueError("a SID has 15 sub-authorities at most")
        if not all(0 <= value < 1 << 32 for value in self.sub_authorities):
            raise ValueError("a sub-authority has 32 bits")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the form S-1-5-32-544 ([MS-DTYP] 2.4.2.1); raises ValueError if it is not a SID."""
        match = _TEXT.fullmatch(text)
        if not match:
            raise ValueError(f"{text!r} is no SID")
        parts = match[2].split("-")[1:]
        return cls(int(match[1], 0), tuple(int(part) for part in parts))

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> Self:
        """Read the bytes of a SID ([MS-DTYP] 2.4.2.2); raises DecodeError if they are damaged."""
        require(buffer, offset, 8, "SID")
        revision, count = buffer[offset], buffer[offset + 1]
        if revision != 1 or count > _SUB_AUTHORITIES_AT_MOST:
            raise DecodeError(f"SID of revision {revision} with {count} sub-authorities", offset)
        require(buffer, offset, 8 + 4 * count, "SID")
        authority = int.from_bytes(buffer[offset + 2 : offset + 8], "big")
        return cls(authority, struct.unpack_from(f"<{count}I", buffer, offset + 8))

    def encode(self) -> bytes:
        """The packet representation, little-endian."""
        count = len(self.sub_authorities)
        head = bytes((1, count)) + self.authority.to_bytes(6, "big")
        return head + struct.pack(f"<{count}I", *self.sub_authorities)

    @property
    def encoded_size(self) -> int:
        """Length of the packet representation in bytes."""
        return 8 + 4 * len(self.sub_authorities)

    def __str__(self) -> str:
        plain = self.authority < 1 << 32
        authority = str(self.authority) if plain else f"0x{self.authority:012x}"
        return "-".join(("S-1", authority, *map(str, self.sub_authorities)))


@lru_cache(maxsize=4096)  # senders recur: as many as may be active at a time
def sid_bytes(text: str) -> bytes:
    """The packet representation of a SID in text form; raises ValueError if it is not a SID."""
    return Sid.parse(text).encode()


EVERYONE = Sid(1, (0,))
CREATOR_OWNER = Sid(3, (0,))
OWNER_RIGHTS = Sid(3, (4,))
ANONYMOUS = Sid(5, (7,))
AUTHENTICATED_USERS = Sid(5, (11,))
LOCAL_SYSTEM = Sid(5, (18,))
BUILTIN_ADMINISTRATORS = Sid(5, (32, 544))


def _builtin(identifier: int) -> Sid:
    return Sid(5, (32, identifier))


# [MS-DTYP] 2.5.1.1, sid-token; the values are those of 2.4.2.4.
WELL_KNOWN: dict[str, Sid] = {
    "WD": EVERYONE,
    "CO": CREATOR_OWNER,
    "CG": Sid(3, (1,)),
    "OW": OWNER_RIGHTS,
    "NU": Sid(5, (2,)),
    "IU": Sid(5, (4,)),
    "SU": Sid(5, (6,)),
    "AN": ANONYMOUS,
    "ED": Sid(5, (9,)),
    "PS": Sid(5, (10,)),
    "AU": AUTHENTICATED_USERS,
    "RC": Sid(5, (12,)),
    "SY": LOCAL_SYSTEM,
    "LS": Sid(5, (19,)),
    "NS": Sid(5, (20,)),
    "WR": Sid(5, (33,)),
    "UD": Sid(5, (84, 0, 0, 0, 0, 0)),
    "BA": BUILTIN_ADMINISTRATORS,
    "BU": _builtin(545),
    "BG": _builtin(546),
    "PU": _builtin(547),
    "AO": _builtin(548),
    "SO": _builtin(549),
    "PO": _builtin(550),
    "BO": _builtin(551),
    "RE": _builtin(552),
    "RU": _builtin(554),
    "RD": _builtin(555),
    "NO": _builtin(556),
    "MU": _builtin(558),
    "LU": _builtin(559),
    "IS": _builtin(568),
    "CY": _builtin(569),
    "ER": _builtin(573),
    "CD": _builtin(574),
    "RA": _builtin(575),
    "ES": _builtin(576),
    "MS": _builtin(577),
    "HA": _builtin(578),
    "AA": _builtin(579),
    "RM": _builtin(580),
    "AC": Sid(15, (2, 1)),
    "LW": Sid(16, (4096,)),
    "ME": Sid(16, (8192,)),
    "MP": Sid(16, (8448,)),
    "HI": Sid(16, (12288,)),
    "SI": Sid(16, (16384,)),
}

# Identifiers that a domain's (for LA and LG the machine's) own SID has to precede.
DOMAIN_RELATIVE: dict[str, int] = {
    "RO": 498,
    "LA": 500,
    "LG": 501,
    "DA": 512,
    "DU": 513,
    "DG": 514,
    "DC": 515,
    "DD": 516,
    "CA": 517,
    "SA": 518,
    "EA": 519,
    "PA": 520,
    "CN": 522,
    "RS": 553,
}

_DOMAIN_AUTHORITY = (5, 21)
_DOMAIN_PARTS = 5
_DOMAIN_ACCOUNTS = frozenset({500, 501, 502, 503, 504})
_FIRST_OWN_IDENTIFIER = 1000
"""Identifiers below are those of accounts and groups that every domain has."""


def is_account(sid: Sid) -> bool:
    """Whether an identifier can be that of one account of a machine or domain.

    Other identifiers name groups, sessions, or what every system has ([MS-DTYP] 2.4.2.4).
    """
    parts = sid.sub_authorities
    if len(parts) != _DOMAIN_PARTS or (sid.authority, parts[0]) != _DOMAIN_AUTHORITY:
        return False
    return parts[-1] >= _FIRST_OWN_IDENTIFIER or parts[-1] in _DOMAIN_ACCOUNTS


ALIASES: dict[Sid, str] = {sid: name for name, sid in WELL_KNOWN.items()}
