"""Units of work ([MS-MQDMPR] 3.1.4.3 to .5, 3.1.7.1.8)."""

from uuid import UUID, uuid4

import pytest

from rpcqm.adm.enums import OperationType, PositionState
from rpcqm.adm.message import Message, MessagePosition
from rpcqm.adm.queue import Queue
from rpcqm.adm.transaction import Transaction
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.user_message import UserMessage
from tests.support.queue_manager import RunningQueueManager, refusal


@pytest.fixture
def queue(qm: RunningQueueManager) -> Queue:
    return qm.create(transactional=True)


def begin(qm: RunningQueueManager) -> Transaction:
    return qm.engine.transactions.create_transaction(uuid4())


def commit(qm: RunningQueueManager, transaction: Transaction) -> None:
    qm.done(qm.engine.transactions.transaction_commit(transaction.identifier))


def abort(qm: RunningQueueManager, transaction: Transaction) -> None:
    qm.done(qm.engine.transactions.transaction_abort(transaction.identifier))


def fill(qm: RunningQueueManager, queue: Queue, *bodies: bytes) -> list[int]:
    transaction = begin(qm)
    for body in bodies:
        qm.send(queue, body, transaction)
    commit(qm, transaction)
    return queue.message_position_list.page(None, 1_000)


def receive(qm: RunningQueueManager, queue: Queue, transaction: Transaction) -> MessagePosition:
    descriptor = qm.open(queue)
    outcome = qm.engine.messages.dequeue_message(descriptor, 0, transaction=transaction)
    position = qm.done(outcome).message_position_reference
    qm.engine.opening.close_queue(descriptor)
    assert position is not None
    return position


def state(position: MessagePosition) -> PositionState:
    return position.state


@pytest.mark.conformance(
    "MQDMPR-event-create_transaction",
    "MQDMPR-element-Transaction",
    "MQDMPR-element-TransactionalOperation",
)
def test_a_transaction_collects_its_operations_in_order(
    qm: RunningQueueManager, queue: Queue
) -> None:
    (key,) = fill(qm, queue, b"a")
    transaction = begin(qm)
    assert qm.engine.queue_manager.transaction_collection[transaction.identifier] is transaction
    receive(qm, queue, transaction)
    qm.send(queue, b"b", transaction)
    first, second = transaction.transactional_operation_collection
    assert first.operation_type is OperationType.DEQUEUE
    assert (first.queue, first.lookup_identifier) == (queue, key)
    assert first.dequeue_reason == MessageClass.MQMSG_CLASS_ACK_RECEIVE
    assert second.operation_type is OperationType.ENQUEUE
    assert second.queue is queue


@pytest.mark.conformance("MQDMPR-event-create_transaction")
def test_the_identifier_of_a_transaction_is_used_once(qm: RunningQueueManager) -> None:
    transaction = begin(qm)
    create = qm.engine.transactions.create_transaction
    assert refusal(create, transaction.identifier) == "MQ_ERROR_TRANSACTION_SEQUENCE"


@pytest.mark.conformance(
    "MQDMPR-event-transaction_prepare",
    "MQDMPR-event-transaction_commit",
    "MQDMPR-event-transaction_abort",
)
def test_an_unknown_transaction_is_out_of_sequence(qm: RunningQueueManager) -> None:
    """Looked for before anything is done with it (G8), 0xC00E0051 (G39)."""
    transactions = qm.engine.transactions
    for event in (
        transactions.find,
        transactions.transaction_prepare,
        transactions.transaction_commit,
        transactions.transaction_abort,
    ):
        assert refusal(event, UUID(int=7)) == "MQ_ERROR_TRANSACTION_SEQUENCE"


@pytest.mark.conformance("MQDMPR-event-transaction_commit", "MQDMPR-event-move_message")
def test_a_commit_makes_everything_happen_at_once(qm: RunningQueueManager, queue: Queue) -> None:
    keys = fill(qm, queue, b"a", b"b")
    subqueue = qm.subqueue(queue, "sub")
    transaction = begin(qm)
    received = receive(qm, queue, transaction)
    move = qm.engine.messages.move_message
    qm.done(move(MessagePosition(queue, keys[1]), subqueue, transaction))
    qm.send(queue, b"c", transaction)
    assert (qm.bodies(queue), qm.bodies(subqueue)) == ([], [])
    outcome = qm.engine.transactions.transaction_commit(transaction.identifier)
    assert not outcome.done
    qm.done(outcome)
    assert (qm.bodies(queue), qm.bodies(subqueue)) == ([b"c"], [b"b"])
    assert state(received) is PositionState.DELETED
    assert transaction.identifier not in qm.engine.queue_manager.transaction_collection
    qm.restart()
    again = qm.find()
    assert qm.bodies(again) == [b"c"]
    assert qm.bodies(again.subqueue_collection["sub"]) == [b"b"]


@pytest.mark.conformance("MQDMPR-event-transaction_abort")
def test_an_abort_undoes_everything(qm: RunningQueueManager, queue: Queue) -> None:
    keys = fill(qm, queue, b"a", b"b")
    subqueue = qm.subqueue(queue, "sub")
    used = qm.store.total.bytes
    transaction = begin(qm)
    receive(qm, queue, transaction)
    move = qm.engine.messages.move_message
    qm.done(move(MessagePosition(queue, keys[1]), subqueue, transaction))
    qm.send(queue, b"c", transaction)
    abort(qm, transaction)
    assert (qm.bodies(queue), qm.bodies(subqueue)) == ([b"a", b"b"], [])
    assert queue.message_position_list.page(None, 10) == keys
    assert qm.store.total.bytes == used
    assert transaction.identifier not in qm.engine.queue_manager.transaction_collection


@pytest.mark.conformance("MQDMPR-event-transaction_abort")
def test_every_abort_is_counted_durably(qm: RunningQueueManager, queue: Queue) -> None:
    fill(qm, queue, b"a")
    for _ in range(3):
        transaction = begin(qm)
        receive(qm, queue, transaction)
        abort(qm, transaction)
    qm.restart()
    message = qm.done(qm.engine.messages.peek_message(qm.open(qm.find()), 0))
    assert message.abort_count == 3


def test_a_message_that_is_given_back_wakes_who_waits(
    qm: RunningQueueManager, queue: Queue
) -> None:
    fill(qm, queue, b"a")
    transaction = begin(qm)
    receive(qm, queue, transaction)
    waiting = qm.engine.messages.dequeue_message(qm.open(queue))
    abort(qm, transaction)
    assert waiting.result().attributes.body == b"a"


@pytest.mark.conformance("MQMQ-packet-TransactionHeader")
def test_a_transactional_message_that_stays_here_is_the_first_of_its_sequence(
    qm: RunningQueueManager, queue: Queue
) -> None:
    """[MS-MQMQ] 2.2.20.5 has numbers from 1 on: readers may refuse a 0 (G467)."""
    keys = fill(qm, queue, b"a", b"b")
    for key in keys:
        attributes = qm.engine.positions.message_at(queue, key).attributes
        assert attributes.has_transaction_header
        assert attributes.transaction_sequence_number == 1
        assert attributes.transaction_previous_sequence_number == 0


@pytest.mark.conformance("MQDMPR-event-transaction_abort")
def test_a_message_purged_meanwhile_is_removed_by_the_abort(
    qm: RunningQueueManager, queue: Queue
) -> None:
    fill(qm, queue, b"a")
    transaction = begin(qm)
    position = receive(qm, queue, transaction)
    qm.done(qm.engine.queues.purge_queue(queue))
    reasons: list[MessageClass] = []
    qm.engine.positions.deleted_hooks.append(
        lambda transaction, queue, key, reason: reasons.append(reason)
    )
    abort(qm, transaction)
    assert state(position) is PositionState.DELETED
    assert reasons == [MessageClass.MQMSG_CLASS_NACK_Q_PURGED]


def test_a_message_purged_while_its_abort_is_written_is_removed_after_it(
    qm: RunningQueueManager, queue: Queue
) -> None:
    fill(qm, queue, b"a")
    transaction = begin(qm)
    position = receive(qm, queue, transaction)
    aborted = qm.engine.transactions.transaction_abort(transaction.identifier)
    purged = qm.engine.queues.purge_queue(queue)
    qm.settle()
    assert aborted.done
    assert purged.result() == 0
    assert state(position) is PositionState.DELETED


@pytest.mark.conformance("MQDMPR-event-transaction_prepare")
def test_first_and_last_are_marked_for_each_destination(
    qm: RunningQueueManager, queue: Queue
) -> None:
    """Over what is sent to one queue, not over all operations (G8)."""
    other = qm.create(r"private$\other", transactional=True)
    fill(qm, queue, b"x")
    transaction = begin(qm)
    receive(qm, queue, transaction)
    for target, body in ((queue, b"a"), (other, b"1"), (queue, b"b"), (queue, b"c")):
        qm.send(target, body, transaction)
    commit(qm, transaction)
    assert _marks(qm, queue) == [(b"a", 1, 0), (b"b", 0, 0), (b"c", 0, 1)]
    assert _marks(qm, other) == [(b"1", 1, 1)]


def _marks(qm: RunningQueueManager, queue: Queue) -> list[tuple[bytes, int, int]]:
    marks = []
    for key in queue.message_position_list.page(None, 100):
        packet = UserMessage(qm.engine.positions.message_at(queue, key).packet)
        header = packet.transaction_header
        assert header is not None
        marks.append((packet.body, header.flags.FM, header.flags.LM))
    return marks


def test_what_a_transaction_sends_is_not_kept_in_memory(
    qm: RunningQueueManager, queue: Queue
) -> None:
    transaction = begin(qm)
    for body in (b"a", b"b", b"c"):
        qm.send(queue, body, transaction)
    operations = transaction.transactional_operation_collection
    assert [operation.message for operation in operations] == [None] * 3
    qm.enqueue(queue, b"in the same turn", transaction)
    commit(qm, transaction)
    assert qm.bodies(queue) == [b"a", b"b", b"c", b"in the same turn"]


@pytest.mark.conformance("MQDMPR-event-enqueue_message")
def test_messages_of_a_transaction_carry_its_mark_and_are_recoverable(
    qm: RunningQueueManager, queue: Queue
) -> None:
    transaction = begin(qm)
    message = qm.compose(queue, b"a", transaction, delivery_guarantee=0, priority=7)
    attributes = message.attributes
    assert attributes.transaction_identifier
    assert message.envelope.recoverable
    assert message.envelope.priority == 0
    packet = bytearray(message.packet)
    packet[2] |= 7  # as another sender may have it
    assert Message(bytes(packet)).envelope.priority == 0


@pytest.mark.conformance("MQMQ-packet-TransactionHeader")
def test_transactions_have_numbers_of_their_own_even_after_a_restart(
    qm: RunningQueueManager, queue: Queue
) -> None:
    """However much their units of work are alike."""
    for number in range(3):
        if number == 2:
            qm.restart()
            queue = qm.find()
        transactions = qm.engine.transactions
        transaction = transactions.create_transaction(UUID(int=number + 1 << 64))
        qm.send(queue, b"a", transaction)
        qm.send(queue, b"b", transaction)
        commit(qm, transaction)
    message_at = qm.engine.positions.message_at
    keys = queue.message_position_list.page(None, 100)
    numbers = [message_at(queue, key).attributes.transaction_identifier for key in keys]
    assert len(keys) == 6
    assert numbers[0::2] == numbers[1::2]
    assert len(set(numbers)) == 3
    assert 0 not in numbers


@pytest.mark.conformance("MQMQ-packet-TransactionHeader")
def test_numbers_of_transactions_begin_again_after_twenty_bits(
    qm: RunningQueueManager, queue: Queue
) -> None:
    """G171."""
    counter = qm.engine.store.counters.transaction
    counter.next = counter.limit = 0xFFFFF
    numbers = []
    for _ in range(2):
        message = qm.compose(queue, b"a", begin(qm))
        numbers.append(message.attributes.transaction_identifier)
    assert numbers == [0xFFFFF, 1]


def test_nothing_joins_a_prepared_transaction(qm: RunningQueueManager, queue: Queue) -> None:
    fill(qm, queue, b"a")
    transaction = begin(qm)
    qm.send(queue, b"b", transaction)
    qm.engine.transactions.transaction_prepare(transaction.identifier)
    descriptor = qm.open(queue)
    receive_event = qm.engine.messages.dequeue_message
    refused = refusal(receive_event, descriptor, 0, transaction=transaction)
    assert refused == "MQ_ERROR_TRANSACTION_SEQUENCE"
    message = qm.compose(queue, b"c", transaction)
    enqueue = qm.engine.messages.enqueue_message
    assert refusal(enqueue, queue, message, transaction) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    commit(qm, transaction)
    assert qm.bodies(queue) == [b"a", b"b"]


def test_nothing_leaves_a_prepared_transaction(qm: RunningQueueManager, queue: Queue) -> None:
    """Its commit would remove what was given back by hand (G38)."""
    (key,) = fill(qm, queue, b"a")
    transaction = begin(qm)
    receive(qm, queue, transaction)
    qm.engine.transactions.transaction_prepare(transaction.identifier)
    end = qm.engine.messages.dequeue_message_end
    refused = refusal(end, qm.open(queue), MessagePosition(queue, key), False, True)
    assert refused == "MQ_ERROR_TRANSACTION_SEQUENCE"
    prepare = qm.engine.transactions.transaction_prepare
    assert refusal(prepare, transaction.identifier) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    commit(qm, transaction)
    assert qm.bodies(queue) == []


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_transaction_that_ended_takes_nothing_any_more(
    qm: RunningQueueManager, queue: Queue, end: str
) -> None:
    transaction = begin(qm)
    (commit if end == "commit" else abort)(qm, transaction)
    receive_event = qm.engine.messages.dequeue_message
    refused = refusal(receive_event, qm.open(queue), 0, transaction=transaction)
    assert refused == "MQ_ERROR_TRANSACTION_SEQUENCE"


def test_transactional_reading_needs_a_transactional_queue(qm: RunningQueueManager) -> None:
    queue = qm.create(r"private$\plain")
    qm.send(queue, b"a")
    receive_event = qm.engine.messages.dequeue_message
    refused = refusal(receive_event, qm.open(queue), 0, transaction=begin(qm))
    assert refused == "MQ_ERROR_TRANSACTION_USAGE"


def test_a_transactional_queue_can_be_read_without_a_transaction(
    qm: RunningQueueManager, queue: Queue
) -> None:
    fill(qm, queue, b"a")
    assert qm.receive(qm.open(queue)) == b"a"


def test_a_message_without_transaction_header_cannot_join(
    qm: RunningQueueManager, queue: Queue
) -> None:
    message = qm.compose(queue, b"plain")
    enqueue = qm.engine.messages.enqueue_message
    assert refusal(enqueue, queue, message, begin(qm)) == "MQ_ERROR_TRANSACTION_USAGE"


def test_a_waiting_transactional_receive_joins_when_the_message_comes(
    qm: RunningQueueManager, queue: Queue
) -> None:
    transaction = begin(qm)
    waiting = qm.engine.messages.dequeue_message(qm.open(queue), transaction=transaction)
    fill(qm, queue, b"a")
    assert waiting.result().attributes.body == b"a"
    assert queue.message_count == 1
    commit(qm, transaction)
    assert queue.message_count == 0


def test_operations_on_a_deleted_queue_do_not_stop_a_commit(
    qm: RunningQueueManager, queue: Queue
) -> None:
    other = qm.create(r"private$\other", transactional=True)
    fill(qm, queue, b"a", b"b")
    subqueue = qm.subqueue(queue, "sub")
    transaction = begin(qm)
    receive(qm, queue, transaction)
    key = queue.message_position_list.first()
    assert key is not None
    qm.done(qm.engine.messages.move_message(MessagePosition(queue, key), subqueue, transaction))
    qm.send(queue, b"lost", transaction)
    qm.send(other, b"kept", transaction)
    qm.done(qm.engine.queues.delete_queue(queue))
    commit(qm, transaction)
    assert qm.bodies(other) == [b"kept"]
    assert qm.store.total.count == 1


# Restart


@pytest.mark.conformance("MQDMPR-rule-3.1.3")
def test_internal_transactions_left_open_are_aborted_at_the_start(
    qm: RunningQueueManager, queue: Queue
) -> None:
    fill(qm, queue, b"a")
    used = qm.store.total.bytes
    transaction = begin(qm)
    receive(qm, queue, transaction)
    qm.send(queue, b"never", transaction)
    qm.restart()
    assert qm.engine.queue_manager.transaction_collection == {}
    assert qm.bodies(qm.find()) == [b"a"]
    assert qm.store.total.bytes == used
