"""Whatever arrives: DecodeError or a value, with little work and little memory."""

import functools
import random
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.codec.idl.tree import OperationDeclaration
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.ndr.compile import MessageCodec, Wire
from rpcqm.codec.ndr.decode import MAXIMUM_DEPTH
from rpcqm.codec.types.mqmq import CAPROPVARIANT, PROPVARIANT, PROPVARIANT_varUnion
from rpcqm.codec.types.mqvalues import VT_NULL, VT_VARIANT, VT_VECTOR
from rpcqm.codec.types.qmcomm import OBJECT_FORMAT, OBJECT_FORMAT_u, R_QMSetObjectPropertiesRequest
from tests.support.codec.idl_values import messages
from tests.support.codec.interfaces import INTERFACES

OPERATIONS = [
    pytest.param(name, operation, id=f"{name}-{operation.name}")
    for name in INTERFACES
    for operation in load(name).declaration.operations
    if operation is not None
]
WIRES = pytest.mark.parametrize("wire", [Wire(), Wire(ndr64=True)], ids=["ndr", "ndr64"])
ALL_WIRES = pytest.mark.parametrize(
    "wire", [Wire(), Wire(ndr64=True), Wire(big_endian=True)], ids=["ndr", "ndr64", "big-endian"]
)
LENIENT = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))


def codecs_of(name: str, made: OperationDeclaration, wire: Wire) -> list[tuple[bool, MessageCodec]]:
    compiler = load(name).compiler(wire)
    return [(response, compiler.codec(made, response)) for response in (False, True)]


def decoded(codec: MessageCodec, stub: bytes) -> Any:
    """The value, or None for a refusal; any other exception is the test's failure."""
    try:
        return codec.decode(stub)
    except DecodeError:
        return None


@ALL_WIRES
@pytest.mark.parametrize(("name", "operation"), OPERATIONS)
@LENIENT
@given(data=st.data())
def test_a_stub_cut_anywhere_is_refused(
    data: st.DataObject, name: str, operation: OperationDeclaration, wire: Wire
) -> None:
    for response, codec in codecs_of(name, operation, wire):
        value = data.draw(messages(operation, response))
        stub = codec.encode(value)
        for size in range(len(stub)):
            cut = decoded(codec, stub[:size])
            # What is left out may have been no more than the gap that ends a structure.
            assert cut is None or (cut == value and not any(stub[size:]))


@WIRES
@pytest.mark.parametrize(("name", "operation"), OPERATIONS)
@LENIENT
@given(data=st.data(), seed=st.integers(0, 1 << 32))
def test_a_corrupted_stub_is_refused_or_is_another_value(
    data: st.DataObject, seed: int, name: str, operation: OperationDeclaration, wire: Wire
) -> None:
    chance = random.Random(seed)
    for response, codec in codecs_of(name, operation, wire):
        stub = codec.encode(data.draw(messages(operation, response)))
        for _ in range(40 if stub else 0):
            damaged = bytearray(stub)
            for _ in range(chance.choice((1, 1, 1, 4, 16))):
                octet = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
                damaged[chance.randrange(len(damaged))] = octet
            value = decoded(codec, bytes(damaged))
            if value is not None:
                assert codec.decode(codec.encode(value)) == value


@WIRES
@pytest.mark.parametrize(("name", "operation"), OPERATIONS)
@LENIENT
@given(octets=st.binary(max_size=200))
def test_any_octets_are_refused_or_are_a_value(
    octets: bytes, name: str, operation: OperationDeclaration, wire: Wire
) -> None:
    for _, codec in codecs_of(name, operation, wire):
        value = decoded(codec, octets)
        if value is not None:
            assert codec.decode(codec.encode(value)) == value


@WIRES
def test_a_huge_count_allocates_nothing(wire: Wire) -> None:
    """Each word of a stub in turn becomes a huge number: counts are checked before use."""
    big = struct.pack(wire.order + wire.word_code, (1 << 8 * wire.word - 1) - 1)
    peaks = []
    for name in INTERFACES:
        for operation in load(name).declaration.operations:
            for response, codec in codecs_of(name, operation, wire) if operation else ():
                assert operation is not None
                stub = codec.encode(_example(operation, response))
                decoded(codec, stub)
                for at in range(0, len(stub) - wire.word + 1, 4):
                    damaged = stub[:at] + big + stub[at + wire.word :]
                    allowed = 32 * (len(stub) + 1000)
                    shares = (memory_taken(codec, damaged) / allowed for _ in range(3))
                    peaks.append(next((share for share in shares if share < 1), 1))
    assert len(peaks) > 1000
    assert max(peaks) < 1, "the memory taken is in proportion to the octets received"


def memory_taken(codec: MessageCodec, stub: bytes) -> int:
    """Octets at the peak of decoding; now and then another thread's are among them."""
    tracemalloc.start()
    try:
        decoded(codec, stub)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@functools.cache
def _example(operation: OperationDeclaration, response: bool) -> Any:
    """Some value of an operation, the same each time and on each wire."""
    found: list[Any] = []

    @settings(max_examples=10, database=None, derandomize=True, deadline=None)
    @given(messages(operation, response))
    def keep(value: Any) -> None:
        found.append(value)

    keep()
    return max(found, key=lambda value: len(repr(value)))


def nested(depth: int) -> PROPVARIANT:
    """A variant in a vector in a variant …, `depth` vectors deep."""
    if depth == 0:
        return PROPVARIANT(vt=VT_NULL, _varUnion=PROPVARIANT_varUnion(VT_NULL))
    vector = CAPROPVARIANT(cElems=1, pElems=[nested(depth - 1)])
    kind = VT_VECTOR | VT_VARIANT
    return PROPVARIANT(vt=kind, _varUnion=PROPVARIANT_varUnion(kind, vector))


@pytest.mark.bound("rpc.nesting")
@pytest.mark.parametrize("syntax", TransferSyntax)
def test_nesting_has_an_end(syntax: TransferSyntax) -> None:
    operation = load("qmcomm").operation("R_QMSetObjectProperties")
    fine = []
    for depth in range(40):
        request = R_QMSetObjectPropertiesRequest(
            pObjectFormat=OBJECT_FORMAT(ObjType=1, u=OBJECT_FORMAT_u(1)),
            cp=1,
            aProp=[1],
            apVar=[nested(depth)],
        )
        stub = operation.encode_request(syntax, request)
        if depth < MAXIMUM_DEPTH:
            fine.append(operation.decode_request(syntax, stub) == request)
        else:
            with pytest.raises(DecodeError, match="nested too deeply"):
                operation.decode_request(syntax, stub)
    assert fine == [True] * MAXIMUM_DEPTH
