"""The sending side of a protocol: taking messages out of outgoing queues ([MS-MQQB] 3.1.5.5-.7)."""

from uuid import uuid4

import pytest

from rpcqm.adm.enums import OutgoingQueueState, PositionState
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import ConnectionStatus, QueueAccessType
from rpcqm.qm.transfer import RESENT_AT_MOST
from tests.support.qm.sending import keep_sending
from tests.support.queue_manager import RunningQueueManager, refusal

RECEIVED = MessageClass.MQMSG_CLASS_ACK_RECEIVE
REJECTED = MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED
TIMEOUT = MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
OWNER = object()


def awaiting(qm: RunningQueueManager, queue: Queue) -> list[int]:
    """The messages of a queue that wait for their final acknowledgement."""
    return sorted(key for number, key in qm.engine.transfer.held if number == queue.queue_id)


@pytest.fixture
def queue(qm: RunningQueueManager) -> OutgoingQueue:
    return keep_sending(qm, r"DIRECT=OS:other\private$\q")


def send_in_transaction(qm: RunningQueueManager, queue: Queue, body: bytes, **more: bool) -> None:
    transaction = qm.engine.transactions.create_transaction(uuid4())
    qm.send(queue, body, transaction, **more)
    qm.done(qm.engine.transactions.transaction_commit(transaction.identifier))


def identifier_of(qm: RunningQueueManager, queue: Queue, key: int) -> MessageIdentifier:
    return qm.engine.positions.message_at(queue, key).attributes.identifier


def journal(qm: RunningQueueManager) -> Queue | None:
    return qm.engine.queue_manager.system_journal_queue


def deadletters(qm: RunningQueueManager) -> Queue | None:
    return qm.engine.queue_manager.system_deadletter_queue


def transactional_deadletters(qm: RunningQueueManager) -> Queue | None:
    return qm.engine.queue_manager.system_transactional_deadletter_queue


def test_messages_are_taken_in_order_and_by_one_only(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    for body in (b"a", b"b"):
        qm.send(queue, body)
    first = qm.engine.transfer.lock_next(queue, OWNER)
    assert first is not None
    assert first.attributes.body == b"a"
    second = qm.engine.transfer.lock_next(queue, OWNER, first.lookup_identifier)
    assert second is not None
    assert second.attributes.body == b"b"
    assert qm.engine.transfer.lock_next(queue, object()) is None


def test_what_is_being_sent_expires_when_it_is_given_back(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    qm.send(queue, b"a", time_to_reach_queue=5, negative_journaling_requested=True)
    taken = qm.engine.transfer.lock_next(queue, OWNER)
    assert taken is not None
    qm.advance(10_000)
    assert queue.message_count == 1
    qm.engine.transfer.release(queue, taken.lookup_identifier)
    qm.settle()
    assert queue.message_count == 0
    assert qm.bodies(deadletters(qm)) == [b"a"]


@pytest.mark.parametrize("wanted", [True, False])
def test_a_delivered_message_is_removed_and_journaled_if_it_asks_for_that(
    qm: RunningQueueManager, queue: OutgoingQueue, wanted: bool
) -> None:
    qm.send(queue, b"a", positive_journaling_requested=wanted)
    taken = qm.engine.transfer.lock_next(queue, OWNER)
    assert taken is not None
    changes = {b"qb:sequence": b"1"}
    qm.done(qm.engine.transfer.delivered(queue, taken.lookup_identifier, changes))
    assert queue.message_count == 0
    assert qm.bodies(journal(qm)) == ([b"a"] if wanted else [])
    assert qm.engine.protocol_records.get(b"qb:sequence") == b"1"
    assert (
        refusal(qm.engine.transfer.delivered, queue, taken.lookup_identifier)
        == "MQ_ERROR_MESSAGE_NOT_FOUND"
    )


def test_only_what_belongs_to_a_stream_or_a_journal_waits_for_the_disk_when_it_is_delivered(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    def syncs(changes: dict[bytes, bytes | None] | None, journaled: bool = False) -> int:
        key = qm.send(queue, b"a", delivery_guarantee=1, positive_journaling_requested=journaled)
        qm.settle()
        before = qm.store.metrics.snapshot()["store_syncs"]
        qm.done(qm.engine.transfer.delivered(queue, key, changes))
        assert queue.message_count == 0
        return qm.store.metrics.snapshot()["store_syncs"] - before

    assert syncs(None) == 0
    assert syncs({b"qb:x": b"1"}) == 1
    assert syncs(None, journaled=True) == 1


def test_a_crash_brings_back_few_messages_that_were_delivered(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    count = 2 * RESENT_AT_MOST
    keys = [qm.send(queue, b"a", delivery_guarantee=1) for _ in range(count)]
    qm.settle()
    before = qm.store.metrics.snapshot()["store_syncs"]
    for key in keys:
        qm.done(qm.engine.transfer.delivered(queue, key))
    assert qm.store.metrics.snapshot()["store_syncs"] == before + 2


def test_the_removal_and_the_streams_change_in_one_commit(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    key = qm.send(queue, b"a")
    outcome = qm.engine.transfer.delivered(queue, key, {b"qb:x": b"1"})
    assert not outcome.done
    assert qm.engine.protocol_records.get(b"qb:x") is None
    assert queue.message_position_list.state(key) is PositionState.LEAVING
    qm.settle()
    assert outcome.done
    assert qm.engine.protocol_records.get(b"qb:x") == b"1"


def test_a_transactional_message_is_journaled_by_its_final_acknowledgement_only(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    send_in_transaction(qm, queue, b"a", positive_journaling_requested=True)
    taken = qm.engine.transfer.lock_next(queue, OWNER)
    assert taken is not None
    key = taken.lookup_identifier
    identifier = identifier_of(qm, queue, key)
    qm.done(qm.engine.transfer.await_final_acknowledgement(queue, key))
    assert qm.bodies(journal(qm)) == []
    assert awaiting(qm, queue) == [key]
    assert qm.done(qm.engine.transfer.final_acknowledgement(identifier, RECEIVED))
    assert qm.bodies(journal(qm)) == [b"a"]
    assert awaiting(qm, queue) == []
    assert not qm.done(qm.engine.transfer.final_acknowledgement(identifier, RECEIVED))


def test_a_negative_final_acknowledgement_makes_a_dead_letter(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    for wanted in (True, False):
        more = {"negative_journaling_requested": wanted, "positive_journaling_requested": True}
        send_in_transaction(qm, queue, b"%d" % wanted, **more)
        taken = qm.engine.transfer.lock_next(queue, OWNER)
        assert taken is not None
        qm.done(qm.engine.transfer.finished(queue, taken.lookup_identifier, REJECTED))
    assert qm.bodies(transactional_deadletters(qm)) == [b"1"]
    assert qm.bodies(journal(qm)) == []
    assert queue.message_count == 0


def test_what_waits_for_its_final_acknowledgement_does_so_over_a_restart(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    send_in_transaction(qm, queue, b"a", negative_journaling_requested=True)
    send_in_transaction(qm, queue, b"b")
    taken = qm.engine.transfer.lock_next(queue, OWNER)
    assert taken is not None
    identifier = identifier_of(qm, queue, taken.lookup_identifier)
    qm.done(qm.engine.transfer.await_final_acknowledgement(queue, taken.lookup_identifier))
    qm.restart()
    (again,) = qm.engine.outgoing.list()
    assert awaiting(qm, again) == [taken.lookup_identifier]
    following = qm.engine.transfer.lock_next(again, OWNER)
    assert following is not None
    assert following.attributes.body == b"b"
    assert qm.done(qm.engine.transfer.final_acknowledgement(identifier, REJECTED))
    assert qm.bodies(transactional_deadletters(qm)) == [b"a"]
    qm.restart()
    assert awaiting(qm, qm.engine.outgoing.list()[0]) == []


def test_what_has_arrived_is_not_reported_as_purged_after_a_restart(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    send_in_transaction(qm, queue, b"a", negative_journaling_requested=True)
    taken = qm.engine.transfer.lock_next(queue, OWNER)
    assert taken is not None
    identifier = identifier_of(qm, queue, taken.lookup_identifier)
    qm.done(qm.engine.transfer.await_final_acknowledgement(queue, taken.lookup_identifier))
    qm.done(qm.engine.queues.purge_queue(queue))
    qm.restart()
    (again,) = qm.engine.outgoing.list()
    assert again.message_position_list.state(taken.lookup_identifier).name == "PURGE_PENDING"
    assert qm.bodies(transactional_deadletters(qm)) == []
    assert qm.done(qm.engine.transfer.final_acknowledgement(identifier, REJECTED))
    assert qm.bodies(transactional_deadletters(qm)) == [b"a"]
    assert again.message_count == 0


def test_only_what_is_being_sent_can_wait_for_an_acknowledgement(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    key = qm.send(queue, b"a")
    assert (
        refusal(qm.engine.transfer.await_final_acknowledgement, queue, key)
        == "MQ_ERROR_MESSAGE_NOT_FOUND"
    )


def test_what_cannot_be_sent_becomes_a_dead_letter(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    qm.send(queue, b"a", negative_journaling_requested=True)
    taken = qm.engine.transfer.lock_next(queue, OWNER)
    assert taken is not None
    qm.done(qm.engine.transfer.failed(queue, taken.lookup_identifier, TIMEOUT, {b"qb:y": b"2"}))
    assert qm.bodies(deadletters(qm)) == [b"a"]
    assert qm.engine.protocol_records.get(b"qb:y") == b"2"


def test_a_purge_takes_effect_when_the_message_is_given_back(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    qm.send(queue, b"a")
    taken = qm.engine.transfer.lock_next(queue, OWNER)
    assert taken is not None
    qm.done(qm.engine.queues.purge_queue(queue))
    assert queue.message_count == 1
    qm.engine.transfer.release(queue, taken.lookup_identifier)
    qm.settle()
    assert queue.message_count == 0


# Streams


def test_records_of_streams_are_durable_and_can_be_removed(qm: RunningQueueManager) -> None:
    qm.done(qm.engine.protocol_records.write({b"qb:a": b"1", b"qb:b": b"2", b"other": b"3"}))
    qm.restart()
    assert list(qm.engine.protocol_records.records(b"qb:")) == [(b"qb:a", b"1"), (b"qb:b", b"2")]
    qm.done(qm.engine.protocol_records.write({b"qb:a": None}))
    assert list(qm.engine.protocol_records.records(b"qb:")) == [(b"qb:b", b"2")]


# States, history and statistics of outgoing queues


@pytest.mark.conformance("MQDMPR-event-pause_queue", "MQDMPR-event-resume_queue")
def test_protocols_hear_of_pause_and_resume(qm: RunningQueueManager, queue: OutgoingQueue) -> None:
    heard: list[OutgoingQueueState] = []
    qm.engine.outgoing.state_hooks.append(lambda queue: heard.append(queue.state))
    qm.engine.outgoing.pause_queue(queue)
    qm.engine.outgoing.pause_queue(queue)
    qm.engine.outgoing.resume_queue(queue)
    assert heard == [OutgoingQueueState.ON_HOLD, OutgoingQueueState.INACTIVE]


def test_a_queue_on_hold_stays_on_hold_over_a_restart_and_a_connection_does_not(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    other = keep_sending(qm, r"DIRECT=OS:third\q")
    for each in (queue, other):
        qm.send(each, b"a")
    qm.engine.outgoing.pause_queue(queue)
    qm.engine.outgoing.set_state(other, OutgoingQueueState.CONNECTED)
    qm.restart()
    states = [each.state for each in qm.engine.outgoing.list()]
    assert states == [OutgoingQueueState.ON_HOLD, OutgoingQueueState.INACTIVE]


def test_an_empty_queue_is_kept_while_it_is_connected(qm: RunningQueueManager) -> None:
    descriptor = qm.open(r"DIRECT=OS:other\q", QueueAccessType.SEND_ACCESS)
    queue = descriptor.queue_reference
    assert isinstance(queue, OutgoingQueue)
    qm.engine.outgoing.set_state(queue, OutgoingQueueState.CONNECTED)
    qm.engine.opening.close_queue(descriptor)
    assert qm.engine.outgoing.list() == [queue]
    qm.engine.outgoing.set_state(queue, OutgoingQueueState.INACTIVE)
    qm.engine.registry.drop_if_unused(queue)
    assert qm.engine.outgoing.list() == []


@pytest.mark.conformance("MQDMPR-element-OutgoingQueue")
def test_the_history_of_connections_is_bounded(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    for number in range(40):
        qm.engine.outgoing.record_connection(
            queue, ConnectionStatus.DNS_FAILURE, number, ("192.0.2.1",)
        )
    assert [entry.error for entry in queue.connection_history] == list(range(8, 40))
    assert queue.connection_history[0].connection_history_time == qm.clock.now() // 1000


def test_a_queue_has_its_statistics_once(qm: RunningQueueManager, queue: OutgoingQueue) -> None:
    info = qm.engine.outgoing.transfer_info(queue)
    assert qm.engine.outgoing.transfer_info(queue) is info
    assert queue.outgoing_transfer_info_reference is info


def test_an_order_to_resend_reaches_the_protocol(
    qm: RunningQueueManager, queue: OutgoingQueue
) -> None:
    assert refusal(qm.engine.outgoing.resend, queue) == "MQ_ERROR_UNSUPPORTED_OPERATION"
    heard: list[OutgoingQueue] = []
    qm.engine.outgoing.resend_hooks.append(heard.append)
    qm.engine.outgoing.resend(queue)
    assert heard == [queue]


@pytest.mark.conformance("MQDMPR-event-take_offline", "MQDMPR-event-bring_online")
def test_protocols_hear_of_offline_and_online(qm: RunningQueueManager) -> None:
    heard: list[bool] = []
    qm.engine.online_hooks.append(heard.append)
    qm.engine.take_offline()
    qm.engine.bring_online()
    assert heard == [False, True]
