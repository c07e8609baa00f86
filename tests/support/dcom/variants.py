"""Random VARIANTs, and the same in the words of the IDL's own structures.

The structures of [MS-OAUT] appendix A, read without what makes our own functions write them, are
compiled like any others: the codecs of `codec.automation` must give the same octets.
"""

import functools
import struct
from collections.abc import Callable
from decimal import Decimal
from importlib import resources
from typing import Any

from hypothesis import strategies as st

from rpcqm.codec.automation.scalars import SCALARS
from rpcqm.codec.automation.values import EMPTY, SafeArray, Variant
from rpcqm.codec.idl.load import load_idl, read_idl
from rpcqm.codec.idl.tree import IdlFile, OperationDeclaration
from rpcqm.codec.ndr.values import NULL
from rpcqm.codec.types import oautvalues as oa

INTEGERS = {
    oa.VT_I1: (-(1 << 7), (1 << 7) - 1),
    oa.VT_UI1: (0, (1 << 8) - 1),
    oa.VT_I2: (-(1 << 15), (1 << 15) - 1),
    oa.VT_UI2: (0, (1 << 16) - 1),
    **dict.fromkeys((oa.VT_I4, oa.VT_INT), (-(1 << 31), (1 << 31) - 1)),
    **dict.fromkeys((oa.VT_UI4, oa.VT_UINT, oa.VT_ERROR), (0, (1 << 32) - 1)),
    oa.VT_I8: (-(1 << 63), (1 << 63) - 1),
    oa.VT_UI8: (0, (1 << 64) - 1),
}

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
BSTRS = st.none() | TEXTS | st.binary(min_size=1, max_size=9).filter(lambda b: len(b) % 2 == 1)
POINTERS = st.none() | st.binary(min_size=1, max_size=20)

DECIMALS = st.builds(
    lambda sign, number, scale: Decimal((sign, tuple(map(int, str(number))), -scale)),
    st.integers(0, 1),
    st.integers(0, (1 << 96) - 1),
    st.integers(0, 28),
)


def values_of(vt: int) -> st.SearchStrategy[Any]:
    """Values of a type that is neither an array nor a reference."""
    if vt in INTEGERS:
        return st.integers(*INTEGERS[vt])
    match vt:
        case oa.VT_BOOL:
            return st.booleans()
        case oa.VT_R4:
            return st.floats(width=32, allow_nan=False)
        case oa.VT_R8 | oa.VT_DATE:
            return st.floats(allow_nan=False)
        case oa.VT_CY:
            return st.integers(-(1 << 63), (1 << 63) - 1).map(lambda n: Decimal(n) / 10_000)
        case oa.VT_DECIMAL:
            return DECIMALS
        case oa.VT_BSTR:
            return BSTRS
        case oa.VT_UNKNOWN | oa.VT_DISPATCH:
            return POINTERS
    return st.none()


PLAIN = [*SCALARS, oa.VT_DECIMAL, oa.VT_BSTR, oa.VT_UNKNOWN, oa.VT_DISPATCH]
IN_ARRAYS = [*SCALARS, oa.VT_BSTR, oa.VT_UNKNOWN, oa.VT_DISPATCH]


def plain_variants() -> st.SearchStrategy[Variant]:
    def of(vt: int) -> st.SearchStrategy[Variant]:
        return st.builds(Variant, st.just(vt), values_of(vt))

    return st.sampled_from([oa.VT_EMPTY, oa.VT_NULL, *PLAIN]).flatmap(of)


def references() -> st.SearchStrategy[Variant]:
    def of(vt: int) -> st.SearchStrategy[Variant]:
        return st.builds(Variant, st.just(vt | oa.VT_BYREF), values_of(vt))

    return st.sampled_from(PLAIN).flatmap(of)


def _shape(values: list[Any], split: int, low: int) -> list[tuple[int, int]]:
    if low == 0 and len(values) % split:
        return []
    if len(values) % split:
        return [(len(values), low)]
    return [(len(values) // split, low), (split, -low)]


def arrays(elements: st.SearchStrategy[Variant]) -> st.SearchStrategy[SafeArray]:
    """Arrays of each type, of one or two dimensions."""

    def of(vt: int) -> st.SearchStrategy[SafeArray]:
        if vt == oa.VT_UI1:
            return st.builds(SafeArray, st.just(vt), st.binary(max_size=20))
        each = elements if vt == oa.VT_VARIANT else values_of(vt)
        return st.builds(
            lambda values, split, low: SafeArray(vt, values, _shape(values, split, low)),
            st.lists(each, max_size=6),
            st.integers(1, 3),
            st.integers(-3, 3),
        )

    return st.sampled_from([*IN_ARRAYS, oa.VT_VARIANT]).flatmap(of)


def _holding(inner: st.SearchStrategy[Variant]) -> st.SearchStrategy[Variant]:
    reference = st.builds(Variant, st.just(oa.VT_VARIANT | oa.VT_BYREF), inner)
    flags = st.sampled_from([oa.VT_ARRAY, oa.VT_ARRAY | oa.VT_BYREF])
    array = st.builds(lambda a, f: Variant(a.vt | f, a), arrays(inner), flags)
    null = st.builds(lambda vt, f: Variant(vt | f), st.sampled_from(IN_ARRAYS), flags)
    return reference | array | null


def variants() -> st.SearchStrategy[Variant]:
    """VARIANTs of every type, in each other."""
    return st.recursive(plain_variants() | references(), _holding, max_leaves=6)


# The same in the structures of the IDL.


@functools.cache
def plain_file() -> IdlFile:
    """oaut.idl with nothing but structures, and a method for each kind of value."""
    text = (resources.files("rpcqm.idl") / "oaut.idl").read_text("utf-8")
    text = text[: text.index("[object, uuid(00020400")]
    text = text.replace("/* rpcqm: wire_marshal */", "").replace("/* rpcqm: truth */", "")
    union = "switch_is(vt & 0x2000 ? vt & 0x6000 : vt)"
    text = text.replace("[switch_type(ULONG), switch_is(vt)]", f"[switch_type(ULONG), {union}]")
    methods = """
        [uuid(00000000-0000-0000-0000-000000000001)] interface plain {
            void of_variant([in] VARIANT* value);
            void of_array([in] SAFEARRAY* value);
            void of_bstr([in] BSTR* value);
        }
    """
    return read_idl(text + methods, "plain.idl", load_idl)


def plain_operation(name: str) -> OperationDeclaration:
    found = plain_file().interfaces["plain"].operations
    return next(each for each in found if each is not None and each.name == name)


def from_plain(value: Any) -> Variant:
    """The VARIANT that a wireVARIANTStr is."""
    if value is None:
        return EMPTY
    vt, held = value.vt, value._varUnion.value
    kind = vt & 0x0FFF
    if vt & oa.VT_ARRAY:
        return Variant(vt, None if held is None else array_from_plain(held, kind))
    if vt & oa.VT_BYREF and kind == oa.VT_VARIANT:
        return Variant(vt, from_plain(held))
    return Variant(vt, _value(kind, held))


def _value(kind: int, held: Any) -> Any:
    make: dict[int, Callable[[Any], Any]] = {
        oa.VT_BOOL: bool,
        oa.VT_CY: lambda cy: Decimal(cy.int64) / 10_000,
        oa.VT_DECIMAL: _decimal,
        oa.VT_BSTR: bstr_from_plain,
    }
    return make[kind](held) if kind in make and held is not None else held


def _decimal(dec: Any) -> Decimal:
    number = dec.Hi32 << 64 | dec.Lo64
    return Decimal((dec.sign >> 7, tuple(map(int, str(number))), -dec.scale))


def bstr_from_plain(blob: Any) -> str | bytes | None:
    if blob.cBytes == 0xFFFFFFFF:
        return None
    octets = b"".join(each.to_bytes(2, "little") for each in blob.asData)[: blob.cBytes]
    return octets if len(octets) % 2 else octets.decode("utf-16-le")


def array_from_plain(held: Any, kind: int) -> SafeArray | None:
    """The array that a _wireSAFEARRAY is; None for a pointer to none."""
    if held is NULL:
        return None
    arm = held.uArrayStructs.value
    (data,) = (getattr(arm, n) for n in arm.__slots__ if n not in ("Size", "clSize", "iid"))
    data = data if data is not None else []
    bounds = [(b.cElements, b.lLbound) for b in reversed(held.rgsabound)]
    bounds = [] if len(bounds) == 1 and bounds[0][1] == 0 else bounds
    if kind == oa.VT_UI1:
        return SafeArray(kind, bytes(data), bounds)
    if kind == oa.VT_VARIANT:
        return SafeArray(kind, [from_plain(each) for each in data], bounds)
    if kind == oa.VT_BSTR:
        return SafeArray(kind, [bstr_from_plain(each) for each in data], bounds)
    if kind not in SCALARS:
        return SafeArray(kind, list(data), bounds)
    scalar = SCALARS[kind]
    size = 8 * scalar.size
    octets = b"".join((each & (1 << size) - 1).to_bytes(scalar.size, "little") for each in data)
    numbers = struct.unpack(f"<{len(data)}{scalar.code}", octets)
    return SafeArray(kind, [scalar.value(n) if scalar.value else n for n in numbers], bounds)
