"""References to objects as octets, against the layouts of [MS-DCOM] 2.2.18 and 2.2.19."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError
from rpcqm.codec.automation.objref import (
    DualStringArray,
    ObjRefCustom,
    ObjRefExtended,
    ObjRefHandler,
    ObjRefStandard,
    SecurityBinding,
    StdObjRef,
    StringBinding,
    unpack_objref,
)

IID = UUID("00000131-0000-0000-c000-000000000046")
CLSID = UUID("00000339-0000-0000-c000-000000000046")
BINDINGS = DualStringArray((StringBinding(7, "h"),), (SecurityBinding(10),))
STD = StdObjRef(0, 5, 0x1122334455667788, 0x99, bytes(range(16)))

# One 'h' and its end are four octets, the list ends with a zero; NTLM without a name is 6 octets.
ARRAY = bytes.fromhex("0800 0400 0700 6800 0000 0000 0a00 ffff 0000 0000".replace(" ", ""))


def test_a_dualstringarray_is_laid_out_as_the_text_says() -> None:
    assert BINDINGS.pack() == ARRAY
    assert DualStringArray.unpack(ARRAY) == (BINDINGS, len(ARRAY))


def test_the_smallest_dualstringarray_has_four_zeros() -> None:
    octets = bytes.fromhex("0400 0200 0000 0000 0000 0000".replace(" ", ""))
    assert DualStringArray().pack() == octets
    assert DualStringArray.unpack(octets) == (DualStringArray(), len(octets))


def test_a_standard_reference_is_laid_out_as_the_text_says() -> None:
    octets = ObjRefStandard(IID, STD, BINDINGS).pack()
    head = "4d454f57 01000000 31010000 0000 0000 c000000000000046"
    std = "00000000 05000000 8877665544332211 9900000000000000 000102030405060708090a0b0c0d0e0f"
    assert octets == bytes.fromhex((head + std).replace(" ", "")) + ARRAY


@pytest.mark.parametrize(
    "reference",
    [
        ObjRefStandard(IID, STD, BINDINGS),
        ObjRefHandler(IID, STD, CLSID, BINDINGS),
        ObjRefCustom(IID, CLSID, b"whatever"),
        ObjRefExtended(IID, STD, BINDINGS, CLSID, b"context"),
    ],
    ids=lambda reference: type(reference).__name__,
)
def test_every_kind_of_reference_is_read_as_it_was_written(
    reference: ObjRefStandard | ObjRefHandler | ObjRefCustom | ObjRefExtended,
) -> None:
    octets = reference.pack()
    assert unpack_objref(octets) == reference
    for length in range(len(octets) - (8 if isinstance(reference, ObjRefCustom) else 0)):
        with pytest.raises(DecodeError):
            unpack_objref(octets[:length])


def test_what_follows_a_standard_reference_is_ignored() -> None:
    reference = ObjRefStandard(IID, STD, BINDINGS)
    assert unpack_objref(reference.pack() + b"junk") == reference


@pytest.mark.parametrize("flags", [0, 3, 16])
def test_an_unknown_kind_of_reference_is_refused(flags: int) -> None:
    octets = bytearray(ObjRefStandard(IID, STD, BINDINGS).pack())
    octets[4] = flags
    with pytest.raises(DecodeError, match="flags"):
        unpack_objref(bytes(octets))


@given(st.binary(max_size=120))
def test_any_octets_are_a_reference_or_a_decode_error(octets: bytes) -> None:
    for head in (b"", ObjRefStandard(IID, STD).pack()[:24]):
        for kind in (1, 2, 4, 8):
            tried = bytearray(head + octets)
            if head:
                tried[4] = kind
            try:
                unpack_objref(bytes(tried))
            except DecodeError:
                continue
