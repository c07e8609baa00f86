"""Who may use qmcomm, its open queues and cursors ([MS-MQMP] 3.1.4.17 to .22, 3.1.7.1)."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.base.errors import FaultStatus, HResult
from rpcqm.base.identity import EVERYONE, Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.properties import NULL_VARIANT
from rpcqm.codec.propvariant import propvariant_of
from rpcqm.codec.security.sddl import parse_sddl
from rpcqm.codec.types.mqmq import (
    DL_ID,
    MULTICAST_ID,
    OBJECTID,
    QUEUE_FORMAT,
    XACTUOW,
    QUEUE_FORMAT_u,
)
from rpcqm.codec.types.qmcomm import (
    CACCreateRemoteCursor,
)
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.rpc.interface_registry import NCACN_IP_TCP, NCALRPC
from tests.support.queue_manager import SETTINGS, RunningQueueManager
from tests.support.rpc.callers import (
    ADMINISTRATOR,
    ALICE,
    BOB,
    LEVEL_PRIVACY,
    CallServer,
    Fault,
)
from tests.support.rpc.dependent_client import (
    PEEK_ACCESS,
    RECEIVE_ACCESS,
    SEND_ACCESS,
    Client,
    body_in,
    object_of,
    open_remote,
    receiving_buffer,
    sending_buffer,
    served_clients,
)
from tests.support.rpc.remote_reader import CLIENT, NULL_HANDLE, format_of, status_name

ORDERS = r"DIRECT=OS:.\private$\orders"
ELSEWHERE = r"DIRECT=OS:elsewhere\private$\orders"
CONNECTOR = f"CONNECTOR={CLIENT}"
MISMATCH = FaultStatus.nca_s_fault_context_mismatch
UOW = uuid4().bytes_le


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_clients(qm)


@pytest.fixture
def client(server: CallServer) -> Client:
    return Client(server.connect(ADMINISTRATOR, transport=NCALRPC))


# The SupportingServer gate

GATED: dict[str, dict[str, Any]] = {
    "R_QMCreateObjectInternal": {
        "dwObjectType": 1,
        "lpwcsPathName": r".\private$\q",
        "SDSize": 0,
        "cp": 1,
        "aProp": [108],
        "apVar": [],
    },
    "R_QMSetObjectSecurityInternal": {
        "pObjectFormat": object_of(ORDERS),
        "SecurityInformation": 1,
        "SDSize": 1,
        "pSecurityDescriptor": b"x",
    },
    "R_QMGetObjectSecurityInternal": {
        "pObjectFormat": object_of(ORDERS),
        "RequestedInformation": 1,
        "nLength": 10,
    },
    "R_QMDeleteObject": {"pObjectFormat": object_of(ORDERS)},
    "R_QMGetObjectProperties": {
        "pObjectFormat": object_of(ORDERS),
        "cp": 1,
        "aProp": [108],
        "apVar": [],
    },
    "R_QMSetObjectProperties": {
        "pObjectFormat": object_of(ORDERS),
        "cp": 1,
        "aProp": [108],
        "apVar": [],
    },
    "R_QMObjectPathToObjectFormat": {
        "lpwcsPathName": r".\private$\orders",
        "pObjectFormat": object_of(ORDERS),
    },
    "R_QMGetTmWhereabouts": {"cbBufSize": 8},
    "R_QMEnlistTransaction": {"pUow": XACTUOW(rgb=UOW), "cbCookie": 1, "pbCookie": b"x"},
    "R_QMQueryQMRegistryInternal": {"dwQueryType": 1},
    "rpc_ACCloseHandle": {"phQueue": NULL_HANDLE},
    "rpc_ACReceiveMessageEx": {"hQMContext": 1, "ptb": receiving_buffer()},
}


@pytest.mark.conformance("MQMP-rule-supporting_server")
@pytest.mark.parametrize("operation", GATED)
def test_only_a_supporting_server_serves_clients_on_the_network(
    qm: RunningQueueManager, server: CallServer, operation: str
) -> None:
    qm.create()
    remote = Client(server.connect(ADMINISTRATOR, transport=NCACN_IP_TCP))
    fields = _filled(GATED[operation])
    assert remote.status(operation, **fields) == "MQ_ERROR_WKS_CANT_SERVE_CLIENT"
    local = Client(server.connect(ADMINISTRATOR, transport=NCALRPC))
    assert local.status(operation, **fields) != "MQ_ERROR_WKS_CANT_SERVE_CLIENT"


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with one variant where they want some."""
    return fields | {"apVar": [propvariant_of(NULL_VARIANT)]} if "apVar" in fields else fields


@pytest.mark.conformance("MQMP-rule-supporting_server", "MQMP-rule-2.1")
def test_a_supporting_server_serves_the_network(qm: RunningQueueManager) -> None:
    qm.restart(
        QueueManagerSettings(
            computer_name=SETTINGS.computer_name,
            addresses=SETTINGS.addresses,
            supporting_server=True,
        )
    )
    qm.create()
    client = Client(served_clients(qm).connect(ALICE, LEVEL_PRIVACY, NCACN_IP_TCP))
    handle, _ = client.open(ORDERS, SEND_ACCESS)
    assert client.sent(handle, b"one") == "MQ_OK"
    assert qm.bodies(qm.find()) == [b"one"]


@pytest.mark.conformance("MQMP-op-1", "MQMP-op-23", "MQMP-op-c2_0")
def test_obsolete_methods_are_refused(qm: RunningQueueManager, client: Client) -> None:
    with pytest.raises(Fault) as caught:
        client.caller.call("R_QMGetRemoteQueueName", pQueue=1, lplpRemoteQueueName=None)
    assert caught.value.status == HResult.MQ_ERROR_ILLEGAL_OPERATION
    handle, _ = client.open(qm.create())
    status = client.status("rpc_ACSetCursorProperties", hProxy=handle, hCursor=1, hRemoteCursor=2)
    assert status == "MQ_ERROR_ILLEGAL_OPERATION"
    status = client.status(
        "QMSendMessageInternalEx",
        pQueueFormat=format_of(ORDERS),
        ptb=sending_buffer(b"x"),
        pMessageID=OBJECTID(Lineage=CLIENT),
    )
    assert status == "MQ_ERROR_ILLEGAL_OPERATION"


# Opening, opnum 19


@pytest.mark.conformance(
    "MQMP-op-19", "MQMP-element-LocalQueueContextHandle", "MQMP-packet-RPC_QUEUE_HANDLE"
)
def test_an_open_queue_has_a_context_handle_and_a_number(
    qm: RunningQueueManager, client: Client
) -> None:
    queue = qm.create()
    handle, context = client.open(queue)
    other, other_context = client.open(queue)
    assert handle != other
    assert context != other_context
    assert {context, other_context} == set(queue.open_queue_descriptor_collection)


@pytest.mark.conformance("MQMQ-packet-MULTICAST_ID", "MQMQ-packet-DL_ID")
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (7, MULTICAST_ID(m_address=0x0100007F, m_port=80)),
        (7, MULTICAST_ID(m_address=0x010101EA, m_port=0x10000)),
        (6, DL_ID(m_DlGuid=UUID(int=1), m_pwzDomain="two words")),
        (6, DL_ID(m_DlGuid=UUID(int=1), m_pwzDomain="d" * 256)),
    ],
)
def test_a_structure_holds_only_what_a_format_name_can_say(
    client: Client, kind: int, value: MULTICAST_ID | DL_ID
) -> None:
    structure = QUEUE_FORMAT(m_qft=kind, m_SuffixAndFlags=0, u=QUEUE_FORMAT_u(kind, value))
    response = client.send_open(structure, SEND_ACCESS)
    assert status_name(response.result) == "MQ_ERROR_ILLEGAL_FORMATNAME"


@pytest.mark.conformance("MQMP-op-19")
@pytest.mark.parametrize(
    ("name", "access", "fields", "status"),
    [
        (ORDERS, 0, {}, "MQ_ERROR_INVALID_PARAMETER"),
        (ORDERS, 4, {}, "MQ_ERROR_INVALID_PARAMETER"),
        (ORDERS, RECEIVE_ACCESS, {"dwShareMode": 2}, "MQ_ERROR_INVALID_PARAMETER"),
        (ORDERS, SEND_ACCESS, {"dwShareMode": 1}, "MQ_ERROR_INVALID_PARAMETER"),
        (ORDERS, RECEIVE_ACCESS, {"dwpRemoteContext": 5}, "MQ_ERROR_INVALID_PARAMETER"),
        (f"{ORDERS};late", SEND_ACCESS, {}, "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
        (f"{ORDERS};JOURNAL", SEND_ACCESS, {}, "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
        (
            "MULTICAST=234.1.1.1:80",
            RECEIVE_ACCESS,
            {},
            "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION",
        ),
        (
            "DIRECT=HTTP://x/msmq/q",
            PEEK_ACCESS,
            {},
            "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION",
        ),
        (r"DIRECT=OS:.\private$\none", RECEIVE_ACCESS, {}, "MQ_ERROR_QUEUE_NOT_FOUND"),
        (r"DIRECT=OS:.\private$\none", SEND_ACCESS, {}, "MQ_ERROR_QUEUE_NOT_FOUND"),
        (ORDERS, 0x81, {}, "MQ_ERROR_UNSUPPORTED_ACCESS_MODE"),
        (ELSEWHERE, SEND_ACCESS, {"hRemoteQueue": 7}, "MQ_ERROR_INVALID_PARAMETER"),
        (ELSEWHERE, 0x81, {"hRemoteQueue": 7}, "MQ_ERROR_INVALID_PARAMETER"),
        (ELSEWHERE, 0xA0, {"hRemoteQueue": 7}, "MQ_ERROR_INVALID_PARAMETER"),
        (CONNECTOR, SEND_ACCESS, {}, "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
        (f"{CONNECTOR};XACTONLY", SEND_ACCESS, {}, "MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION"),
        (CONNECTOR, RECEIVE_ACCESS, {}, "MQ_ERROR_ILLEGAL_FORMATNAME"),
        (CONNECTOR, PEEK_ACCESS, {}, "MQ_ERROR_ILLEGAL_FORMATNAME"),
    ],
)
def test_what_cannot_be_opened_is_refused(
    qm: RunningQueueManager,
    client: Client,
    name: str,
    access: int,
    fields: dict[str, Any],
    status: str,
) -> None:
    qm.create()
    assert status_name(client.send_open(name, access, **fields).result) == status
    assert qm.engine.opening.descriptors == {}
    assert qm.engine.outgoing.list() == []


@pytest.mark.conformance("MQMP-op-19")
def test_a_queue_elsewhere_is_told_by_its_path(qm: RunningQueueManager, client: Client) -> None:
    response = client.send_open(r"DIRECT=OS:elsewhere\private$\orders", RECEIVE_ACCESS)
    assert response.result == 0
    assert response.lplpRemoteQueueName == r"elsewhere\private$\orders"
    assert (response.phQueue, response.pdwQMContext) == (NULL_HANDLE, 0)
    private = client.send_open(f"PRIVATE={CLIENT}\\5", PEEK_ACCESS)
    assert status_name(private.result) == "MQ_ERROR_ILLEGAL_FORMATNAME"
    own = FormatName.private(qm.engine.queue_manager.identifier, 99)
    assert status_name(client.send_open(own, PEEK_ACCESS).result) == "MQ_ERROR_QUEUE_NOT_FOUND"


@pytest.mark.conformance("MQMP-op-19")
def test_reading_elsewhere_through_this_server_is_refused(client: Client) -> None:
    name = r"DIRECT=OS:elsewhere\private$\orders"
    response = client.send_open(name, RECEIVE_ACCESS, hRemoteQueue=7, dwpRemoteContext=8)
    assert status_name(response.result) == "MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE"


@pytest.mark.conformance("MQMP-op-19")
def test_messages_for_a_queue_elsewhere_wait_in_an_outgoing_queue(
    qm: RunningQueueManager, client: Client
) -> None:
    name = r"DIRECT=OS:elsewhere\private$\orders"
    handle, _ = client.open(name, SEND_ACCESS)
    assert client.sent(handle, b"one") == "MQ_OK"
    (outgoing,) = qm.engine.outgoing.list()
    assert outgoing.state is OutgoingQueueState.INACTIVE
    _, context = client.open(name, 0x81)
    status, buffer = client.receive(context, receiving_buffer())
    assert (status, body_in(buffer)) == ("MQ_OK", b"one")


@pytest.mark.conformance("MQMP-op-19", "MQMP-op-20")
def test_exclusive_reading_ends_with_the_handle(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    handle, _ = client.open(queue, dwShareMode=1)
    refused = client.send_open(queue, RECEIVE_ACCESS)
    assert status_name(refused.result) == "MQ_ERROR_SHARING_VIOLATION"
    response = client.caller.call("rpc_ACCloseHandle", phQueue=handle)
    assert (response.result, response.phQueue) == (0, NULL_HANDLE)
    client.open(queue)
    with pytest.raises(Fault) as caught:
        client.close(handle)
    assert caught.value.status == MISMATCH
    assert client.close(NULL_HANDLE) == "MQ_ERROR_INVALID_HANDLE"


def test_opening_asks_the_descriptor(qm: RunningQueueManager, server: CallServer) -> None:
    queue = qm.create(security=parse_sddl(f"O:BAD:(A;;0x4;;;{BOB.sid})").encode())
    bob = Client(server.connect(BOB, transport=NCALRPC))
    bob.open(queue, SEND_ACCESS)
    for access in (RECEIVE_ACCESS, PEEK_ACCESS):
        response = bob.send_open(queue, access)
        assert status_name(response.result) == "MQ_ERROR_ACCESS_DENIED"


@pytest.mark.conformance("MQMP-rundown-RPC_QUEUE_HANDLE")
def test_a_lost_client_closes_its_queues(qm: RunningQueueManager, server: CallServer) -> None:
    queue = qm.create()
    client = Client(server.connect(ALICE, transport=NCALRPC))
    _, context = client.open(queue)
    waiting = client.start_receive(context, receiving_buffer(timeout=60_000))
    client.caller.lose()
    assert not waiting.answered
    assert qm.engine.opening.descriptors == {}
    assert queue.waiting_receives == {}
    qm.send(queue, b"one")
    assert qm.bodies(queue) == [b"one"]


def test_too_many_handles_leave_nothing_open(
    qm: RunningQueueManager, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = qm.create()
    monkeypatch.setattr(client.caller.association.group.handles, "_limit", 0)
    no_memory = FaultStatus.nca_s_fault_remote_no_memory
    with pytest.raises(Fault) as caught:
        client.open(queue)
    assert caught.value.status == no_memory
    with pytest.raises(Fault) as caught:
        open_remote(client, queue)
    assert caught.value.status == no_memory
    with pytest.raises(Fault) as caught:
        client.enlist(UOW)
    assert caught.value.status == no_memory
    client.caller.settle()
    assert qm.engine.opening.descriptors == {}
    assert qm.engine.queue_manager.transaction_collection == {}


# Format name of a handle


def format_name_of(client: Client, handle: bytes, size: int, buffer: str | None = None) -> Any:
    return client.caller.call(
        "rpc_ACHandleToFormatName",
        hQueue=handle,
        dwFormatNameRPCBufferLen=size,
        lpwcsFormatName="\0" * size if buffer is None and size else buffer,
        pdwLength=size,
    )


@pytest.mark.conformance("MQMP-op-26")
def test_a_handle_has_the_name_it_was_opened_by(qm: RunningQueueManager, client: Client) -> None:
    qm.create()
    handle, _ = client.open(ORDERS)
    needed = len(ORDERS) + 1
    nothing = format_name_of(client, handle, 0)
    too_small = HResult.MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL
    assert (nothing.result, nothing.pdwLength, nothing.lpwcsFormatName) == (
        too_small,
        needed,
        None,
    )
    cut = format_name_of(client, handle, 10)
    assert (cut.result, cut.pdwLength) == (too_small, needed)
    assert cut.lpwcsFormatName == ORDERS[:9] + "\0"
    whole = format_name_of(client, handle, needed)
    assert (whole.result, whole.pdwLength) == (0, needed)
    assert whole.lpwcsFormatName == ORDERS + "\0"
    roomy = format_name_of(client, handle, needed + 5)
    assert roomy.lpwcsFormatName == ORDERS + "\0" * 6


@pytest.mark.conformance("MQMP-op-26")
def test_two_different_lengths_are_refused(qm: RunningQueueManager, client: Client) -> None:
    handle, _ = client.open(qm.create())
    status = client.status(
        "rpc_ACHandleToFormatName",
        hQueue=handle,
        dwFormatNameRPCBufferLen=5,
        lpwcsFormatName="\0" * 5,
        pdwLength=6,
    )
    assert status == "MQ_ERROR_INVALID_PARAMETER"


# Purging


@pytest.mark.conformance("MQMP-op-27")
def test_a_queue_open_for_receiving_is_purged(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle, _ = client.open(queue)
    assert client.status("rpc_ACPurgeQueue", hQueue=handle) == "MQ_OK"
    assert qm.bodies(queue) == []


@pytest.mark.conformance("MQMP-op-27")
@pytest.mark.parametrize("access", [SEND_ACCESS, PEEK_ACCESS])
def test_other_handles_cannot_purge(qm: RunningQueueManager, client: Client, access: int) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle, _ = client.open(queue, access)
    assert client.status("rpc_ACPurgeQueue", hQueue=handle) == "MQ_ERROR_ACCESS_DENIED"
    assert qm.bodies(queue) == [b"one"]


@pytest.mark.conformance("MQMP-op-26")
def test_the_handles_of_a_deleted_queue_are_of_no_use(
    qm: RunningQueueManager, client: Client
) -> None:
    queue = qm.create()
    handle, context = client.open(queue)
    sender, _ = client.open(queue, SEND_ACCESS)
    qm.done(qm.engine.queues.delete_queue(queue))
    assert client.status("rpc_ACPurgeQueue", hQueue=handle) == "MQ_ERROR_INVALID_HANDLE"
    pcc = CACCreateRemoteCursor()
    status = client.status("rpc_ACCreateCursorEx", hQueue=handle, pcc=pcc)
    assert status == "MQ_ERROR_INVALID_HANDLE"
    named = format_name_of(client, handle, 100)
    assert status_name(named.result) == "MQ_ERROR_INVALID_HANDLE"
    assert client.receive(context, receiving_buffer())[0] == "MQ_ERROR_QUEUE_NOT_AVAILABLE"
    assert client.sent(sender, b"x") == "MQ_ERROR_QUEUE_NOT_AVAILABLE"
    assert client.close(handle) == "MQ_OK"


# Cursors


@pytest.mark.conformance("MQMP-op-22", "MQMP-op-c2_3", "MQMP-packet-CACCreateRemoteCursor")
def test_a_cursor_is_created_and_closed(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    handle, _ = client.open(queue)
    other, _ = client.open(queue)
    cursor = client.cursor(handle)
    assert cursor in qm.engine.readers.cursors
    close = "rpc_ACCloseCursor"
    assert client.status(close, hQueue=other, hCursor=cursor) == "MQ_ERROR_INVALID_HANDLE"
    assert client.status(close, hQueue=handle, hCursor=cursor) == "MQ_OK"
    assert client.status(close, hQueue=handle, hCursor=cursor) == "MQ_ERROR_INVALID_HANDLE"
    assert client.status(close, hQueue=handle, hCursor=0x0B) == "MQ_OK"
    assert qm.engine.readers.cursors == {}


# Handles of three types


@pytest.mark.conformance(
    "MQMP-packet-RPC_QUEUE_HANDLE",
    "MQMP-packet-RPC_INT_XACT_HANDLE",
    "MQMP-packet-PCTX_OPENREMOTE_HANDLE_TYPE",
)
def test_a_handle_of_another_type_is_a_mismatch(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    opened = {
        "rpc_ACPurgeQueue": client.open(queue)[0],
        "R_QMAbortTransaction": client.enlist(UOW),
        "R_QMCloseRemoteQueueContext": open_remote(client, queue).pphContext,
    }
    takes = {
        "rpc_ACPurgeQueue": "hQueue",
        "R_QMAbortTransaction": "phIntXact",
        "R_QMCloseRemoteQueueContext": "pphContext",
    }
    for operation, parameter in takes.items():
        for wrong in (handle for of, handle in opened.items() if of != operation):
            with pytest.raises(Fault) as caught:
                client.caller.call(operation, **{parameter: wrong})
            assert caught.value.status == MISMATCH
    for operation, parameter in takes.items():
        client.caller.call(operation, **{parameter: opened[operation]})


def test_users_of_the_machine_without_an_account_are_everyone(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create(security=parse_sddl("O:BAD:(A;;0x4;;;WD)").encode())
    nobody = Client(server.connect(Identity("joe", EVERYONE), LEVEL_PRIVACY, NCALRPC))
    handle, _ = nobody.open(queue, SEND_ACCESS)
    assert nobody.sent(handle, b"one") == "MQ_OK"
