"""The process that is killed: it performs a script on a store, and says what it was promised.

Usage: python -m tests.crash.workload DIRECTORY SEED LENGTH [--turns N] [--end kill|close]
           [--thread] [--die STEP:COUNT]

DIRECTORY/acknowledged gets a line `begun N` when the change N was handed to the store, and
`done N` when the store has called back; the store is in DIRECTORY/data.
"""

import argparse
import os
import queue
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from rpcqm.store.database import Database
from rpcqm.store.errors import PositionStateError
from rpcqm.store.group_commit import CommitGroup, GroupCommit
from rpcqm.store.priority_index import PriorityIndex
from rpcqm.store.records import Family
from rpcqm.store.settings import KIB, StoreSettings
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction
from tests.crash.script import EXPRESS_QUEUE, MARKER, Script, marker_of, perform

SETTINGS = StoreSettings(reserve=0, memtable=64 * KIB, large_body=4 * KIB, slow_sync=1)
MOST_OUTSTANDING = 8
"""Changes that are not durable yet, beyond which a turn waits for them."""

STEPS: dict[str, tuple[type, str]] = {
    "collect": (CommitGroup, "add"),
    "write": (Database, "write"),
    "apply": (StoreTransaction, "apply"),
    "insert": (PriorityIndex, "insert"),
    "extend": (PriorityIndex, "extend"),
    "remove": (PriorityIndex, "shrink"),
    "callbacks": (GroupCommit, "_run_callbacks"),
}
"""Steps of the commit path, each with the method that makes it."""


def die() -> None:
    """End as if the machine's patience had ended."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(step: str, number: int) -> None:
    """Die at the given occurrence of a step: `before-…` or `after-…` it."""
    when, name = step.split("-", 1)
    owner, attribute = STEPS[name]
    method = getattr(owner, attribute)
    counter = count(1)

    @wraps(method)
    def deadly(*arguments: Any, **options: Any) -> Any:
        occurrence = next(counter)
        if when == "before" and occurrence == number:
            die()
        result = method(*arguments, **options)
        if when == "after" and occurrence == number:
            die()
        return result

    setattr(owner, attribute, deadly)


class Session:
    """One life of the process."""

    def __init__(self, directory: Path, script: Script, thread: bool) -> None:
        self._script = script
        self._ends: list[Callable[[], None]] = []
        self._back: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(1)
        self._said = os.open(
            directory / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        self.store = Store.open(
            directory / "data",
            end_of_turn=self._ends.append,
            settings=SETTINGS,
            executor=self._pool.submit if thread else None,
            call_from_thread=self._back.put,
        )
        self._next = marker_of(self.store)
        self._outstanding = 0
        self._turns = 0
        self._express = count(1)

    @property
    def finished(self) -> bool:
        """Whether the whole script was handed over."""
        return self._next == len(self._script.changes)

    def say(self, event: str, change: int) -> None:
        os.write(self._said, f"{event} {change}\n".encode())

    def turn(self, changes: int) -> None:
        """Collect some changes, and write them."""
        for _ in range(changes):
            if self._next < len(self._script.changes):
                self._perform_next()
        self._add_express_message()
        # However slow a thread is: a script has many writes, at each of which it may be killed.
        self._end_turn(wait=self._outstanding > MOST_OUTSTANDING)
        self._turns += 1
        if self._turns % 8 == 0:
            # Logs are used again only when their tables are written before the next switch.
            self.store._database.families[Family.META].compact_range(None, None)

    def _perform_next(self) -> None:
        try:
            self._perform(self._next)
        except PositionStateError:
            # It needs what this turn has not written yet.
            self._end_turn(wait=True)
            self._perform(self._next)
        self.say("begun", self._next + 1)
        self._next += 1

    def _perform(self, number: int) -> None:
        with self.store.transaction(f"change {number}") as txn:
            for operation in self._script.changes[number]:
                perform(self.store, txn, operation)
            txn.put(Family.META, MARKER, str(number + 1).encode())
            txn.call_after(partial(self._acknowledge, number + 1))
        self._outstanding += 1

    def _acknowledge(self, number: int) -> None:
        self._outstanding -= 1
        self.say("done", number)

    def _add_express_message(self) -> None:
        with self.store.transaction("express") as txn:
            key = next(self._express)
            txn.insert(EXPRESS_QUEUE, key, b"express", arrival=0, durable=False)
            txn.stage_message(b"left open by all", EXPRESS_QUEUE, b"staged", b"")

    def _end_turn(self, wait: bool) -> None:
        self._run_ends()
        while wait and self._outstanding:
            self._back.get()()
            self._run_ends()
        while not self._back.empty():
            self._back.get()()
            self._run_ends()

    def _run_ends(self) -> None:
        while self._ends:
            self._ends.pop(0)()

    def close(self) -> None:
        self.store.close()
        self._pool.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("seed", type=int)
    parser.add_argument("length", type=int)
    parser.add_argument("--turns", type=int, default=1 << 30)
    parser.add_argument("--end", choices=["kill", "close"], default="close")
    parser.add_argument("--thread", action="store_true")
    parser.add_argument("--die", metavar="STEP:COUNT")
    arguments = parser.parse_args()
    script = Script(arguments.seed, arguments.length)
    random = Random(arguments.seed)
    if arguments.die:
        step, number = arguments.die.rsplit(":", 1)
        die_at(step, int(number))
    session = Session(arguments.directory, script, arguments.thread)
    for _ in range(arguments.turns):
        session.turn(random.randrange(1, 7))
        if session.finished:
            break
    if arguments.end == "kill":
        die()
    session.close()


if __name__ == "__main__":
    main()
