"""A block of changes that become durable together, and the interface of its store."""

from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from rpcqm.base.completion import Completion
from rpcqm.base.metrics import Metrics
from rpcqm.store.counters import Counters
from rpcqm.store.express import ExpressBodies
from rpcqm.store.index import QueueIndex
from rpcqm.store.records import Family
from rpcqm.store.uncommitted import UncommittedOperation, UncommittedTransaction

if TYPE_CHECKING:
    from rocksdict import ColumnFamily as FamilyHandle

Step = tuple[Any, ...]
"""A change in memory: its publication, its undoing, its subject, arguments.

Both are functions of the last two, or None; the first takes one argument only.
"""


class Backing(Protocol):
    """The methods of the store that transactions use."""

    metrics: Metrics
    counters: Counters
    express: ExpressBodies
    uncommitted: dict[bytes, UncommittedTransaction]
    handles: "dict[Family, FamilyHandle]"
    body_handle: "FamilyHandle"
    position_handle: "FamilyHandle"

    def begin(self, changes: "Changes") -> None:
        """Begin a block."""

    def leave(self) -> None:
        """End a block."""

    def commit(self, changes: "Changes") -> None:
        """Write a block together with the others of this turn."""

    def admit(self, size: int) -> None:
        """Let a new message of `size` bytes in."""

    def index(self, queue_id: int) -> QueueIndex:
        """The messages of a queue."""

    def forget_index(self, queue_id: int) -> None:
        """Drop the index of a deleted queue."""

    def keep_express(self, serial: int, packet: bytes) -> None:
        """Keep the packet of an express message."""

    def keep_express_many(self, serials: range, packets: Sequence[bytes], size: int) -> None:
        """Keep the packets of express messages."""

    def charge_staged(self, operation: UncommittedOperation) -> None:
        """Count a staged message in its queue's account."""

    def release_staged(self, operation: UncommittedOperation) -> None:
        """Undo `charge_staged`."""


def _call(callback: Callable[[], object]) -> None:
    callback()


class Changes:
    """The changes of a block: what it writes, publishes, undoes and calls."""

    __slots__ = (
        "_committed",
        "_finished",
        "_store",
        "callbacks",
        "messages",
        "name",
        "operations",
        "requests",
        "size",
        "steps",
        "sync",
    )

    def __init__(self, store: "Backing", name: str) -> None:
        self._store = store
        self.name = name
        self.operations: list[tuple[bytes, bytes | None, FamilyHandle]] = []
        self.steps: list[Step] = []
        self.callbacks: list[Callable[[], object]] = []
        self._committed: Completion[None] | None = None
        self._finished = False
        self.size = 0
        self.messages = 0
        self.requests = 1
        """The number of requests that it answers; a group with several waits for more."""
        self.sync = False

    def call_after(self, callback: Callable[[], object]) -> None:
        """Call when the changes are as durable as promised and visible, in order of the calls.

        Errors of the callback are logged and stop nothing.
        """
        self.callbacks.append(callback)

    def call_when_undone(self, callback: Callable[[], object]) -> None:
        """Call `callback` if the block fails, so that the caller can undo its own changes."""
        self.steps.append((None, _call, callback))

    def return_numbers_on_rollback(self) -> None:
        """Take back the numbers that the block takes from now on, and the counts, if it fails.

        For a block that shows its numbers to nobody until it has ended.
        """
        counters, metrics = self._store.counters, self._store.metrics
        self.call_when_undone(partial(counters.go_back, counters.places()))
        self.call_when_undone(partial(metrics.go_back, metrics.snapshot()))

    @property
    def committed(self) -> Completion[None]:
        """Succeeds after the callbacks of the commit; stays pending when the block fails."""
        if self._committed is None:
            self._committed = Completion()
            if self._finished:
                self._committed.succeed(None)
        return self._committed

    def __enter__(self) -> Self:
        self._store.begin(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._store.leave()
        if kind is not None:
            self.undo()
            self.operations.clear()  # whose handles an error's traceback would keep
            return
        try:
            self._store.commit(self)
        except BaseException:
            self.undo()
            raise

    def undo(self) -> None:
        """Take back every change in memory, the last one first."""
        self.undo_until(0)

    def undo_until(self, count: int) -> None:
        """Take back every change in memory but so many first ones."""
        while len(self.steps) > count:
            _, undo, subject, *arguments = self.steps.pop()
            if undo is not None:
                undo(subject, *arguments)

    def apply(self) -> None:
        """Make the changes visible."""
        for step in self.steps:
            if (apply := step[0]) is not None:
                apply(step[2], step[3])

    def finish(self) -> None:
        """Resolve the completions: the changes are visible and the callbacks have run."""
        self._finished = True
        self.operations.clear()
        if self._committed is not None:
            self._committed.succeed(None)
