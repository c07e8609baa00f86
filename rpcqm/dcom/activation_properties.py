"""The properties of activations, requested and returned: the blobs of [MS-DCOM] 2.2.22.

A blob is a header and properties, each serialized by itself ([MS-RPCE] 2.2.6.1), in a custom
OBJREF.
"""

import struct
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.codec.automation.objref import ObjRefCustom, unpack_objref
from rpcqm.codec.interface import Value
from rpcqm.codec.pickling import body_of, serialized
from rpcqm.codec.types.dcom import (
    ActivationContextInfoData,
    CustomHeader,
    InstanceInfoData,
    InstantiationInfoData,
    PropsOutInfo,
    ScmReplyInfoData,
    ScmRequestInfoData,
    SecurityInfoData,
)


def _well_known(number: int) -> UUID:
    return UUID(f"{number:08x}-0000-0000-c000-000000000046")


IID_ACTIVATION_PROPERTIES_OUT = _well_known(0x1A3)
CLSID_ACTIVATION_PROPERTIES_IN = _well_known(0x338)
CLSID_ACTIVATION_PROPERTIES_OUT = _well_known(0x339)

INSTANTIATION_INFO = _well_known(0x1AB)
ACTIVATION_CONTEXT_INFO = _well_known(0x1A5)
INSTANCE_INFO = _well_known(0x1AD)
SCM_REQUEST_INFO = _well_known(0x1AA)
SERVER_LOCATION_INFO = _well_known(0x1A4)
SECURITY_INFO = _well_known(0x1A6)
SPECIAL_SYSTEM_PROPERTIES = _well_known(0x1B9)
SCM_REPLY_INFO = _well_known(0x1B6)
PROPS_OUT_INFO = CLSID_ACTIVATION_PROPERTIES_OUT

_KNOWN = {
    INSTANTIATION_INFO: "InstantiationInfoData",
    ACTIVATION_CONTEXT_INFO: "ActivationContextInfoData",
    INSTANCE_INFO: "InstanceInfoData",
    SCM_REQUEST_INFO: "ScmRequestInfoData",
    SCM_REPLY_INFO: "ScmReplyInfoData",
    PROPS_OUT_INFO: "PropsOutInfo",
}

_BLOB = struct.Struct("<II")
_SPECIAL_FLAGS_AT = 44
"""The offset of dwFlags in either form of SpecialPropertiesData."""

USE_CONSOLE_SESSION = 1
ANY_SESSION = 0xFFFFFFFF
NIL = UUID(int=0)


@dataclass(slots=True)
class ActivationRequest:
    """The request of RemoteGetClassObject or RemoteCreateInstance."""

    instantiation: InstantiationInfoData
    scm: ScmRequestInfoData
    context: ActivationContextInfoData | None = None
    instance: InstanceInfoData | None = None
    session: int = ANY_SESSION
    special_flags: int = 0
    server_name: str = ""
    """The client's name for this computer; "" if it gives none."""


def unpack_request(objref: bytes) -> ActivationRequest:
    """Read ActivationPropertiesIn; raises DecodeError. Unknown properties are ignored."""
    properties = _unpack_blob(_custom(objref, CLSID_ACTIVATION_PROPERTIES_IN))
    found = {clsid: _unpack(name, octets) for clsid, name, octets in _named(properties)}
    try:
        request = ActivationRequest(found[INSTANTIATION_INFO], found[SCM_REQUEST_INFO])
    except KeyError as error:
        raise DecodeError(f"an activation without the property {error.args[0]}") from error
    request.context = found.get(ACTIVATION_CONTEXT_INFO)
    request.instance = found.get(INSTANCE_INFO)
    request.server_name = _server_name(dict(properties).get(SECURITY_INFO))
    special = dict(properties).get(SPECIAL_SYSTEM_PROPERTIES)
    if special is not None:
        request.session, request.special_flags = _unpack_special(special)
    return request


def _named(properties: list[tuple[UUID, bytes]]) -> list[tuple[UUID, str, bytes]]:
    return [(clsid, _KNOWN[clsid], octets) for clsid, octets in properties if clsid in _KNOWN]


def _server_name(security: bytes | None) -> str:
    """The name in a SecurityInfoData; "" if it is unreadable: no decision depends on it."""
    if security is None:
        return ""
    try:
        found: SecurityInfoData = _unpack("SecurityInfoData", security)
    except DecodeError:
        return ""
    server = found.pServerInfo
    return "" if server is None else server.pwszName or ""


def _unpack_special(octets: bytes) -> tuple[int, int]:
    """Session and flags of either form of SpecialPropertiesData, which differ behind them."""
    body, big_endian = body_of(octets)
    if len(body) < _SPECIAL_FLAGS_AT + 4:
        raise DecodeError("SpecialPropertiesData is cut off")
    order = ">" if big_endian else "<"
    (session,) = struct.unpack_from(order + "I", body)
    (flags,) = struct.unpack_from(order + "I", body, _SPECIAL_FLAGS_AT)
    return session, flags


def pack_reply(outcome: PropsOutInfo, reply: ScmReplyInfoData) -> bytes:
    """ActivationPropertiesOut; impacket takes the first property for PropsOutInfo."""
    blob = pack_blob([(PROPS_OUT_INFO, outcome), (SCM_REPLY_INFO, reply)])
    return ObjRefCustom(IID_ACTIVATION_PROPERTIES_OUT, CLSID_ACTIVATION_PROPERTIES_OUT, blob).pack()


def unpack_reply(objref: bytes) -> tuple[PropsOutInfo, ScmReplyInfoData]:
    """Read ActivationPropertiesOut; raises DecodeError."""
    properties = dict(_unpack_blob(_custom(objref, CLSID_ACTIVATION_PROPERTIES_OUT)))
    try:
        return (
            _unpack("PropsOutInfo", properties[PROPS_OUT_INFO]),
            _unpack("ScmReplyInfoData", properties[SCM_REPLY_INFO]),
        )
    except KeyError as error:
        raise DecodeError(f"an activation without the property {error.args[0]}") from error


def _custom(objref: bytes, clsid: UUID) -> bytes:
    reference = unpack_objref(objref)
    if not isinstance(reference, ObjRefCustom) or reference.clsid != clsid:
        raise DecodeError("no activation properties")
    return reference.data


# Blobs.


def _unpack_blob(octets: bytes) -> list[tuple[UUID, bytes]]:
    """The properties of a blob, still serialized."""
    if len(octets) < _BLOB.size:
        raise DecodeError("an activation blob without its head")
    size, _ = _BLOB.unpack_from(octets)
    octets = octets[_BLOB.size : _BLOB.size + size]
    header: CustomHeader = _unpack("CustomHeader", octets)
    classes, sizes = header.pclsid or [], header.pSizes or []
    offset, found = header.headerSize, []
    for clsid, length in zip(classes, sizes, strict=True):
        if offset + length > len(octets):
            raise DecodeError("a property of an activation is cut off")
        found.append((clsid, octets[offset : offset + length]))
        offset += length
    return found


def pack_blob(properties: list[tuple[UUID, Value]]) -> bytes:
    """A blob of properties."""
    packed = [_pack(value) for _, value in properties]
    sizes = [len(octets) for octets in packed]
    header = CustomHeader(
        totalSize=0,
        headerSize=0,
        dwReserved=0,
        destCtx=2,  # what Windows sends for another machine (MSHCTX_DIFFERENTMACHINE)
        cIfs=len(packed),
        classInfoClsid=NIL,
        pclsid=[clsid for clsid, _ in properties],
        pSizes=sizes,
        pdwReserved=None,
    )
    header.headerSize = len(_pack(header))
    header.totalSize = header.headerSize + sum(sizes)
    return _BLOB.pack(header.totalSize, 0) + _pack(header) + b"".join(packed)


def _pack(value: Value) -> bytes:
    return serialized("dcom", type(value).__name__).encode(value)


def _unpack(name: str, octets: bytes) -> Any:
    """The structure of that name; raises DecodeError."""
    return serialized("dcom", name).decode(octets)
