"""The queue manager at a glance, with a clock that the test moves."""

from collections.abc import Iterator
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
from rpcqm.base.told import told
from rpcqm.codec.names.written import format_name
from rpcqm.codec.types.mqvalues import ConnectionStatus, QueueAccessType
from rpcqm.operations import attention
from rpcqm.operations.exposition import Writer
from rpcqm.operations.history import POINTS, SAMPLE_EVERY
from rpcqm.operations.metrics import MetricsSettings
from rpcqm.operations.operations import Operations
from rpcqm.operations.overview import Overview
from rpcqm.qm import lost_copies, totals
from rpcqm.qm.identity_conflicts import BOTH_ALIVE
from rpcqm.qm.quota_use import MOST_FULL
from rpcqm.store.settings import KIB
from tests.support.qm.operators import operations_of
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE

DEAD_LETTERS = "MACHINE={};DEADLETTER"
ELSEWHERE = r"DIRECT=OS:other\private$\orders"


@pytest.fixture
def admission() -> Admission:
    return Admission(100, 100)


@pytest.fixture
def operations(qm: RunningQueueManager, tmp_path: Path, admission: Admission) -> Operations:
    return operations_of(qm, tmp_path, admission)


def look(qm: RunningQueueManager, operations: Operations) -> Overview:
    return qm.done(operations.overview.overview(ADMINISTRATOR))


def metrics_of(qm: RunningQueueManager, operations: Operations) -> list[str]:
    pieces = operations.metrics.told(ADMINISTRATOR, Writer(), MetricsSettings())
    found: Iterator[str] = qm.done(pieces)
    return "".join(found).splitlines()


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


def texts_of(qm: RunningQueueManager, operations: Operations, code: str) -> list[str]:
    return [each.text for each in look(qm, operations).attention if each.code == code]


def test_a_queue_that_gets_full_is_told_before_it_is(
    qm: RunningQueueManager, operations: Operations
) -> None:
    """Its subqueues count with it; what keeps messages from being taken is urgent."""
    queue = qm.create(quota=10)
    key = qm.send(queue, bytes(8 * KIB))
    position = qm.engine.messages.position(queue, key)
    assert position is not None
    qm.done(qm.engine.messages.move_message(position, qm.subqueue(queue, "late")))
    assert texts_of(qm, operations, "quota_low") == ["orders takes 81 % of its quota of 10 KB."]
    qm.send(queue, bytes(1_200))
    (told,) = look(qm, operations).attention
    assert (told.code, told.urgent, told.target) == ("quota_full", True, "/queues/orders")


def test_what_holds_most_is_named_where_the_quota_of_all_is_used(
    qm: RunningQueueManager, operations: Operations
) -> None:
    """Journals, dead letters and outgoing queues count, too."""
    qm.engine.queue_manager.queue_manager_quota = 20
    queue = qm.create(journaling=True)
    for _ in range(5):
        qm.send(queue, bytes(2 * KIB))
        qm.receive(qm.open(queue, QueueAccessType.RECEIVE_ACCESS))
    qm.send(queue, bytes(100), time_to_be_received=0, negative_journaling_requested=True)
    elsewhere = qm.open(format_name(ELSEWHERE), QueueAccessType.SEND_ACCESS).queue_reference
    assert elsewhere is not None
    qm.send(elsewhere, bytes(5 * KIB))
    (text,) = texts_of(qm, operations, "quota_low")
    assert "of the quota of 20 KB; most is in the journal of orders (1" in text
    assert text.index("journal") < text.index(ELSEWHERE) < text.index("DeadLetter$ (0 KB)")
    qm.engine.queue_manager.queue_manager_quota = 17
    (told,) = (each for each in look(qm, operations).attention if each.code == "quota_full")
    assert (told.urgent, told.target) == (True, "/queue-manager")
    metrics = metrics_of(qm, operations)
    assert f"rpcqm_messages_quota_bytes {17 * KIB}" in metrics


@pytest.mark.bound("overview.most_full")
def test_the_fullest_queues_are_named_and_all_are_counted(
    qm: RunningQueueManager, operations: Operations
) -> None:
    for number in range(MOST_FULL + 1):
        queue = qm.create(rf"private$\q{number}", quota=10)
        qm.send(queue, bytes(8 * KIB + 4 * number))
    told = look(qm, operations)
    assert told.queues_nearly_full == MOST_FULL + 1
    named = [each.text.split()[0] for each in told.attention]
    assert named == [f"q{number}" for number in range(MOST_FULL, 0, -1)]


@pytest.mark.bound("overview.without_room")
def test_copies_for_which_a_journal_has_no_room_are_told(
    qm: RunningQueueManager,
    operations: Operations,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By the log once in an hour for a queue, by a metric, and for a day by the overview."""
    queue = qm.create(journaling=True, journal_quota=1)
    reader = qm.open(queue, QueueAccessType.RECEIVE_ACCESS)
    for number in range(5):
        qm.send(queue, bytes(300))
        qm.receive(reader)
        if number == 3:
            qm.advance(lost_copies.PERIOD)
    (told,) = (each for each in look(qm, operations).attention if each.code == "copies_lost")
    assert told.text.startswith("There was no room in the journal of orders for 3 copies of")
    assert (told.target, told.urgent) == ("/queues/orders", False)
    assert "rpcqm_copies_lost_total 3" in metrics_of(qm, operations)
    lines = [x for x in capsys.readouterr().err.splitlines() if "no room for copies" in x]
    assert [line.split("copies=")[1].split()[0] for line in lines] == ["1", "2"]
    qm.advance(lost_copies.RECENT + 1)
    assert "copies_lost" not in codes(qm, operations)
    monkeypatch.setattr("rpcqm.qm.lost_copies.MOST_QUEUES", 1)
    lost = qm.engine.quotas.lost_copies
    for name in ("a", "b"):
        lost.note(qm.create(rf"private$\{name}"), 1)
    assert [each.queue.pathname.rpartition("\\")[2] for each in lost.recent()] == ["b"]


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
    shown = told(look(qm, operations))
    assert set(shown) == {each.name for each in fields(models.Overview)}
    for name, model in (("history", models.HistoryPoint), ("attention", models.Attention)):
        (one,) = cast("tuple[dict[str, object]]", shown[name])
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


def test_an_order_that_is_given_again_keeps_its_beginning_and_its_reason(
    qm: RunningQueueManager, operations: Operations
) -> None:
    began = qm.clock.now()
    for reason, kept in (("a new disk", "a new disk"), ("", "a new disk"), ("a fan", "a fan")):
        qm.done(operations.machine.maintain(ADMINISTRATOR, True, reason))
        order = qm.engine.queue_manager.maintenance
        assert order is not None
        assert (order.since, order.reason) == (began, kept)
        qm.advance(1_000)
    qm.done(operations.machine.maintain(ADMINISTRATOR, False))
    qm.done(operations.machine.maintain(ADMINISTRATOR, True))
    order = qm.engine.queue_manager.maintenance
    assert order is not None
    assert (order.reason, order.since > began) == ("", True)
