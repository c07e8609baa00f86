"""Single structures as octets by themselves: type serialization version 1 ([MS-RPCE] 2.2.6).

    PROPERTIES = serialized("dcom", "PropsOutInfo")
    octets = PROPERTIES.encode(PropsOutInfo(...))

What stands so in activation properties is NDR in little-endian order from us; either order is
read.
"""

import functools
import struct
from typing import Any

from rpcqm.base.errors import DecodeError
from rpcqm.codec.idl.load import load_idl
from rpcqm.codec.idl.tree import OperationDeclaration, Parameter, StructureType
from rpcqm.codec.ndr.classes import message
from rpcqm.codec.ndr.compile import Buffer, Compiler, MessageCodec, Wire
from rpcqm.codec.ndr.values import Value

HEADERS = 16
"""The octets of the common and the private header."""
_COMMON = bytes.fromhex("01100800cccccccc")
_LITTLE, _BIG = 0x10, 0x00


class Serialized:
    """The codec of one structure; made by `serialized`."""

    def __init__(self, declaration: OperationDeclaration) -> None:
        self._declaration = declaration
        self._message = message(declaration, False).python_class
        self._encode = self._codec(False).encode

    def encode(self, value: Value) -> bytes:
        """The structure with its headers, a multiple of eight octets.

        Raises ValueError or TypeError for values that cannot be written.
        """
        body = self._encode(self._message(value=value))
        size = -(-len(body) // 8) * 8
        return _COMMON + struct.pack("<II", size, 0) + body.ljust(size, b"\0")

    def decode(self, octets: Buffer) -> Any:
        """The structure; raises DecodeError, and nothing else, for octets that are none."""
        body, big_endian = body_of(octets)
        return self._codec(big_endian).decode(body).value

    def _codec(self, big_endian: bool) -> MessageCodec:
        return _compiler(big_endian).codec(self._declaration, response=False)


def body_of(octets: Buffer) -> tuple[Buffer, bool]:
    """What follows the headers, and whether it is in big-endian order; raises DecodeError.

    Octets that are missing at its end may be padding: who reads it sees whether they are.
    """
    if len(octets) < HEADERS or octets[0] != 1 or octets[1] not in (_LITTLE, _BIG):
        raise DecodeError("this is no serialized type of version 1", 0)
    big_endian = octets[1] == _BIG
    (size,) = struct.unpack_from(">I" if big_endian else "<I", octets, 8)
    return octets[HEADERS : HEADERS + size], big_endian


@functools.cache
def _compiler(big_endian: bool) -> Compiler:
    return Compiler(Wire(big_endian=big_endian))


@functools.cache
def serialized(file: str, name: str) -> Serialized:
    """The codec of a structure of idl/<file>.idl; the same one each time.

    Raises KeyError for a name that is no type of the file, and TypeError for one of another kind.
    """
    made = load_idl(file).types[name]
    if not isinstance(made, StructureType):
        raise TypeError(f"{name} is no structure")
    value = Parameter("value", made, in_=True, out=False)
    return Serialized(OperationDeclaration(f"Serialized_{name}", 0, (value,), None))
