"""Reading the headers of a frame, and writing down what was read, so that it need not be again."""

from typing import NamedTuple

ALL = -1


class Cut(Exception):
    """A header goes on behind the octets that were captured."""


class Octets:
    """The octets of a frame, or of a packet that was put together of fragments."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def number(self, at: int, size: int, mask: int = ALL) -> int:
        """The bits of `mask` of a number in the order of networks; raises Cut."""
        if at + size > len(self.data):
            raise Cut
        return int.from_bytes(self.data[at : at + size], "big") & mask

    def amount(self, at: int, size: int) -> int:
        """A number of which only the end of a packet depends, not what is in it; raises Cut."""
        return Octets.number(self, at, size)

    def octets(self, at: int, size: int) -> bytes:
        """Octets on which nothing depends; raises Cut."""
        if at + size > len(self.data):
            raise Cut
        return self.data[at : at + size]

    def has(self, at: int, size: int) -> bool:
        """Whether there are so many octets."""
        return at + size <= len(self.data)

    def begin_packet(self, at: int) -> None:
        """An IP packet begins here; whoever keeps what was read wants to know."""


class Read(NamedTuple):
    """A number that was read, and where."""

    at: int
    size: int
    mask: int
    value: int


class TracedOctets(Octets):
    """Writes down each number that is read, and how many were read before the last IP packet.

    Another frame with the same numbers at the same places is read in the same way.
    """

    __slots__ = ("before_packet", "packet", "reads")

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.reads: list[Read] = []
        self.packet = -1
        self.before_packet = 0

    def number(self, at: int, size: int, mask: int = ALL) -> int:
        value = super().number(at, size, mask)
        self.reads.append(Read(at, size, mask & (1 << 8 * size) - 1, value))
        return value

    def begin_packet(self, at: int) -> None:
        self.packet, self.before_packet = at, len(self.reads)
