"""What administrators are told and what they order ([MS-MQMR] 3.1.4)."""

import os
from typing import Any
from uuid import UUID

import pytest

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.adm.queue import (
    ConnectionHistoryEntry,
    IncomingTransactionalTransferInfo,
    OutgoingQueue,
    OutgoingTransferInfo,
    Queue,
)
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.packet.types import SequenceInfo
from rpcqm.codec.properties import (
    NULL_VARIANT,
    ManagementMachineProperty,
    ManagementQueueProperty,
    PropVariant,
    VarType,
)
from rpcqm.codec.types.mqvalues import ConnectionStatus, QueueAccessType, QueueShareMode
from rpcqm.codec.types.qmmgmt import MGMT_OBJECT, MGMT_OBJECT_u
from rpcqm.interfaces import qmmgmt
from rpcqm.rpc.interface_registry import NCACN_IP_TCP
from rpcqm.service import interfaces
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.administrator import Administrator, queue_object
from tests.support.rpc.callers import ALICE, CallServer, Served
from tests.support.rpc.remote_reader import CLIENT

M, P = ManagementMachineProperty, ManagementQueueProperty
MACHINE = MGMT_OBJECT(type=1, u=MGMT_OBJECT_u(1, 0))
SESSION = MGMT_OBJECT(type=3, u=MGMT_OBJECT_u(3, 0))
ELSEWHERE = r"DIRECT=OS:elsewhere\private$\orders"
INCOMING = UUID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return CallServer(qm, Served("qmmgmt", interfaces.qmmgmt(qm.engine), qmmgmt.POLICY))


@pytest.fixture
def administrator(server: CallServer) -> Administrator:
    return Administrator(server)


@pytest.fixture
def outgoing(qm: RunningQueueManager) -> OutgoingQueue:
    qm.open(ELSEWHERE, QueueAccessType.SEND_ACCESS)
    (queue,) = qm.engine.outgoing.list()
    return queue


# Who, and what about


@pytest.mark.conformance("MQMR-rule-3", "MQMR-rule-2.1", "MQMR-op-0", "MQMR-op-1")
def test_only_administrators_are_served(qm: RunningQueueManager, server: CallServer) -> None:
    queue = qm.create()
    alice = Administrator(server, identity=ALICE, transport=NCACN_IP_TCP)
    assert alice.information(MACHINE, M.PROPID_MGMT_MSMQ_TYPE) == "MQ_ERROR_ACCESS_DENIED"
    assert alice.act(MACHINE, "DISCONNECT") == "MQ_ERROR_ACCESS_DENIED"
    assert qm.engine.queue_manager.connection_active
    root = Administrator(server, transport=NCACN_IP_TCP)
    assert root.of_queue(queue, P.PROPID_MGMT_QUEUE_LOCATION).value == "LOCAL"


@pytest.mark.conformance("MQMR-rule-2.2")
def test_only_ndr_is_offered() -> None:
    assert load("qmmgmt").syntaxes == (TransferSyntax.NDR,)


@pytest.mark.conformance("MQMR-op-0", "MQMR-object-MGMT_SESSION")
def test_sessions_are_refused(administrator: Administrator) -> None:
    refused = "MQ_ERROR_INVALID_PARAMETER"
    assert administrator.information(SESSION, 1) == refused
    for action in ("CONNECT", "PAUSE"):
        assert administrator.act(SESSION, action) == refused


@pytest.mark.conformance("MQMR-op-0")
def test_a_property_of_another_kind_of_object_is_illegal(
    qm: RunningQueueManager, administrator: Administrator
) -> None:
    illegal = "MQ_ERROR_ILLEGAL_PROPID"
    assert administrator.information(MACHINE, M.PROPID_MGMT_MSMQ_TYPE, 7) == illegal
    subject = queue_object(qm.create())
    assert administrator.information(subject, 1, 28) == illegal


@pytest.mark.conformance("MQMR-op-0", "MQMR-object-MGMT_QUEUE")
def test_an_unknown_queue_is_refused(administrator: Administrator) -> None:
    for name in (r"DIRECT=OS:.\private$\none", ELSEWHERE, f"PUBLIC={CLIENT}"):
        status = administrator.information(queue_object(name), P.PROPID_MGMT_QUEUE_TYPE)
        assert status == "MQ_ERROR_QUEUE_NOT_FOUND"


@pytest.mark.conformance("MQMR-op-0")
def test_looking_does_not_open_a_queue(
    qm: RunningQueueManager, administrator: Administrator
) -> None:
    queue = qm.create()
    qm.open(queue, share_mode=QueueShareMode.DENY_RECEIVE)
    assert administrator.of_queue(queue, P.PROPID_MGMT_QUEUE_LOCATION).value == "LOCAL"
    other = qm.create(r"private$\other")
    administrator.of_queue(other, P.PROPID_MGMT_QUEUE_MESSAGE_COUNT)
    assert not other.active


# The machine


@pytest.mark.conformance("MQMR-object-MGMT_MACHINE", "MQMR-op-0")
@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        pytest.param(
            getattr(M, f"PROPID_MGMT_MSMQ_{name}"),
            value,
            marks=pytest.mark.conformance(f"MQMR-prop-PROPID_MGMT_MSMQ_{name}"),
        )
        for name, value in (
            (
                "ACTIVEQUEUES",
                (r"DIRECT=OS:WORKSTATION\private$\open", r"DIRECT=OS:elsewhere\private$\orders"),
            ),
            (
                "PRIVATEQ",
                (r"WORKSTATION\private$\orders", r"WORKSTATION\private$\open"),
            ),
            ("DSSERVER", None),
            ("CONNECTED", "CONNECTED"),
            ("TYPE", "rpcqm 1.2.3 Linux"),
        )
    ],
)
def test_the_machine_is_described(
    qm: RunningQueueManager,
    administrator: Administrator,
    identifier: ManagementMachineProperty,
    expected: Any,
) -> None:
    qm.engine.queue_manager.queue_manager_version = "1.2.3"
    qm.engine.queue_manager.operating_system_version = "Linux"
    qm.subqueue(qm.create(), "late")
    for descriptor in list(qm.engine.opening.descriptors.values()):
        qm.engine.opening.close_queue(descriptor)
    qm.open(qm.create(r"private$\open"))
    qm.open(ELSEWHERE, QueueAccessType.SEND_ACCESS)
    (variant,) = administrator.information(MACHINE, identifier)
    wanted = NULL_VARIANT if expected is None else identifier.variant(expected)
    assert variant == wanted


@pytest.mark.conformance("MQMR-prop-PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES")
def test_the_bytes_of_all_queues_are_counted(
    qm: RunningQueueManager, administrator: Administrator
) -> None:
    queues = [qm.create(rf"private$\q{number}") for number in range(3)]
    for queue in queues:
        qm.send(queue, b"x" * 1000)
    (variant,) = administrator.information(MACHINE, M.PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES)
    assert variant.vt is VarType.VT_I8
    assert variant.value == sum(queue.total_bytes for queue in queues) > 3000


@pytest.mark.conformance("MQMR-prop-PROPID_MGMT_MSMQ_DSSERVER")
def test_the_first_directory_server_is_told(
    qm: RunningQueueManager, administrator: Administrator
) -> None:
    qm.engine.queue_manager.directory_server_list = ["DC1", "DC2"]
    (variant,) = administrator.information(MACHINE, M.PROPID_MGMT_MSMQ_DSSERVER)
    assert variant.value == r"\\DC1"


# Local queues


def filled(qm: RunningQueueManager) -> Queue:
    """A queue with two messages, one more in its journal, and a subqueue."""
    queue = qm.create(transactional=False, journaling=True)
    for body in (b"one", b"two", b"three"):
        qm.send(queue, body)
    descriptor = qm.open(queue)
    qm.receive(descriptor)
    qm.subqueue(queue, "Late")
    queue.incoming_transactional_transfer_info_collection.append(
        IncomingTransactionalTransferInfo(queue, ELSEWHERE, INCOMING, 1 << 40, 7, 1_700_000_000, 2)
    )
    return queue


def sources(*columns: tuple[VarType, Any]) -> tuple[PropVariant, ...]:
    return tuple(PropVariant(vt, (value,)) for vt, value in columns)


@pytest.mark.conformance("MQMR-op-0", "MQMR-object-MGMT_QUEUE")
@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        pytest.param(
            getattr(P, f"PROPID_MGMT_QUEUE_{name}"),
            value,
            marks=pytest.mark.conformance(f"MQMR-prop-PROPID_MGMT_QUEUE_{name}"),
        )
        for name, value in (
            ("PATHNAME", r"WORKSTATION\private$\orders"),
            ("FORMATNAME", r"DIRECT=OS:WORKSTATION\private$\orders"),
            ("TYPE", "PRIVATE"),
            ("LOCATION", "LOCAL"),
            ("XACT", "NO"),
            ("FOREIGN", "NO"),
            ("MESSAGE_COUNT", 2),
            ("JOURNAL_MESSAGE_COUNT", 1),
            ("STATE", "LOCAL CONNECTION"),
            ("SUBQUEUE_COUNT", 1),
            ("SUBQUEUE_NAMES", ("Late",)),
            (
                "EOD_SOURCE_INFO",
                sources(
                    (VarType.VT_VECTOR_LPWSTR, ELSEWHERE),
                    (VarType.VT_VECTOR_CLSID, INCOMING),
                    (VarType.VT_VECTOR_UI8, 1 << 40),
                    (VarType.VT_VECTOR_UI4, 7),
                    (VarType.VT_VECTOR_I4, 1_700_000_000),
                    (VarType.VT_VECTOR_UI4, 2),
                ),
            ),
        )
    ],
)
def test_a_local_queue_is_described(
    qm: RunningQueueManager,
    administrator: Administrator,
    identifier: ManagementQueueProperty,
    expected: Any,
) -> None:
    assert administrator.of_queue(filled(qm), identifier) == identifier.variant(expected)


@pytest.mark.conformance("MQMR-prop-PROPID_MGMT_QUEUE_MESSAGE_COUNT")
def test_a_message_that_somebody_holds_is_counted(
    qm: RunningQueueManager, administrator: Administrator
) -> None:
    queue = filled(qm)
    qm.lock(qm.open(queue))
    assert administrator.of_queue(queue, P.PROPID_MGMT_QUEUE_MESSAGE_COUNT).value == 2


@pytest.mark.conformance(
    "MQMR-prop-PROPID_MGMT_QUEUE_BYTES_IN_QUEUE", "MQMR-prop-PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL"
)
def test_the_bytes_of_a_queue_and_its_journal_are_counted(
    qm: RunningQueueManager, administrator: Administrator
) -> None:
    queue = filled(qm)
    journal = queue.journal_queue_reference
    assert journal is not None
    in_queue = administrator.of_queue(queue, P.PROPID_MGMT_QUEUE_BYTES_IN_QUEUE)
    in_journal = administrator.of_queue(queue, P.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL)
    assert in_queue == PropVariant(VarType.VT_UI4, queue.total_bytes)
    assert in_journal == PropVariant(VarType.VT_UI4, journal.total_bytes)
    assert queue.total_bytes > journal.total_bytes > 0
    queue.journaling = False
    assert administrator.of_queue(queue, P.PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL).value == 0


def test_what_only_outgoing_queues_have_is_null_for_others(
    qm: RunningQueueManager, administrator: Administrator
) -> None:
    queue = qm.create()
    for identifier in TRANSFER:
        assert administrator.of_queue(queue, identifier) == NULL_VARIANT
    for identifier in (P.PROPID_MGMT_QUEUE_NEXTHOPS, P.PROPID_MGMT_QUEUE_CONNECTION_HISTORY):
        assert administrator.of_queue(queue, identifier) == NULL_VARIANT


# Outgoing queues


@pytest.mark.conformance(
    "MQMR-prop-PROPID_MGMT_QUEUE_LOCATION",
    "MQMR-prop-PROPID_MGMT_QUEUE_FORMATNAME",
    "MQMR-prop-PROPID_MGMT_QUEUE_XACT",
    "MQMR-prop-PROPID_MGMT_QUEUE_TYPE",
)
def test_an_outgoing_queue_is_described(
    outgoing: OutgoingQueue, administrator: Administrator
) -> None:
    expected = {
        P.PROPID_MGMT_QUEUE_PATHNAME: None,
        P.PROPID_MGMT_QUEUE_FORMATNAME: ELSEWHERE,
        P.PROPID_MGMT_QUEUE_LOCATION: "REMOTE",
        P.PROPID_MGMT_QUEUE_XACT: "UNKNOWN",
        P.PROPID_MGMT_QUEUE_TYPE: "PRIVATE",
    }
    for identifier, value in expected.items():
        assert administrator.of_queue(ELSEWHERE, identifier).value == value
    outgoing.multicast = True
    assert administrator.of_queue(ELSEWHERE, P.PROPID_MGMT_QUEUE_TYPE).value == "MULTICAST"


@pytest.mark.conformance("MQMR-prop-PROPID_MGMT_QUEUE_STATE")
@pytest.mark.parametrize(
    ("state", "text"),
    [
        (OutgoingQueueState.CONNECTED, "CONNECTED"),
        (OutgoingQueueState.DISCONNECTED, "DISCONNECTED"),
        (OutgoingQueueState.DISCONNECTING, "DISCONNECTING"),
        (OutgoingQueueState.INACTIVE, "INACTIVE"),
        (OutgoingQueueState.LOCKED, "LOCKED"),
        (OutgoingQueueState.NEED_VALIDATION, "NEED VALIDATION"),
        (OutgoingQueueState.WAITING, "WAITING"),
        (OutgoingQueueState.ON_HOLD, "ONHOLD"),
    ],
)
def test_the_state_of_an_outgoing_queue_is_told(
    outgoing: OutgoingQueue, administrator: Administrator, state: OutgoingQueueState, text: str
) -> None:
    outgoing.state = state
    assert administrator.of_queue(ELSEWHERE, P.PROPID_MGMT_QUEUE_STATE).value == text


@pytest.mark.conformance("MQMR-prop-PROPID_MGMT_QUEUE_NEXTHOPS")
def test_the_next_hops_are_told_of_a_connected_or_waiting_queue(
    outgoing: OutgoingQueue, administrator: Administrator
) -> None:
    outgoing.next_hops = ["IP=192.0.2.1", "IP=192.0.2.2"]
    hops = P.PROPID_MGMT_QUEUE_NEXTHOPS
    for state in (OutgoingQueueState.CONNECTED, OutgoingQueueState.WAITING):
        outgoing.state = state
        assert administrator.of_queue(ELSEWHERE, hops).value == ("IP=192.0.2.1", "IP=192.0.2.2")
    outgoing.state = OutgoingQueueState.INACTIVE
    assert administrator.of_queue(ELSEWHERE, hops) == NULL_VARIANT
    outgoing.state, outgoing.multicast = OutgoingQueueState.CONNECTED, True
    assert administrator.of_queue(ELSEWHERE, hops).value == (ELSEWHERE,)


def transfer_info(queue: OutgoingQueue) -> OutgoingTransferInfo:
    return OutgoingTransferInfo(
        queue,
        eod_first_non_ack=SequenceInfo(1, 2, 3),
        eod_last_ack=SequenceInfo(4, 5, 6),
        eod_last_ack_count=7,
        eod_last_ack_time=8,
        eod_last_non_ack=SequenceInfo(9, 10, 11),
        eod_next_seq=SequenceInfo(12, 13, 14),
        eod_no_ack_count=15,
        eod_no_read_count=16,
        eod_resend_count=17,
        eod_resend_interval=18,
        eod_resend_time=19,
    )


TRANSFER = {
    P.PROPID_MGMT_QUEUE_EOD_LAST_ACK: SequenceInfo(4, 5, 6).encode(),
    P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME: 8,
    P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT: 7,
    P.PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK: SequenceInfo(1, 2, 3).encode(),
    P.PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK: SequenceInfo(9, 10, 11).encode(),
    P.PROPID_MGMT_QUEUE_EOD_NEXT_SEQ: SequenceInfo(12, 13, 14).encode(),
    P.PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT: 16,
    P.PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT: 15,
    P.PROPID_MGMT_QUEUE_EOD_RESEND_TIME: 19,
    P.PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL: 18,
    P.PROPID_MGMT_QUEUE_EOD_RESEND_COUNT: 17,
}


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        pytest.param(
            identifier, value, marks=pytest.mark.conformance(f"MQMR-prop-{identifier.name}")
        )
        for identifier, value in TRANSFER.items()
    ],
)
def test_the_transfer_out_of_a_queue_is_described(
    outgoing: OutgoingQueue,
    administrator: Administrator,
    identifier: ManagementQueueProperty,
    expected: Any,
) -> None:
    outgoing.outgoing_transfer_info_reference = transfer_info(outgoing)
    assert administrator.of_queue(ELSEWHERE, identifier) == identifier.variant(expected)


@pytest.mark.conformance(
    "MQMR-prop-PROPID_MGMT_QUEUE_EOD_LAST_ACK", "MQDMPR-element-OutgoingTransferInfo"
)
def test_a_queue_that_was_never_sent_from_tells_zeros(
    outgoing: OutgoingQueue, administrator: Administrator
) -> None:
    found = {each: administrator.of_queue(ELSEWHERE, each).value for each in TRANSFER}
    assert found == {each: _zero(each) for each in TRANSFER}


def _zero(identifier: ManagementQueueProperty) -> Any:
    """Of an acknowledgement and of times that never were there is nothing."""
    if identifier in (
        P.PROPID_MGMT_QUEUE_EOD_LAST_ACK,
        P.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME,
        P.PROPID_MGMT_QUEUE_EOD_RESEND_TIME,
    ):
        return None
    return bytes(16) if identifier.vartype is VarType.VT_BLOB else 0


@pytest.mark.conformance("MQMR-prop-PROPID_MGMT_QUEUE_CONNECTION_HISTORY")
def test_the_history_of_connections_is_four_arrays(
    outgoing: OutgoingQueue, administrator: Administrator
) -> None:
    outgoing.connection_history = [
        ConnectionHistoryEntry(ConnectionStatus.IN_PROCESS, 1_700_000_000),
        ConnectionHistoryEntry(
            ConnectionStatus.DNS_FAILURE, 1_700_000_001, 0xC00E0001, ("192.0.2.1", "192.0.2.2")
        ),
    ]
    history = administrator.of_queue(ELSEWHERE, P.PROPID_MGMT_QUEUE_CONNECTION_HISTORY)
    assert history.value == (
        PropVariant(VarType.VT_VECTOR_UI4, (0, 0x80000008)),
        PropVariant(VarType.VT_VECTOR_I4, (1_700_000_000, 1_700_000_001)),
        PropVariant(VarType.VT_VECTOR_I4, (0, 0xC00E0001 - (1 << 32))),
        PropVariant(
            VarType.VT_VECTOR_VARIANT,
            (
                PropVariant(VarType.VT_VECTOR_LPWSTR, ()),
                PropVariant(VarType.VT_VECTOR_LPWSTR, ("192.0.2.1", "192.0.2.2")),
            ),
        ),
    )


def test_every_status_of_a_connection_has_a_number() -> None:
    assert sorted(ConnectionStatus) == [0, 1, 2, *range(0x80000000, 0x8000000E)]


# Actions


@pytest.mark.conformance(
    "MQMR-op-1",
    "MQMR-action-CONNECT",
    "MQMR-action-DISCONNECT",
    "MQMR-prop-PROPID_MGMT_MSMQ_CONNECTED",
)
def test_the_machine_goes_off_and_on_line(
    qm: RunningQueueManager, administrator: Administrator
) -> None:
    connected = M.PROPID_MGMT_MSMQ_CONNECTED
    assert administrator.act(MACHINE, "Disconnect") == "MQ_OK"
    assert not qm.engine.queue_manager.connection_active
    assert administrator.information(MACHINE, connected)[0].value == "DISCONNECTED"
    assert administrator.act(MACHINE, "connect") == "MQ_OK"
    assert administrator.information(MACHINE, connected)[0].value == "CONNECTED"


@pytest.mark.conformance("MQMR-action-TIDY")
def test_tidying_up_gives_back_space_and_removes_no_message(
    qm: RunningQueueManager, administrator: Administrator
) -> None:
    kept, purged = qm.create(), qm.create(r"private$\purged")
    qm.send(kept, b"one")
    for _ in range(8):
        qm.send(purged, os.urandom(256 * 1024))
    assert administrator.act(MACHINE, "TIDY") == "MQ_OK"
    qm.done(qm.engine.queues.purge_queue(purged))
    before = qm.engine.store.disk_bytes()
    assert administrator.act(MACHINE, "TIDY") == "MQ_OK"
    assert before - qm.engine.store.disk_bytes() > 1024 * 1024
    assert qm.bodies(kept) == [b"one"]


@pytest.mark.conformance("MQMR-action-PAUSE", "MQMR-action-RESUME")
def test_an_outgoing_queue_is_paused_and_resumed(
    outgoing: OutgoingQueue, administrator: Administrator
) -> None:
    for action, state in (
        ("PAUSE", OutgoingQueueState.ON_HOLD),
        ("RESUME", OutgoingQueueState.INACTIVE),
    ):
        assert administrator.act(queue_object(ELSEWHERE), action) == "MQ_OK"
        assert outgoing.state is state


@pytest.mark.conformance("MQMR-op-1")
def test_actions_that_make_no_sense_are_refused(
    qm: RunningQueueManager, outgoing: OutgoingQueue, administrator: Administrator
) -> None:
    refused = "MQ_ERROR_INVALID_PARAMETER"
    local = queue_object(qm.create())
    for subject, action in (
        (MACHINE, "DANCE"),
        (MACHINE, "PAUSE"),
        (queue_object(ELSEWHERE), "TIDY"),
        (queue_object(ELSEWHERE), ""),
        (local, "PAUSE"),
        (local, "EOD_RESEND"),
    ):
        assert administrator.act(subject, action) == refused
    unknown = queue_object(r"DIRECT=OS:.\private$\none")
    assert administrator.act(unknown, "PAUSE") == "MQ_ERROR_QUEUE_NOT_FOUND"


@pytest.mark.conformance("MQMR-action-EOD_RESEND")
def test_the_protocol_that_sends_is_told_to_resend(
    qm: RunningQueueManager, outgoing: OutgoingQueue, administrator: Administrator
) -> None:
    resent: list[OutgoingQueue] = []
    qm.engine.outgoing.resend_hooks.append(resent.append)
    assert administrator.act(queue_object(ELSEWHERE), "eod_resend") == "MQ_OK"
    assert resent == [outgoing]


def test_nothing_can_be_resent_without_a_protocol_that_sends(
    outgoing: OutgoingQueue, administrator: Administrator
) -> None:
    status = administrator.act(queue_object(ELSEWHERE), "EOD_RESEND")
    assert status == "MQ_ERROR_UNSUPPORTED_OPERATION"
