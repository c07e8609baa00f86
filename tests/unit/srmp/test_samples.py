"""The samples of [MC-MQSRM] section 4, read and written."""

import re
from collections.abc import Callable
from uuid import UUID

import pytest

from rpcqm.srmp.elements import (
    CommitmentReceipt,
    CommitmentReceiptRequest,
    DeliveryReceipt,
    MessageId,
    Stream,
    StreamId,
    StreamReceipt,
)
from rpcqm.srmp.message_types import MessageType, identify
from rpcqm.srmp.multipart import write_request
from rpcqm.srmp.reading import read_envelope, read_request
from rpcqm.srmp.writing import write_envelope
from tests.support.srmp.srmp_samples import DIRECTORY, NAMES, sample

Mask = Callable[[str], str]
_STREAM = StreamId(UUID("2744e4e1-2b48-43e8-b441-42745f280d53"), 4839986701558349830)


def identifier_is_before_rev(text: str) -> str:
    return re.sub(r"(<rev>.*?</rev>)(<id>.*?</id>)", r"\2\1", text)


def numbers_of_0_are_left_out(text: str) -> str:
    return re.sub("<App>0</App>|<HashAlgorithm>0</HashAlgorithm>", "", text)


def without_msmq_the_identifier_is_1(text: str) -> str:
    return re.sub("(<id>uuid:1@.*?)8</id>", r"\g<1>0</id>", text)


def path_has_the_default_namespace(text: str) -> str:
    namespace = ' xmlns:rp="http://schemas.xmlsoap.org/rp/"'
    text = text.replace(namespace, "").replace("<rp:path", f"<rp:path{namespace}")
    return text.replace("xmlns:rp=", "xmlns=").replace("rp:", "")


def namespaces_are_declared_once(text: str) -> str:
    text = text.replace('<services xmlns="http://schemas.xmlsoap.org/srmp/"', "<services")
    return text.replace('xmlns:se= "', 'xmlns:se="')


def requests_are_in_the_order_of_the_text(text: str) -> str:
    text = re.sub("(<commitmentRec.*Request>)(<deliveryRec.*Request>)", r"\2\1", text)
    return text.replace("<negativeOnly/><positiveOnly/>", "<positiveOnly/><negativeOnly/>")


def streams_are_durable_and_in_lower_case(text: str) -> str:
    text = text.replace("</Stream>", "</stream>")
    services = '<services se:mustUnderstand="1"><durable/></services>'
    return text.replace("<Stream ", f"{services}<stream ")


def elements_without_use_are_left_out(text: str) -> str:
    text = re.sub("(</sendReceiptsTo>)<expiresAt>.*?</expiresAt>", r"\1", text)
    return re.sub("<streamReceiptRequest/>|<end/>", "", text)


def urls_have_no_space_around(text: str) -> str:
    return re.sub(
        r"<sendReceiptsTo>\s*(.*?)\s*</sendReceiptsTo>",
        r"<sendReceiptsTo>\1</sendReceiptsTo>",
        text,
    )


def previous_is_written(text: str) -> str:
    def written(found: re.Match[str]) -> str:
        return f"{found[0]}<previous>{int(found[1]) - 1}</previous>"

    return re.sub("<current>([23])</current>", written, text)


_RECEIPT: tuple[Mask, ...] = (identifier_is_before_rev, numbers_of_0_are_left_out)
_STREAMS: tuple[Mask, ...] = (
    numbers_of_0_are_left_out,
    streams_are_durable_and_in_lower_case,
    elements_without_use_are_left_out,
    urls_have_no_space_around,
    previous_is_written,
)
MASKS: dict[str, tuple[Mask, ...]] = {
    "4.1_simple": (),
    "4.2_msmq": (numbers_of_0_are_left_out,),
    "4.3_receipt_requests": (
        namespaces_are_declared_once,
        path_has_the_default_namespace,
        without_msmq_the_identifier_is_1,
        requests_are_in_the_order_of_the_text,
    ),
    "4.3_delivery_receipt": _RECEIPT,
    "4.3_commitment_receipt": _RECEIPT,
    "4.4_first": _STREAMS,
    "4.4_first_receipt": _RECEIPT,
    "4.4_second": _STREAMS,
    "4.4_second_receipt": _RECEIPT,
    "4.4_third": _STREAMS,
    "4.4_third_receipt": _RECEIPT,
    "4.5_multicast": (numbers_of_0_are_left_out,),
}


def masked(name: str, content: bytes, envelope: str) -> bytes:
    """What is expected: the sample's content with the envelope as its masks make it."""
    expected = envelope
    for mask in MASKS[name]:
        expected = mask(expected)
    length = f"Content-Length: {len(envelope)}\r\n".encode()
    content = content.replace(length, f"Content-Length: {len(expected)}\r\n".encode())
    return content.replace(envelope.encode(), expected.encode())


@pytest.mark.conformance("MQSRM-rule-2.1.1", "MQSRM-rule-2.2.2")
@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_written_as_it_is_printed(name: str) -> None:
    request = sample(name)
    read = read_request(request)
    number = re.search(r"boundary, (\d+)", request.header("Content-Type") or "")
    guid = re.search(r"body@([-0-9a-f]+)", request.body.decode("latin-1"))
    headers, content = write_request(
        write_envelope(read.envelope),
        read.body,
        read.extension,
        UUID(guid[1]) if guid else UUID(int=0),
        int(number[1]) if number else None,
    )
    assert content == masked(name, request.body, read.envelope_text)
    assert set(headers) < set(request.headers)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_as_the_sample(name: str) -> None:
    read = read_request(sample(name)).envelope
    assert read_envelope(write_envelope(read)) == read


@pytest.mark.conformance("MQSRM-packet-user", "MQSRM-rule-3.1.5.1.5")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("4.1_simple", MessageType.USER),
        ("4.2_msmq", MessageType.USER),
        ("4.3_delivery_receipt", MessageType.DELIVERY_RECEIPT),
        ("4.3_commitment_receipt", MessageType.COMMITMENT_RECEIPT),
        ("4.4_first", MessageType.USER),
        ("4.4_second_receipt", MessageType.STREAM_RECEIPT),
        ("4.5_multicast", MessageType.USER),
    ],
)
def test_a_sample_is_of_the_kind_that_its_text_tells(name: str, kind: MessageType) -> None:
    assert identify(read_request(sample(name)).envelope) is kind


def test_a_simple_message_is_read() -> None:
    read = read_request(sample("4.1_simple"))
    envelope = read.envelope
    assert (envelope.action, envelope.to) == (
        "MSMQ:mqsender label",
        "http://machine2/msmq/private$/simpleq",
    )
    assert envelope.id == MessageId(UUID(int=0), 1)
    assert (envelope.expires_at, envelope.sent_at) == (1181407459, 1181321059)
    assert (envelope.via, envelope.msmq, envelope.stream) == (None, None, None)
    assert (read.body, read.extension) == (b"First Message", None)


def test_a_message_with_msmq_elements_is_read() -> None:
    read = read_request(sample("4.2_msmq"))
    msmq = read.envelope.msmq
    assert msmq is not None
    assert (msmq.message_class, msmq.priority, msmq.body_type) == (0, 3, 0)
    assert (msmq.correlation, msmq.hash_algorithm) == (bytes(20), 32772)
    assert msmq.source_qm_guid == UUID("caf195ea-615c-4264-ae08-11a4e60194c0")
    assert msmq.ttrq == 1185160300
    assert read.envelope.id == MessageId(msmq.source_qm_guid, 20503)
    assert read.body is not None
    assert len(read.body) == 223


def test_requests_for_receipts_are_read() -> None:
    envelope = read_request(sample("4.3_receipt_requests")).envelope
    services = envelope.services
    assert services.delivery_receipt_request == "http://machine1/MSMQ/private$/receipts"
    assert services.commitment_receipt_request == CommitmentReceiptRequest(
        "http://machine1/MSMQ/private$/deliverydone", positive_only=True, negative_only=True
    )
    assert services.durable is False
    assert (envelope.action, envelope.via) == ("Generic label", "http://machine1/MSMQ/private$/Q1")


def test_receipts_are_read() -> None:
    delivery = read_request(sample("4.3_delivery_receipt")).envelope
    commitment = read_request(sample("4.3_commitment_receipt")).envelope
    assert delivery.delivery_receipt == DeliveryReceipt(1184815494, MessageId())
    assert commitment.commitment_receipt == CommitmentReceipt(1184815641, True, MessageId())
    assert commitment.msmq is not None
    assert commitment.msmq.correlation == bytes(16) + b"\1\0\0\0"


def test_a_stream_is_read() -> None:
    first, second, third = (
        read_request(sample(f"4.4_{name}")).envelope for name in ("first", "second", "third")
    )
    url = "http://machine1/MSMQ/private$/receipts?SenderStream=XRntV"
    assert first.stream == Stream(_STREAM, 1, 0, url)
    assert second.stream == Stream(_STREAM, 2, 1)
    assert third.stream == Stream(_STREAM, 3, 2)
    assert first.services.durable
    receipt = read_request(sample("4.4_third_receipt")).envelope
    assert receipt.stream_receipt == StreamReceipt(_STREAM, 3)
    assert receipt.to == url


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.1")
@pytest.mark.parametrize("name", NAMES)
def test_the_compound_message_is_the_request_as_it_came(name: str) -> None:
    read = read_request(sample(name))
    assert read.compound == DIRECTORY.joinpath(f"{name}.http").read_bytes()
    body = read.body or b""
    assert read.compound[read.body_offset : read.body_offset + len(body)] == body


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.1")
@pytest.mark.parametrize("name", NAMES)
def test_parts_of_the_envelope_are_found_as_they_were_written(name: str) -> None:
    read = read_request(sample(name))
    assert read.body_text == "<se:Body></se:Body>"
    assert read.header_text.startswith("<se:Header><")
    assert read.header_text.endswith("></se:Header>")
    assert f"{read.header_text}{read.body_text}</se:Envelope>" in read.envelope_text
