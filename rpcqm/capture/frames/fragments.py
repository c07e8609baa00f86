"""Puts the fragments of IP packets together."""

from bisect import bisect_left
from collections import OrderedDict

from rpcqm.capture.frames.ends import Fragment

MOST_DATAGRAMS = 256
"""How many packets may wait for fragments, so that forged ones cannot fill memory."""
_LONGEST = 65535

Key = tuple[bytes, int, int]
Part = tuple[int, int]
"""Where a fragment begins, and a hash of its octets."""


class _Datagram:
    """The fragments of one IP packet, of which `covered` is there: pairs of begin and end."""

    __slots__ = ("covered", "octets", "parts", "total")

    def __init__(self) -> None:
        self.covered: list[tuple[int, int]] = []
        self.octets = bytearray()
        self.parts: set[Part] = set()
        self.total = -1

    def add(self, part: Fragment, data: bytes) -> bytes | None:
        """Add a fragment; the whole payload once no octet of it is missing."""
        begin, end = part.start, part.start + len(data)
        if part.start + part.length > _LONGEST:
            return None
        if not part.more:
            self.total = part.start + part.length
        self.parts.add((begin, hash(data)))
        if len(self.octets) < end:
            self.octets += bytes(end - len(self.octets))
        self.octets[begin:end] = data
        self._cover(begin, end)
        if self.total >= 0 and self.covered and self.covered[0][0] == 0:
            return bytes(self.octets[: self.total]) if self.covered[0][1] >= self.total else None
        return None

    def _cover(self, begin: int, end: int) -> None:
        """Unite what is there with what has come."""
        first = bisect_left(self.covered, (begin, begin))
        if first and self.covered[first - 1][1] >= begin:
            first -= 1
            begin = self.covered[first][0]
        last = first
        while last < len(self.covered) and self.covered[last][0] <= end:
            end = max(end, self.covered[last][1])
            last += 1
        self.covered[first:last] = [(begin, end)]


class Fragments:
    """The packets that wait for fragments, and those that were whole last.

    Captures at several places have each fragment several times: one of a packet that was whole
    already begins no new packet.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[Key, _Datagram] = OrderedDict()
        self._whole: OrderedDict[Key, set[Part]] = OrderedDict()

    def add(self, part: Fragment, data: bytes) -> bytes | None:
        """The payload of the packet that a fragment completes; None while others are missing."""
        key = part.addresses, part.identifier, part.protocol
        if (part.start, hash(data)) in self._whole.get(key, ()):
            return None
        datagram = self._waiting.setdefault(key, _Datagram())
        whole = datagram.add(part, data)
        if whole is not None:
            del self._waiting[key]
            self._whole[key] = datagram.parts
            self._whole.move_to_end(key)
            if len(self._whole) > MOST_DATAGRAMS:
                self._whole.popitem(last=False)
        return whole

    def given_up(self) -> bool:
        """Give up the packet that waits longest, if there are too many."""
        too_many = len(self._waiting) > MOST_DATAGRAMS
        if too_many:
            self._waiting.popitem(last=False)
        return too_many

    def finish(self) -> int:
        """How many packets were never whole."""
        count = len(self._waiting)
        self._waiting.clear()
        return count
