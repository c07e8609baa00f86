"""impacket's classes for every method of an interface, made from its IDL.

    from rpcqm.codec.ndr.impacket_classes import impacket_module

    remote_read = impacket_module("remoteread")
    dce.bind(remote_read.MSRPC_UUID, transfer_syntax=...)
    request = remote_read.R_CreateCursor()
    request["phContext"] = handle
    response = dce.request(request)

A module has a class for each request (named as the method), for each response (with
"Response") and for each type; MSRPC_UUID; OPNUMS; DCERPCSessionError.  A method's own
return value is the field ErrorCode.  Text needs its terminator ("name\\0"), as everywhere in
impacket; an array of octets takes bytes; a null pointer is impacket's NULL.

impacket 0.13 departs from [C706] and [MS-RPCE] in a few places, which the classes here put
right: tests/unit/codec/test_impacket_departures.py shows each.
"""

import sys
from collections.abc import Callable
from types import ModuleType

from impacket.dcerpc.v5 import dtypes, ndr
from impacket.dcerpc.v5.enum import Enum
from impacket.dcerpc.v5.rpcrt import DCERPCException
from impacket.uuid import uuidtup_to_bin

from rpcqm.base.hresult import HResult
from rpcqm.codec.idl.nodes import Number
from rpcqm.codec.idl.tree import (
    Array,
    ContextHandleType,
    Enumeration,
    Float,
    Guid,
    Integer,
    InterfacePointer,
    OperationDeclaration,
    Pointer,
    PointerKind,
    String,
    StructureType,
    Type,
    Union,
)
from rpcqm.codec.interface import Interface, load
from rpcqm.codec.ndr.classes import message
from rpcqm.codec.ndr.layout import Wire, alignment

_Class = type[ndr.NDR]

_INTEGERS: dict[tuple[int, bool], _Class] = {
    (1, False): ndr.NDRUSMALL,
    (1, True): ndr.NDRSMALL,
    (2, False): ndr.NDRUSHORT,
    (2, True): ndr.NDRSHORT,
    (4, False): ndr.NDRULONG,
    (4, True): ndr.NDRLONG,
    (8, False): ndr.NDRUHYPER,
    (8, True): ndr.NDRHYPER,
}
_FLOATS: dict[int, _Class] = {4: ndr.NDRFLOAT, 8: ndr.NDRDOUBLEFLOAT}
_STRINGS: dict[int, _Class] = {1: dtypes.STR, 2: dtypes.WSTR}
_VARYING_STRING: _Class = ndr.NDRVaryingString
_GUID: _Class = dtypes.GUID


def impacket_module(name: str) -> ModuleType:
    """The module of idl/<name>.idl; also in `sys.modules`, where impacket looks for responses."""
    full_name = f"{__name__}.{name}"
    if full_name not in sys.modules:
        module_of(load(name), full_name)
    return sys.modules[full_name]


def module_of(interface: Interface, name: str) -> ModuleType:
    """The module of any interface, put into `sys.modules` as `name`."""
    sys.modules[name] = _Builder(interface, name).module()
    return sys.modules[name]


class _Builder:
    """Makes the classes of one interface."""

    def __init__(self, interface: Interface, name: str) -> None:
        self.interface = interface
        self.result = ModuleType(name, f"impacket's classes of {interface.name}.")
        self._made: dict[Type, _Class] = {}

    def module(self) -> ModuleType:
        major, minor = self.interface.version
        identifier = (str(self.interface.uuid), f"{major}.{minor}")
        opnums = {}
        for operation in self.interface.operations:
            if operation is not None:
                opnums[operation.opnum] = self._operation(operation.declaration)
        names = vars(self.result)
        names["MSRPC_UUID"] = uuidtup_to_bin(identifier)
        names["OPNUMS"] = opnums
        names["DCERPCSessionError"] = self._class("DCERPCSessionError", DCERPCException, _SESSION)
        return self.result

    def _class(self, name: str, base: type, members: dict[str, object]) -> _Class:
        """A class of the module."""
        made = type(name, (base,), {**members, "__module__": self.result.__name__})
        setattr(self.result, name, made)
        return made

    def _operation(self, operation: OperationDeclaration) -> tuple[_Class, _Class]:
        pair = []
        for response in (False, True):
            parameters = message(operation, response).parameters
            structure = tuple(
                ("ErrorCode" if p.name == "result" and response else p.name, self._whole(p.type))
                for p in parameters
            )
            name = operation.name + ("Response" if response else "")
            members = {"opnum": operation.opnum, "structure": structure}
            pair.append(self._class(name, ndr.NDRCALL, members))
        return pair[0], pair[1]

    def _whole(self, made: Type) -> _Class:
        """The class of a parameter's type.

        A call counts from before an array's maximum count when it aligns the elements; a
        structure does not, so that an array whose elements this would misplace is in one.
        """
        array = self.type(made)
        if isinstance(made, Array) and made.conformant and alignment(made, Wire()) > 4:
            members = {"structure": (("Data", array),), "item": array.item}
            return self._class(f"{array.__name__}_WHOLE", ndr.NDRSTRUCT, members)
        return array

    def type(self, made: Type) -> _Class:
        """The class of a type, made once."""
        if isinstance(made, Array):
            made = made.changed(size=None, length=Number(0) if made.varying else None)
        if made not in self._made:
            self._make(made)
        return self._made[made]

    def _make(self, made: Type) -> None:
        match made:
            case StructureType():
                self._made[made] = self._class(made.name, ndr.NDRSTRUCT, _STRUCTURE)
                self._fill_structure(self._made[made], made)
            case Union():
                self._made[made] = self._class(made.name, ndr.NDRUNION, _UNION)
                self._fill_union(self._made[made], made)
            case Enumeration():
                self._made[made] = self._enumeration(made)
            case Pointer():
                self._made[made] = self._pointer(made)
            case Array():
                self._made[made] = self._array(made)
            case String():
                self._made[made] = self._string(made)
            case _:
                self._made[made] = _simple(made)

    def _fill_structure(self, made_class: _Class, made: StructureType) -> None:
        made_class.structure = tuple((f.name, self.type(f.type)) for f in made.fields)
        made_class.alignments = alignment(made, Wire()), alignment(made, Wire(ndr64=True))
        last = made.fields[-1].type if made.fields else None
        made_class.trailing_gap = not (isinstance(last, Array) and last.conformant)

    def _fill_union(self, made_class: _Class, made: Union) -> None:
        if made.tag is None:
            raise TypeError(f"{made.name} has no tag")
        made_class.commonHdr = made_class.commonHdr64 = (("tag", self.type(made.tag)),)
        made_class.union = {
            label: (arm.name or "empty", self.type(arm.type) if arm.type else _Empty)
            for arm in made.arms
            for label in arm.labels
        }
        if made.default is not None:
            arm = made.default
            made_class.union["default"] = arm.name, self.type(arm.type) if arm.type else _Empty

    def _enumeration(self, made: Enumeration) -> _Class:
        values: dict[str, object] = dict(made.values)
        members: dict[str, object] = {"enumItems": type("enumItems", (Enum,), values)}
        if made.v1:
            members |= {"align": 4, "structure": (("Data", "<l"),)}
        return self._class(made.name, ndr.NDRENUM, members)

    def _pointer(self, made: Pointer) -> _Class:
        if made.kind is PointerKind.REF:
            raise TypeError("impacket has no embedded reference pointers")
        to = self.type(made.to)
        return self._class(f"P{to.__name__}", ndr.NDRPOINTER, {"referent": (("Data", to),)})

    def _array(self, made: Array) -> _Class:
        element = made.element
        if not made.conformant and not made.varying:
            return self._fixed(made)
        base = ndr.NDRUniConformantArray
        if made.varying:
            conformant_varying = ndr.NDRUniConformantVaryingArray
            base = conformant_varying if made.conformant else ndr.NDRUniVaryingArray
        item: str | _Class
        if isinstance(element, Integer):
            number = _INTEGERS[element.size, element.signed]
            item = "c" if element.octet else f"<{number.structure[0][1].strip('<=0')}"
        else:
            item = self.type(element)
        name = item.strip("<") if isinstance(item, str) else item.__name__
        suffix = "_VARYING_ARRAY" if made.varying else "_ARRAY"
        members: dict[str, object] = {
            "item": item,
            **({} if isinstance(item, str) else _array_members(base)),
        }
        return self._class(name + suffix, base, members)

    def _fixed(self, made: Array) -> _Class:
        if not (isinstance(made.element, Integer) and made.element.octet):
            raise TypeError("impacket's fixed arrays are of octets")
        count = made.count or 0
        members = {"align": 1, "getDataLen": lambda _self, _data, _offset=0: count}
        return self._class(f"OCTETS{count}", ndr.NDRUniFixedArray, members)

    def _string(self, made: String) -> _Class:
        if not made.conformant:
            return _VARYING_STRING
        if made.size is not None and made.character.size == 1:
            return self._class("SIZED_STR", ndr.NDRUniConformantVaryingArray, {"item": "c"})
        return _STRINGS[made.character.size]


def _simple(made: Type) -> _Class:
    match made:
        case Integer(size=size, signed=signed):
            return _INTEGERS[size or 4, signed]
        case Float(size=size):
            return _FLOATS[size]
        case Guid():
            return _GUID
        case ContextHandleType():
            return _ContextHandle
        case InterfacePointer():
            raise TypeError("interface pointers are impacket.dcerpc.v5.dcomrt's")
    raise TypeError(f"no class for {made}")


# An empty arm of a union: nothing, and aligned to nothing.
_Empty = type("_Empty", (ndr.NDR,), {"align": 1, "structure": (), "structure64": ()})

_ContextHandle = type(
    "_ContextHandle",
    (ndr.NDRSTRUCT,),
    {"structure": (("Data", '20s=b""'),), "getAlignment": lambda _self: 4},
)


def _structure_alignment(self: ndr.NDRSTRUCT) -> int:
    """Of unions inside, impacket counts the tag alone ([C706] 14.2.2 counts the arms)."""
    narrow, wide = self.alignments
    return int(wide if self._isNDR64 else narrow)


def _gap(self: ndr.NDRSTRUCT, end: int) -> int:
    return -end % self.getAlignment() if self._isNDR64 and self.trailing_gap else 0


def _structure_data(self: ndr.NDRSTRUCT, soFar: int = 0) -> bytes:
    """NDR64 ends a structure with the gap to its alignment ([MS-RPCE] 2.2.5.3.4.1)."""
    data: bytes = ndr.NDRSTRUCT.getData(self, soFar)
    return data + bytes(_gap(self, soFar + len(data)))


def _structure_read(self: ndr.NDRSTRUCT, data: bytes, offset: int = 0) -> int:
    size: int = ndr.NDRSTRUCT.fromString(self, data, offset)
    return size + _gap(self, offset + size)


_STRUCTURE: dict[str, object] = {
    "getAlignment": _structure_alignment,
    "getData": _structure_data,
    "fromString": _structure_read,
}


def _union_read(self: ndr.NDRUNION, data: bytes, offset: int = 0) -> int:
    """impacket reads no arm where no more than four octets are left."""
    return int(ndr.NDRUNION.fromString(self, data + bytes(8), offset))


# notAlign: an arm has its own alignment, not one of at least four.
_UNION: dict[str, object] = {"notAlign": True, "fromString": _union_read}


def _array_alignment(self: ndr.NDRArray) -> int:
    """impacket asks an element of NDR, also in NDR64."""
    return int(self.item(isNDR64=self._isNDR64).getAlignment())


def _array_data(base: type[ndr.NDRArray]) -> Callable[..., bytes]:
    def data_of(self: ndr.NDRArray, soFar: int = 0) -> bytes:
        """An empty array is aligned as if it had elements."""
        data: bytes = base.getData(self, soFar)
        return data if self.fields["Data"] else data + bytes(_empty_gap(self, soFar + len(data)))

    return data_of


def _array_read(base: type[ndr.NDRArray]) -> Callable[..., int]:
    def read(self: ndr.NDRArray, data: bytes, offset: int = 0) -> int:
        size: int = base.fromString(self, data, offset)
        return size if self.fields["Data"] else size + _empty_gap(self, offset + size)

    return read


def _empty_gap(self: ndr.NDRArray, end: int) -> int:
    return int(-end % self.getAlignment())


def _array_members(base: type[ndr.NDRArray]) -> dict[str, object]:
    return {
        "getAlignment": _array_alignment,
        "getData": _array_data(base),
        "fromString": _array_read(base),
    }


def _session_text(self: DCERPCException) -> str:
    try:
        status = HResult(self.error_code)
    except ValueError:
        return f"{self.__module__.rpartition('.')[2]}: 0x{self.error_code:08x}"
    return f"{self.__module__.rpartition('.')[2]}: 0x{self.error_code:08x} {status.name}"


def _session_init(
    self: DCERPCException,
    error_string: str | None = None,
    error_code: int | None = None,
    packet: object = None,
) -> None:
    """Not every response has an ErrorCode from which the base class could take the code."""
    DCERPCException.__init__(self, error_string, error_code, None)
    self.packet = packet


_SESSION: dict[str, object] = {
    "__init__": _session_init,
    "__str__": _session_text,
}
