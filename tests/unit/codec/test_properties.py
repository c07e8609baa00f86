"""Properties by name, number and type, and the variants that carry them."""

import csv
import enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec import properties, property_values
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.properties import (
    NULL_VARIANT,
    PropertyIdentifier,
    PropVariant,
    QueueProperty,
    VarType,
    bool_of_variant,
    variant_bool,
)
from rpcqm.codec.propvariant import propvariant_of, variant_of
from rpcqm.codec.types import mqvalues
from rpcqm.codec.types.mqmq import (
    BLOB,
    CAPROPVARIANT,
    PROPVARIANT,
    PROPVARIANT_varUnion,
)
from rpcqm.codec.types.qmmgmt import R_QMMgmtGetInfoResponse

TABLE = Path(__file__).parents[2] / "vectors" / "mqmq" / "properties.csv"
ROWS = list(csv.DictReader(TABLE.read_text("ascii").splitlines()))
TYPE_NAMES = {
    "VT_VECTOR|VT_LPWSTR": VarType.VT_VECTOR_LPWSTR,
    "VT_VECTOR|VT_CLSID": VarType.VT_VECTOR_CLSID,
    "VT_VECTOR|VT_UI1": VarType.VT_VECTOR_UI1,
    "VT_VECTOR|VT_VARIANT": VarType.VT_VECTOR_VARIANT,
}
GUID = UUID("c626ea11-e6b6-9749-9595-9150557358d1")
WIRE_GUID = GUID.bytes_le.hex()


@pytest.mark.parametrize(
    ("family", "name", "value", "vartype"),
    [
        pytest.param(
            row["family"],
            row["name"],
            int(row["value"]),
            row["type"],
            id=row["name"],
            marks=pytest.mark.conformance(f"MQMQ-prop-{row['name']}"),
        )
        for row in ROWS
    ],
)
def test_property_has_its_number_and_type(family: str, name: str, value: int, vartype: str) -> None:
    kind: type[PropertyIdentifier] = getattr(properties, family)
    member = kind(value)
    assert member.name == name
    assert kind[name] is member
    assert member.vartype is (TYPE_NAMES.get(vartype) or VarType[vartype])


@pytest.mark.parametrize("family", sorted({row["family"] for row in ROWS}))
def test_no_property_is_missing_and_none_is_invented(family: str) -> None:
    kind: type[PropertyIdentifier] = getattr(properties, family)
    assert {member.name for member in kind} == {r["name"] for r in ROWS if r["family"] == family}


def enumeration_of(name: str) -> type[enum.Enum]:
    module = property_values if hasattr(property_values, name) else mqvalues
    found: type[enum.Enum] = getattr(module, name)
    return found


VALUES = list(
    csv.DictReader(TABLE.with_name("property_values.csv").read_text("ascii").splitlines())
)


@pytest.mark.parametrize(
    ("enumeration", "name", "value"),
    [
        pytest.param(
            row["enumeration"],
            row["name"],
            row["value"],
            id=f"{row['property']}-{row['value']}",
            marks=pytest.mark.conformance(f"MQMQ-prop-{row['property']}"),
        )
        for row in VALUES
    ],
)
def test_value_of_a_closed_set_has_its_name(enumeration: str, name: str, value: str) -> None:
    member = enumeration_of(enumeration)[name]
    assert str(member.value) == value


@pytest.mark.conformance("MQMQ-prop-PROPID_MGMT_QUEUE_STATE")
def test_no_value_is_invented_but_the_state_locked() -> None:
    for enumeration in {row["enumeration"] for row in VALUES}:
        names = {row["name"] for row in VALUES if row["enumeration"] == enumeration}
        more = {"MGMT_QUEUE_STATE_LOCKED"} if enumeration == "ManagementQueueState" else set()
        assert set(enumeration_of(enumeration).__members__) == names | more
    assert property_values.ManagementQueueState("LOCKED").name == "MGMT_QUEUE_STATE_LOCKED"


def test_property_of_another_kind_of_object_is_illegal() -> None:
    assert QueueProperty.of(103) is QueueProperty.PROPID_Q_PATHNAME
    with pytest.raises(MQError) as refusal:
        QueueProperty.of(1)
    assert refusal.value.status is HResult.MQ_ERROR_ILLEGAL_PROPID


def test_property_takes_values_of_its_own_type_only() -> None:
    quota = QueueProperty.PROPID_Q_QUOTA
    assert quota.check(quota.variant(7)) == 7
    with pytest.raises(MQError) as refusal:
        quota.check(PropVariant(VarType.VT_I4, 7))
    assert refusal.value.status is HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT
    with pytest.raises(MQError) as refusal:
        quota.variant("7")
    assert refusal.value.status is HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE


# Point, value, and the bytes of the variant's union in NDR: tag, the arm at its own alignment
# and, after the last variant, what it points to.
VARIANTS: list[tuple[str, PropVariant, str, str]] = [
    ("VT_EMPTY_VT_NULL", PropVariant(VarType.VT_EMPTY), "0000", ""),
    ("VT_EMPTY_VT_NULL", NULL_VARIANT, "0100", ""),
    ("VT_I1", PropVariant(VarType.VT_I1, -2), "1000 fe", ""),
    ("VT_UI1", PropVariant(VarType.VT_UI1, 254), "1100 fe", ""),
    ("VT_I2", PropVariant(VarType.VT_I2, -2), "0200 feff", ""),
    ("VT_UI2", PropVariant(VarType.VT_UI2, 0xFFFE), "1200 feff", ""),
    ("VT_I4", PropVariant(VarType.VT_I4, -2), "0300 0000 feffffff", ""),
    ("VT_UI4", PropVariant(VarType.VT_UI4, 0xFFFFFFFE), "1300 0000 feffffff", ""),
    ("VT_I8", PropVariant(VarType.VT_I8, -2), "1400 000000000000 feffffffffffffff", ""),
    ("VT_UI8", PropVariant(VarType.VT_UI8, 2), "1500 000000000000 0200000000000000", ""),
    ("VT_BOOL", PropVariant(VarType.VT_BOOL, True), "0b00 ffff", ""),
    ("VT_BOOL", PropVariant(VarType.VT_BOOL, False), "0b00 0000", ""),
    ("VT_CLSID", PropVariant(VarType.VT_CLSID, GUID), "4800 0000 00000200", WIRE_GUID),
    (
        "VT_BLOB",
        PropVariant(VarType.VT_BLOB, b"abc"),
        "4100 0000 03000000 00000200",
        "03000000 616263",
    ),
    (
        "VT_LPWSTR",
        PropVariant(VarType.VT_LPWSTR, "hi"),
        "1f00 0000 00000200",
        "03000000 00000000 03000000 680069000000",
    ),
    (
        "VT_VECTOR-VT_UI1",
        PropVariant(VarType.VT_VECTOR_UI1, b"\1\2"),
        "1110 0000 02000000 00000200",
        "02000000 0102",
    ),
    (
        "VT_VECTOR-VT_UI2",
        PropVariant(VarType.VT_VECTOR_UI2, (1, 2)),
        "1210 0000 02000000 00000200",
        "02000000 01000200",
    ),
    (
        "VT_VECTOR-VT_I4",
        PropVariant(VarType.VT_VECTOR_I4, (1, -2)),
        "0310 0000 02000000 00000200",
        "02000000 01000000 feffffff",
    ),
    (
        "VT_VECTOR-VT_UI4",
        PropVariant(VarType.VT_VECTOR_UI4, (1, 2)),
        "1310 0000 02000000 00000200",
        "02000000 01000000 02000000",
    ),
    (
        "VT_VECTOR-VT_UI8",
        PropVariant(VarType.VT_VECTOR_UI8, (3,)),
        "1510 0000 01000000 00000200",
        "01000000 0300000000000000",
    ),
    (
        "VT_VECTOR-VT_CLSID",
        PropVariant(VarType.VT_VECTOR_CLSID, (GUID,)),
        "4810 0000 01000000 00000200",
        "01000000" + WIRE_GUID,
    ),
    (
        "VT_VECTOR-VT_LPWSTR",
        PropVariant(VarType.VT_VECTOR_LPWSTR, ("hi", "")),
        "1f10 0000 02000000 00000200",
        "02000000 04000200 08000200 03000000 00000000 03000000 680069000000 0000"
        " 01000000 00000000 01000000 0000",
    ),
    (
        "VT_VECTOR-VT_VARIANT",
        PropVariant(VarType.VT_VECTOR_VARIANT, (PropVariant(VarType.VT_UI1, 7),)),
        "0c10 0000 01000000 00000200",
        "01000000 1100 00 00 00000000 1100 07",
    ),
]
VARIANT_CASES = [
    pytest.param(
        variant,
        bytes.fromhex(union.replace(" ", "")),
        bytes.fromhex(pointee.replace(" ", "")),
        id=f"{point}-{variant.value}",
        marks=pytest.mark.conformance(f"MQMQ-variant-{point}"),
    )
    for point, variant, union, pointee in VARIANTS
]


@pytest.mark.parametrize(("variant", "union", "pointee"), VARIANT_CASES)
def test_variant_on_the_wire(variant: PropVariant, union: bytes, pointee: bytes) -> None:
    """One variant in R_QMMgmtGetInfo's response: count, structure, union, pointees, result."""
    operation = load("qmmgmt").operation("R_QMMgmtGetInfo")
    response = R_QMMgmtGetInfoResponse(apVar=[propvariant_of(variant)], result=0)
    stub = operation.encode_response(TransferSyntax.NDR, response)
    vt = union[:2]
    expected = b"\1\0\0\0" + bytes(4) + vt + bytes(6) + union + pointee
    expected += bytes(-len(expected) & 3) + bytes(4)
    assert stub == expected
    assert variant_of(operation.decode_response(TransferSyntax.NDR, stub).apVar[0]) == variant


@pytest.mark.parametrize(("variant", "union", "pointee"), VARIANT_CASES)
def test_variant_of_the_other_alignment(variant: PropVariant, union: bytes, pointee: bytes) -> None:
    """Where the union is an ms_union, every arm lies at a multiple of eight (G29)."""
    operation = load("qmmgmt", ms_union=True).operation("R_QMMgmtGetInfo")
    response = R_QMMgmtGetInfoResponse(apVar=[propvariant_of(variant)], result=0)
    stub = operation.encode_response(TransferSyntax.NDR, response)
    arm = union[ARM_OFFSETS.get(variant.vt, 4) :]
    assert stub[16:24] == union[:2] + bytes(6)
    assert stub[24 : 24 + len(arm)] == arm
    assert variant_of(operation.decode_response(TransferSyntax.NDR, stub).apVar[0]) == variant


# Where the arm starts behind the union's tag, by its own alignment; 4 where not listed.
ARM_OFFSETS = {
    VarType.VT_I1: 2,
    VarType.VT_UI1: 2,
    VarType.VT_I2: 2,
    VarType.VT_UI2: 2,
    VarType.VT_BOOL: 2,
    VarType.VT_I8: 8,
    VarType.VT_UI8: 8,
}


def test_truth_is_all_ones() -> None:
    assert variant_bool(True) & 0xFFFF == 0xFFFF
    assert variant_bool(False) == 0
    assert bool_of_variant(0xFFFF)
    assert bool_of_variant(-1)
    assert not bool_of_variant(0)
    with pytest.raises(MQError):
        bool_of_variant(1)


@pytest.mark.parametrize(
    ("vt", "value"),
    [
        (VarType.VT_EMPTY, 0),
        (VarType.VT_UI1, 256),
        (VarType.VT_UI1, True),
        (VarType.VT_I1, 128),
        (VarType.VT_I2, 1.0),
        (VarType.VT_UI8, -1),
        (VarType.VT_BOOL, 1),
        (VarType.VT_LPWSTR, b"x"),
        (VarType.VT_LPWSTR, None),
        (VarType.VT_CLSID, str(GUID)),
        (VarType.VT_BLOB, "x"),
        (VarType.VT_VECTOR_UI4, (1, -1)),
        (VarType.VT_VECTOR_UI4, 1),
        (VarType.VT_VECTOR_LPWSTR, ("a", None)),
        (VarType.VT_VECTOR_VARIANT, (1,)),
    ],
)
def test_value_of_another_type_is_refused(vt: VarType, value: Any) -> None:
    with pytest.raises(MQError) as refusal:
        PropVariant(vt, value)
    assert refusal.value.status is HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE


@pytest.mark.parametrize("vt", [2 + 0x1000, 12, 8, 0xFFFF])
def test_unknown_type_is_refused(vt: int) -> None:
    with pytest.raises(MQError) as refusal:
        PropVariant.of(vt, 0)
    assert refusal.value.status is HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT


@pytest.mark.parametrize(
    ("vt", "arm"),
    [
        (VarType.VT_BLOB, BLOB(cbSize=3, pBlobData=b"ab")),
        (VarType.VT_BLOB, BLOB(cbSize=3, pBlobData=None)),
        (VarType.VT_LPWSTR, None),
        (VarType.VT_CLSID, None),
        (VarType.VT_BOOL, 5),
    ],
)
def test_structure_that_contradicts_itself_is_refused(vt: VarType, arm: Any) -> None:
    with pytest.raises(MQError) as refusal:
        variant_of(PROPVARIANT(vt=vt, _varUnion=PROPVARIANT_varUnion(vt, arm)))
    assert refusal.value.status is HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE


def test_empty_array_may_have_a_null_pointer() -> None:
    vt = VarType.VT_BLOB
    structure = PROPVARIANT(vt=vt, _varUnion=PROPVARIANT_varUnion(vt, BLOB(cbSize=0)))
    assert variant_of(structure) == PropVariant(vt, b"")


def test_variants_nested_too_deeply_are_refused() -> None:
    structure = propvariant_of(NULL_VARIANT)
    vt = VarType.VT_VECTOR_VARIANT
    for _ in range(6):
        array = CAPROPVARIANT(cElems=1, pElems=[structure])
        structure = PROPVARIANT(vt=vt, _varUnion=PROPVARIANT_varUnion(vt, array))
    with pytest.raises(MQError):
        variant_of(structure)


texts = st.text(st.characters(min_codepoint=1, max_codepoint=0x7FF), max_size=5)
singles = st.one_of(
    st.builds(PropVariant, st.just(VarType.VT_BOOL), st.booleans()),
    st.builds(PropVariant, st.just(VarType.VT_I8), st.integers(-(1 << 63), (1 << 63) - 1)),
    st.builds(PropVariant, st.just(VarType.VT_LPWSTR), texts),
    st.builds(PropVariant, st.just(VarType.VT_BLOB), st.binary(max_size=5)),
    st.builds(PropVariant, st.just(VarType.VT_CLSID), st.uuids()),
    st.builds(
        PropVariant, st.just(VarType.VT_VECTOR_LPWSTR), st.lists(texts, max_size=3).map(tuple)
    ),
)
variants = singles | st.builds(
    PropVariant, st.just(VarType.VT_VECTOR_VARIANT), st.lists(singles, max_size=3).map(tuple)
)


@given(st.lists(variants, min_size=1, max_size=4), st.sampled_from(TransferSyntax))
def test_variants_survive_a_call(values: list[PropVariant], syntax: TransferSyntax) -> None:
    operation = load("qmmgmt").operation("R_QMMgmtGetInfo")
    response = R_QMMgmtGetInfoResponse(apVar=[propvariant_of(v) for v in values], result=0)
    read = operation.decode_response(syntax, operation.encode_response(syntax, response))
    assert [variant_of(structure) for structure in read.apVar] == values
