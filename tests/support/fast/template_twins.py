"""Two queue managers with one past: one has request templates, the other one has none.

Whatever is asked of both, in one turn or in several, they must answer and keep the same.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rpcqm.base.errors import MQError
from rpcqm.codec.interface import TransferSyntax
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.rpc.interface_registry import NCALRPC
from rpcqm.store.records import Family
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE, CallServer, Fault, PendingCall
from tests.support.rpc.dependent_client import Client, served_clients
from tests.support.rpc.remote_reader import Reader, served_remote_read
from tests.support.store.store_state import state_of

_IDENTIFIER = re.compile(rb'"identifier":"[^"]*"')
QUEUE = r"private$\orders"
ADMINISTRATION = r"private$\administration"


class Half:
    """One of the two, with what clients have open there."""

    def __init__(self, directory: Path, templates: bool, syntax: TransferSyntax) -> None:
        self.qm = RunningQueueManager(directory)
        self._templates, self._syntax = templates, syntax
        self.serve()

    def serve(self) -> None:
        """Let clients connect and open the queue."""
        self.qm.speed.turn.is_on = self._templates
        self.qm.engine.trail._number = 0  # where it begins is random
        self.server: CallServer = served_clients(self.qm)
        self.senders = [Client(self.server.connect(ALICE, transport=NCALRPC)) for _ in range(2)]
        queue = self.qm.find()
        self.handles = [each.open(queue, QueueAccessType.SEND_ACCESS)[0] for each in self.senders]
        reading = served_remote_read(self.qm).connect(ALICE, syntax=self._syntax)
        self.reader = Reader(reading)
        self.reading = self.reader.open(queue)

    def outcomes(self, calls: list[PendingCall]) -> list[object]:
        """What calls have been answered with, at the end of their turn."""
        for each in self.senders:
            each.caller.settle()
        self.reader.caller.settle()
        return [_outcome(call) for call in calls]


def _outcome(call: PendingCall) -> object:
    try:
        return repr(call.result())
    except Fault as fault:
        return str(fault)


class Twins:
    """Both halves; `do` does the same with each."""

    def __init__(self, directory: Path, syntax: TransferSyntax) -> None:
        with_templates, without = directory / "templates", directory / "careful"
        first = RunningQueueManager(with_templates)
        for path in (QUEUE, ADMINISTRATION):
            first.create(path)
        first.stop()
        shutil.copytree(with_templates, without)
        self.halves = Half(with_templates, True, syntax), Half(without, False, syntax)

    def do(self, what: Callable[[Half], Any]) -> list[Any]:
        """Do the same with both, and give what came of it; AssertionError if that differs."""
        first, second = (_told(what, half) for half in self.halves)
        assert first == second
        return [first, second]

    def check(self) -> None:
        """Both keep the same, and count it the same."""
        kept = [_without_random(without_owners(state_of(half.qm.store))) for half in self.halves]
        assert kept[0] == kept[1]
        places = [half.qm.store.counters.places() for half in self.halves]
        assert places[0] == places[1]

    def stop(self) -> None:
        for half in self.halves:
            half.qm.stop()


def without_owners(state: dict[str, Any]) -> dict[str, Any]:
    """Who has a message locked is a descriptor of each half's own."""
    for queue in state["queues"].values():
        for key, (position, status, moves, owner, packet) in queue["messages"].items():
            queue["messages"][key] = position, status, moves, owner is None, packet
    return state


def _without_random(state: dict[str, Any]) -> dict[str, Any]:
    """Outgoing queues get random identifiers, which nobody but the queue manager sees."""
    records = state["records"][Family.QUEUE]
    for key, value in records.items():
        records[key] = _IDENTIFIER.sub(b"", value) if b'"kind":"outgoing"' in value else value
    return state


def _told(what: Callable[[Half], Any], half: Half) -> Any:
    try:
        return what(half)
    except (MQError, Fault) as error:
        return str(error)


@contextmanager
def twins(directory: Path, syntax: TransferSyntax = TransferSyntax.NDR) -> Iterator[Twins]:
    both = Twins(directory, syntax)
    try:
        yield both
    finally:
        both.stop()
