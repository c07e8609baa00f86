"""Segments in any order and over any link become the octets that were sent."""

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.capture.file.flow import WAITING_SEGMENTS
from tests.support.capture.captures import (
    ACK,
    CLIENT,
    FIN,
    RST,
    SERVER,
    SYN,
    Collected,
    ethernet,
    ipv4,
    ipv6,
    segment,
    tcp,
)

PACKET = ipv4(CLIENT[0], SERVER[0], tcp(CLIENT, SERVER, 100, b"hello"))
PACKET_6 = ipv6("2001:db8::1", "2001:db8::2", tcp(CLIENT, SERVER, 100, b"hello"))
EXTENSIONS = bytes([43, 0, *bytes(6)]) + bytes([6, 1, *bytes(14)])


@pytest.mark.parametrize(
    ("link", "frame"),
    [
        pytest.param(1, ethernet(PACKET), id="ethernet"),
        pytest.param(1, ethernet(PACKET_6, 0x86DD), id="ethernet v6"),
        pytest.param(1, ethernet(struct.pack("!HH", 5, 0x0800) + PACKET, 0x8100), id="vlan"),
        pytest.param(
            1,
            ethernet(struct.pack("!HHHH", 5, 0x8100, 6, 0x86DD) + PACKET_6, 0x88A8),
            id="two vlans",
        ),
        pytest.param(113, bytes(14) + b"\x08\0" + PACKET, id="cooked"),
        pytest.param(276, b"\x08\0" + bytes(18) + PACKET, id="cooked v2"),
        pytest.param(276, b"\x81\0" + bytes(20) + b"\x08\0" + PACKET, id="cooked v2 vlan"),
        pytest.param(101, PACKET, id="raw"),
        pytest.param(12, PACKET_6, id="raw bsd v6"),
        pytest.param(228, PACKET, id="ipv4"),
        pytest.param(229, PACKET_6, id="ipv6"),
        pytest.param(0, b"\2\0\0\0" + PACKET, id="null"),
        pytest.param(0, b"\0\0\0\2" + PACKET, id="null of the other order"),
        pytest.param(0, b"\x1e\0\0\0" + PACKET_6, id="null v6"),
        pytest.param(108, b"\0\0\0\2" + PACKET, id="loop"),
    ],
)
def test_every_link_type_is_read(link: int, frame: bytes) -> None:
    assert Collected().feed(frame, link=link).finish().forward == b"hello"


def test_extension_headers_are_passed_over() -> None:
    body = EXTENSIONS + tcp(CLIENT, SERVER, 100, b"hello")
    packet = ipv6("2001:db8::1", "2001:db8::2", body, following=0)
    assert Collected().feed(packet, link=101).finish().forward == b"hello"


def test_fragments_are_put_together_in_any_order() -> None:
    body = tcp(CLIENT, SERVER, 100, bytes(range(200)))
    cuts = [(0, 80), (80, 160), (160, len(body))]
    pieces = [
        ipv4(CLIENT[0], SERVER[0], body[a:b], 7, a // 8 | (0x2000 if b < len(body) else 0))
        for a, b in cuts
    ]
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0, 0)):
        found = Collected().feed(*(pieces[n] for n in order), link=101).finish()
        assert found.forward == bytes(range(200))


def test_fragments_of_ipv6_are_put_together() -> None:
    body = tcp(CLIENT, SERVER, 100, bytes(range(200)))

    def piece(start: int, end: int) -> bytes:
        more = int(end < len(body))
        head = struct.pack("!BBHI", 6, 0, start | more, 99)
        return ipv6("2001:db8::1", "2001:db8::2", head + body[start:end], following=44)

    found = Collected().feed(piece(0, 96), piece(96, 220), link=101).finish()
    assert found.forward == bytes(range(200))


def test_a_fragment_that_is_missing_is_reported() -> None:
    found = Collected().feed(ipv4(CLIENT[0], SERVER[0], bytes(64), 7, 0x2000), link=101)
    found.tcp.finish()
    assert found.problems.counts["network"] == 1


def test_the_side_that_opens_is_the_client() -> None:
    found = Collected().feed(
        segment(10, flags=SYN), segment(20, flags=SYN | ACK, backward=True), segment(11, b"hi")
    )
    (flow,) = found.flows
    assert (flow.client, flow.server) == ("192.0.2.1:50000", "192.0.2.2:2103")
    assert flow.whole


def test_the_answer_to_an_opening_tells_the_client_too() -> None:
    found = Collected().feed(segment(20, flags=SYN | ACK, backward=True))
    assert found.flows[0].client == "192.0.2.1:50000"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 2**32 - 1))
def test_order_overlaps_and_repetition_do_not_matter(seed: int, start: int) -> None:
    rng = random.Random(seed)
    data = bytes(rng.randrange(256) for _ in range(600))
    frames = []
    at = 0
    while at < len(data):
        end = min(at + rng.randrange(1, 80), len(data))
        first = max(0, at - rng.randrange(30)) if rng.random() < 0.3 else at
        frames.append(segment((start + first) & 0xFFFFFFFF, data[first:end]))
        if rng.random() < 0.2:
            frames.append(frames[rng.randrange(len(frames))])
        at = end
    rng.shuffle(frames)
    found = Collected().feed(segment((start - 1) & 0xFFFFFFFF, flags=SYN), *frames)
    found.tcp.finish()
    assert found.forward == data
    assert found.gaps == []


def test_what_was_not_captured_is_a_gap_at_the_end() -> None:
    opening = segment(99, flags=SYN), segment(20, flags=SYN | ACK, backward=True)
    found = Collected().feed(*opening, segment(100, b"one"), segment(110, b"two"))
    assert found.forward == b"one"
    found.finish()
    assert found.forward == b"onetwo"
    assert found.gaps == [7]


def test_what_waits_for_a_missing_segment_is_bounded() -> None:
    later = [segment(200 + n, b"x") for n in range(WAITING_SEGMENTS + 1)]
    found = Collected().feed(segment(100, b"one"), *later)
    assert found.gaps == [97]
    assert found.forward == b"one" + b"x" * (WAITING_SEGMENTS + 1)


def test_a_snapped_segment_leaves_a_gap() -> None:
    cut = segment(100, b"0123456789")[:-4]
    found = Collected().feed(cut, segment(110, b"abc")).finish()
    assert found.forward == b"012345abc"
    assert found.gaps == [4]


def test_ports_can_be_used_again() -> None:
    found = Collected().feed(
        segment(10, flags=SYN), segment(11, b"a"), segment(9999, flags=SYN), segment(10000, b"b")
    )
    assert len(found.flows) == 2
    assert found.finished == 1


@pytest.mark.parametrize(
    "ends",
    [
        [segment(12, flags=RST)],
        [segment(12, flags=FIN | ACK), segment(21, flags=FIN | ACK, backward=True)],
    ],
)
def test_a_connection_ends(ends: list[bytes]) -> None:
    found = Collected().feed(
        segment(10, flags=SYN),
        segment(20, flags=SYN | ACK, backward=True),
        segment(11, b"a"),
        *ends,
        segment(11, b"a"),
    )
    assert found.finished == 1
    assert len(found.flows) == 1, "what is sent again opens nothing"


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 300), st.binary(max_size=120))
def test_no_frame_stops_the_reassembly(link: int, data: bytes) -> None:
    known = (0, 1, 12, 14, 101, 108, 113, 228, 229, 276)
    Collected().feed(data, link=known[link % len(known)]).tcp.finish()
