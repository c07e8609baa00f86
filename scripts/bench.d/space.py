"""Disk space of a store whose messages come and go, and what giving it back costs.

A queue is filled, then as many messages come as go, in order, until all of it was
replaced once and a half. RocksDB's logs are a fixed amount of about 60 MiB in all of this.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from random import Random

from figures import Figure, attempt, figure
from harness import BUILD, few, pairs

from rpcqm.store.settings import KIB, MIB, StoreSettings
from rpcqm.store.store import Store

QUEUE = 16
GROUP = 64
LIVE = 512 * MIB
CHURN = 1.5
SMALL_LIVE = 128 * MIB
NEVER_STALL = {
    "disable_auto_compactions": "true",
    "level0_slowdown_writes_trigger": "100000",
    "level0_stop_writes_trigger": "100000",
}


class Churn:
    """A store that is never longer than it was."""

    def __init__(self, directory: Path, size: int) -> None:
        self._turn: list[Callable[[], None]] = []
        self._back: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._pool = ThreadPoolExecutor(2)
        self._bodies = [Random(number).randbytes(size) for number in range(GROUP)]
        self.store = Store.open(
            directory,
            end_of_turn=self._turn.append,
            settings=StoreSettings(reserve=0),
            executor=self._pool.submit,
            call_from_thread=self._back.put,
        )

    def stop_compaction(self) -> None:
        """Let dead messages pile up."""
        for family in self.store._database.families.values():
            family.set_options(NEVER_STALL)

    def _end_turn(self) -> None:
        while True:
            while self._turn:
                self._turn.pop(0)()
            if self.store._writer.idle:
                return
            self._back.get()()

    def insert(self) -> None:
        """Store a group of messages, durably."""
        store = self.store
        for body in self._bodies:
            with store.transaction("insert") as txn:
                key = store.counters.next_lookup_identifier(3)
                txn.insert(QUEUE, key, body, arrival=0)
        self._end_turn()

    def remove(self) -> None:
        """Remove a group of messages, durably."""
        index = self.store.index(QUEUE)
        for _ in range(GROUP):
            key = index.first_available()
            assert key is not None
            with self.store.transaction("remove") as txn:
                txn.remove(QUEUE, key)
        self._end_turn()

    def fill(self, live: int) -> None:
        """Store so many bytes."""
        while self.store.total.bytes < live:
            self.insert()

    def replace(self, share: float) -> float:
        """Let this share of what is there be replaced; messages a second."""
        turns = round(self.store.total.count * share / GROUP)
        began = time.perf_counter()
        for _ in range(turns):
            self.insert()
            self.remove()
        return turns * GROUP / (time.perf_counter() - began)

    def space(self) -> float:
        """Disk space over the bytes of messages."""
        return self.store.disk_bytes() / self.store.total.bytes

    def compact(self) -> float:
        """Give everything back; seconds."""
        began, compaction = time.perf_counter(), self.store.compact()
        while not compaction.done:
            self._back.get()()
        compaction.result()
        return time.perf_counter() - began

    def close(self) -> None:
        self.store.close()
        self._pool.shutdown()


def steady(size: int) -> list[Figure]:
    """The most space that is ever used, and what is left of it."""
    with tempfile.TemporaryDirectory(dir=BUILD) as root:
        churn = Churn(Path(root), size)
        churn.fill(few(LIVE))
        worst = 0.0
        for _ in range(round(CHURN / 0.02)):
            churn.replace(0.02)
            worst = max(worst, churn.space())
        seconds = churn.compact()
        left = churn.space()
        churn.close()
    note = f"the most while {LIVE // MIB} MiB were replaced {CHURN} times"
    coming, compacted, _ = names(size)
    return [figure(coming, worst, note), figure(compacted, left, f"took {seconds:.1f} s")]


def throughput(size: int, compacting: bool) -> float:
    """Messages a second that come and go, with RocksDB's own compaction or without."""
    with tempfile.TemporaryDirectory(dir=BUILD) as root:
        churn = Churn(Path(root), size)
        if not compacting:
            churn.stop_compaction()
        churn.fill(few(SMALL_LIVE))
        rate = churn.replace(2)
        churn.close()
    return rate


def names(size: int) -> tuple[str, str, str]:
    """Of the rows of a size."""
    of = f"messages of {size:,} bytes"
    return (
        f"disk space over live bytes, {of}, coming and going",
        f"disk space over live bytes, {of}, compacted",
        f"{of} that come and go in the store, with compaction over without",
    )


def compared(size: int) -> Figure:
    """With RocksDB's compaction over without."""
    found = pairs(partial(throughput, size, True), partial(throughput, size, False), 3)
    return found.figure(names(size)[2], os.getpid())


def run() -> Iterator[Figure]:
    """The figures for scripts/bench."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for size in (KIB, 10 * KIB):
        yield from attempt(names(size)[:2], partial(steady, size))
        yield from attempt(names(size)[2], partial(compared, size))
