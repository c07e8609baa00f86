"""Envelopes like one before: what templates write is what the careful path writes."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.names.format_name import FormatName, parse_format_names
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier, TxSequenceID
from rpcqm.fast.formats import envelope_write as writing_templates
from rpcqm.fast.formats.envelope_write import KEPT, Attached, WritingTemplates
from rpcqm.srmp.connection.outgoing_transfer import OutgoingTransfer
from rpcqm.srmp.elements import Stream, StreamId
from rpcqm.srmp.outgoing import written
from rpcqm.srmp.writing import write_envelope
from tests.support.srmp.http_network import SETTINGS, http_simulation
from tests.support.srmp.http_sending import Sending

HERE = UUID("f2b9c2a0-4d3c-4f8e-9d51-000000000001")
ORDERS = FormatName.parse("DIRECT=HTTP://shop/msmq/private$/orders")
STREAM = Stream(StreamId(HERE, 5 << 32), 7, 6)
STREAMS = (None, STREAM, replace(STREAM, current=1, previous=0, send_receipts_to="http://a/b?c&d"))
_SECONDS = st.integers(0, 0xFFFF_FFFF)
_TEXTS = st.text(st.characters(exclude_characters="\0"), max_size=20)
_IDENTIFIERS = st.builds(MessageIdentifier, st.uuids(), _SECONDS)


def url_of(name: FormatName) -> str:
    return f"http://here/{name}"


def packet(**fields: Any) -> bytes:
    """One with these attributes besides those that every message has."""
    usual = MessageAttributes(ORDERS, MessageIdentifier(HERE, 1), b"body", sent_time=1_800_000_000)
    return bytes(build_user_message(replace(usual, **fields)))


def careful(octets: bytes, stream: Stream | None = None) -> Attached | str:
    """What the careful path writes, or why it writes nothing."""
    try:
        made = written(PacketMessage(octets), ORDERS, url_of, stream)
        return Attached(write_envelope(made.envelope), made.body, made.extension)
    except (DecodeError, MQError) as error:
        return str(error)


def by_template(known: WritingTemplates, octets: bytes, stream: Stream | None) -> Attached | str:
    """What is sent of a message as a queue does it."""
    try:
        found = known.written(octets, stream)
        if found is None:
            known.note(PacketMessage(octets), octets)
    except DecodeError as error:
        return str(error)
    return careful(octets, stream) if found is None else found


def templates() -> WritingTemplates:
    return WritingTemplates(url_of)


def taught(*examples: bytes) -> WritingTemplates:
    """What knows these by heart."""
    made = templates()
    for octets in examples or (packet(),):
        for _ in range(2):
            made.note(PacketMessage(octets), octets)
    return made


VARYING = {
    "identifier": st.builds(MessageIdentifier, st.just(HERE), _SECONDS),
    "sent_time": _SECONDS,
    "label": _TEXTS,
    "correlation_identifier": _IDENTIFIERS,
    "body": st.binary(max_size=30),
    "extension": st.binary(max_size=10),
}
_NAMES = st.sampled_from(
    [
        FormatName.parse(r"DIRECT=OS:here\private$\answers"),
        FormatName.parse("DIRECT=HTTP://here/msmq/private$/b c&d"),
        FormatName.parse("PUBLIC=f2b9c2a0-4d3c-4f8e-9d51-0000000000aa"),
    ]
)
OTHERS = {
    "message_class": st.sampled_from(
        [MessageClass.MQMSG_CLASS_ACK_RECEIVE, MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q, 1, 0x400]
    ),
    "delivery_guarantee": st.integers(0, 1),
    "priority": st.integers(0, 7),
    "time_to_reach_queue": _SECONDS,
    "time_to_be_received": _SECONDS,
    "body_type": _SECONDS,
    "application_tag": _SECONDS,
    "acknowledgements_requested": st.integers(0, 15),
    "administration_queue_format_name": _NAMES,
    "response_queue_format_name": _NAMES,
    "positive_journaling_requested": st.booleans(),
    "negative_journaling_requested": st.booleans(),
    "connector_type_identifier": st.uuids(),
    "hash_algorithm": st.sampled_from([0, 0x8003, 0x8004]),
    "authentication_provider_type": st.integers(0, 9),
    "authentication_provider_name": _TEXTS,
    "destination_multi_queue_format_name": st.just(
        parse_format_names("DIRECT=HTTP://shop/msmq/private$/orders,DIRECT=OS:a\\private$\\b")
    ),
    "tracing_requested": st.booleans(),
}
IN_TRANSACTION = {
    "transaction_identifier": st.integers(0, (1 << 20) - 1),
    "transactional_message_sequence_identifier": st.builds(TxSequenceID, _SECONDS, _SECONDS),
    "transaction_sequence_number": _SECONDS,
    "final_ack_required": st.booleans(),
    "first_in_transaction": st.booleans(),
    "last_in_transaction": st.booleans(),
    "connector_queue_manager_identifier": st.none() | st.uuids(),
}
_MESSAGES = st.tuples(
    st.fixed_dictionaries({}, optional=OTHERS), st.fixed_dictionaries({}, optional=IN_TRANSACTION)
)


@settings(max_examples=200)
@given(
    _MESSAGES,
    st.lists(st.fixed_dictionaries({}, optional=VARYING), min_size=3, max_size=6),
    _MESSAGES,
    st.sampled_from(STREAMS),
)
def test_what_a_template_writes_is_what_the_careful_path_writes(
    kind: tuple[dict[str, Any], dict[str, Any]],
    variants: list[dict[str, Any]],
    other: tuple[dict[str, Any], dict[str, Any]],
    stream: Stream | None,
) -> None:
    """Messages of one kind, and each time one of another kind that is nearly the same."""
    known = templates()
    for variant in variants:
        for plain, transaction in (kind, (kind[0] | other[0], kind[1] | other[1]), kind):
            if transaction:
                transaction = {"transaction_identifier": 1, **transaction}
            octets = packet(**plain, **transaction, **variant)
            assert by_template(known, octets, stream) == careful(octets, stream)


KINDS = {
    "plain": {"label": "a label", "extension": b"more"},
    "answered": {"response_queue_format_name": ORDERS, "connector_type_identifier": HERE},
    "transactional": {"transaction_identifier": 9, "first_in_transaction": True},
    "signed": {"signature": b"1234", "authentication_provider_name": "a provider"},
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_a_packet_that_differs_in_one_octet_is_written_as_the_careful_path_writes_it(
    kind: dict[str, Any],
) -> None:
    octets = packet(**kind)
    known = taught(octets)
    assert len(known) == 1
    for place in range(len(octets)):
        for flipped in (1, 2, 4, 8, 16, 32, 64, 128):
            other = bytearray(octets)
            other[place] ^= flipped
            changed = bytes(other)
            assert _unlearning(known, changed) in (None, careful(changed, STREAM))
    assert len(known) == 1


def _unlearning(known: WritingTemplates, octets: bytes) -> Attached | str | None:
    try:
        return known.written(octets, STREAM)
    except DecodeError as error:
        return str(error)


@pytest.mark.parametrize("size", range(0, 200, 7))
def test_a_packet_that_is_cut_off_has_no_template(size: int) -> None:
    octets = packet(transaction_identifier=9, label="a label")
    assert taught(octets).written(octets[:size], None) is None


def learned(known: WritingTemplates, octets: bytes) -> bool:
    """Whether a message is written without the careful path."""
    return known.written(octets, None) is not None


@pytest.mark.parametrize("field", [*VARYING, "transaction_identifier"])
def test_the_third_of_a_form_is_written_by_its_template(field: str) -> None:
    values: dict[str, list[Any]] = {
        "identifier": [MessageIdentifier(HERE, number) for number in range(3)],
        "sent_time": [1, 2, 3],
        "label": ["", "a", "a longer one"],
        "correlation_identifier": [MessageIdentifier(HERE, number) for number in range(3)],
        "body": [b"", b"a", b"a longer one"],
        "extension": [b"", b"a", b"a longer one"],
        "transaction_identifier": [1, 2, (1 << 20) - 1],
    }
    first, second, third = (packet(**{field: value}) for value in values[field])
    known = templates()
    for octets in (first, second):
        assert not learned(known, octets)
        known.note(PacketMessage(octets), octets)
    assert learned(known, third)


@pytest.mark.parametrize("label", ["\ue000 the label \ue001", "uuid:18364758544493064720@", "<&>"])
def test_no_label_is_taken_for_a_place(label: str) -> None:
    known, octets = templates(), packet(label=label)
    for _ in range(4):
        assert by_template(known, octets, STREAM) == careful(octets, STREAM)


def test_a_text_that_has_a_mark_hinders_a_template() -> None:
    octets = packet(authentication_provider_name=writing_templates._MARKS[2])
    assert len(taught(octets)) == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"administration_queue_format_name": ORDERS, "acknowledgements_requested": 15},
        {"message_class": MessageClass.MQMSG_CLASS_ACK_RECEIVE},
        {"destination_multi_queue_format_name": (ORDERS, ORDERS)},
    ],
)
def test_what_depends_on_more_than_its_form_has_no_template(fields: dict[str, Any]) -> None:
    assert len(taught(packet(**fields))) == 0


def test_few_templates_are_kept_those_that_were_used_last() -> None:
    forms = [packet(application_tag=number) for number in range(KEPT + 1)]
    known = taught(*forms[:KEPT])
    assert all(learned(known, octets) for octets in reversed(forms[:KEPT]))
    for _ in range(2):
        known.note(PacketMessage(forms[KEPT]), forms[KEPT])
    assert [learned(known, octets) for octets in forms] == [*[True] * (KEPT - 1), False, True]


def test_what_comes_once_has_no_template() -> None:
    known = taught()
    for number in range(1, 3 * KEPT):
        octets = packet(application_tag=number)
        known.note(PacketMessage(octets), octets)
    assert len(known) == 1


def test_messages_are_sent_alike_with_templates_and_without() -> None:
    """By a queue that sends what comes, in streams and without one."""
    with_them, without = _sent(True), _sent(False)
    assert with_them == without
    assert len(with_them) == 12


def _sent(templates: bool) -> list[tuple[bytes, bytes | None, bytes | None]]:
    with http_simulation() as simulation:
        sending = Sending(simulation)
        sending.alice.speed.switch(templates)
        for number in range(6):
            more: dict[str, Any] = {"label": f"label {number}", "extension": b"more" * (number % 2)}
            sending.send(b"body %d" % number, **more)
            sending.settle(2)
            sending.send_in_order(b"body %d" % number, **more)
            sending.settle(2)
            sending.receipt(sending.numbers[-1])
        own = sending.alice.engine.queue_manager.identifier
        transfer = sending.alice.srmp.transfers.of(sending.queue)
        assert _learned_by(transfer) == (2 if templates else 0)
        sending.settle(SETTINGS.session_cleanup / 1000 + 1)
        assert _learned_by(transfer) == 0, "an idle queue keeps nothing"
        return [
            (_comparable(each.envelope_text, own, each.envelope.stream), each.body, each.extension)
            for each in sending.shop.requests
        ]


def _learned_by(transfer: OutgoingTransfer) -> int:
    """How many templates a queue has now."""
    write: Any = transfer._write
    return len(write.__self__.templates)


def _comparable(text: str, own: UUID, stream: Stream | None) -> bytes:
    """An envelope without what is another one each time: the machine, and its streams."""
    text = text.replace(str(own), "own")
    return (text if stream is None else text.replace(str(stream.stream_id.ordinal), "")).encode()
