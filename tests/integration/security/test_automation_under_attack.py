"""Automation values under attack: stubs that claim more than they hold, or hold what nobody does.

Each is answered with the specified code and logged in one line; the connection and others go on.
"""

import struct
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from rpcqm.base.errors import FaultStatus, HResult, RpcFault
from rpcqm.codec.automation.values import EMPTY, MISSING, SafeArray, Variant
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.types.oaut import DISPPARAMS
from rpcqm.codec.types.oautvalues import (
    DISPATCH_METHOD,
    DISPATCH_PROPERTYGET,
    VT_ARRAY,
    VT_BSTR,
    VT_BYREF,
    VT_I4,
    VT_UI1,
    VT_VARIANT,
)
from rpcqm.testing import PrivateQueueManager
from tests.support.dcom.clsids import MSMQ_MESSAGE
from tests.support.dcom.dcom_client import DcomClient, Reference, orpcthis, served

NEWEST = "IMSMQMessage4"
MESSAGE = load(f"mqac.{NEWEST}")
DISPATCH = load("oaut.IDispatch")
NULL = UUID(int=0)
REFUSED = '"event": "a call was refused"'
MOST = 0xFFFFFFFF


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateQueueManager]:
    with served() as running:
        yield running


@pytest.fixture(scope="module")
def com(server: PrivateQueueManager) -> Iterator[DcomClient]:
    with DcomClient(server.endpoint("epm")) as client:
        yield client


@pytest.fixture(scope="module")
def message(com: DcomClient) -> Reference:
    return com.create(MSMQ_MESSAGE, NEWEST)


@pytest.fixture(autouse=True)
def others(server: PrivateQueueManager) -> Iterator[None]:
    """Somebody else's object, which lives on; a test writes a line into the log at most."""
    with DcomClient(server.endpoint("epm")) as other:
        theirs = other.create(MSMQ_MESSAGE, NEWEST)
        before = server.log_path.read_text().count(REFUSED)
        yield
        assert other.call(theirs, "get_Priority") == 3
        assert server.log_path.read_text().count(REFUSED) <= before + 1
        other.release(theirs)


def raw(com: DcomClient, message: Reference, name: str, stub: bytes) -> bytes:
    """The stub of a response; RpcFault for a fault."""
    interface = DISPATCH if name == "Invoke" else MESSAGE

    async def ask() -> bytes:
        assert com.exporter is not None
        place = "oaut.IDispatch" if name == "Invoke" else f"mqac.{NEWEST}"
        binding = await com._binding(com.exporter, place)
        opnum, ipid = interface.operation(name).opnum, UUID(bytes_le=message.ipid)
        pending = binding.client.start(binding.context_id, opnum, stub, ipid)
        octets: bytes = await pending.result()
        return octets

    return com._loop.run(ask())


def encoded(name: str, **fields: object) -> bytearray:
    """A request in NDR."""
    operation = (DISPATCH if name == "Invoke" else MESSAGE).operation(name)
    request = operation.request_class(orpcthis=orpcthis(), **fields)
    return bytearray(operation.encode_request(TransferSyntax.NDR, request))


def refused(com: DcomClient, message: Reference, name: str, stub: bytes | bytearray) -> None:
    """The stub is none; and the same connection goes on."""
    with pytest.raises(RpcFault) as error:
        raw(com, message, name, bytes(stub))
    assert error.value.status is FaultStatus.RPC_X_BAD_STUB_DATA
    assert com.call(message, "get_Priority") == 3


@pytest.mark.parametrize("by_name", [False, True])
def test_a_refusal_is_logged_in_one_line(
    server: PrivateQueueManager, com: DcomClient, message: Reference, by_name: bool
) -> None:
    before = server.log_path.read_text().count(REFUSED)
    if by_name:
        response = invoked(com, message, parameters(2), DISPATCH_PROPERTYGET)
        assert response.result == HResult.DISP_E_BADPARAMCOUNT
    else:
        refused(com, message, "put_Body", encoded("put_Body", varBody=EMPTY)[:-8])
    lines = server.log_path.read_text().splitlines()
    written = [line for line in lines if REFUSED in line]
    assert len(written) == before + 1
    status = "DISP_E_BADPARAMCOUNT" if by_name else "RPC_X_BAD_STUB_DATA"
    assert f'"status": "{status}"' in written[-1]


# VARIANTs.


@pytest.mark.parametrize("deep", [17, 100])
def test_variants_that_refer_to_variants_end_somewhere(
    com: DcomClient, message: Reference, deep: int
) -> None:
    nested = Variant(VT_I4, 1)
    for _ in range(deep):
        nested = Variant(VT_BYREF | VT_VARIANT, nested)
    refused(com, message, "put_Body", encoded("put_Body", varBody=nested))


def test_a_megabyte_of_nested_variants_costs_nothing(com: DcomClient, message: Reference) -> None:
    one = Variant(VT_BYREF | VT_VARIANT, Variant(VT_BYREF | VT_VARIANT, Variant(VT_I4, 1)))
    stub = encoded("put_Body", varBody=one)
    step = stub[40:72]
    refused(com, message, "put_Body", stub[:40] + step * 32_768 + stub[104:])


def test_arrays_of_arrays_end_somewhere(com: DcomClient, message: Reference) -> None:
    nested: Variant = Variant(VT_I4, 1)
    for _ in range(17):
        nested = Variant(VT_ARRAY | VT_VARIANT, SafeArray(VT_VARIANT, [nested]))
    refused(com, message, "put_Body", encoded("put_Body", varBody=nested))


@pytest.mark.parametrize("vt", [0x0F, 0x24, 0x1000, 0x400C | VT_ARRAY | 0x0FFF, 0xFFFF])
def test_a_type_that_there_is_not_is_no_variant(
    com: DcomClient, message: Reference, vt: int
) -> None:
    stub = encoded("put_Body", varBody=Variant(VT_I4, 1))
    struct.pack_into("<H", stub, 48, vt)
    struct.pack_into("<I", stub, 56, vt)
    refused(com, message, "put_Body", stub)


# SAFEARRAYs. In NDR the head begins at octet 68: the maximum count (0), dimensions (4), features
# (6), the size of an element (8), locks (12), the arm (16), Size (20), the pointer (24), the bounds
# (28), then the maximum count of the data.

ARRAYS = {
    "octets": Variant(VT_ARRAY | VT_UI1, SafeArray(VT_UI1, bytes(8))),
    "numbers": Variant(VT_ARRAY | VT_I4, SafeArray(VT_I4, [1, 2])),
    "texts": Variant(VT_ARRAY | VT_BSTR, SafeArray(VT_BSTR, ["a", "b"])),
    "variants": Variant(VT_ARRAY | VT_VARIANT, SafeArray(VT_VARIANT, [EMPTY, EMPTY])),
}
HEAD = 68


@pytest.mark.parametrize("array", ARRAYS.values(), ids=list(ARRAYS))
def test_an_array_that_claims_all_elements_that_can_be_named_is_refused(
    com: DcomClient, message: Reference, array: Variant
) -> None:
    stub = encoded("put_Body", varBody=array)
    count = len(array.value.values)  # type: ignore[attr-defined]
    assert struct.unpack_from("<I", stub, HEAD + 20)[0] == count
    assert struct.unpack_from("<I", stub, HEAD + 28)[0] == count
    assert struct.unpack_from("<I", stub, HEAD + 36)[0] == count
    for place in (20, 28, 36):
        struct.pack_into("<I", stub, HEAD + place, MOST)
    refused(com, message, "put_Body", stub)


def test_dimensions_that_make_more_than_there_can_be_are_refused(
    com: DcomClient, message: Reference
) -> None:
    square = SafeArray(VT_UI1, bytes(4), [(2, 0), (2, 0)])
    stub = encoded("put_Body", varBody=Variant(VT_ARRAY | VT_UI1, square))
    for place in (28, 36):
        struct.pack_into("<I", stub, HEAD + place, 0x10000)  # their product is 0 in 32 bits
    struct.pack_into("<I", stub, HEAD + 20, 0)
    struct.pack_into("<I", stub, HEAD + 44, 0)
    refused(com, message, "put_Body", stub)


def test_thousands_of_dimensions_are_refused(com: DcomClient, message: Reference) -> None:
    stub = encoded("put_Body", varBody=ARRAYS["octets"])
    head = bytearray(stub[:HEAD] + stub[HEAD : HEAD + 28] + struct.pack("<Ii", MOST, 0) * 0xFFFF)
    struct.pack_into("<IH", head, HEAD, 0xFFFF, 0xFFFF)
    struct.pack_into("<I", head, HEAD + 20, MOST)
    refused(com, message, "put_Body", head + struct.pack("<I", MOST) + bytes(64))


# BSTRs. In NDR a label begins behind the pointer at octet 32: the maximum count (36), cBytes (40),
# clSize (44), and the text (48).


def labelled(octets: bytes, *, size: int | None = None, units: int | None = None) -> bytes:
    """put_Label with any octets."""
    count = -(-len(octets) // 2) if units is None else units
    cbytes = len(octets) if size is None else size
    stub = encoded("put_Label", bstrLabel="ab")
    return bytes(stub[:36]) + struct.pack("<III", count, cbytes, count) + octets + b"\0"


def test_a_text_of_an_odd_number_of_octets_is_no_label(com: DcomClient, message: Reference) -> None:
    octets = raw(com, message, "put_Label", labelled(b"abcde"))
    (status,) = struct.unpack("<I", octets[-4:])
    assert status == HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE
    assert com.call(message, "get_Label") == ""


@pytest.mark.parametrize(
    "stub",
    [
        pytest.param(labelled(b"abcd", units=0x7FFFFFFF, size=0xFFFFFFFE), id="all there can be"),
        pytest.param(labelled(b"abcd", size=9), id="more octets than units"),
        pytest.param(labelled(b"abcd", units=1), id="fewer units than octets"),
        pytest.param(labelled(b"abcd", units=0x80000002), id="units whose octets wrap around"),
        pytest.param(labelled(b"abcd", size=0xFFFFFFFF), id="null with a text"),
    ],
)
def test_counts_of_a_text_that_contradict_each_other_are_refused(
    com: DcomClient, message: Reference, stub: bytes
) -> None:
    refused(com, message, "put_Label", stub)


# Invoke.


def invoked(
    com: DcomClient, message: Reference, parameters: DISPPARAMS, flags: int, *references: Variant
) -> Any:
    script = Reference("IDispatch", message.std)
    (dispid,) = com.call(script, "GetIDsOfNames", NULL, ["Priority"], 1, 0)
    indices = list(range(len(references)))
    arguments = (dispid, NULL, 0, flags, parameters, len(references), indices, list(references))
    return com.response(script, "Invoke", *arguments)


def parameters(count: int, *, named: int = 0, value: Variant = MISSING) -> DISPPARAMS:
    return DISPPARAMS(
        rgvarg=[value] * count,
        rgdispidNamedArgs=list(range(named)) or None,
        cArgs=count,
        cNamedArgs=named,
    )


@pytest.mark.parametrize("named", [0, 1000])
def test_a_thousand_arguments_are_too_many(com: DcomClient, message: Reference, named: int) -> None:
    response = invoked(com, message, parameters(1000, named=named), DISPATCH_PROPERTYGET)
    assert response.result == HResult.DISP_E_BADPARAMCOUNT
    assert response.pVarResult == EMPTY


def test_a_thousand_references_are_too_many(com: DcomClient, message: Reference) -> None:
    referred = [Variant(VT_BYREF | VT_I4, 1)] * 1000
    given = parameters(1000, value=EMPTY)
    response = invoked(com, message, given, DISPATCH_METHOD | DISPATCH_PROPERTYGET, *referred)
    assert response.result == HResult.DISP_E_BADPARAMCOUNT
    assert response.rgVarRef == referred


@pytest.mark.parametrize(("place", "count"), [(68, MOST), (68, 1001), (76, MOST)])
def test_counts_of_arguments_that_lie_are_refused(
    com: DcomClient, message: Reference, place: int, count: int
) -> None:
    stub = encoded(
        "Invoke",
        dispIdMember=1,
        riid=NULL,
        lcid=0,
        dwFlags=DISPATCH_METHOD,
        pDispParams=parameters(1000),
        cVarRef=0,
        rgVarRefIdx=[],
        rgVarRef=[],
    )
    assert struct.unpack_from("<III", stub, 68) == (1000, 0, 1000)
    struct.pack_into("<I", stub, place, count)
    refused(com, message, "Invoke", stub)
