"""The short way of reads of properties says what the codecs of the IDL say."""

from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from rpcqm.codec.automation.values import EMPTY, MISSING, SafeArray, Variant
from rpcqm.codec.interface import TransferSyntax, Value, load
from rpcqm.codec.types.dcom import COMVERSION, ORPC_EXTENT_ARRAY, ORPCTHIS
from rpcqm.codec.types.oaut import DISPPARAMS
from rpcqm.dcom.orpc_values import NO_EXCEPTION, THAT
from rpcqm.fast.doors.com import PlainInvoke, decode_invoke, encode_invoke

INVOKE = load("oaut.IDispatch").operation("Invoke")
NIL = UUID(int=0)
NDR = TransferSyntax.NDR


def never(*_: object) -> Any:
    raise AssertionError("the codecs are not asked")


def stub(minor: int = 7, extensions: Any = None, flags: int = 0, **fields: object) -> bytes:
    version = COMVERSION(MajorVersion=5, MinorVersion=minor)
    this = ORPCTHIS(version=version, flags=flags, cid=uuid4(), extensions=extensions)
    known: dict[str, Any] = {
        "dispIdMember": -4,
        "riid": NIL,
        "lcid": 0x409,
        "dwFlags": 0x30002,
        "pDispParams": DISPPARAMS(rgvarg=None, rgdispidNamedArgs=None, cArgs=0, cNamedArgs=0),
        "cVarRef": 0,
        "rgVarRefIdx": [],
        "rgVarRef": [],
    }
    return INVOKE.encode_request(NDR, INVOKE.request_class(orpcthis=this, **known | fields))


def test_a_read_of_a_property_is_what_the_codecs_read() -> None:
    octets = stub() + b"trailing"
    short: Any = decode_invoke(never, octets)
    assert isinstance(short, PlainInvoke)
    known: Any = INVOKE.decode_request(NDR, octets)
    for name in INVOKE.request_class.__slots__:
        if name not in ("orpcthis", "rgVarRefIdx", "rgVarRef"):
            assert getattr(short, name) == getattr(known, name), name
    assert list(short.rgVarRefIdx) == list(known.rgVarRefIdx) == []
    assert list(short.rgVarRef) == list(known.rgVarRef) == []


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(stub(minor=8), id="a later version"),
        pytest.param(stub(flags=1), id="flags"),
        pytest.param(stub(extensions=ORPC_EXTENT_ARRAY(reserved=0, extent=None)), id="extensions"),
        pytest.param(stub(riid=UUID(int=1)), id="riid"),
        pytest.param(
            stub(
                pDispParams=DISPPARAMS(
                    rgvarg=[MISSING], rgdispidNamedArgs=None, cArgs=1, cNamedArgs=0
                )
            ),
            id="an argument",
        ),
        pytest.param(stub()[:-1], id="cut off"),
        pytest.param(stub()[:-4] + b"\1\0\0\0", id="references"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_everything_else_is_read_by_the_codecs(octets: bytes) -> None:
    class Read(Value):
        __slots__ = ()

    read = Read()
    assert decode_invoke(lambda given: read if given is octets else never(), octets) is read


def response(**fields: object) -> Any:
    known: dict[str, object] = {
        "orpcthat": THAT,
        "pVarResult": EMPTY,
        "pExcepInfo": NO_EXCEPTION,
        "pArgErr": 0,
        "rgVarRef": [],
        "result": 0,
    }
    return INVOKE.response_class(**known | fields)


@pytest.mark.parametrize(
    "value",
    [
        EMPTY,
        None,
        Variant(3, -5),
        Variant(17, 200),
        Variant(11, True),
        Variant(7, 1.5),
        Variant(20, 1 << 40),
        Variant(6, Decimal("1.5")),
        Variant(14, Decimal("1.5")),
        Variant(8, "text"),
        Variant(8, b"odd"),
        Variant(8, None),
        Variant(9, b"an OBJREF"),
        Variant(9, None),
        Variant(0x2011, SafeArray(0x11, bytes(5))),
        Variant(0x200C, SafeArray(12, [Variant(8, "x"), EMPTY, Variant(3, 1)])),
    ],
)
def test_a_result_is_written_as_by_the_codecs(value: Variant | None) -> None:
    made = response(pVarResult=value)
    assert encode_invoke(never, made) == INVOKE.encode_response(NDR, made)


@pytest.mark.parametrize(
    "fields",
    [
        {"result": 0x80020009},
        {"pExcepInfo": None},
        {"rgVarRef": [EMPTY]},
        {"pArgErr": 1},
        {"orpcthat": None},
    ],
)
def test_what_is_more_than_a_result_is_written_by_the_codecs(fields: dict[str, object]) -> None:
    assert encode_invoke(lambda _: b"the codecs", response(**fields)) == b"the codecs"
