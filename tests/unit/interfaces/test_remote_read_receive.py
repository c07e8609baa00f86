"""Reading by RemoteRead ([MS-MQRR] 3.1.4.4 to .9, 3.1.5.1), with G32 to G34, G52, G61, G62."""

import pytest

from rpcqm.base.errors import FaultStatus, HResult, MQError, NtStatus
from rpcqm.interfaces._pending import MAXIMUM_ENTRIES, PendingRequestTable
from rpcqm.interfaces.remote_read import PENDING_REQUEST_CLEANUP
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import CallServer, Fault
from tests.support.rpc.remote_reader import (
    ACK,
    INFINITE,
    LOOKUP_PEEK_CURRENT,
    LOOKUP_PEEK_NEXT,
    LOOKUP_PEEK_PREV,
    LOOKUP_RECEIVE_CURRENT,
    LOOKUP_RECEIVE_NEXT,
    LOOKUP_RECEIVE_PREV,
    NACK,
    PEEK_ACCESS,
    PEEK_CURRENT,
    PEEK_NEXT,
    RECEIVE,
    SEQUENCE,
    Reader,
    body_of,
    served_remote_read,
    status_name,
)

ALL_ONES = 0xFFFFFFFFFFFFFFFF


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_remote_read(qm)


@pytest.fixture
def reader(server: CallServer) -> Reader:
    return Reader(server.connect())


# Receiving in two phases


@pytest.mark.conformance("MQRR-op-7", "MQRR-op-9", "MQRR-action-receive")
def test_an_acknowledged_message_is_gone_for_good(qm: RunningQueueManager, reader: Reader) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    qm.send(queue, b"two")
    handle = reader.open(queue)
    assert reader.body(handle, request_id=7) == b"one"
    assert qm.bodies(queue) == [b"two"]
    assert reader.end(handle, 7, ACK) == "MQ_OK"
    qm.restart()
    assert qm.bodies(qm.find()) == [b"two"]


@pytest.mark.conformance("MQRR-op-9")
def test_a_message_that_was_not_received_well_is_given_back(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle = reader.open(queue)
    reader.body(handle, request_id=7)
    assert reader.end(handle, 7, NACK) == "MQ_OK"
    assert qm.bodies(queue) == [b"one"]
    assert reader.receive(handle) == b"one"


def test_an_unacknowledged_message_is_there_after_a_restart(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    reader.body(reader.open(queue))
    qm.restart()
    assert qm.bodies(qm.find()) == [b"one"]


@pytest.mark.conformance("MQRR-op-9", "MQRR-element-PendingRequestEntry")
def test_ending_needs_a_pending_request(qm: RunningQueueManager, reader: Reader) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle, other = reader.open(queue), reader.open(queue)
    assert reader.end(handle, 7) == "MQ_ERROR_INVALID_HANDLE"
    reader.body(handle, request_id=7)
    assert reader.end(handle, 8) == "MQ_ERROR_INVALID_PARAMETER"
    assert reader.end(other, 7) == "MQ_ERROR_INVALID_HANDLE"
    assert reader.end(handle, 7) == "MQ_OK"
    assert reader.end(handle, 7) == "MQ_ERROR_INVALID_HANDLE"


@pytest.mark.conformance("MQRR-op-9", "MQRR-rule-3.1.4")
@pytest.mark.parametrize("acknowledgement", [0, 3])
def test_an_acknowledgement_is_one_or_two(
    qm: RunningQueueManager, reader: Reader, acknowledgement: int
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle = reader.open(queue)
    reader.body(handle, request_id=7)
    interface = reader.caller.server.interfaces["remoteread"].interface
    operation = interface.operation("R_EndReceive")
    stub = handle + acknowledgement.to_bytes(4, "little") + (7).to_bytes(4, "little")
    call = reader.caller.send_stub(interface, operation, stub)
    assert call.fault == FaultStatus.RPC_X_BAD_STUB_DATA
    assert reader.end(handle, 7) == "MQ_OK"


@pytest.mark.conformance("MQRR-op-9")
def test_a_message_that_was_purged_meanwhile_cannot_be_given_back(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle = reader.open(queue)
    reader.body(handle, request_id=7)
    assert reader.status("R_PurgeQueue", phContext=handle) == "MQ_OK"
    assert reader.end(handle, 7, NACK) == "MQ_OK"
    assert queue.message_count == 0


@pytest.mark.conformance("MQRR-op-7")
def test_one_message_goes_to_one_reader(qm: RunningQueueManager, reader: Reader) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    first, second = reader.open(queue), reader.open(queue)
    assert reader.body(first) == b"one"
    assert reader.body(second) == b"MQ_ERROR_IO_TIMEOUT"


# Peeking


@pytest.mark.conformance("MQRR-op-7", "MQRR-action-peek_current")
def test_a_peek_leaves_the_message(qm: RunningQueueManager, reader: Reader) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle = reader.open(queue, PEEK_ACCESS)
    for _ in range(2):
        assert reader.body(handle, PEEK_CURRENT, request_id=7) == b"one"
    assert reader.end(handle, 7) == "MQ_ERROR_INVALID_HANDLE"
    assert reader.body(handle, RECEIVE) == b"MQ_ERROR_ACCESS_DENIED"


# What is told of a message (G33)


@pytest.mark.conformance("MQRR-op-7")
@pytest.mark.parametrize("action", [RECEIVE, PEEK_CURRENT])
def test_arrival_time_and_sequence_are_told_of_every_read(
    qm: RunningQueueManager, reader: Reader, action: int
) -> None:
    queue = qm.create()
    qm.advance(7_000)
    key = qm.send(queue, b"one", priority=0)
    response = reader.read(reader.open(queue), action)
    assert response.pdwArriveTime == qm.clock.now() // 1000
    assert response.pSequenceId == key & SEQUENCE
    assert key >> 56 == 7


# Lookup identifiers


def three(qm: RunningQueueManager) -> list[int]:
    queue = qm.create()
    return [qm.send(queue, body) for body in (b"one", b"two", b"three")]


@pytest.mark.parametrize(
    ("action", "bodies"),
    [
        pytest.param(action, bodies, marks=pytest.mark.conformance(f"MQRR-action-{point}"))
        for action, bodies, point in (
            (LOOKUP_PEEK_CURRENT, [b"one", b"two", b"three"], "lookup_peek_current"),
            (LOOKUP_PEEK_NEXT, [b"two", b"three", None], "lookup_peek_next"),
            (LOOKUP_PEEK_PREV, [None, b"one", b"two"], "lookup_peek_prev"),
            (LOOKUP_RECEIVE_CURRENT, [b"one", b"two", b"three"], "lookup_receive_current"),
            (LOOKUP_RECEIVE_NEXT, [b"two", b"three", None], "lookup_receive_next"),
            (LOOKUP_RECEIVE_PREV, [None, b"one", b"two"], "lookup_receive_prev"),
        )
    ],
)
def test_a_message_is_found_by_its_lookup_identifier(
    qm: RunningQueueManager, reader: Reader, action: int, bodies: list[bytes | None]
) -> None:
    keys = three(qm)
    handle = reader.open(qm.find())
    for key, body in zip(keys, bodies, strict=True):
        found = reader.body(handle, action, lookup_identifier=key, request_id=7)
        assert found == (body or b"MQ_ERROR_MESSAGE_NOT_FOUND")
        receives = action & 0x20 and body is not None
        assert reader.end(handle, 7, NACK) == ("MQ_OK" if receives else "MQ_ERROR_INVALID_HANDLE")


@pytest.mark.conformance("MQRR-op-7", "MQRR-op-9")
def test_a_receive_by_lookup_identifier_is_ended_too(
    qm: RunningQueueManager, reader: Reader
) -> None:
    keys = three(qm)
    handle = reader.open(qm.find())
    lookup = {"lookup_identifier": keys[1], "request_id": 7}
    assert reader.body(handle, LOOKUP_RECEIVE_CURRENT, **lookup) == b"two"
    assert qm.bodies(qm.find()) == [b"one", b"three"]
    assert reader.end(handle, 7) == "MQ_OK"
    assert qm.bodies(qm.find()) == [b"one", b"three"]
    assert reader.body(handle, LOOKUP_PEEK_CURRENT, **lookup) == b"MQ_ERROR_MESSAGE_NOT_FOUND"
    assert reader.body(handle, LOOKUP_PEEK_NEXT, **lookup) == b"three"


@pytest.mark.conformance("MQRR-action-lookup_receive_next", "MQRR-action-lookup_receive_prev")
def test_before_everything_and_behind_everything(qm: RunningQueueManager, reader: Reader) -> None:
    three(qm)
    handle = reader.open(qm.find())
    for action, key, body in (
        (LOOKUP_PEEK_NEXT, 0, b"one"),
        (LOOKUP_PEEK_PREV, ALL_ONES, b"three"),
        (LOOKUP_RECEIVE_NEXT, 0, b"one"),
        (LOOKUP_RECEIVE_PREV, ALL_ONES, b"three"),
        (LOOKUP_PEEK_NEXT, ALL_ONES, b"MQ_ERROR_MESSAGE_NOT_FOUND"),
    ):
        assert reader.body(handle, action, lookup_identifier=key) == body


@pytest.mark.conformance("MQRR-action-lookup_receive_current")
def test_a_message_that_somebody_holds_cannot_be_looked_up(
    qm: RunningQueueManager, reader: Reader
) -> None:
    keys = three(qm)
    handle, other = reader.open(qm.find()), reader.open(qm.find())
    assert reader.body(handle) == b"one"
    lookup = {"lookup_identifier": keys[0]}
    not_found = b"MQ_ERROR_MESSAGE_NOT_FOUND"
    assert reader.body(other, LOOKUP_RECEIVE_CURRENT, **lookup) == not_found
    assert reader.body(other, LOOKUP_PEEK_CURRENT, **lookup) == b"MQ_ERROR_TRANSACTION_USAGE"


# Parameters


@pytest.mark.conformance("MQRR-op-7")
@pytest.mark.parametrize(
    "arguments",
    [
        {"action": 1},
        {"action": 0x40000013},
        {"action": RECEIVE, "lookup_identifier": 1},
        {"action": PEEK_CURRENT, "lookup_identifier": 1},
        {"action": PEEK_NEXT},
        {"action": PEEK_NEXT, "cursor": 5, "lookup_identifier": 1},
        *(
            {"action": action, "lookup_identifier": 0}
            for action in (
                LOOKUP_PEEK_CURRENT,
                LOOKUP_PEEK_PREV,
                LOOKUP_RECEIVE_CURRENT,
                LOOKUP_RECEIVE_PREV,
            )
        ),
        {"action": LOOKUP_PEEK_NEXT, "lookup_identifier": 1, "timeout": 1},
        {"action": LOOKUP_RECEIVE_CURRENT, "lookup_identifier": 1, "cursor": 5},
    ],
)
def test_values_that_do_not_go_together_are_refused(
    qm: RunningQueueManager, reader: Reader, arguments: dict[str, int]
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    response = reader.read(reader.open(queue), **arguments)
    assert status_name(response.result) == "MQ_ERROR_INVALID_PARAMETER"
    assert response.ppPacketSections is None
    assert qm.bodies(queue) == [b"one"]


@pytest.mark.conformance("MQRR-op-7", "MQRR-element-PendingRequestEntry")
def test_a_request_id_is_used_once_at_a_time(qm: RunningQueueManager, reader: Reader) -> None:
    queue = qm.create()
    handle = reader.open(queue)
    in_use = HResult.MQ_ERROR_INVALID_PARAMETER
    waiting = reader.start(handle, timeout=1000, request_id=7)
    peeking = reader.start(handle, PEEK_CURRENT, timeout=1000, request_id=8)
    for request_id in (7, 8):
        for action in (RECEIVE, PEEK_CURRENT):
            response = reader.read(handle, action, request_id=request_id)
            assert response.result == in_use
    qm.send(queue, b"one")
    reader.caller.protocol()
    assert body_of(waiting.result()) == body_of(peeking.result()) == b"one"
    assert reader.read(handle, request_id=7).result == in_use
    assert reader.body(handle, PEEK_CURRENT, request_id=8) == b"MQ_ERROR_IO_TIMEOUT"
    assert reader.end(handle, 7) == "MQ_OK"
    assert reader.body(handle, request_id=7) == b"MQ_ERROR_IO_TIMEOUT"


def test_a_failed_receive_leaves_nothing_pending(qm: RunningQueueManager, reader: Reader) -> None:
    handle = reader.open(qm.create())
    assert reader.body(handle, request_id=7) == b"MQ_ERROR_IO_TIMEOUT"
    assert reader.end(handle, 7) == "MQ_ERROR_INVALID_HANDLE"
    waiting = reader.start(handle, timeout=1000, request_id=7)
    qm.advance(1000)
    reader.caller.settle()
    assert waiting.result().result == HResult.MQ_ERROR_IO_TIMEOUT
    assert reader.end(handle, 7) == "MQ_ERROR_INVALID_HANDLE"


def test_pending_requests_are_bounded(
    qm: RunningQueueManager, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rpcqm.interfaces._pending.MAXIMUM_ENTRIES", 2)
    queue = qm.create()
    handle = reader.open(queue)
    reader.start(handle, timeout=1000)
    reader.start(handle, PEEK_CURRENT, timeout=1000)
    assert reader.body(handle) == b"MQ_ERROR_INSUFFICIENT_RESOURCES"
    assert reader.body(handle, PEEK_CURRENT) == b"MQ_ERROR_INSUFFICIENT_RESOURCES"


@pytest.mark.bound("rpc.pending_reads")
def test_so_many_requests_may_be_pending_and_no_more() -> None:
    table = PendingRequestTable()
    for number in range(0, MAXIMUM_ENTRIES, 2):
        table.begin_receive(number, None)
        table.require_free(number + 1)
        table.begin_peek(number + 1)
    with pytest.raises(MQError) as refused:
        table.require_free(MAXIMUM_ENTRIES)
    assert refused.value.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES


# Waiting


@pytest.mark.conformance("MQRR-op-7", "MQRR-timer-rpc_call_timeout")
@pytest.mark.parametrize("action", [RECEIVE, PEEK_CURRENT])
def test_a_read_waits_as_long_as_it_says(
    qm: RunningQueueManager, reader: Reader, action: int
) -> None:
    queue = qm.create()
    handle = reader.open(queue)
    waiting = reader.start(handle, action, timeout=1500)
    qm.advance(1499)
    reader.caller.settle()
    assert not waiting.answered
    qm.advance(1)
    reader.caller.settle()
    assert waiting.result().result == HResult.MQ_ERROR_IO_TIMEOUT
    patient = reader.start(handle, action, timeout=INFINITE)
    qm.advance(400_000)
    reader.caller.settle()
    assert not patient.answered
    qm.send(queue, b"late")
    reader.caller.settle()
    assert body_of(patient.result()) == b"late"


@pytest.mark.conformance("MQRR-timer-rpc_call_timeout")
def test_opening_does_not_wait_for_anything(qm: RunningQueueManager, reader: Reader) -> None:
    queue = qm.create()
    fields = reader._opening(f"DIRECT=OS:{queue.pathname};late", 1, 0, 1)
    assert reader.caller.send("R_OpenQueue", **fields).answered
    move = fields | {"dwAccess": 4}
    assert reader.caller.send("R_OpenQueueForMove", **move).answered


@pytest.mark.conformance("MQRR-op-8", "MQRR-packet-QUEUE_CONTEXT_HANDLE_NOSERIALIZE")
def test_a_waiting_read_is_cancelled_by_its_request_id(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    handle, other = reader.open(queue), reader.open(queue)
    reads = {
        (each, request_id): reader.start(each, action, timeout=INFINITE, request_id=request_id)
        for each in (handle, other)
        for action, request_id in ((RECEIVE, 7), (PEEK_CURRENT, 8))
    }
    assert reader.cancel(handle, 9) == "STATUS_NOT_FOUND"
    for request_id in (7, 8):
        assert reader.cancel(handle, request_id) == "MQ_OK"
        cancelled = reads.pop((handle, request_id)).result()
        assert cancelled.result == HResult.MQ_ERROR_OPERATION_CANCELLED
        assert reader.cancel(handle, request_id) == "STATUS_NOT_FOUND"
    assert not any(read.answered for read in reads.values())
    qm.send(queue, b"one")
    reader.caller.protocol()
    assert {body_of(read.result()) for read in reads.values()} == {b"one"}


@pytest.mark.conformance("MQRR-op-8")
def test_a_read_that_has_a_message_cannot_be_cancelled(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle = reader.open(queue)
    reader.body(handle, request_id=7)
    assert reader.cancel(handle, 7) == "STATUS_NOT_FOUND"
    assert reader.end(handle, 7) == "MQ_OK"


@pytest.mark.conformance("MQRR-op-9")
def test_ending_a_read_that_still_waits_fails_and_lets_it_wait(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    handle = reader.open(queue)
    waiting = reader.start(handle, timeout=INFINITE, request_id=7)
    assert reader.end(handle, 7) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    qm.send(queue, b"one")
    reader.caller.protocol()
    assert body_of(waiting.result()) == b"one"
    assert reader.end(handle, 7) == "MQ_OK"
    assert queue.message_count == 0


# Clients that go


def test_a_client_that_gives_up_waiting_takes_nothing(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    handle = reader.open(queue)
    receiving = reader.start(handle, timeout=INFINITE, request_id=7)
    peeking = reader.start(handle, PEEK_CURRENT, timeout=INFINITE, request_id=8)
    reader.caller.orphan(receiving)
    reader.caller.orphan(peeking)
    assert queue.waiting_receives == queue.waiting_peeks == {}
    qm.send(queue, b"one")
    assert reader.body(handle, request_id=7) == b"one"
    assert reader.body(handle, PEEK_CURRENT, request_id=8) == b"MQ_ERROR_IO_TIMEOUT"


@pytest.mark.conformance("MQRR-op-7", "MQRR-element-PendingRequestEntry")
def test_a_message_that_was_not_delivered_is_offered_again(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create()
    reader = Reader(server.connect())
    other = Reader(server.connect(group_id=reader.caller.group_id))
    handle = reader.open(queue)
    receiving = reader.start(handle, timeout=INFINITE)
    next_in_line = other.start(handle, timeout=INFINITE, request_id=8)
    qm.send(queue, b"one")
    assert not receiving.answered
    reader.caller.lose(delivered=False)
    other.caller.settle()
    assert body_of(next_in_line.result()) == b"one"


@pytest.mark.conformance("MQRR-timer-pending_request_cleanup", "MQRR-element-PendingRequestEntry")
def test_an_abandoned_read_is_given_back_after_five_minutes(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    handle = reader.open(queue)
    waiting = reader.start(handle, timeout=INFINITE, request_id=7)
    qm.advance(2 * PENDING_REQUEST_CLEANUP)
    qm.send(queue, b"one")
    reader.caller.protocol()
    assert body_of(waiting.result()) == b"one"
    qm.advance(5 * 60 * 1000 - 1)
    assert qm.bodies(queue) == []
    qm.advance(1)
    assert qm.bodies(queue) == [b"one"]
    assert reader.end(handle, 7) == "MQ_ERROR_INVALID_HANDLE"
    assert reader.receive(handle) == b"one"


@pytest.mark.conformance("MQRR-timer-pending_request_cleanup")
def test_the_clean_up_leaves_what_was_ended(qm: RunningQueueManager, reader: Reader) -> None:
    idle = len(qm.clock.timers)
    queue = qm.create()
    for body in (b"one", b"two"):
        qm.send(queue, body)
    handle = reader.open(queue)
    assert reader.receive(handle) == b"one"
    reader.body(handle, request_id=8)
    qm.done(qm.engine.queues.delete_queue(queue))
    qm.advance(PENDING_REQUEST_CLEANUP)
    assert len(qm.clock.timers) == idle


# Cursors


@pytest.mark.conformance("MQRR-op-4", "MQRR-action-peek_next", "MQRR-action-peek_current")
def test_a_cursor_walks_through_the_queue(qm: RunningQueueManager, reader: Reader) -> None:
    three(qm)
    handle = reader.open(qm.find())
    cursor = reader.cursor(handle)
    steps = [
        (PEEK_NEXT, b"MQ_ERROR_ILLEGAL_CURSOR_ACTION"),
        (PEEK_CURRENT, b"one"),
        (PEEK_CURRENT, b"one"),
        (PEEK_NEXT, b"two"),
        (RECEIVE, b"two"),
        (PEEK_CURRENT, b"three"),
        (PEEK_NEXT, b"MQ_ERROR_IO_TIMEOUT"),
    ]
    for action, body in steps:
        assert reader.body(handle, action, cursor=cursor) == body


@pytest.mark.conformance("MQRR-op-5", "MQRR-error-0xC0000008")
def test_a_closed_or_unknown_cursor_is_an_invalid_handle(
    qm: RunningQueueManager, reader: Reader
) -> None:
    three(qm)
    handle, other = reader.open(qm.find()), reader.open(qm.find())
    cursor = reader.cursor(handle)
    for wrong_handle, wrong_cursor in ((handle, cursor ^ 1), (other, cursor)):
        response = reader.read(wrong_handle, PEEK_CURRENT, cursor=wrong_cursor)
        assert response.result == NtStatus.STATUS_INVALID_HANDLE
        close = {"phContext": wrong_handle, "hCursor": wrong_cursor}
        assert reader.status("R_CloseCursor", **close) == "MQ_ERROR_INVALID_HANDLE"
    assert reader.status("R_CloseCursor", phContext=handle, hCursor=cursor) == "MQ_OK"
    response = reader.read(handle, PEEK_CURRENT, cursor=cursor)
    assert response.result == NtStatus.STATUS_INVALID_HANDLE
    assert reader.status("R_CloseCursor", phContext=handle, hCursor=cursor) != "MQ_OK"


@pytest.mark.conformance("MQRR-op-5")
def test_closing_a_cursor_ends_the_read_that_waits_with_it(
    qm: RunningQueueManager, reader: Reader
) -> None:
    handle = reader.open(qm.create())
    cursor = reader.cursor(handle)
    waiting = reader.start(handle, cursor=cursor, timeout=INFINITE)
    assert reader.status("R_CloseCursor", phContext=handle, hCursor=cursor) == "MQ_OK"
    assert waiting.result().result == HResult.MQ_ERROR_OPERATION_CANCELLED


# Purging


@pytest.mark.conformance("MQRR-op-6")
def test_a_purged_queue_is_empty_for_good(qm: RunningQueueManager, reader: Reader) -> None:
    three(qm)
    handle = reader.open(qm.find())
    call = reader.caller.send("R_PurgeQueue", phContext=handle)
    assert not call.answered
    reader.caller.settle()
    assert call.result().result == 0
    qm.restart()
    assert qm.bodies(qm.find()) == []


@pytest.mark.conformance("MQRR-op-6", "MQRR-error-0xC0000022")
def test_only_who_opened_for_receiving_purges(qm: RunningQueueManager, reader: Reader) -> None:
    three(qm)
    peeking = reader.open(qm.find(), PEEK_ACCESS)
    _, moving = reader.open_for_move(qm.find())
    for handle in (peeking, moving):
        response = reader.caller.call("R_PurgeQueue", phContext=handle)
        assert response.result == NtStatus.STATUS_ACCESS_DENIED
    assert len(qm.bodies(qm.find())) == 3


def test_a_null_handle_is_a_mismatch(reader: Reader) -> None:
    for operation in ("R_PurgeQueue", "R_CreateCursor"):
        with pytest.raises(Fault) as caught:
            reader.caller.call(operation, phContext=bytes(20))
        assert caught.value.status == FaultStatus.nca_s_fault_context_mismatch
