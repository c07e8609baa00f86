"""Moving and transactional reading by RemoteRead ([MS-MQRR] 3.1.4.10, .12 to .15)."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.adm.transaction import Transaction
from rpcqm.base.errors import FaultStatus, HResult, NtStatus
from rpcqm.codec.types.mqmq import XACTUOW
from rpcqm.interfaces.remote_read import PENDING_REQUEST_CLEANUP
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE, BOB, LEVEL_INTEGRITY, CallServer, Fault
from tests.support.rpc.remote_reader import (
    ACK,
    INFINITE,
    LOOKUP_PEEK_CURRENT,
    LOOKUP_RECEIVE_CURRENT,
    NACK,
    NO_TRANSACTION,
    PEEK_ACCESS,
    PEEK_CURRENT,
    PEEK_NEXT,
    Reader,
    body_of,
    format_of,
    served_remote_read,
    status_name,
)

ORDERS = r"DIRECT=OS:.\private$\orders"
LATE = f"{ORDERS};late"
SOON = f"{ORDERS};soon"
REJECTED = 0xC004


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_remote_read(qm)


@pytest.fixture
def reader(server: CallServer) -> Reader:
    return Reader(server.connect())


def transactional(qm: RunningQueueManager, *bodies: bytes) -> Queue:
    """A transactional queue with messages."""
    queue = qm.create(transactional=True)
    identifier = uuid4()
    transaction = qm.engine.transactions.create_transaction(identifier)
    for body in bodies:
        qm.send(queue, body, transaction)
    qm.done(qm.engine.transactions.transaction_commit(identifier))
    return queue


def begun(qm: RunningQueueManager) -> tuple[bytes, Transaction]:
    """A transaction that somebody has enlisted, and its identifier on the wire."""
    identifier = uuid4()
    return identifier.bytes_le, qm.engine.transactions.create_transaction(identifier, ALICE.sid)


def commit(qm: RunningQueueManager, identifier: bytes) -> None:
    qm.done(qm.engine.transactions.transaction_commit(UUID(bytes_le=identifier)))


def keys_of(queue: Queue) -> list[int]:
    return queue.message_position_list.page(None, 100)


# Moving


@pytest.mark.conformance("MQRR-op-10", "MQRR-op-11")
def test_a_message_moves_to_a_subqueue_and_on_and_back(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    key = qm.send(queue, b"one")
    source, late_source, soon_source = (reader.open(name) for name in (ORDERS, LATE, SOON))
    late, _ = reader.open_for_move(LATE)
    soon, _ = reader.open_for_move(SOON)
    back, _ = reader.open_for_move(ORDERS)
    for handle, context, name in (
        (source, late, "late"),
        (late_source, soon, "soon"),
        (soon_source, back, ""),
    ):
        assert reader.move(handle, context, key) == "MQ_OK"
        assert qm.bodies(queue.subqueue_collection[name] if name else queue) == [b"one"]
    response = reader.read(source, PEEK_CURRENT)
    assert body_of(response) == b"one"


@pytest.mark.conformance("MQRR-op-10")
def test_a_moved_message_is_there_after_a_restart(qm: RunningQueueManager, reader: Reader) -> None:
    key = qm.send(qm.create(), b"one")
    late, _ = reader.open_for_move(LATE)
    assert reader.move(reader.open(ORDERS), late, key) == "MQ_OK"
    qm.restart()
    queue = qm.find()
    assert qm.bodies(queue) == []
    assert qm.bodies(queue.subqueue_collection["late"]) == [b"one"]


@pytest.mark.conformance("MQRR-op-10", "MQRR-error-0xC000000D")
def test_unrelated_queues_do_not_exchange_messages(qm: RunningQueueManager, reader: Reader) -> None:
    key = qm.send(qm.create(), b"one")
    qm.create(r"private$\other")
    source = reader.open(ORDERS)
    for name in (ORDERS, r"DIRECT=OS:.\private$\other", r"DIRECT=OS:.\private$\other;late"):
        context, _ = reader.open_for_move(name)
        response = reader.move(source, context, key)
        assert response == NtStatus.STATUS_INVALID_PARAMETER.name
    assert qm.bodies(qm.find()) == [b"one"]


@pytest.mark.conformance("MQRR-op-10")
def test_a_message_that_is_not_there_cannot_be_moved(
    qm: RunningQueueManager, reader: Reader
) -> None:
    key = qm.send(qm.create(), b"one")
    late, _ = reader.open_for_move(LATE)
    source = reader.open(ORDERS)
    assert reader.move(source, late, key + 1) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    assert reader.move(source, late, key) == "MQ_OK"
    assert reader.move(source, late, key) == "MQ_ERROR_MESSAGE_NOT_FOUND"


@pytest.mark.conformance("MQRR-op-10")
def test_moving_a_message_that_is_being_read_is_refused(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    keys = [qm.send(queue, b"one"), qm.send(queue, b"two")]
    late, _ = reader.open_for_move(LATE)
    source = reader.open(ORDERS)
    reader.body(source, request_id=7)
    assert reader.move(reader.open(ORDERS), late, keys[0]) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    ending = reader.caller.send("R_EndReceive", phContext=source, dwAck=ACK, dwRequestId=7)
    fields = {"ullContextTo": late, "pTransactionId": XACTUOW(rgb=NO_TRANSACTION)}
    leaving = reader.caller.send("R_MoveMessage", phContextFrom=source, LookupId=keys[0], **fields)
    reader.caller.settle()
    assert ending.result().result == 0
    assert leaving.result().result == HResult.MQ_ERROR_MESSAGE_NOT_FOUND
    assert reader.move(source, late, keys[1]) == "MQ_OK"


@pytest.mark.conformance("MQRR-op-10")
def test_the_source_must_be_open_for_receiving(qm: RunningQueueManager, reader: Reader) -> None:
    key = qm.send(qm.create(), b"one")
    late, late_handle = reader.open_for_move(LATE)
    peeking = reader.open(ORDERS, PEEK_ACCESS)
    assert reader.move(peeking, late, key) == "STATUS_ACCESS_DENIED"
    assert reader.move(late_handle, late, key) == "STATUS_ACCESS_DENIED"


@pytest.mark.conformance("MQRR-op-10")
def test_a_move_context_is_good_for_its_group_and_identity(
    qm: RunningQueueManager, server: CallServer
) -> None:
    key = qm.send(qm.create(), b"one")
    caller = server.connect(ALICE)
    late, _ = Reader(caller).open_for_move(LATE)
    for stranger in (server.connect(ALICE), server.connect(BOB, group_id=caller.group_id)):
        source = Reader(stranger).open(ORDERS)
        assert Reader(stranger).move(source, late, key) == "MQ_ERROR_INVALID_HANDLE"
    friend = Reader(server.connect(ALICE, group_id=caller.group_id))
    source = friend.open(ORDERS)
    assert friend.move(source, late ^ 1, key) == "MQ_ERROR_INVALID_HANDLE"
    assert friend.move(source, 0, key) == "MQ_ERROR_INVALID_HANDLE"
    assert friend.move(source, late, key) == "MQ_OK"


@pytest.mark.conformance("MQRR-op-10")
def test_queues_that_are_gone_exchange_nothing(qm: RunningQueueManager, reader: Reader) -> None:
    queue = qm.create()
    late, _ = reader.open_for_move(LATE)
    source = reader.open(ORDERS)
    other = qm.create(r"private$\other")
    other_source = reader.open(other)
    qm.done(qm.engine.queues.delete_queue(queue))
    assert reader.move(source, late, 1) == "MQ_ERROR_QUEUE_DELETED"
    assert reader.move(other_source, late, 1) == "MQ_ERROR_INVALID_HANDLE"


@pytest.mark.conformance("MQRR-op-10")
def test_a_move_can_belong_to_a_transaction(qm: RunningQueueManager, reader: Reader) -> None:
    queue = transactional(qm, b"one", b"two")
    first, second = keys_of(queue)
    late, _ = reader.open_for_move(LATE)
    source = reader.open(ORDERS)
    identifier, _ = begun(qm)
    assert reader.move(source, late, first, identifier) == "MQ_OK"
    assert qm.bodies(queue) == [b"two"]
    assert qm.bodies(queue.subqueue_collection["late"]) == []
    locked = "MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"
    assert reader.move(source, late, first) == locked
    assert reader.move(source, late, first, identifier) == locked
    unknown = "MQ_ERROR_TRANSACTION_SEQUENCE"
    assert reader.move(source, late, second, uuid4().bytes_le) == unknown
    commit(qm, identifier)
    assert qm.bodies(queue.subqueue_collection["late"]) == [b"one"]
    assert reader.move(source, late, second) == "MQ_OK"


@pytest.mark.conformance("MQRR-op-10")
def test_a_plain_queue_takes_no_move_in_a_transaction(
    qm: RunningQueueManager, reader: Reader
) -> None:
    key = qm.send(qm.create(), b"one")
    late, _ = reader.open_for_move(LATE)
    identifier, _ = begun(qm)
    status = reader.move(reader.open(ORDERS), late, key, identifier)
    assert status == "MQ_ERROR_TRANSACTION_USAGE"


@pytest.mark.conformance("MQRR-op-10")
def test_whoever_holds_a_message_may_move_it(qm: RunningQueueManager, reader: Reader) -> None:
    queue = qm.create()
    key = qm.send(queue, b"one")
    late, _ = reader.open_for_move(LATE)
    source = reader.open(ORDERS)
    assert reader.body(source, request_id=7) == b"one"
    assert reader.move(source, late, key) == "MQ_OK"
    assert qm.bodies(queue.subqueue_collection["late"]) == [b"one"]
    ending = reader.caller.send("R_EndReceive", phContext=source, dwAck=ACK, dwRequestId=7)
    reader.caller.settle()
    assert ending.result().result == HResult.MQ_ERROR_INVALID_HANDLE
    assert qm.bodies(queue.subqueue_collection["late"]) == [b"one"]


# Transactions of a coordinator


@pytest.mark.conformance("MQRR-op-12", "MQRR-op-13", "MQRR-op-15")
def test_a_transaction_of_this_queue_manager_can_be_joined(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create(transactional=True)
    identifier, transaction = begun(qm)
    qm.send(queue, b"one", transaction)
    commit(qm, identifier)
    identifier, _ = begun(qm)
    joined = reader.status(
        "R_QMEnlistRemoteTransaction",
        pTransactionId=XACTUOW(rgb=identifier),
        cbPropagationToken=3,
        pbPropagationToken=b"abc",
        pQueueFormat=format_of(ORDERS),
    )
    assert joined == "MQ_OK"
    handle = reader.open(queue)
    assert reader.body(handle, request_id=7, transaction=identifier) == b"one"
    assert end_transactional(reader, handle, 7) == "MQ_OK"
    commit(qm, identifier)
    assert queue.message_count == 0


@pytest.mark.conformance("MQRR-op-12")
def test_nobody_can_enlist_a_distributed_transaction(
    qm: RunningQueueManager, server: CallServer
) -> None:
    reader = Reader(server.connect())
    fields = {
        "pTransactionId": XACTUOW(rgb=uuid4().bytes_le),
        "cbPropagationToken": 3,
        "pbPropagationToken": b"abc",
        "pQueueFormat": format_of(ORDERS),
    }
    enlist = "R_QMEnlistRemoteTransaction"
    assert reader.status(enlist, **fields) == "MQ_ERROR_TRANSACTION_ENLIST"
    assert qm.engine.queue_manager.transaction_collection == {}
    weak = server.connect(ALICE, LEVEL_INTEGRITY)
    with pytest.raises(Fault) as caught:
        weak.call(enlist, **fields)
    assert caught.value.status == FaultStatus.RPC_S_ACCESS_DENIED


@pytest.mark.conformance("MQRR-op-13")
def test_without_a_transaction_it_is_an_ordinary_read(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle = reader.open(queue)
    nothing: dict[str, Any] = {"transaction": NO_TRANSACTION, "request_id": 7}
    assert reader.body(handle, PEEK_CURRENT, **nothing) == b"one"
    assert reader.body(handle, **nothing) == b"one"
    assert end_transactional(reader, handle, 7) == "MQ_ERROR_INVALID_PARAMETER"
    assert reader.end(handle, 7) == "MQ_OK"


def end_transactional(
    reader: Reader, handle: bytes, request_id: int, acknowledgement: int = ACK
) -> str:
    return reader.status(
        "R_EndTransactionalReceive",
        phContext=handle,
        dwAck=acknowledgement,
        dwRequestId=request_id,
    )


@pytest.mark.conformance("MQRR-op-13")
def test_what_a_transactional_read_needs(qm: RunningQueueManager, reader: Reader) -> None:
    queue = transactional(qm, b"one")
    plain = qm.create(r"private$\plain")
    qm.send(plain, b"one")
    identifier, _ = begun(qm)
    handle, plain_handle = reader.open(queue), reader.open(plain)
    usage = HResult.MQ_ERROR_TRANSACTION_USAGE
    key = keys_of(queue)[0]
    for action, cursor, lookup in (
        (PEEK_CURRENT, 0, 0),
        (PEEK_NEXT, reader.cursor(handle), 0),
        (LOOKUP_PEEK_CURRENT, 0, key),
    ):
        response = reader.read(
            handle, action, cursor=cursor, lookup_identifier=lookup, transaction=identifier
        )
        assert response.result == usage
    assert reader.read(plain_handle, transaction=identifier).result == usage
    unknown = reader.read(handle, transaction=uuid4().bytes_le)
    assert unknown.result == HResult.MQ_ERROR_TRANSACTION_SEQUENCE
    no_cursor = reader.read(handle, cursor=99, transaction=identifier)
    assert no_cursor.result == NtStatus.STATUS_INVALID_HANDLE
    wrong = reader.read(handle, action=5, transaction=identifier)
    assert status_name(wrong.result) == "MQ_ERROR_INVALID_PARAMETER"
    assert qm.bodies(queue) == [b"one"]


@pytest.mark.conformance("MQRR-op-13", "MQRR-op-15", "MQRR-op-9")
def test_a_transactional_read_lasts_until_its_transaction_ends(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = transactional(qm, b"one", b"two")
    identifier, _ = begun(qm)
    handle = reader.open(queue)
    read: dict[str, Any] = {"transaction": identifier, "request_id": 7}
    assert reader.body(handle, **read) == b"one"
    assert reader.end(handle, 7) == "MQ_ERROR_INVALID_PARAMETER"
    assert end_transactional(reader, handle, 7) == "MQ_OK"
    lookup: dict[str, Any] = {"lookup_identifier": keys_of(queue)[0]}
    assert reader.body(handle, LOOKUP_RECEIVE_CURRENT, **lookup, **read) == b"two"
    assert end_transactional(reader, handle, 7) == "MQ_OK"
    assert queue.message_count == 2
    commit(qm, identifier)
    assert queue.message_count == 0


@pytest.mark.conformance("MQRR-op-15")
def test_a_transactional_read_that_failed_leaves_its_transaction(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = transactional(qm, b"one")
    identifier, transaction = begun(qm)
    handle = reader.open(queue)
    assert reader.body(handle, transaction=identifier, request_id=7) == b"one"
    assert end_transactional(reader, handle, 7, NACK) == "MQ_OK"
    assert qm.bodies(queue) == [b"one"]
    assert transaction.transactional_operation_collection == []


@pytest.mark.conformance("MQRR-op-15")
@pytest.mark.parametrize("early_end", ["refused", "closed", "timer"])
def test_a_read_of_a_transaction_that_has_ended_cannot_touch_the_read_of_another(
    qm: RunningQueueManager, reader: Reader, early_end: str
) -> None:
    queue = transactional(qm, b"one")
    first, _ = begun(qm)
    stale, handle = reader.open(queue), reader.open(queue)
    assert reader.body(stale, transaction=first, request_id=7) == b"one"
    qm.done(qm.engine.transactions.transaction_abort(UUID(bytes_le=first)))
    second, transaction = begun(qm)
    if early_end == "timer":
        qm.advance(PENDING_REQUEST_CLEANUP - 1000)
    assert reader.body(handle, transaction=second, request_id=8) == b"one"
    assert end_transactional(reader, handle, 8) == "MQ_OK"
    if early_end == "refused":
        ended = end_transactional(reader, stale, 7, NACK)
        assert ended == "MQ_ERROR_TRANSACTION_SEQUENCE"
    elif early_end == "closed":
        assert reader.close(stale) == "MQ_OK"
    else:
        qm.advance(1000)
    assert len(transaction.transactional_operation_collection) == 1
    commit(qm, second)
    assert qm.bodies(queue) == []


@pytest.mark.conformance("MQRR-op-10")
def test_a_move_in_a_transaction_ends_the_read_of_the_message(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = transactional(qm, b"one")
    identifier, _ = begun(qm)
    late, _ = reader.open_for_move(LATE)
    handle = reader.open(queue)
    (key,) = keys_of(queue)
    assert reader.body(handle, transaction=identifier, request_id=7) == b"one"
    assert reader.move(handle, late, key, identifier) == "MQ_OK"
    ended = reader.caller.send(
        "R_EndTransactionalReceive", phContext=handle, dwAck=NACK, dwRequestId=7
    )
    reader.caller.settle()
    assert ended.result().result == HResult.MQ_ERROR_INVALID_HANDLE
    commit(qm, identifier)
    assert qm.bodies(queue.subqueue_collection["late"]) == [b"one"]


@pytest.mark.conformance("MQRR-op-15")
def test_ending_a_transactional_read_needs_a_pending_request(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = transactional(qm, b"one")
    identifier, _ = begun(qm)
    handle = reader.open(queue)
    assert end_transactional(reader, handle, 7) == "MQ_ERROR_INVALID_HANDLE"
    reader.body(handle, transaction=identifier, request_id=7)
    assert end_transactional(reader, handle, 8) == "MQ_ERROR_INVALID_PARAMETER"
    commit(qm, identifier)
    assert end_transactional(reader, handle, 7) == "MQ_ERROR_MESSAGE_NOT_FOUND"


@pytest.mark.conformance(
    "MQRR-op-3", "MQRR-rundown-queue_context_handle", "MQRR-timer-pending_request_cleanup"
)
@pytest.mark.parametrize("end", ["close", "lose", "clean up"])
def test_a_transactional_read_that_is_never_ended_leaves_its_transaction(
    qm: RunningQueueManager, reader: Reader, end: str
) -> None:
    queue = transactional(qm, b"one")
    identifier, transaction = begun(qm)
    handle = reader.open(queue)
    assert reader.body(handle, transaction=identifier) == b"one"
    if end == "close":
        assert reader.close(handle) == "MQ_OK"
    elif end == "lose":
        reader.caller.lose()
    else:
        qm.advance(PENDING_REQUEST_CLEANUP)
    assert qm.bodies(queue) == [b"one"]
    assert transaction.transactional_operation_collection == []


@pytest.mark.conformance("MQRR-op-13", "MQRR-op-8")
def test_a_waiting_transactional_read_can_be_cancelled(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = transactional(qm)
    identifier, _ = begun(qm)
    handle = reader.open(queue)
    waiting = reader.start(handle, timeout=INFINITE, transaction=identifier, request_id=7)
    assert reader.cancel(handle, 7) == "MQ_OK"
    assert waiting.result().result == HResult.MQ_ERROR_OPERATION_CANCELLED


# Rejecting


def set_class(reader: Reader, handle: bytes, key: int, message_class: int = REJECTED) -> str:
    fields = {"phContext": handle, "LookupId": key, "usClass": message_class}
    return reader.status("R_SetUserAcknowledgementClass", **fields)


@pytest.mark.conformance("MQRR-op-14")
def test_a_message_in_a_transaction_can_be_rejected(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = transactional(qm, b"one")
    (key,) = keys_of(queue)
    identifier, transaction = begun(qm)
    handle = reader.open(queue)
    reader.body(handle, transaction=identifier, request_id=7)
    assert end_transactional(reader, handle, 7) == "MQ_OK"
    (operation,) = transaction.transactional_operation_collection
    received = operation.dequeue_reason
    assert set_class(reader, handle, key, 0) == "MQ_OK"
    assert operation.dequeue_reason == received
    assert set_class(reader, handle, key) == "MQ_OK"
    assert operation.dequeue_reason == REJECTED


@pytest.mark.conformance("MQRR-op-14")
def test_what_cannot_be_rejected(qm: RunningQueueManager, reader: Reader) -> None:
    queue = transactional(qm, b"one")
    (key,) = keys_of(queue)
    handle, peeking = reader.open(queue), reader.open(queue, PEEK_ACCESS)
    assert set_class(reader, handle, key + 1) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    assert set_class(reader, handle, key) == "MQ_ERROR_TRANSACTION_USAGE"
    assert set_class(reader, handle, key, 0x4000) == "MQ_ERROR_INVALID_PARAMETER"
    assert set_class(reader, peeking, key) == "STATUS_ACCESS_DENIED"


# Somebody else's transaction


def test_nobody_moves_a_message_in_somebody_elses_transaction(
    qm: RunningQueueManager, server: CallServer
) -> None:
    """Its identifier is unknown to others, also where they know it (G87)."""
    queue = transactional(qm, b"one")
    identifier, transaction = begun(qm)
    thief, alice = Reader(server.connect(BOB)), Reader(server.connect(ALICE))
    context, _ = thief.open_for_move(LATE)
    (key,) = keys_of(queue)
    unknown = thief.move(thief.open(queue), context, key, uuid4().bytes_le)
    assert thief.move(thief.open(queue), context, key, identifier) == unknown != "MQ_OK"
    assert transaction.transactional_operation_collection == []
    assert keys_of(queue) == [key]
    own, _ = alice.open_for_move(LATE)
    assert alice.move(alice.open(queue), own, key, identifier) == "MQ_OK"


def test_nobody_learns_whose_transaction_holds_a_message(
    qm: RunningQueueManager, server: CallServer
) -> None:
    """The holder's identifier and an unknown one are refused alike (G87)."""
    queue = transactional(qm, b"one")
    identifier, _ = begun(qm)
    thief, alice = Reader(server.connect(BOB)), Reader(server.connect(ALICE))
    (key,) = keys_of(queue)
    handle = alice.open(queue)
    assert alice.body(handle, request_id=7, transaction=identifier) == b"one"
    assert end_transactional(alice, handle, 7) == "MQ_OK"
    context, _ = thief.open_for_move(LATE)
    source = thief.open(queue)
    unknown = thief.move(source, context, key, uuid4().bytes_le)
    assert unknown == "MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION"
    assert thief.move(source, context, key, identifier) == unknown
    own, _ = alice.open_for_move(LATE)
    assert alice.move(handle, own, key, identifier) == "MQ_OK"


def test_nobody_rejects_a_message_in_somebody_elses_transaction(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = transactional(qm, b"one")
    identifier, transaction = begun(qm)
    thief, alice = Reader(server.connect(BOB)), Reader(server.connect(ALICE))
    handle, stolen = alice.open(queue), thief.open(queue)
    (key,) = keys_of(queue)
    assert alice.body(handle, request_id=7, transaction=identifier) == b"one"
    assert end_transactional(alice, handle, 7) == "MQ_OK"
    rejecting: dict[str, Any] = {"LookupId": key, "usClass": REJECTED}
    operation = "R_SetUserAcknowledgementClass"
    refused = thief.status(operation, phContext=stolen, **rejecting)
    assert refused == "MQ_ERROR_TRANSACTION_USAGE"
    (taken,) = transaction.transactional_operation_collection
    assert taken.dequeue_reason != REJECTED
    assert alice.status(operation, phContext=handle, **rejecting) == "MQ_OK"
    assert taken.dequeue_reason == REJECTED
