"""Objects in a replay: the identifiers that a server chose for them, and those it chooses now.

An OXID, an OID and an IPID are learnt wherever a reference comes in an answer, and replaced
wherever a request names one: as octets of an OBJREF, in VARIANTs too, as a GUID, and as the object
that a call is for.
"""

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.conversation.interfaces import ACTIVATORS
from rpcqm.capture.replay.mapping import Mapping
from rpcqm.codec.automation.objref import (
    DualStringArray,
    ObjRef,
    ObjRefCustom,
    StdObjRef,
    unpack_objref,
)
from rpcqm.codec.automation.values import SafeArray, Variant
from rpcqm.codec.interface import Value
from rpcqm.codec.types.dcom import DUALSTRINGARRAY
from rpcqm.dcom.activation_properties import unpack_reply
from rpcqm.rpc.constants import AuthenticationLevel

OXID, OID, IPID, PING_SET = "object exporter", "object", "interface of an object", "ping set"
LOOKUP_TEXT = "lookup identifier as text"

_REFERENCE = b"MEOW"
_NUMBERS = {
    "pOxid": OXID,
    "Oxid": OXID,
    "oxid": OXID,
    "oid": OID,
    "AddToSet": OID,
    "DelFromSet": OID,
    "pSetId": PING_SET,
}
"""Members and parameters that hold one of these numbers, or an array of them."""
_DEEPEST = 12
"""How deep values are searched: VARIANTs in arrays in structures are half as deep."""


def is_of_objects(call: CapturedCall) -> bool:
    """Whether a call is for an object, or makes one, or resolves or pings objects."""
    interface = call.context.interface
    return interface is not None and (
        interface.declaration.is_object or interface.name in ACTIVATORS
    )


def is_served_unsigned(call: CapturedCall) -> bool:
    """Whether a call of an object was answered although nobody had signed it.

    The resolver's do not count: some of them are for everybody.
    """
    unsigned = call.conversation.level < AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY
    answered = call.ended != 0 and call.fault is None
    return unsigned and answered and call.interface_name != "IObjectExporter"


class ObjectMapping:
    """Captured and live identifiers of objects; `port` is where the live objects are called."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self.port = 0

    def object_of(self, call: CapturedCall) -> UUID | None:
        """The live object that a call is for."""
        if not call.object_uuid:
            return None
        found = UUID(bytes_le=bytes(call.object_uuid))
        live: UUID = self._mapping.live(IPID, found)
        return live

    def knows(self, call: CapturedCall) -> bool:
        """Whether a call is for no object, or for one that there is."""
        octets = call.object_uuid
        return not octets or self._mapping.knows(IPID, UUID(bytes_le=bytes(octets)))

    def request(self, value: Any, name: str = "") -> Any:
        """A request, or a part of it, with live identifiers."""
        if isinstance(value, bytes) and value[:4] == _REFERENCE:
            return self._reference(value)
        if isinstance(value, UUID):
            return self._mapping.live(IPID, value)
        if type(value) is int and name in _NUMBERS:
            return self._mapping.live(_NUMBERS[name], value)
        if isinstance(value, str):
            return self._mapping.live(LOOKUP_TEXT, value) if name == "LookupId" else value
        if isinstance(value, Variant):
            return replace(value, value=self.request(value.value, name))
        if isinstance(value, SafeArray) and isinstance(value.values, list):
            return replace(value, values=self.request(value.values, name))
        if isinstance(value, list):
            return [self.request(each, name) for each in value]
        if isinstance(value, Value):
            for each in value.__slots__:
                setattr(value, each, self.request(getattr(value, each, None), each))
        return value

    def _reference(self, octets: bytes) -> bytes:
        reference = _objref(octets)
        if reference is None or isinstance(reference, ObjRefCustom):
            return octets
        std, live = reference.std, self._mapping.live
        ipid: UUID = live(IPID, UUID(bytes_le=std.ipid))
        changed = replace(
            std, oxid=live(OXID, std.oxid), oid=live(OID, std.oid), ipid=ipid.bytes_le
        )
        return replace(reference, std=changed).pack()

    # Answers.

    def response(self, captured: object, live: object) -> None:
        """Learn from two answers to the same question."""
        self._learn(captured, live, "", _DEEPEST)

    def _learn(self, captured: object, live: object, name: str, depth: int) -> None:
        if not depth or type(captured) is not type(live):
            return
        if isinstance(captured, bytes) and isinstance(live, bytes):
            self._learn_octets(captured, live)
        elif isinstance(captured, UUID):
            self._mapping.learn(IPID, captured, live)
        elif isinstance(captured, int) and name in _NUMBERS:
            self._mapping.learn(_NUMBERS[name], captured, live)
        elif isinstance(captured, Variant | SafeArray):
            inner = "values" if isinstance(captured, SafeArray) else "value"
            self._learn(getattr(captured, inner), getattr(live, inner), name, depth - 1)
            if isinstance(captured, Variant) and name.endswith("LookupId"):
                self._mapping.learn(LOOKUP_TEXT, captured.value, getattr(live, "value", None))
        elif isinstance(captured, list) and isinstance(live, list):
            for one, other in zip(captured, live, strict=False):
                self._learn(one, other, name, depth - 1)
        elif isinstance(captured, Value):
            self._learn_members(captured, live, depth)

    def _learn_members(self, captured: Value, live: object, depth: int) -> None:
        if isinstance(live, DUALSTRINGARRAY):
            self.port = _port(live) or self.port
        for each in captured.__slots__:
            pair = getattr(captured, each, None), getattr(live, each, None)
            self._learn(*pair, each, depth - 1)

    def _learn_octets(self, captured: bytes, live: bytes) -> None:
        one, other = _objref(captured), _objref(live)
        if isinstance(one, ObjRefCustom) or isinstance(other, ObjRefCustom):
            for pair in zip(_activated(captured), _activated(live), strict=False):
                self._learn(*pair, "", _DEEPEST)
        elif one is not None and other is not None:
            self._learn_reference(one.std, other.std)

    def _learn_reference(self, captured: StdObjRef, live: StdObjRef) -> None:
        learn = self._mapping.learn
        learn(OXID, captured.oxid, live.oxid)
        learn(OID, captured.oid, live.oid)
        learn(IPID, UUID(bytes_le=captured.ipid), UUID(bytes_le=live.ipid))


def reference_fields(octets: bytes, path: str) -> Iterator[tuple[str, object]]:
    """The parts that two references must share, each with its path; empty for another value."""
    reference = _objref(octets)
    if isinstance(reference, ObjRefCustom):
        for number, part in enumerate(_activated(octets)):
            yield f"{path}.#{number}", part
    elif reference is not None:
        yield f"{path}.iid", str(reference.iid)
        std = reference.std
        yield f"{path}.std.cPublicRefs", std.public_refs
        yield f"{path}.std.oxid", std.oxid
        yield f"{path}.std.oid", std.oid
        yield f"{path}.std.ipid", UUID(bytes_le=std.ipid)


def is_reference(value: object) -> bool:
    return isinstance(value, bytes) and value[:4] == _REFERENCE


def _objref(octets: bytes) -> ObjRef | None:
    try:
        return unpack_objref(octets)
    except DecodeError:
        # Octets that only begin like a reference are compared as they are.
        return None


def _activated(octets: bytes) -> tuple[Value, ...]:
    """The results in an activator's answer."""
    try:
        return unpack_reply(octets)
    except DecodeError:
        # Another custom reference: nothing of it is known.
        return ()


def _port(array: DUALSTRINGARRAY) -> int:
    """The first port that an exporter's bindings name; 0 for those of a resolver."""
    octets = struct.pack(f"<{len(array.aStringArray)}H", *array.aStringArray)
    for binding in DualStringArray.of_entries(octets, array.wSecurityOffset).strings:
        port = binding.address.partition("[")[2].removesuffix("]")
        if port.isdigit():
            return int(port)
    return 0
