"""What a receive costs with few and with very many messages in the queue.

Recoverable messages of 1 KiB, received in two phases in the order of the queue, 64 to a commit:
the whole time of it, reading bodies and writing removals included. The deep queue lies on the
disk, most of it outside RocksDB's caches.
"""

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from engine import GROUP, Bench
from figures import Figure, attempt, figure
from harness import few

from rpcqm.adm.enums import MessageSeekAction
from rpcqm.adm.message import Message
from rpcqm.codec.types.mqvalues import INFINITE

SHALLOW, DEEP = 1_000, 1_000_000
ROUNDS = 9
ROWS = tuple(
    f"{what}, {DEEP:,} against {SHALLOW:,} messages"
    for what in ("receive", "peek by lookup identifier")
)
NOTES = "µs each in the deep queue", "µs each, anywhere in the deep queue"
TOGETHER = 1_000
"""Messages to a commit while a queue is filled."""


def fill(bench: Bench, messages: int) -> None:
    """Put messages into the queue, many to a commit."""
    packet = bench.compose().packet
    send = bench.engine.messages.enqueue_message_to_an_open_queue
    for _ in range(messages // TOGETHER):
        for _ in range(TOGETHER):
            send(bench.sending, Message(packet))
        bench.settle()


def receiving(bench: Bench) -> float:
    """Microseconds for each of some messages at the head, which are replaced."""
    count = 8 * GROUP
    began = time.perf_counter()
    bench.receive(count)
    elapsed = time.perf_counter() - began
    bench.enqueue(count)
    return elapsed / count * 1e6


def looking(bench: Bench) -> float:
    """Microseconds for a peek in the middle, by lookup identifier."""
    positions = bench.queue.message_position_list
    first, last = positions.first(), positions.last()
    assert first is not None
    assert last is not None
    step = (last - first) // 512 or 1
    read = bench.engine.messages.read_message_by_lookup_identifier
    began = time.perf_counter()
    for number in range(500):
        read(bench.receiving, first + number * step, True, MessageSeekAction.SEEK_NEXT)
    return (time.perf_counter() - began) / 500 * 1e6


def figures(messages: int) -> list[Figure]:
    """How many times a receive, and a peek, cost in the deep queue what they cost in the shallow.

    Both queues are measured in turns; the medians of the ratios count.
    """
    with tempfile.TemporaryDirectory() as directory:
        shallow, deep = (Bench(Path(directory) / name) for name in ("shallow", "deep"))
        deep.engine.queue_manager.queue_manager_quota = INFINITE
        fill(shallow, SHALLOW)
        fill(deep, messages)
        for bench in (shallow, deep):
            receiving(bench)
        rounds = [
            [(cost(deep), cost(shallow)) for cost in (receiving, looking)] for _ in range(ROUNDS)
        ]
        found = [told(*each) for each in zip(ROWS, NOTES, zip(*rounds, strict=True), strict=True)]
        made = found[0].explained(os.getpid(), partial(receiving, deep))
        for bench in (shallow, deep):
            bench.store.close()
        shutil.rmtree(Path(directory) / "deep", ignore_errors=True)
    return [made, *found[1:]]


def told(name: str, note: str, pairs: Sequence[tuple[float, float]]) -> Figure:
    """One row of its pairs, with the microseconds in the deep queue."""
    deep = statistics.median(one for one, _ in pairs)
    return figure(
        name, statistics.median(one / other for one, other in pairs), f"{deep:.0f} {note}"
    )


def run() -> Iterator[Figure]:
    """The figures for scripts/bench."""
    yield from attempt(ROWS, lambda: figures(few(DEEP)))
