"""Sending by qmcomm2 ([MS-MQMP] 3.1.5.2), and what becomes of the buffer (3.1.1.11)."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from rpcqm.adm.message import Message
from rpcqm.base.errors import HResult
from rpcqm.codec.interface import NULL
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import (
    AcknowledgementsRequested,
    DeliveryGuarantee,
    MessageClass,
    PrivacyLevel,
    SenderIdentifierType,
)
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.codec.types.mqmq import XACTUOW
from rpcqm.codec.types.qmcomm import CACTransferBufferV1_Send
from rpcqm.rpc.interface_registry import NCALRPC
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ALICE, CallServer
from tests.support.rpc.dependent_client import (
    RECEIVE_ACCESS,
    SEND_ACCESS,
    Client,
    receiving_buffer,
    sending_buffer,
    served_clients,
)
from tests.support.rpc.remote_reader import format_of

INFINITE = 0xFFFFFFFF
CONNECTOR = UUID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")
RESPONSE = r"DIRECT=OS:elsewhere\private$\answers"
ADMINISTRATION = r"DIRECT=TCP:192.0.2.9\private$\acks"


@pytest.fixture
def server(qm: RunningQueueManager) -> CallServer:
    return served_clients(qm)


@pytest.fixture
def client(server: CallServer) -> Client:
    return Client(server.connect(ALICE, transport=NCALRPC))


def kept(qm: RunningQueueManager) -> Message:
    """The one message in the queue."""
    queue = qm.find()
    (key,) = queue.message_position_list.page(None, 10)
    return qm.engine.positions.message_at(queue, key)


def by_private_name(qm: RunningQueueManager, client: Client) -> bytes:
    """A handle that was not opened by a direct name."""
    number = qm.create().private_queue_number
    name = FormatName.private(qm.engine.queue_manager.identifier, number)
    return client.open(name, SEND_ACCESS)[0]


@pytest.mark.conformance("MQMP-op-c2_1", "MQMP-packet-TRANSFER_TYPE")
def test_a_sent_message_is_durable_and_has_an_identifier(
    qm: RunningQueueManager, client: Client
) -> None:
    handle, _ = client.open(qm.create(), SEND_ACCESS)
    call = client.start_send(handle, b"one")
    assert not call.answered
    client.caller.settle()
    response = call.result()
    identifier = kept(qm).attributes.identifier
    assert response.pMessageID.Lineage == identifier.queue_manager_guid
    assert response.pMessageID.Uniquifier == identifier.ordinal != 0
    qm.restart()
    assert qm.bodies(qm.find()) == [b"one"]


@pytest.mark.conformance("MQMP-op-c2_1")
def test_an_identifier_is_told_only_to_who_asks(qm: RunningQueueManager, client: Client) -> None:
    handle, _ = client.open(qm.create(), SEND_ACCESS)
    response = client.caller.call(
        "rpc_ACSendMessageEx", hQueue=handle, ptb=sending_buffer(b"x"), pMessageID=None
    )
    assert (response.result, response.pMessageID) == (0, None)


DEFAULTS: dict[str, Any] = {
    "body": b"",
    "label": "",
    "message_class": MessageClass.MQMSG_CLASS_NORMAL,
    "delivery_guarantee": DeliveryGuarantee.EXPRESS,
    "priority": 3,
    "time_to_reach_queue": INFINITE,
    "body_type": 0,
    "application_tag": 0,
    "correlation_identifier": MessageIdentifier(UUID(int=0), 0),
    "extension": b"",
    "acknowledgements_requested": AcknowledgementsRequested.NONE,
    "administration_queue_format_name": None,
    "response_queue_format_name": None,
    "positive_journaling_requested": False,
    "negative_journaling_requested": False,
    "connector_type_identifier": None,
    "privacy_level": PrivacyLevel.NONE,
    "hash_algorithm": 0,
    "encryption_algorithm": 0,
    "signature": b"",
    "sender_certificate": b"",
    "tracing_requested": False,
    "transaction_identifier": None,
}


@pytest.mark.conformance("MQMP-op-c2_1")
def test_what_is_null_has_its_default(qm: RunningQueueManager, client: Client) -> None:
    handle, _ = client.open(qm.create(), SEND_ACCESS)
    assert client.sent(handle, pDelivery=None) == "MQ_OK"
    attributes = kept(qm).attributes
    assert {name: getattr(attributes, name) for name in DEFAULTS} == DEFAULTS


@pytest.mark.conformance(
    "MQMP-rule-3.1.1.11",
    "MQMP-packet-CACTransferBufferV1",
    "MQMP-packet-CACTransferBufferV2",
    "MQMQ-packet-MessagePropertiesHeader",
)
@pytest.mark.parametrize(
    ("fields", "attribute", "expected"),
    [
        ({"pClass": 0x4000}, "message_class", MessageClass.MQMSG_CLASS_ACK_RECEIVE),
        ({"pClass": 0xFFFF}, "message_class", 0xE1FF),
        ({"pClass": 0x0101}, "message_class", 0x0101),
        ({"pPriority": 0}, "priority", 0),
        ({"pPriority": 7}, "priority", 7),
        ({"pDelivery": 1}, "delivery_guarantee", DeliveryGuarantee.RECOVERABLE),
        (
            {"pAcknowledge": 0x0E},
            "acknowledgements_requested",
            AcknowledgementsRequested.ACK_FULL_RECEIVE,
        ),
        ({"pAuditing": 2}, "positive_journaling_requested", True),
        ({"pAuditing": 1}, "negative_journaling_requested", True),
        ({"pApplicationTag": 77}, "application_tag", 77),
        ({"pulBodyType": 8}, "body_type", 8),
        ({"pTrace": 1}, "tracing_requested", True),
        ({"ppConnectorType": CONNECTOR}, "connector_type_identifier", CONNECTOR),
        (
            {"ppCorrelationID": MessageIdentifier(CONNECTOR, 9).encode()},
            "correlation_identifier",
            MessageIdentifier(CONNECTOR, 9),
        ),
        ({"ppTitle": "tick", "ulTitleBufferSizeInWCHARs": 4}, "label", "tick"),
        ({"ppTitle": "ti\0k", "ulTitleBufferSizeInWCHARs": 4}, "label", "ti"),
        ({"ppTitle": "x" * 300, "ulTitleBufferSizeInWCHARs": 300}, "label", "x" * 249),
        ({"ppTitle": "Ж" * 300, "ulTitleBufferSizeInWCHARs": 300}, "label", "Ж" * 249),
        ({"ppTitle": NULL}, "label", ""),
        (
            {"ppMsgExtension": b"more", "ulMsgExtensionBufferInBytes": 4},
            "extension",
            b"more",
        ),
        ({"ulAbsoluteTimeToQueue": 60}, "time_to_reach_queue", 60),
        ({"ulAbsoluteTimeToQueue": 1_750_000_060}, "time_to_reach_queue", 60),
        ({"ulAbsoluteTimeToQueue": INFINITE}, "time_to_reach_queue", INFINITE),
        ({"ulRelativeTimeToLive": 90}, "time_to_be_received", 90),
        ({"pulHashAlg": 0x8004}, "hash_algorithm", 0x8004),
        ({"pulEncryptAlg": 0x6801}, "encryption_algorithm", 0x6801),
    ],
)
def test_a_field_becomes_an_attribute(
    qm: RunningQueueManager, client: Client, fields: dict[str, Any], attribute: str, expected: Any
) -> None:
    handle, _ = client.open(qm.create(), SEND_ACCESS)
    assert client.sent(handle, b"body", **fields) == "MQ_OK"
    attributes = kept(qm).attributes
    assert getattr(attributes, attribute) == expected
    assert attributes.body == b"body"


@pytest.mark.conformance("MQMP-rule-3.1.1.11")
def test_the_other_queues_of_a_message_are_kept(qm: RunningQueueManager, client: Client) -> None:
    handle, _ = client.open(qm.create(), SEND_ACCESS)
    send = CACTransferBufferV1_Send(
        pAdminQueueFormat=format_of(ADMINISTRATION), pResponseQueueFormat=format_of(RESPONSE)
    )
    assert client.sent(handle, b"x", send=send) == "MQ_OK"
    attributes = kept(qm).attributes
    assert str(attributes.response_queue_format_name) == RESPONSE
    assert str(attributes.administration_queue_format_name) == ADMINISTRATION


@pytest.mark.conformance("MQMP-op-c2_1")
@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"pPriority": 8}, HResult.MQ_ERROR_INVALID_PARAMETER),
        ({"pDelivery": 2}, HResult.MQ_ERROR_INVALID_PARAMETER),
        ({"pAuditing": 4}, HResult.MQ_ERROR_INVALID_PARAMETER),
        ({"pTrace": 2}, HResult.MQ_ERROR_INVALID_PARAMETER),
        ({"pAcknowledge": 0x10}, HResult.MQ_ERROR_INVALID_PARAMETER),
        ({"pulSenderIDType": 3}, HResult.MQ_ERROR_INVALID_PARAMETER),
        ({"uSenderIDLen": 2, "ppSenderID": b"ab"}, HResult.MQ_ERROR_INVALID_PARAMETER),
        ({"pulPrivLevel": 4}, HResult.MQ_ERROR_INVALID_PARAMETER),
        ({"pulPrivLevel": 1}, HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION),
        (
            {"bEncrypted": 1, "ppSymmKeys": b"key", "ulSymmKeysSize": 3},
            HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION,
        ),
        ({"ulSymmKeysSize": 3}, HResult.MQ_ERROR_INVALID_PARAMETER),
        ({"ulSenderCertLen": 3}, HResult.MQ_ERROR_INVALID_PARAMETER),
        (
            {"ulSignatureSize": 2, "ppSignature": b"ab"},
            HResult.MQ_ERROR_INVALID_PARAMETER,
        ),
        (
            {"ulSignatureSize": 2, "ppSignature": b"ab", "pulHashAlg": 0x8004},
            HResult.MQ_ERROR_INVALID_PARAMETER,
        ),
        (
            {
                "ulSignatureSize": 2,
                "ppSignature": b"ab",
                "pulHashAlg": 0x8004,
                "fDefaultProvider": 1,
            },
            HResult.MQ_ERROR_INVALID_PARAMETER,
        ),
        (
            {
                "ulSignatureSize": 2,
                "ppSignature": b"ab",
                "pulHashAlg": 0x8004,
                "fDefaultProvider": 1,
                "pulProvType": 1,
                "pulAuthProvNameLenProp": 3,
            },
            HResult.MQ_ERROR_INVALID_PARAMETER,
        ),
        (
            {"pUow": XACTUOW(rgb=b"unknown-unit-of-")},
            HResult.MQ_ERROR_TRANSACTION_SEQUENCE,
        ),
    ],
)
def test_a_buffer_that_breaks_a_rule_is_refused(
    qm: RunningQueueManager, client: Client, fields: dict[str, Any], status: HResult
) -> None:
    queue = qm.create()
    handle, _ = client.open(queue, SEND_ACCESS)
    assert client.sent(handle, b"x", **fields) == status.name
    assert qm.bodies(queue) == []


@pytest.mark.conformance("MQMP-op-c2_1")
def test_only_buffers_for_sending_and_handles_for_sending_send(
    qm: RunningQueueManager, client: Client
) -> None:
    queue = qm.create()
    handle, _ = client.open(queue, SEND_ACCESS)
    status = client.status(
        "rpc_ACSendMessageEx", hQueue=handle, ptb=receiving_buffer(), pMessageID=None
    )
    assert status == "MQ_ERROR_INVALID_PARAMETER"
    reading, _ = client.open(queue, RECEIVE_ACCESS)
    assert client.sent(reading, b"x") == "MQ_ERROR_ACCESS_DENIED"


# The sender


@pytest.mark.conformance("MQMP-op-c2_1", "MQMP-rule-3.1.1.11")
@pytest.mark.parametrize("fields", [{}, {"pulSenderIDType": 1}])
def test_the_sender_is_who_calls(
    qm: RunningQueueManager, client: Client, fields: dict[str, Any]
) -> None:
    handle, _ = client.open(qm.create(), SEND_ACCESS)
    claimed = {"ppSenderID": sid_bytes("S-1-5-18"), "uSenderIDLen": 12} if fields else {}
    assert client.sent(handle, b"x", **fields, **claimed) == "MQ_OK"
    attributes = kept(qm).attributes
    assert attributes.sender_identifier_type == SenderIdentifierType.SID
    assert attributes.sender_identifier == sid_bytes(ALICE.sid)


@pytest.mark.conformance("MQMP-rule-3.1.1.11")
def test_a_message_can_be_of_nobody_or_of_the_queue_manager(
    qm: RunningQueueManager, client: Client
) -> None:
    handle, _ = client.open(qm.create(), SEND_ACCESS)
    assert client.sent(handle, b"x", pulSenderIDType=0) == "MQ_OK"
    assert kept(qm).attributes.sender_identifier == b""
    qm.done(qm.engine.queues.purge_queue(qm.find()))
    assert client.sent(handle, b"x", pulSenderIDType=2) == "MQ_OK"
    attributes = kept(qm).attributes
    assert attributes.sender_identifier_type == SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER
    assert attributes.sender_identifier == qm.engine.queue_manager.identifier.bytes_le


# Signatures and encryption

SIGNED: dict[str, Any] = {"pulHashAlg": 0x8004, "ppSenderCert": b"cert", "ulSenderCertLen": 4}


@pytest.mark.conformance("MQMP-rule-3.1.1.11", "MQMP-op-c2_1")
@pytest.mark.parametrize(
    ("fields", "signature", "provider"),
    [
        (
            {"ppSignature": b"one", "ulSignatureSize": 3, "fDefaultProvider": 1, "pulProvType": 1},
            b"one",
            (0, ""),
        ),
        (
            {
                "ppSignature": b"onetwo",
                "ulSignatureSize": 6,
                "ppwcsProvName": "Provider\0",
                "ulProvNameLen": 9,
                "pulProvType": 3,
                "pulAuthProvNameLenProp": 12,
            },
            b"two",
            (3, "Provider"),
        ),
        (
            {
                "ppSignature": b"one",
                "ulSignatureSize": 3,
                "ppwcsProvName": "P\0",
                "ulProvNameLen": 2,
            },
            b"one",
            (0, "P"),
        ),
    ],
)
def test_a_signature_is_kept_with_its_provider(
    qm: RunningQueueManager,
    client: Client,
    fields: dict[str, Any],
    signature: bytes,
    provider: tuple[int, str],
) -> None:
    handle, _ = client.open(qm.create(), SEND_ACCESS)
    assert client.sent(handle, b"x", **SIGNED, **fields) == "MQ_OK"
    attributes = kept(qm).attributes
    assert attributes.signature == signature
    assert attributes.sender_certificate == b"cert"
    assert attributes.hash_algorithm == 0x8004
    found = attributes.authentication_provider_type, attributes.authentication_provider_name
    assert found == provider


@pytest.mark.conformance("MQMP-op-c2_1", "MQMP-rule-3.1.1.11")
def test_a_privacy_level_has_the_number_it_has_elsewhere(
    qm: RunningQueueManager, client: Client
) -> None:
    handle = by_private_name(qm, client)
    assert client.sent(handle, b"x", pulPrivLevel=2, pulEncryptAlg=0x6801) == "MQ_OK"
    assert kept(qm).attributes.privacy_level == PrivacyLevel.ENHANCED


@pytest.mark.conformance("MQMP-op-c2_1")
def test_a_body_that_nobody_here_can_decrypt_is_refused(
    qm: RunningQueueManager, client: Client
) -> None:
    handle = by_private_name(qm, client)
    encrypted = {"pulPrivLevel": 1, "bEncrypted": 1, "ppSymmKeys": b"key", "ulSymmKeysSize": 3}
    status = client.sent(handle, b"x", **encrypted)
    assert status == "MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED"


# Transactions


@pytest.mark.conformance("MQMP-op-c2_1")
def test_a_message_of_a_transaction_is_recoverable(qm: RunningQueueManager, client: Client) -> None:
    uow = uuid4().bytes_le
    handle, _ = client.open(qm.create(transactional=True), SEND_ACCESS)
    transaction = client.enlist(uow)
    fields = {"pUow": XACTUOW(rgb=uow), "pDelivery": 0, "pPriority": 7}
    assert client.sent(handle, b"x", **fields) == "MQ_OK"
    assert client.status("R_QMCommitTransaction", phIntXact=transaction) == "MQ_OK"
    attributes = kept(qm).attributes
    assert attributes.delivery_guarantee == DeliveryGuarantee.RECOVERABLE
    assert attributes.priority == 0
    assert (attributes.first_in_transaction, attributes.last_in_transaction) == (True, True)


@pytest.mark.conformance(
    "MQDMPR-event-transaction_prepare", "MQDMPR-element-TransactionalOperation"
)
def test_the_first_and_the_last_of_a_transaction_that_commits_are_marked(
    qm: RunningQueueManager, client: Client
) -> None:
    uow, queue = uuid4().bytes_le, qm.create(transactional=True)
    handle, _ = client.open(queue, SEND_ACCESS)
    transaction = client.enlist(uow)
    for body in (b"a", b"b", b"c"):
        assert client.sent(handle, body, pUow=XACTUOW(rgb=uow)) == "MQ_OK"
    assert client.status("R_QMCommitTransaction", phIntXact=transaction) == "MQ_OK"
    keys = queue.message_position_list.page(None, 10)
    sent = [qm.engine.positions.message_at(queue, key).attributes for key in keys]
    marks = [(each.first_in_transaction, each.last_in_transaction) for each in sent]
    assert marks == [(True, False), (False, False), (False, True)]


@pytest.mark.conformance("MQMP-op-c2_1", "MQMQ-packet-XACTUOW")
def test_queue_and_message_are_both_transactional_or_neither(
    qm: RunningQueueManager, client: Client
) -> None:
    uow = uuid4().bytes_le
    client.enlist(uow)
    plain, _ = client.open(qm.create(), SEND_ACCESS)
    strict, _ = client.open(qm.create(r"private$\t", transactional=True), SEND_ACCESS)
    usage = "MQ_ERROR_TRANSACTION_USAGE"
    assert client.sent(plain, b"x", pUow=XACTUOW(rgb=uow)) == usage
    assert client.sent(strict, b"x") == usage
    assert client.sent(plain, b"x", pUow=XACTUOW(rgb=bytes(16))) == "MQ_OK"


def test_a_full_queue_refuses(qm: RunningQueueManager, client: Client) -> None:
    handle, _ = client.open(qm.create(quota=1), SEND_ACCESS)
    assert client.sent(handle, bytes(2000)) == "MQ_ERROR_INSUFFICIENT_RESOURCES"


def test_a_message_can_have_nearly_four_megabytes(qm: RunningQueueManager, client: Client) -> None:
    handle, _ = client.open(qm.create(), SEND_ACCESS)
    body = bytes((4 << 20) - 1000)
    assert client.sent(handle, body) == "MQ_OK"
    assert kept(qm).attributes.body_size == len(body)
