"""The commonest calls of objects, read and answered without the codecs of the IDL.

They are reads of properties: by opnum, or by Invoke without arguments. This module handles the one
form in NDR that clients send; the codecs handle every other one.
"""

import itertools
import struct
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, ClassVar
from uuid import UUID

from rpcqm.codec.automation.strings import GAPS
from rpcqm.codec.automation.values import EMPTY, Variant
from rpcqm.codec.automation.variants import Marshaller
from rpcqm.codec.interface import Operation, TransferSyntax, Value, load
from rpcqm.codec.types.oaut import DISPPARAMS
from rpcqm.dcom.orpc import INVOKE
from rpcqm.dcom.orpc_values import MAJOR, MINOR, NO_EXCEPTION, THAT, CheckedRequest
from rpcqm.rpc.interface_registry import OperationEntry

Decode = Callable[[bytes], Value]
Encode = Callable[[Any], bytes]

new = object.__new__


class PlainInvoke(CheckedRequest):
    """A request of IDispatch::Invoke without arguments."""

    __slots__ = ("dispIdMember", "dwFlags", "lcid")
    dispIdMember: int
    dwFlags: int
    lcid: int
    riid: ClassVar = UUID(int=0)
    pDispParams: ClassVar = DISPPARAMS(rgvarg=None, rgdispidNamedArgs=None, cArgs=0, cNamedArgs=0)
    cVarRef: ClassVar = 0
    rgVarRefIdx: ClassVar[Sequence[int]] = ()
    rgVarRef: ClassVar[Sequence[Variant]] = ()


NOTHING = CheckedRequest()
_THIS = struct.Struct("<HHI20xI")
"""The relevant fields of an ORPCTHIS in NDR: version, flags, and whether it has extensions."""
_INVOKE = struct.Struct("<HHI20xIi16sII28s")
_NIL, _NOTHING = bytes(16), bytes(28)
"""The riid of Invoke; and the octets for no arguments, no names of them, and no references."""


def shorten(operation: Operation, entry: OperationEntry) -> None:
    """Let a property be read without the codecs, in NDR."""
    decode = partial(operation.decode_request, TransferSyntax.NDR)
    if operation.request_class.__slots__ == ("orpcthis",):
        entry.decode = partial(decode_nothing, decode)
    elif operation.name == INVOKE:
        entry.decode = partial(decode_invoke, decode)
        encode = partial(operation.encode_response, TransferSyntax.NDR)
        entry.encode = partial(encode_invoke, encode)


def decode_nothing(decode: Decode, stub: bytes) -> Value:
    """The request of a method without parameters, such as a property: mostly `NOTHING`."""
    if len(stub) >= _THIS.size:
        major, minor, flags, extensions = _THIS.unpack_from(stub)
        if major == MAJOR and minor <= MINOR and not (flags or extensions):
            return NOTHING
    return decode(stub)


def decode_invoke(decode: Decode, stub: bytes) -> Value:
    """The request of Invoke: a PlainInvoke where it has no arguments."""
    if len(stub) >= _INVOKE.size:
        major, minor, this_flags, extensions, dispid, riid, lcid, flags, rest = _INVOKE.unpack_from(
            stub
        )
        is_ours = major == MAJOR and minor <= MINOR and not (this_flags or extensions)
        if is_ours and rest == _NOTHING and riid == _NIL:
            request: PlainInvoke = new(PlainInvoke)
            request.dispIdMember, request.lcid, request.dwFlags = dispid, lcid, flags
            return request
    return decode(stub)


_FIRST_REFERENT = 0x0002_0000
_HEAD = struct.pack("<III4x", 0, 0, _FIRST_REFERENT)
"""ORPCTHAT, and the pointer to the result, which follows."""
_POINTERS = struct.Struct("<4xIII")
"""The numbers of an EXCEPINFO and the pointers to its texts."""
_marshaller = Marshaller(ndr64=False, big_endian=False)


def encode_invoke(encode: Encode, response: Any) -> bytes:
    """The response of Invoke, quickly if it is a result and nothing else."""
    if (
        response.result
        or response.pExcepInfo is not NO_EXCEPTION
        or response.rgVarRef
        or response.pArgErr
        or response.orpcthat is not THAT
    ):
        return encode(response)
    parts = [_HEAD]
    referents = itertools.count(_FIRST_REFERENT + 4, 4).__next__
    behind = _marshaller.write_variant(parts.append, len(_HEAD), response.pVarResult, referents)
    pointers = _POINTERS.pack(referents(), referents(), referents())
    parts += (GAPS[-behind & 3], pointers, _without_exception())
    return b"".join(parts)


@cache
def _without_exception() -> bytes:
    """The end of every such response: an EXCEPINFO without texts, no error, no references."""
    operation = load("oaut.IDispatch").operation("Invoke")
    response = operation.response_class(
        orpcthat=THAT, pVarResult=EMPTY, pExcepInfo=NO_EXCEPTION, pArgErr=0, rgVarRef=[], result=0
    )
    octets = operation.encode_response(TransferSyntax.NDR, response)
    return octets[len(_HEAD) + _SIZE_OF_EMPTY + _POINTERS.size :]


_SIZE_OF_EMPTY = 20
"""The octets of an empty VARIANT in NDR."""
