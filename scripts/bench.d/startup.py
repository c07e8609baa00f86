#!/usr/bin/env python3
"""Start-up time and memory of the store with many messages, each with a time-to-be-received.

Usage: startup.py [--messages N]… [--size BYTES] [--directory D] [--json]

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
from pathlib import Path
from random import Random
from typing import Any

from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store

QUEUES = 5
NOW = 1_750_000_000_000
GROUP = 1_000


def fill(directory: Path, messages: int, size: int) -> None:
    """Store messages in several queues, every one with an expiry of its own."""
    turns: list[Any] = []
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
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "seconds": round(time.perf_counter() - wall, 3),
        "resident": resident(),
    }
    print(json.dumps(figures))
    store.close()


def measured(directory: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", str(directory)]
    figures: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    return figures


def compare(root: Path, messages: int, size: int) -> dict[str, Any]:
    """Figures of a start with so many messages."""
    empty, full = root / "empty", root / str(messages)
    fill(empty, 0, size)
    fill(full, messages, size)
    base, figures = measured(empty), measured(full)
    figures["bytes_per_message"] = round((figures["resident"] - base["resident"]) / messages, 1)
    shutil.rmtree(full)
    return figures


def show(figures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(figures))
    else:
        print(
            f"{figures['messages']:>9,} messages: {figures['cpu_seconds']:.2f} s of CPU, "
            f"{figures['seconds']:.2f} s, {figures['bytes_per_message']} bytes per message"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Start-up of the store with many messages.")
    parser.add_argument("--messages", type=int, action="append")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--directory", type=Path, help="where databases are made (not /tmp)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    with tempfile.TemporaryDirectory(dir=arguments.directory) as root:
        for messages in arguments.messages or [100_000, 1_000_000]:
            show(compare(Path(root), messages, arguments.size), arguments.json)


if __name__ == "__main__":
    main()
