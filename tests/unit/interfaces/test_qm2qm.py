"""Reading for others by qm2qm ([MS-MQQP] 3.1), with G12, G27, G34, G42, G43."""

from dataclasses import replace

import pytest

from rpcqm.adm.enums import RemoteReadState
from rpcqm.adm.message import NEVER, Message
from rpcqm.base.errors import FaultStatus, HResult, NtStatus
from rpcqm.codec.interface import TransferSyntax
from rpcqm.codec.names.format_name import FormatName, parse_format_names
from rpcqm.codec.packet.base import BaseHeader
from rpcqm.codec.packet.message import (
    MessageAttributes,
    PacketMessage,
    build_user_message,
    read_attributes,
)
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.codec.types.qm2qm import REMOTEREADDESC2
from rpcqm.rpc.limits import Limits
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE, BOB, CallServer, Fault
from tests.support.rpc.qm2qm_reader import Qm2QmReader, body_or_status, description_in, served_qm2qm
from tests.support.rpc.remote_reader import (
    ACK,
    INFINITE,
    NACK,
    NULL_HANDLE,
    PEEK_ACCESS,
    PEEK_CURRENT,
    PEEK_NEXT,
    RECEIVE,
    SEQUENCE,
)

ALL_ONES = 0xFFFFFFFFFFFFFFFF
CANCELLED = HResult.MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT
INVALID_PARAMETER = b"MQ_ERROR_INVALID_PARAMETER"


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_qm2qm(qm)


@pytest.fixture
def reader(server: CallServer) -> Qm2QmReader:
    return Qm2QmReader(server.connect())


# About the server


@pytest.mark.conformance("MQQP-op-7")
def test_the_ports_of_the_interfaces_are_told(reader: Qm2QmReader) -> None:
    ports = [reader.caller.call("RemoteQMGetQMQMServerPort", dwPortType=n).result for n in range(4)]
    assert ports == [2103, 2105, 0, 0]


@pytest.mark.conformance("MQQP-op-8")
def test_the_version_is_one_that_has_every_method(reader: Qm2QmReader) -> None:
    version = reader.caller.call("RemoteQmGetVersion")
    assert (version.pMajor, version.pMinor) == (6, 1)
    assert version.pBuildNumber >= 6531


# Opening and closing


@pytest.mark.conformance("MQQP-op-2", "MQQP-element-OpenQueueEntry")
def test_a_queue_opened_through_qmcomm_is_taken_over(
    qm: RunningQueueManager, reader: Qm2QmReader
) -> None:
    queue = qm.create()
    opened = reader.open_by_qmcomm(queue)
    adopted = reader.adopt(opened.phQueue, hQueue=12345)
    assert adopted.result == 0
    assert adopted.phContext != NULL_HANDLE
    (descriptor,) = queue.open_queue_descriptor_collection.values()
    assert descriptor.remote_read_state is RemoteReadState.READY_FOR_READ
    reader.caller.call("R_QMCloseRemoteQueueContext", pphContext=opened.pphContext)
    assert queue.open_queue_descriptor_collection
    assert reader.close(adopted.phContext) == "MQ_OK"
    assert not queue.open_queue_descriptor_collection


@pytest.mark.conformance("MQQP-op-2")
def test_only_an_open_queue_can_be_taken_over_and_only_once(
    qm: RunningQueueManager, reader: Qm2QmReader
) -> None:
    number = reader.open_by_qmcomm(qm.create()).phQueue
    refused = HResult.MQ_ERROR_INVALID_PARAMETER
    assert reader.adopt(number ^ 1).result == refused
    assert reader.adopt(number, pQueue=0).result == refused
    assert reader.adopt(number, dwpContext=0).result == refused
    assert reader.adopt(number, dwpContext=number ^ 1).result == refused
    assert reader.adopt(number).result == 0
    assert reader.adopt(number).result == refused


def test_a_queue_that_its_opener_has_closed_cannot_be_taken_over(
    qm: RunningQueueManager, reader: Qm2QmReader
) -> None:
    opened = reader.open_by_qmcomm(qm.create())
    reader.caller.call("R_QMCloseRemoteQueueContext", pphContext=opened.pphContext)
    assert reader.adopt(opened.phQueue).result == HResult.MQ_ERROR_INVALID_PARAMETER


def test_the_supporting_server_takes_over_what_its_client_has_opened(
    qm: RunningQueueManager, server: CallServer
) -> None:
    """The client opens the queue and makes cursors, the server reads ([MS-MQMP] 3.2.4.7)."""
    queue = qm.create()
    qm.send(queue, b"one")
    client, supporting = Qm2QmReader(server.connect(ALICE)), Qm2QmReader(server.connect(BOB))
    opened = client.open_by_qmcomm(queue)
    assert supporting.adopt(opened.phQueue).result == 0
    client.caller.lose()
    assert body_or_status(supporting.read(opened.phQueue, PEEK_CURRENT)) == b"one"


@pytest.mark.conformance("MQQP-element-OpenQueueEntry")
def test_a_number_is_only_good_for_who_took_it_over(
    qm: RunningQueueManager, server: CallServer, reader: Qm2QmReader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    number, _ = reader.open(queue)
    cursor = reader.cursor(number)
    bob = Qm2QmReader(server.connect(BOB))
    assert body_or_status(bob.read(number)) == INVALID_PARAMETER
    assert bob.cancel(number, 1) == "MQ_ERROR_INVALID_HANDLE"
    closed = bob.status("RemoteQMCloseCursor", hQueue=number, hCursor=cursor)
    assert closed == "MQ_ERROR_INVALID_HANDLE"
    with pytest.raises(Fault) as fault:
        bob.caller.call("RemoteQMPurgeQueue", hQueue=number)
    assert fault.value.status == HResult.MQ_ERROR_INVALID_HANDLE
    assert qm.bodies(queue) == [b"one"]


@pytest.mark.conformance("MQQP-op-3")
def test_closing_gives_back_what_is_locked_and_ends_who_waits(
    qm: RunningQueueManager, reader: Qm2QmReader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    number, session = reader.open(queue)
    locked = reader.read(number)
    waiting = reader.start(number, ulTimeout=INFINITE)
    assert not waiting.answered
    assert qm.bodies(queue) == []
    assert reader.close(session) == "MQ_OK"
    assert waiting.result().result == CANCELLED
    assert qm.bodies(queue) == [b"one"]
    assert reader.end(locked.pphContext) == "MQ_ERROR_INVALID_PARAMETER"
    assert qm.bodies(queue) == [b"one"]
    assert body_or_status(reader.read(number)) == INVALID_PARAMETER


@pytest.mark.conformance("MQQP-op-3", "MQQP-op-1")
def test_the_null_handle_cannot_be_closed(reader: Qm2QmReader) -> None:
    assert reader.close(NULL_HANDLE) == "MQ_ERROR_INVALID_HANDLE"
    assert reader.end(NULL_HANDLE) == "MQ_ERROR_INVALID_HANDLE"


@pytest.mark.conformance(
    "MQQP-packet-PCTX_RRSESSION_HANDLE_TYPE", "MQQP-packet-PCTX_REMOTEREAD_HANDLE_TYPE"
)
def test_handles_of_the_two_types_do_not_stand_for_each_other(
    qm: RunningQueueManager, reader: Qm2QmReader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    number, session = reader.open(queue)
    locked = bytes(reader.read(number).pphContext)
    for operation, handle, more in (
        ("RemoteQMCloseQueue", locked, {}),
        ("RemoteQMEndReceive", session, {"dwAck": ACK}),
    ):
        with pytest.raises(Fault) as fault:
            reader.caller.call(operation, pphContext=handle, **more)
        assert fault.value.status == FaultStatus.nca_s_fault_context_mismatch
    assert reader.end(locked) == "MQ_OK"
    assert reader.close(session) == "MQ_OK"


@pytest.mark.conformance("MQQP-rundown-PCTX_RRSESSION", "MQQP-rundown-PCTX_REMOTEREAD")
def test_a_client_that_vanishes_gives_everything_back(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    gone = Qm2QmReader(server.connect())
    number, _ = gone.open(queue)
    gone.read(number)
    gone.start(number, ulTimeout=INFINITE)
    gone.caller.lose()
    assert qm.bodies(queue) == [b"one"]
    assert not queue.open_queue_descriptor_collection
    assert not queue.waiting_receives


@pytest.mark.conformance("MQQP-rundown-PCTX_REMOTEREAD")
def test_a_read_is_given_back_when_the_connection_that_made_it_is_lost(
    qm: RunningQueueManager, server: CallServer
) -> None:
    """The session of another connection goes on."""
    queue = qm.create()
    qm.send(queue, b"one")
    staying, going = Qm2QmReader(server.connect()), Qm2QmReader(server.connect())
    number, _ = staying.open(queue)
    going.read(number)
    assert qm.bodies(queue) == []
    going.caller.lose()
    assert qm.bodies(queue) == [b"one"]
    assert body_or_status(staying.read(number)) == b"one"


# Reading

KINDS = ["read", "read_old"]


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("read", marks=pytest.mark.conformance("MQQP-op-9")),
        pytest.param("read_old", marks=pytest.mark.conformance("MQQP-op-0")),
    ],
)
@pytest.mark.conformance("MQQP-op-1", "MQQP-action-receive", "MQQP-packet-REMOTEREADACK")
def test_a_message_is_received_in_two_phases(
    qm: RunningQueueManager, reader: Qm2QmReader, kind: str
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    qm.send(queue, b"two")
    number, _ = reader.open(queue)
    first = getattr(reader, kind)(number)
    assert body_or_status(first) == b"one"
    assert qm.bodies(queue) == [b"two"]
    assert reader.end(first.pphContext, NACK) == "MQ_OK"
    assert qm.bodies(queue) == [b"one", b"two"]
    again = getattr(reader, kind)(number)
    assert body_or_status(again) == b"one"
    assert reader.end(again.pphContext, ACK) == "MQ_OK"
    qm.restart()
    assert qm.bodies(qm.find()) == [b"two"]


@pytest.mark.conformance(
    "MQQP-packet-REMOTEREADDESC", "MQQP-packet-REMOTEREADDESC2", "MQQP-op-9", "MQQP-op-0"
)
def test_the_description_is_filled_in(qm: RunningQueueManager, reader: Qm2QmReader) -> None:
    queue = qm.create()
    identifier = qm.send(queue, b"body", label="label", time_to_reach_queue=100)
    number, _ = reader.open(queue)
    response = reader.read(number, PEEK_CURRENT, request_id=7)
    inner = description_in(response)
    assert response.lpRemoteReadDesc2.SequentialId == identifier & SEQUENCE
    packet = UserMessage(inner.lpBuffer or b"")
    assert packet.size == inner.dwSize == len(inner.lpBuffer or b"")
    assert (
        BaseHeader.decode(packet.buffer).time_to_reach_queue == 100
    )  # not the moment, as RemoteRead has it
    assert inner.dwArriveTime == qm.clock.now() // 1000
    assert (inner.Reserved, inner.dwRequestID, inner.hRemoteQueue) == (1, 7, number)


@pytest.mark.conformance("MQQP-packet-REMOTEREADDESC", "MQQP-op-9")
@pytest.mark.parametrize("size", range(5))
def test_a_message_that_came_by_http_is_read_as_any_other(
    qm: RunningQueueManager, reader: Qm2QmReader, size: int
) -> None:
    queue = qm.create()
    body = b"body!"[:size]
    attributes = MessageAttributes(
        body=body,
        label="label",
        extension=b"ext",
        time_to_reach_queue=NEVER,
        tracing_requested=True,
        destination_queue_format_name=FormatName.parse(r"DIRECT=OS:x\q"),
        destination_multi_queue_format_name=parse_format_names(r"DIRECT=OS:x\q,DIRECT=OS:y\q"),
        soap_envelope="<e/>",
        soap_compound_message=b"POST / HTTP/1.1\r\n\r\n" + body + b"--\r\n",
        soap_header="<h/>",
    )
    qm.done(qm.engine.messages.enqueue_message(queue, Message(build_user_message(attributes))))
    number, _ = reader.open(queue)
    packet = PacketMessage(description_in(reader.read(number, PEEK_CURRENT)).lpBuffer or b"")
    packet.validate()
    assert not packet.is_srmp
    assert packet.layout.body_size == len(body)
    expected = replace(attributes, soap_envelope="", soap_compound_message=b"")
    assert read_attributes(packet) == replace(expected, sender_identifier_type=0)


@pytest.mark.conformance("MQQP-rule-2.2")
@pytest.mark.parametrize("syntax", list(TransferSyntax))
def test_both_transfer_syntaxes_are_served(
    qm: RunningQueueManager, server: CallServer, syntax: TransferSyntax
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    caller = server.connect(syntax=TransferSyntax.NDR)
    opened = Qm2QmReader(caller).open_by_qmcomm(queue)
    reader = Qm2QmReader(server.connect(syntax=syntax))
    assert reader.adopt(opened.phQueue).result == 0
    response = reader.read(opened.phQueue)
    assert body_or_status(response) == b"one"
    assert reader.end(response.pphContext) == "MQ_OK"


@pytest.mark.conformance("MQQP-op-0", "MQQP-op-9", "MQQP-action-peek_current")
@pytest.mark.parametrize("kind", KINDS)
def test_a_peek_leaves_the_message_and_no_handle(
    qm: RunningQueueManager, reader: Qm2QmReader, kind: str
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    number, _ = reader.open(queue, PEEK_ACCESS)
    for _ in range(2):
        response = getattr(reader, kind)(number, PEEK_CURRENT, request_id=9)
        assert body_or_status(response) == b"one"
        assert response.pphContext == NULL_HANDLE
    assert body_or_status(getattr(reader, kind)(number, RECEIVE)) == b"MQ_ERROR_ACCESS_DENIED"


@pytest.mark.conformance("MQQP-action-peek_next", "MQQP-error-0xC000000D", "MQQP-op-9")
def test_a_cursor_goes_from_message_to_message(
    qm: RunningQueueManager, reader: Qm2QmReader
) -> None:
    queue = qm.create()
    for body in (b"one", b"two", b"three"):
        qm.send(queue, body)
    number, _ = reader.open(queue)
    cursor = reader.cursor(number)
    assert body_or_status(reader.read(number, PEEK_CURRENT, hCursor=cursor)) == b"one"
    assert body_or_status(reader.read(number, PEEK_NEXT, hCursor=cursor)) == b"two"
    taken = reader.read(number, RECEIVE, hCursor=cursor)
    assert body_or_status(taken) == b"two"
    assert reader.end(taken.pphContext) == "MQ_OK"
    assert qm.bodies(queue) == [b"one", b"three"]
    refused = NtStatus.STATUS_INVALID_PARAMETER
    assert reader.read(number, PEEK_NEXT).result == refused
    assert reader.read_old(number, PEEK_NEXT).result == refused
    assert reader.read(number, PEEK_CURRENT, hCursor=cursor ^ 1).result == refused


@pytest.mark.conformance("MQQP-op-4")
def test_a_closed_cursor_is_gone(qm: RunningQueueManager, reader: Qm2QmReader) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    number, _ = reader.open(queue)
    cursor = reader.cursor(number)
    close = "RemoteQMCloseCursor"
    assert reader.status(close, hQueue=number, hCursor=cursor ^ 1) == "MQ_ERROR_INVALID_HANDLE"
    assert reader.status(close, hQueue=number ^ 1, hCursor=cursor) == "MQ_ERROR_INVALID_HANDLE"
    assert reader.status(close, hQueue=number, hCursor=cursor) == "MQ_OK"
    refused = reader.read(number, PEEK_CURRENT, hCursor=cursor)
    assert refused.result == NtStatus.STATUS_INVALID_PARAMETER
    assert reader.status(close, hQueue=number, hCursor=cursor) == "MQ_ERROR_INVALID_HANDLE"


@pytest.mark.conformance("MQQP-op-0", "MQQP-op-9", "MQQP-element-RemoteReadEntry")
@pytest.mark.parametrize("kind", KINDS)
def test_reads_that_make_no_sense_are_refused(
    qm: RunningQueueManager, reader: Qm2QmReader, kind: str
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    number, _ = reader.open(queue)
    read = getattr(reader, kind)
    for fields in ({"dwQueue": 0}, {"dwQueue": number ^ 1}, {"hRemoteQueue": number ^ 1}):
        assert body_or_status(read(number, **fields)) == INVALID_PARAMETER
    assert body_or_status(read(number ^ 1)) == INVALID_PARAMETER
    for action in (1, 0x40000010, 0x80000002):
        assert body_or_status(read(number, action)) == INVALID_PARAMETER
    locked = read(number, request_id=7)
    assert body_or_status(read(number, request_id=7)) == INVALID_PARAMETER
    assert reader.end(locked.pphContext, NACK) == "MQ_OK"
    assert body_or_status(read(number, request_id=7)) == b"one"


@pytest.mark.bound("rpc.pending_reads_of_qm2qm")
def test_reads_that_have_not_ended_are_bounded(
    qm: RunningQueueManager, reader: Qm2QmReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rpcqm.interfaces.qm2qm.MAXIMUM_READS", 3)
    queue = qm.create()
    number, _ = reader.open(queue)
    waiting = [reader.start(number, ulTimeout=1000) for _ in range(3)]
    assert body_or_status(reader.read(number)) == b"MQ_ERROR_INSUFFICIENT_RESOURCES"
    qm.advance(1000)
    reader.caller.protocol()
    assert all(each.answered for each in waiting)
    assert body_or_status(reader.read(number)) == b"MQ_ERROR_IO_TIMEOUT"


@pytest.mark.conformance("MQQP-op-9", "MQQP-op-10")
def test_a_description_that_is_not_there_is_refused(reader: Qm2QmReader) -> None:
    status = reader.status("RemoteQMStartReceive2", lpRemoteReadDesc2=REMOTEREADDESC2())
    assert status == "MQ_ERROR_INVALID_HANDLE"
    status = reader.status(
        "RemoteQMStartReceiveByLookupId", LookupId=1, lpRemoteReadDesc2=REMOTEREADDESC2()
    )
    assert status == "MQ_ERROR_INVALID_HANDLE"


@pytest.mark.conformance("MQQP-op-0", "MQQP-op-9")
@pytest.mark.parametrize("kind", KINDS)
def test_a_read_waits_as_long_as_it_says(
    qm: RunningQueueManager, reader: Qm2QmReader, kind: str
) -> None:
    queue = qm.create()
    number, _ = reader.open(queue)
    assert body_or_status(getattr(reader, kind)(number)) == b"MQ_ERROR_IO_TIMEOUT"
    waiting = reader.start(number, ulTimeout=5000)
    qm.advance(4999)
    reader.caller.protocol()
    assert not waiting.answered
    qm.advance(1)
    reader.caller.protocol()
    assert body_or_status(waiting.result()) == b"MQ_ERROR_IO_TIMEOUT"
    waiting = reader.start(number, ulTimeout=5000)
    qm.send(queue, b"late")
    reader.caller.protocol()
    assert body_or_status(waiting.result()) == b"late"


# Cancelling


@pytest.mark.conformance("MQQP-op-5", "MQQP-error-0x400E03E9", "MQQP-element-RemoteReadEntry")
@pytest.mark.parametrize("action", [RECEIVE, PEEK_CURRENT])
def test_a_cancelled_read_is_told_so(
    qm: RunningQueueManager, reader: Qm2QmReader, action: int
) -> None:
    queue = qm.create()
    number, _ = reader.open(queue)
    mine = reader.start(number, action, ulTimeout=INFINITE, request_id=7)
    other = reader.start(number, action, ulTimeout=INFINITE, request_id=8)
    assert reader.cancel(number, 7) == "MQ_OK"
    assert mine.result().result == 0x400E03E9
    assert mine.result().pphContext == NULL_HANDLE
    assert not other.answered
    qm.send(queue, b"one")
    reader.caller.protocol()
    assert body_or_status(other.result()) == b"one"


@pytest.mark.conformance("MQQP-op-5", "MQQP-error-0xC0000225")
def test_what_does_not_wait_cannot_be_cancelled(
    qm: RunningQueueManager, reader: Qm2QmReader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    number, _ = reader.open(queue)
    assert reader.cancel(number, 7) == "MQ_ERROR_INVALID_HANDLE"
    locked = reader.read(number, request_id=7)
    assert reader.cancel(number, 8) == "MQ_ERROR"
    assert reader.cancel(number, 7, second=0) == "MQ_ERROR_INVALID_PARAMETER"
    assert reader.cancel(number, 7, second=number ^ 1) == "MQ_ERROR_INVALID_PARAMETER"
    assert reader.cancel(number, 7) == "STATUS_NOT_FOUND"
    assert reader.end(locked.pphContext) == "MQ_OK"
    assert queue.message_count == 0


def test_a_wait_that_its_client_orphans_is_over(
    qm: RunningQueueManager, reader: Qm2QmReader
) -> None:
    queue = qm.create()
    number, _ = reader.open(queue)
    waiting = reader.start(number, ulTimeout=INFINITE, request_id=7)
    reader.caller.orphan(waiting)
    assert not queue.waiting_receives
    qm.send(queue, b"one")
    assert body_or_status(reader.read(number, request_id=7)) == b"one"


def test_a_message_whose_reader_never_learns_of_it_is_given_back(
    qm: RunningQueueManager, server: CallServer
) -> None:
    """Although another connection of the same client goes on."""
    queue = qm.create()
    staying = Qm2QmReader(server.connect())
    going = Qm2QmReader(server.connect(group_id=staying.caller.group_id))
    number, _ = staying.open(queue)
    going.start(number, ulTimeout=INFINITE)
    qm.send(queue, b"one")
    assert qm.bodies(queue) == []
    going.caller.lose(delivered=False)
    assert qm.bodies(queue) == [b"one"]


def test_a_message_that_no_handle_could_hold_was_not_delivered(qm: RunningQueueManager) -> None:
    """A client without room for handles does not make a message look like poison."""
    queue = qm.create()
    qm.send(queue, b"one")
    qm.send(queue, b"two")
    with_few_handles = served_qm2qm(qm, limits=Limits(handles=2))
    reader = Qm2QmReader(with_few_handles.connect())
    number, _ = reader.open(queue)
    reader.read(number)
    with pytest.raises(Fault):
        reader.read(number)
    key = queue.message_position_list.first_available()
    assert key is not None
    assert qm.engine.positions.message_at(queue, key).abort_count == 0
