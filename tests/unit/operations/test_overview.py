"""The queue manager at a glance, with a clock that the test moves."""

from dataclasses import fields
from pathlib import Path
from typing import cast
from uuid import UUID, uuid4

import pytest

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.api import overview as models
from rpcqm.base.admission import Admission
from rpcqm.base.errors import MQError
from rpcqm.codec.names.written import format_name
from rpcqm.codec.types.mqvalues import ConnectionStatus, QueueAccessType
from rpcqm.operations import attention
from rpcqm.operations.history import POINTS, SAMPLE_EVERY
from rpcqm.operations.operations import Operations
from rpcqm.operations.overview import Overview, described_overview
from rpcqm.qm import totals
from rpcqm.qm.identity_conflicts import BOTH_ALIVE
from tests.support.qm.operators import operations_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE

DEAD_LETTERS = "MACHINE={};DEADLETTER"


@pytest.fixture
def admission() -> Admission:
    return Admission(100, 100)


@pytest.fixture
def operations(qm: RunningQueueManager, tmp_path: Path, admission: Admission) -> Operations:
    return operations_of(qm, tmp_path, admission)


def look(qm: RunningQueueManager, operations: Operations) -> Overview:
    return qm.done(operations.overview.overview(ADMINISTRATOR))


def codes(qm: RunningQueueManager, operations: Operations) -> list[str]:
    return [each.code for each in look(qm, operations).attention]


def dead_letter(qm: RunningQueueManager) -> None:
    """A message that nobody receives in time."""
    qm.send(qm.find(), b"late", time_to_be_received=1, negative_journaling_requested=True)
    qm.advance(5_000)


def send_to_purge(qm: RunningQueueManager) -> None:
    qm.send(qm.find(), b"purged", negative_journaling_requested=True)


def open_dead_letters(qm: RunningQueueManager) -> None:
    name = DEAD_LETTERS.format(qm.engine.queue_manager.identifier)
    qm.engine.opening.close_queue(qm.open(name, QueueAccessType.PEEK_ACCESS))


def test_only_administrators_see_it(operations: Operations) -> None:
    with pytest.raises(MQError, match="ACCESS_DENIED"):
        operations.overview.overview(ALICE)


def test_it_counts_what_is_there(
    qm: RunningQueueManager, operations: Operations, admission: Admission
) -> None:
    admission.let_in("127.0.0.1")
    queue = qm.create()
    first = qm.clock.now()
    qm.send(queue, b"a")
    qm.advance(7_000)
    qm.send(queue, b"b")
    reader = qm.open(queue)
    qm.lock(reader)
    empty = qm.create(r"private$\empty")
    qm.engine.messages.dequeue_message(qm.open(empty), 60_000)
    began = qm.clock.now()
    qm.engine.transactions.create_transaction(uuid4())
    told = look(qm, operations)
    assert (told.queues, told.messages, told.locked_messages, told.waiting_reads) == (2, 2, 1, 1)
    assert told.bytes == queue.total_bytes
    assert (told.oldest, told.oldest_queue) == (first, queue.pathname)
    assert (told.transactions, told.oldest_transaction) == (1, began)
    assert told.connections == 1
    assert told.disk_free == qm.free


def test_leases_are_counted(qm: RunningQueueManager, operations: Operations) -> None:
    qm.send(qm.create(), b"a")
    operations.messages.receive(ADMINISTRATOR, format_name("orders"), 30_000, 0, 1)
    assert look(qm, operations).leases == 1


def test_the_last_hour_is_told_in_points_of_ten_seconds(
    qm: RunningQueueManager, operations: Operations
) -> None:
    queue = qm.create()
    operations.overview.history.start()
    for _ in range(20):
        qm.send(queue, b"a")
    qm.advance(SAMPLE_EVERY)
    reader = qm.open(queue)
    for _ in range(5):
        qm.receive(reader)
    qm.advance(SAMPLE_EVERY)
    first, second = look(qm, operations).history
    assert (first.in_per_second, first.out_per_second, first.messages) == (2.0, 0.0, 20)
    assert (second.in_per_second, second.out_per_second, second.messages) == (0.0, 0.5, 15)
    assert second.time - first.time == SAMPLE_EVERY


@pytest.mark.bound("overview.points")
def test_the_history_is_an_hour_long_and_no_longer(
    qm: RunningQueueManager, operations: Operations
) -> None:
    operations.overview.history.start()
    qm.advance(SAMPLE_EVERY * (POINTS + 40))
    history = look(qm, operations).history
    assert len(history) == POINTS
    assert history[-1].time - history[0].time == SAMPLE_EVERY * (POINTS - 1)


def test_a_dead_letter_is_unread_until_somebody_opens_its_queue(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    dead_letter(qm)
    told = look(qm, operations)
    assert (told.dead_letters, told.dead_letters_unread) == (1, 1)
    assert dict(told.dead_letters_by_reason) == {"receive_timeout": 1}
    assert [each.code for each in told.attention] == ["dead_letters_unread"]
    open_dead_letters(qm)
    assert look(qm, operations).dead_letters_unread == 0
    dead_letter(qm)
    told = look(qm, operations)
    assert (told.dead_letters, told.dead_letters_unread) == (2, 1)


def test_what_nobody_has_looked_at_is_known_after_a_restart(
    qm: RunningQueueManager, operations: Operations, tmp_path: Path
) -> None:
    qm.create()
    dead_letter(qm)
    open_dead_letters(qm)
    dead_letter(qm)
    dead_letter(qm)
    qm.restart()
    told = look(qm, operations_of(qm, tmp_path))
    assert (told.dead_letters, told.dead_letters_unread) == (3, 2)
    assert dict(told.dead_letters_by_reason) == {"receive_timeout": 3}
    assert dict(told.dead_letters_unread_by_reason) == {"receive_timeout": 2}


def test_those_that_nobody_has_looked_at_are_counted_by_reason(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    dead_letter(qm)
    assert dict(look(qm, operations).dead_letters_unread_by_reason) == {"receive_timeout": 1}
    open_dead_letters(qm)
    assert dict(look(qm, operations).dead_letters_unread_by_reason) == {}
    dead_letter(qm)
    send_to_purge(qm)
    qm.done(qm.engine.queues.purge_queue(qm.find()))
    told = look(qm, operations)
    assert dict(told.dead_letters_by_reason) == {"receive_timeout": 2, "q_purged": 1}
    assert dict(told.dead_letters_unread_by_reason) == {"receive_timeout": 1, "q_purged": 1}


def test_a_dead_letter_that_goes_unread_is_no_longer_counted_as_unread(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    dead_letter(qm)
    open_dead_letters(qm)
    dead_letter(qm)
    dead_letter(qm)
    (queue,) = (each for each in qm.engine.dead_letters.queues() if each.message_count)
    qm.done(qm.engine.queues.purge_queue(queue))
    told = look(qm, operations)
    assert (told.dead_letters, told.dead_letters_unread) == (0, 0)
    assert dict(told.dead_letters_unread_by_reason) == {}
    dead_letter(qm)
    told = look(qm, operations)
    assert dict(told.dead_letters_unread_by_reason) == {"receive_timeout": 1}


def test_a_dead_letter_that_was_on_its_way_when_somebody_looked_is_unread(
    qm: RunningQueueManager, operations: Operations, tmp_path: Path
) -> None:
    qm.create()
    dead_letter(qm)
    send_to_purge(qm)
    qm.engine.queues.purge_queue(qm.find())
    open_dead_letters(qm)
    qm.settle()
    told = look(qm, operations)
    assert (told.dead_letters, told.dead_letters_unread) == (2, 1)
    assert dict(told.dead_letters_unread_by_reason) == {"q_purged": 1}
    qm.restart()
    told = look(qm, operations_of(qm, tmp_path))
    assert dict(told.dead_letters_unread_by_reason) == {"q_purged": 1}


def test_a_removed_dead_letter_has_no_reason_any_more(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    dead_letter(qm)
    name = DEAD_LETTERS.format(qm.engine.queue_manager.identifier)
    qm.receive(qm.open(name))
    assert dict(look(qm, operations).dead_letters_by_reason) == {}


def test_a_queue_that_cannot_connect_comes_first(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.create()
    dead_letter(qm)
    destination = format_name(r"DIRECT=OS:nowhere\private$\q")
    queue = qm.open(destination, QueueAccessType.SEND_ACCESS).queue_reference
    assert isinstance(queue, OutgoingQueue)
    qm.send(queue, b"a")
    queue.state = OutgoingQueueState.WAITING
    qm.engine.outgoing.record_connection(queue, ConnectionStatus.CONNECTION_REFUSED, 5)
    told = look(qm, operations)
    assert [each.code for each in told.attention] == ["outgoing_stuck", "dead_letters_unread"]
    assert told.attention[0].urgent
    assert told.attention[0].target == ("/outgoing-queues/DIRECT%3DOS%3Anowhere%5Cprivate%24%5Cq")
    assert (dict(told.sessions), told.outgoing_messages) == ({"Waiting": 1}, 1)
    queue.state = OutgoingQueueState.CONNECTED
    assert codes(qm, operations) == ["dead_letters_unread"]


@pytest.mark.bound("overview.most_stuck")
def test_only_the_longest_stuck_queues_are_told(
    qm: RunningQueueManager, operations: Operations
) -> None:
    for number in range(totals.MOST_STUCK + 1):
        name = format_name(rf"DIRECT=OS:h{number}\private$\q")
        queue = qm.open(name, QueueAccessType.SEND_ACCESS).queue_reference
        assert isinstance(queue, OutgoingQueue)
        qm.send(queue, b"a")
        queue.state = OutgoingQueueState.WAITING
        qm.advance(1_000)
        told = look(qm, operations)
        assert told.sessions["Waiting"] == number + 1
    qm.advance(60_000)
    names = [each.text.split()[0] for each in look(qm, operations).attention]
    wanted = [rf"DIRECT=OS:h{number}\private$\q" for number in range(totals.MOST_STUCK)]
    assert names == wanted


@pytest.mark.bound("overview.most_listed")
def test_identities_that_two_queue_managers_have_need_attention_those_seen_last_first(
    qm: RunningQueueManager, operations: Operations
) -> None:
    conflicts = qm.engine.identity_conflicts
    for number in range(attention.MOST_LISTED + 1):
        conflicts.note(UUID(int=number), "192.0.2.1", "192.0.2.2", BOTH_ALIVE)
    told = look(qm, operations).attention
    assert {(each.code, each.urgent) for each in told} == {("identity_shared", True)}
    assert len(told) == attention.MOST_LISTED
    assert str(UUID(int=attention.MOST_LISTED)) in told[0].text
    assert not any(str(UUID(int=0)) in each.text for each in told)


def test_a_disk_that_gets_full_is_told_before_it_is(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.free = 3
    assert codes(qm, operations) == ["disk_low"]
    qm.free = 0
    qm.engine.store.space.keep_free(1)
    assert codes(qm, operations) == ["disk_full"]


def test_old_messages_and_transactions_and_failed_logons_need_attention(
    qm: RunningQueueManager, operations: Operations
) -> None:
    qm.send(qm.create(), b"a")
    qm.engine.transactions.create_transaction(uuid4())
    qm.store.metrics.count("rpc.authentications_failed", 3)
    qm.store.metrics.count("http.logons_failed", 1)
    qm.advance(3_599_000)
    assert codes(qm, operations) == ["old_transaction"]
    qm.advance(1_000)
    qm.store.metrics.count("http.logons_failed", 1)
    assert codes(qm, operations) == ["old_message", "old_transaction", "failed_logons"]


def test_programs_are_told_what_their_models_say(
    qm: RunningQueueManager, operations: Operations
) -> None:
    operations.overview.history.start()
    qm.free = 3
    qm.advance(SAMPLE_EVERY)
    told = described_overview(look(qm, operations))
    assert set(told) == {each.name for each in fields(models.Overview)}
    for name, model in (("history", models.HistoryPoint), ("attention", models.Attention)):
        (one,) = cast("tuple[dict[str, object]]", told[name])
        assert set(one) == {each.name for each in fields(model)}


def test_others_are_served_between_slices_of_many_queues(
    qm: RunningQueueManager, operations: Operations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "SLICE", 2)
    for number in range(5):
        qm.create(rf"private$\q{number}")
    outcome = operations.overview.overview(ADMINISTRATOR)
    assert not outcome.done
    qm.advance(100)
    assert outcome.result().queues == 5
