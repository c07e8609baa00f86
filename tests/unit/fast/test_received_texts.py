"""What is told of a message that is received does not depend on what was told before."""

import json
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.adm.queue import Queue
from rpcqm.api.reading import write_json
from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.codec.bodies.described import LONGEST_DECODED, described_body
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.fast.doors.api_leases import TakenMessage
from rpcqm.fast.first_messages import FirstMessage
from rpcqm.fast.formats.received_json import (
    LONGEST_VALUES,
    TEXTS,
    ReceivedTexts,
    told_body,
    told_carefully,
)
from tests.support.clock import SimulatedClock
from tests.support.codec.costly_bodies import COSTLY

MACHINE = UUID(int=7)
NAMES = (None, r"DIRECT=OS:.\private$\answers", r"DIRECT=TCP:192.0.2.9\private$\answers")
NUMBERS = st.sampled_from([0, 1, 1_750_000_000, 0xFFFF_FFFF])
TEXT = st.sampled_from(["", "order", "50% of %d", '"\\', "é\ud800", "l" * 249])
BODIES = st.one_of(
    st.sampled_from([b"", b"text", b"50%", b'{"a": "%d"}', b"<a/>", b"\xff\0", b"a\0\0", b"{"]),
    st.binary(max_size=60),
)


@st.composite
def attributes(draw: Any) -> MessageAttributes:
    name = draw(st.sampled_from(NAMES))
    return MessageAttributes(
        destination_queue_format_name=FormatName.parse(r"DIRECT=OS:.\private$\orders"),
        identifier=MessageIdentifier(draw(st.sampled_from([MACHINE, UUID(int=8)])), draw(NUMBERS)),
        body=draw(BODIES),
        label=draw(TEXT),
        message_class=draw(st.sampled_from([0, 0, 0, 2, 0x4000, 0x1234])),
        delivery_guarantee=draw(st.integers(0, 1)),
        priority=draw(st.integers(0, 7)),
        sent_time=draw(NUMBERS),
        time_to_be_received=draw(NUMBERS),
        body_type=draw(st.sampled_from([0, 0, 8, 30, 3, 4096, 0xFFFF_FFFF])),
        application_tag=draw(NUMBERS),
        correlation_identifier=MessageIdentifier(UUID(int=draw(st.integers(0, 1))), draw(NUMBERS)),
        extension=draw(st.sampled_from([b"", b"e", b"%d"])),
        acknowledgements_requested=draw(st.integers(0, 15)),
        response_queue_format_name=None if name is None else FormatName.parse(name),
        sender_identifier=draw(st.sampled_from([b"", bytes.fromhex("010100000000000100000000")])),
        transaction_identifier=draw(st.sampled_from([None, None, None, 5])),
    )


def taken(stored: bytes, number: int, arrival: int) -> TakenMessage:
    lease = SimpleNamespace(
        identifier=f"{number:022}",
        delivery_count=1,
        expires=arrival + 30_000,
        queue=cast("Queue", None),
    )
    first = FirstMessage(cast("Any", None), cast("Any", None), number, arrival, stored)
    return TakenMessage(first, cast("Any", lease))


@given(
    messages=st.lists(attributes(), min_size=1, max_size=4),
    order=st.lists(st.integers(0, 3), max_size=12),
    arrival=st.sampled_from([1_750_000_000_000, 1_750_000_000_001, 999]),
)
def test_answers_are_those_of_the_careful_path(
    messages: list[MessageAttributes], order: list[int], arrival: int
) -> None:
    texts = ReceivedTexts(SimulatedClock())
    for step, at in enumerate((*range(len(messages)), *order)):
        message = messages[at % len(messages)]
        message.sent_time = (message.sent_time + step) & 0xFFFF_FFFF
        one = taken(build_user_message(message), step, arrival + step)
        assert texts.answer(one) == told_carefully(one)


@given(body=BODIES, body_type=st.sampled_from([0, 8, 30, 3, 5, 4096, 0xFFFF_FFFF]))
def test_bodies_are_told_the_same(body: bytes, body_type: int) -> None:
    told = json.loads(b"{" + told_body(body, body_type)[1:] + b"}")
    assert told == json.loads(write_json(described_body(body, body_type)))
    assert list(told) == list(described_body(body, body_type))


@pytest.mark.parametrize("size", [100, 5_000, 60_000, LONGEST_DECODED])
@pytest.mark.parametrize("name", list(COSTLY))
def test_costly_bodies_are_told_the_same(name: str, size: int) -> None:
    body_type, make = COSTLY[name]
    body = make(size)
    told = described_body(body, body_type, LONGEST_DECODED, DecodeBudget(len(body)))
    assert json.loads(b"{" + told_body(body, body_type)[1:] + b"}") == json.loads(write_json(told))


def plain(number: int, **more: Any) -> TakenMessage:
    made = MessageAttributes(
        destination_queue_format_name=FormatName.parse(r"DIRECT=OS:.\private$\orders"),
        identifier=MessageIdentifier(MACHINE, number),
        **more,
    )
    return taken(build_user_message(made), number, 1_750_000_000_000)


@pytest.mark.bound("program.received_texts")
def test_texts_are_bounded_and_so_is_learning() -> None:
    clock = SimulatedClock()
    texts = ReceivedTexts(clock)
    for number in range(1000):
        texts.answer(plain(number, label=f"{number}"))
    assert 0 < len(texts) < 100
    for number in range(TEXTS + 10):
        clock.advance(1000)
        texts.answer(plain(number, label=f"again {number}"))
    assert len(texts) == TEXTS


def test_long_extensions_are_not_kept() -> None:
    texts = ReceivedTexts(SimulatedClock())
    for number in range(3):
        texts.answer(plain(number, extension=bytes(LONGEST_VALUES + 1)))
    assert len(texts) == 0
