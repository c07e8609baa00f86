"""Cutting the bytes of a connection into packets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.binary.framing import PacketBuffer
from rpcqm.codec.packet.base import MAXIMUM_FRAME_SIZE, BaseFlags, BaseHeader

FLAGS = [BaseFlags.of(), BaseFlags.of(SH=1), BaseFlags.of(IN=1, SH=1), BaseFlags.of(DH=1, TR=1)]


def packet(size: int, flags: BaseFlags) -> bytes:
    header = BaseHeader(flags=flags, packet_size=16 + size)
    return header.encode() + bytes(header.frame_size - 16)


@given(
    st.lists(st.builds(packet, st.integers(0, 100), st.sampled_from(FLAGS)), max_size=8),
    st.lists(st.integers(1, 40), min_size=1, max_size=20),
)
def test_packets_come_out_whole_in_whatever_pieces_their_bytes_arrive(
    packets: list[bytes], pieces: list[int]
) -> None:
    buffer, stream, at = PacketBuffer(), b"".join(packets), 0
    found: list[bytes] = []
    while at < len(stream):
        size = pieces[len(found) % len(pieces)]
        buffer.add(stream[at : at + size])
        at += size
        while (taken := buffer.next(MAXIMUM_FRAME_SIZE)) is not None:
            found.append(taken)
    assert found == packets
    assert buffer.next(MAXIMUM_FRAME_SIZE) is None


def test_a_packet_that_is_larger_than_allowed_is_refused_by_its_first_bytes() -> None:
    buffer = PacketBuffer()
    buffer.add(packet(85, BaseFlags.of())[:16])
    with pytest.raises(DecodeError, match="101 bytes before the session is open"):
        buffer.next(100)


def test_what_is_no_packet_is_refused() -> None:
    buffer = PacketBuffer()
    buffer.add(bytes(16))
    with pytest.raises(DecodeError, match="version"):
        buffer.next(MAXIMUM_FRAME_SIZE)


def test_cleared_it_has_forgotten_whole_and_cut_packets() -> None:
    whole = packet(4, BaseFlags.of())
    for octets in (whole * 2, whole + whole[:7]):
        buffer = PacketBuffer()
        buffer.add(octets)
        buffer.clear()
        assert buffer.next(MAXIMUM_FRAME_SIZE) is None
        buffer.add(whole)
        assert buffer.next(MAXIMUM_FRAME_SIZE) == whole
