"""Those who listen are told of what happens: what they may know, in order, within bounds."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.written import format_name
from rpcqm.codec.types.mqvalues import ConnectionStatus
from rpcqm.operations.drafts import Draft
from rpcqm.operations.events import (
    BACKLOG,
    LISTENERS,
    LISTENERS_OF_ACCOUNT,
    QUEUES_OF_LISTENER,
    Subscription,
)
from rpcqm.operations.message_orders import Doing, Wanted
from rpcqm.operations.operations import Operations
from rpcqm.operations.trail import EVENTS_KEPT, Event, EventKind
from rpcqm.store.records import Family
from tests.support.qm.operators import operations_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE, NOBODY

ORDERS = format_name("orders")
ELSEWHERE = format_name(r"DIRECT=OS:other\private$\orders")


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def taken(loop: asyncio.AbstractEventLoop, listener: Subscription) -> list[Event]:
    return loop.run_until_complete(listener.take(0))


def send(qm: RunningQueueManager, operations: Operations, **properties: object) -> None:
    draft = Draft(b"body", **properties)  # type: ignore[arg-type]
    qm.done(operations.messages.send(ADMINISTRATOR, (ORDERS,), [draft]))


def test_changes_of_queues_are_looked_at_while_somebody_listens(
    qm: RunningQueueManager, operations: Operations, loop: asyncio.AbstractEventLoop
) -> None:
    qm.create()
    waiting = len(qm.clock.timers)
    listener = operations.events.subscribe(ADMINISTRATOR)
    assert len(qm.clock.timers) == waiting + 1
    send(qm, operations)
    send(qm, operations)
    qm.create(r"private$\bills")
    qm.advance(1000)
    told = {each.about.rpartition("\\")[2]: each.told for each in taken(loop, listener)}
    assert {name: (each["change"], each["messages"]) for name, each in told.items()} == {
        "orders": ("changed", 2),
        "bills": ("made", 0),
    }
    qm.advance(1000)
    assert taken(loop, listener) == []
    qm.done(operations.queues.delete(ADMINISTRATOR, ORDERS))
    qm.advance(1000)
    acted, deleted = taken(loop, listener)
    assert (acted.kind, acted.told["action"]) == (EventKind.OPERATOR_ACTS, "delete queue")
    assert deleted.told["change"] == "deleted"
    listener.leave()
    assert len(qm.clock.timers) == waiting


def test_a_listener_gets_the_latest_of_many_changes(
    qm: RunningQueueManager, operations: Operations, loop: asyncio.AbstractEventLoop
) -> None:
    qm.create()
    listener = operations.events.subscribe(ADMINISTRATOR)
    for _ in range(5):
        send(qm, operations)
        qm.advance(1000)
    (event,) = taken(loop, listener)
    assert event.told["messages"] == 5
    assert event.number == 0


def test_a_dead_letter_is_told_with_its_reason_and_how_many(
    qm: RunningQueueManager, operations: Operations, loop: asyncio.AbstractEventLoop
) -> None:
    qm.create()
    for _ in range(3):
        send(qm, operations, ttbr=1, dead_letter=True)
    qm.advance(60_000)
    qm.advance(1000)
    listener = operations.events.subscribe(ADMINISTRATOR, after=0)
    (event,) = (each for each in taken(loop, listener) if each.kind is EventKind.DEAD_LETTER)
    assert event.told == {"reason": "MQMSG_CLASS_NACK_RECEIVE_TIMEOUT", "messages": 3}
    assert event.about.endswith("DEADLETTER")


def test_sessions_and_the_queue_manager_are_told_of(
    qm: RunningQueueManager, operations: Operations, loop: asyncio.AbstractEventLoop
) -> None:
    queue = qm.engine.outgoing.create(ELSEWHERE)
    listener = operations.events.subscribe(ADMINISTRATOR)
    operations.outgoing.pause(ADMINISTRATOR, ELSEWHERE)
    qm.engine.outgoing.record_connection(queue, ConnectionStatus.CONNECTION_REFUSED, 0, ("a",))
    operations.machine.connect(ADMINISTRATOR, False)
    qm.engine.control_flow(True)
    told = [(each.kind.value, each.told) for each in taken(loop, listener)]
    kinds = [kind for kind, _ in told]
    assert kinds == [
        *("session-state", "operator-acts", "session-state"),
        *("machine-state", "operator-acts", "machine-state"),
    ]
    assert told[0][1]["state"] == "ONHOLD"
    assert (told[2][1]["connection"], told[2][1]["addresses"]) == ("CONNECTION_REFUSED", ["a"])
    assert told[3][1] == {"connected": False, "refusing": False, "maintenance": False}
    assert told[5][1] == {"connected": False, "refusing": True, "maintenance": False}


def test_quotas_that_get_nearly_full_are_told_of_with_what_holds_most(
    qm: RunningQueueManager, operations: Operations, loop: asyncio.AbstractEventLoop
) -> None:
    qm.create(quota=5)
    qm.engine.queue_manager.queue_manager_quota = 5
    listener = operations.events.subscribe(ADMINISTRATOR)
    for _ in range(4):
        qm.send(qm.find(), bytes(1024 - len(qm.compose(qm.find(), b"").packet)))
    qm.advance(200)
    quotas = [each for each in taken(loop, listener) if each.kind is EventKind.QUOTA]
    assert [(each.about.rpartition("\\")[2], each.told["percent"]) for each in quotas] == [
        ("WORKSTATION", 80),
        ("orders", 80),
    ]
    assert quotas[0].told["largest"] == ["orders (4 KB)"]
    assert quotas[1].queue is qm.find()


def test_a_level_is_told_of_once_however_often_messages_are_tried_together(
    qm: RunningQueueManager, operations: Operations, loop: asyncio.AbstractEventLoop
) -> None:
    """16 do not go into the queue, nor do 8 and what is left of them: parts have been in it."""
    qm.create()
    qm.create(r"private$\tiny", quota=2)
    for _ in range(16):
        send(qm, operations)
    listener = operations.events.subscribe(ADMINISTRATOR)
    chosen = operations.message_orders.choose_all(ADMINISTRATOR, format_name("orders"))
    wanted = Wanted(Doing.MOVE, format_name("tiny"))
    order = qm.done(operations.message_orders.begin(ADMINISTRATOR, chosen.identifier, wanted))
    assert 0 < order.done < 16
    qm.advance(200)
    quotas = [each for each in taken(loop, listener) if each.kind is EventKind.QUOTA]
    assert [each.told["percent"] for each in quotas] == [80]


def test_others_than_administrators_hear_of_queues_that_they_may_peek_at(
    qm: RunningQueueManager, operations: Operations, loop: asyncio.AbstractEventLoop
) -> None:
    qm.create()
    for who, queues in ((ALICE, None), (NOBODY, None), (NOBODY, [ORDERS])):
        with pytest.raises(MQError) as refused:
            operations.events.subscribe(who, queues)
        assert refused.value.status is HResult.MQ_ERROR_ACCESS_DENIED
    listener = operations.events.subscribe(ALICE, [ORDERS])
    (now,) = taken(loop, listener)
    assert (now.told["change"], now.told["messages"]) == ("is", 0)
    qm.create(r"private$\bills")
    operations.machine.connect(ADMINISTRATOR, False)
    send(qm, operations)
    qm.advance(1000)
    (event,) = taken(loop, listener)
    assert event.told["messages"] == 1
    listener.identity = NOBODY  # whose rights were taken away
    send(qm, operations)
    qm.advance(1000)
    assert taken(loop, listener) == []


def test_what_was_missed_is_told_by_its_number(
    qm: RunningQueueManager, operations: Operations, loop: asyncio.AbstractEventLoop
) -> None:
    for name in "abc":
        operations.accounts.add(ADMINISTRATOR, name, bytes(16))
    first, *others = operations.events.trail.after(0)
    listener = operations.events.subscribe(ADMINISTRATOR, after=first.number)
    assert taken(loop, listener) == others
    assert [each.about for each in others] == ["b", "c"]


@pytest.mark.bound("events.kept")
def test_of_each_kind_the_latest_events_are_kept(
    qm: RunningQueueManager, operations: Operations
) -> None:
    operations.machine.connect(ADMINISTRATOR, True)
    queue = qm.engine.outgoing.create(ELSEWHERE)
    for _ in range(EVENTS_KEPT + 1):
        qm.engine.outgoing.record_connection(queue, ConnectionStatus.CONNECTION_REFUSED)
    trail = operations.events.trail
    assert len(list(trail.after(0, EventKind.SESSION_STATE))) == EVENTS_KEPT
    assert len(list(trail.after(0, EventKind.OPERATOR_ACTS))) == 1


@pytest.mark.bound("events.backlog")
def test_a_slow_listener_is_dropped(
    qm: RunningQueueManager, operations: Operations, loop: asyncio.AbstractEventLoop
) -> None:
    queue = qm.engine.outgoing.create(ELSEWHERE)
    listener = operations.events.subscribe(ADMINISTRATOR)
    for _ in range(BACKLOG):
        qm.engine.outgoing.record_connection(queue, ConnectionStatus.CONNECTION_REFUSED)
    assert not listener.over
    qm.engine.outgoing.record_connection(queue, ConnectionStatus.CONNECTION_REFUSED)
    assert listener.over
    assert taken(loop, listener) == []


@pytest.mark.bound("events.listeners")
@pytest.mark.bound("events.listeners_of_account")
def test_so_many_listen_and_no_more(qm: RunningQueueManager, operations: Operations) -> None:
    listeners = []
    for number in range(LISTENERS // LISTENERS_OF_ACCOUNT):
        who = replace(ADMINISTRATOR, sid=f"S-1-5-21-{number}")
        for _ in range(LISTENERS_OF_ACCOUNT):
            listeners.append(operations.events.subscribe(who))
        with pytest.raises(MQError) as refused:
            operations.events.subscribe(who)
        assert refused.value.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    with pytest.raises(MQError):
        operations.events.subscribe(ADMINISTRATOR)
    listeners[-1].leave()
    operations.events.subscribe(ADMINISTRATOR)


@pytest.mark.bound("events.queues_of_listener")
def test_a_listener_names_so_many_queues(qm: RunningQueueManager, operations: Operations) -> None:
    qm.create()
    operations.events.subscribe(ALICE, [ORDERS] * QUEUES_OF_LISTENER)
    with pytest.raises(MQError) as refused:
        operations.events.subscribe(ALICE, [ORDERS] * (QUEUES_OF_LISTENER + 1))
    assert refused.value.status is HResult.MQ_ERROR_INVALID_PARAMETER


def test_every_listener_is_told_of_the_end(
    qm: RunningQueueManager, operations: Operations, loop: asyncio.AbstractEventLoop
) -> None:
    listener = operations.events.subscribe(ADMINISTRATOR)
    qm.engine.queue_manager_stopped()
    assert listener.over
    assert taken(loop, listener) == []


def test_nothing_is_looked_at_while_nobody_listens(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    waiting = len(qm.clock.timers)
    send(qm, operations)
    assert len(qm.clock.timers) == waiting
    assert list(operations.events.trail.after(0)) == []


def test_what_operators_changed_outlives_a_restart(
    qm: RunningQueueManager, operations: Operations, tmp_path: Path
) -> None:
    """It has the same number then; what only looks, and other events, do not."""
    queue = qm.create()
    qm.done(operations.queues.set_properties(ADMINISTRATOR, ORDERS, {"label": "renamed"}))
    send(qm, operations, dead_letter=True)
    assert operations.messages.exported(ADMINISTRATOR, ORDERS) == 1
    qm.done(operations.messages.purge(ADMINISTRATOR, ORDERS))
    qm.advance(1_000)
    before = operations.events.latest(ADMINISTRATOR, 0, None, 100)
    assert [event.kind for event in before].count(EventKind.DEAD_LETTER) == 1
    qm.restart()
    again = operations_of(qm, tmp_path)
    kept = again.events.latest(ADMINISTRATOR, 0, None, 100)
    assert [event.told["action"] for event in kept] == ["set properties", "purge"]
    assert [
        event for event in before if event.told.get("action") in ("set properties", "purge")
    ] == kept
    assert kept[0].about == queue.pathname
    qm.done(again.queues.set_properties(ADMINISTRATOR, ORDERS, {"label": "later"}))
    (last,) = again.events.latest(ADMINISTRATOR, kept[-1].number, None, 100)
    assert last.told["more"] == {"properties": ["label"]}


def test_so_many_acts_of_operators_are_kept_over_restarts(
    qm: RunningQueueManager,
    operations: Operations,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    qm.create()
    monkeypatch.setattr("rpcqm.operations.events.EVENTS_KEPT", 3)
    again = operations_of(qm, tmp_path)
    for number in range(5):
        qm.done(again.queues.set_properties(ADMINISTRATOR, ORDERS, {"label": str(number)}))
    again.events.stop()
    operations.events.stop()
    assert len(list(qm.store.records(Family.HISTORY, b"o"))) == 3
    qm.restart()
    assert len(operations_of(qm, tmp_path).events.latest(ADMINISTRATOR, 0, None, 100)) == 3
