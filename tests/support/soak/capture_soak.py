"""Captures made at random: connections in tunnels in one another, in disorder, with losses and
frames that are there twice.

Without losses tshark counts the same calls, by interface and opnum; with losses no call is there
that was not made, and none twice.
"""

import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rpcqm.codec.interface import TransferSyntax
from tests.support.capture.captures import pcapng
from tests.support.capture.traffic import Client
from tests.support.capture.tshark import NOT_BY_TSHARK, Calls, by_tshark, by_us
from tests.support.capture.tunnels import WRAPS, nested
from tests.support.soak.soak_record import (
    MOST_SEEDS,
    Goal,
    Part,
    Record,
    main_of,
    options,
    run_parts,
)

OF_A_PART = 50
_KINDS = sorted(set(WRAPS) - NOT_BY_TSHARK)
_NO_REQUEST = 0xFFFF
"""The opnum of an answer whose request was not captured."""


def connection(rng: random.Random, number: int) -> list[bytes]:
    """The frames of a whole connection, each side in tunnels of its own."""
    client = Client(rng, number, TransferSyntax.NDR, False)
    client.begin(whole=True)
    client.open()
    client.answer()
    client.speak(rng.randrange(9))
    client.leave()
    ways = [rng.choices(_KINDS, k=rng.randrange(4)) for _ in range(2)]
    server = bytes((192, 0, 2, 2))
    return [nested(each[14:], ways[each[26:30] == server]) for each in client.frames]


def in_disorder(rng: random.Random, frames: Sequence[bytes], loss: float) -> list[bytes]:
    span = rng.choice((1, 1, 4, 10))
    moved = sorted(enumerate(frames), key=lambda pair: pair[0] + rng.randrange(span))
    kept = [frame for _, frame in moved if rng.random() >= loss]
    return [each for frame in kept for each in [frame] * rng.choice((1, 1, 1, 2))]


def _calls(path: Path, frames: Sequence[bytes]) -> Calls:
    path.write_bytes(pcapng(frames))
    return by_us(path)


def work(name: str) -> Part:
    """Some captures, of which one seed makes everything."""
    rng, failures = random.Random(name), list[str]()
    every, expected = list[bytes](), Calls()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "capture")
        for number in range(OF_A_PART):
            frames = connection(rng, number)
            right = _calls(path, frames)
            if _calls(path, in_disorder(rng, frames, 0)) != right:
                failures.append(f"part {name}: connection {number} has other calls in disorder")
            lossy = _calls(path, in_disorder(rng, frames, 0.1))
            if lossy.total() > right.total() or _more(lossy, right):
                failures.append(f"part {name}: connection {number} has more calls with losses")
            every += frames
            expected += right
        path.write_bytes(pcapng(every))
        if by_us(path) != expected or by_tshark(path) != expected:
            failures.append(f"part {name}: tshark counts other calls")
    return Part({"captures": 2 * OF_A_PART + 1, "calls": expected.total()}, failures=failures)


def _more(found: Calls, right: Calls) -> bool:
    """Whether there are calls that were not made; of some neither interface nor opnum is known."""
    opnums = Calls()
    for (port, _, opnum), number in right.items():
        opnums[port, "", opnum] += number
    for (port, _, opnum), number in found.items():
        if opnum != _NO_REQUEST:
            opnums[port, "", opnum] -= number
    return min(opnums.values(), default=0) < 0


def main(words: Sequence[str] | None = None) -> int:
    made = argparse.ArgumentParser(prog="scripts/soak captures", description=__doc__)
    made.add_argument("--captures", type=int, default=10_000, help="how many (%(default)s)")
    made.add_argument("--first", type=int, help="the seed (a random one)")
    given = options(made).parse_args(words)
    first = random.randrange(MOST_SEEDS) if given.first is None else given.first
    count = -(-given.captures // (2 * OF_A_PART + 1))
    record = Record(made, given, Goal(parts=count), seed=first)
    return run_parts(record, (f"{record.state.seed}-{n}" for n in range(count)), work)


if __name__ == "__main__":
    main_of(main)
