"""Receiving by qmcomm2 ([MS-MQMP] 3.1.5.3), and what becomes of the message (3.1.1.11)."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from rpcqm.codec.interface import NULL
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import SenderIdentifierType
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqmq import OBJECTID, XACTUOW
from rpcqm.codec.types.qmcomm import CACTransferBufferV2
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE, BOB, CallServer
from tests.support.rpc.dependent_client import (
    PEEK_ACCESS,
    SEND_ACCESS,
    Client,
    body_in,
    receiving_buffer,
    sending_buffer,
    served_clients,
)

INFINITE = 0xFFFFFFFF
PEEK_CURRENT, PEEK_NEXT = 0x80000000, 0x80000001
CONNECTOR = UUID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")
RESPONSE = FormatName.parse(r"DIRECT=OS:elsewhere\private$\answers")
ADMINISTRATION = FormatName.parse(r"DIRECT=TCP:192.0.2.9\private$\acks")

FULL: dict[str, Any] = {
    "label": "Жx",
    "extension": b"more",
    "priority": 5,
    "body_type": 8,
    "application_tag": 77,
    "correlation_identifier": MessageIdentifier(CONNECTOR, 9),
    "acknowledgements_requested": 0x0E,
    "administration_queue_format_name": ADMINISTRATION,
    "response_queue_format_name": RESPONSE,
    "positive_journaling_requested": True,
    "connector_type_identifier": CONNECTOR,
    "time_to_reach_queue": 600,
    "time_to_be_received": 300,
    "sender_identifier_type": SenderIdentifierType.SID,
    "sender_identifier": bytes(range(12)),
    "sender_certificate": b"certificate",
    "symmetric_key": b"key",
    "signature": b"signed",
    "hash_algorithm": 0x8004,
    "encryption_algorithm": 0x6801,
    "privacy_level": 3,
    "authentication_provider_type": 3,
    "authentication_provider_name": "Provider",
    "tracing_requested": True,
}
"""Attributes of a message that has everything."""


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_clients(qm)


@pytest.fixture
def client(server: CallServer) -> Client:
    return Client(server.connect(ALICE, transport=NCALRPC))


# Reading


@pytest.mark.conformance("MQMP-op-c2_2")
def test_a_received_message_is_gone_for_good(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    qm.send(queue, b"two")
    _, context = client.open(queue)
    call = client.start_receive(context, receiving_buffer())
    assert not call.answered
    client.caller.settle()
    assert body_in(call.result().ptb) == b"one"
    qm.restart()
    assert qm.bodies(qm.find()) == [b"two"]


@pytest.mark.conformance("MQMP-op-c2_2")
def test_a_peeked_message_stays(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    _, context = client.open(queue, PEEK_ACCESS)
    for _ in range(2):
        status, buffer = client.receive(context, receiving_buffer(action=PEEK_CURRENT))
        assert (status, body_in(buffer)) == ("MQ_OK", b"one")


@pytest.mark.conformance("MQMP-op-c2_2")
def test_a_receive_waits_for_a_message(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    _, context = client.open(queue)
    call = client.start_receive(context, receiving_buffer(timeout=1000))
    qm.advance(999)
    client.caller.settle()
    assert not call.answered
    qm.send(queue, b"late")
    client.caller.settle()
    assert body_in(call.result().ptb) == b"late"
    assert qm.bodies(queue) == []


@pytest.mark.conformance("MQMP-op-c2_2")
@pytest.mark.parametrize("action", [0, PEEK_CURRENT])
def test_a_wait_ends_with_its_time(qm: RunningQueueManager, client: Client, action: int) -> None:
    _, context = client.open(qm.create())
    assert client.receive(context, receiving_buffer(action=action))[0] == "MQ_ERROR_IO_TIMEOUT"
    call = client.start_receive(context, receiving_buffer(action=action, timeout=1000))
    assert not call.answered
    qm.advance(1000)
    client.caller.settle()
    assert call.result().result == 0xC00E001B


def test_a_client_that_goes_while_it_waits_takes_nothing(
    qm: RunningQueueManager, server: CallServer
) -> None:
    queue = qm.create()
    caller = server.connect(ALICE, transport=NCALRPC)
    other = Client(server.connect(ALICE, transport=NCALRPC, group_id=caller.group_id))
    client = Client(caller)
    _, context = client.open(queue)
    client.start_receive(context, receiving_buffer(timeout=INFINITE))
    client.start_receive(context, receiving_buffer(timeout=INFINITE, action=PEEK_CURRENT))
    caller.lose()
    assert queue.waiting_receives == queue.waiting_peeks == {}
    qm.send(queue, b"one")
    status, buffer = other.receive(context, receiving_buffer())
    assert (status, body_in(buffer)) == ("MQ_OK", b"one")


# Cursors


@pytest.mark.conformance("MQMP-op-c2_2", "MQMP-op-c2_3")
def test_a_cursor_walks_through_the_queue(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    for body in (b"one", b"two", b"three"):
        qm.send(queue, body)
    handle, context = client.open(queue)
    cursor = client.cursor(handle)

    def read(action: int) -> bytes | str:
        status, buffer = client.receive(context, receiving_buffer(action=action, cursor=cursor))
        return body_in(buffer) if status == "MQ_OK" else status

    assert read(PEEK_NEXT) == "MQ_ERROR_ILLEGAL_CURSOR_ACTION"
    assert read(PEEK_CURRENT) == b"one"
    assert read(PEEK_NEXT) == b"two"
    assert read(0) == b"two"
    assert read(PEEK_CURRENT) == b"three"
    assert qm.bodies(queue) == [b"one", b"three"]


@pytest.mark.conformance("MQMP-op-c2_2")
@pytest.mark.parametrize("peeked", [True, False])
def test_a_small_buffer_does_not_move_the_cursor(
    qm: RunningQueueManager, client: Client, peeked: bool
) -> None:
    queue = qm.create()
    qm.send(queue, b"first")
    qm.send(queue, b"second")
    handle, context = client.open(queue)
    cursor = client.cursor(handle)
    if peeked:
        client.receive(context, receiving_buffer(action=PEEK_CURRENT, cursor=cursor))
    status, _ = client.receive(context, receiving_buffer(2, cursor=cursor))
    assert status == "MQ_ERROR_BUFFER_OVERFLOW"
    status, buffer = client.receive(context, receiving_buffer(cursor=cursor))
    assert (status, body_in(buffer)) == ("MQ_OK", b"first")


# Refusals


@pytest.mark.conformance("MQMP-op-c2_2", "MQMP-packet-TRANSFER_TYPE")
@pytest.mark.parametrize(
    ("buffer", "status"),
    [
        (sending_buffer(b"x"), "MQ_ERROR_INVALID_PARAMETER"),
        (receiving_buffer(action=1), "MQ_ERROR_INVALID_PARAMETER"),
        (receiving_buffer(action=0x40000010), "MQ_ERROR_INVALID_PARAMETER"),
        (receiving_buffer(cursor=5), "MQ_ERROR_INVALID_HANDLE"),
        (receiving_buffer(action=PEEK_NEXT), "MQ_ERROR_ILLEGAL_CURSOR_ACTION"),
        (
            receiving_buffer(pUow=XACTUOW(rgb=b"unknown-unit-of-")),
            "MQ_ERROR_TRANSACTION_SEQUENCE",
        ),
    ],
)
def test_a_buffer_that_breaks_a_rule_is_refused(
    qm: RunningQueueManager, client: Client, buffer: CACTransferBufferV2, status: str
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    _, context = client.open(queue)
    assert client.receive(context, buffer)[0] == status
    assert qm.bodies(queue) == [b"one"]


@pytest.mark.conformance("MQMP-op-c2_2")
def test_what_a_queue_was_opened_for_matters(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    _, sending = client.open(queue, SEND_ACCESS)
    _, peeking = client.open(queue, PEEK_ACCESS)
    denied = "MQ_ERROR_ACCESS_DENIED"
    assert client.receive(sending, receiving_buffer(action=PEEK_CURRENT))[0] == denied
    assert client.receive(peeking, receiving_buffer())[0] == denied
    assert qm.bodies(queue) == [b"one"]


@pytest.mark.conformance(
    "MQMP-op-c2_2", "MQMP-element-LocalQueueContextHandle", "MQMP-packet-RPC_QUEUE_HANDLE"
)
def test_the_number_of_a_queue_is_good_for_who_opened_it(
    qm: RunningQueueManager, server: CallServer, client: Client
) -> None:
    queue = qm.create()
    qm.send(queue, b"one")
    handle, context = client.open(queue)
    bob = Client(server.connect(BOB, transport=NCALRPC))
    again = Client(server.connect(ALICE, transport=NCALRPC))
    assert bob.receive(context, receiving_buffer())[0] == "MQ_ERROR_INVALID_HANDLE"
    assert again.receive(context ^ 1, receiving_buffer())[0] == "MQ_ERROR_INVALID_HANDLE"
    assert again.receive(context, receiving_buffer(action=PEEK_CURRENT))[0] == "MQ_OK"
    assert client.close(handle) == "MQ_OK"
    assert again.receive(context, receiving_buffer())[0] == "MQ_ERROR_INVALID_HANDLE"


# Numbers and identifiers


@pytest.mark.conformance(
    "MQMP-rule-3.1.1.11",
    "MQMP-op-c2_2",
    "MQMP-packet-CACTransferBufferV1",
    "MQMP-packet-CACTransferBufferV2",
)
def test_every_number_that_is_asked_for_is_told(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    message = qm.compose(queue, b"body", **FULL)
    sent = qm.clock.now() // 1000
    qm.advance(10_000)
    qm.done(qm.engine.messages.enqueue_message(queue, message))
    qm.advance(20_000)
    identifier = message.attributes.identifier
    expected: dict[str, Any] = {
        "pClass": 0,
        "pSentTime": sent,
        "pArrivedTime": sent + 10,
        "pPriority": 5,
        "pDelivery": 1,
        "pAcknowledge": 0x0E,
        "pAuditing": 2,
        "pApplicationTag": 77,
        "pulRelativeTimeToQueue": 600,
        "pulRelativeTimeToLive": 270,
        "pTrace": 1,
        "pulSenderIDType": 1,
        "pulPrivLevel": 3,
        "pAuthenticated": 0,
        "pulHashAlg": 0x8004,
        "pulEncryptAlg": 0x6801,
        "pulProvType": 3,
        "pulBodyType": 8,
        "pulVersion": 0x10,
        "ppMessageID": OBJECTID(
            Lineage=identifier.queue_manager_guid, Uniquifier=identifier.ordinal
        ),
        "ppCorrelationID": MessageIdentifier(CONNECTOR, 9).encode(),
        "ppSrcQMID": qm.engine.queue_manager.identifier,
        "ppConnectorType": CONNECTOR,
    }
    asked = {name: _blank(value) for name, value in expected.items()}
    _, context = client.open(queue)
    status, buffer = client.receive(context, receiving_buffer(**asked))
    assert status == "MQ_OK"
    assert {name: getattr(buffer.old, name) for name in expected} == expected


def _blank(value: Any) -> Any:
    """A value of the same form with nothing in it."""
    if isinstance(value, OBJECTID):
        return OBJECTID(Lineage=UUID(int=0))
    if isinstance(value, UUID):
        return UUID(int=0)
    return bytes(20) if isinstance(value, bytes) else 1


@pytest.mark.conformance("MQMP-op-c2_2")
def test_what_came_as_null_stays_null(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    qm.send(queue, b"body", **FULL)
    before = receiving_buffer(None)
    before.old.ppMessageID = before.old.ppConnectorType = NULL
    _, context = client.open(queue)
    status, after = client.receive(context, before)
    assert status == "MQ_OK"
    assert after == before


@pytest.mark.conformance("MQMP-op-c2_2", "MQMP-rule-3.1.1.11")
def test_a_plain_message_has_no_connector_and_no_transaction(
    qm: RunningQueueManager, client: Client
) -> None:
    queue = qm.create()
    qm.send(queue, b"body")
    nothing = OBJECTID(Lineage=UUID(int=0), Uniquifier=7)
    buffer = receiving_buffer(ppConnectorType=CONNECTOR, pulRelativeTimeToLive=1)
    buffer.pbFirstInXact = buffer.pbLastInXact = 1
    buffer.ppXactID = nothing
    _, context = client.open(queue)
    _, after = client.receive(context, buffer)
    assert after.old.ppConnectorType == UUID(int=0)
    assert after.old.pulRelativeTimeToLive == INFINITE
    assert (after.pbFirstInXact, after.pbLastInXact) == (0, 0)
    assert after.ppXactID == OBJECTID(Lineage=UUID(int=0), Uniquifier=0)


@pytest.mark.conformance("MQMP-op-c2_2", "MQMP-rule-3.1.1.11", "MQMP-packet-CACTransferBufferV2")
def test_a_message_of_a_transaction_tells_its_place(
    qm: RunningQueueManager, client: Client
) -> None:
    queue = qm.create(transactional=True)
    identifier = uuid4()
    transaction = qm.engine.transactions.create_transaction(identifier)
    qm.send(queue, b"one", transaction)
    qm.send(queue, b"two", transaction)
    qm.done(qm.engine.transactions.transaction_commit(identifier))
    _, context = client.open(queue)
    places, numbers = [], set()
    for _ in range(2):
        buffer = receiving_buffer()
        buffer.pbFirstInXact = buffer.pbLastInXact = 9
        buffer.ppXactID = OBJECTID(Lineage=UUID(int=0))
        _, after = client.receive(context, buffer)
        places.append((after.pbFirstInXact, after.pbLastInXact))
        assert after.ppXactID.Lineage == qm.engine.queue_manager.identifier
        numbers.add(after.ppXactID.Uniquifier)
    assert places == [(1, 0), (0, 1)]
    assert len(numbers) == 1
    assert 0 not in numbers


# Buffers

NAMES = {
    "Response": str(RESPONSE),
    "Admin": str(ADMINISTRATION),
    "Dest": r"DIRECT=OS:WORKSTATION\private$\orders",
    "Ordering": "",
}


def named(kind: str, size: int, told: int | None) -> dict[str, Any]:
    return {
        f"pp{kind}FormatName": "\0" * size,
        f"ul{kind}FormatNameLen": size,
        f"pul{kind}FormatNameLenProp": told,
    }


@pytest.mark.conformance("MQMP-op-c2_2", "MQMP-rule-3.1.1.11")
@pytest.mark.parametrize("kind", NAMES)
def test_the_names_of_queues_are_told(qm: RunningQueueManager, client: Client, kind: str) -> None:
    queue = qm.create()
    qm.send(queue, b"body", **FULL)
    text = NAMES[kind]
    needed = len(text) + 1 if text else 0
    _, context = client.open(queue)

    def read(size: int, told: int | None) -> tuple[str, Any]:
        names = named(kind, size, told)
        status, buffer = client.receive(context, receiving_buffer(action=PEEK_CURRENT, names=names))
        receive = buffer.old.u.value
        return status, tuple(getattr(receive, name) for name in names)

    wide_text = (text + "\0")[:needed]
    assert read(200, 200) == ("MQ_OK", (wide_text, needed, needed))
    assert read(200, None) == ("MQ_OK", (wide_text, needed, None))
    assert read(needed, needed) == ("MQ_OK", (wide_text, needed, needed))
    if needed:
        assert read(5, 200) == ("MQ_OK", (text[:5], 5, needed))
        small = "MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL"
        assert read(10, 10) == (small, ("\0" * 10, 10, needed))
        assert read(200, 10)[0] == small


BUFFERS: list[tuple[str, str, str, Any, str]] = [
    (
        "ppTitle",
        "ulTitleBufferSizeInWCHARs",
        "pulTitleBufferSizeInWCHARs",
        "Жx\0",
        "LABEL_BUFFER_TOO_SMALL",
    ),
    (
        "ppwcsProvName",
        "ulProvNameLen",
        "pulAuthProvNameLenProp",
        "Provider\0",
        "PROV_NAME_BUFFER_TOO_SMALL",
    ),
    (
        "ppSenderID",
        "uSenderIDLen",
        "pulSenderIDLenProp",
        bytes(range(12)),
        "SENDERID_BUFFER_TOO_SMALL",
    ),
    (
        "ppSenderCert",
        "ulSenderCertLen",
        "pulSenderCertLenProp",
        b"certificate",
        "SENDER_CERT_BUFFER_TOO_SMALL",
    ),
    (
        "ppSymmKeys",
        "ulSymmKeysSize",
        "pulSymmKeysSizeProp",
        b"key",
        "SYMM_KEY_BUFFER_TOO_SMALL",
    ),
    (
        "ppSignature",
        "ulSignatureSize",
        "pulSignatureSizeProp",
        b"signed",
        "SIGNATURE_BUFFER_TOO_SMALL",
    ),
]


@pytest.mark.conformance("MQMP-op-c2_2", "MQMP-rule-3.1.1.11")
@pytest.mark.parametrize(("pointer", "size", "told", "value", "error"), BUFFERS)
def test_a_buffer_is_filled_or_found_too_small(
    qm: RunningQueueManager,
    client: Client,
    pointer: str,
    size: str,
    told: str,
    value: Any,
    error: str,
) -> None:
    queue = qm.create()
    qm.send(queue, b"body", **FULL)
    _, context = client.open(queue)
    blank = "\0" if isinstance(value, str) else b"\0"

    def read(room: int, property_length: int | None) -> tuple[str, Any]:
        fields: dict[str, Any] = {pointer: blank * room, size: room, told: property_length}
        status, buffer = client.receive(context, receiving_buffer(**fields))
        return status, tuple(getattr(buffer.old, name) for name in (pointer, size, told))

    needed = len(value)
    too_small = f"MQ_ERROR_{error}"
    assert read(needed - 1, needed - 1) == (too_small, (blank * (needed - 1), needed - 1, needed))
    assert read(needed - 1, None)[0] == too_small
    if told not in ("pulTitleBufferSizeInWCHARs",):
        assert read(needed - 1, 40)[0] == too_small  # the length is for the server to tell
    assert qm.bodies(queue) == [b"body"]
    assert read(40, 40) == ("MQ_OK", (value, needed, needed))
    assert qm.bodies(queue) == []
    qm.send(queue, b"plain")
    assert read(40, 40) == ("MQ_OK", (value[:0], 0, 0))


@pytest.mark.conformance("MQMP-op-c2_2")
def test_body_and_extension_keep_the_length_of_their_buffers(
    qm: RunningQueueManager, client: Client
) -> None:
    queue = qm.create()
    qm.send(queue, b"body", **FULL)
    _, context = client.open(queue)

    def read(body: int, extension: int) -> tuple[str, Any]:
        fields: dict[str, Any] = {
            "ppMsgExtension": bytes(extension),
            "ulMsgExtensionBufferInBytes": extension,
            "pMsgExtensionSize": 0,
        }
        return client.receive(context, receiving_buffer(body, **fields))

    for sizes in ((3, 10), (10, 3)):
        status, buffer = read(*sizes)
        assert status == "MQ_ERROR_BUFFER_OVERFLOW"
        assert (buffer.old.pBodySize, buffer.old.pMsgExtensionSize) == (4, 4)
    status, buffer = read(10, 6)
    assert status == "MQ_OK"
    assert (buffer.old.ppBody, buffer.old.ppMsgExtension) == (b"body".ljust(10, b"\0"), b"more\0\0")
    assert (buffer.old.pBodySize, buffer.old.pMsgExtensionSize) == (4, 4)


@pytest.mark.conformance("MQMP-op-c2_2")
def test_a_body_can_be_left_out(qm: RunningQueueManager, client: Client) -> None:
    queue = qm.create()
    qm.send(queue, b"body")
    _, context = client.open(queue)
    status, buffer = client.receive(context, receiving_buffer(None, pBodySize=0))
    assert (status, buffer.old.pBodySize, buffer.old.ppBody) == ("MQ_OK", 4, None)


# Transactions


@pytest.mark.conformance("MQMP-op-c2_2")
def test_a_message_that_does_not_fit_leaves_its_transaction(
    qm: RunningQueueManager, client: Client
) -> None:
    queue = qm.create(transactional=True)
    sending = qm.engine.transactions.create_transaction(UUID(int=5))
    qm.send(queue, b"body", sending)
    qm.done(qm.engine.transactions.transaction_commit(UUID(int=5)))
    _, context = client.open(queue)
    uow = uuid4().bytes_le
    transaction = client.enlist(uow)
    status, _ = client.receive(context, receiving_buffer(1, pUow=XACTUOW(rgb=uow)))
    assert status == "MQ_ERROR_BUFFER_OVERFLOW"
    assert qm.bodies(queue) == [b"body"]
    status, _ = client.receive(context, receiving_buffer(pUow=XACTUOW(rgb=uow)))
    assert status == "MQ_OK"
    assert qm.bodies(queue) == []
    assert client.status("R_QMCommitTransaction", phIntXact=transaction) == "MQ_OK"
    assert queue.message_count == 0


def test_a_message_that_does_not_fit_was_not_delivered_in_vain(
    qm: RunningQueueManager, client: Client
) -> None:
    """G180, in a transaction as outside: clients come back with a buffer that fits."""
    queue = qm.create(transactional=True)
    qm.done(qm.engine.failed_deliveries.set_limit(queue, 1, "bad"))
    sending = qm.engine.transactions.create_transaction(UUID(int=5))
    qm.send(queue, b"body", sending)
    qm.done(qm.engine.transactions.transaction_commit(UUID(int=5)))
    _, context = client.open(queue)
    uow = uuid4().bytes_le
    client.enlist(uow)
    status, _ = client.receive(context, receiving_buffer(1, pUow=XACTUOW(rgb=uow)))
    assert status == "MQ_ERROR_BUFFER_OVERFLOW"
    (key,) = queue.message_position_list.page(None, 10)
    assert qm.engine.positions.message_at(queue, key).abort_count == 0
    assert queue.subqueue_collection == {}
