"""Templates beside the careful path: what both would do is compared, octet for octet.

The tests have it on for every queue manager of theirs (RPCQM_SHADOW=1). Before a run is carried out
each of its requests goes the careful way up to the commit, which is taken back; then the run must
store the same records, take the same numbers and give the same answers.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import NamedTuple

from rpcqm.base.clock import Clock
from rpcqm.binary.connection.protocol import BinaryProtocol
from rpcqm.fast.observer import Apart
from rpcqm.qm.acknowledgement_queues import AcknowledgementQueues
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.positions import Positions
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import CarefulPath
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction
from tests.support.shadow.arriving import ArrivalShadow
from tests.support.shadow.leaving import OutgoingShadow
from tests.support.shadow.rehearsal import Rehearsed, Usage, rehearsing, usage
from tests.support.shadow.requests import answer_of, rehearse
from tests.support.shadow.switch import EXIT_STATUS


class Difference(NamedTuple):
    """What the careful path would do, and what the templates did."""

    what: str
    careful: object
    templated: object


def end_process(difference: Difference) -> None:
    """Say what differs, and end."""
    print(f"templates differ from the careful path: {difference}", file=sys.stderr, flush=True)
    os._exit(EXIT_STATUS)


class Rehearsal(NamedTuple):
    """What the careful path would do with a run; `refusal` is why it would not do all of it.

    `counters` are how far numbers come, `counted` is what metrics count. What was so before the run
    begins is `usage`, what quotas count, and `metrics`.
    """

    written: Rehearsed
    answers: list[bytes]
    counters: tuple[int, ...]
    counted: dict[str, int]
    usage: Usage
    metrics: dict[str, int]
    refusal: Exception | None = None


@contextmanager
def held(clock: Clock) -> Iterator[None]:
    """Let a clock show the same moment within the block: what is done twice is done at one time."""
    if "now" in vars(clock):
        yield
        return
    moment = clock.now()
    vars(clock)["now"] = lambda: moment
    try:
        yield
    finally:
        del vars(clock)["now"]


@contextmanager
def uncounted(queues: AcknowledgementQueues) -> Iterator[None]:
    """Count as before what goes into queues to strangers within the block."""
    before = queues._bytes, queues.refused, queues._told
    try:
        yield
    finally:
        queues._bytes, queues.refused, queues._told = before


@contextmanager
def unwatched(positions: Positions) -> Iterator[None]:
    """Tell nobody of what becomes of messages within the block."""
    watch, positions.watch = positions.watch, None
    try:
        yield
    finally:
        positions.watch = watch


class _AnsweredCall(NamedTuple):
    """A call that a template answers at once."""

    call: Call
    path: CarefulPath

    def rehearse(self) -> bytes:
        return answer_of(self.path, self.call)


class Shadow:
    """Compares (`rpcqm.fast.observer.Observer`); `differs` is told what is not the same."""

    def __init__(
        self, store: Store, clock: Clock, differs: Callable[[Difference], None] = end_process
    ) -> None:
        self._store, self._clock, self._differs = store, clock, differs
        self.compared = 0
        self.beside: list[Callable[[], AbstractContextManager[None]]] = []
        """What keeps as it is, within a context, what a careful path changes beside the store."""

    def at_one_time(self) -> AbstractContextManager[None]:
        """Let no time pass within the block."""
        return held(self._clock)

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep as it is what a careful path changes beside the store."""
        with ExitStack() as stack:
            for keeping in self.beside:
                stack.enter_context(keeping())
            yield

    def rehearse(self, requests: Iterable[object]) -> Rehearsal:
        """Go the careful way with each request, and take it back."""
        answers: list[bytes] = []
        refusal, store = None, self._store
        store.carry_out_first()
        metrics = store.metrics.snapshot()
        with self.keeping(), rehearsing(store) as kept:
            try:
                answers += [rehearse(request) for request in requests]
            except Exception as error:  # whatever it is, the run must not be carried out
                refusal = error
            counters = store.counters.places()
        counted = store.metrics.since(metrics)
        store.metrics.go_back(metrics)
        before = usage(store, store.queue_ids())
        written = Rehearsed.joined(kept)
        return Rehearsal(written, answers, counters, counted, before, metrics, refusal)

    def compare(
        self,
        rehearsal: Rehearsal,
        change: StoreTransaction,
        answers: list[bytes],
        *,
        together: bool = False,
        apart: Apart | None = None,
    ) -> None:
        """Compare what a run is about to commit.

        What is written `together` writes records once that the careful path writes again and again.
        `apart` tells what one record of the run is on the careful path.
        """
        templated = Rehearsed.of(change, self._store).since(rehearsal.usage)
        if apart is not None:
            templated = templated.with_records(apart)
        self.compared += len(answers)
        if rehearsal.refusal is not None:
            self._differs(Difference("refusal", rehearsal.refusal, None))
            return
        careful = rehearsal.written
        self.equal("records", careful.as_written(), templated.as_written())
        self.equal("messages", careful.as_shown(), templated.as_shown())
        if not together:
            self.equal("size", careful.size, templated.size)
        self.equal("counts", (careful.messages, careful.sync), (templated.messages, templated.sync))
        self.equal("answers", rehearsal.answers, answers)
        self.equal("counters", rehearsal.counters, self._store.counters.places())
        self.equal("metrics", rehearsal.counted, self._store.metrics.since(rehearsal.metrics))

    def compare_call(self, call: Call, path: CarefulPath, templated: bytes) -> None:
        """Compare what a call is answered with; what the careful path commits is taken back."""
        rehearsal = self.rehearse([_AnsweredCall(call, path)])
        if rehearsal.refusal is not None:
            self._differs(Difference("refusal", rehearsal.refusal, None))
        else:
            self.compare_answer(rehearsal.answers[0], templated)

    def compare_answer(self, careful: bytes, templated: bytes) -> None:
        """Compare what a read is answered with."""
        self.compared += 1
        self.equal("answers", careful, templated)

    def of_arrivals(self, engine: QueueManagerEngine, protocol: BinaryProtocol) -> ArrivalShadow:
        """What compares packets that sessions take together."""
        return ArrivalShadow(engine, protocol, self)

    def of_leaving(self, engine: QueueManagerEngine, protocol: BinaryProtocol) -> OutgoingShadow:
        """What compares messages that sessions send, and remove, together."""
        return OutgoingShadow(engine, protocol, self)

    def equal(self, what: str, careful: object, templated: object) -> None:
        """Compare one thing."""
        if careful != templated:
            self._differs(Difference(what, careful, templated))


def observe(engine: QueueManagerEngine) -> Shadow:
    """The shadow of a queue manager, whose process ends with a difference."""
    made = Shadow(engine.store, engine.clock)
    made.beside += [
        partial(uncounted, engine.acknowledgement_queues),
        partial(unwatched, engine.positions),
    ]
    return made
