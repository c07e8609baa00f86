"""VARIANTs become what a parameter is declared as ([MS-OAUT] 3.1.4.4.4, G260)."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.automation.coercion import INTEGERS, coerce
from rpcqm.codec.automation.values import EMPTY, MISSING, SafeArray, Variant
from rpcqm.codec.types.oautvalues import (
    VT_ARRAY,
    VT_BOOL,
    VT_BSTR,
    VT_BYREF,
    VT_CY,
    VT_DATE,
    VT_DECIMAL,
    VT_DISPATCH,
    VT_ERROR,
    VT_I2,
    VT_I4,
    VT_I8,
    VT_NULL,
    VT_R4,
    VT_R8,
    VT_UI1,
    VT_UI2,
    VT_UI4,
    VT_UI8,
    VT_UNKNOWN,
    VT_VARIANT,
)


@pytest.mark.parametrize(
    ("variant", "vt", "value"),
    [
        (Variant(VT_I2, -5), VT_I4, -5),
        (Variant(VT_BOOL, True), VT_I4, -1),
        (Variant(VT_BOOL, True), VT_UI2, 0xFFFF),
        (Variant(VT_R8, 2.5), VT_I4, 2),
        (Variant(VT_R8, 3.5), VT_I4, 4),
        (Variant(VT_CY, Decimal("-1.5")), VT_I2, -2),
        (Variant(VT_BSTR, "0042"), VT_UI1, 42),
        (Variant(VT_BSTR, "1e3"), VT_I2, 1000),
        (EMPTY, VT_I4, 0),
        (EMPTY, VT_BSTR, ""),
        (EMPTY, VT_BOOL, False),
        (Variant(VT_I4, 2), VT_BOOL, True),
        (Variant(VT_BSTR, "True"), VT_BOOL, True),
        (Variant(VT_BSTR, "#FALSE#"), VT_BOOL, False),
        (Variant(VT_BSTR, "0"), VT_BOOL, False),
        (Variant(VT_I4, 7), VT_BSTR, "7"),
        (Variant(VT_BOOL, True), VT_BSTR, "-1"),
        (Variant(VT_R8, 0.1), VT_BSTR, "0.1"),
        (Variant(VT_CY, Decimal("12.3400")), VT_BSTR, "12.34"),
        (Variant(VT_DATE, 1.5), VT_BSTR, "12/31/1899 12:00:00"),
        (Variant(VT_BSTR, "2000-01-01 06:00:00"), VT_DATE, 36526.25),
        (Variant(VT_BSTR, "1/31/2000"), VT_DATE, 36556.0),
        (Variant(VT_BSTR, "18:00:00"), VT_DATE, 0.75),
        (Variant(VT_I4, 3), VT_R8, 3.0),
        (Variant(VT_R8, 0.1), VT_R4, 0.10000000149011612),
        (Variant(VT_R8, 0.00015), VT_CY, Decimal("0.0002")),
        (Variant(VT_I8, 5), VT_DECIMAL, Decimal(5)),
        (Variant(VT_BSTR, "1.25"), VT_DECIMAL, Decimal("1.25")),
        (Variant(VT_UNKNOWN, None), VT_DISPATCH, None),
        (Variant(VT_BYREF | VT_I4, 9), VT_I4, 9),
        (Variant(VT_BYREF | VT_VARIANT, Variant(VT_I2, 9)), VT_I4, 9),
        (Variant(VT_BYREF | VT_I2, 9), VT_VARIANT, Variant(VT_I2, 9)),
        (MISSING, VT_VARIANT, MISSING),
    ],
)
def test_a_variant_becomes_another_type(variant: Variant, vt: int, value: object) -> None:
    found = coerce(variant, vt)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("variant", "vt", "status"),
    [
        (Variant(VT_I4, 1 << 15), VT_I2, HResult.DISP_E_OVERFLOW),
        (Variant(VT_I4, -1), VT_UI4, HResult.DISP_E_OVERFLOW),
        (Variant(VT_R8, float("nan")), VT_I4, HResult.DISP_E_OVERFLOW),
        (Variant(VT_R8, float("inf")), VT_CY, HResult.DISP_E_OVERFLOW),
        (Variant(VT_R8, 1e40), VT_R4, HResult.DISP_E_OVERFLOW),
        (Variant(VT_BSTR, "1e400"), VT_R8, HResult.DISP_E_OVERFLOW),
        (Variant(VT_BSTR, "1e20"), VT_CY, HResult.DISP_E_OVERFLOW),
        (Variant(VT_R8, 1e300), VT_DECIMAL, HResult.DISP_E_OVERFLOW),
        (Variant(VT_BSTR, "nan"), VT_I4, HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_BSTR, "1_0"), VT_I4, HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_BSTR, "1e999999999"), VT_I4, HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_BSTR, "9" * 65), VT_I8, HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_BSTR, b"odd"), VT_I4, HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_BSTR, None), VT_I4, HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_BSTR, "soon"), VT_DATE, HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_DATE, 1e300), VT_BSTR, HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_NULL), VT_I4, HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_ERROR, 5), VT_I4, HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_DISPATCH, None), VT_BSTR, HResult.DISP_E_TYPEMISMATCH),
        (Variant(VT_I4, 1), VT_DISPATCH, HResult.DISP_E_TYPEMISMATCH),
        (
            Variant(VT_ARRAY | VT_UI1, SafeArray(VT_UI1, b"")),
            VT_BSTR,
            HResult.DISP_E_TYPEMISMATCH,
        ),
        (Variant(VT_BYREF | VT_I4, None), VT_I4, HResult.DISP_E_TYPEMISMATCH),
        (
            Variant(VT_BYREF | VT_VARIANT, Variant(VT_BYREF | VT_I4, 1)),
            VT_I4,
            HResult.DISP_E_TYPEMISMATCH,
        ),
        (Variant(0x123, 1), VT_I4, HResult.DISP_E_BADVARTYPE),
    ],
)
def test_a_variant_that_cannot_is_refused(variant: Variant, vt: int, status: HResult) -> None:
    with pytest.raises(MQError) as refused:
        coerce(variant, vt)
    assert refused.value.status == status


NUMBERS = st.one_of(
    st.integers(*INTEGERS[VT_I8]).map(lambda value: Variant(VT_I8, value)),
    st.integers(*INTEGERS[VT_UI8]).map(lambda value: Variant(VT_UI8, value)),
    st.floats(width=64).map(lambda value: Variant(VT_R8, value)),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda value: Variant(VT_CY, value)),
    st.text(max_size=80).map(lambda value: Variant(VT_BSTR, value)),
    st.booleans().map(lambda value: Variant(VT_BOOL, value)),
)
TARGETS = [*INTEGERS, VT_BOOL, VT_BSTR, VT_CY, VT_DATE, VT_DECIMAL, VT_R4, VT_R8]


@given(NUMBERS, st.sampled_from(TARGETS))
def test_whatever_comes_becomes_a_value_or_a_refusal(variant: Variant, vt: int) -> None:
    try:
        value = coerce(variant, vt)
    except MQError as error:
        refusals = (HResult.DISP_E_TYPEMISMATCH, HResult.DISP_E_OVERFLOW)
        assert error.status in refusals  # noqa: PT017 -- either outcome will do
        return
    if vt in INTEGERS:
        least, greatest = INTEGERS[vt]
        assert isinstance(value, int)
        assert least <= value <= greatest
