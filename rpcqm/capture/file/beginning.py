"""The first segments of a connection of which an opening was not captured, or comes later.

Where each side begins is clear enough once there are some segments, of which one follows another as
they were sent: it goes on where the other ends, or acknowledges it. Until then they are held,
because any of them may be the last, and another one the first.
"""

from typing import Generic, NamedTuple, TypeVar

LEAST_HELD, MOST_HELD = 16, 256
"""Segments that are held: so many where some are in order, and so many where none is."""
_MOST_OCTETS = 1 << 20
_MASK = 0xFFFFFFFF
_HALF = 1 << 31

Direction = TypeVar("Direction")


class HeldSegment(NamedTuple, Generic[Direction]):
    """A segment, and the direction in which it was sent."""

    direction: Direction
    seq: int
    data: bytes
    length: int
    ack: int
    time: int
    offset: int


class Beginning(Generic[Direction]):
    """The segments that are held, in the order in which they were captured."""

    __slots__ = ("_ends", "_in_order", "_octets", "segments")

    def __init__(self) -> None:
        self.segments: list[HeldSegment[Direction]] = []
        self._ends: set[tuple[int, int]] = set()
        self._octets = 0
        self._in_order = False

    def add(
        self,
        direction: Direction,
        seq: int,
        data: bytes,
        length: int,
        ack: int,
        time: int,
        offset: int,
    ) -> bool:
        """Hold a segment; whether it is clear now where the directions begin, or too much held."""
        self.segments.append(HeldSegment(direction, seq, data, length, ack, time, offset))
        self._octets += len(data)
        own = id(direction)
        follows = (own, seq) in self._ends
        self._in_order |= follows or any(end == ack and one != own for one, end in self._ends)
        self._ends.add((own, (seq + length) & _MASK))
        enough = LEAST_HELD if self._in_order else MOST_HELD
        return len(self.segments) >= enough or self._octets > _MOST_OCTETS

    def first_of(self, direction: Direction, peer: Direction) -> int | None:
        """Where the octets of a direction begin, or those that its peer lacks; None without any."""
        numbers = [each.seq for each in self.segments if each.direction is direction]
        numbers += [each.ack for each in self.segments if each.direction is peer and each.ack]
        if not numbers:
            return None
        origin = (numbers[0] - _HALF) & _MASK
        return min(numbers, key=lambda seq: (seq - origin) & _MASK)
