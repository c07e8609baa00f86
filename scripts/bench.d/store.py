#!/usr/bin/env python3
"""Durable inserts and removals of the store alone, against the limit of the disk.

Usage: store.py --profile insert|remove

The limit is a process that does nothing but append the same bytes to a zero-filled file and sync.
The store runs with its log warm: RocksDB reuses logs once its first write buffers are full.
"""

import argparse
import cProfile
import os
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

from figures import Figure, attempt, figure
from harness import BUILD, WriteTimer, brief, pairs, raw_syncs

from rpcqm.store.settings import KIB, StoreSettings
from rpcqm.store.store import Store

QUEUE = 16
NOW = 1_750_000_000_000
GROUPS = (1, 16, 64)
SECONDS = 0.5
RECORD = 100
"""Bytes that a message takes in the log besides its packet."""


class Bench:
    """A store, and the CPU that its writes take."""

    def __init__(self, directory: Path) -> None:
        self.turn: list[Callable[[], None]] = []
        settings = StoreSettings(reserve=0)
        self.store = Store.open(directory, end_of_turn=self.turn.append, settings=settings)
        self.answers = 0
        self.writes = WriteTimer(self.store)

    def end_turn(self) -> None:
        while self.turn:
            self.turn.pop(0)()

    def answer(self) -> None:
        self.answers += 1

    def insert(self, packet: bytes, group: int) -> None:
        """One turn that stores messages."""
        store = self.store
        for _ in range(group):
            with store.transaction("insert") as txn:
                key = store.counters.next_lookup_identifier(3)
                txn.insert(QUEUE, key, packet, arrival=NOW, expiry=NOW + key)
                txn.call_after(self.answer)
        self.end_turn()

    def remove(self, group: int) -> None:
        """One turn that reads and removes the first messages."""
        store = self.store
        index = store.index(QUEUE)
        for _ in range(group):
            with store.transaction("remove") as txn:
                key = index.first_available()
                assert key is not None
                store.read_packet(index.serial(key) or 0)
                txn.remove(QUEUE, key)
                txn.call_after(self.answer)
        self.end_turn()

    def warm_up(self) -> None:
        """Fill the write buffers, so that logs are used again, and take everything out."""
        for _ in range(1_000):
            self.insert(bytes(KIB), 64)
        self.drain()

    def drain(self) -> None:
        """Take everything out."""
        while left := self.store.index(QUEUE).available:
            self.remove(min(left, 64))


def per_second(turn: Callable[[int], None], group: int) -> float:
    """Messages per second, so many in each turn."""
    messages, began = 0, time.perf_counter()
    while time.perf_counter() - began < brief(SECONDS):
        turn(group)
        messages += group
    return messages / (time.perf_counter() - began)


def microseconds(bench: Bench, turn: Callable[[int], None], group: int) -> float:
    """CPU per message without the writes."""
    found = []
    for _ in range(5):
        bench.writes.seconds, began = 0.0, time.thread_time()
        for _ in range(4_096 // group):
            turn(group)
        found.append((time.thread_time() - began - bench.writes.seconds) / 4_096 * 1e6)
    return statistics.median(found)


def limit_per_second(directory: Path, size: int, group: int) -> float:
    """Messages per second of the raw log: as many bytes as the store's own log has, one sync."""
    return raw_syncs(directory, group * (size + RECORD), SECONDS) * group


def against_the_limit(bench: Bench, directory: Path, name: str, size: int, group: int) -> Figure:
    """Durable inserts over the raw log."""
    ours = partial(per_second, partial(bench.insert, bytes(size)), group)
    found = pairs(ours, partial(limit_per_second, directory, size, group), rounds=3)
    bench.drain()
    return found.figure(name)


def own_time(bench: Bench, names: tuple[str, str], group: int) -> list[Figure]:
    """CPU of the store itself."""
    inserting = partial(microseconds, bench, partial(bench.insert, bytes(KIB)), group)
    removing = partial(microseconds, bench, bench.remove, group)
    return [
        figure(names[0], inserting()).explained(os.getpid(), inserting),
        figure(names[1], removing()),
    ]


def run() -> Iterator[Figure]:
    """The figures for scripts/bench."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as root:
        bench = Bench(Path(root) / "data")
        bench.warm_up()
        for group in GROUPS:
            commit = f"per commit of {group}, beyond the write"
            names = f"insert {commit}", f"read and remove {commit}"
            yield from attempt(names, partial(own_time, bench, names, group))
            bench.drain()
        for size, group in product((KIB, 10 * KIB), GROUPS):
            name = f"durable inserts of {size // KIB} KiB, {group} per commit, over the raw log"
            measure = partial(against_the_limit, bench, Path(root), name, size, group)
            yield from attempt(name, measure)
        bench.store.close()


def profile(which: str) -> None:
    """Print where the time goes."""
    with tempfile.TemporaryDirectory() as root:
        bench = Bench(Path(root))
        for _ in range(500):
            bench.insert(bytes(KIB), 64)
        turn = partial(bench.insert, bytes(KIB)) if which == "insert" else bench.remove
        profiler = cProfile.Profile()
        profiler.enable()
        for _ in range(400):
            turn(64)
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
        bench.store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", choices=["insert", "remove"], required=True)
    profile(parser.parse_args().profile)


if __name__ == "__main__":
    main()
