"""Leases (G351): what a program has received, and completes in time or loses."""

import pytest

from rpcqm.adm.enums import PositionState
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import MQError
from rpcqm.base.identity import BUILTIN_ADMINISTRATORS, Identity, authenticated
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import QueueAccessType, QueueShareMode
from rpcqm.qm import leases as leases_module
from rpcqm.qm.lease_bounds import BYTES_AT_ONCE, MESSAGES_AT_ONCE
from rpcqm.qm.leases import (
    LONGEST_LEASE,
    SHORTEST_LEASE,
    LeasedMessage,
    LeaseEndedError,
    Reception,
)
from tests.support.queue_manager import RunningQueueManager, refusal

ALICE = authenticated("alice", "S-1-5-21-1-2-3-1001")
BOB = authenticated("bob", "S-1-5-21-1-2-3-1002")
ADMINISTRATOR = authenticated("ops", "S-1-5-21-1-2-3-1003", BUILTIN_ADMINISTRATORS)
MINUTE = 60_000


@pytest.fixture
def queue(qm: RunningQueueManager) -> Queue:
    return qm.create()


def begin(
    qm: RunningQueueManager,
    queue: Queue,
    identity: Identity = ALICE,
    *,
    lease: int = MINUTE,
    wait: int = 0,
    most: int = 1,
) -> Reception:
    name = qm.engine.queues.format_name_of(queue)
    return qm.engine.leases.receive(name, identity, lease=lease, wait=wait, most=most)


def receive(
    qm: RunningQueueManager,
    queue: Queue,
    identity: Identity = ALICE,
    *,
    lease: int = MINUTE,
    most: int = 1,
) -> list[LeasedMessage]:
    return qm.done(begin(qm, queue, identity, lease=lease, most=most).outcome)


def identifier(received: LeasedMessage) -> str:
    assert received.lease is not None
    return received.lease.identifier


def bodies(received: list[LeasedMessage]) -> list[bytes]:
    return [each.message.attributes.body for each in received]


def complete(qm: RunningQueueManager, *received: LeasedMessage, identity: Identity = ALICE) -> None:
    qm.done(qm.engine.leases.complete(identity, [identifier(each) for each in received]))


def is_ended(
    qm: RunningQueueManager, received: LeasedMessage | str, identity: Identity = ALICE
) -> bool:
    """Whether nothing can be done with a lease any more, and always the same is said."""
    lease = received if isinstance(received, str) else identifier(received)
    engine, told = qm.engine.leases, list[str]()
    for attempt in (
        lambda: engine.extend(identity, lease, MINUTE),
        lambda: engine.release(identity, [lease]),
        lambda: engine.complete(identity, [lease]),
    ):
        try:
            attempt()
        except LeaseEndedError as error:
            told.append(str(error))
    return len(told) == 3 and len(set(told)) == 1


def test_a_leased_message_is_hidden_until_it_is_completed(
    qm: RunningQueueManager, queue: Queue
) -> None:
    qm.send(queue, b"one")
    (received,) = receive(qm, queue)
    assert (received.message.attributes.body, received.delivery_count) == (b"one", 1)
    assert qm.bodies(queue) == []
    assert receive(qm, queue, BOB) == []
    complete(qm, received)
    assert queue.message_position_list.count == len(qm.engine.leases) == 0
    assert is_ended(qm, received)
    qm.restart()
    assert qm.bodies(qm.find()) == []


def test_after_a_crash_every_leased_message_is_free(qm: RunningQueueManager, queue: Queue) -> None:
    qm.send(queue, b"one")
    (received,) = receive(qm, queue)
    qm.crash()
    assert qm.bodies(qm.find()) == [b"one"]
    assert is_ended(qm, received)
    assert receive(qm, qm.find())[0].delivery_count == 1


def test_a_lease_that_is_not_completed_in_time_gives_its_message_back(
    qm: RunningQueueManager, queue: Queue
) -> None:
    qm.send(queue, b"one")
    (received,) = receive(qm, queue, lease=SHORTEST_LEASE)
    qm.advance(SHORTEST_LEASE - 1)
    assert qm.bodies(queue) == []
    qm.advance(1)
    assert qm.bodies(queue) == [b"one"]
    assert is_ended(qm, received)
    assert receive(qm, queue)[0].delivery_count == 2


def test_a_lease_has_ended_at_its_moment_even_if_the_timer_is_late(
    qm: RunningQueueManager, queue: Queue
) -> None:
    qm.send(queue, b"one")
    (received,) = receive(qm, queue, lease=SHORTEST_LEASE)
    qm.clock._move_to(qm.clock.monotonic() + SHORTEST_LEASE)
    assert is_ended(qm, received)
    qm.settle()
    assert qm.bodies(queue) == [b"one"]


def test_extending_a_lease_counts_from_now(qm: RunningQueueManager, queue: Queue) -> None:
    qm.send(queue, b"one")
    (received,) = receive(qm, queue, lease=10_000)
    qm.advance(9_999)
    extended = qm.engine.leases.extend(ALICE, identifier(received), 10_000)
    assert extended.expires == qm.clock.now() + 10_000
    qm.advance(9_999)
    assert qm.bodies(queue) == []
    qm.advance(1)
    assert qm.bodies(queue) == [b"one"]


def test_one_timer_serves_all_leases_in_the_order_of_their_ends(
    qm: RunningQueueManager, queue: Queue
) -> None:
    before = len(qm.clock.timers)
    for number in range(100):
        qm.send(queue, b"%d" % number)
        receive(qm, queue, lease=100_000 - 100 * number)
    assert len(qm.clock.timers) == before + 1
    qm.advance(91_000)
    assert sorted(map(int, qm.bodies(queue))) == list(range(90, 100))
    qm.advance(9_000)
    assert len(qm.bodies(queue)) == 100


def test_leases_extended_again_and_again_leave_no_deadlines_behind(
    qm: RunningQueueManager, queue: Queue
) -> None:
    for body in (b"one", b"two"):
        qm.send(queue, body)
    receive(qm, queue, lease=MINUTE - 1)  # the earliest one stays
    (received,) = receive(qm, queue)
    for number in range(1_000):
        qm.clock.advance(number % 2)
        qm.engine.leases.extend(ALICE, identifier(received), MINUTE)
    assert len(qm.engine.leases._deadlines) < 100


def test_a_released_message_is_there_at_once_and_counts_as_delivered(
    qm: RunningQueueManager, queue: Queue
) -> None:
    qm.send(queue, b"one")
    qm.send(queue, b"two")
    received = receive(qm, queue, most=2)
    qm.done(qm.engine.leases.release(ALICE, [identifier(each) for each in received]))
    assert qm.bodies(queue) == [b"one", b"two"]
    assert all(is_ended(qm, each) for each in received)
    assert [each.delivery_count for each in receive(qm, queue, most=2)] == [2, 2]


@pytest.mark.parametrize("end", ["release", "expire"])
def test_a_message_delivered_too_often_is_put_aside_in_one_commit(
    qm: RunningQueueManager, queue: Queue, end: str
) -> None:
    qm.done(qm.engine.failed_deliveries.set_limit(queue, 2, "poison"))
    qm.send(queue, b"bad")
    for count in (1, 2):
        (received,) = receive(qm, queue)
        assert received.delivery_count == count
        if end == "release":
            qm.done(qm.engine.leases.release(ALICE, [identifier(received)]))
        else:
            qm.advance(MINUTE)
    assert qm.bodies(queue) == []
    assert qm.bodies(queue.subqueue_collection["poison"]) == [b"bad"]
    qm.crash()
    assert qm.bodies(qm.find()) == []
    assert qm.bodies(qm.find().subqueue_collection["poison"]) == [b"bad"]


def test_leases_are_bound_to_their_account(qm: RunningQueueManager, queue: Queue) -> None:
    qm.send(queue, b"one")
    (received,) = receive(qm, queue)
    assert is_ended(qm, received, BOB)
    assert is_ended(qm, received, ADMINISTRATOR)
    assert is_ended(qm, "unknown", ALICE)
    complete(qm, received)


def test_identifiers_of_leases_cannot_be_guessed(qm: RunningQueueManager, queue: Queue) -> None:
    for _ in range(50):
        qm.send(queue, b"")
    identifiers = {identifier(each) for each in receive(qm, queue, most=50)}
    assert len(identifiers) == 50
    assert all(len(each) >= 22 for each in identifiers)


def test_receiving_needs_the_right_to_receive(qm: RunningQueueManager, queue: Queue) -> None:
    qm.send(queue, b"one")
    anonymous = Identity("nobody", "S-1-5-7", frozenset())
    assert refusal(begin, qm, queue, anonymous) == "MQ_ERROR_ACCESS_DENIED"
    assert qm.bodies(queue) == [b"one"]


def test_a_queue_opened_for_one_reader_gives_no_leases(
    qm: RunningQueueManager, queue: Queue
) -> None:
    qm.open(queue, QueueAccessType.RECEIVE_ACCESS, QueueShareMode.DENY_RECEIVE)
    assert refusal(begin, qm, queue) == "MQ_ERROR_SHARING_VIOLATION"


def test_several_leases_are_completed_together_or_not_at_all(
    qm: RunningQueueManager, queue: Queue
) -> None:
    for body in (b"one", b"two", b"three"):
        qm.send(queue, body)
    received = receive(qm, queue, most=3)
    ids = [identifier(each) for each in received]
    with pytest.raises(LeaseEndedError):
        qm.engine.leases.complete(ALICE, [*ids, "unknown"])
    assert queue.message_position_list.count == 3
    qm.done(qm.engine.leases.complete(ALICE, [*ids, ids[0]]))
    assert queue.message_position_list.count == 0


def test_completing_that_fails_leaves_the_leases_as_they_were(
    qm: RunningQueueManager, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    qm.send(queue, b"one")
    (received,) = receive(qm, queue)

    def fail(*_: object) -> None:
        raise OSError("the disk")

    with monkeypatch.context() as patch:
        patch.setattr(qm.store._writer, "add", fail)
        with pytest.raises(OSError, match="the disk"):
            qm.engine.leases.complete(ALICE, [identifier(received)])
    complete(qm, received)
    assert queue.message_position_list.count == 0


def test_completing_that_is_lost_in_a_crash_has_not_happened(
    qm: RunningQueueManager, queue: Queue
) -> None:
    for body in (b"one", b"two"):
        qm.send(queue, body)
    received = receive(qm, queue, most=2)
    qm.engine.leases.complete(ALICE, [identifier(each) for each in received])
    qm.crash()
    assert qm.bodies(qm.find()) == [b"one", b"two"]


def test_a_receive_waits_for_one_message_and_takes_what_is_there(
    qm: RunningQueueManager, queue: Queue
) -> None:
    reception = begin(qm, queue, wait=20_000, most=10)
    qm.advance(19_999)
    assert not reception.outcome.done
    for body in (b"one", b"two"):
        qm.enqueue(queue, body)
    assert bodies(qm.done(reception.outcome))[0] == b"one"
    assert not queue.open_queue_descriptor_collection


def test_a_receive_that_waits_in_vain_gets_nothing(qm: RunningQueueManager, queue: Queue) -> None:
    reception = begin(qm, queue, wait=20_000)
    qm.advance(20_000)
    assert reception.outcome.result() == []
    assert not queue.open_queue_descriptor_collection
    assert receive(qm, queue) == []


def test_waiting_receives_are_served_in_the_order_of_their_coming(
    qm: RunningQueueManager, queue: Queue
) -> None:
    first, second = begin(qm, queue, wait=MINUTE), begin(qm, queue, BOB, wait=MINUTE)
    qm.send(queue, b"one")
    qm.send(queue, b"two")
    assert bodies(first.outcome.result()) == [b"one"]
    assert bodies(second.outcome.result()) == [b"two"]


def test_who_has_gone_gets_no_message(qm: RunningQueueManager, queue: Queue) -> None:
    reception = begin(qm, queue, wait=MINUTE)
    reception.abandon()
    reception.abandon()
    assert refusal(lambda: reception.outcome) == "MQ_ERROR_OPERATION_CANCELLED"
    qm.send(queue, b"one")
    assert qm.bodies(queue) == [b"one"]
    assert not queue.open_queue_descriptor_collection


def test_what_was_not_delivered_is_given_back_and_not_counted(
    qm: RunningQueueManager, queue: Queue
) -> None:
    qm.send(queue, b"one")
    reception = begin(qm, queue)
    assert bodies(qm.done(reception.outcome)) == [b"one"]
    reception.abandon()
    assert qm.bodies(queue) == [b"one"]
    assert len(qm.engine.leases) == 0
    assert receive(qm, queue)[0].delivery_count == 1


def test_a_lease_of_zero_removes_the_messages_at_once(
    qm: RunningQueueManager, queue: Queue
) -> None:
    for body in (b"one", b"two", b"three"):
        qm.send(queue, body)
    reception = begin(qm, queue, lease=0, most=2)
    assert not reception.outcome.done  # before it is durable
    assert bodies(qm.done(reception.outcome)) == [b"one", b"two"]
    assert all(each.lease is None for each in reception.outcome.result())
    qm.crash()
    assert qm.bodies(qm.find()) == [b"three"]


def test_what_is_removed_at_once_and_lost_in_a_crash_is_there_again(
    qm: RunningQueueManager, queue: Queue
) -> None:
    qm.send(queue, b"one")
    begin(qm, queue, lease=0)
    qm.crash()
    assert qm.bodies(qm.find()) == [b"one"]


def test_completing_leaves_a_copy_in_the_journal(qm: RunningQueueManager) -> None:
    queue = qm.create(journaling=True)
    qm.send(queue, b"one")
    complete(qm, *receive(qm, queue))
    assert qm.bodies(queue.journal_queue_reference) == [b"one"]


def test_purging_leaves_a_leased_message_to_its_holder(
    qm: RunningQueueManager, queue: Queue
) -> None:
    qm.send(queue, b"one")
    qm.send(queue, b"two")
    received = receive(qm, queue, most=2)
    qm.done(qm.engine.queues.purge_queue(queue))
    assert queue.message_position_list.count == 2
    complete(qm, received[0])
    qm.done(qm.engine.leases.release(ALICE, [identifier(received[1])]))
    assert queue.message_position_list.count == 0


def test_leases_end_with_their_queue(qm: RunningQueueManager, queue: Queue) -> None:
    qm.send(queue, b"one")
    (received,) = receive(qm, queue)
    waiting = begin(qm, queue, BOB, wait=MINUTE)
    qm.done(qm.engine.queues.delete_queue(queue))
    assert refusal(lambda: waiting.outcome) == "MQ_ERROR_QUEUE_DELETED"
    assert qm.engine.leases.visible_to(ALICE) == []
    assert is_ended(qm, received)
    qm.advance(MINUTE)
    assert len(qm.engine.leases) == 0


def test_a_message_whose_time_is_over_while_it_is_leased_can_be_completed(
    qm: RunningQueueManager, queue: Queue
) -> None:
    qm.send(queue, b"one", time_to_be_received=1)
    (received,) = receive(qm, queue)
    qm.advance(2_000)
    assert queue.message_position_list.count == 1
    complete(qm, received)
    assert queue.message_position_list.count == 0


def test_a_message_whose_time_is_over_goes_when_its_lease_ends(
    qm: RunningQueueManager, queue: Queue
) -> None:
    qm.send(queue, b"one", time_to_be_received=1)
    (received,) = receive(qm, queue)
    qm.advance(MINUTE)
    assert queue.message_position_list.count == 0
    assert is_ended(qm, received)


def test_everybody_sees_the_leases_that_are_theirs(qm: RunningQueueManager, queue: Queue) -> None:
    for _ in range(3):
        qm.send(queue, b"")
    (mine,) = receive(qm, queue)
    receive(qm, queue, BOB, most=2)
    assert qm.engine.leases.visible_to(ALICE) == [mine.lease]
    assert len(qm.engine.leases.visible_to(BOB)) == 2
    assert [each.account for each in qm.engine.leases.visible_to(ADMINISTRATOR)] == [
        "alice",
        "bob",
        "bob",
    ]


def test_stopping_ends_waits_and_leaves_messages_where_they_are(
    qm: RunningQueueManager, queue: Queue
) -> None:
    qm.send(queue, b"one")
    receive(qm, queue)
    waiting = begin(qm, queue, wait=MINUTE)
    qm.restart()
    assert refusal(lambda: waiting.outcome) == "MQ_ERROR_SERVICE_NOT_AVAILABLE"
    assert qm.bodies(qm.find()) == [b"one"]
    assert receive(qm, qm.find())[0].delivery_count == 1


@pytest.mark.bound("leases.longest", "leases.messages_at_once")
@pytest.mark.parametrize(
    "arguments",
    [
        {"lease": SHORTEST_LEASE - 1},
        {"lease": LONGEST_LEASE + 1},
        {"lease": -1},
        {"most": 0},
        {"most": MESSAGES_AT_ONCE + 1},
    ],
)
def test_leases_and_numbers_of_messages_beyond_the_bounds_are_refused(
    qm: RunningQueueManager, queue: Queue, arguments: dict[str, int]
) -> None:
    qm.send(queue, b"one")
    lease, most = arguments.get("lease", MINUTE), arguments.get("most", 1)
    refused = refusal(lambda: begin(qm, queue, lease=lease, most=most))
    assert refused == "MQ_ERROR_INVALID_PARAMETER"
    assert bodies(receive(qm, queue, lease=LONGEST_LEASE, most=MESSAGES_AT_ONCE)) == [b"one"]


@pytest.mark.bound("leases.bytes_at_once")
def test_one_receive_gives_so_many_bytes_and_one_message_beyond(
    qm: RunningQueueManager, queue: Queue
) -> None:
    body = bytes(3 << 20)
    for _ in range(4):
        qm.send(queue, body)
    received = receive(qm, queue, most=10)
    assert len(received) == 3
    assert sum(len(each.message.packet) for each in received[:2]) < BYTES_AT_ONCE


@pytest.mark.bound("leases.of_account", "leases.in_all")
@pytest.mark.parametrize("bound", ["LEASES_OF_ACCOUNT", "LEASES_IN_ALL"])
def test_an_account_has_so_many_leases(
    qm: RunningQueueManager, queue: Queue, bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases_module, bound, 3)
    for _ in range(5):
        qm.send(queue, b"")
    received = receive(qm, queue, most=5)
    assert len(received) == 3
    assert refusal(lambda: begin(qm, queue).outcome) == "MQ_ERROR_INSUFFICIENT_RESOURCES"
    other = len(receive(qm, queue, BOB)) if bound == "LEASES_OF_ACCOUNT" else 0
    assert other == (bound == "LEASES_OF_ACCOUNT")
    complete(qm, received[0])
    assert len(receive(qm, queue, most=5)) == 1


def test_leases_of_a_deleted_queue_take_no_room(
    qm: RunningQueueManager, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases_module, "LEASES_OF_ACCOUNT", 1)
    qm.send(queue, b"")
    receive(qm, queue)
    qm.done(qm.engine.queues.delete_queue(queue))
    other = qm.create(r"private$\other")
    qm.send(other, b"")
    assert len(receive(qm, other)) == 1


def test_a_name_that_is_not_here_gives_nothing(qm: RunningQueueManager) -> None:
    name = FormatName.parse(r"DIRECT=OS:elsewhere\private$\orders")
    with pytest.raises(MQError, match="QUEUE_NOT_FOUND"):
        qm.engine.leases.receive(name, ALICE, lease=MINUTE)


def test_a_leased_message_is_locked_for_every_other_reader(
    qm: RunningQueueManager, queue: Queue
) -> None:
    key = qm.send(queue, b"one")
    receive(qm, queue)
    assert queue.message_position_list.state(key) is PositionState.LOCKED
    reader = qm.open(queue)
    assert refusal(qm.engine.messages.dequeue_message, reader, 0) == "MQ_ERROR_IO_TIMEOUT"
