"""What is written of a message ([MC-MQSRM] 3.1.7.2.4)."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from rpcqm.codec.names.format_name import FormatName, parse_format_names
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.srmp.elements import CommitmentReceiptRequest, Envelope, Eod, MessageId, Msmq, Services
from rpcqm.srmp.settings import SrmpSettings
from tests.support.srmp.http_network import SETTINGS, http_simulation
from tests.support.srmp.http_sending import NAME, Sending

NEVER = 0x7FFF_FFFF
OTHER = UUID("5c1fd6a5-6d2b-4d34-b9f5-2a6cf4d3e2a7")
EVERYTHING = 0x0F


@pytest.fixture
def sending() -> Iterator[Sending]:
    with http_simulation() as simulation:
        yield Sending(simulation)


def sent(sending: Sending, to: str = NAME, body: bytes = b"content", **more: Any) -> Envelope:
    """The envelope that the shop gets of a message."""
    sending.send(body, to, **more)
    sending.settle(1)
    return sending.shop.envelopes[-1]


def msmq(sending: Sending, **more: Any) -> Msmq:
    found = sent(sending, **more).msmq
    assert found is not None
    return found


@pytest.mark.conformance("MQSRM-rule-2.1.1", "MQSRM-rule-2.2.2")
def test_a_message_is_a_multipart_request(sending: Sending) -> None:
    sent(sending, body=b"content", extension=b"more")
    (request,) = sending.shop.requests
    _, headers = sending.shop.heads[0]
    assert (request.body, request.extension) == (b"content", b"more")
    assert dict(headers)["SOAPAction"] == '"MSMQMessage"'
    assert dict(headers)["Proxy-Accept"] == "NonInteractiveClient"
    identifier = sending.alice.engine.queue_manager.identifier
    assert f"Content-Id: body@{identifier}\r\n".encode() in request.compound


def test_a_message_without_a_body_is_an_envelope_alone(sending: Sending) -> None:
    sent(sending, body=b"")
    (request,) = sending.shop.requests
    assert (request.body, dict(sending.shop.heads[0][1])["Content-Type"]) == (None, "text/xml")


def test_an_extension_without_a_body_is_attached(sending: Sending) -> None:
    sent(sending, body=b"", extension=b"more")
    assert sending.shop.requests[0].extension == b"more"


@pytest.mark.conformance("MQSRM-rule-3.1.7.2.4", "MQSRM-element-path", "MQSRM-element-action")
def test_the_least_that_is_said(sending: Sending) -> None:
    envelope = sent(sending, delivery_guarantee=0, label="mqsender label")
    now = sending.simulation.clock.now() // 1000 - 1
    assert envelope.action == "MSMQ:mqsender label"
    assert envelope.to == "http://shop/msmq/private$/orders"
    assert envelope.id.guid == sending.alice.engine.queue_manager.identifier
    assert (envelope.expires_at, envelope.sent_at) == (NEVER, now)
    assert envelope.services == Services()
    assert (envelope.via, envelope.stream, envelope.signature) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "to"),
    [
        ("DIRECT=HTTP://shop/msmq/Private$/Orders", "http://shop/msmq/Private$/Orders"),
        ("DIRECT=http://shop:80/MSMQ\\private$\\orders", "http://shop:80/MSMQ/private$/orders"),
        ("DIRECT=HTTPS://shop/msmq/public", "https://shop/msmq/public"),
    ],
)
def test_the_destination_is_a_url(sending: Sending, name: str, to: str) -> None:
    sending.simulation.hosts["shop:80"] = sending.shop
    assert sent(sending, name).to == to


@pytest.mark.conformance("MQSRM-element-expiresAt", "MQSRM-element-TTrq")
@pytest.mark.parametrize(
    ("received", "reached", "expires_at", "ttrq"),
    [
        (INFINITE, INFINITE, NEVER, NEVER),
        (600, 60, 600, 60),
        (INFINITE, 60, NEVER, 60),
        (600, INFINITE, 600, NEVER),
        (INFINITE - 1, INFINITE - 1, NEVER, NEVER),
    ],
)
def test_both_times_are_told(
    sending: Sending, received: int, reached: int, expires_at: int, ttrq: int
) -> None:
    envelope = sent(sending, time_to_be_received=received, time_to_reach_queue=reached)
    assert envelope.msmq is not None
    assert envelope.sent_at is not None
    assert envelope.msmq.ttrq is not None
    since = [moment - envelope.sent_at for moment in (envelope.expires_at, envelope.msmq.ttrq)]
    assert since == [
        moment if moment < NEVER else NEVER - envelope.sent_at for moment in (expires_at, ttrq)
    ]


@pytest.mark.conformance("MQSRM-element-Msmq")
def test_what_only_queue_managers_understand(sending: Sending) -> None:
    found = msmq(
        sending,
        priority=6,
        positive_journaling_requested=True,
        negative_journaling_requested=True,
        correlation_identifier=MessageIdentifier(OTHER, 7),
        tracing_requested=True,
        connector_type_identifier=OTHER,
        application_tag=36,
        body_type=8,
        hash_algorithm=0x8004,
    )
    assert (found.message_class, found.priority, found.app, found.body_type) == (0, 6, 36, 8)
    assert (found.journal, found.dead_letter, found.trace) == (True, True, True)
    assert found.correlation == OTHER.bytes_le + b"\x07\0\0\0"
    assert (found.connector_type, found.hash_algorithm) == (OTHER, 0x8004)
    assert found.source_qm_guid == sending.alice.engine.queue_manager.identifier
    assert (found.eod, found.provider) == (None, None)
    assert (found.destination_mqf, found.admin_mqf, found.response_mqf) == ((), (), ())


@pytest.mark.conformance("MQSRM-element-Eod")
def test_the_ends_of_a_transaction_are_told(sending: Sending) -> None:
    sending.send_in_order()
    sending.settle(1)
    found = sending.shop.envelopes[0].msmq
    assert found is not None
    assert (found.eod, found.priority) == (Eod(True, True), 0)


@pytest.mark.conformance("MQSRM-element-durable", "MQSRM-element-services")
@pytest.mark.parametrize("guarantee", [0, 1])
def test_what_is_recoverable_is_durable(sending: Sending, guarantee: int) -> None:
    envelope = sent(sending, delivery_guarantee=guarantee)
    assert envelope.services.durable is bool(guarantee)


ADMIN_URL = "http://alice:8080/msmq/private$/admin"
ADMIN = "DIRECT=OS:alice\\private$\\admin"


@pytest.mark.conformance(
    "MQSRM-element-deliveryReceiptRequest",
    "MQSRM-element-commitmentReceiptRequest",
    "MQSRM-element-services",
)
@pytest.mark.parametrize(
    ("wanted", "arrival", "positive", "negative"),
    [
        (0, False, False, False),
        (1, True, False, False),
        (2, False, True, False),
        (4, False, False, False),
        (8, False, False, True),
        (0x0F, True, True, True),
    ],
)
def test_receipts_are_asked_for(
    sending: Sending, wanted: int, arrival: bool, positive: bool, negative: bool
) -> None:
    sending.alice.adjust(SrmpSettings(http_port=8080))
    sending.alice.create("admin")
    services = sent(
        sending, acknowledgements_requested=wanted, administration_queue_format_name=ADMIN
    ).services
    assert services.delivery_receipt_request == (ADMIN_URL if arrival else None)
    expected = CommitmentReceiptRequest(ADMIN_URL, positive, negative)
    asked = services.commitment_receipt_request
    assert asked == (expected if positive or negative else None)


@pytest.mark.parametrize(
    ("settings", "name", "url"),
    [
        (SETTINGS, ADMIN, "http://alice/msmq/private$/admin"),
        (SrmpSettings(https_port=443), ADMIN, "https://alice/msmq/private$/admin"),
        (SETTINGS, "DIRECT=HTTP://gateway:81/msmq/q", "http://gateway:81/msmq/q"),
        (SETTINGS, "DIRECT=OS:bob\\private$\\q", "MSMQ:DIRECT=OS:bob\\private$\\q"),
    ],
)
def test_an_administration_queue_is_named_as_others_reach_it(
    sending: Sending, settings: SrmpSettings, name: str, url: str
) -> None:
    sending.alice.adjust(settings)
    sending.alice.create("admin")
    services = sent(
        sending, acknowledgements_requested=1, administration_queue_format_name=name
    ).services
    assert services.delivery_receipt_request == url


def test_an_administration_queue_has_its_url_whatever_it_is_called(sending: Sending) -> None:
    number = sending.alice.create("admin").private_queue_number
    name = FormatName.private(sending.alice.engine.queue_manager.identifier, number)
    services = sent(
        sending, acknowledgements_requested=1, administration_queue_format_name=name
    ).services
    assert services.delivery_receipt_request == "http://alice/msmq/private$/admin"


@pytest.mark.conformance("MQSRM-element-rev")
@pytest.mark.parametrize(
    ("name", "via"),
    [
        ("DIRECT=HTTP://shop/msmq/private$/answers", "http://shop/msmq/private$/answers"),
        ("DIRECT=OS:bob\\private$\\answers", "MSMQ:DIRECT=OS:bob\\private$\\answers"),
    ],
)
def test_the_response_queue_is_the_way_back(sending: Sending, name: str, via: str) -> None:
    assert sent(sending, response_queue_format_name=FormatName.parse(name)).via == via


@pytest.mark.conformance("MQSRM-element-DestinationMqf")
def test_each_destination_of_several_is_told_of_all(sending: Sending) -> None:
    both = f"{NAME},DIRECT=OS:bob\\private$\\orders,DIRECT=HTTP://other/msmq/private$/orders"
    other = sending.simulation.host("other")
    assert len(parse_format_names(both)) == 3
    sending.send(b"to several", both)
    sending.settle(1)
    (here,), (there,) = sending.shop.envelopes, other.envelopes
    assert here.msmq is not None
    assert there.msmq is not None
    assert here.to == "http://shop/msmq/private$/orders"
    assert there.to == "http://other/msmq/private$/orders"
    assert set(here.msmq.destination_mqf) == {
        "http://shop/msmq/private$/orders",
        "MSMQ:DIRECT=OS:bob\\private$\\orders",
        "http://other/msmq/private$/orders",
    }
    assert there.msmq.destination_mqf == here.msmq.destination_mqf


@pytest.mark.conformance("MQSRM-element-AdminMqf", "MQSRM-element-ResponseMqf")
def test_lists_of_queues_for_answers_are_told(sending: Sending) -> None:
    names = parse_format_names("DIRECT=HTTP://a/msmq/q,DIRECT=OS:b\\private$\\q")
    found = msmq(
        sending,
        to=f"{NAME},DIRECT=HTTP://other/msmq/private$/orders",
        administration_multi_queue_format_name=names,
        response_multi_queue_format_name=names[::-1],
    )
    assert found.admin_mqf == ("http://a/msmq/q", "MSMQ:DIRECT=OS:b\\private$\\q")
    assert found.response_mqf == ("MSMQ:DIRECT=OS:b\\private$\\q", "http://a/msmq/q")


# Receipts of what came by another protocol, for a queue with an HTTP name


@pytest.mark.conformance("MQSRM-element-deliveryReceipt", "MQSRM-element-commitmentReceipt")
def test_acknowledgements_to_http_names_are_receipts(sending: Sending) -> None:
    sending.alice.create("here")
    identifier = sending.alice.send(
        "DIRECT=OS:alice\\private$\\here",
        b"body",
        acknowledgements_requested=EVERYTHING,
        administration_queue_format_name=NAME,
    )
    sending.settle(1)
    assert sending.alice.receive("here") == b"body"
    sending.settle(1)
    arrived, received = sending.shop.envelopes
    about = MessageId(identifier.queue_manager_guid, identifier.ordinal)
    assert arrived.delivery_receipt is not None
    assert received.commitment_receipt is not None
    assert (arrived.delivery_receipt.id, received.commitment_receipt.id) == (about, about)
    assert received.commitment_receipt.positive
    assert arrived.delivery_receipt.received_at == arrived.sent_at
    assert received.commitment_receipt.decided_at == received.sent_at
    assert arrived.via == received.via == "MSMQ:DIRECT=OS:alice\\private$\\here"
    assert [request.body for request in sending.shop.requests] == [None, None]
    classes = [each.msmq.message_class for each in sending.shop.envelopes if each.msmq]
    assert classes == [
        MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE,
        MessageClass.MQMSG_CLASS_ACK_RECEIVE,
    ]


def test_a_message_that_is_purged_has_a_negative_receipt_without_its_body(sending: Sending) -> None:
    queue = sending.alice.create("here")
    sending.alice.send(
        "DIRECT=OS:alice\\private$\\here",
        b"body",
        acknowledgements_requested=EVERYTHING,
        administration_queue_format_name=NAME,
    )
    sending.alice.engine.queues.purge_queue(queue)
    sending.settle(1)
    receipt = sending.shop.envelopes[-1].commitment_receipt
    assert receipt is not None
    assert (receipt.positive, sending.shop.bodies) == (False, [None, None])
