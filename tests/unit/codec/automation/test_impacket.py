"""impacket's classes of DCOM and automation read what we write and write what we read.

Where they are right: what they have not or lay out wrongly (arrays behind pointers, BYREF, texts
outside of the BMP) is proved by the structures of the IDL (test_variants).
"""

from typing import Any
from uuid import UUID

import pytest
from impacket.dcerpc.v5 import dcomrt
from impacket.dcerpc.v5.dcom import oaut
from impacket.dcerpc.v5.dtypes import NULL

from rpcqm.codec.automation.values import Variant
from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.types import oautvalues as oa
from rpcqm.codec.types.dcom import (
    COMVERSION,
    DUALSTRINGARRAY,
    ORPC_EXTENT,
    ORPC_EXTENT_ARRAY,
    ORPCTHAT,
    ORPCTHIS,
    REMINTERFACEREF,
    PropsOutInfo,
    RemoteCreateInstanceResponse,
    ScmReplyInfoData,
    customREMOTE_REPLY_SCM_INFO,
)
from rpcqm.codec.types.oaut import DISPPARAMS
from rpcqm.dcom.activation_properties import pack_reply, unpack_reply
from tests.support.dcom.impacket_dcom import create_instance_reply, props_out, scm_reply

NDR = TransferSyntax.NDR
IID = UUID("eba96b21-2168-11d3-898c-00e02c074f6b")
IPID = UUID("00001400-0dd4-0000-a5a5-9d6d2b4b0a11")
CAUSALITY = UUID("9e9bb3c0-1f21-4b5a-8d70-0fb6c1a3d9b1")
VERSION = COMVERSION(MajorVersion=5, MinorVersion=7)
THIS = ORPCTHIS(version=VERSION, flags=0, reserved1=0, cid=CAUSALITY, extensions=None)
THAT = ORPCTHAT(flags=0, extensions=None)
BINDINGS = [7, *map(ord, "192.0.2.7[5000]"), 0, 0, 10, 0xFFFF, 0, 0]
OBJREF = bytes(range(93))


def fill_this(call: Any) -> Any:
    this = call["ORPCthis"]
    this["version"]["MajorVersion"], this["version"]["MinorVersion"] = 5, 7
    this["cid"], this["extensions"], this["flags"] = CAUSALITY.bytes_le, NULL, 0
    return call


def ours_and_theirs(file: str, operation: str, call: Any, value: Any, response: bool) -> None:
    """Each reads what the other writes."""
    codec = load(file).operation(operation).codec(NDR)
    side = codec.response if response else codec.request
    theirs = call.getData()
    assert side.decode(theirs) == value
    ours = side.encode(value)
    assert len(ours) == len(theirs)
    assert type(call)(ours).getData()[:16] == theirs[:16]


def test_references_are_counted_alike() -> None:
    call = fill_this(dcomrt.RemAddRef())
    call["cInterfaceRefs"] = 1
    reference = dcomrt.REMINTERFACEREF()
    reference["ipid"], reference["cPublicRefs"], reference["cPrivateRefs"] = IPID.bytes_le, 5, 0
    call["InterfaceRefs"].append(reference)
    kind = load("dcom.IRemUnknown").operation("RemAddRef").request_class
    held = REMINTERFACEREF(ipid=IPID, cPublicRefs=5, cPrivateRefs=0)
    value = kind(orpcthis=THIS, cInterfaceRefs=1, InterfaceRefs=[held])
    ours_and_theirs("dcom.IRemUnknown", "RemAddRef", call, value, response=False)


def test_interfaces_are_asked_for_alike() -> None:
    call = fill_this(dcomrt.RemQueryInterface())
    call["ripid"], call["cRefs"], call["cIids"] = IPID.bytes_le, 5, 1
    iid = dcomrt.IID()
    iid["Data"] = IID.bytes_le
    call["iids"].append(iid)
    kind = load("dcom.IRemUnknown").operation("RemQueryInterface").request_class
    value = kind(orpcthis=THIS, ripid=IPID, cRefs=5, cIids=1, iids=[IID])
    ours_and_theirs("dcom.IRemUnknown", "RemQueryInterface", call, value, response=False)


def test_pings_are_alike() -> None:
    call = dcomrt.ComplexPing()
    call["pSetId"], call["SequenceNum"] = 1 << 60, 7
    call["cAddToSet"], call["cDelFromSet"] = 2, 0
    for number in (5, 6):
        oid = dcomrt.OID()
        oid["Data"] = number
        call["AddToSet"].append(oid)
    call["DelFromSet"] = NULL
    kind = load("dcom.IObjectExporter").operation("ComplexPing").request_class
    value = kind(
        pSetId=1 << 60, SequenceNum=7, cAddToSet=2, cDelFromSet=0, AddToSet=[5, 6], DelFromSet=None
    )
    ours_and_theirs("dcom.IObjectExporter", "ComplexPing", call, value, response=False)


def test_a_resolved_exporter_is_read() -> None:
    operation = load("dcom.IObjectExporter").operation("ResolveOxid2")
    bindings = DUALSTRINGARRAY(wNumEntries=len(BINDINGS), wSecurityOffset=17, aStringArray=BINDINGS)
    value = operation.response_class(
        ppdsaOxidBindings=bindings,
        pipidRemUnknown=IPID,
        pAuthnHint=6,
        pComVersion=VERSION,
        result=0,
    )
    read = dcomrt.ResolveOxid2Response(operation.encode_response(NDR, value))
    assert read["pipidRemUnknown"] == IPID.bytes_le
    assert read["ppdsaOxidBindings"]["aStringArray"] == BINDINGS
    assert (read["pAuthnHint"], read["pComVersion"]["MinorVersion"]) == (6, 7)


def test_the_properties_of_an_activation_are_alike() -> None:
    """The whole reply of RemoteCreateInstance, and both properties in it."""
    theirs = create_instance_reply(props_out(IID, OBJREF), scm_reply(1 << 40, IPID, BINDINGS, 17))
    bindings = DUALSTRINGARRAY(wNumEntries=len(BINDINGS), wSecurityOffset=17, aStringArray=BINDINGS)
    outcome = PropsOutInfo(cIfs=1, piid=[IID], phresults=[0], ppIntfData=[OBJREF])
    reply = customREMOTE_REPLY_SCM_INFO(
        Oxid=1 << 40,
        pdsaOxidBindings=bindings,
        ipidRemUnknown=IPID,
        authnHint=6,
        serverVersion=VERSION,
    )
    scm = ScmReplyInfoData(pdwReserved=None, remoteReply=reply)
    operation = load("dcom.IRemoteSCMActivator").operation("RemoteCreateInstance")
    response = RemoteCreateInstanceResponse(
        orpcthat=THAT, ppActProperties=pack_reply(outcome, scm), result=0
    )
    ours = operation.encode_response(NDR, response)
    assert len(ours) == len(theirs)
    assert unpack_reply(response.ppActProperties or b"") == (outcome, scm)
    assert unpack_reply(operation.decode_response(NDR, theirs).ppActProperties) == (outcome, scm)
    octets = b"".join(dcomrt.RemoteCreateInstanceResponse(ours)["ppActProperties"]["abData"])
    blob = dcomrt.ACTIVATION_BLOB(dcomrt.OBJREF_CUSTOM(octets)["pObjectData"])
    sizes = [each["Data"] for each in blob["CustomHeader"]["pSizes"]]
    assert sum(sizes) == len(blob["Property"])
    read, first = dcomrt.PropsOutInfo(), blob["Property"][: sizes[0]]
    read.fromStringReferents(first[read.fromString(first) :])
    assert b"".join(read["ppIntfData"][0]["abData"]) == OBJREF


# Automation.


def their_variant(vt: int, field: str, value: object) -> Any:
    variant = oaut.VARIANT()
    variant["clSize"] = 5
    variant["vt"] = vt
    variant["_varUnion"]["tag"] = vt
    variant["_varUnion"][field] = value
    return variant


def their_text(value: str) -> Any:
    variant = oaut.VARIANT()
    variant["clSize"], variant["vt"] = 5, oa.VT_BSTR
    variant["_varUnion"]["tag"] = oa.VT_BSTR
    variant["_varUnion"]["bstrVal"]["asData"] = value
    return variant


VARIANTS = [
    (oa.VT_I4, "lVal", 5),
    (oa.VT_I2, "iVal", 7),
    (oa.VT_UI4, "ulVal", 0xFFFFFFFE),
    (oa.VT_I8, "llVal", 1 << 40),
    (oa.VT_R8, "dblVal", 5.25),
    (oa.VT_DATE, "date", 45000.5),
]


@pytest.mark.parametrize(("vt", "field", "value"), VARIANTS)
def test_simple_variants_are_alike(vt: int, field: str, value: Any) -> None:
    their_call = fill_this(oaut.IDispatch_Invoke())
    _fill_invoke(their_call, [their_variant(vt, field, value)])
    assert _invoked(their_call).pDispParams.rgvarg == [Variant(vt, value)]


def _fill_invoke(call: Any, arguments: list[Any]) -> None:
    call["dispIdMember"], call["riid"], call["lcid"] = 3, bytes(16), 0x409
    call["dwFlags"] = oa.DISPATCH_METHOD
    parameters = call["pDispParams"]
    for each in arguments:
        parameters["rgvarg"].append(each)
    parameters["rgdispidNamedArgs"] = NULL
    parameters["cArgs"], parameters["cNamedArgs"] = len(arguments), 0
    call["cVarRef"] = 0


def _invoked(call: Any) -> Any:
    """The call as we read it."""
    octets = call.getData()
    return load("oaut.IDispatch").operation("Invoke").decode_request(NDR, octets)


def test_texts_and_several_arguments_are_alike() -> None:
    call = fill_this(oaut.IDispatch_Invoke())
    _fill_invoke(call, [their_text("wörds"), their_variant(oa.VT_I4, "lVal", 1)])
    read = _invoked(call)
    assert read.pDispParams == DISPPARAMS(
        rgvarg=[Variant(oa.VT_BSTR, "wörds"), Variant(oa.VT_I4, 1)],
        rgdispidNamedArgs=None,
        cArgs=2,
        cNamedArgs=0,
    )
    assert (read.dispIdMember, read.lcid, read.cVarRef) == (3, 0x409, 0)


@pytest.mark.parametrize(
    ("variant", "field"),
    [
        (Variant(oa.VT_I4, -5), "lVal"),
        (Variant(oa.VT_BOOL, True), "boolVal"),
        (Variant(oa.VT_R8, 0.5), "dblVal"),
    ],
    ids=lambda each: str(each),
)
def test_results_are_read(variant: Variant, field: str) -> None:
    result = _result(variant)
    assert (result["vt"], result["_varUnion"]["tag"]) == (variant.vt, variant.vt)
    read = result["_varUnion"][field]
    assert read == (0xFFFF if variant.value is True else variant.value)


def _result(variant: Variant) -> Any:
    """What impacket reads of a property's value in a message of ours."""
    operation = load("mqac.IMSMQMessage4").operation("get_Body")
    value = operation.response_class(orpcthat=THAT, pvarBody=variant, result=0)

    class Answer(dcomrt.DCOMANSWER):  # type: ignore[misc]
        structure = (("pvarBody", oaut.VARIANT), ("ErrorCode", dcomrt.error_status_t))

    return Answer(operation.encode_response(NDR, value))["pvarBody"]


def test_a_text_is_read() -> None:
    assert _result(Variant(oa.VT_BSTR, "hello"))["_varUnion"]["bstrVal"]["asData"] == "hello"


def test_extensions_are_read_and_written() -> None:
    """An array that is filled up to an even number; data that is filled up to eights."""
    extent = ORPC_EXTENT(id=IID, size=3, data=b"\1\2\3" + bytes(5))
    extents = ORPC_EXTENT_ARRAY(size=1, reserved=0, extent=[extent, None])
    this = ORPCTHIS(version=VERSION, flags=0, reserved1=0, cid=CAUSALITY, extensions=extents)
    operation = load("oaut.IDispatch").operation("GetTypeInfoCount")
    request = operation.request_class(orpcthis=this)
    octets = operation.encode_request(NDR, request)
    assert operation.decode_request(NDR, octets) == request
    read = dcomrt.RemRelease(octets + bytes(8))["ORPCthis"]["extensions"]
    assert (read["size"], read["extent"][0]["size"]) == (1, 3)
