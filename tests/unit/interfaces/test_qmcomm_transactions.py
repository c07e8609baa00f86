"""Remote readers and transactions of qmcomm ([MS-MQMP] 3.1.4.2 to .4, .12 to .16, 3.1.7)."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from rpcqm.adm.enums import RemoteReadState
from rpcqm.base.errors import FaultStatus, HResult, NtStatus
from rpcqm.codec.types.mqmq import XACTUOW
from rpcqm.interfaces._authentication import RemoteReadSecurity
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import (
    ADMINISTRATOR,
    ALICE,
    BOB,
    LEVEL_NONE,
    NOBODY,
    CallServer,
    Fault,
)
from tests.support.rpc.dependent_client import (
    SEND_ACCESS,
    Client,
    body_in,
    create_remote_cursor,
    open_remote,
    receiving_buffer,
    served_clients,
)
from tests.support.rpc.remote_reader import CLIENT, NULL_HANDLE, status_name

ORDERS = r"DIRECT=OS:.\private$\orders"
MISMATCH = FaultStatus.nca_s_fault_context_mismatch
UOW = uuid4().bytes_le


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_clients(qm)


@pytest.fixture
def client(server: CallServer) -> Client:
    return Client(server.connect(ADMINISTRATOR, transport=NCALRPC))


# Remote readers


@pytest.mark.conformance(
    "MQMP-op-2",
    "MQMP-op-4",
    "MQMP-element-RemoteQueueOpenContextHandle",
    "MQMP-packet-PCTX_OPENREMOTE_HANDLE_TYPE",
)
def test_a_remote_reader_gets_a_number_and_a_cursor(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create()
    client = Client(server.connect(ALICE))
    opened = open_remote(client, queue)
    assert opened.result == 0
    assert opened.phQueue == opened.pdwContext == opened.dwpQueue != 0
    descriptor = qm.engine.opening.descriptors[opened.phQueue]
    assert descriptor.remote_read_state is RemoteReadState.OPENED
    cursor = create_remote_cursor(client, opened.phQueue)
    assert cursor.phCursor in descriptor.cursor_collection


@pytest.mark.conformance("MQMP-op-2", "MQMP-op-4", "MQMP-element-RemoteQueueOpenContextHandle")
def test_the_number_is_good_for_its_identity_only(
    qm: RunningQueueManager, server: CallServer
) -> None:
    opened = open_remote(Client(server.connect(ALICE)), qm.create())
    bob = Client(server.connect(BOB))
    refused = create_remote_cursor(bob, opened.phQueue)
    assert status_name(refused.result) == "MQ_ERROR_INVALID_HANDLE"
    again = Client(server.connect(ALICE))
    assert create_remote_cursor(again, opened.phQueue).result == 0
    unknown = create_remote_cursor(again, opened.phQueue ^ 1)
    assert status_name(unknown.result) == "MQ_ERROR_INVALID_HANDLE"


@pytest.mark.conformance("MQMP-op-2")
@pytest.mark.parametrize(
    ("name", "access", "share", "status"),
    [
        (None, 1, 0, "MQ_ERROR_INVALID_PARAMETER"),
        (ORDERS, 2, 0, "MQ_ERROR_INVALID_PARAMETER"),
        (ORDERS, 1, 2, "MQ_ERROR_INVALID_PARAMETER"),
        (f"DL={CLIENT}", 1, 0, "MQ_ERROR_INVALID_PARAMETER"),
        ("MULTICAST=234.1.1.1:80", 1, 0, "MQ_ERROR_INVALID_PARAMETER"),
        ("DIRECT=HTTPS://x/msmq/q", 1, 0, "MQ_ERROR_INVALID_PARAMETER"),
        (r"DIRECT=OS:.\private$\none", 1, 0, "MQ_ERROR_QUEUE_NOT_FOUND"),
    ],
)
def test_what_a_remote_reader_cannot_open_is_refused(
    qm: RunningQueueManager, client: Client, name: Any, access: int, share: int, status: str
) -> None:
    qm.create()
    assert status_name(open_remote(client, name, access, share).result) == status


@pytest.mark.conformance("MQMP-error-0xC0000043", "MQMP-op-3")
def test_an_exclusive_remote_reader_keeps_others_out(
    qm: RunningQueueManager, client: Client
) -> None:
    queue = qm.create()
    opened = open_remote(client, queue, share=1)
    assert open_remote(client, queue).result == NtStatus.STATUS_SHARING_VIOLATION
    assert client.send_open(queue, 1).result == HResult.MQ_ERROR_SHARING_VIOLATION
    closed = client.caller.call("R_QMCloseRemoteQueueContext", pphContext=opened.pphContext)
    assert closed.pphContext == NULL_HANDLE
    assert open_remote(client, queue).result == 0


@pytest.mark.conformance("MQMP-op-3")
def test_closing_leaves_a_queue_that_is_read_already(
    qm: RunningQueueManager, client: Client
) -> None:
    opened = open_remote(client, qm.create())
    descriptor = qm.engine.opening.descriptors[opened.phQueue]
    descriptor.remote_read_state = RemoteReadState.READY_FOR_READ
    client.caller.call("R_QMCloseRemoteQueueContext", pphContext=opened.pphContext)
    assert descriptor.handle in qm.engine.opening.descriptors
    assert create_remote_cursor(client, opened.phQueue).result == 0


@pytest.mark.conformance("MQMP-op-3")
def test_closing_null_does_nothing(client: Client) -> None:
    closed = client.caller.call("R_QMCloseRemoteQueueContext", pphContext=NULL_HANDLE)
    assert closed.pphContext == NULL_HANDLE


@pytest.mark.conformance("MQMP-rundown-PCTX_OPENREMOTE_HANDLE_TYPE")
def test_a_lost_remote_reader_closes_its_queue(qm: RunningQueueManager, server: CallServer) -> None:
    client = Client(server.connect(ALICE))
    opened = open_remote(client, qm.create())
    client.caller.lose()
    assert qm.engine.opening.descriptors == {}
    again = Client(server.connect(ALICE))
    assert create_remote_cursor(again, opened.phQueue).result == HResult.MQ_ERROR_INVALID_HANDLE


# Transactions


@pytest.mark.conformance(
    "MQMP-op-16",
    "MQMP-op-17",
    "MQMP-element-TransactionHandle",
    "MQMP-packet-RPC_INT_XACT_HANDLE",
)
def test_a_committed_transaction_happens_as_one(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create(transactional=True)
    handle, _ = client.open(queue, SEND_ACCESS)
    transaction = client.enlist(UOW)
    uow = XACTUOW(rgb=UOW)
    assert client.sent(handle, b"one", pUow=uow) == "MQ_OK"
    assert client.sent(handle, b"two", pUow=uow) == "MQ_OK"
    assert qm.bodies(queue) == []
    response = client.caller.call("R_QMCommitTransaction", phIntXact=transaction)
    assert (response.result, response.phIntXact) == (0, NULL_HANDLE)
    assert qm.bodies(queue) == [b"one", b"two"]
    with pytest.raises(Fault) as caught:
        client.status("R_QMCommitTransaction", phIntXact=transaction)
    assert caught.value.status == MISMATCH
    assert client.sent(handle, b"three", pUow=uow) == "MQ_ERROR_TRANSACTION_SEQUENCE"


@pytest.mark.conformance("MQMP-op-18")
def test_an_aborted_transaction_does_not_happen(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create(transactional=True)
    _, context = client.open(queue)
    sender, _ = client.open(queue, SEND_ACCESS)
    transaction, uow = client.enlist(UOW), XACTUOW(rgb=UOW)
    with_transaction = qm.engine.transactions.create_transaction(UUID(int=9))
    qm.send(queue, b"old", with_transaction)
    qm.done(qm.engine.transactions.transaction_commit(UUID(int=9)))
    status, buffer = client.receive(context, receiving_buffer(pUow=uow))
    assert (status, body_in(buffer)) == ("MQ_OK", b"old")
    assert client.sent(sender, b"new", pUow=uow) == "MQ_OK"
    response = client.caller.call("R_QMAbortTransaction", phIntXact=transaction)
    assert (response.result, response.phIntXact) == (0, NULL_HANDLE)
    assert qm.bodies(queue) == [b"old"]


@pytest.mark.conformance("MQMP-op-16")
def test_a_transaction_has_an_identifier_of_its_own(
    qm: RunningQueueManager, client: Client
) -> None:
    client.enlist(UOW)
    enlist = "R_QMEnlistInternalTransaction"
    assert client.status(enlist, pUow=XACTUOW(rgb=UOW)) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    nothing = XACTUOW(rgb=bytes(16))
    assert client.status(enlist, pUow=nothing) == "MQ_ERROR_INVALID_PARAMETER"


def test_who_has_not_logged_on_begins_transactions_at_a_supporting_server_only(
    qm: RunningQueueManager,
) -> None:
    server = served_clients(qm, RemoteReadSecurity(allow_unprotected_rpc=True))
    stranger = Client(server.connect(NOBODY, LEVEL_NONE))
    enlist = "R_QMEnlistInternalTransaction"
    transaction = XACTUOW(rgb=UOW)
    assert stranger.status(enlist, pUow=transaction) == "MQ_ERROR_WKS_CANT_SERVE_CLIENT"
    assert not qm.engine.queue_manager.transaction_collection
    qm.engine.queue_manager.supporting_server = True
    assert stranger.status(enlist, pUow=transaction) == "MQ_OK"


@pytest.mark.conformance("MQMP-op-17", "MQMP-op-18")
@pytest.mark.parametrize("operation", ["R_QMCommitTransaction", "R_QMAbortTransaction"])
def test_no_transaction_cannot_end(client: Client, operation: str) -> None:
    assert client.status(operation, phIntXact=NULL_HANDLE) == "MQ_ERROR_INVALID_HANDLE"


@pytest.mark.conformance("MQMP-rundown-RPC_INT_XACT_HANDLE")
def test_a_lost_client_aborts_its_transaction(qm: RunningQueueManager, server: CallServer) -> None:
    queue = qm.create(transactional=True)
    client = Client(server.connect(ALICE, transport=NCALRPC))
    handle, _ = client.open(queue, SEND_ACCESS)
    client.enlist(UOW)
    assert client.sent(handle, b"one", pUow=XACTUOW(rgb=UOW)) == "MQ_OK"
    client.caller.lose()
    assert qm.engine.queue_manager.transaction_collection == {}
    assert qm.bodies(queue) == []


def test_a_commit_under_way_outlives_its_client(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create(transactional=True)
    client = Client(server.connect(ALICE, transport=NCALRPC))
    handle, _ = client.open(queue, SEND_ACCESS)
    transaction = client.enlist(UOW)
    client.sent(handle, b"one", pUow=XACTUOW(rgb=UOW))
    commit = client.caller.send("R_QMCommitTransaction", phIntXact=transaction)
    assert not commit.answered
    client.caller.lose()
    assert qm.bodies(queue) == [b"one"]


@pytest.mark.conformance("MQMP-op-14", "MQMP-op-15")
def test_external_transactions_are_refused(qm: RunningQueueManager, client: Client) -> None:
    whereabouts = client.caller.call("R_QMGetTmWhereabouts", cbBufSize=64)
    assert whereabouts.result == HResult.MQ_ERROR_DTC_CONNECT
    fields = {"pUow": XACTUOW(rgb=UOW), "cbCookie": 4, "pbCookie": b"abcd"}
    enlist = "R_QMEnlistTransaction"
    assert client.status(enlist, **fields) == "MQ_ERROR_DTC_CONNECT"
    qm.engine.transactions.create_transaction(UUID(bytes_le=UOW), BOB.sid)
    assert client.status(enlist, **fields) == "MQ_ERROR_DTC_CONNECT"
    qm.done(qm.engine.transactions.transaction_abort(UUID(bytes_le=UOW)))
    qm.engine.transactions.create_transaction(UUID(bytes_le=UOW), ADMINISTRATOR.sid)
    assert client.status(enlist, **fields) == "MQ_OK"


def test_a_transaction_of_somebody_else_is_unknown(qm: RunningQueueManager, client: Client) -> None:
    """Whoever knows its identifier can neither send nor receive in it (G87)."""
    queue = qm.create(transactional=True)
    qm.engine.transactions.create_transaction(UUID(bytes_le=UOW), BOB.sid)
    _, context = client.open(queue)
    sender, _ = client.open(queue, SEND_ACCESS)
    uow = XACTUOW(rgb=UOW)
    unknown = "MQ_ERROR_TRANSACTION_SEQUENCE"
    assert client.sent(sender, b"new", pUow=uow) == unknown
    assert client.receive(context, receiving_buffer(pUow=uow))[0] == unknown
    qm.done(qm.engine.transactions.transaction_abort(UUID(bytes_le=UOW)))
    client.enlist(UOW)
    assert client.sent(sender, b"new", pUow=uow) == "MQ_OK"
