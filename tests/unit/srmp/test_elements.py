"""Every element of an envelope, both ways ([MC-MQSRM] 2.2.4 to 2.2.6)."""

from dataclasses import replace
from operator import attrgetter
from uuid import UUID

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.srmp.elements import Envelope, Eod, MessageId, Services, Stream, StreamId
from rpcqm.srmp.reading import read_envelope, read_request
from rpcqm.srmp.writing import write_envelope
from tests.support.srmp.srmp_samples import full_envelope, minimal, msmq, posted

OTHER = UUID("32221eda-9376-46df-b6ed-783091123831")
URL = "http://machine/msmq/private$"
STREAM_ID = "uid:00000000-0000-0000-0000-000000000008\\4839986701558349830"
RECEIPT_ID = "<id>uuid:7@00000000-0000-0000-0000-000000000008</id>"
MARK = 'se:mustUnderstand="1"'

ELEMENTS = {
    "action": ("action", "<action>MSMQ:label &amp; &lt;more&gt; \u00e4\U0001f600</action>"),
    "to": ("to", f"<to>{URL}/q</to>"),
    "id": ("id", f"<id>uuid:26626@{OTHER}</id>"),
    "rev": ("via", f"<rev><via>{URL}/answers?a=b&amp;c=d</via></rev>"),
    "expiresAt": ("expires_at", "<expiresAt>20380119T031407</expiresAt>"),
    "sentAt": ("sent_at", "<sentAt>20070618T210654</sentAt>"),
    "durable": ("services.durable", "<durable/>"),
    "deliveryReceiptRequest": (
        "services.delivery_receipt_request",
        f"<deliveryReceiptRequest><sendTo>{URL}/arrived</sendTo></deliveryReceiptRequest>",
    ),
    "commitmentReceiptRequest": (
        "services.commitment_receipt_request",
        f"<commitmentReceiptRequest><sendTo>{URL}/taken</sendTo><positiveOnly/><negativeOnly/>"
        "</commitmentReceiptRequest>",
    ),
    "streamId": ("stream.stream_id", f"<streamId>{STREAM_ID}</streamId><current>"),
    "current": ("stream.current", "<current>42</current>"),
    "previous": ("stream.previous", "<previous>40</previous>"),
    "start": (
        "stream.send_receipts_to",
        f"<start><sendReceiptsTo>{URL}/order_queue$</sendReceiptsTo></start>",
    ),
    "deliveryReceipt": (
        "delivery_receipt",
        f"<deliveryReceipt><receivedAt>20070618T210655</receivedAt>{RECEIPT_ID}</deliveryReceipt>",
    ),
    "commitmentReceipt": (
        "commitment_receipt",
        "<commitmentReceipt><decidedAt>20070618T210656</decidedAt><decision>negative</decision>"
        f"{RECEIPT_ID.replace('7@', '8@')}</commitmentReceipt>",
    ),
    "streamReceipt": (
        "stream_receipt",
        f"<streamReceipt><streamId>{STREAM_ID}</streamId><lastOrdinal>41</lastOrdinal>"
        "</streamReceipt>",
    ),
    "Class": ("msmq.message_class", "<Class>32769</Class>"),
    "Priority": ("msmq.priority", "<Priority>7</Priority>"),
    "Journal": ("msmq.journal", "<Journal/>"),
    "DeadLetter": ("msmq.dead_letter", "<DeadLetter/>"),
    "Correlation": (
        "msmq.correlation",
        "<Correlation>AAECAwQFBgcICQoLDA0ODxAREhM=</Correlation>",
    ),
    "Trace": ("msmq.trace", "<Trace/>"),
    "ConnectorType": ("msmq.connector_type", f"<ConnectorType>{OTHER}</ConnectorType>"),
    "App": ("msmq.app", "<App>36</App>"),
    "BodyType": ("msmq.body_type", "<BodyType>8</BodyType>"),
    "HashAlgorithm": ("msmq.hash_algorithm", "<HashAlgorithm>32772</HashAlgorithm>"),
    "Eod": (
        "msmq.eod",
        "<Eod><First/><Last/><ConnectorId>00000000-0000-0000-0000-000000000008</ConnectorId></Eod>",
    ),
    "Provider": (
        "msmq.provider",
        "<Provider><Type>24</Type><Name>A &lt;provider&gt;</Name></Provider>",
    ),
    "SourceQmGuid": ("msmq.source_qm_guid", f"<SourceQmGuid>{OTHER}</SourceQmGuid>"),
    "DestinationMqf": (
        "msmq.destination_mqf",
        f"<DestinationMqf>{URL}/one\n{URL}/two\n</DestinationMqf>",
    ),
    "AdminMqf": ("msmq.admin_mqf", f"<AdminMqf>{URL}/admin\n</AdminMqf>"),
    "ResponseMqf": (
        "msmq.response_mqf",
        "<ResponseMqf>MSMQ:DIRECT=OS:machine\\private$\\three\n</ResponseMqf>",
    ),
    "TTrq": ("msmq.ttrq", "<TTrq>20070622T210654</TTrq>"),
}
CONTAINERS = {
    "path": f'<path xmlns="http://schemas.xmlsoap.org/rp/" {MARK}><action>',
    "properties": f"<properties {MARK}><expiresAt>",
    "services": f"<services {MARK}><durable/>",
    "stream": f"<stream {MARK}><streamId>",
    "Msmq": '<Msmq xmlns="msmq.namespace.xml"><Class>',
}


def _claimed(names: dict[str, object]) -> list[object]:
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), id=name, marks=mark)
        for name, value in names.items()
        for mark in (pytest.mark.conformance(f"MQSRM-element-{name}"),)
    ]


@pytest.mark.parametrize(("field", "written"), _claimed({**ELEMENTS}))
def test_an_element_is_written_and_read_as_the_field_that_it_is_for(
    field: str, written: str
) -> None:
    envelope = full_envelope()
    if field == "services.durable":
        envelope.stream = None  # which would make it durable by itself
    octets = write_envelope(envelope)
    assert octets.count(written.encode()) == 1
    read = read_request(posted(octets)).envelope
    assert attrgetter(field)(read) == attrgetter(field)(envelope)
    assert read == envelope


@pytest.mark.conformance("MQSRM-rule-2.2.3")
@pytest.mark.parametrize("written", _claimed({**CONTAINERS}))
def test_a_container_is_written_with_its_namespace_and_mark(written: str) -> None:
    assert write_envelope(full_envelope()).count(written.encode()) == 1


@pytest.mark.conformance(
    *(f"MQSRM-element-{name}" for name in ("path", "properties", "services", "stream"))
)
@pytest.mark.parametrize("name", ["path", "properties", "services", "stream"])
def test_what_the_text_wants_understood_is_malformed_without_its_mark(name: str) -> None:
    octets = write_envelope(full_envelope()).decode()
    assert read_envelope(octets.encode()) == full_envelope()
    start, _, rest = octets.partition(f"<{name} ")
    unmarked = f"{start}<{name} {rest.replace(MARK, '', 1)}"
    with pytest.raises(DecodeError, match=f"<{name}> is not marked"):
        read_envelope(unmarked.encode())
    with pytest.raises(DecodeError, match=f"<{name}> is not marked"):
        read_envelope(unmarked.replace(f"<{name} ", f'<{name} se:mustUnderstand="0" ').encode())


@pytest.mark.parametrize("name", [name for name in ELEMENTS if name not in ("rev", "sentAt")])
def test_an_element_that_has_a_meaning_is_there_once(name: str) -> None:
    octets = write_envelope(full_envelope()).decode()
    written = ELEMENTS[name][1].removesuffix("<current>")
    with pytest.raises(DecodeError, match="is there twice"):
        read_envelope(octets.replace(written, written * 2).encode())


@pytest.mark.parametrize(
    "name",
    [
        *("action", "to", "id", "expiresAt", "streamId", "current"),
        *("Class", "Priority", "BodyType", "SourceQmGuid"),
    ],
)
def test_an_element_that_must_be_there_is_missed(name: str) -> None:
    octets = write_envelope(full_envelope()).decode()
    written = ELEMENTS[name][1].removesuffix("<current>")
    with pytest.raises(DecodeError, match="does not tell"):
        read_envelope(octets.replace(written, "").encode())


@pytest.mark.parametrize(
    ("written", "parent"),
    [
        (f"<sendTo>{URL}/arrived</sendTo>", "deliveryReceiptRequest"),
        (f"<sendTo>{URL}/taken</sendTo>", "commitmentReceiptRequest"),
        (f"<sendReceiptsTo>{URL}/order_queue$</sendReceiptsTo>", "start"),
        ("<receivedAt>20070618T210655</receivedAt>", "deliveryReceipt"),
        (RECEIPT_ID, "deliveryReceipt"),
        ("<decidedAt>20070618T210656</decidedAt>", "commitmentReceipt"),
        ("<decision>negative</decision>", "commitmentReceipt"),
        ("<lastOrdinal>41</lastOrdinal>", "streamReceipt"),
        (f"<via>{URL}/answers?a=b&amp;c=d</via>", "rev"),
    ],
)
def test_what_belongs_into_an_element_is_missed(written: str, parent: str) -> None:
    octets = write_envelope(full_envelope()).decode()
    assert written in octets
    with pytest.raises(DecodeError, match=f"<{parent}> does not tell"):
        read_envelope(octets.replace(written, "").encode())


@pytest.mark.conformance("MQSRM-element-inReplyTo")
def test_in_reply_to_is_passed_over() -> None:
    plain = read_envelope(minimal())
    assert read_envelope(minimal(properties="<inReplyTo>uuid:1@2</inReplyTo>")) == plain


@pytest.mark.conformance("MQSRM-rule-2.2.4.5")
@pytest.mark.parametrize("name", ["fwd", "from", "relatesTo", "fault"])
def test_other_elements_of_routing_are_passed_over(name: str) -> None:
    plain = read_envelope(minimal())
    nested = f"<{name}><via>http://elsewhere/</via><to>http://elsewhere/</to></{name}>"
    assert read_envelope(minimal(path=nested)) == plain


def test_elements_without_a_meaning_are_passed_over_everywhere() -> None:
    unknown = '<x:to xmlns:x="urn:x">no</x:to><unknown><to>no</to></unknown>'
    plain = read_envelope(minimal(msmq()))
    assert read_envelope(minimal(msmq(unknown) + unknown, unknown, unknown)) == plain


@pytest.mark.conformance("MQSRM-rule-2.2.3")
def test_namespaces_count_and_prefixes_do_not() -> None:
    octets = write_envelope(full_envelope()).decode()
    prefixed = (
        octets.replace("se:", "soap-env:")
        .replace("xmlns:se=", "xmlns:soap-env=")
        .replace('<Msmq xmlns="msmq.namespace.xml">', '<m:Msmq xmlns:m="msmq.namespace.xml">')
    )
    start, _, end = prefixed.partition('<m:Msmq xmlns:m="msmq.namespace.xml">')
    inner, _, rest = end.partition("</Msmq>")
    inner = inner.replace("<", "<m:").replace("<m:/", "</m:")
    again = f'{start}<m:Msmq xmlns:m="msmq.namespace.xml">{inner}</m:Msmq>{rest}'
    assert read_envelope(again.encode()) == full_envelope()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("http://schemas.xmlsoap.org/soap/envelope/", "http://www.w3.org/2003/05/soap-envelope"),
        ("http://schemas.xmlsoap.org/rp/", "http://schemas.xmlsoap.org/rp"),
        ('xmlns="http://schemas.xmlsoap.org/srmp/"', ""),
    ],
)
def test_an_element_of_another_namespace_is_another_element(old: str, new: str) -> None:
    with pytest.raises(DecodeError):
        read_envelope(minimal().decode().replace(old, new).encode())


@pytest.mark.conformance("MQSRM-rule-2.2.1.1")
@pytest.mark.parametrize(
    "guid",
    [
        "{32221eda-9376-46df-b6ed-783091123831}",
        "32221eda937646dfb6ed783091123831",
        "urn:uuid:32221eda-9376-46df-b6ed-783091123831",
        "32221eda-9376-46df-b6ed-78309112383",
        "",
    ],
)
def test_a_guid_is_written_in_one_form_without_braces(guid: str) -> None:
    source = "<SourceQmGuid>32221eda-9376-46df-b6ed-783091123831</SourceQmGuid>"
    octets = minimal(msmq())
    read = read_envelope(octets.replace(b"eda-9376", b"EDA-9376")).msmq
    assert read is not None
    assert read.source_qm_guid == OTHER
    assert source.encode() in write_envelope(read_envelope(octets))
    with pytest.raises(DecodeError, match="no GUID"):
        read_envelope(octets.replace(str(OTHER).encode(), guid.encode()))


@pytest.mark.conformance("MQSRM-rule-2.2.1.2")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20070619T210654", 1182287214),
        ("2007-06-19T21:06:54Z", 1182287214),
        ("2007-06-19T21:06:54.2614595", 1182287214),
        ("19700101T000000", 0),
        ("21060207T062815", 0xFFFFFFFF),
    ],
)
def test_a_date_is_read_as_seconds_in_utc(text: str, seconds: int) -> None:
    octets = minimal(properties=f"<sentAt>\n{text} </sentAt>")
    assert read_envelope(octets).sent_at == seconds


@pytest.mark.conformance("MQSRM-rule-2.2.1.2")
@pytest.mark.parametrize(
    "text",
    [
        *("", "20070619", "20070619T210660", "20071301T000000", "20070230T000000", "now"),
        *("19691231T235959", "21060207T062816", "2007-0619T210654", "20070619T210654+0200"),
        *("99991231T235959", "00000101T000000", "\uff120070619T210654", "20070619t210654"),
    ],
)
def test_what_is_no_date_is_malformed(text: str) -> None:
    with pytest.raises(DecodeError, match=r"date|1970"):
        read_envelope(minimal(properties=f"<sentAt>{text}</sentAt>"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Class", "65536"),
        ("Priority", "8"),
        ("Priority", "-1"),
        ("App", "4294967296"),
        ("App", "0x10"),
        ("App", "1_000"),
        ("App", "\u0663"),
        ("App", "0" * 21),
        ("App", "\u00b2"),
        ("BodyType", ""),
        ("BodyType", "8<x/>"),
        ("Correlation", "AAAA"),
        ("Correlation", "AAECAwQFBgcICQoLDA0ODxAREhM"),
        ("SourceQmGuid", "1"),
        ("TTrq", "tomorrow"),
        ("DestinationMqf", " "),
        ("lastOrdinal", "4294967296"),
        ("current", "0"),
        ("decision", "perhaps"),
        ("to", "file:///etc/passwd"),
        ("to", "DIRECT=OS:machine\\private$\\q"),
        ("to", "M\u017fMQ:MULTICAST=234.1.1.1:8001"),
        ("id", "26626@32221eda-9376-46df-b6ed-783091123831"),
        ("id", "uuid:uuid:1@32221eda-9376-46df-b6ed-783091123831"),
        ("id", "uuid:+1@32221eda-9376-46df-b6ed-783091123831"),
        ("id", "uuid:@32221eda-9376-46df-b6ed-783091123831"),
        ("id", "uuid:1@@32221eda-9376-46df-b6ed-783091123831"),
        ("id", "uuid:1"),
        ("streamId", "32221eda-9376-46df-b6ed-783091123831\\5"),
        ("streamId", "uid:32221eda-9376-46df-b6ed-783091123831\\5\\"),
        ("id", "uuid:18446744073709551616@32221eda-9376-46df-b6ed-783091123831"),
        ("streamId", "uid:32221eda-9376-46df-b6ed-783091123831/5"),
    ],
)
def test_a_value_that_an_element_cannot_have_is_malformed(name: str, text: str) -> None:
    octets = write_envelope(full_envelope()).decode()
    start, _, rest = octets.partition(f"<{name}>")
    behind = rest[rest.index(f"</{name}>") :]
    with pytest.raises(DecodeError):
        read_envelope(f"{start}<{name}>{text}{behind}".encode())


def test_without_msmq_elements_the_identifier_is_not_looked_at() -> None:
    octets = minimal().replace(b"uuid:7@00000000-0000-0000-0000-000000000008", b"whatever")
    assert read_envelope(octets).id == MessageId(UUID(int=0), 1)


def test_an_empty_via_is_as_none() -> None:
    assert read_envelope(minimal(path="<rev><via/></rev>")).via is None


@pytest.mark.conformance("MQSRM-element-stream")
def test_what_stands_in_a_stream_is_recoverable_and_needs_msmq_elements() -> None:
    stream = f"<STREAM {MARK}><streamId>{STREAM_ID}</streamId><current>5</current></STREAM>"
    read = read_envelope(minimal(stream + msmq()))
    assert read.stream == Stream(StreamId(UUID(int=8), 4839986701558349830), 5, 4)
    assert read.services == Services(durable=True)
    with pytest.raises(DecodeError, match="without <Msmq>"):
        read_envelope(minimal(stream))


def test_the_first_of_a_stream_has_no_previous_one() -> None:
    stream = Stream(StreamId(OTHER, 1), 1, 0)
    octets = write_envelope(replace(full_envelope(), stream=stream))
    assert b"<previous>" not in octets
    assert read_envelope(octets).stream == stream
    gap = replace(stream, current=3)
    assert read_envelope(write_envelope(replace(full_envelope(), stream=gap))).stream == gap


def test_what_is_not_set_is_not_written() -> None:
    envelope = read_envelope(minimal(msmq()))
    assert write_envelope(envelope) == minimal(msmq())


def test_what_another_serialization_leaves_out_is_not_missed() -> None:
    octets = minimal(msmq("<Eod/><Provider/>").replace("<TTrq>20070612T023719</TTrq>", ""))
    read = read_envelope(octets).msmq
    assert read is not None
    assert (read.ttrq, read.eod) == (None, Eod())
    assert read.provider is not None
    assert (read.provider.type, read.provider.name) == (0, "")


@pytest.mark.parametrize(
    ("label", "read"),
    [
        ("a\rb\r\nc\td", "a\rb\r\nc\td"),
        (" spaces ", " spaces "),
        ("]]>&amp;<!--", "]]>&amp;<!--"),
        ("a\0b\x1fc\ufffe", "a\ufffdb\ufffdc\ufffd"),
        ("half a pair \ud800", "half a pair \ufffd"),
    ],
)
def test_a_label_is_read_as_it_was_sent_if_xml_can_hold_it(label: str, read: str) -> None:
    envelope = replace(full_envelope(), action=f"MSMQ:{label}")
    assert read_envelope(write_envelope(envelope)).action == f"MSMQ:{read}"


def test_a_space_within_a_name_of_a_list_does_not_part_it() -> None:
    envelope = full_envelope()
    assert envelope.msmq is not None
    envelope.msmq.admin_mqf = (f"{URL}/two words", f"{URL}/other")
    read: Envelope = read_envelope(write_envelope(envelope))
    assert read.msmq is not None
    assert read.msmq.admin_mqf == (f"{URL}/two%20words", f"{URL}/other")
