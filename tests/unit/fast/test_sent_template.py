"""A packet that a template fills is, octet for octet, the one that the careful path builds."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import wide_length
from rpcqm.codec.layout import encode_text
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import MessageAttributes, MessageIdentifier, build_user_message
from rpcqm.codec.packet.properties import MAXIMUM_LABEL_LENGTH
from rpcqm.codec.types.qmcomm import (
    CACTransferBufferV1,
    CACTransferBufferV1_Send,
    CACTransferBufferV1_u,
)
from rpcqm.fast.formats.sent_packet import SentTemplate, label_octets
from rpcqm.interfaces._sent_buffer import _label

SOURCE = UUID("c626ea11-e6b6-9749-9595-9150557358d1")
DESTINATION = FormatName.parse(r"DIRECT=OS:host\private$\orders")
OTHER = FormatName.parse(r"DIRECT=TCP:192.0.2.7\private$\answers")
PUBLIC = FormatName.parse(f"PUBLIC={SOURCE}")
NUMBERS = st.integers(0, 0xFFFF_FFFF)
LABELS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=124)
ANSWERS = st.sampled_from([None, OTHER, DESTINATION, FormatName.private(SOURCE, 7)])


@st.composite
def attributes(draw: Any) -> MessageAttributes:
    """What the careful path composes of a send."""
    return MessageAttributes(
        destination_queue_format_name=draw(
            st.sampled_from([DESTINATION, FormatName.private(SOURCE, 9), PUBLIC])
        ),
        identifier=MessageIdentifier(SOURCE, draw(NUMBERS)),
        body=draw(st.binary(max_size=40)),
        label=draw(LABELS),
        message_class=draw(st.sampled_from([0, 0x0C05])),
        delivery_guarantee=draw(st.integers(0, 1)),
        priority=draw(st.integers(0, 7)),
        body_type=draw(NUMBERS),
        extension=draw(st.binary(max_size=9)),
        acknowledgements_requested=draw(st.integers(0, 15)),
        administration_queue_format_name=draw(ANSWERS),
        response_queue_format_name=draw(ANSWERS),
        positive_journaling_requested=draw(st.booleans()),
        negative_journaling_requested=draw(st.booleans()),
        privacy_level=draw(st.sampled_from([0, 1, 3])),
        sender_identifier=draw(st.sampled_from([b"", bytes(range(12))])),
        sender_certificate=draw(st.binary(max_size=5)),
        signature=draw(st.binary(max_size=8)),
        connector_type_identifier=draw(st.none() | st.uuids()),
        transaction_identifier=draw(st.none() | st.integers(1, 1000)),
        tracing_requested=draw(st.booleans()),
        destination_multi_queue_format_name=draw(st.sampled_from([(), (DESTINATION, OTHER)])),
    )


@settings(max_examples=150, deadline=None)
@given(
    attributes=attributes(),
    numbers=st.lists(NUMBERS, min_size=5, max_size=5),
    priority=st.integers(0, 7),
    correlation=st.binary(min_size=20, max_size=20) | st.just(bytes(20)),
    label=LABELS,
    body=st.binary(max_size=50),
)
def test_what_a_template_fills_is_what_the_careful_path_builds(
    attributes: MessageAttributes,
    numbers: list[int],
    priority: int,
    correlation: bytes,
    label: str,
    body: bytes,
) -> None:
    template = SentTemplate.learn(build_user_message(attributes))
    assert template is not None
    ordinal, sent, reach, live, tag = numbers
    octets = label_octets(encode_text(label))
    assert octets is not None
    filled = template.filled(ordinal, sent, reach, live, priority, tag, correlation, octets, body)
    assert filled == build_user_message(
        replace(
            attributes,
            identifier=MessageIdentifier(SOURCE, ordinal),
            sent_time=sent,
            time_to_reach_queue=reach,
            time_to_be_received=live,
            priority=priority,
            application_tag=tag,
            correlation_identifier=MessageIdentifier.decode(correlation),
            label=label,
            body=body,
        )
    )


MESSAGES = st.tuples(
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.integers(0, 7),
    NUMBERS,
    st.binary(min_size=20, max_size=20),
    LABELS.map(lambda label: encode_text(label) if label else b""),
    st.binary(max_size=12),
)
"""Number, time to reach the queue, time to be received, priority, tag, correlation, label, body."""


@settings(max_examples=150, deadline=None)
@given(
    attributes=attributes(),
    messages=st.lists(MESSAGES, min_size=1, max_size=6),
    same_size=st.booleans(),
    sent=NUMBERS,
)
def test_packets_that_are_made_together_are_those_made_one_by_one(
    attributes: MessageAttributes, messages: list[Any], same_size: bool, sent: int
) -> None:
    template = SentTemplate.learn(build_user_message(attributes))
    assert template is not None
    if same_size:
        label, size = messages[0][6], len(messages[0][7])
        messages = [(*each[:6], label, each[7][:size].ljust(size, b"+")) for each in messages]
    ordinals, *columns = zip(*messages, strict=True)
    alone = [template.filled(ordinal, sent, *values) for ordinal, *values in messages]
    assert template.filled_many(ordinals, sent, *columns) == alone


def test_a_packet_among_others_over_the_largest_is_refused() -> None:
    packet = build_user_message(MessageAttributes(destination_queue_format_name=DESTINATION))
    template = SentTemplate.learn(packet)
    assert template is not None
    message: tuple[Any, ...] = (3, 4, 5, 6, bytes(20), b"", bytes(4 << 20))
    with pytest.raises(MQError):
        template.filled_many((1, 2), 2, *zip(message, message, strict=True))


@settings(max_examples=300, deadline=None)
@given(title=st.text(st.characters() | st.sampled_from("\0a"), max_size=270))
def test_a_label_ends_where_the_careful_path_ends_it(title: str) -> None:
    raw = title.encode("utf-16-le", "surrogatepass")
    title = raw.decode("utf-16-le", "surrogatepass")
    arm = CACTransferBufferV1_u(0, CACTransferBufferV1_Send())
    careful = _label(CACTransferBufferV1(u=arm, ppTitle=title))
    octets = label_octets(raw)
    if octets is None:
        assert wide_length(title.partition("\0")[0]) > MAXIMUM_LABEL_LENGTH
    else:
        assert octets == (encode_text(careful) if careful else b"")


def test_a_label_of_249_characters_is_the_longest() -> None:
    longest = ("x" * MAXIMUM_LABEL_LENGTH).encode("utf-16-le")
    assert label_octets(longest) == longest + b"\0\0"
    assert label_octets(longest + b"x\0") is None
    assert label_octets(longest + b"x\0\0\0") is None


def filled(body: bytes) -> bytes:
    packet = build_user_message(MessageAttributes(destination_queue_format_name=DESTINATION))
    template = SentTemplate.learn(packet)
    assert template is not None
    return template.filled(1, 2, 3, 4, 5, 6, bytes(20), b"", body)


def test_a_packet_over_the_largest_is_refused_as_the_careful_path_refuses_it() -> None:
    largest = (4 << 20) - len(filled(b""))
    assert len(filled(bytes(largest))) == 4 << 20
    with pytest.raises(MQError) as refused:
        filled(bytes(largest + 1))
    assert refused.value.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES


def test_there_is_no_template_of_what_came_by_http() -> None:
    kept = MessageAttributes(
        destination_queue_format_name=DESTINATION,
        body=b"octets",
        soap_envelope="<a/>",
        soap_compound_message=b"POST octets",
    )
    assert SentTemplate.learn(build_user_message(kept)) is None


def test_there_is_no_template_of_what_is_no_packet() -> None:
    assert SentTemplate.learn(b"octets") is None
    packet = build_user_message(MessageAttributes(destination_queue_format_name=DESTINATION))
    assert SentTemplate.learn(packet[:-1]) is None
