"""impacket calls every method of MSMQMessage, and RemoteRead tells the same of what it has sent."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult
from rpcqm.client.message import ReceivedMessage
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.automation.values import EMPTY, Variant
from rpcqm.codec.packet.types import NULL_IDENTIFIER, MessageIdentifier
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import YES, number, octets, text
from tests.support.dcom.impacket_place import ELSEWHERE, Place
from tests.support.dcom.impacket_walker import Held, Walker, Way
from tests.support.http.http_catcher import http_catcher
from tests.support.waiting import until

WALKED = ("IMSMQMessage",)
CONNECTOR = "{0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0}"
NO_GUID = "{00000000-0000-0000-0000-000000000000}"
CORRELATION = MessageIdentifier(UUID("00112233-4455-6677-8899-aabbccddeeff"), 77).encode()
PUT: dict[str, object] = {
    "Body": octets(b"content"),
    "Delivery": 1,
    "Trace": 1,
    "Priority": 5,
    "Journal": 3,
    "AppSpecific": -2,
    "Ack": 5,
    "Label": "höst",
    "MaxTimeToReachQueue": 777,
    "MaxTimeToReceive": 888,
    "HashAlgorithm": 0x8003,
    "EncryptAlgorithm": 0x6602,
    "PrivLevel": 3,
    "CorrelationId": octets(CORRELATION),
    "Extension": octets(b"more"),
    "SenderCertificate": octets(b"X.509"),
    "SenderIdType": 1,
}
OF_CONNECTORS: dict[str, object] = {
    "ConnectorTypeGuid": CONNECTOR,
    "SenderId": octets(b"somebody"),
    "Signature": octets(b"signed"),
    "AuthenticationProviderType": 12,
    "AuthenticationProviderName": "Microsoft Enhanced Cryptographic Provider, v1.0",
    "MsgClass": 0x4000,
}
WRONG: dict[str, tuple[object, HResult]] = {
    "Priority": (8, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    "Delivery": (2, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    "PrivLevel": (2, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    "AuthLevel": (3, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    "Trace": (2, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    "Journal": (4, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    "Ack": (16, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    "HashAlgorithm": (1, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    "MsgClass": (3, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    "SenderIdType": (2, HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    "ConnectorTypeGuid": ("none", HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE),
    "Label": (250 * "x", HResult.MQ_ERROR_LABEL_TOO_LONG),
    "CorrelationId": (octets(b"short"), HResult.MQ_ERROR_ILLEGAL_PROPERTY_SIZE),
    "Extension": (number(1), HResult.E_INVALIDARG),
    "Body": (EMPTY, HResult.E_INVALIDARG),
}


def _long(number: int) -> int:
    """A number of 32 bits as automation has it, with a sign."""
    return (number ^ 1 << 31) - (1 << 31)


def _date(seconds: int) -> Variant:
    return Variant(VARENUM.VT_DATE, 25_569 + seconds / 86_400)


def _transaction(message: ReceivedMessage) -> Variant:
    number = message.transaction_identifier
    if number is None:
        return octets(NULL_IDENTIFIER.encode())
    return octets(MessageIdentifier(message.source_machine_identifier, number).encode())


TOLD: Mapping[str, Callable[[ReceivedMessage], object]] = {
    "Class": lambda m: m.message_class,
    "MsgClass": lambda m: m.message_class,
    "PrivLevel": lambda m: m.privacy_level,
    "Delivery": lambda m: m.delivery_guarantee,
    "Trace": lambda m: int(m.tracing_requested),
    "Priority": lambda m: m.priority,
    "Journal": lambda m: m.negative_journaling_requested + 2 * m.positive_journaling_requested,
    "AppSpecific": lambda m: _long(m.application_tag),
    "SourceMachineGuid": lambda m: str(m.source_machine_identifier).upper(),
    "BodyLength": lambda m: m.body_size,
    "Body": lambda m: octets(m.body),
    "Id": lambda m: octets(m.identifier.encode()),
    "CorrelationId": lambda m: octets(m.correlation_identifier.encode()),
    "Ack": lambda m: m.acknowledgements_requested,
    "Label": lambda m: m.label,
    "MaxTimeToReachQueue": lambda m: _long(m.time_to_reach_queue),
    "MaxTimeToReceive": lambda m: _long(m.time_to_be_received),
    "HashAlgorithm": lambda m: m.hash_algorithm,
    "EncryptAlgorithm": lambda m: m.encryption_algorithm,
    "SentTime": lambda m: _date(m.sent_time),
    "ArrivedTime": lambda m: _date(m.arrival_time),
    "SenderCertificate": lambda m: octets(m.sender_certificate),
    "SenderId": lambda m: octets(m.sender_identifier),
    "SenderIdType": lambda m: m.sender_identifier_type,
    "SenderVersion": lambda _: 16,
    "Extension": lambda m: octets(m.extension),
    "ConnectorTypeGuid": lambda m: f"{{{m.connector_type_identifier or UUID(int=0)}}}".upper(),
    "Signature": lambda m: octets(m.signature),
    "DestinationSymmetricKey": lambda m: octets(m.symmetric_key),
    "TransactionId": _transaction,
    "IsFirstInTransaction": lambda m: int(m.first_in_transaction),
    "IsLastInTransaction": lambda m: int(m.last_in_transaction),
    "IsFirstInTransaction2": lambda m: m.first_in_transaction,
    "IsLastInTransaction2": lambda m: m.last_in_transaction,
    "IsAuthenticated": lambda m: int(m.authentication_level != 0),
    "IsAuthenticated2": lambda m: m.authentication_level != 0,
    "ReceivedAuthenticationLevel": lambda m: m.authentication_level,
    "LookupId": lambda m: text(str(m.lookup_identifier)),
    "SoapEnvelope": lambda m: m.soap_envelope,
    "CompoundMessage": lambda m: octets(m.soap_compound_message),
}
"""What RemoteRead tells of each property."""
SIGNED = (
    *("IsAuthenticated", "IsAuthenticated2", "ReceivedAuthenticationLevel", "HashAlgorithm"),
    *("Signature", "SenderCertificate", "SenderId"),
)


@pytest.mark.parametrize("way", Way)
def test_impacket_calls_every_method_of_messages(place: Place, way: Way) -> None:
    with place.walk(way, WALKED) as walker:
        path = place.queue()
        _of_applications(place, walker, path)
        _of_connectors(place, walker, path)
        _signed(place, walker, path)
        _in_a_transaction(place, walker)
        _with_queues(place, walker, path)
        _by_http(place, walker, path)
        _wrong(walker)
        place.refused(walker, walker.message())


def _new(walker: Walker, properties: Mapping[str, object]) -> Held:
    """A message with properties, which it tells."""
    message = walker.message()
    for name, value in properties.items():
        walker.put(message, name, value)
    for name, value in properties.items():
        assert walker.get(message, name) == value, name
    return message


def _arrived(
    place: Place, walker: Walker, path: str, compared: Iterable[str] = ("Id", "Body")
) -> tuple[Held, ReceivedMessage]:
    """The only message of a queue: received, after RemoteRead has seen it; both are compared."""
    (read,) = place.browse(path)
    queue = walker.open(path, QueueAccessType.RECEIVE_ACCESS)
    received = walker.call(queue, "Receive", None, YES, YES, number(0), YES)
    walker.call(queue, "Close")
    for name in compared:
        found = walker.get(received, name)
        expected = TOLD[name](read)
        if isinstance(expected, Variant) and expected.vt == VARENUM.VT_DATE:
            assert abs(found.value - _days(expected)) < 1 / 86_400 / 2, name
        else:
            assert found == expected, name
    return received, read


def _days(moment: Variant) -> float:
    assert isinstance(moment.value, float)
    return moment.value


def _of_applications(place: Place, walker: Walker, path: str) -> None:
    message = _new(walker, PUT)
    walker.call(message, "Send", walker.destination(place.private_name(path)), None)
    received, read = _arrived(place, walker, path, TOLD)
    for name in PUT:
        assert walker.get(received, name) == walker.get(message, name)
    assert walker.get(message, "Id") == octets(read.identifier.encode())
    assert read.sender_identifier == sid_bytes(place.sid)
    assert (read.label, read.priority, read.body) == ("höst", 5, b"content")
    assert datetime.now(UTC).timestamp() - read.sent_time < 600


def _of_connectors(place: Place, walker: Walker, path: str) -> None:
    message = _new(walker, OF_CONNECTORS)
    walker.call(message, "Send", walker.destination(place.private_name(path)), None)
    received, read = _arrived(place, walker, path, TOLD)
    assert read.sender_identifier == b"somebody"
    assert read.connector_type_identifier == UUID(CONNECTOR)
    for name in ("AuthenticationProviderType", "AuthenticationProviderName"):
        walker.get(received, name)
    sealed = _new(walker, {"DestinationSymmetricKey": octets(b"key")})
    missing = walker.refusal(sealed, "Send", walker.destination("DIRECT=OS:" + path), None)
    assert missing == HResult.MQ_ERROR_MISSING_CONNECTOR_TYPE


def _signed(place: Place, walker: Walker, path: str) -> None:
    for attach in ("AttachCurrentSecurityContext", "AttachCurrentSecurityContext2"):
        message = _new(walker, {"AuthLevel": 4})
        walker.call(message, attach)
        walker.call(message, "Send", walker.destination("DIRECT=OS:" + path), None)
        _, read = _arrived(place, walker, path, SIGNED)
        assert read.authentication_level == 3
        assert read.sender_certificate == place.certificate


def _in_a_transaction(place: Place, walker: Walker) -> None:
    path = place.queue(QueueSettings(transactional=True))
    dispenser = walker.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    begun = walker.call(dispenser, "BeginTransaction")
    message, target = walker.message(), walker.destination("DIRECT=OS:" + path)
    walker.call(message, "Send", target, Variant(VARENUM.VT_DISPATCH, begun))
    assert place.browse(path) == []
    walker.call(begun, "Commit", None, None, None)
    received, read = _arrived(place, walker, path, [name for name in TOLD if "Transac" in name])
    assert read.transaction_identifier
    assert (read.first_in_transaction, read.last_in_transaction) == (True, True)
    status = walker.get(received, "TransactionStatusQueueInfo")
    assert status is None or walker.get(status, "FormatName")


def _name_of(walker: Walker, info: Held) -> object:
    """The format name of an info of any revision."""
    return walker.get(info, "FormatName")


def _with_queues(place: Place, walker: Walker, path: str) -> None:
    answers, acknowledgements = place.queue(), "DIRECT=TCP:192.0.2.9\\private$\\acks"
    response = walker.queue_info(place.private_name(answers))
    admin = walker.queue_info(acknowledgements)
    message = walker.message()
    for version in ("_v1", "_v2"):
        walker.put(message, f"ResponseQueueInfo{version}", response)
        walker.put(message, f"AdminQueueInfo{version}", admin)
        for name in (f"ResponseQueueInfo{version}", f"AdminQueueInfo{version}"):
            assert _name_of(walker, walker.get(message, name)) in (
                place.private_name(answers),
                acknowledgements,
            )
    walker.call(message, "putref_ResponseQueueInfo", response)
    walker.call(message, "putref_AdminQueueInfo", admin)
    name = place.private_name(path)
    walker.call(message, "Send", walker.destination(name), None)
    received, read = _arrived(place, walker, path)
    told: dict[str, Any] = {
        "ResponseQueueInfo": read.response_queue_format_name,
        "AdminQueueInfo": read.administration_queue_format_name,
        "DestinationQueueInfo": read.destination_queue_format_name,
    }
    for each, expected in told.items():
        assert _name_of(walker, walker.get(received, each)) == str(expected)
    for each, expected in (
        ("Destination", name),
        ("ResponseDestination", told["ResponseQueueInfo"]),
    ):
        destination = walker.known_as(walker.get(received, each), "IMSMQDestination")
        assert _name_of(walker, destination) == str(expected)
    _answered_elsewhere(place, walker, path)


def _answered_elsewhere(place: Place, walker: Walker, path: str) -> None:
    message = walker.message()
    walker.call(message, "putref_ResponseDestination", walker.destination(ELSEWHERE))
    walker.call(message, "Send", walker.open(path, QueueAccessType.SEND_ACCESS), None)
    _, read = _arrived(place, walker, path)
    assert str(read.response_queue_format_name) == ELSEWHERE
    assert walker.refusal(message, "Send", None, None) == HResult.E_INVALIDARG


def _by_http(place: Place, walker: Walker, path: str) -> None:
    """What is sent by HTTP is caught, and comes back."""
    message = _new(walker, {"Body": octets(b"content")})
    walker.put(message, "SoapHeader", '<who xmlns="urn:x">me</who>')
    walker.put(message, "SoapBody", "<what>this</what>")
    with http_catcher() as catcher:
        name = f"DIRECT=HTTP://127.0.0.1:{catcher.port}/msmq/{path[2:]}".replace("\\", "/")
        walker.call(message, "Send", walker.destination(name), None)
        posted = catcher.post_on(place.machine.endpoint("http")[1])
    until(lambda: len(place.browse(path)) == 1)
    received, _ = _arrived(place, walker, path, TOLD)
    envelope = walker.get(received, "SoapEnvelope")
    assert '<who xmlns="urn:x">me</who>' in envelope
    assert "<what>this</what>" in envelope
    assert envelope.encode() in posted
    spoilt = walker.message()
    walker.put(spoilt, "SoapBody", "<open>")
    target = walker.destination("DIRECT=OS:" + path)
    assert walker.refusal(spoilt, "Send", target, None) == HResult.MQ_ERROR_BAD_XML_FORMAT


def _wrong(walker: Walker) -> None:
    message = walker.message()
    for name, (value, status) in WRONG.items():
        assert walker.refusal(message, f"put_{name}", value) == status
    assert walker.get(message, "ConnectorTypeGuid") == NO_GUID
