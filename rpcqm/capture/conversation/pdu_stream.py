"""Cuts what one side sends into PDUs, and finds the next PDU behind what is missing."""

import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from rpcqm.capture.file.problems import Problems
from rpcqm.rpc.constants import PduType
from rpcqm.rpc.pdu import HEADER, HEADER_LENGTH

_UNPACK = HEADER.unpack_from
_BIG_ENDIAN = struct.Struct(">HHI").unpack_from
_BEGINNING = re.compile(rb"(?s)\x05[\0\1][\0-\x13].[\0\x10]\0\0\0")
_TYPES = frozenset(PduType)
CLIENT_TYPES = frozenset(
    {
        PduType.request,
        PduType.bind,
        PduType.alter_context,
        PduType.auth3,
        PduType.co_cancel,
        PduType.orphaned,
    }
)
"""The types of PDUs that only clients send."""


class CapturedPdu(NamedTuple):
    """One PDU: the octets of `data` from `begin` to `end`, and what its header says.

    `time` is that of the segment that completed it, in nanoseconds since 1970; `offset` is where
    in the capture the record of that segment begins.
    """

    data: bytes
    begin: int
    end: int
    kind: int
    flags: int
    drep: int
    auth_length: int
    call_id: int
    time: int
    offset: int


def pdu_type_at(data: bytes, at: int = 0) -> int:
    """The type of the PDU that plausibly begins at `at`; -1 if no PDU begins there."""
    if len(data) - at < HEADER_LENGTH:
        return -1
    vers, minor, kind, _, drep, frag_length, auth_length, _ = _UNPACK(data, at)
    if vers != 5 or minor > 1 or kind not in _TYPES or drep & 0xFFFFFFEF:
        return -1
    if not drep:
        frag_length, auth_length, _ = _BIG_ENDIAN(data, at + 8)
    if frag_length < HEADER_LENGTH or auth_length + HEADER_LENGTH > frag_length:
        return -1
    return int(kind)


def pdu_type_name(kind: int) -> str:
    """The name of a type of PDU, or its number."""
    known = PduType._value2member_map_.get(kind)
    return known.name if isinstance(known, PduType) else str(kind)


def find_pdu(data: bytes, start: int = 0) -> int:
    """The first offset of a PDU that ends with the data or where another begins; -1 without one."""
    for match in _BEGINNING.finditer(data, start):
        at = match.start()
        if pdu_type_at(data, at) < 0:
            continue
        end = at + _length(data, at)
        if end >= len(data) or pdu_type_at(data, end) >= 0:
            return at
    return -1


def _length(data: bytes, at: int) -> int:
    return int.from_bytes(data[at + 8 : at + 10], "little" if data[at + 4] else "big")


class PduStream:
    """Cuts the octets that one side sends, from the first octet of a PDU on."""

    __slots__ = ("_have", "_need", "_parts", "_problems", "_searching", "_skip", "_take")

    def __init__(self, take: Callable[[CapturedPdu], None], problems: Problems) -> None:
        self._take = take
        self._problems = problems
        self._parts: list[bytes] = []
        self._have = self._need = self._skip = 0
        self._searching = False

    @property
    def empty(self) -> bool:
        """Whether the next octets are expected to begin a PDU."""
        return not (self._have or self._skip or self._searching)

    def watch(self, told: Callable[[CapturedPdu], None]) -> None:
        """Tell `told` of each PDU too, before it is taken."""
        take = self._take

        def both(pdu: CapturedPdu) -> None:
            told(pdu)
            take(pdu)

        self._take = both

    def take(self, data: bytes, time: int, offset: int) -> None:
        """Take the next octets: the segment's time in nanoseconds, and where its record begins."""
        if self._have:
            self._parts.append(data)
            self._have += len(data)
            if self._have < self._need:
                return
            data = b"".join(self._parts)
            self._parts.clear()
            self._have = 0
        elif self._skip or self._searching:
            data = self._resumed(data)
        # `tuple.__new__` makes the record in half of the time that `CapturedPdu(…)` takes.
        at, end, make = 0, len(data), tuple.__new__
        while end - at >= HEADER_LENGTH:
            vers, minor, kind, flags, drep, frag_length, auth_length, call_id = _UNPACK(data, at)
            if drep != 0x10:
                if drep:
                    vers = 0
                frag_length, auth_length, call_id = _BIG_ENDIAN(data, at + 8)
            if vers != 5 or minor > 1 or frag_length < HEADER_LENGTH:
                at = self._damaged(data, at, offset)
                continue
            stop = at + frag_length
            if stop > end:
                self._need = frag_length
                break
            parts = (data, at, stop, kind, flags, drep, auth_length, call_id, time, offset)
            self._take(make(CapturedPdu, parts))
            at = stop
        else:
            self._need = HEADER_LENGTH
        if at < end:
            self._parts.append(data[at:])
            self._have = end - at

    def _damaged(self, data: bytes, at: int, offset: int) -> int:
        """Report octets that are no PDU; returns where the next PDU begins, or the data end."""
        self._problems.add("pdu", offset, f"octets that are no PDU: {data[at : at + 8].hex(' ')}")
        found = find_pdu(data, at + 1)
        self._searching = found < 0
        return found if found >= 0 else len(data)

    def _resumed(self, data: bytes) -> bytes:
        """The octets from the next PDU on."""
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            return data[skipped:]
        found = find_pdu(data)
        self._searching = found < 0
        return data[found:] if found >= 0 else b""

    def gap(self, count: int) -> int:
        """Pass over `count` octets that were not captured; returns how many of a cut PDU were."""
        had, left = self._have, self._need - self._have if self._have else 0
        self._parts.clear()
        self._have = 0
        if had >= HEADER_LENGTH and count <= left:
            self._skip = left - count
        elif self._skip >= count:
            self._skip -= count
        else:
            self._skip, self._searching = 0, True
        return had
