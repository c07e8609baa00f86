"""Opening and closing queues by RemoteRead, and who may ([MS-MQRR] 3.1.4.1 to .3, .11)."""

from typing import Any

import pytest

from rpcqm.adm.queue import Queue
from rpcqm.base.errors import FaultStatus, HResult
from rpcqm.codec.interface import TransferSyntax
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqmq import QUEUE_FORMAT, QUEUE_FORMAT_u
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.interfaces.remote_read import PENDING_REQUEST_CLEANUP, RemoteReadSecurity
from rpcqm.rpc.constants import AuthenticationLevel
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import (
    ADMINISTRATOR,
    ALICE,
    BOB,
    LEVEL_INTEGRITY,
    LEVEL_NONE,
    LEVEL_PRIVACY,
    NOBODY,
    CallServer,
    Fault,
)
from tests.support.rpc.remote_reader import (
    CLIENT,
    MOVE_ACCESS,
    NULL_HANDLE,
    PEEK_ACCESS,
    PEEK_CURRENT,
    RECEIVE_ACCESS,
    Reader,
    body_of,
    format_of,
    served_remote_read,
    status_name,
)

MISMATCH = FaultStatus.nca_s_fault_context_mismatch
ACCESS_DENIED = FaultStatus.RPC_S_ACCESS_DENIED
ORDERS = r"DIRECT=OS:.\private$\orders"
PEEK_ADMIN_ACCESS = int(QueueAccessType.PEEK_ADMIN_ACCESS)
RECEIVE_ADMIN_ACCESS = int(QueueAccessType.RECEIVE_ADMIN_ACCESS)


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_remote_read(qm)


@pytest.fixture
def reader(server: CallServer) -> Reader:
    return Reader(server.connect())


def refused(reader: Reader, *arguments: Any, **keywords: Any) -> int:
    """The fault with which R_OpenQueue is refused."""
    with pytest.raises(Fault) as caught:
        reader.open(*arguments, **keywords)
    return caught.value.status


@pytest.mark.conformance("MQRR-op-0")
def test_the_port_of_the_interface_is_told_to_everybody(server: CallServer) -> None:
    caller = server.connect(NOBODY, LEVEL_NONE)
    assert caller.call("R_GetServerPort").result == 2103


@pytest.mark.conformance("MQRR-op-2", "MQRR-packet-QUEUE_CONTEXT_HANDLE_SERIALIZE")
def test_an_open_queue_can_be_read(qm: RunningQueueManager, reader: Reader) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle = reader.open(queue)
    assert len(handle) == 20
    assert handle != NULL_HANDLE
    assert reader.body(handle, PEEK_CURRENT) == b"one"


@pytest.mark.conformance("MQRR-rule-2.2")
@pytest.mark.parametrize("syntax", list(TransferSyntax))
def test_both_transfer_syntaxes_are_served(
    qm: RunningQueueManager, server: CallServer, syntax: TransferSyntax
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    reader = Reader(server.connect(syntax=syntax))
    assert reader.receive(reader.open(queue)) == b"one"


@pytest.mark.conformance("MQRR-op-2")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ({"share_mode": 2}, HResult.MQ_ERROR_INVALID_PARAMETER),
        ({"name": r"DIRECT=OS:.\private$\none"}, HResult.MQ_ERROR_QUEUE_NOT_FOUND),
        ({"name": r"DIRECT=OS:elsewhere\private$\orders"}, HResult.MQ_ERROR_QUEUE_NOT_FOUND),
    ],
)
def test_a_refused_open_is_thrown(
    qm: RunningQueueManager, reader: Reader, arguments: dict[str, Any], status: HResult
) -> None:
    qm.create()
    assert refused(reader, **{"name": ORDERS} | arguments) == status
    assert qm.engine.opening.descriptors == {}


@pytest.mark.conformance("MQRR-op-2")
@pytest.mark.parametrize("access", [0, 2, 3, MOVE_ACCESS, 0x21, 0x80, 0x81, 0xFFFFFFFF])
def test_every_access_but_receiving_only_peeks(
    qm: RunningQueueManager, reader: Reader, access: int
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle = reader.open(queue, access)
    assert body_of(reader.read(handle, PEEK_CURRENT)) == b"one"
    purged = reader.caller.call("R_PurgeQueue", phContext=handle)
    assert status_name(purged.result) == "STATUS_ACCESS_DENIED"
    assert qm.bodies(queue) == [b"one"]


@pytest.mark.conformance("MQRR-rule-2.2.3")
@pytest.mark.parametrize(
    "name",
    [
        r"DIRECT=HTTP://workstation/msmq/private$/orders",
        "DL=6f2b7a53-0c1d-4c5e-9d11-1c2b3a4d5e6f",
        "MULTICAST=234.1.1.1:8001",
        "CONNECTOR=6f2b7a53-0c1d-4c5e-9d11-1c2b3a4d5e6f",
    ],
)
def test_only_some_kinds_of_names_can_be_opened(
    qm: RunningQueueManager, reader: Reader, name: str
) -> None:
    qm.create()
    assert refused(reader, name) == HResult.MQ_ERROR_INVALID_PARAMETER


@pytest.mark.conformance("MQRR-rule-2.2.3")
def test_public_private_direct_machine_and_subqueue_names_can_be_opened(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create()
    reader = Reader(server.connect(ADMINISTRATOR))
    own = qm.engine.queue_manager.identifier
    for name in (
        f"PRIVATE={own}\\{queue.private_queue_number:08x}",
        "DIRECT=TCP:192.0.2.7\\private$\\orders",
        f"MACHINE={own};DEADLETTER",
        r"DIRECT=OS:localhost\private$\orders;late",
    ):
        assert len(reader.open(name, PEEK_ACCESS)) == 20
    assert refused(reader, f"PUBLIC={CLIENT}") == HResult.MQ_ERROR_QUEUE_NOT_FOUND


@pytest.mark.conformance("MQRR-rule-2.2.3")
def test_the_unknown_name_is_an_invalid_parameter(reader: Reader) -> None:
    unknown = QUEUE_FORMAT(m_qft=0, m_SuffixAndFlags=0, u=QUEUE_FORMAT_u(0, None))
    fields = reader._opening(ORDERS, RECEIVE_ACCESS, 0, 1) | {"pQueueFormat": unknown}
    with pytest.raises(Fault) as caught:
        reader.caller.call("R_OpenQueue", **fields)
    assert caught.value.status == HResult.MQ_ERROR_INVALID_PARAMETER


@pytest.mark.conformance("MQRR-op-2")
def test_exclusive_reading_keeps_other_receivers_out(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    handle = reader.open(queue, share_mode=1)
    assert refused(reader, queue) == HResult.MQ_ERROR_SHARING_VIOLATION
    reader.close(handle)
    reader.open(queue)


@pytest.mark.conformance("MQRR-op-2")
def test_opening_asks_the_security_descriptor_of_the_queue(
    qm: RunningQueueManager, server: CallServer
) -> None:
    security = parse_sddl(f"O:{ALICE.sid}D:(A;;0x3;;;{ALICE.sid})(A;;0x2;;;{BOB.sid})").encode()
    queue = qm.create(security=security)
    bob = Reader(server.connect(BOB))
    assert refused(bob, queue) == HResult.MQ_ERROR_ACCESS_DENIED
    assert bob.open(queue, PEEK_ACCESS)
    assert Reader(server.connect(ALICE)).open(queue)


# Minimum authentication level, [MS-MQRR] <19>.

NEEDS_PRIVACY = RemoteReadSecurity()
LEVELS: list[tuple[RemoteReadSecurity, int, bool, AuthenticationLevel]] = [
    (NEEDS_PRIVACY, 1, True, LEVEL_PRIVACY),
    (NEEDS_PRIVACY, 0, True, LEVEL_PRIVACY),
    (RemoteReadSecurity(debug_rpc=True), 1, True, LEVEL_INTEGRITY),
    (RemoteReadSecurity(allow_nonauthenticated_rpc=True), 1, False, LEVEL_NONE),
    (RemoteReadSecurity(allow_nonauthenticated_rpc=True), 0, False, LEVEL_NONE),
    (RemoteReadSecurity(True, True), 1, False, LEVEL_NONE),
    (RemoteReadSecurity(True, True), 0, True, LEVEL_PRIVACY),
    (RemoteReadSecurity(True, True, debug_rpc=True), 0, True, LEVEL_INTEGRITY),
    (
        RemoteReadSecurity(new_remote_read_server_allow_none_security_client=True),
        0,
        True,
        LEVEL_NONE,
    ),
    (
        RemoteReadSecurity(new_remote_read_server_allow_none_security_client=True),
        0,
        False,
        LEVEL_PRIVACY,
    ),
]


@pytest.mark.conformance("MQRR-rule-2.1", "MQRR-op-2", "MQRR-op-11")
@pytest.mark.parametrize(("security", "workgroup", "anonymous", "minimum"), LEVELS)
def test_the_minimum_level_follows_from_the_switches(
    qm: RunningQueueManager,
    security: RemoteReadSecurity,
    workgroup: int,
    anonymous: bool,
    minimum: AuthenticationLevel,
) -> None:
    who = "AN" if anonymous else "BA"
    queue = qm.create(security=parse_sddl(f"O:BAD:(A;;0x3;;;{who})(A;;0x3;;;{ALICE.sid})").encode())
    server = served_remote_read(qm, security)
    for level in AuthenticationLevel:
        if level < LEVEL_NONE:
            continue
        reader = Reader(server.connect(ALICE, level))
        if level >= minimum:
            handle = reader.open(queue, PEEK_ACCESS, workgroup=workgroup)
            assert reader.close(handle) == "MQ_OK"
        else:
            assert refused(reader, queue, workgroup=workgroup) == ACCESS_DENIED


def test_who_is_not_protected_enough_learns_nothing_of_queues(
    qm: RunningQueueManager, server: CallServer
) -> None:
    reader = Reader(server.connect(NOBODY, LEVEL_NONE))
    assert refused(reader, r"DIRECT=OS:.\private$\none") == ACCESS_DENIED
    with pytest.raises(Fault) as caught:
        reader.open_for_move(r"DIRECT=OS:.\private$\none")
    assert caught.value.status == ACCESS_DENIED


def test_a_subqueue_that_is_not_there_yet_is_judged_by_its_queue(qm: RunningQueueManager) -> None:
    qm.create(security=parse_sddl("O:BAD:(A;;0x3;;;AN)").encode())
    qm.create(r"private$\secret", security=parse_sddl("O:BAD:(A;;0x3;;;BA)").encode())
    switch = RemoteReadSecurity(new_remote_read_server_allow_none_security_client=True)
    reader = Reader(served_remote_read(qm, switch).connect(NOBODY, LEVEL_NONE))
    assert reader.open(f"{ORDERS};late")
    assert refused(reader, r"DIRECT=OS:.\private$\secret;late") == ACCESS_DENIED
    assert refused(reader, r"DIRECT=OS:.\private$\none;late") == ACCESS_DENIED


@pytest.mark.conformance("MQRR-rule-2.1")
def test_later_calls_need_the_level_that_was_recorded(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create()
    caller = server.connect(ALICE, LEVEL_PRIVACY)
    handle = Reader(caller).open(queue)
    weaker = Reader(server.connect(ALICE, LEVEL_INTEGRITY, group_id=caller.group_id))
    for operation, fields in (
        ("R_CreateCursor", {}),
        ("R_PurgeQueue", {}),
        ("R_CancelReceive", {"dwRequestId": 1}),
    ):
        with pytest.raises(Fault) as caught:
            weaker.caller.call(operation, phContext=handle, **fields)
        assert caught.value.status == ACCESS_DENIED
    assert Reader(caller).close(handle) == "MQ_OK"


# Closing


@pytest.mark.conformance("MQRR-op-3", "MQRR-packet-QUEUE_CONTEXT_HANDLE_SERIALIZE")
def test_a_closed_handle_is_null_and_of_no_use(qm: RunningQueueManager, reader: Reader) -> None:
    handle = reader.open(qm.create())
    response = reader.caller.call("R_CloseQueue", pphContext=handle)
    assert (response.result, response.pphContext) == (0, NULL_HANDLE)
    assert qm.engine.opening.descriptors == {}
    with pytest.raises(Fault) as caught:
        reader.close(handle)
    assert caught.value.status == MISMATCH


@pytest.mark.conformance("MQRR-op-3")
def test_closing_null_fails(reader: Reader) -> None:
    response = reader.caller.call("R_CloseQueue", pphContext=NULL_HANDLE)
    assert response.result == HResult.MQ_ERROR_INVALID_HANDLE


@pytest.mark.conformance("MQRR-op-3", "MQRR-packet-QUEUE_CONTEXT_HANDLE_NOSERIALIZE")
def test_closing_does_not_wait_for_a_pending_read_but_ends_it(
    qm: RunningQueueManager, reader: Reader
) -> None:
    handle = reader.open(qm.create())
    waiting = reader.start(handle, timeout=60_000)
    peeking = reader.start(handle, PEEK_CURRENT, timeout=60_000)
    assert not waiting.answered
    assert reader.close(handle) == "MQ_OK"
    assert waiting.result().result == HResult.MQ_ERROR_OPERATION_CANCELLED
    assert peeking.result().result == HResult.MQ_ERROR_OPERATION_CANCELLED


@pytest.mark.conformance("MQRR-op-3")
def test_closing_gives_back_what_was_not_acknowledged(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    qm.send(queue, b"two")
    handle = reader.open(queue)
    assert reader.body(handle) == b"one"
    acknowledged = reader.body(handle, request_id=9)
    assert acknowledged == b"two"
    reader.caller.send("R_EndReceive", phContext=handle, dwAck=2, dwRequestId=9)
    assert reader.close(handle) == "MQ_OK"
    assert qm.bodies(queue) == [b"one"]


@pytest.mark.conformance("MQRR-op-3", "MQRR-packet-QUEUE_CONTEXT_HANDLE_NOSERIALIZE")
def test_what_closing_gives_back_does_not_wake_a_read_of_the_same_handle(
    qm: RunningQueueManager, reader: Reader
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle = reader.open(queue)
    assert reader.body(handle) == b"one"
    waiting = reader.start(handle, timeout=60_000)
    assert reader.close(handle) == "MQ_OK"
    assert waiting.result().result == HResult.MQ_ERROR_OPERATION_CANCELLED
    assert qm.bodies(queue) == [b"one"]


@pytest.mark.conformance("MQRR-rundown-queue_context_handle", "MQRR-event-rpc_failure")
def test_a_lost_client_gives_everything_back(qm: RunningQueueManager, server: CallServer) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    idle = len(qm.clock.timers)
    reader = Reader(server.connect())
    handle = reader.open(queue)
    reader.cursor(handle)
    assert reader.body(handle) == b"one"
    waiting = reader.start(handle, timeout=60_000)
    assert qm.bodies(queue) == []
    reader.caller.lose()
    assert qm.bodies(queue) == [b"one"]
    assert not waiting.answered
    assert qm.engine.opening.descriptors == {}
    assert qm.engine.readers.cursors == {}
    assert queue.waiting_receives == {}
    qm.clock.advance(PENDING_REQUEST_CLEANUP)
    assert len(qm.clock.timers) == idle


@pytest.mark.conformance("MQRR-rundown-queue_context_handle")
def test_handles_outlive_one_of_two_connections(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    first = server.connect()
    second = Reader(server.connect(group_id=first.group_id))
    handle = Reader(first).open(queue)
    first.lose()
    assert second.receive(handle) == b"one"


# Handles of others (G53)


def test_handles_of_others_are_a_mismatch(qm: RunningQueueManager, server: CallServer) -> None:
    queue = qm.create()
    caller = server.connect(ALICE)
    handle = Reader(caller).open(queue)
    other_group = Reader(server.connect(ALICE))
    other_identity = Reader(server.connect(BOB, group_id=caller.group_id))
    for stranger in (other_group, other_identity):
        with pytest.raises(Fault) as caught:
            stranger.read(handle)
        assert caught.value.status == MISMATCH
    assert Reader(caller).close(handle) == "MQ_OK"


def test_the_calls_on_a_deleted_queue_fail(qm: RunningQueueManager, reader: Reader) -> None:
    queue = qm.create()
    handle = reader.open(queue)
    _, move_handle = reader.open_for_move(queue)
    qm.done(qm.engine.queues.delete_queue(queue))
    for operation, fields in (
        ("R_CreateCursor", {"phContext": handle}),
        ("R_PurgeQueue", {"phContext": handle}),
        ("R_CancelReceive", {"phContext": handle, "dwRequestId": 3}),
    ):
        assert reader.status(operation, **fields) == "MQ_ERROR_QUEUE_DELETED"
    assert reader.read(handle).result == HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE
    assert reader.close(handle) == "MQ_OK"
    assert reader.close(move_handle) == "MQ_OK"


# Opening for moves


@pytest.mark.conformance("MQRR-op-11", "MQRR-op-3")
def test_a_move_context_is_random_and_ends_with_its_handle(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create()
    reader = Reader(server.connect())
    first, first_handle = reader.open_for_move(queue)
    second, _ = reader.open_for_move(queue)
    assert first != second
    assert first > 0xFFFFFFFF or second > 0xFFFFFFFF
    reader.close(first_handle)
    source = reader.open(queue)
    assert reader.move(source, first, 1) == "MQ_ERROR_INVALID_HANDLE"
    assert reader.move(source, second, 1) == "STATUS_INVALID_PARAMETER"


@pytest.mark.conformance("MQRR-op-11")
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ({"access": RECEIVE_ACCESS}, HResult.MQ_ERROR_INVALID_PARAMETER),
        ({"share_mode": 2}, HResult.MQ_ERROR_INVALID_PARAMETER),
        ({"name": r"DIRECT=OS:.\private$\none"}, HResult.MQ_ERROR_QUEUE_NOT_FOUND),
        ({"name": f"{ORDERS};JOURNAL"}, HResult.MQ_ERROR_UNSUPPORTED_ACCESS_MODE),
    ],
)
def test_a_refused_open_for_move_is_thrown(
    qm: RunningQueueManager, reader: Reader, arguments: dict[str, Any], status: HResult
) -> None:
    qm.create()
    with pytest.raises(Fault) as caught:
        reader.open_for_move(**{"name": ORDERS} | arguments)
    assert caught.value.status == status


def test_a_move_handle_cannot_be_read(qm: RunningQueueManager, reader: Reader) -> None:
    _, handle = reader.open_for_move(qm.create())
    assert reader.read(handle).result == HResult.MQ_ERROR_ACCESS_DENIED
    assert reader.read(handle, PEEK_CURRENT).result == HResult.MQ_ERROR_ACCESS_DENIED


def test_too_many_handles_leave_nothing_open(
    qm: RunningQueueManager, server: CallServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue: Queue = qm.create()
    caller = server.connect()
    reader = Reader(caller)
    group = caller.association.group
    monkeypatch.setattr(group.handles, "_limit", 1)
    reader.open(queue)
    assert refused(reader, queue) == FaultStatus.nca_s_fault_remote_no_memory
    assert len(qm.engine.opening.descriptors) == 1
    assert format_of(queue).m_qft == 3


@pytest.mark.conformance("MQRR-rule-2.2.3")
def test_what_is_on_its_way_by_http_is_read_and_purged_by_administrators(
    qm: RunningQueueManager, server: CallServer
) -> None:
    reader = Reader(server.connect(ADMINISTRATOR))
    name = "DIRECT=HTTP://other/msmq/private$/q"
    assert refused(reader, name, PEEK_ADMIN_ACCESS) == HResult.MQ_ERROR_INVALID_PARAMETER
    queue = qm.open(name, QueueAccessType.SEND_ACCESS).queue_reference
    assert queue is not None
    qm.send(queue, b"out")
    handle = reader.open(name, PEEK_ADMIN_ACCESS)
    assert reader.body(handle, PEEK_CURRENT) == b"out"
    assert refused(reader, name) == HResult.MQ_ERROR_INVALID_PARAMETER
    purged = reader.caller.call("R_PurgeQueue", phContext=reader.open(name, RECEIVE_ADMIN_ACCESS))
    assert status_name(purged.result) == "MQ_OK"
    assert queue.message_count == 0
