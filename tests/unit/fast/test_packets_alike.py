"""Packets for remote readers, made like the last one: each is what the careful path makes of it."""

from dataclasses import replace
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.attributes import MessageAttributes
from rpcqm.codec.packet.builder import build_user_message
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.fields import SESSION_HEADER
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.properties import MessagePropertiesStart
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.fast.formats.plain_packet import LONGEST_HEADERS, PlainPackets
from rpcqm.fast.formats.whole_packet import WholePackets
from rpcqm.interfaces._message_packet import MessagePackets

DIRECT = MessageAttributes(
    destination_queue_format_name=FormatName.parse(r"DIRECT=OS:host\private$\orders"),
    identifier=MessageIdentifier(UUID(int=5), 7),
    label="a label",
    body=b"0123456789",
    sent_time=1000,
    time_to_reach_queue=60,
)
ALIKE = [
    DIRECT,
    replace(DIRECT, label="", body=bytes(300), time_to_reach_queue=0xFFFFFFFF),
    replace(DIRECT, sent_time=2**32 - 2, extension=b"more", priority=7),
    replace(DIRECT, message_class=MessageClass.MQMSG_CLASS_REPORT),
]
MESSAGES = [
    *ALIKE,
    replace(DIRECT, destination_queue_format_name=FormatName.private(UUID(int=9), 4)),
    replace(DIRECT, response_queue_format_name=FormatName.private(UUID(int=9), 4)),
    replace(DIRECT, soap_envelope="<e/>", soap_compound_message=b"POST\r\n\r\n0123456789"),
    replace(DIRECT, soap_body="<b/>"),
]
SOURCES = [b"", b"192.0.2.9", b"2001:db8::7"]
SIZES = [0, 9, 10, 299, 300, 2**32 - 1]


def packets() -> WholePackets:
    return WholePackets(MessagePackets(cast(Any, None), cast(Any, None), ("192.0.2.1",)))


def stored(message: MessageAttributes, source: bytes = b"") -> bytes:
    return build_user_message(message) + source


def outcome(made: WholePackets, octets: bytes, size: int) -> bytes | str | None:
    try:
        return made.of_stored(octets, size)
    except (DecodeError, ValueError) as error:  # what is behind a packet need not be an address
        return str(error)


@given(st.data())
def test_a_packet_is_the_same_whatever_packet_was_before_it(data: st.DataObject) -> None:
    made = packets()
    for _ in range(3):
        octets = bytearray(
            stored(data.draw(st.sampled_from(MESSAGES)), data.draw(st.sampled_from(SOURCES)))
        )
        for _ in range(data.draw(st.sampled_from([0, 0, 0, 1, 2]))):
            place = data.draw(st.integers(0, len(octets) - 1))
            octets[place] = data.draw(st.integers(0, 255))
        end = data.draw(st.one_of(st.none(), st.integers(150, len(octets))))
        size = data.draw(st.sampled_from(SIZES))
        cut = bytes(octets[:end])
        assert outcome(made, cut, size) == outcome(packets(), cut, size)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("first", MESSAGES)
def test_each_packet_behind_each_other(first: MessageAttributes, source: bytes) -> None:
    for second in MESSAGES:
        for behind in SOURCES:
            for size in SIZES:
                made = packets()
                outcome(made, stored(first, source), 2**32 - 1)
                octets = stored(second, behind)
                assert outcome(made, octets, size) == outcome(packets(), octets, size)


def test_a_packet_that_is_cut_anywhere_is_made_as_the_careful_path_makes_it() -> None:
    whole = stored(DIRECT)
    for end in range(150, len(whole)):
        made = packets()
        made.of_stored(whole, 2**32 - 1)
        cut = whole[:end]
        assert outcome(made, cut, 2**32 - 1) == outcome(packets(), cut, 2**32 - 1)


def test_a_body_that_is_longer_than_its_packet_is_damaged() -> None:
    octets = bytearray(stored(DIRECT))
    properties = PacketMessage(bytes(octets)).layout.properties
    octets[MessagePropertiesStart.place("message_size", properties)] = (99).to_bytes(4, "little")
    made = packets()
    made.of_stored(stored(DIRECT), 2**32 - 1)
    assert outcome(made, bytes(octets), 2**32 - 1) == outcome(packets(), bytes(octets), 2**32 - 1)
    assert made._alike.packet(bytes(octets), 2**32 - 1) is None


def test_a_packet_whose_session_header_is_announced_is_not_made_in_few_steps() -> None:
    made = packets()
    made.of_stored(stored(DIRECT), 2**32 - 1)
    octets = bytearray(stored(DIRECT))
    octets[SESSION_HEADER[0]] |= SESSION_HEADER[1]
    assert outcome(made, bytes(octets), 2**32 - 1) == outcome(packets(), bytes(octets), 2**32 - 1)
    assert made._alike.packet(bytes(octets), 2**32 - 1) is None


def test_messages_alike_are_made_in_few_steps() -> None:
    """Without this the comparisons above would prove nothing."""
    made = packets()
    made.of_stored(stored(DIRECT), 2**32 - 1)
    few = [made._alike.packet(stored(each), 2**32 - 1) for each in ALIKE]
    assert few[:3] == [packets().of_stored(stored(each), 2**32 - 1) for each in ALIKE[:3]]
    assert few[3] is None
    assert None not in few[:3]


@pytest.mark.bound("packet.remembered_headers")
def test_long_headers_are_not_kept_for_the_next_packet() -> None:
    long = stored(replace(DIRECT, sender_certificate=bytes(LONGEST_HEADERS)))
    made = packets()
    assert made.of_stored(long, 2**32 - 1) == packets().of_stored(long, 2**32 - 1)
    assert made._alike.packet(long, 2**32 - 1) is None
    assert PlainPackets().packet(long, 2**32 - 1) is None
