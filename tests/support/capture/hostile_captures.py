"""Captures whose contents look like captures, with the records that a right reader has of them.

What is expected is written down while a file is made, so that no reader of ours is its own oracle.
"""

import random
import struct
from dataclasses import dataclass, field
from pathlib import Path

from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.record import Record
from rpcqm.pipeline.coverage import claim_rows, coverage
from rpcqm.pipeline.flow_index import exact, misread, plan
from rpcqm.pipeline.splitting import RangeReading, claimed, records_of
from tests.support.capture.captures import TIME, block, enhanced, pcap, pcapng, pcapng_head, segment

_LINKS = (1, 101, 113)
_EPOCH = 1_700_000_000


def looking_like_captures(rng: random.Random) -> bytes:
    """Octets that a sender may put into a packet to mislead whoever reads the capture."""
    frames = [segment(n, b"forged" * rng.randrange(1, 4)) for n in range(rng.randrange(1, 9))]
    forged = rng.choice(
        (
            pcapng(frames, rng.choice("<>")),
            pcapng_head((101, 1), rng.choice("<>"), 6) * 3,
            b"".join(enhanced(frame, interface=rng.randrange(3)) for frame in frames),
            pcap(frames, order=rng.choice("<>"))[24:],
            block(6, b"")[:-2] * 9,
            struct.pack("<I", 12) * 40,
            rng.randbytes(200),
        )
    )
    return bytes(rng.randrange(5)) + forged + rng.randbytes(rng.randrange(9))


@dataclass
class Made:
    """A capture in the making, and its records."""

    octets: bytes = b""
    records: list[Record] = field(default_factory=list)

    def take(self, octets: bytes, record: tuple[int, int, bytes, int] | None = None) -> None:
        """Append a block or record, with what is to be read of it but its offset."""
        if record is not None:
            self.records.append((*record, len(self.octets)))
        self.octets += octets


def made_of_blocks(seed: int, parts: int = 25) -> Made:
    """A pcapng file of every kind of block, in sections of both byte orders."""
    rng, made, order, links = random.Random(seed), Made(), "<", [1]
    made.take(pcapng_head(links, order))
    for _ in range(parts):
        kind = rng.randrange(12)
        body = looking_like_captures(rng)
        if rng.random() < 0.05:
            body *= rng.randrange(2, 30)
        if kind == 0:
            order, links = (
                rng.choice("<>"),
                [rng.choice(_LINKS) for _ in range(rng.randrange(1, 4))],
            )
            made.take(pcapng_head(links, order))
        elif kind == 1:
            links.append(rng.choice(_LINKS))
            option = struct.pack(order + "HHB3xHH", 9, 1, 9, 0, 0)
            made.take(block(1, struct.pack(order + "HHI", links[-1], 0, 0) + option, order))
        elif kind == 2:
            made.take(block(rng.choice((4, 5, 9, 10, 0xBAD)), body, order))
        elif kind == 3:
            octets = block(3, struct.pack(order + "I", len(body)) + body, order)
            made.take(octets, (0, links[0], body, len(body)))
        else:
            _packet(rng, made, order, links, body)
    return made


def _packet(rng: random.Random, made: Made, order: str, links: list[int], body: bytes) -> None:
    number, time = rng.randrange(len(links)), TIME + len(made.records)
    fixed = struct.pack(order + "IIIII", number, time >> 32, time & 0xFFFFFFFF, *[len(body)] * 2)
    told = body + bytes(-len(body) % 4)
    if rng.random() < 0.3:
        comment = looking_like_captures(rng)[:600]
        told += struct.pack(order + "HH", 1, len(comment)) + comment + bytes(-len(comment) % 4)
        told += bytes(4)
    made.take(block(6, fixed + told, order), (time, links[number], body, len(body)))


def made_of_records(seed: int, parts: int = 25) -> Made:
    """A pcap file."""
    rng = random.Random(seed)
    order = rng.choice("<>")
    made = Made(pcap([], order=order))
    for number in range(parts):
        body = looking_like_captures(rng) * rng.choice((1, 1, 1, 1, 12))
        head = struct.pack(order + "IIII", _EPOCH, number, len(body), len(body) + 3)
        made.take(head + body, (_EPOCH * 10**9 + number * 1000, 1, body, len(body) + 3))
    return made


@dataclass
class Ranges:
    """What the readers of a file's ranges have together, as the jobs have it."""

    records: list[Record]
    problems: list[str]
    unclaimed: int
    twice: int
    repeated: bool


def read_in_ranges(path: Path, size: int) -> Ranges:
    """Read all ranges, link what they claim, and read again what was not read from its place."""
    made = plan([path], 1, size)
    guesses = [claimed(split) for split in made.ranges]
    linked = exact(made, guesses)
    problems = Problems()
    readings = [RangeReading(split, problems) for split in linked.ranges]
    records: list[Record] = []
    for split, reading in zip(linked.ranges, readings, strict=True):
        mine = list(records_of(reading))
        assert all(split.start <= record[4] < split.end for record in mine)
        records += mine
    claims = [reading.claim for reading in readings]
    assert misread(linked, claims) == []
    (told,) = coverage(row for claim in claims for row in claim_rows(claim))
    repeated = bool(misread(linked, guesses))
    return Ranges(records, list(map(str, problems)), told["unclaimed"], told["twice"], repeated)
