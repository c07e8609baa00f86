"""Batches and runs of sessions are compared with the careful path (docs/request-templates.md)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.binary.session import Session
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.fast.arrival_runs import ArrivalRuns
from rpcqm.fast.doors.session_stamped import Recognised
from rpcqm.qm.message_history import MessageIDHistory
from rpcqm.qm.message_trace import MessageTrace
from rpcqm.store.transaction import StoreTransaction
from tests.support.binary.binary_network import Node
from tests.support.shadow.arriving import ArrivalShadow
from tests.support.shadow.comparing import Difference, Shadow
from tests.support.shadow.leaving import OutgoingShadow
from tests.unit.fast import test_arrival_batches as arriving
from tests.unit.fast import test_outgoing_runs as leaving

Differences = list[Difference]


def watched(node: Node) -> tuple[Differences, Shadow]:
    """Compare what a queue manager does from now on, whatever the environment says."""
    differences: Differences = []
    shadow = Shadow(node.store, node.simulation.clock, differences.append)
    node.speed.batches.shadow = ArrivalShadow(node.engine, node.protocol, shadow)
    node.speed.outgoing_runs.shadow = OutgoingShadow(node.engine, node.protocol, shadow)
    return differences, shadow


class Arrivals:
    """A queue manager that knows all shapes that come."""

    def __init__(self, directory: Path) -> None:
        self.half = arriving.Half(directory, together=True)
        self.deliver(*arriving.several(3, 101), *arriving.several(3, 201, recoverable=False))
        self.deliver(*arriving.in_sequence(3), *arriving.several(3, 301, queue="others"))
        self.deliver(*arriving.several(3, 401, limits=(INFINITE, 50)))
        self.differences, self.shadow = watched(self.half.bob)

    def deliver(self, *sent: arriving.Sent) -> None:
        self.half.deliver(list(sent), [], False)
        self.half.simulation.settle()

    def deliver_all(self) -> None:
        queues = "orders", "others"
        self.deliver(*(arriving.Sent(queues[n % 2], number=500 + n) for n in range(40)))
        self.deliver(*arriving.several(40, 700, recoverable=False))
        self.deliver(*arriving.in_sequence(40, 4), *arriving.several(40, 800))
        self.deliver(*arriving.several(9, 900, limits=(INFINITE, 50)))

    @property
    def told(self) -> set[str]:
        return {difference.what for difference in self.differences}


@pytest.fixture
def arrivals(tmp_path: Path) -> Iterator[Arrivals]:
    made = Arrivals(tmp_path)
    yield made
    made.half.simulation.stop()


def test_each_batch_is_what_its_packets_are_one_by_one(arrivals: Arrivals) -> None:
    batches = arrivals.half.bob.speed.batches
    before = batches.taken
    arrivals.deliver_all()
    assert arrivals.differences == []
    assert arrivals.shadow.compared == batches.taken - before > 160


def test_nothing_of_a_comparison_stays(arrivals: Arrivals) -> None:
    arrivals.deliver_all()
    kept, told = arrivals.half.kept, arrivals.half.told
    again = Arrivals(arrivals.half.simulation.directory.parent / "again")
    again.half.bob.speed.batches.shadow = None
    again.deliver_all()
    assert (again.half.kept, again.half.told) == (kept, told)
    again.half.simulation.stop()


Change = Callable[..., Any]


def forgets(*_: object) -> None:
    """Do nothing."""


def inserts_one_less(insert: Change) -> Change:
    def wrong(self: ArrivalRuns, change: StoreTransaction, run: Any) -> None:
        run.priorities[-1] ^= 1
        insert(self, change, run)

    return wrong


def counts_more(insert: Change) -> Change:
    def wrong(self: ArrivalRuns, change: StoreTransaction, run: Any) -> None:
        self._store.metrics.count("something")
        insert(self, change, run)

    return wrong


def charges_more(insert: Change) -> Change:
    def wrong(self: ArrivalRuns, change: StoreTransaction, run: Any) -> None:
        insert(self, change, run)
        self._store.index(run.queue.queue_id).account.charge(1)

    return wrong


def expires_later(insert: Change) -> Change:
    def wrong(self: ArrivalRuns, change: StoreTransaction, run: Any) -> None:
        run.expiries[:] = [7 for _ in run.expiries]
        insert(self, change, run)

    return wrong


def counts_one_less(count: Change) -> Change:
    def wrong(self: Session, number: int, recoverable: int, *, direct: bool) -> None:
        count(self, number - 1, recoverable, direct=direct)

    return wrong


ARRIVING: dict[str, tuple[type, str, Callable[[Change], Change], set[str]]] = {
    "another place": (ArrivalRuns, "insert", inserts_one_less, {"records", "messages"}),
    "another counter": (ArrivalRuns, "insert", counts_more, {"metrics"}),
    "another account": (ArrivalRuns, "insert", charges_more, {"messages"}),
    "another time": (ArrivalRuns, "insert", expires_later, {"records", "messages"}),
    "no history": (MessageIDHistory, "add_many", lambda _: forgets, {"records", "history"}),
    "counts": (Session, "count_messages", counts_one_less, {"session: received"}),
}


@pytest.mark.parametrize("kind", ARRIVING)
def test_a_batch_that_differs_is_noticed(
    arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    where, name, change, told = ARRIVING[kind]
    monkeypatch.setattr(where, name, change(getattr(where, name)))
    arrivals.deliver(*arriving.several(40, 500))
    assert told <= arrivals.told


def test_an_express_packet_that_differs_is_noticed(
    arrivals: Arrivals, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = ArrivalRuns.insert

    def wrong(self: ArrivalRuns, change: StoreTransaction, run: Any) -> None:
        run.stored[-1] = run.stored[-1][:-1] + b"!"
        insert(self, change, run)

    monkeypatch.setattr(ArrivalRuns, "insert", wrong)
    arrivals.deliver(*arriving.several(40, 500, recoverable=False))
    assert arrivals.told == {"messages"}


class Leaving:
    """A queue manager whose messages leave over a session."""

    def __init__(self, directory: Path, to: str = leaving.ORDERS) -> None:
        self.half = leaving.Half(directory, together=True)
        self.do("send", to, 5, {})
        self.half.simulation.advance(100)
        self.do("open")
        self.acknowledge()
        self.differences, self.shadow = watched(self.half.alice)

    def do(self, method: str, *arguments: Any) -> None:
        getattr(self.half, method)(*arguments)
        self.half.alice.settle()

    def acknowledge(self) -> None:
        """The peer has all that it was sent."""
        for _ in range(3):
            self.do("acknowledge", 64, 32)
            self.half.simulation.advance(100)

    def leave(self) -> None:
        self.do("send", leaving.ORDERS, 30, {})
        self.acknowledge()
        self.do("send", leaving.ORDERS, 20, {"delivery_guarantee": 0, "priority": 5})
        self.acknowledge()

    @property
    def told(self) -> set[str]:
        return {difference.what for difference in self.differences}


@pytest.fixture
def outgoing(tmp_path: Path) -> Iterator[Leaving]:
    made = Leaving(tmp_path)
    yield made
    made.half.simulation.stop()


def test_each_run_is_what_its_messages_are_one_by_one(outgoing: Leaving) -> None:
    before = outgoing.half.alice.speed.outgoing_runs.sent
    outgoing.leave()
    sent = outgoing.half.alice.speed.outgoing_runs.sent - before
    assert outgoing.differences == []
    assert sent > 20
    assert outgoing.shadow.compared > sent + 20


def test_what_was_put_off_is_no_part_of_a_removal(outgoing: Leaving) -> None:
    node, told = outgoing.half.alice, []
    queue, hooks = node.create("mine"), node.engine.positions.deleted_hooks
    own: Any = lambda *arguments: told.append(arguments[1])  # noqa: E731
    hooks.append(own)

    def put_off() -> None:
        for hook in node.engine.positions.deleted_hooks:
            if hook is own or hook not in hooks:
                hook(None, queue, 1, None)  # type: ignore[arg-type]

    outgoing.do("send", leaving.ORDERS, 10, {})
    node.store.put_off(put_off)
    outgoing.acknowledge()
    assert told.count(queue) == 1
    assert outgoing.differences == []


class Ticking:
    """A clock that goes on whenever somebody looks."""

    def __init__(self) -> None:
        self._time = 0

    def now(self) -> int:
        self._time += 1
        return self._time

    monotonic = now


def test_both_happen_at_one_time(outgoing: Leaving, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, node = Ticking(), outgoing.half.alice
    shadow = Shadow(node.store, clock, outgoing.differences.append)
    monkeypatch.setattr(node.engine.message_trace, "_clock", clock)
    monkeypatch.setattr(
        node.speed.outgoing_runs, "shadow", OutgoingShadow(node.engine, node.protocol, shadow)
    )
    outgoing.leave()
    assert shadow.compared > 20
    assert outgoing.differences == []


def test_what_has_arrived_in_order_is_compared(tmp_path: Path) -> None:
    outgoing = Leaving(tmp_path, leaving.STREAM)
    outgoing.do("acknowledge_order", 0)
    outgoing.do("send", leaving.STREAM, 20, {})
    outgoing.half.simulation.advance(100)
    outgoing.acknowledge()
    before = outgoing.shadow.compared
    outgoing.do("acknowledge_order", 0)
    assert outgoing.differences == []
    assert outgoing.shadow.compared >= before + 20
    outgoing.half.simulation.stop()


def removes_unsynced(remove: Change) -> Change:
    def wrong(self: StoreTransaction, queue_id: int, keys: list[int], **more: Any) -> None:
        remove(self, queue_id, keys[1:], **more)

    return wrong


LEAVING: dict[str, tuple[type, str, Callable[[Change], Change], set[str]]] = {
    "no trace": (MessageTrace, "sent_together", lambda _: forgets, {"trace"}),
    "one less": (StoreTransaction, "remove_many", removes_unsynced, {"records", "messages"}),
}


@pytest.mark.parametrize("kind", LEAVING)
def test_a_run_that_differs_is_noticed(
    outgoing: Leaving, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    where, name, change, told = LEAVING[kind]
    monkeypatch.setattr(where, name, change(getattr(where, name)))
    outgoing.leave()
    assert told <= outgoing.told


def test_packets_that_leave_otherwise_are_noticed(
    outgoing: Leaving, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = outgoing.half.alice.speed.outgoing_runs
    following = runs._next

    def wrong(*arguments: Any) -> Any:
        found = following(*arguments)
        found.packets = [packet[:-1] + b"!" for packet in found.packets]
        return found

    monkeypatch.setattr(runs, "_next", wrong)
    outgoing.leave()
    assert "sent" in outgoing.told


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Leaving]:
    """Messages that get their stamps together."""
    made = Leaving(tmp_path, leaving.STREAM)
    for _ in range(3):
        made.do("acknowledge_order", 0)
        made.do("send", leaving.STREAM, 2, {})
    yield made
    made.half.simulation.stop()


def test_what_gets_a_stamp_is_what_it_would_get_alone(stream: Leaving) -> None:
    before = stream.shadow.compared
    stream.do("send", leaving.STREAM, 20, {})
    assert stream.differences == []
    assert stream.shadow.compared >= before + 18


def test_a_stamp_that_differs_is_noticed(stream: Leaving, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Recognised.stamped
    monkeypatch.setattr(Recognised, "stamped", lambda *given: right(*given)[:-1] + b"!")
    stream.do("send", leaving.STREAM, 20, {})
    assert stream.told == {"sent"}


def test_others_that_are_locked_to_be_stamped_are_noticed(
    stream: Leaving, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = property(lambda self: self._waiting.keys[1 : len(self.packets) + 1])
    monkeypatch.setattr("rpcqm.fast.doors.session_outgoing.Leaving.keys", keys)
    stream.do("send", leaving.STREAM, 20, {})
    assert "locked" in stream.told
