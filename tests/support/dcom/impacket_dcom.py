"""impacket's own classes of DCOM as a server would have to use them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from impacket.dcerpc.v5 import dcomrt
from impacket.dcerpc.v5.dtypes import NULL

from rpcqm.dcom.activation_properties import (
    CLSID_ACTIVATION_PROPERTIES_OUT,
    IID_ACTIVATION_PROPERTIES_OUT,
    PROPS_OUT_INFO,
    SCM_REPLY_INFO,
)


def _serialized(value: Any) -> bytes:
    """A structure with its referents, filled up to eights."""
    octets: bytes = value.getData() + value.getDataReferents()
    return octets + bytes(-len(octets) % 8)


def _of(kind: Any, data: object) -> Any:
    made = kind()
    made["Data"] = data
    return made


def props_out(iid: UUID, objref: bytes) -> Any:
    """PropsOutInfo of one interface."""
    value = dcomrt.PropsOutInfo()
    value["cIfs"] = 1
    value["piid"].append(_of(dcomrt.IID, iid.bytes_le))
    value["phresults"].append(_of(dcomrt.HRESULT, 0))
    value["ppIntfData"].append(_pointer(objref))
    return value


def _pointer(objref: bytes) -> Any:
    pointer = dcomrt.PMInterfacePointer()
    pointer["ulCntData"] = len(objref)
    pointer["abData"] = list(objref)
    return pointer


def scm_reply(oxid: int, ipid: UUID, bindings: Sequence[int], security: int) -> Any:
    """ScmReplyInfoData with an exporter's bindings."""
    value = dcomrt.ScmReplyInfoData()
    value["pdwReserved"] = NULL
    reply = value["remoteReply"]
    reply["Oxid"] = oxid
    reply["pdsaOxidBindings"]["wNumEntries"] = len(bindings)
    reply["pdsaOxidBindings"]["wSecurityOffset"] = security
    reply["pdsaOxidBindings"]["aStringArray"] = list(bindings)
    reply["ipidRemUnknown"] = ipid.bytes_le
    reply["authnHint"] = 6
    reply["serverVersion"]["MajorVersion"] = 5
    reply["serverVersion"]["MinorVersion"] = 7
    return value


def create_instance_reply(outcome: Any, reply: Any) -> bytes:
    """The whole stub of RemoteCreateInstance's response."""
    properties = [_serialized(outcome), _serialized(reply)]
    header = dcomrt.CustomHeader()
    header["destCtx"] = 2
    header["pdwReserved"] = NULL
    for clsid, octets in zip((PROPS_OUT_INFO, SCM_REPLY_INFO), properties, strict=True):
        header["pclsid"].append(_of(dcomrt.CLSID, clsid.bytes_le))
        header["pSizes"].append(_of(dcomrt.DWORD, len(octets)))
    blob = dcomrt.ACTIVATION_BLOB()
    blob["CustomHeader"] = header
    blob["Property"] = b"".join(properties)
    custom = dcomrt.OBJREF_CUSTOM()
    custom["iid"] = IID_ACTIVATION_PROPERTIES_OUT.bytes_le
    custom["clsid"] = CLSID_ACTIVATION_PROPERTIES_OUT.bytes_le
    custom["pObjectData"] = blob.getData()
    custom["ObjectReferenceSize"] = len(custom["pObjectData"]) + 8
    response = dcomrt.RemoteCreateInstanceResponse()
    response["ORPCthat"]["flags"] = 0
    response["ORPCthat"]["extensions"] = NULL
    octets = custom.getData()
    response["ppActProperties"]["ulCntData"] = len(octets)
    response["ppActProperties"]["abData"] = list(octets)
    response["ErrorCode"] = 0
    stub: bytes = response.getData()
    return stub
