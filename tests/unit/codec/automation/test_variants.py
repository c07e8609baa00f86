"""VARIANTs, SAFEARRAYs and BSTRs on the wire: the octets, and all that can be wrong with them."""

import contextlib
import functools
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, example, given, settings

from rpcqm.base.errors import DecodeError
from rpcqm.codec.automation.marshalling import functions
from rpcqm.codec.automation.values import EMPTY, MISSING, SafeArray, Variant
from rpcqm.codec.automation.variants import MAXIMUM_DEPTH
from rpcqm.codec.ndr.compile import Compiler, MessageCodec, Wire
from rpcqm.codec.types import oautvalues as oa
from tests.support.dcom.variants import (
    BSTRS,
    arrays,
    bstr_from_plain,
    from_plain,
    plain_operation,
    plain_variants,
    variants,
)

NDR = Wire()
WIRES = {"ndr": NDR, "ndr64": Wire(ndr64=True), "big-endian": Wire(big_endian=True)}
ALL = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES.keys())
LITTLE = pytest.mark.parametrize("ndr64", [False, True], ids=["ndr", "ndr64"])
SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def written(kind: str, value: Any, wire: Wire = NDR) -> bytes:
    parts: list[bytes] = []
    write: Callable[..., int] = functions(wire.ndr64, wire.big_endian)[f"write_{kind}"]  # type: ignore[assignment]
    identifiers = iter(range(0x20000, 0x200000, 4))
    end = write(parts.append, 0, value, lambda: next(identifiers))
    octets = b"".join(parts)
    assert end == len(octets)
    return octets


def read(kind: str, octets: bytes, wire: Wire = NDR) -> Any:
    function: Callable[..., Any] = functions(wire.ndr64, wire.big_endian)[f"read_{kind}"]  # type: ignore[assignment]
    return function(octets, 0, len(octets))[0]


@functools.cache
def plain_codec(operation: str, wire: Wire) -> MessageCodec:
    return Compiler(wire).codec(plain_operation(operation), response=False)


@ALL
@SETTINGS
@given(value=variants())
@example(value=MISSING)
@example(value=Variant(oa.VT_VARIANT | oa.VT_BYREF, None))
def test_a_variant_comes_back(value: Variant, wire: Wire) -> None:
    octets = written("VARIANT", value, wire)
    found = read("VARIANT", octets, wire)
    assert found == value
    assert read("VARIANT", memoryview(octets), wire) == value  # type: ignore[arg-type]
    assert struct.unpack_from("<I", octets)[0] == -(-len(octets) // 8), "its own size in quads"


@ALL
@SETTINGS
@given(value=arrays(plain_variants()))
def test_an_array_comes_back(value: SafeArray, wire: Wire) -> None:
    assert read("SAFEARRAY", written("SAFEARRAY", value, wire), wire) == value


@LITTLE
@SETTINGS
@given(value=variants())
def test_the_octets_are_those_of_the_idl_s_own_structures(value: Variant, ndr64: bool) -> None:
    """Behind the pointer that a VARIANT is."""
    wire = Wire(ndr64=ndr64)
    codec = plain_codec("of_variant", wire)
    head = struct.pack("<Q", 1)
    octets = written("VARIANT", value, wire)
    theirs = codec.decode(head + octets)
    assert from_plain(theirs.value) == value
    again = codec.encode(theirs)[8:]
    assert read("VARIANT", again, wire) == value
    # In the structures' values a null pointer behind a pointer is the same as a null pointer.
    assert len(again) == len(octets) or "value=None" in repr(value)


@LITTLE
@SETTINGS
@given(value=BSTRS)
def test_a_bstr_is_that_of_the_idl(value: str | bytes | None, ndr64: bool) -> None:
    wire = Wire(ndr64=ndr64)
    codec = plain_codec("of_bstr", wire)
    octets = written("BSTR", value, wire)
    assert read("BSTR", octets, wire) == value
    head = struct.pack("<Q" if ndr64 else "<I", 1)
    assert bstr_from_plain(codec.decode(head + octets).value) == value


# Octets that others have written, and those that the text gives.

PATH = ".\\private$\\nodeq"
VECTORS = Path(__file__).parents[3] / "vectors" / "automation"


def test_the_counts_of_a_client_that_counts_a_terminator() -> None:
    """node-dcom, as recorded: a maximum count of 0x21 for the octets, with 0x10 words (G245)."""
    octets = bytes.fromhex((VECTORS / "node_dcom_put_PathName.hex").read_text("ascii"))
    assert read("BSTR", octets) == PATH


def test_a_null_bstr_has_the_count_of_minus_one() -> None:
    assert written("BSTR", None).hex() == "00000000ffffffff00000000"
    assert written("BSTR", "").hex() == "000000000000000000000000"
    assert read("BSTR", written("BSTR", "")) == ""


def test_half_of_a_surrogate_pair_is_octets() -> None:
    octets = written("BSTR", b"\x00\xd8")
    assert octets == written("BSTR", "\ud800")
    assert read("BSTR", octets) == b"\x00\xd8"


@pytest.mark.parametrize(
    "octets",
    [
        *("01000000 04000000 01000000 4100", "02000000 02000000 02000000 41004200"),
        *("00000000 ffffffff 01000000 4100", "ffffffff feffffff ffffff7f 4100"),
        *("02000000 04000000 02000000 4100", "00000000 000000", ""),
    ],
)
def test_a_bstr_with_wrong_counts_is_refused(octets: str) -> None:
    with pytest.raises(DecodeError):
        read("BSTR", bytes.fromhex(octets))


TRUE = "03000000 00000000 0b00 0000 0000 0000 0b000000 ffff"
BYTES = (
    "09000000 00000000 1120 0000 0000 0000 00200000 00000200 04000200"
    "01000000 0100 8000 01000000 00001100 10000000 03000000 08000200 03000000 00000000"
    "03000000 010203"
)


@pytest.mark.parametrize(
    ("value", "octets"),
    [
        (Variant(oa.VT_BOOL, True), TRUE),
        (Variant(oa.VT_I4, -2), "03000000 00000000 0300 0000 0000 0000 03000000 feffffff"),
        (
            Variant(oa.VT_CY, Decimal("5.25")),
            "04000000 00000000 0600 0000 0000 0000 06000000 00000000 14cd000000000000",
        ),
        (
            Variant(oa.VT_DATE, 5.25),
            "04000000 00000000 0700 0000 0000 0000 07000000 00000000 0000000000001540",
        ),
        (MISSING, "03000000 00000000 0a00 0000 0000 0000 0a000000 04000280"),
        (
            Variant(oa.VT_BSTR, "A"),
            "05000000 00000000 0800 0000 0000 0000 08000000 00000200"
            "01000000 02000000 01000000 4100",
        ),
    ],
)
def test_the_octets_of_a_variant(value: Variant, octets: str) -> None:
    assert written("VARIANT", value).hex() == bytes.fromhex(octets).hex()


def test_the_octets_of_an_array() -> None:
    """Tag 0x2000, two referents, FADF_HAVEVARTYPE and the type in the high word of cLocks: as
    impacket, j-interop and go-msrpc read it."""
    value = Variant(oa.VT_ARRAY | oa.VT_UI1, SafeArray(oa.VT_UI1, b"\1\2\3"))
    octets = bytes.fromhex(BYTES)
    assert written("VARIANT", value).hex() == octets.hex()
    assert read("VARIANT", octets) == value


def changed(at: int, form: str, number: int, octets: str = BYTES) -> bytes:
    made = bytearray.fromhex(octets)
    struct.pack_into(form, made, at, number)
    return bytes(made)


@pytest.mark.parametrize(
    ("at", "form", "number"),
    [
        *((8, "<H", 0x2012), (8, "<H", 0x6011), (8, "<H", 0x3011), (8, "<H", 0x200E)),
        *((16, "<I", 0x2011), (16, "<I", 0), (28, "<I", 2), (28, "<I", 0xFFFFFFFF)),
        *((32, "<H", 0), (32, "<H", 2), (32, "<H", 0xFFFF), (42, "<H", 0x0003)),
        *((44, "<I", 2), (44, "<I", 0x24), (48, "<I", 2), (48, "<I", 0xFFFFFFFF)),
        *((52, "<I", 0), (56, "<I", 0xFFFFFFFF), (56, "<I", 4), (64, "<I", 0xFFFFFFFF)),
        *((64, "<I", 2),),
    ],
)
def test_an_array_that_contradicts_itself_is_refused(at: int, form: str, number: int) -> None:
    """Types, dimensions, bounds and counts, up to those of 2**32 elements."""
    with pytest.raises(DecodeError):
        read("VARIANT", changed(at, form, number))


@pytest.mark.parametrize("vt", [0x0024, 0x4024, 0x000C, 0x0018, 0x1003, 0x8003, 0x4000, 0x0048])
def test_a_type_that_no_variant_has_is_refused(vt: int) -> None:
    octets = bytearray(written("VARIANT", Variant(oa.VT_BSTR, "AAAA")))
    struct.pack_into("<H", octets, 8, vt)
    struct.pack_into("<I", octets, 16, vt)
    with pytest.raises(DecodeError):
        read("VARIANT", bytes(octets))


@pytest.mark.parametrize(("scale", "sign"), [(29, 0), (255, 0), (0, 1), (0, 0x81)])
def test_a_decimal_that_there_is_not_is_refused(scale: int, sign: int) -> None:
    octets = bytearray(written("VARIANT", Variant(oa.VT_DECIMAL, Decimal("1.5"))))
    octets[26:28] = bytes((scale, sign))
    with pytest.raises(DecodeError, match="DECIMAL"):
        read("VARIANT", bytes(octets))


@ALL
@SETTINGS
@given(value=variants())
def test_a_variant_cut_anywhere_is_refused(value: Variant, wire: Wire) -> None:
    octets = written("VARIANT", value, wire)
    needed = len(octets.rstrip(b"\0"))
    for length in range(min(needed, 20)):
        with pytest.raises(DecodeError):
            read("VARIANT", octets[:length], wire)
    for length in range(20, needed, 3):
        _read_or_refuse(octets[:length], wire)


def _read_or_refuse(octets: bytes, wire: Wire) -> None:
    with contextlib.suppress(DecodeError):
        read("VARIANT", octets, wire)


def nested(depth: int, flags: int = oa.VT_BYREF) -> Variant:
    value = Variant(oa.VT_I4, 1)
    for _ in range(depth):
        held: Any = value if flags == oa.VT_BYREF else SafeArray(oa.VT_VARIANT, [value])
        value = Variant(oa.VT_VARIANT | flags, held)
    return value


@pytest.mark.bound("dcom.variant_nesting")
@pytest.mark.parametrize("flags", [oa.VT_BYREF, oa.VT_ARRAY])
@ALL
def test_variants_hold_others_to_a_depth(wire: Wire, flags: int) -> None:
    for depth in (MAXIMUM_DEPTH - 1, MAXIMUM_DEPTH):
        value = nested(depth, flags)
        assert read("VARIANT", written("VARIANT", value, wire), wire) == value
    for depth in (MAXIMUM_DEPTH + 1, 200):
        with pytest.raises(DecodeError, match="nested too deeply"):
            read("VARIANT", written("VARIANT", nested(depth, flags), wire), wire)


def test_an_array_of_interface_pointers_may_name_their_interface() -> None:
    """SF_HAVEIID: the IID stands behind the pointer to the data."""
    value = Variant(oa.VT_ARRAY | oa.VT_UNKNOWN, SafeArray(oa.VT_UNKNOWN, [b"MEOW", None]))
    octets = bytearray(written("VARIANT", value))
    struct.pack_into("<I", octets, 44, oa.SF_HAVEIID)
    octets[56:56] = UUID(int=7).bytes_le
    assert read("VARIANT", bytes(octets)) == value


def test_a_null_array_is_none() -> None:
    value = Variant(oa.VT_ARRAY | oa.VT_I4)
    assert read("VARIANT", written("VARIANT", value)) == value
    reference = Variant(oa.VT_ARRAY | oa.VT_BYREF | oa.VT_I4)
    assert read("VARIANT", written("VARIANT", reference)) == reference


@pytest.mark.parametrize(
    "value",
    [
        *(Variant(oa.VT_I2, 1 << 15), Variant(oa.VT_UI1, -1), Variant(oa.VT_VARIANT, EMPTY)),
        *(Variant(0x24, b""), Variant(oa.VT_CY, Decimal("0.00001")), Variant(oa.VT_CY, 1)),
        *(Variant(oa.VT_DECIMAL, Decimal(1 << 97)), Variant(oa.VT_DECIMAL, Decimal("NaN"))),
        Variant(oa.VT_DECIMAL, Decimal("1e-29")),
        Variant(oa.VT_ARRAY | oa.VT_I2, SafeArray(oa.VT_I4, [1])),
        Variant(oa.VT_ARRAY | oa.VT_DECIMAL, SafeArray(oa.VT_DECIMAL, [Decimal(1)])),
        Variant(oa.VT_ARRAY | oa.VT_I4, SafeArray(oa.VT_I4, [1, 2], [(3, 0)])),
    ],
    ids=repr,
)
def test_a_value_that_its_type_has_not_is_not_written(value: Variant) -> None:
    with pytest.raises((ValueError, TypeError, struct.error)):
        written("VARIANT", value)


def test_interface_pointers_follow_the_order_of_a_stub() -> None:
    value = Variant(oa.VT_UNKNOWN, b"MEOW")
    little, big = written("VARIANT", value), written("VARIANT", value, Wire(big_endian=True))
    assert little[24:] == bytes.fromhex("04000000 04000000") + b"MEOW"
    assert big[24:] == bytes.fromhex("00000004 00000004") + b"MEOW"
    assert little[:20] == big[:20]
