"""The dead-letter queue that an application chooses ([MS-MQDMPR] 3.1.1.12)."""

from uuid import uuid4

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.codec.packet.enums import MessageClass
from tests.support.qm.sending import keep_sending
from tests.support.queue_manager import RunningQueueManager

CHOSEN = r".\private$\chosen"


def send(qm: RunningQueueManager, queue: Queue, body: bytes, transactional: bool = False) -> None:
    """A dead letter in a second."""
    transaction = qm.engine.transactions.create_transaction(uuid4()) if transactional else None
    message = qm.compose(
        queue, body, transaction, negative_journaling_requested=True, time_to_be_received=1
    )
    message.application_deadletter_queue = CHOSEN
    qm.done(qm.engine.messages.enqueue_message(queue, message, transaction))
    if transaction is not None:
        qm.done(qm.engine.transactions.transaction_commit(transaction.identifier))


def systems(qm: RunningQueueManager, transactional: bool) -> Queue | None:
    queue_manager = qm.engine.queue_manager
    if transactional:
        return queue_manager.system_transactional_deadletter_queue
    return queue_manager.system_deadletter_queue


@pytest.mark.conformance("MQDMPR-element-Message")
@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize("restarted", [True, False])
def test_a_dead_letter_goes_where_its_application_wants_it(
    qm: RunningQueueManager, transactional: bool, restarted: bool
) -> None:
    queue = qm.create(transactional=transactional)
    qm.create(r"private$\chosen", transactional=transactional)
    send(qm, queue, b"a", transactional)
    if restarted:
        qm.restart()
    qm.advance(2_000)
    assert qm.bodies(qm.find(r"private$\chosen")) == [b"a"]
    assert qm.bodies(systems(qm, transactional)) == []


def test_the_packet_does_not_show_what_is_kept_behind_it(qm: RunningQueueManager) -> None:
    queue = qm.create()
    send(qm, queue, b"a")
    key = queue.message_position_list.first_available()
    assert key is not None
    message = qm.engine.positions.message_at(queue, key)
    assert message.application_deadletter_queue == CHOSEN
    assert len(message.packet) == message.envelope.packet_size


@pytest.mark.parametrize("exists", [True, False])
def test_without_a_suitable_queue_the_system_keeps_it(
    qm: RunningQueueManager, exists: bool
) -> None:
    queue = qm.create()
    if exists:
        qm.create(r"private$\chosen", transactional=True)
    send(qm, queue, b"a")
    qm.advance(2_000)
    assert qm.bodies(systems(qm, False)) == [b"a"]


@pytest.mark.conformance("MQQB-rule-3.1.7.1.2")
@pytest.mark.parametrize("transactional", [True, False])
def test_what_could_not_leave_goes_there_too(qm: RunningQueueManager, transactional: bool) -> None:
    chosen = qm.create(r"private$\chosen", transactional=transactional)
    send(qm, keep_sending(qm, r"DIRECT=OS:other\q"), b"a", transactional)
    qm.advance(2_000)
    assert qm.bodies(chosen) == [b"a"]
    assert qm.bodies(systems(qm, transactional)) == []


@pytest.mark.conformance("MQQB-rule-3.1.5.7")
@pytest.mark.parametrize("restarted", [True, False])
def test_what_its_destination_rejects_goes_there_too(
    qm: RunningQueueManager, restarted: bool
) -> None:
    qm.create(r"private$\chosen", transactional=True)
    queue = keep_sending(qm, r"DIRECT=OS:other\q")
    send(qm, queue, b"a", transactional=True)
    taken = qm.engine.transfer.lock_next(queue, object())
    assert taken is not None
    identifier = taken.attributes.identifier
    qm.done(qm.engine.transfer.await_final_acknowledgement(queue, taken.lookup_identifier))
    if restarted:
        qm.restart()
    rejected = MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED
    assert qm.done(qm.engine.transfer.final_acknowledgement(identifier, rejected))
    assert qm.bodies(qm.find(r"private$\chosen")) == [b"a"]
    assert qm.bodies(systems(qm, True)) == []


def test_a_transaction_remembers_the_choice(qm: RunningQueueManager) -> None:
    queue = qm.create(transactional=True)
    qm.create(r"private$\chosen", transactional=True)
    transaction = qm.engine.transactions.create_transaction(uuid4())
    message = qm.compose(
        queue, b"a", transaction, negative_journaling_requested=True, time_to_be_received=1
    )
    message.application_deadletter_queue = CHOSEN
    qm.done(qm.engine.messages.enqueue_message(queue, message, transaction))
    qm.done(qm.engine.transactions.transaction_commit(transaction.identifier))
    qm.advance(2_000)
    assert qm.bodies(qm.find(r"private$\chosen")) == [b"a"]
