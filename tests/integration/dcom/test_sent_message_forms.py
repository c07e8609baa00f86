"""Messages of [MC-MQAC] 3.17, sent in each form: labels, bodies, transactions, and refusals."""

import pytest

from rpcqm.base.errors import HResult
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.automation.values import EMPTY, Variant
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.types.mqvalues import VARENUM, QueueAccessType
from tests.support.dcom import clsids
from tests.support.dcom.com_objects import (
    NO,
    QUEUE,
    STREAM,
    YES,
    Objects,
    create_queue,
    number,
    octets,
    text,
)
from tests.support.dcom.dcom_client import ComError, Reference

CONNECTOR = "{0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0}"
ENHANCED = "Microsoft Enhanced Cryptographic Provider, v1.0"
SEND = "MQAC-IMSMQMessage4-54-Send"
DIRECT = "DIRECT=OS:" + QUEUE
REVISIONS = ("IMSMQMessage", "IMSMQMessage2", "IMSMQMessage3", "IMSMQMessage4")


def refusal(objects: Objects, message: Reference, target: Reference, *more: object) -> object:
    with pytest.raises(ComError) as refused:
        objects.send(message, target, *more)
    return refused.value.status


@pytest.mark.conformance("MQAC-IMSMQMessage4-36-Label", "MQAC-IMSMQMessage4-37-Label")
@pytest.mark.parametrize("label", [249 * "x", 124 * "𝄞" + "x"])
def test_the_longest_label_is_taken_and_arrives(objects: Objects, label: str) -> None:
    message = objects.message()
    objects.put(message, "Label", label)
    objects.send(message, objects.destination())
    assert objects.get(objects.received(), "Label") == label


@pytest.mark.conformance(
    SEND,
    "MQAC-IMSMQMessage4-66-AuthenticationProviderType",
    "MQAC-IMSMQMessage4-67-AuthenticationProviderType",
    "MQAC-IMSMQMessage4-68-AuthenticationProviderName",
    "MQAC-IMSMQMessage4-69-AuthenticationProviderName",
)
def test_receivers_see_the_provider_of_the_signature_of_a_connector(objects: Objects) -> None:
    message, target = objects.message(), objects.destination()
    objects.put(message, "ConnectorTypeGuid", CONNECTOR)
    objects.put(message, "Signature", octets(b"signed elsewhere"))
    objects.put(message, "AuthenticationProviderType", 12)
    objects.put(message, "AuthenticationProviderName", ENHANCED)
    objects.send(message, target)
    objects.send(message, target)
    read = objects.read()
    provider = (read.authentication_provider_type, read.authentication_provider_name)
    assert provider == (12, ENHANCED)
    received = objects.received()
    assert objects.get(received, "AuthenticationProviderType") == 12
    assert objects.get(received, "AuthenticationProviderName") == ENHANCED
    assert objects.get(received, "IsAuthenticated") == 0


@pytest.mark.conformance(
    SEND,
    "MQAC-IMSMQMessage4-21-ResponseQueueInfo_v1",
    "MQAC-IMSMQMessage4-29-AdminQueueInfo_v1",
    "MQAC-IMSMQMessage4-48-DestinationQueueInfo",
)
@pytest.mark.parametrize("interface", REVISIONS)
def test_each_revision_sends_and_gives_queues_by_its_own_interface(
    objects: Objects, interface: str
) -> None:
    revision = interface.removeprefix("IMSMQMessage")
    message = objects.message(interface)
    info = objects.create(clsids.MSMQ_QUEUE_INFO, f"IMSMQQueueInfo{revision}")
    objects.put(info, "FormatName", DIRECT)
    for name in ("ResponseQueueInfo", "AdminQueueInfo"):
        objects.com.call(message, f"putref_{name}", info)
    queue = objects.com.call(info, "Open", int(QueueAccessType.SEND_ACCESS), 0)
    objects.com.call(message, "Send", queue, None)
    received = objects.com.query_interface(objects.received(), interface)
    for name in ("ResponseQueueInfo", "AdminQueueInfo", "DestinationQueueInfo"):
        shown = objects.get(received, name)
        assert isinstance(shown, Reference)
        assert shown.interface == f"IMSMQQueueInfo{revision}"
        assert objects.get(shown, "FormatName") == DIRECT


@pytest.mark.conformance(SEND)
@pytest.mark.parametrize("kind", ["DISPATCH", "DISPATCH|BYREF", "UNKNOWN", "VARIANT|BYREF"])
def test_a_transaction_is_passed_in_each_form(objects: Objects, kind: str) -> None:
    dispenser = objects.create(clsids.MSMQ_TRANSACTION_DISPENSER, "IMSMQTransactionDispenser3")
    transaction = objects.com.call(dispenser, "BeginTransaction")
    passed = Variant(VARENUM.VT_DISPATCH, transaction)
    if kind == "VARIANT|BYREF":
        passed = Variant(VARENUM.VT_VARIANT | VARENUM.VT_BYREF, passed)
    elif kind != "DISPATCH":
        made_of = (VARENUM[f"VT_{part}"] for part in kind.split("|"))
        passed = Variant(sum(made_of), transaction)
    objects.send(objects.message(), objects.destination("DIRECT=OS:" + STREAM), passed)
    assert objects.bodies(STREAM) == []
    objects.com.call(transaction, "Commit", None, None, None)
    assert objects.bodies(STREAM) == [b""]
    late = refusal(objects, objects.message(), objects.destination(), passed)
    assert late is HResult.MQ_ERROR_TRANSACTION_SEQUENCE


@pytest.mark.conformance(SEND)
def test_a_transaction_by_reference_is_a_number_too(objects: Objects) -> None:
    single = Variant(VARENUM.VT_I4 | VARENUM.VT_BYREF, 3)
    objects.send(objects.message(), objects.destination("DIRECT=OS:" + STREAM), single)
    assert objects.bodies(STREAM) == [b""]


@pytest.mark.conformance("MQAC-IMSMQMessage4-26-BodyLength", "MQAC-IMSMQMessage4-27-Body")
@pytest.mark.parametrize("body", [text(""), octets(b""), text("a")])
def test_a_body_that_nobody_wants_is_not_there(objects: Objects, body: Variant) -> None:
    message = objects.message()
    objects.put(message, "Body", body)
    objects.send(message, objects.destination())
    queue = objects.open(QueueAccessType.PEEK_ACCESS)
    for wanted in (YES, NO, None):
        seen = objects.com.call(queue, "Peek", NO, wanted, number(0), NO)
        assert objects.get(seen, "Body") == (EMPTY if wanted is NO else body)
        length = 2 if body == text("a") and wanted is not NO else 0
        assert objects.get(seen, "BodyLength") == length


@pytest.mark.conformance("MQAC-IMSMQMessage4-28-Body")
def test_a_body_by_reference_is_its_value(objects: Objects) -> None:
    message = objects.message()
    for kind, value in ((VARENUM.VT_I4, 7), (VARENUM.VT_BSTR, "text")):
        objects.put(message, "Body", Variant(kind | VARENUM.VT_BYREF, value))
        assert objects.get(message, "Body") == Variant(kind, value)


@pytest.mark.conformance(
    SEND,
    "MQAC-IMSMQMessage4-83-ResponseQueueInfo",
    "MQAC-IMSMQMessage4-87-ResponseDestination",
)
@pytest.mark.parametrize(
    "name",
    [
        "DIRECT=HTTP://elsewhere/msmq/private$/answers",
        "DIRECT=HTTPS://elsewhere/msmq/private$/answers",
        "PUBLIC=11111111-2222-3333-4444-555555555555",
        "PRIVATE=11111111-2222-3333-4444-555555555555\\0000000a",
        "DL=11111111-2222-3333-4444-555555555555",
        "DIRECT=TCP:192.0.2.9\\private$\\acks",
    ],
)
def test_answers_may_go_to_names_of_every_kind(objects: Objects, name: str) -> None:
    message = objects.message()
    target = objects.destination(name, is_open=False)
    objects.com.call(message, "putref_ResponseDestination", target)
    objects.send(message, objects.destination())
    shown = objects.get(objects.received(), "ResponseDestination")
    assert isinstance(shown, Reference)
    destination = objects.com.query_interface(shown, "IMSMQDestination")
    assert str(objects.get(destination, "FormatName")).lower() == name.lower()


@pytest.mark.conformance(SEND)
def test_no_answer_comes_from_many_addresses_at_once(objects: Objects) -> None:
    """Packets have no element for them (G173)."""
    message = objects.message()
    target = objects.destination("MULTICAST=234.1.1.1:8001", is_open=False)
    objects.com.call(message, "putref_ResponseDestination", target)
    unsupported = refusal(objects, message, objects.destination())
    assert unsupported is HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION


@pytest.mark.conformance(SEND)
def test_a_queue_that_is_full_or_gone_refuses(objects: Objects) -> None:
    path = r".\private$\small"
    create_queue(objects.client, path, QueueSettings(quota=1))
    message, target = objects.message(), objects.destination("DIRECT=OS:" + path)
    objects.put(message, "Body", octets(bytes(700)))
    objects.send(message, target)
    full = refusal(objects, message, target)
    assert full is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    objects.client.run(objects.client.queues.delete(FormatName.of_path(PathName.parse(path))))
    gone = refusal(objects, message, target)
    assert gone in (HResult.MQ_ERROR_QUEUE_DELETED, HResult.MQ_ERROR_QUEUE_NOT_AVAILABLE)


@pytest.mark.conformance(SEND)
def test_a_message_that_was_refused_can_be_sent_then(objects: Objects) -> None:
    message = objects.message()
    objects.put(message, "Body", text("kept"))
    stream = objects.destination("DIRECT=OS:" + STREAM)
    assert refusal(objects, message, stream) is HResult.MQ_ERROR_TRANSACTION_USAGE
    before = objects.get(message, "Id")
    objects.send(message, stream, number(3))
    assert objects.get(message, "Id") != before
    assert objects.bodies(STREAM) == ["kept".encode("utf-16-le")]


@pytest.mark.conformance(SEND, "MQAC-IMSMQMessage4-39-MaxTimeToReachQueue")
@pytest.mark.parametrize(
    ("reach", "receive", "seen"), [(-1, 60, (60, 60)), (90, 60, (60, 60)), (30, 60, (30, 60))]
)
def test_no_message_has_longer_to_reach_its_queue_than_to_be_received(
    objects: Objects, reach: int, receive: int, seen: tuple[int, int]
) -> None:
    message = objects.message()
    objects.put(message, "MaxTimeToReachQueue", reach)
    objects.put(message, "MaxTimeToReceive", receive)
    objects.send(message, objects.destination())
    received = objects.received()
    names = ("MaxTimeToReachQueue", "MaxTimeToReceive")
    assert tuple(objects.get(received, name) for name in names) == seen


@pytest.mark.conformance("MQAC-IMSMQMessage4-90-IsAuthenticated2")
def test_a_single_message_is_first_and_last_and_nobodys(objects: Objects) -> None:
    name = FormatName.parse("DIRECT=OS:" + STREAM)
    objects.send(objects.message(), objects.destination(str(name)), number(3))
    received = objects.received(STREAM)
    assert objects.get(received, "IsFirstInTransaction") == 1
    assert objects.get(received, "IsFirstInTransaction2") is True
    assert objects.get(received, "IsLastInTransaction2") is True
    assert objects.get(received, "IsAuthenticated2") is False
