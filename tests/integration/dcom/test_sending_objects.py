"""Send by objects, branch by branch ([MC-MQAC] 3.17.4.1.48), and what a message tells after it."""

import time
from uuid import UUID

import pytest

from rpcqm.base.errors import HResult
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.automation.values import MISSING, Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.codec.types.mqvalues import MQMSG_DEADLETTER, MQMSG_JOURNAL, VARENUM, QueueAccessType
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import (
    ADMINISTRATOR,
    QUEUE,
    STREAM,
    Objects,
    create_queue,
    number,
    octets,
)
from tests.support.dcom.dcom_client import ComError, DcomClient, Reference
from tests.support.waiting import until

CONNECTOR = "{0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0}"
SHORT = r".\private$\short"
RESPONSE = r"DIRECT=OS:elsewhere\private$\answers"
ADMIN = r"DIRECT=TCP:192.0.2.9\private$\acks"


def refusal(objects: Objects, reference: Reference, operation: str, *arguments: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.com.call(reference, operation, *arguments)
    return refused.value.status


def alice(objects: Objects) -> str:
    """The SID of the caller, as the list of accounts has it."""
    accounts = objects.client.run(objects.client.accounts.list())
    return next(account.sid for account in accounts if account.name == "alice")


# What Send sets

SEND = "MQAC-IMSMQMessage4-54-Send"


@pytest.mark.conformance(
    SEND,
    "MQAC-IMSMQMessage4-7-Class",
    "MQAC-IMSMQMessage4-25-SourceMachineGuid",
    "MQAC-IMSMQMessage4-31-Id",
    "MQAC-IMSMQMessage4-46-SentTime",
    "MQAC-IMSMQMessage4-47-ArrivedTime",
    "MQAC-IMSMQMessage4-51-SenderId",
    "MQAC-IMSMQMessage4-56-SenderVersion",
    "MQAC-IMSMQMessage4-89-LookupId",
    "MQAC-coclass-MSMQMessage",
)
def test_what_send_sets_is_told_by_the_object_and_by_every_receiver(objects: Objects) -> None:
    message = objects.message()
    assert objects.get(message, "Id") == octets(bytes(20))
    assert objects.get(message, "LookupId") == Variant(VARENUM.VT_BSTR, "0")
    assert objects.get(message, "SenderId") == octets(b"")
    assert objects.get(message, "SourceMachineGuid") == str(UUID(int=0))
    assert objects.get(message, "SenderVersion") == 16
    before = int(time.time())
    objects.send(message, objects.destination())
    name = FormatName.parse("DIRECT=OS:" + QUEUE)
    with objects.client.open_reader(name, peek_only=True) as reader:
        read = reader.peek(0)
    received = objects.received()
    for told in (message, received):
        assert objects.get(told, "Id") == octets(read.identifier.encode())
        source = UUID(str(objects.get(told, "SourceMachineGuid")))
        assert source == read.source_machine_identifier
        assert objects.get(told, "SenderId") == octets(read.sender_identifier)
        assert objects.get(told, "Class") == 0 == objects.get(told, "MsgClass")
        assert seconds(objects.get(told, "SentTime")) == read.sent_time >= before
    assert read.sender_identifier == sid_bytes(alice(objects))
    assert seconds(objects.get(received, "ArrivedTime")) == read.arrival_time
    lookup = Variant(VARENUM.VT_BSTR, str(read.lookup_identifier))
    assert objects.get(received, "LookupId") == lookup


def seconds(moment: object) -> int:
    """A VT_DATE in seconds since 1970."""
    assert isinstance(moment, Variant)
    assert moment.vt == VARENUM.VT_DATE
    assert isinstance(moment.value, float)
    return round((moment.value - 25_569) * 86_400)


@pytest.mark.conformance(SEND)
def test_a_message_can_be_sent_again_with_an_identifier_of_its_own(objects: Objects) -> None:
    message, target = objects.message(), objects.destination()
    objects.send(message, target)
    first = objects.get(message, "Id")
    objects.put(message, "Body", octets(b"second"))
    objects.send(message, target)
    assert objects.get(message, "Id") != first
    assert objects.bodies() == [b"", b"second"]


@pytest.mark.conformance(SEND)
def test_a_received_message_is_sent_on_under_the_name_of_who_sends_it(objects: Objects) -> None:
    with objects.client.open_sender(FormatName.parse("DIRECT=OS:" + QUEUE)) as sender:
        sender.send(OutgoingMessage(b"by another", label="first"))
    objects.send(objects.received(), objects.destination())
    read = objects.read()
    assert (read.body, read.label) == (b"by another", "first")
    assert read.sender_identifier == sid_bytes(alice(objects))


# Where it sends to


@pytest.mark.conformance(SEND)
def test_a_message_goes_to_a_queue_object_that_is_open_for_sending(objects: Objects) -> None:
    message = objects.message()
    objects.send(message, objects.open(QueueAccessType.SEND_ACCESS))
    assert objects.bodies() == [b""]
    reading = objects.open(QueueAccessType.RECEIVE_ACCESS)
    denied = refusal(objects, message, "Send", reading, None)
    assert denied is HResult.MQ_ERROR_ACCESS_DENIED
    objects.com.call(reading, "Close")
    closed = refusal(objects, message, "Send", reading, None)
    assert closed is HResult.MQ_ERROR_INVALID_HANDLE


@pytest.mark.conformance(SEND)
def test_what_is_no_destination_is_refused(objects: Objects) -> None:
    message = objects.message()
    assert refusal(objects, message, "Send", None, None) is HResult.E_INVALIDARG
    assert refusal(objects, message, "Send", message, None) is HResult.E_INVALIDARG
    closed = objects.destination(is_open=False)
    assert refusal(objects, message, "Send", closed, None) is HResult.MQ_ERROR_INVALID_HANDLE


@pytest.mark.conformance(SEND, "MQAC-IMSMQMessage4-88-Destination")
def test_a_message_to_several_queues_reaches_each_and_names_them(objects: Objects) -> None:
    names = rf"DIRECT=OS:{QUEUE},DIRECT=OS:elsewhere\private$\x"
    message = objects.message()
    objects.send(message, objects.destination(names))
    shown = objects.get(message, "Destination")
    read = objects.read()
    listed = ",".join(map(str, read.destination_multi_queue_format_name))
    assert len(read.destination_multi_queue_format_name) == 2
    destination = objects.com.query_interface(shown, "IMSMQDestination")  # type: ignore[arg-type]
    assert objects.get(destination, "FormatName") == listed


# Transactions


@pytest.mark.conformance(SEND, "MQAC-element-MQTRANSACTION")
@pytest.mark.parametrize(
    ("argument", "path", "status"),
    [
        (None, QUEUE, None),
        (MISSING, QUEUE, None),
        (number(0), QUEUE, None),
        (number(1), QUEUE, None),
        (Variant(VARENUM.VT_I2, 0), QUEUE, None),
        (number(3), STREAM, None),
        (number(3), QUEUE, HResult.MQ_ERROR_TRANSACTION_USAGE),
        (number(0), STREAM, HResult.MQ_ERROR_TRANSACTION_USAGE),
        (number(2), STREAM, HResult.MQ_ERROR_DTC_CONNECT),
        (number(4), STREAM, HResult.E_INVALIDARG),
        (Variant(VARENUM.VT_BSTR, "x"), STREAM, HResult.DISP_E_TYPEMISMATCH),
    ],
)
def test_the_transaction_says_how_a_message_is_sent(
    objects: Objects, argument: object, path: str, status: HResult | None
) -> None:
    message, target = objects.message(), objects.destination("DIRECT=OS:" + path)
    if status is None:
        objects.send(message, target, argument)
    else:
        assert refusal(objects, message, "Send", target, argument) is status
    assert objects.bodies(path) == ([b""] if status is None else [])


# What only connectors may set


@pytest.mark.conformance(SEND)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MsgClass", 1),
        ("SenderId", octets(sid_bytes("S-1-5-21-1-2-3-1001"))),
        ("DestinationSymmetricKey", octets(b"key")),
        ("Signature", octets(b"signed")),
        ("AuthenticationProviderName", "another"),
    ],
)
def test_what_connectors_set_needs_a_connector_type(
    objects: Objects, name: str, value: object
) -> None:
    message, target = objects.message(), objects.destination()
    objects.put(message, name, value)
    missing = refusal(objects, message, "Send", target, None)
    assert missing is HResult.MQ_ERROR_MISSING_CONNECTOR_TYPE
    assert objects.bodies() == []


@pytest.mark.conformance(SEND)
def test_half_a_provider_is_refused(objects: Objects) -> None:
    message, target = objects.message(), objects.destination()
    objects.put(message, "AuthenticationProviderType", 0)
    half = refusal(objects, message, "Send", target, None)
    assert half is HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES


@pytest.mark.conformance("MQAC-IMSMQMessage4-70-SenderId", SEND)
def test_only_an_administrator_names_another_sender_for_a_connector(objects: Objects) -> None:
    another = sid_bytes("S-1-5-21-1-2-3-1001")

    def prepared(by: Objects) -> Reference:
        message = by.message()
        by.put(message, "ConnectorTypeGuid", CONNECTOR)
        by.put(message, "SenderId", octets(another))
        assert by.get(message, "SenderId") == octets(another)
        return message

    denied = refusal(objects, prepared(objects), "Send", objects.destination(), None)
    assert denied is HResult.MQ_ERROR_ACCESS_DENIED
    with DcomClient(objects.machine.endpoint("epm"), ADMINISTRATOR) as com:
        boss = Objects(objects.machine, com, objects.client)
        boss.send(prepared(boss), boss.destination())
    assert objects.read().sender_identifier == another


@pytest.mark.conformance(
    "MQAC-IMSMQMessage4-62-DestinationSymmetricKey",
    "MQAC-IMSMQMessage4-63-DestinationSymmetricKey",
    SEND,
)
def test_a_body_that_cannot_be_decrypted_is_refused_here(objects: Objects) -> None:
    message = objects.message()
    objects.put(message, "ConnectorTypeGuid", CONNECTOR)
    objects.put(message, "DestinationSymmetricKey", octets(b"key"))
    assert objects.get(message, "DestinationSymmetricKey") == octets(b"key")
    by_name = objects.destination(objects.private_name())
    unsupported = refusal(objects, message, "Send", by_name, None)
    assert unsupported is HResult.MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED
    direct = refusal(objects, message, "Send", objects.destination(), None)
    assert direct is HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION


# Who has signed it


@pytest.mark.conformance("MQAC-IMSMQMessage4-10-AuthLevel", "MQAC-IMSMQMessage4-11-AuthLevel", SEND)
def test_who_wants_a_signature_needs_a_certificate(objects: Objects) -> None:
    message = objects.message()
    assert objects.get(message, "AuthLevel") == 0
    objects.put(message, "AuthLevel", 8)
    assert objects.get(message, "AuthLevel") == 8
    none = refusal(objects, message, "Send", objects.destination(), None)
    assert none is HResult.MQ_ERROR_NO_INTERNAL_USER_CERT


# Queues that a message names


QUEUES_FOR_ANSWERS = [
    ("ResponseQueueInfo_v1", "put", "IMSMQQueueInfo", (21, 22)),
    ("ResponseQueueInfo_v2", "put", "IMSMQQueueInfo2", (77, 78)),
    ("ResponseQueueInfo", "putref", "IMSMQQueueInfo4", (82, 83)),
    ("AdminQueueInfo_v1", "put", "IMSMQQueueInfo", (29, 30)),
    ("AdminQueueInfo_v2", "put", "IMSMQQueueInfo2", (79, 80)),
    ("AdminQueueInfo", "putref", "IMSMQQueueInfo4", (84, 85)),
]


@pytest.mark.parametrize(
    ("name", "kind", "interface"),
    [
        pytest.param(
            *row,
            id=row[0],
            marks=pytest.mark.conformance(
                *(f"MQAC-IMSMQMessage4-{number}-{row[0]}" for number in numbers)
            ),
        )
        for *row, numbers in QUEUES_FOR_ANSWERS
    ],
)
def test_the_queues_for_answers_are_told_to_receivers(
    objects: Objects, name: str, kind: str, interface: str
) -> None:
    message = objects.message()
    assert objects.get(message, name) is None
    info = objects.create(clsids.MSMQ_QUEUE_INFO, interface)
    objects.put(info, "FormatName", RESPONSE)
    objects.com.call(message, f"{kind}_{name}", info)
    objects.send(message, objects.destination())
    objects.send(message, objects.destination())
    read, response = objects.read(), name.startswith("Response")
    told = read.response_queue_format_name if response else read.administration_queue_format_name
    assert str(told) == RESPONSE
    for each in (message, objects.received()):
        shown = objects.get(each, name)
        assert isinstance(shown, Reference)
        assert shown.interface == interface
        assert objects.get(shown, "FormatName") == RESPONSE
    objects.com.call(message, f"{kind}_{name}", None)
    assert objects.get(message, name) is None
    objects.com.call(message, f"{kind}_{name}", info)
    objects.com.call(message, f"{kind}_{name}", objects.create(clsids.MSMQ_QUEUE_INFO, interface))
    assert objects.get(message, name) is None


@pytest.mark.conformance(
    "MQAC-IMSMQMessage4-86-ResponseDestination", "MQAC-IMSMQMessage4-87-ResponseDestination"
)
@pytest.mark.parametrize("names", [RESPONSE, f"{RESPONSE},{ADMIN}"])
@pytest.mark.conformance("MQAC-IMSMQMessage4-87-ResponseDestination", "MQAC-IMSMQMessage4-54-Send")
def test_several_queues_for_answers_are_told_to_receivers(objects: Objects, names: str) -> None:
    message = objects.message()
    objects.com.call(
        message, "putref_ResponseDestination", objects.destination(names, is_open=False)
    )
    objects.send(message, objects.destination())
    shown = objects.get(objects.received(), "ResponseDestination")
    destination = objects.com.query_interface(shown, "IMSMQDestination")  # type: ignore[arg-type]
    assert objects.get(destination, "FormatName") == names


@pytest.mark.conformance("MQAC-IMSMQMessage4-48-DestinationQueueInfo")
def test_the_destination_is_told_to_who_wants_it(objects: Objects) -> None:
    message = objects.message()
    assert objects.get(message, "DestinationQueueInfo") is None
    objects.send(message, objects.destination())
    for each in (message, objects.received()):
        shown = objects.get(each, "DestinationQueueInfo")
        assert isinstance(shown, Reference)
        assert objects.get(shown, "FormatName") == f"DIRECT=OS:{QUEUE}"
    objects.send(message, objects.destination())
    queue = objects.open(QueueAccessType.RECEIVE_ACCESS)
    unasked = objects.com.call(queue, "Receive", None, None, None, number(0), None)
    assert objects.get(unasked, "DestinationQueueInfo") is None


@pytest.mark.conformance("MQAC-IMSMQMessage4-61-TransactionStatusQueueInfo")
def test_a_message_without_a_transaction_status_queue_names_none(objects: Objects) -> None:
    assert objects.get(objects.message(), "TransactionStatusQueueInfo") is None


@pytest.mark.conformance("MQAC-IMSMQMessage4-73-Properties")
def test_the_collection_of_properties_is_not_implemented(objects: Objects) -> None:
    assert refusal(objects, objects.message(), "get_Properties") is HResult.E_NOTIMPL


@pytest.mark.conformance(
    "MQAC-IMSMQMessage4-74-TransactionId",
    "MQAC-IMSMQMessage4-75-IsFirstInTransaction",
    "MQAC-IMSMQMessage4-76-IsLastInTransaction",
    "MQAC-IMSMQMessage4-91-IsFirstInTransaction2",
    "MQAC-IMSMQMessage4-92-IsLastInTransaction2",
)
def test_messages_of_a_transaction_tell_their_places(objects: Objects) -> None:
    dispenser = objects.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    transaction = objects.com.call(dispenser, "BeginTransaction")
    message, target = objects.message(), objects.destination("DIRECT=OS:" + STREAM)
    assert objects.get(message, "TransactionId") == octets(bytes(20))
    for _ in range(2):
        objects.send(message, target, Variant(VARENUM.VT_DISPATCH, transaction))
    objects.com.call(transaction, "Commit", None, None, None)
    name = FormatName.parse("DIRECT=OS:" + STREAM)
    with objects.client.open_reader(name, peek_only=True) as reader:
        number_of = reader.peek(0).transaction_identifier
        source = reader.peek(0).source_machine_identifier
    places = [(1, 0, True, False), (0, 1, False, True)]
    names = ("IsFirstInTransaction", "IsLastInTransaction")
    for place in places:
        told = objects.received(STREAM)
        assert number_of
        identifier = MessageIdentifier(source, number_of).encode()
        assert objects.get(told, "TransactionId") == octets(identifier)
        flags = (*names, *(f"{each}2" for each in names))
        assert tuple(objects.get(told, each) for each in flags) == place


@pytest.mark.conformance("MQAC-event-time_to_be_received_expiration")
def test_a_message_that_nobody_receives_in_time_is_reported(objects: Objects) -> None:
    message = objects.message()
    objects.put(message, "MaxTimeToReceive", 1)
    objects.put(message, "Ack", 8)
    objects.com.call(message, "putref_AdminQueueInfo", objects.queue_info())
    create_queue(objects.client, SHORT)
    objects.send(message, objects.destination("DIRECT=OS:" + SHORT))
    until(lambda: len(objects.bodies()) == 1)
    assert objects.bodies(SHORT) == []
    report = objects.received()
    assert objects.get(report, "Class") == 0xC002
    assert objects.get(report, "CorrelationId") == objects.get(message, "Id")


def is_dead(objects: Objects, message: Reference, name: str = "DEADLETTER") -> bool:
    """Whether a dead-letter queue of the system has a message."""
    queue = FormatName.parse(rf"DIRECT=OS:.\system$;{name}")
    with objects.client.open_reader(queue, peek_only=True) as reader:
        found = [octets(each.identifier.encode()) for each in reader.browse()]
    return objects.get(message, "Id") in found


def short_lived(objects: Objects, journal: int = MQMSG_DEADLETTER, seconds: int = 1) -> Reference:
    message = objects.message()
    objects.put(message, "MaxTimeToReceive", seconds)
    objects.put(message, "Journal", journal)
    return message


@pytest.mark.conformance("MQAC-event-time_to_be_received_expiration")
@pytest.mark.parametrize(
    ("path", "transaction", "name"),
    [(QUEUE, None, "DEADLETTER"), (STREAM, number(3), "DEADXACT")],
    ids=["plain", "transactional"],
)
def test_what_nobody_receives_in_time_is_a_dead_letter_if_it_asks_for_that(
    objects: Objects, path: str, transaction: Variant | None, name: str
) -> None:
    target = objects.destination("DIRECT=OS:" + path)
    kept, lost = short_lived(objects), short_lived(objects, MQMSG_JOURNAL)
    for message in (lost, kept):
        objects.send(message, target, transaction)
    until(lambda: is_dead(objects, kept, name))
    assert objects.bodies(path) == []
    assert not is_dead(objects, lost, name)


@pytest.mark.conformance("MQAC-event-time_to_be_received_expiration")
def test_what_a_transaction_holds_expires_when_that_is_aborted(objects: Objects) -> None:
    held, other = short_lived(objects, seconds=3), short_lived(objects, seconds=3)
    objects.send(held, objects.destination("DIRECT=OS:" + STREAM), number(3))
    dispenser = objects.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    transaction = objects.com.call(dispenser, "BeginTransaction")
    queue = objects.open(QueueAccessType.RECEIVE_ACCESS, STREAM)
    within = Variant(VARENUM.VT_DISPATCH, transaction)
    objects.com.call(queue, "Receive", within, None, None, number(0), None)
    objects.send(other, objects.destination())
    until(lambda: is_dead(objects, other))
    assert not is_dead(objects, held, "DEADXACT")
    objects.com.call(transaction, "Abort", None, None)
    until(lambda: is_dead(objects, held, "DEADXACT"))
    assert objects.bodies(STREAM) == []


@pytest.mark.conformance("MQAC-coclass-MSMQEvent")
def test_an_event_can_be_made(objects: Objects) -> None:
    made = objects.create(clsids.MSMQ_EVENT, "IMSMQEvent3")
    assert refusal(objects, made, "get_Properties") is HResult.E_NOTIMPL
