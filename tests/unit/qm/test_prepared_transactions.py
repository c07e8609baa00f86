"""A transaction that is prepared keeps what it holds, as it holds it ([MS-MQDMPR] 3.1.4.3)."""

from uuid import uuid4

from rpcqm.adm.message import MessagePosition
from rpcqm.adm.queue import Queue
from rpcqm.adm.transaction import Transaction
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested, MessageClass
from tests.support.queue_manager import RunningQueueManager, refusal

REJECTED = MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED


def holding(qm: RunningQueueManager) -> Transaction:
    """A transaction that has received a message, which asks for acknowledgements."""
    acks = qm.create(r"private$\acks")
    queue = qm.create(transactional=True)
    events = qm.engine.transactions
    sending, reading = events.create_transaction(uuid4()), events.create_transaction(uuid4())
    qm.send(
        queue,
        b"one",
        sending,
        negative_journaling_requested=True,
        acknowledgements_requested=AcknowledgementsRequested.ACK_NEG_RECEIVE,
        administration_queue_format_name=FormatName.parse(f"DIRECT=OS:{acks.pathname}"),
    )
    qm.done(events.transaction_commit(sending.identifier))
    qm.done(qm.engine.messages.dequeue_message(qm.open(queue), 0, transaction=reading))
    return reading


def classes(qm: RunningQueueManager, queue: Queue) -> list[int]:
    keys = queue.message_position_list.page(None, 100)
    return [qm.engine.positions.message_at(queue, key).attributes.message_class for key in keys]


def test_nothing_leaves_a_prepared_transaction(qm: RunningQueueManager) -> None:
    """What is given back by hand (G38) would be removed all the same after a restart."""
    transaction = holding(qm)
    (operation,) = transaction.transactional_operation_collection
    prepare = qm.engine.transactions.transaction_prepare
    qm.done(prepare(transaction.identifier, single_phase=False))
    position = MessagePosition(operation.queue, operation.lookup_identifier)
    end = qm.engine.messages.dequeue_message_end
    refused = refusal(end, qm.open(operation.queue), position, False, True)
    assert refused == "MQ_ERROR_TRANSACTION_SEQUENCE"
    assert transaction.transactional_operation_collection == [operation]


def test_a_rejection_survives_a_restart(qm: RunningQueueManager) -> None:
    transaction = holding(qm)
    (operation,) = transaction.transactional_operation_collection
    operation.dequeue_reason = REJECTED
    prepare = qm.engine.transactions.transaction_prepare
    qm.done(prepare(transaction.identifier, single_phase=False))
    qm.restart()
    qm.done(qm.engine.transactions.transaction_commit(transaction.identifier))
    assert classes(qm, qm.find(r"private$\acks")) == [REJECTED]
    assert qm.bodies(qm.engine.queue_manager.system_transactional_deadletter_queue) == [b"one"]
