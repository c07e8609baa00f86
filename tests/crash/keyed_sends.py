"""The process that is killed while a program sends under keys, and completes leases.

Usage: python -m tests.crash.keyed_sends DIRECTORY COUNT [--die STEP:COUNT]

The messages `1` to COUNT are sent to the queue orders, each under a key of its own. Every tenth
also belongs to a task: it is received from the queue tasks, and its result is sent to the queue
results, which is transactional, in the commit that completes it. DIRECTORY/acknowledged gets a
line `sent N ID` for each answer. A new life repeats what has no answer, and the last few that have
one.
"""

import argparse
import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rpcqm.adm.queue import Queue
from rpcqm.base.identity import authenticated
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.qm.program_work import RequestKey, Sending
from tests.crash.workload import die_at
from tests.support.queue_manager import RunningQueueManager

ALICE = authenticated("alice", "S-1-5-21-1-2-3-1001")
AT_ONCE = 8
"""Requests of a turn, which share a write."""
AGAIN = 20
"""Answered requests that a new life makes again."""
TASKS_EVERY = 10
ORDERS, TASKS, RESULTS = (rf"private$\{name}" for name in ("orders", "tasks", "results"))


class Program:
    """One life of the queue manager with its program."""

    def __init__(self, directory: Path, count: int) -> None:
        self._count = count
        self._path = directory / "acknowledged"
        self._told = answers(self._path)
        self._qm = RunningQueueManager(directory / "data")
        self._fill(directory / "filled")
        self._said = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._leases = self._receive()

    def _fill(self, done: Path) -> None:
        """Make the queues and the tasks, which no kill interrupts."""
        if not done.exists():
            self._qm.create(ORDERS)
            self._qm.create(RESULTS, transactional=True)
            tasks = self._qm.create(TASKS)
            for number in range(TASKS_EVERY, self._count + 1, TASKS_EVERY):
                self._qm.send(tasks, b"%d" % number)
            done.touch()

    def _receive(self) -> dict[int, str]:
        """A lease of each task that is left."""
        tasks = self._qm.find(TASKS)
        name = self._qm.engine.queues.format_name_of(tasks)
        reception = self._qm.engine.leases.receive(name, ALICE, lease=3_600_000, most=1_000)
        return {
            int(each.message.attributes.body): each.lease.identifier
            for each in self._qm.done(reception.outcome)
            if each.lease
        }

    def run(self) -> None:
        """Make all requests that have no answer, and some again."""
        first = max(len(self._told) - AGAIN, 0) + 1
        for start in range(first, self._count + 1, AT_ONCE):
            for number in range(start, min(start + AT_ONCE, self._count + 1)):
                self._request(number)
            self._qm.settle()

    def _request(self, number: int) -> None:
        body = b"%d" % number
        key = RequestKey(f"key {number}", hashlib.sha256(body).digest())
        sendings = [self._sending(ORDERS, body)]
        completes = []
        if number % TASKS_EVERY == 0:
            sendings.append(self._sending(RESULTS, body))
            completes = [self._leases.get(number, "a lease of an earlier life")]
        sent = self._qm.engine.program_work.perform(ALICE, sendings, completes, key)
        sent.add_done_callback(lambda done: self._answered(number, done.result()))

    def _sending(self, name: str, body: bytes) -> Sending:
        format_name = self._qm.engine.queues.format_name_of(self._qm.find(name))
        return Sending(format_name, MessageAttributes(body=body, delivery_guarantee=1))

    def _answered(self, number: int, identifiers: tuple[MessageIdentifier, ...]) -> None:
        os.write(self._said, f"sent {number} {identifiers[0]}\n".encode())

    def contents(self) -> tuple[list[int], list[int], list[int]]:
        """What is in orders, tasks and results."""
        find: Callable[[str], Queue] = self._qm.find
        orders, results = map(find, (ORDERS, RESULTS))
        read = partial(map, int)
        return (
            list(read(self._qm.bodies(orders))),
            sorted(self._leases),
            list(read(self._qm.bodies(results))),
        )

    def stop(self) -> None:
        """End in good order."""
        self._qm.stop()
        os.close(self._said)


def answers(path: Path) -> dict[int, set[str]]:
    """The identifiers that each request was told; one that was made again is told the same."""
    found: dict[int, set[str]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        _, number, identifier = line.split(" ", 2)
        found.setdefault(int(number), set()).add(identifier)
    return found


def main() -> None:
    """One life."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("--die")
    arguments = parser.parse_args()
    program = Program(arguments.directory, arguments.count)
    if arguments.die:
        step, number = arguments.die.split(":")
        die_at(step, int(number))
    program.run()
    program.stop()


if __name__ == "__main__":
    main()
