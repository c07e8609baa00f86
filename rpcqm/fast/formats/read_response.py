"""The answer to R_StartReceive with a message in one section, filled into constant octets.

The codec stays the only definition of the answer: its encoding of random values shows their places,
and a template that does not reproduce the codec's encoding is dropped.
"""

import random
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rpcqm.codec.packet.types import SEQUENTIAL_MASK
from rpcqm.codec.types.remoteread import R_StartReceiveResponse, SectionBuffer, SectionType

Encode = Callable[[R_StartReceiveResponse], bytes]

_ALIGNMENT = 8
"""The largest alignment of the fields behind the octets, in both syntaxes."""
_SIZE = 0x1230
"""Octets of the packets for learning: a multiple of the alignment that is nowhere else in an
answer."""
_PLACES = 5
"""The places of the time, the sequence, and the sizes of the section, its buffer and the array."""
_CHECKS = 3 * _ALIGNMENT
"""Random answers that a template must get right, each of another length."""


class ReadAnswer(NamedTuple):
    """The values that differ from answer to answer; times are seconds since 1970."""

    arrival: int
    sequence: int
    packet: bytes

    def response(self) -> R_StartReceiveResponse:
        """The answer as the handler gives it."""
        size = len(self.packet)
        section = SectionBuffer(
            SectionBufferType=SectionType.stFullPacket,
            SectionSizeAlloc=size,
            SectionSize=size,
            pSectionBuffer=self.packet,
        )
        return R_StartReceiveResponse(
            pdwArriveTime=self.arrival,
            pSequenceId=self.sequence,
            pdwNumberOfSections=1,
            ppPacketSections=[section],
            result=0,
        )


class ReadResponse:
    """The constant octets of the answer in one syntax; `filled` puts the others in."""

    __slots__ = ("_constants", "_pack", "_tails")

    def __init__(self, head: bytes, places: tuple[int, ...], tails: tuple[bytes, ...]) -> None:
        arrival, sequence, *sizes = places
        starts = (0, arrival + 4, sequence + 8, *(size + 4 for size in sizes))
        constants = [head[a:b] for a, b in zip(starts, (*places, len(head)), strict=True)]
        sizes_of = [len(each) for each in constants]
        codes = "<{}sI{}sQ{}sI{}sI{}sI{}s".format(*sizes_of)
        self._pack, self._constants, self._tails = struct.Struct(codes).pack, constants, tails

    @classmethod
    def learn(cls, encode: Encode) -> "ReadResponse | None":
        """A template of the results of `encode`; None if no template holds."""
        source = random.Random()
        answer = _random_answer(source, _SIZE)
        stub = encode(answer.response())
        head = stub[: stub.find(answer.packet)]
        places = tuple(_places(head, answer))
        if len(places) != _PLACES or list(places) != sorted(places):
            return None
        tails = tuple(_tail(source, encode, size) for size in range(_SIZE, _SIZE + _ALIGNMENT))
        made = cls(head, places, tails)
        return made if made._agrees(source, encode) else None

    def _agrees(self, source: random.Random, encode: Encode) -> bool:
        return all(
            self.filled(*answer) == encode(answer.response())
            for answer in (_random_answer(source, size) for size in range(1, _CHECKS))
        )

    def filled(self, arrival: int, sequence: int, packet: bytes) -> bytes:
        """The octets of an answer with a packet that is not empty."""
        size = len(packet)
        c0, c1, c2, c3, c4, c5 = self._constants
        head = self._pack(c0, arrival, c1, sequence, c2, size, c3, size, c4, size, c5)
        return b"".join((head, packet, self._tails[size % _ALIGNMENT]))


def _random_answer(source: random.Random, size: int) -> ReadAnswer:
    sequence = source.randrange(SEQUENTIAL_MASK)
    return ReadAnswer(source.getrandbits(32), sequence, source.randbytes(size))


def _places(head: bytes, answer: ReadAnswer) -> Iterator[int]:
    """The places of the time, the sequence and the sizes, each with its number of octets."""
    yield head.find(answer.arrival.to_bytes(4, "little"))
    yield head.find(answer.sequence.to_bytes(8, "little"))
    size = len(answer.packet).to_bytes(4, "little")
    at = head.find(size)
    while at >= 0:
        yield at
        at = head.find(size, at + 1)


def _tail(source: random.Random, encode: Encode, size: int) -> bytes:
    """The octets behind a packet of that size."""
    answer = _random_answer(source, size)
    stub = encode(answer.response())
    return stub[stub.find(answer.packet) + size :]
