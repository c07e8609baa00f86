"""A stub that is known by its length is told as its shape tells it."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.codec.interface import Operation, TransferSyntax
from rpcqm.codec.types.qmcomm import CACTransferBufferV1_Send, CACTransferBufferV1_u
from rpcqm.fast.doors.rpc_send import HOLES
from rpcqm.fast.formats.stub_shapes import MOST_SIZES, StubShape, StubShapes
from tests.support.codec.idl_values import messages
from tests.support.fast.stub_shapes import (
    OPERATIONS,
    SEND,
    SYNTAXES,
    TRACING,
    body,
    changed,
    learned_with_some_holes,
    plain,
    plain_stub,
    queue_format,
    sends,
    shapes,
)

SEVERAL = 24
"""Stubs of one length after which it is known."""


def same(shape: StubShape, known: Any, stub: bytes) -> bool:
    """Whether a stub is known by its length; then it is told as by its shape."""
    told = known(stub)
    assert told is None or told == shape.values(stub)
    return told is not None


@SYNTAXES
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(request=sends(), seed=st.integers(0, 1 << 32))
def test_what_is_found_by_its_length_is_what_the_shape_tells(
    syntax: TransferSyntax, request: Any, seed: int
) -> None:
    stub = SEND.encode_request(syntax, request)
    shape = StubShape.learn(TRACING[syntax], stub, HOLES)
    assert shape is not None
    values = shape.values(stub)
    assert values is not None
    known = shape.of_size(stub, values)
    assert same(shape, known, stub)
    source = random.Random(seed)
    for place in source.sample(range(len(stub)), min(60, len(stub))):
        other = bytearray(stub)
        other[place] ^= source.randrange(1, 256)
        same(shape, known, bytes(other))


@SYNTAXES
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(request=sends(), others=st.lists(sends(), min_size=3, max_size=3), seed=st.integers(0, 999))
def test_what_differs_elsewhere_is_told_as_the_shape_tells_it_or_not_at_all(
    syntax: TransferSyntax, request: Any, others: list[Any], seed: int
) -> None:
    stub = SEND.encode_request(syntax, request)
    shape = StubShape.learn(TRACING[syntax], stub, HOLES)
    assert shape is not None
    values = shape.values(stub)
    assert values is not None
    known, source = shape.of_size(stub, values), random.Random(seed)
    for other in others:
        for _ in range(2):
            told = SEND.encode_request(syntax, other)
            if len(told) == len(stub):
                same(shape, known, told)
            changed(other, source)
    octets = bytearray(stub)
    for place in source.choices(range(len(stub)), k=200):
        octets[place] ^= 1 << source.randrange(8)
        same(shape, known, bytes(octets))
        octets[place] = stub[place]


@pytest.mark.parametrize("operation", OPERATIONS)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 1 << 32))
def test_stubs_of_every_operation_are_told_as_their_shapes_tell_them(
    operation: Operation, data: st.DataObject, seed: int
) -> None:
    source = random.Random(seed)
    request = data.draw(messages(operation.declaration, False))
    for syntax in TransferSyntax:
        stub, tracing = operation.encode_request(syntax, request), operation.tracing(syntax)
        shape, _ = learned_with_some_holes(tracing, stub, source)
        values = None if shape is None else shape.values(stub)
        if shape is None or values is None:
            continue
        known = shape.of_size(stub, values)
        assert same(shape, known, stub)
        for _ in range(40 if stub else 0):
            octets = bytearray(stub)
            octets[source.randrange(len(octets))] = source.randrange(256)
            same(shape, known, bytes(octets))


def answered_at(name: str) -> bytes:
    request = plain()
    arm = CACTransferBufferV1_Send(pAdminQueueFormat=queue_format(3, name))
    request.ptb.old.u = CACTransferBufferV1_u(0, arm)
    return SEND.encode_request(TransferSyntax.NDR, request)


def test_a_text_that_ends_early_is_left_to_the_shape() -> None:
    known, stub = shapes(), answered_at("name!")
    for _ in range(2):
        known.note(stub)
    for _ in range(SEVERAL):
        assert known.find(stub) is not None
    (exact,) = known._sizes.values()
    early = stub.replace("name!".encode("utf-16-le"), "na\0e!".encode("utf-16-le"))
    assert exact.matched(answered_at("other")) is not None
    assert exact.matched(early) is None
    assert known.find(early) is None


def lengths_known(known: StubShapes) -> set[int]:
    return set(known._sizes)


def test_a_length_that_comes_again_and_again_is_known_as_a_whole() -> None:
    known = shapes()
    for _ in range(2):
        known.note(plain_stub(**body(b"octets")))
    for number in range(SEVERAL):
        octets = b"%06d" % number
        found = known.find(plain_stub(**body(octets)))
        assert found is not None
        assert found[1][HOLES.values.index("ptb.old.ppBody")] == octets
    assert lengths_known(known) == {len(plain_stub(**body(b"octets")))}


@pytest.mark.bound("rpc.request_shape_sizes")
def test_lengths_are_bounded_and_learned_ever_more_seldom() -> None:
    known = shapes()
    for _ in range(2):
        known.note(plain_stub(**body(b"octets")))
    learned: set[int] = set()
    for size in range(3 * MOST_SIZES):
        for _ in range(SEVERAL):
            assert known.find(plain_stub(**body(bytes(8 * size)))) is not None
        learned |= lengths_known(known)
        assert len(lengths_known(known)) <= MOST_SIZES
    assert len(learned) == MOST_SIZES
    for size in range(MOST_SIZES, MOST_SIZES + 9):
        for _ in range(4_096 + SEVERAL):
            known.find(plain_stub(**body(bytes(8 * size))))
    assert len(lengths_known(known)) == MOST_SIZES
    assert not lengths_known(known) <= learned


def test_a_length_goes_with_its_shape() -> None:
    known, first = shapes(), plain_stub(**body(b"first"))
    for _ in range(2):
        known.note(first)
    for _ in range(SEVERAL):
        known.find(first)
    assert lengths_known(known) == {len(first)}
    other = plain_stub(ulAuthLevel=0x5AA5)
    at = other.index(b"\xa5\x5a")
    for number in range(3_000):
        stub = other[:at] + number.to_bytes(4, "little") + other[at + 4 :]
        for _ in range(14):
            if known.find(stub) is None:
                known.note(stub)
    assert known._shapes
    assert not any(shape.values(first) for shape in known._shapes)
    assert len(first) not in lengths_known(known)
