#!/usr/bin/env python3
"""Start-up time and memory of the store with many messages, each with a time-to-be-received.

Usage: startup.py [--messages N]… [--size BYTES]

For every N a database is filled, then opened by a process of its own. CPU seconds are of the
whole process from before the store is opened; bytes per message are resident memory over that of
a process that opened an empty store, divided by N.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from figures import Figure, attempt, figure
from harness import BUILD, few
from sampling import sampled_command

from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store

QUEUES = 5
NOW = 1_750_000_000_000
GROUP = 1_000
SIZES = (100_000, 1_000_000)


@dataclass(frozen=True)
class Start:
    """What one start took."""

    messages: int
    cpu_seconds: float
    seconds: float
    bytes_per_message: float


def fill(directory: Path, messages: int, size: int) -> None:
    """Store messages in several queues, every one with an expiry of its own."""
    turns: list[Callable[[], None]] = []
    random = Random(1)
    store = Store.open(directory, end_of_turn=turns.append, settings=StoreSettings(reserve=0))
    packet = random.randbytes(size)
    for start in range(0, messages, GROUP):
        for number in range(start, min(start + GROUP, messages)):
            with store.transaction("fill") as txn:
                key = store.counters.next_lookup_identifier(3)
                expiry = NOW + random.randrange(1 << 32)
                txn.insert(16 + number % QUEUES, key, packet, arrival=NOW, expiry=expiry)
        while turns:
            turns.pop()()
    store.close()


def resident() -> int:
    """Resident bytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def measure(directory: Path) -> None:
    """Open the store in this process, and print what that took."""
    cpu, wall = time.process_time(), time.perf_counter()
    store = Store.open(directory, end_of_turn=print, settings=StoreSettings(reserve=0))
    figures = {
        "messages": store.total.count,
        "cpu_seconds": time.process_time() - cpu,
        "seconds": time.perf_counter() - wall,
        "resident": resident(),
    }
    print(json.dumps(figures))
    store.close()


def measured(directory: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", str(directory)]
    figures: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    return figures


def start_with(root: Path, messages: int, size: int) -> Start:
    """Fill a database and start on it."""
    empty, full = root / "empty", root / str(messages)
    fill(empty, 0, size)
    fill(full, messages, size)
    base, found = measured(empty), measured(full)
    shutil.rmtree(full)
    assert found["messages"] == messages
    memory = (found["resident"] - base["resident"]) / messages
    return Start(messages, found["cpu_seconds"], found["seconds"], memory)


def starts(sizes: tuple[int, ...], size: int = 1024) -> list[Start]:
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as root:
        return [start_with(Path(root), messages, size) for messages in sizes]


def profile_of(messages: int) -> tuple[str, ...]:
    """Where the time of a start goes."""
    with tempfile.TemporaryDirectory(dir=BUILD) as root:
        fill(Path(root), messages, 1024)
        return sampled_command([sys.executable, __file__, "--measure", root])


def names(messages: int) -> tuple[str, str]:
    """Of the rows of so many messages."""
    return (
        f"start with {messages:,} messages that expire",
        f"memory of each of {messages:,} messages after a start",
    )


def figures(messages: int) -> list[Figure]:
    start = starts((few(messages),))[0]
    cpu, memory = names(messages)
    note = f"{start.seconds:.2f} s by the clock"
    made = figure(cpu, start.cpu_seconds, note)
    if not made.met:
        made = replace(made, profile=profile_of(few(messages)))
    return [made, figure(memory, start.bytes_per_message)]


def run() -> Iterator[Figure]:
    """The figures for scripts/bench."""
    for messages in SIZES:
        yield from attempt(names(messages), partial(figures, messages))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, action="append")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--fill", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    if arguments.fill:
        fill(arguments.fill, arguments.messages[0], arguments.size)
        return
    for start in starts(tuple(arguments.messages or SIZES), arguments.size):
        print(
            f"{start.messages:>9,} messages: {start.cpu_seconds:.2f} s of CPU, "
            f"{start.seconds:.2f} s, {start.bytes_per_message:.1f} bytes per message"
        )


if __name__ == "__main__":
    main()
