"""Where the properties of a packet start is found again by the headers of the one before it."""

from dataclasses import replace

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage, build_user_message
from rpcqm.codec.packet.user_message import class_of, locate_body
from rpcqm.fast.formats.plain_packet import LONGEST_HEADERS, HeadersBefore
from tests.unit.codec.test_message import OF_A_CLASS, PLAIN


def test_class_and_size_are_found_whatever_headers_the_last_packet_had() -> None:
    before = HeadersBefore()
    packets = [build_user_message(replace(each, body=bytes(9))) for each in OF_A_CLASS]
    for first in packets:
        for second in packets:
            for packet in (first, second, second):
                expected = class_of(packet), locate_body(packet)[1]
                assert before.class_and_body_size(packet) == expected


@pytest.mark.parametrize("message", OF_A_CLASS)
def test_a_packet_that_ends_too_early_is_damaged_also_behind_one_like_it(
    message: MessageAttributes,
) -> None:
    before, packet = HeadersBefore(), build_user_message(replace(message, body=b""))
    before.class_and_body_size(packet)
    for size in range(76, PacketMessage(packet).layout.properties_end - 3):
        with pytest.raises(DecodeError):
            before.class_and_body_size(packet[:size])


@pytest.mark.bound("packet.remembered_headers")
def test_long_headers_are_not_remembered() -> None:
    def remembered(start: int) -> bool:
        """With a certificate of the length that lets the properties start there."""
        plain = build_user_message(replace(PLAIN, sender_certificate=bytes(4)))
        more = start - PacketMessage(plain).layout.properties
        packet = build_user_message(replace(PLAIN, sender_certificate=bytes(4 + more)))
        assert PacketMessage(packet).layout.properties == start
        before = HeadersBefore()
        before.class_and_body_size(packet)
        return before._octets is not None

    assert remembered(LONGEST_HEADERS)
    assert not remembered(LONGEST_HEADERS + 4)
