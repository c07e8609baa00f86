"""What giving disk space back costs those who send and receive meanwhile.

Over 16 connections messages of 1 KiB are sent and received one after the other, in a queue that
has a backlog. Two queue managers are measured in turns: one as it is, and one whose RocksDB never
compacts by itself; RocksDB's log tells how much was rewritten. In addition the first is compacted
as a whole over and over meanwhile, as `rpcqm compact` does it. The server, its compaction
included, has one processor.

With arguments it is `rpcqm` without compaction.
"""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from durable_calls import CONFIGURATION, QUEUE, coming_and_going, sending
from figures import Figure, attempt
from harness import BUILD, TRIAL, few, load, pairs
from served import EVERYONE, RPCQM, Served, serving
from space import NEVER_STALL

from rpcqm.cli.main import main as rpcqm
from rpcqm.client.blocking import BlockingClient
from rpcqm.client.target import LocalServer
from rpcqm.store.store import Store

SIZE = 1024
CONNECTIONS = 16
CALLS = 3
BACKLOG = 250_000
"""Messages that are there all the time."""
SECONDS, WARM_UP, ROUNDS = 8.0, 1.0, 3
ALONE = "messages that come and go, with background compaction over without"
WHOLE = "messages that come and go while `rpcqm compact` runs over and over, over without"
EVENT = "EVENT_LOG_v1 "


def rewritten(served: Served) -> tuple[int, int]:
    """How many compactions have ended, and the octets that they have written."""
    count = octets = 0
    for path in served.data.rglob("LOG*"):
        for line in path.read_text("utf-8", "replace").splitlines():
            _, found, text = line.partition(EVENT)
            event = json.loads(text) if found else {}
            if event.get("event") == "compaction_finished":
                count += 1
                octets += event["total_output_size"]
    return count, octets


@contextmanager
def compacting(served: Served) -> Iterator[None]:
    """One compaction after the other; the last one has ended afterwards."""
    done = threading.Event()

    def compact() -> None:
        with BlockingClient(LocalServer(served.socket)) as client:
            while not done.is_set():
                client.run(client.wrapped.maintenance.compact())

    thread = threading.Thread(target=compact, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class Bench:
    """One queue manager: its rates, and what it has rewritten meanwhile."""

    def __init__(self, served: Served) -> None:
        self._served, self.server = served, served.pid
        self.seen: list[tuple[int, int]] = []
        served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
        backlog = replace(sending(SIZE).ours, window=CONNECTIONS)
        load(served.port, CONNECTIONS, backlog, 0, 0, few(BACKLOG))

    def left_alone(self) -> float:
        """Messages per second that have come and gone."""
        count, octets = rewritten(self._served)
        seen = load(self._served.port, CONNECTIONS, coming_and_going(SIZE), SECONDS, WARM_UP)
        now_count, now_octets = rewritten(self._served)
        self.seen.append((now_count - count, now_octets - octets))
        return seen.calls_per_second / CALLS

    def compacted(self) -> float:
        """The same while all is compacted over and over."""
        with compacting(self._served):
            return self.left_alone()

    @property
    def text(self) -> str:
        """What was seen since the last time."""
        counts, octets = zip(*self.seen, strict=True)
        self.seen.clear()
        return f"{sum(counts)} compactions wrote {sum(octets) / 2**20:,.0f} MiB"


def alone(ours: Bench, never: Bench) -> Figure:
    """With what RocksDB does by itself."""
    measured = pairs(ours.left_alone, never.left_alone, ROUNDS)
    seen, none = ours.text, never.text
    if not TRIAL and (seen.startswith("0 ") or not none.startswith("0 ")):
        raise RuntimeError(f"with: {seen}; without: {none}")
    return measured.figure(ALONE, ours.server, f"; {seen}")


def whole(ours: Bench, never: Bench) -> Figure:
    """With a compaction of everything without a pause."""
    measured = pairs(ours.compacted, never.left_alone, ROUNDS)
    return measured.figure(WHOLE, note=f"; {ours.text}")


def run() -> Iterator[Figure]:
    BUILD.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=BUILD) as name, ExitStack() as stack:
        commands = {"ours": RPCQM, "never": (sys.executable, __file__)}
        ours, never = (
            Bench(stack.enter_context(serving(Path(name) / which, CONFIGURATION, command)))
            for which, command in commands.items()
        )
        yield from attempt(ALONE, partial(alone, ours, never))
        yield from attempt(WHOLE, partial(whole, ours, never))


def main() -> int:
    """The command line of a queue manager whose store is not compacted."""
    opened = Store.open

    def without(*arguments: Any, **more: Any) -> Store:
        store = opened(*arguments, **more)
        for family in store._database.families.values():
            family.set_options(NEVER_STALL)
        return store

    with patch.object(Store, "open", without):
        return rpcqm(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
