"""Neighbours of one size are taken as each of them would be ([MS-MQQB] 3.1.5.8)."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.codec.packet.message import PacketMessage
from rpcqm.fast.formats.packet_form import Alike, PacketForm
from tests.support.queue_manager import MEMORY
from tests.unit.fast.test_arrival_batches import Sent, Twins, in_sequence, learn, several

NOW = 1_000_000_000
KINDS = (
    Sent("orders", 1, body=b"octets"),
    Sent("orders", 2, recoverable=False, label="label", body=bytes(70)),
    Sent("others", 4, priority=5, limits=(7, 9), body=b"seventeen octets!"),
    Sent("stream", 6, place=(1, 2, 1), label="label", extension=b"more"),
)


def form_of(packet: bytes) -> PacketForm:
    form = PacketForm.of(PacketMessage(packet))
    assert form is not None
    return form


def read_alone(form: PacketForm, data: bytes, size: int, most: int) -> Alike:
    """What `alike` tells, by reading one packet after the other."""
    first = form.read(data, 0)
    assert first is not None
    found = []
    for start in range(0, min(most * size, len(data) - size + 1), size):
        values = form.read(data, start)
        if values is None or values[:2] != first[:2]:
            break
        if _lengths(form, data, start) != _lengths(form, data, 0):
            break
        found.append(values)
    columns = list(zip(*(values[2:] for values in found), strict=True))
    own = columns if form.transaction >= 0 else columns[:2]
    return Alike(len(found), *own)


def _lengths(form: PacketForm, data: bytes, start: int) -> tuple[bytes, bytes]:
    """Lengths of label, body and extension, and what is constant besides."""
    at = start + form.properties
    return data[at : at + 4], data[at + 32 : at + 56]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(KINDS),
    st.integers(2, 12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 10_000), st.integers(1, 255))),
    st.integers(0, 40),
    st.integers(2, 14),
    st.integers(0, 3),
)
def test_neighbours_that_are_alike_are_what_each_of_them_is(
    kind: Sent,
    count: int,
    changes: list[tuple[int, int, int]],
    cut: int,
    most: int,
    seed: int,
) -> None:
    packet = kind.packet(NOW)
    size, form, random = len(packet), form_of(packet), Random(seed)
    data = bytearray(packet * count)
    for at in range(size, len(data), size):  # the first one is as it was read
        data[at + 52 : at + 60] = random.randbytes(8)
    for which, place, octet in changes:
        if 0 < which < count:
            data[which * size + place % size] ^= octet
    octets = bytes(data[: len(data) - cut])
    expected = read_alone(form, octets, size, most)
    found = form.alike(octets, 0, size, most)
    if found is not None:
        assert found == expected
    else:
        assert expected.length < 2 or octets[:12] != octets[size : size + 12]


def test_all_neighbours_that_differ_in_values_only_are_found() -> None:
    packets = [Sent(number=number, body=b"body").packet(NOW + number) for number in range(1, 65)]
    found = form_of(packets[0]).alike(b"".join(packets), 0, len(packets[0]), 1000)
    assert found is not None
    assert found.sent_times == tuple(range(NOW + 1, NOW + 65))
    assert found.message_ids == tuple(number.to_bytes(4, "little") for number in range(1, 65))


@pytest.fixture
def twins() -> Iterator[Twins]:
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY))
        made = Twins(Path(directory))
        stack.callback(made.stop)
        yield made


def test_neighbours_of_another_queue_go_there(twins: Twins) -> None:
    learn(twins)
    twins.deliver(*several(3, 301, queue="others"))
    before = twins.batches
    twins.deliver(*several(20), *several(20, 50, queue="others"), *several(20, 80))
    twins.settle(1000)
    assert twins.batches > before + 55
    assert len(twins.halves[0].bob.bodies("others")) == 23


def test_one_that_is_late_is_not_taken_with_its_neighbours(twins: Twins) -> None:
    twins.deliver(*several(5, 301, limits=(50, 60)))
    timely = several(20, limits=(50, 60))
    timely[7] = timely[7]._replace(age=100)
    twins.deliver(*timely)
    twins.settle(1000)
    assert len(twins.halves[0].bob.bodies()) == 5 + 19


def test_one_with_a_label_that_is_none_is_not_taken_with_its_neighbours(twins: Twins) -> None:
    learn(twins)
    twins.deliver(*several(5, 301, label="label"))
    for half in twins.halves:
        now = half.simulation.clock.now() // 1000
        octets = [each.packet(now) for each in several(20, label="label")]
        octets[7] = octets[7].replace("label".encode("utf-16-le"), "la\0el".encode("utf-16-le"))
        half.peer.feed(half.peer.counting([(each, True) for each in octets]))
    twins.compare()
    twins.settle(1000)


def test_a_gap_in_a_sequence_is_no_gap_of_its_neighbours(twins: Twins) -> None:
    learn(twins)
    following = in_sequence(30, 4)
    twins.deliver(*following[:10], *following[11:])
    twins.settle(1000)
    twins.deliver(*following[10:])
    twins.settle(1000)
    assert len(twins.halves[0].bob.bodies("stream")) == 3 + 30


def test_what_has_come_before_is_not_taken_with_its_neighbours(twins: Twins) -> None:
    learn(twins)
    twins.deliver(*several(10), *several(3, 301, queue="others"))
    twins.settle()
    twins.deliver(*several(5, 6))
    twins.deliver(*several(10, 40), *several(5, 80, queue="others"), *several(5, 40))
    twins.settle(1000)
    assert len(twins.halves[0].bob.bodies()) == 6 + 10 + 10


def test_the_same_message_twice_side_by_side_is_one(twins: Twins) -> None:
    learn(twins)
    twins.deliver(*several(10), *several(5, 6))
    twins.settle(1000)
    assert len(twins.halves[0].bob.bodies()) == 6 + 10


def test_what_comes_again_in_its_sequence_is_dropped(twins: Twins) -> None:
    learn(twins)
    following = in_sequence(10, 4)
    twins.deliver(*following[:5], following[4], *following[5:])
    twins.settle(1000)
    assert len(twins.halves[0].bob.bodies("stream")) == 3 + 10
