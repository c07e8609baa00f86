"""What programs do in one commit (G352), and once for each key (G353)."""

import hashlib

import pytest

from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.sent_keys import SENT_KEY_PREFIX
from rpcqm.base.completion import Completion
from rpcqm.base.identity import Identity, TokenRight, TokenScope, authenticated
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.qm import program_work, sent_keys
from rpcqm.qm.leases import LeaseEndedError
from rpcqm.qm.program_work import RequestKey, Sending
from rpcqm.qm.sent_keys import KEPT, LONGEST_KEY, KeyReusedError
from rpcqm.store.records import Family
from tests.support.queue_manager import RunningQueueManager, refusal

ALICE = authenticated("alice", "S-1-5-21-1-2-3-1001")
BOB = authenticated("bob", "S-1-5-21-1-2-3-1002")
MINUTE = 60_000
ELSEWHERE = r"DIRECT=OS:elsewhere\private$\orders"

Sent = Completion[tuple[MessageIdentifier, ...]]


@pytest.fixture
def queue(qm: RunningQueueManager) -> Queue:
    return qm.create()


def sending(qm: RunningQueueManager, queue: Queue | str, body: bytes, **more: object) -> Sending:
    if isinstance(queue, Queue):
        name = qm.engine.queues.format_name_of(queue)
    else:
        name = FormatName.parse(queue)
    attributes = MessageAttributes(body=body, delivery_guarantee=1)
    return Sending(name, attributes, bool(more.get("transactional")))


def key(text: str, body: bytes = b"") -> RequestKey:
    return RequestKey(text, hashlib.sha256(body).digest())


def send(
    qm: RunningQueueManager,
    queue: Queue | str,
    body: bytes,
    text: str = "",
    identity: Identity = ALICE,
) -> Sent:
    """Send without ending the turn, under a key if there is one."""
    given = key(text, body) if text else None
    return qm.engine.program_work.perform(identity, [sending(qm, queue, body)], key=given)


def lease(qm: RunningQueueManager, queue: Queue, most: int = 1) -> list[str]:
    name = qm.engine.queues.format_name_of(queue)
    reception = qm.engine.leases.receive(name, ALICE, lease=MINUTE, most=most)
    return [each.lease.identifier for each in qm.done(reception.outcome) if each.lease]


def records(qm: RunningQueueManager) -> int:
    return len(list(qm.store.records(Family.STREAM, SENT_KEY_PREFIX)))


# One commit


def test_a_message_has_its_sender_and_is_durable_when_it_is_told(
    qm: RunningQueueManager, queue: Queue
) -> None:
    sent = send(qm, queue, b"one")
    assert not sent.done
    (identifier,) = qm.done(sent)
    qm.crash()
    (found,) = qm.find().message_position_list.page(None, 10)
    message = qm.engine.positions.message_at(qm.find(), found)
    assert message.attributes.identifier == identifier
    assert message.attributes.body == b"one"
    assert message.attributes.sender_identifier.hex().endswith("e9030000")


@pytest.mark.parametrize("transactional", [False, True])
def test_sends_and_completions_are_one_commit(
    qm: RunningQueueManager, queue: Queue, transactional: bool
) -> None:
    target = qm.create(r"private$\done", transactional=transactional)
    other = qm.create(r"private$\log")
    for body in (b"one", b"two"):
        qm.send(queue, body)
    leases = lease(qm, queue, 2)
    sendings = [sending(qm, target, b"a"), sending(qm, other, b"b"), sending(qm, target, b"c")]
    outcome = qm.engine.program_work.perform(ALICE, sendings, leases)
    assert not outcome.done
    assert qm.bodies(target) == []
    identifiers = qm.done(outcome)
    assert len(set(identifiers)) == 3
    assert (qm.bodies(target), qm.bodies(other)) == ([b"a", b"c"], [b"b"])
    assert queue.message_position_list.count == 0
    assert len(qm.engine.leases) == 0
    qm.crash()
    assert qm.bodies(qm.find(r"private$\done")) == [b"a", b"c"]
    assert qm.bodies(qm.find()) == []


@pytest.mark.parametrize("transactional", [False, True])
def test_a_commit_that_is_lost_in_a_crash_has_done_nothing(
    qm: RunningQueueManager, queue: Queue, transactional: bool
) -> None:
    target = qm.create(r"private$\done", transactional=transactional)
    qm.send(queue, b"one")
    leases = lease(qm, queue)
    qm.engine.program_work.perform(ALICE, [sending(qm, target, b"a")], leases, key("k"))
    qm.crash()
    assert qm.bodies(qm.find()) == [b"one"]
    assert qm.bodies(qm.find(r"private$\done")) == []
    assert records(qm) == 0


@pytest.mark.parametrize("transactional", [False, True])
def test_what_cannot_all_be_done_is_not_done_at_all(
    qm: RunningQueueManager, queue: Queue, transactional: bool
) -> None:
    target = qm.create(r"private$\done", transactional=transactional)
    full = qm.create(r"private$\full", quota=1)
    qm.send(queue, b"one")
    (held,) = lease(qm, queue)
    sendings = [sending(qm, target, b"a"), sending(qm, full, bytes(2_000))]
    perform = qm.engine.program_work.perform
    for _ in range(2):
        refused = refusal(perform, ALICE, sendings, [held], key("k"))
        assert refused == "MQ_ERROR_INSUFFICIENT_RESOURCES"
        qm.settle()
    with pytest.raises(LeaseEndedError):
        perform(ALICE, [sending(qm, target, b"a")], [held, "unknown"])
    qm.settle()
    assert (qm.bodies(target), qm.bodies(full), records(qm)) == ([], [], 0)
    assert not qm.engine.queue_manager.transaction_collection
    assert target.message_position_list.count == 0
    assert qm.store.total.count == 1
    qm.done(qm.engine.leases.complete(ALICE, [held]))


def test_messages_of_one_commit_count_together_against_a_quota(
    qm: RunningQueueManager, queue: Queue
) -> None:
    full = qm.create(r"private$\full", quota=2)
    sendings = [sending(qm, full, bytes(1_000)) for _ in range(2)]
    refused = refusal(qm.engine.program_work.perform, ALICE, sendings)
    assert refused == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    qm.done(qm.engine.program_work.perform(ALICE, sendings[:1]))


def test_messages_for_elsewhere_wait_in_their_outgoing_queue(qm: RunningQueueManager) -> None:
    for transactional in (False, True):
        to = sending(qm, ELSEWHERE, b"out", transactional=transactional)
        qm.done(qm.engine.program_work.perform(ALICE, [to]))
    outgoing = qm.engine.outgoing.find(FormatName.parse(ELSEWHERE))
    assert isinstance(outgoing, OutgoingQueue)
    positions = outgoing.message_position_list
    messages = [qm.engine.positions.message_at(outgoing, key) for key in positions.page(None, 9)]
    assert [each.envelope.transactional for each in messages] == [False, True]


def test_a_transaction_marks_its_first_and_its_last_message(qm: RunningQueueManager) -> None:
    target = qm.create(transactional=True)
    sendings = [sending(qm, target, body) for body in (b"1", b"2", b"3")]
    qm.done(qm.engine.program_work.perform(ALICE, sendings))
    messages = [
        qm.engine.positions.message_at(target, key).attributes
        for key in target.message_position_list.page(None, 9)
    ]
    marks = [(each.first_in_transaction, each.last_in_transaction) for each in messages]
    assert marks == [(True, False), (False, False), (False, True)]


def test_sending_needs_the_right_to_send(qm: RunningQueueManager, queue: Queue) -> None:
    peeking = ALICE.narrowed(TokenScope("t", frozenset({TokenRight.PEEK})))
    assert refusal(send, qm, queue, b"one", "", peeking) == "MQ_ERROR_ACCESS_DENIED"
    qm.settle()
    assert queue.message_position_list.count == 0
    assert not queue.open_queue_descriptor_collection


@pytest.mark.bound("program.most_sent")
def test_one_request_sends_so_many_messages(
    qm: RunningQueueManager, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_work, "MOST_SENT", 3)
    perform = qm.engine.program_work.perform
    assert len(qm.done(perform(ALICE, [sending(qm, queue, b"") for _ in range(3)]))) == 3
    four = [sending(qm, queue, b"") for _ in range(4)]
    assert refusal(perform, ALICE, four) == "MQ_ERROR_INVALID_PARAMETER"
    assert refusal(perform, ALICE, [], ["lease"] * 4) == "MQ_ERROR_INVALID_PARAMETER"


# Keys


def test_the_same_request_again_is_told_what_the_first_one_was_told(
    qm: RunningQueueManager, queue: Queue
) -> None:
    first = qm.done(send(qm, queue, b"one", "k1"))
    assert qm.done(send(qm, queue, b"one", "k1")) == first
    qm.crash()
    queue = qm.find()
    assert qm.done(send(qm, queue, b"one", "k1")) == first
    assert qm.bodies(queue) == [b"one"]
    assert qm.done(send(qm, queue, b"one", "k2")) != first
    assert qm.bodies(queue) == [b"one", b"one"]


def test_a_request_that_is_on_its_way_to_the_disk_is_not_made_twice(
    qm: RunningQueueManager, queue: Queue
) -> None:
    first, again = send(qm, queue, b"one", "k1"), send(qm, queue, b"one", "k1")
    assert not again.done
    assert qm.done(first) == qm.done(again)
    assert qm.bodies(queue) == [b"one"]


def test_another_request_under_the_same_key_is_refused(
    qm: RunningQueueManager, queue: Queue
) -> None:
    send(qm, queue, b"one", "k1")
    with pytest.raises(KeyReusedError):
        send(qm, queue, b"two", "k1")
    qm.settle()
    with pytest.raises(KeyReusedError):
        send(qm, queue, b"two", "k1")
    qm.restart()
    with pytest.raises(KeyReusedError):
        send(qm, qm.find(), b"two", "k1")
    assert qm.bodies(qm.find()) == [b"one"]


@pytest.mark.parametrize("transactional", [False, True])
def test_a_commit_that_fails_keeps_no_key(
    qm: RunningQueueManager, transactional: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = qm.create(transactional=transactional)

    def fail(*_: object) -> None:
        raise OSError("the disk")

    with monkeypatch.context() as patch:
        patch.setattr(qm.store._writer, "add", fail)
        with pytest.raises(OSError, match="the disk"):
            send(qm, queue, b"one", "k1")
    qm.done(send(qm, queue, b"two", "k1"))
    assert qm.bodies(queue) == [b"two"]


def test_keys_are_those_of_one_account_and_one_queue(qm: RunningQueueManager, queue: Queue) -> None:
    other = qm.create(r"private$\other")
    outcomes = [
        qm.done(send(qm, queue, b"one", "k1")),
        qm.done(send(qm, queue, b"one", "k1", BOB)),
        qm.done(send(qm, other, b"one", "k1")),
        qm.done(send(qm, ELSEWHERE, b"one", "k1")),
    ]
    assert len(set(outcomes)) == 4
    assert qm.done(send(qm, ELSEWHERE, b"one", "k1")) == outcomes[3]


def test_a_queue_made_anew_knows_no_keys_of_the_one_before(
    qm: RunningQueueManager, queue: Queue
) -> None:
    qm.done(send(qm, queue, b"one", "k1"))
    qm.done(qm.engine.queues.delete_queue(queue))
    anew = qm.create()
    qm.done(send(qm, anew, b"one", "k1"))
    assert qm.bodies(anew) == [b"one"]


def test_a_request_with_completions_can_be_repeated(qm: RunningQueueManager, queue: Queue) -> None:
    qm.send(queue, b"one")
    held = lease(qm, queue)
    target = qm.create(r"private$\done", transactional=True)

    def perform() -> Sent:
        return qm.engine.program_work.perform(ALICE, [sending(qm, target, b"a")], held, key("k"))

    assert qm.done(perform()) == qm.done(perform())
    assert qm.bodies(target) == [b"a"]


def test_keys_are_forgotten_after_a_day(qm: RunningQueueManager, queue: Queue) -> None:
    first = qm.done(send(qm, queue, b"one", "k1"))
    qm.advance(KEPT - 1)
    assert qm.done(send(qm, queue, b"one", "k1")) == first
    qm.clock._move_to(qm.clock.monotonic() + 1)  # no timer has run
    assert qm.done(send(qm, queue, b"two", "k1")) != first
    qm.advance(KEPT + 600_000)
    assert len(qm.engine.sent_keys) == records(qm) == 0


def test_keys_that_are_old_when_the_service_starts_are_forgotten(
    qm: RunningQueueManager, queue: Queue
) -> None:
    first = qm.done(send(qm, queue, b"one", "k1"))
    qm.stop()
    qm.clock._move_to(qm.clock.monotonic() + KEPT)
    qm._start()
    assert qm.done(send(qm, qm.find(), b"two", "k1")) != first
    qm.advance(600_000)
    assert records(qm) == 1


def test_a_damaged_record_of_a_key_does_not_stop_the_start(
    qm: RunningQueueManager, queue: Queue
) -> None:
    first = qm.done(send(qm, queue, b"one", "k1"))
    with qm.store.transaction("damage") as change:
        change.put(Family.STREAM, SENT_KEY_PREFIX + bytes(32), b"\x01damaged")
    qm.restart()
    assert qm.done(send(qm, qm.find(), b"one", "k1")) == first


@pytest.mark.bound("program.longest_key")
def test_a_key_has_so_many_characters(qm: RunningQueueManager, queue: Queue) -> None:
    qm.done(send(qm, queue, b"one", "k" * LONGEST_KEY))
    long = "k" * (LONGEST_KEY + 1)
    assert refusal(send, qm, queue, b"one", long) == "MQ_ERROR_INVALID_PARAMETER"
    empty = [sending(qm, queue, b"")], (), key("")
    perform = qm.engine.program_work.perform
    assert refusal(perform, ALICE, *empty) == "MQ_ERROR_INVALID_PARAMETER"


@pytest.mark.bound("program.keys_of_account")
def test_an_account_loses_its_own_oldest_keys(
    qm: RunningQueueManager, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent_keys, "KEYS_OF_ACCOUNT", 3)
    others = qm.done(send(qm, queue, b"", "k0", BOB))
    sent = [qm.done(send(qm, queue, b"", f"k{number}")) for number in range(4)]
    assert records(qm) == 4
    assert qm.done(send(qm, queue, b"", "k3")) == sent[3]
    assert qm.done(send(qm, queue, b"", "k1")) == sent[1]
    assert qm.done(send(qm, queue, b"", "k0")) != sent[0]
    assert qm.done(send(qm, queue, b"", "k0", BOB)) == others


@pytest.mark.bound("program.keys_in_all")
def test_whoever_has_most_keys_loses_them_first(
    qm: RunningQueueManager, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent_keys, "KEYS_IN_ALL", 4)
    others = qm.done(send(qm, queue, b"", "k0", BOB))
    for number in range(10):
        qm.done(send(qm, queue, b"", f"k{number}"))
    assert records(qm) == len(qm.engine.sent_keys) == 4
    assert qm.done(send(qm, queue, b"", "k0", BOB)) == others
