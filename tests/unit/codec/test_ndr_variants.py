"""PROPVARIANT and QUEUE_FORMAT octet by octet, computed by hand from [C706] 14.3 and
[MS-RPCE] 2.2.5.

Code that Samba's pidl made of the same declarations read these octets, in NDR and in NDR64, and
wrote the NDR ones back unchanged (ndrdump --validate, Samba 4.17).  pidl is in no package, so
that the comparison is not part of the tests.
"""

from typing import Any
from uuid import UUID

import pytest

from rpcqm.codec.interface import TransferSyntax, Value
from rpcqm.codec.types.dtyp import LARGE_INTEGER, ULARGE_INTEGER
from rpcqm.codec.types.mqmq import (
    BLOB,
    CACLSID,
    CAL,
    CALPWSTR,
    CAPROPVARIANT,
    CAUB,
    CAUH,
    CAUI,
    CAUL,
    DL_ID,
    MULTICAST_ID,
    OBJECTID,
    PROPVARIANT,
    QUEUE_FORMAT,
    PROPVARIANT_varUnion,
    QUEUE_FORMAT_u,
)
from tests.support.codec.idl_text import interface_of

GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")
GUID_OCTETS = "33221100 5544 7766 8899aabbccddeeff"

VARIANT = interface_of("void f([in] PROPVARIANT* value);").operation("f")
VARIANT_MS = interface_of("void f([in] PROPVARIANT* value);", ms_union=True).operation("f")
FORMAT = interface_of("void f([in] QUEUE_FORMAT* value);").operation("f")
OCTETS_FIRST = interface_of(
    "void f([in] unsigned char first, [in] QUEUE_FORMAT* value, [in] unsigned char last);"
).operation("f")


def variant(vt: int, value: object) -> PROPVARIANT:
    union: Any = PROPVARIANT_varUnion
    return PROPVARIANT(vt=vt, _varUnion=union(vt, value))


def word(number: int) -> str:
    return number.to_bytes(8, "little").hex()


# Type, value, and the octets behind the tag, which ends at octet 10, in NDR and NDR64.
VARIANTS: dict[str, tuple[int, object, str, str]] = {
    "VT_EMPTY_VT_NULL": (1, None, "", "000000000000"),
    "VT_I1": (16, -5, "fb", "000000000000 fb 00000000000000"),
    "VT_UI1": (17, 251, "fb", "000000000000 fb 00000000000000"),
    "VT_I2": (2, -2, "feff", "000000000000 feff 000000000000"),
    "VT_UI2": (18, 0x1234, "3412", "000000000000 3412 000000000000"),
    "VT_I4": (3, -2, "0000 feffffff", "000000000000 feffffff 00000000"),
    "VT_UI4": (19, 7, "0000 07000000", "000000000000 07000000 00000000"),
    "VT_I8": (
        20,
        LARGE_INTEGER(QuadPart=-2),
        "000000000000 feffffffffffffff",
        "000000000000 feffffffffffffff",
    ),
    "VT_UI8": (
        21,
        ULARGE_INTEGER(QuadPart=9),
        "000000000000 0900000000000000",
        "000000000000 0900000000000000",
    ),
    "VT_BOOL": (11, -1, "ffff", "000000000000 ffff 000000000000"),
    "VT_CLSID": (
        72,
        GUID,
        f"0000 00000200 {GUID_OCTETS}",
        f"000000000000 {word(0x20000)} {GUID_OCTETS}",
    ),
    "VT_BLOB": (
        65,
        BLOB(cbSize=3, pBlobData=b"\1\2\3"),
        "0000 03000000 00000200 03000000 010203",
        f"000000000000 03000000 00000000 {word(0x20000)} {word(3)} 010203",
    ),
    "VT_LPWSTR": (
        31,
        "AB",
        "0000 00000200 03000000 00000000 03000000 4100 4200 0000",
        f"000000000000 {word(0x20000)} {word(3)} {word(0)} {word(3)} 4100 4200 0000",
    ),
    "VT_VECTOR-VT_UI1": (
        0x1011,
        CAUB(cElems=2, pElems=b"\1\2"),
        "0000 02000000 00000200 02000000 0102",
        f"000000000000 02000000 00000000 {word(0x20000)} {word(2)} 0102",
    ),
    "VT_VECTOR-VT_UI2": (
        0x1012,
        CAUI(cElems=2, pElems=[1, 0xFFFF]),
        "0000 02000000 00000200 02000000 0100 ffff",
        f"000000000000 02000000 00000000 {word(0x20000)} {word(2)} 0100 ffff",
    ),
    "VT_VECTOR-VT_I4": (
        0x1003,
        CAL(cElems=1, pElems=[-2]),
        "0000 01000000 00000200 01000000 feffffff",
        f"000000000000 01000000 00000000 {word(0x20000)} {word(1)} feffffff",
    ),
    "VT_VECTOR-VT_UI4": (
        0x1013,
        CAUL(cElems=1, pElems=[7]),
        "0000 01000000 00000200 01000000 07000000",
        f"000000000000 01000000 00000000 {word(0x20000)} {word(1)} 07000000",
    ),
    # Elements of eight octets behind a count that ends at 24: no gap; see the ms_union case.
    "VT_VECTOR-VT_UI8": (
        0x1015,
        CAUH(cElems=1, pElems=[ULARGE_INTEGER(QuadPart=9)]),
        "0000 01000000 00000200 01000000 0900000000000000",
        f"000000000000 01000000 00000000 {word(0x20000)} {word(1)} 0900000000000000",
    ),
    "VT_VECTOR-VT_CLSID": (
        0x1048,
        CACLSID(cElems=1, pElems=[GUID]),
        f"0000 01000000 00000200 01000000 {GUID_OCTETS}",
        f"000000000000 01000000 00000000 {word(0x20000)} {word(1)} {GUID_OCTETS}",
    ),
    # An array of pointers: first all identifiers, then all strings.
    "VT_VECTOR-VT_LPWSTR": (
        0x101F,
        CALPWSTR(cElems=3, pElems=["A", None, "B"]),
        "0000 03000000 00000200 03000000 04000200 00000000 08000200"
        "02000000 00000000 02000000 4100 0000 02000000 00000000 02000000 4200 0000",
        f"000000000000 03000000 00000000 {word(0x20000)} {word(3)}"
        f"{word(0x20004)} {word(0)} {word(0x20008)}"
        f"{word(2)} {word(0)} {word(2)} 4100 0000 00000000"
        f"{word(2)} {word(0)} {word(2)} 4200 0000",
    ),
    "VT_VECTOR-VT_VARIANT": (
        0x100C,
        CAPROPVARIANT(cElems=1, pElems=[variant(17, 7)]),
        "0000 01000000 00000200 01000000 1100 0000 00000000 1100 07",
        f"000000000000 01000000 00000000 {word(0x20000)} {word(1)}"
        "1100 0000 00000000 1100 000000000000 07 00000000000000",
    ),
}


@pytest.mark.parametrize("syntax", TransferSyntax)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.conformance(f"MQMQ-variant-{n}")) for n in VARIANTS],
)
def test_a_variant_is_laid_out_as_its_declaration_says(name: str, syntax: TransferSyntax) -> None:
    vt, value, ndr, ndr64 = VARIANTS[name]
    head = f"{vt.to_bytes(2, 'little').hex()} 0000 00000000 {vt.to_bytes(2, 'little').hex()}"
    octets = bytes.fromhex(head + (ndr if syntax is TransferSyntax.NDR else ndr64))
    request = VARIANT.request_class(value=variant(vt, value))
    assert VARIANT.encode_request(syntax, request) == octets
    assert VARIANT.decode_request(syntax, octets) == request


@pytest.mark.parametrize(
    ("vt", "value", "tail"),
    [
        (17, 7, "000000000000 07"),
        (19, 7, "000000000000 07000000"),
        (31, "A", "000000000000 00000200 02000000 00000000 02000000 4100 0000"),
        (
            0x1015,
            CAUH(cElems=1, pElems=[ULARGE_INTEGER(QuadPart=9)]),
            "000000000000 01000000 00000200 01000000 00000000 0900000000000000",
        ),
    ],
)
def test_ms_union_aligns_every_arm_to_the_largest(vt: int, value: object, tail: str) -> None:
    """G29: both layouts are there, and they are different octets ([MS-RPCE] 2.2.4.5)."""
    head = f"{vt.to_bytes(2, 'little').hex()} 0000 00000000 {vt.to_bytes(2, 'little').hex()}"
    octets = bytes.fromhex(head + tail)
    request = VARIANT_MS.request_class(value=variant(vt, value))
    assert VARIANT_MS.encode_request(TransferSyntax.NDR, request) == octets
    assert VARIANT_MS.decode_request(TransferSyntax.NDR, octets) == request
    assert VARIANT.encode_request(TransferSyntax.NDR, request) != octets


def test_ms_union_means_nothing_in_ndr64() -> None:
    """[MS-RPCE] 2.2.4.5."""
    for vt, value, _, ndr64 in VARIANTS.values():
        head = f"{vt.to_bytes(2, 'little').hex()} 0000 00000000 {vt.to_bytes(2, 'little').hex()}"
        request = VARIANT_MS.request_class(value=variant(vt, value))
        octets = VARIANT_MS.encode_request(TransferSyntax.NDR64, request)
        assert octets == bytes.fromhex(head + ndr64)


def queue_format(kind: int, value: object) -> QUEUE_FORMAT:
    union: Any = QUEUE_FORMAT_u
    return QUEUE_FORMAT(m_qft=kind, m_SuffixAndFlags=0x81, u=union(kind, value))


STRING = "02000000 00000000 02000000 5800 0000"
STRING64 = f"{word(2)} {word(0)} {word(2)} 5800 0000"

# Type, value, and the octets behind the tag: octets 5 and 9.
FORMATS: dict[int, tuple[object, str, str]] = {
    0: (None, "", "00000000000000"),
    1: (GUID, f"000000 {GUID_OCTETS}", f"00000000000000 {GUID_OCTETS}"),
    2: (
        OBJECTID(Lineage=GUID, Uniquifier=5),
        f"000000 {GUID_OCTETS} 05000000",
        f"00000000000000 {GUID_OCTETS} 05000000 00000000",
    ),
    3: ("X", f"000000 00000200 {STRING}", f"00000000000000 {word(0x20000)} {STRING64}"),
    4: (GUID, f"000000 {GUID_OCTETS}", f"00000000000000 {GUID_OCTETS}"),
    5: (GUID, f"000000 {GUID_OCTETS}", f"00000000000000 {GUID_OCTETS}"),
    6: (
        DL_ID(m_DlGuid=GUID, m_pwzDomain="X"),
        f"000000 {GUID_OCTETS} 00000200 {STRING}",
        f"00000000000000 {GUID_OCTETS} {word(0x20000)} {STRING64}",
    ),
    7: (
        MULTICAST_ID(m_address=1, m_port=2),
        "000000 01000000 02000000",
        "00000000000000 01000000 02000000",
    ),
    8: ("X", f"000000 00000200 {STRING}", f"00000000000000 {word(0x20000)} {STRING64}"),
}
MORE_POINTS = {2: "OBJECTID", 6: "DL_ID", 7: "MULTICAST_ID"}


def format_points(kind: int) -> list[str]:
    more = [f"MQMQ-packet-{MORE_POINTS[kind]}"] if kind in MORE_POINTS else []
    return [f"MQMQ-qft-{kind}", "MQMQ-packet-QUEUE_FORMAT", *more]


@pytest.mark.parametrize("syntax", TransferSyntax)
@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.conformance(*format_points(k))) for k in FORMATS],
)
def test_a_queue_format_is_laid_out_as_its_declaration_says(
    kind: int, syntax: TransferSyntax
) -> None:
    value, ndr, ndr64 = FORMATS[kind]
    head = f"{kind:02x} 81 0000"
    head += f"{kind:02x}" if syntax is TransferSyntax.NDR else f"00000000 {kind:02x}"
    octets = bytes.fromhex(head + (ndr if syntax is TransferSyntax.NDR else ndr64))
    request = FORMAT.request_class(value=queue_format(kind, value))
    assert FORMAT.encode_request(syntax, request) == octets
    assert FORMAT.decode_request(syntax, octets) == request


def test_a_structure_is_aligned_to_the_arms_of_its_union() -> None:
    """[C706] 14.2.2: to its largest part, even where that is not there."""
    request = OCTETS_FIRST.request_class(first=0xAA, value=queue_format(0, None), last=0xBB)
    ndr = bytes.fromhex("aa 000000 00 81 0000 00 bb")
    assert OCTETS_FIRST.encode_request(TransferSyntax.NDR, request) == ndr
    ndr64 = bytes.fromhex("aa 00000000000000 00 81 0000 00000000 00 00000000000000 bb")
    assert OCTETS_FIRST.encode_request(TransferSyntax.NDR64, request) == ndr64
    assert OCTETS_FIRST.decode_request(TransferSyntax.NDR, ndr) == request
    assert OCTETS_FIRST.decode_request(TransferSyntax.NDR64, ndr64) == request


def test_values_print_and_compare_field_by_field() -> None:
    one, other = queue_format(3, "X"), queue_format(3, "X")
    assert one == other
    other.u.value = "Y"
    assert one != other
    assert one != "X"
    assert isinstance(one, Value)
    assert repr(one).startswith("QUEUE_FORMAT(m_qft=3, m_SuffixAndFlags=129, m_reserved=0, u=")
