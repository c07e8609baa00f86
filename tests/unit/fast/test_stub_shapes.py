"""What a shape tells of a stub is what the careful decoder tells of it, or nothing."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.codec.interface import Operation, TransferSyntax, load
from rpcqm.codec.ndr.trace import Read
from rpcqm.codec.types.mqmq import CALPWSTR
from rpcqm.codec.types.qmcomm import (
    CACTransferBufferV1_Receive,
    CACTransferBufferV1_u,
)
from rpcqm.codec.types.qmcomm2 import rpc_ACSendMessageExRequest
from rpcqm.codec.types.remoteread import R_EndReceiveRequest
from rpcqm.codec.types.rpcqm_admin import R_CreateTokenRequest
from rpcqm.fast.doors.rpc_end import HOLES as END_HOLES
from rpcqm.fast.doors.rpc_send import HOLES
from rpcqm.fast.formats.stub_check import value_at
from rpcqm.fast.formats.stub_shape import MOST_CONSTANT
from rpcqm.fast.formats.stub_shapes import LONGEST, MOST, MOST_ALIKE, Holes, StubShape
from tests.support.codec.idl_values import messages
from tests.support.fast.stub_shapes import (
    OPERATIONS,
    SEND,
    SYNTAXES,
    TRACING,
    as_told,
    body,
    changed,
    learned_with_some_holes,
    plain,
    plain_stub,
    sends,
    shapes,
)


def check(operation: Operation, syntax: TransferSyntax, shape: StubShape, stub: bytes) -> bool:
    """Whether a stub is recognised; what is told of it then is what it says."""
    told = shape.values(stub)
    if told is None:
        return False
    request = operation.decode_request(syntax, stub)
    for path, value in zip(HOLES.values, told, strict=True):
        assert value in as_told(value_at(request, path)), path
    return True


@SYNTAXES
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(request=sends(), seed=st.integers(0, 1 << 32))
def test_what_differs_in_holes_alone_is_told(
    syntax: TransferSyntax, request: rpc_ACSendMessageExRequest, seed: int
) -> None:
    stub = SEND.encode_request(syntax, request)
    shape = StubShape.learn(TRACING[syntax], stub, HOLES)
    assert shape is not None
    assert check(SEND, syntax, shape, stub)
    source = random.Random(seed)
    for _ in range(3):
        changed(request, source)
        assert check(SEND, syntax, shape, SEND.encode_request(syntax, request))


@SYNTAXES
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(request=sends(), others=st.lists(sends(), min_size=5, max_size=5))
def test_what_differs_elsewhere_is_told_rightly_or_not_at_all(
    syntax: TransferSyntax,
    request: rpc_ACSendMessageExRequest,
    others: list[rpc_ACSendMessageExRequest],
) -> None:
    shape = StubShape.learn(TRACING[syntax], SEND.encode_request(syntax, request), HOLES)
    assert shape is not None
    for other in others:
        check(SEND, syntax, shape, SEND.encode_request(syntax, other))


@SYNTAXES
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(request=sends(), seed=st.integers(0, 1 << 32))
def test_what_the_careful_decoder_refuses_is_never_told(
    syntax: TransferSyntax, request: rpc_ACSendMessageExRequest, seed: int
) -> None:
    stub = SEND.encode_request(syntax, request)
    shape = StubShape.learn(TRACING[syntax], stub, HOLES)
    assert shape is not None
    source = random.Random(seed)
    for _ in range(150):
        octets = bytearray(stub)
        for _ in range(source.choice([1, 1, 2, 4])):
            octets[source.randrange(len(octets))] = source.choice(
                [0, 1, 255, source.randrange(256)]
            )
        told = shape.values(bytes(octets))
        if told is not None:
            check(SEND, syntax, shape, bytes(octets))
    for cut in {source.randrange(len(stub)) for _ in range(20)}:
        assert shape.values(stub[:cut]) is None
    assert shape.values(stub + b"\0") is None


@pytest.mark.parametrize("operation", OPERATIONS)
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 1 << 32))
def test_shapes_of_every_operation_hold_whatever_their_holes_are(
    operation: Operation, data: st.DataObject, seed: int
) -> None:
    source = random.Random(seed)
    request = data.draw(messages(operation.declaration, False))
    for syntax in TransferSyntax:
        stub, tracing = operation.encode_request(syntax, request), operation.tracing(syntax)
        shape, holes = learned_with_some_holes(tracing, stub, source)
        for _ in range(30 if shape is not None and stub else 0):
            assert shape is not None
            octets = bytearray(stub)
            octets[source.randrange(len(octets))] = source.randrange(256)
            told = shape.values(bytes(octets))
            if told is not None:
                decoded = operation.decode_request(syntax, bytes(octets))
                for path, value in zip(holes.values, told, strict=True):
                    assert value in as_told(value_at(decoded, path)), path


def test_a_size_of_what_is_not_there_is_a_constant_wherever_it_stands() -> None:
    """Also behind what is of variable length."""
    operation, syntax = load("rpcqm_admin").operation("R_CreateToken"), TransferSyntax.NDR
    request = R_CreateTokenRequest(
        pwszName="a", pwszAccount="b", Rights=1, pQueues=CALPWSTR(cElems=0, pElems=[]), Life=0
    )
    stub = operation.encode_request(syntax, request)
    holes = Holes(values=(), sizes=("pQueues.cElems",))
    shape = StubShape.learn(operation.tracing(syntax), stub, holes)
    assert shape is not None
    (place,) = (
        each.start
        for each in operation.tracing(syntax).trace(stub).events
        if isinstance(each, Read) and each.path == "pQueues.cElems"
    )
    assert shape.values(stub) is not None
    assert shape.values(stub[:place] + b"\1" + stub[place + 1 :]) is None


def test_a_shape_is_learned_the_second_time_and_told_the_third() -> None:
    known = shapes()
    for octets in (b"first", b"another one"):
        assert known.find(plain_stub(**body(octets))) is None
        known.note(plain_stub(**body(octets)))
    found = known.find(plain_stub(**body(b"the third")))
    assert found is not None
    shape, values = found
    assert values[HOLES.values.index("ptb.old.ppBody")] == b"the third"
    assert shape.attached is None


def test_every_kind_of_message_is_learned_in_turn() -> None:
    known = shapes()
    kinds = [{}, body(b"octets"), {"pPriority": 3}, {"pApplicationTag": 9, **body(b"x")}]
    for _ in range(3):
        for kind in kinds:
            known.note(plain_stub(**kind))
    assert all(known.find(plain_stub(**kind)) for kind in kinds)


@pytest.mark.bound("rpc.alike_request_shapes")
def test_one_who_never_repeats_is_learned_from_ever_more_seldom() -> None:
    known, lessons = shapes(), 0
    for number in range(3_000):
        stub = plain_stub(pulBodyType=number)
        lessons += known.note(stub) is not None and known.find(stub) is not None
    assert lessons <= 11
    assert len(known) == MOST_ALIKE < lessons


def test_what_was_never_found_again_is_not_tried_for_long() -> None:
    known, used = shapes(), plain_stub(**body(b"in use"))
    for _ in range(2):
        known.note(used)
    assert known.find(used) is not None
    lessons = [known.note(plain_stub(pulBodyType=number)) for number in range(600)]
    assert sum(each is not None for each in lessons) > 4
    known.note(used)
    assert len(known) > 2
    for number in range(600, 1_100):
        known.note(plain_stub(pulBodyType=number))
    assert len(known) <= 2
    assert known.find(used) is not None


@pytest.mark.bound("rpc.request_shapes")
def test_shapes_are_bounded_and_those_in_use_stay() -> None:
    known, used, other = shapes(), plain_stub(**body(b"in use")), plain_stub(ulAuthLevel=0x5AA5)
    at = other.index(b"\xa5\x5a")
    for stub in (other, other, used, used):  # the first one goes first
        known.note(stub)
    assert known.find(other) is not None
    learned = len(known)
    for number in range(3_000):
        assert known.find(used) is not None
        for _ in range(14):
            stub = other[:at] + number.to_bytes(4, "little") + other[at + 4 :]
            if known.find(stub) is None and known.note(stub) is not None:
                assert known.find(stub) is not None
                learned += 1
    assert learned > MOST
    assert len(known) == MOST


def test_a_receive_is_no_send() -> None:
    known = shapes()
    request = plain()
    request.ptb.old.u = CACTransferBufferV1_u(1, CACTransferBufferV1_Receive())
    request.ptb.old.uTransferType = 1
    stub = SEND.encode_request(TransferSyntax.NDR, request)
    assert [known.note(stub) for _ in range(8)] == [None] * 8
    assert known.find(stub) is None


def test_a_stub_that_cannot_be_read_teaches_nothing() -> None:
    stub = plain_stub(**body(b"octets"))
    with pytest.raises(DecodeError):
        StubShape.learn(TRACING[TransferSyntax.NDR], stub[:-1], HOLES)
    known = shapes()
    assert [known.note(stub[:-1]) for _ in range(8)] == [None] * 8


def test_octets_behind_the_end_are_left_to_the_careful_decoder() -> None:
    stub = plain_stub(**body(b"octets")) + b"more"
    assert StubShape.learn(TRACING[TransferSyntax.NDR], stub, HOLES) is None


def test_counts_that_contradict_each_other_are_never_told() -> None:
    """Each word that has the size of the body or of the label, and each first index."""
    stub = plain_stub(**body(b"seventeen octets!"), ppTitle="title\0", ulTitleBufferSizeInWCHARs=6)
    shape = StubShape.learn(TRACING[TransferSyntax.NDR], stub, HOLES)
    assert shape is not None
    refused = 0
    for at in range(20, len(stub) - 3, 4):
        for value in (0, 1, 5, 7, 16, 18, 0xFFFF_FFFF):
            octets = stub[:at] + value.to_bytes(4, "little") + stub[at + 4 :]
            try:
                SEND.decode_request(TransferSyntax.NDR, octets)
            except DecodeError:
                refused += 1
                assert shape.values(octets) is None
            else:
                check(SEND, TransferSyntax.NDR, shape, octets)
    assert refused > 50


def test_a_field_that_does_not_take_every_value_alone_makes_no_shape() -> None:
    """A size is that of the body, which is no hole here."""
    holes = Holes(values=("hQueue", "ptb.old.ulBodyBufferSizeInBytes"))
    stub = plain_stub(**body(b"octets"))
    assert StubShape.learn(TRACING[TransferSyntax.NDR], stub, holes) is None


def test_a_size_of_what_is_not_there_stays_what_it_was() -> None:
    stub = plain_stub()
    shape = StubShape.learn(TRACING[TransferSyntax.NDR], stub, HOLES)
    assert shape is not None
    place = stub.index(plain_stub(ulBodyBufferSizeInBytes=0)[80:84], 80)
    assert shape.values(stub[:place] + b"\1\0\0\0" + stub[place + 4 :]) is None


def test_a_number_with_bounds_is_one_of_the_shape() -> None:
    operation = load("remoteread").operation("R_EndReceive")
    tracing = operation.tracing(TransferSyntax.NDR)

    def stub(ack: int, request_id: int) -> bytes:
        request = R_EndReceiveRequest(phContext=bytes(20), dwAck=ack, dwRequestId=request_id)
        return operation.encode_request(TransferSyntax.NDR, request)

    shape = StubShape.learn(tracing, stub(1, 7), END_HOLES)
    assert shape is not None
    assert shape.values(stub(1, 8)) == (bytes(20), 1, 8)
    assert shape.values(stub(2, 8)) is None
    assert shape.values(stub(1, 8) + b"\0") is None


@pytest.mark.bound("rpc.request_shape_constants")
def test_a_shape_keeps_so_many_octets_at_most() -> None:
    def shape_of(size: int) -> StubShape | None:
        certificate = {"ppSenderCert": bytes(size), "ulSenderCertLen": size}
        return StubShape.learn(TRACING[TransferSyntax.NDR], plain_stub(**certificate), HOLES)

    holes = 20 + 4 * 5
    most = MOST_CONSTANT - len(plain_stub(ppSenderCert=b"", ulSenderCertLen=0)) + holes
    assert shape_of(most) is not None
    assert shape_of(most + 1) is None


@pytest.mark.bound("rpc.request_shape_stub")
def test_no_shape_is_learned_from_a_longer_stub_but_longer_ones_are_found() -> None:
    longest = LONGEST - len(plain_stub(**body(b"")))
    known = shapes()
    assert [known.note(plain_stub(**body(bytes(longest + 1)))) for _ in range(4)] == [None] * 4
    shape = [known.note(plain_stub(**body(bytes(longest)))) for _ in range(4)][-1]
    assert shape is not None
    assert known.find(plain_stub(**body(bytes(4 * longest)))) is not None
