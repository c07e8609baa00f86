"""RPC interfaces as their IDL files declare them, and the codecs of their methods.

    remote_read = load("remoteread")
    move = remote_read.operation("R_MoveMessage")
    stub = move.encode_request(TransferSyntax.NDR, move.request_class(...))

Values: integers; bytes for arrays of octets; str for [string] and for arrays of wide
characters; uuid.UUID for GUID; 20 octets for a context handle; lists for other arrays; an
object of a class of the IDL's name for a structure; an object with `tag` and `value` for a
union; None for a null pointer, and `NULL` for a pointer to one.
"""

import enum
import functools
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rpcqm.codec.idl.load import load_idl, read_idl
from rpcqm.codec.idl.tree import (
    Array,
    ContextHandleType,
    Enumeration,
    IdlFile,
    InterfaceDeclaration,
    OperationDeclaration,
    StructureType,
    Union,
)
from rpcqm.codec.ndr.classes import class_of, enum_class, message
from rpcqm.codec.ndr.compile import Buffer, Compiler, MessageCodec, Wire
from rpcqm.codec.ndr.failure import failure_response
from rpcqm.codec.ndr.trace import Tracing
from rpcqm.codec.ndr.values import NULL, NullPointer, OperationRequest, Result, Value

__all__ = [
    "NULL",
    "ContextHandleParameter",
    "Interface",
    "NullPointer",
    "Operation",
    "OperationCodec",
    "OperationRequest",
    "Result",
    "TransferSyntax",
    "Value",
    "load",
    "names_of",
    "read",
    "types_of",
]


class TransferSyntax(enum.Enum):
    """A transfer syntax that a presentation context can have."""

    NDR = uuid.UUID("8a885d04-1ceb-11c9-9fe8-08002b104860"), 2
    NDR64 = uuid.UUID("71710533-beba-4937-8319-b5dbef9ccc36"), 1

    @property
    def uuid(self) -> uuid.UUID:
        return self.value[0]

    @property
    def version(self) -> int:
        return self.value[1]


@dataclass(frozen=True, slots=True)
class ContextHandleParameter:
    """A parameter that is a context handle, or (`array`) an array of them.

    `direction` is "in", "in,out" or "out".  `type_name` is the handle's type, `strict` and
    `type_strict` are the interface's.  Calls that use the handle wait for each other if
    `serialize`, as they do unless the IDL says otherwise.
    """

    name: str
    direction: str
    type_name: str
    strict: bool
    type_strict: bool
    serialize: bool
    array: bool = False


@dataclass(frozen=True, slots=True)
class OperationCodec:
    """The codecs of one method in one transfer syntax, compiled at their first use."""

    request: MessageCodec
    response: MessageCodec


class Operation:
    """One method: its classes of requests and responses, and their codecs.

    `encode_…` raise ValueError or TypeError for values that cannot be written; `decode_…`
    raise DecodeError, and nothing else, for octets that are not such a stub.
    """

    __slots__ = (
        "_big_endian",
        "_compiler",
        "_ndr",
        "_ndr64",
        "_tracings",
        "context_handles",
        "declaration",
        "name",
        "opnum",
        "request_class",
        "response_class",
    )

    def __init__(
        self,
        declaration: OperationDeclaration,
        context_handles: tuple[ContextHandleParameter, ...],
        compiler: Callable[[Wire], Compiler],
    ) -> None:
        self.declaration = declaration
        self.name = declaration.name
        self.opnum = declaration.opnum
        self.request_class = message(declaration, False).python_class
        self.response_class = message(declaration, True).python_class
        self.context_handles = context_handles
        self._compiler = compiler
        self._ndr: OperationCodec | None = None
        self._ndr64: OperationCodec | None = None
        self._big_endian: OperationCodec | None = None
        self._tracings: dict[TransferSyntax, Tracing] = {}

    def decode_request(self, syntax: TransferSyntax, stub: Buffer, big_endian: bool = False) -> Any:
        """The request of a stub; octets behind its last parameter are ignored."""
        return self.codec(syntax, big_endian).request.decode(stub)

    def encode_request(
        self, syntax: TransferSyntax, request: Value, big_endian: bool = False
    ) -> bytes:
        return self.codec(syntax, big_endian).request.encode(request)

    def decode_response(
        self, syntax: TransferSyntax, stub: Buffer, big_endian: bool = False
    ) -> Any:
        """The response of a stub; octets behind its last parameter are ignored."""
        return self.codec(syntax, big_endian).response.decode(stub)

    def encode_response(
        self, syntax: TransferSyntax, response: Value, big_endian: bool = False
    ) -> bytes:
        return self.codec(syntax, big_endian).response.encode(response)

    def failure_response(self, request: Value, result: int) -> Value:
        """The response that reports `result` and nothing else; [in,out] as they came."""
        return failure_response(self.declaration, request, result)

    def codec(self, syntax: TransferSyntax, big_endian: bool = False) -> "OperationCodec":
        """The compiled functions themselves, for frequent use."""
        if syntax is TransferSyntax.NDR64:
            self._ndr64 = self._ndr64 or self._made(Wire(ndr64=True))
            return self._ndr64
        if big_endian:
            self._big_endian = self._big_endian or self._made(Wire(big_endian=True))
            return self._big_endian
        self._ndr = self._ndr or self._made(Wire())
        return self._ndr

    def tracing(self, syntax: TransferSyntax) -> Tracing:
        """A decoder of little-endian requests that also gives each field's place on the wire."""
        if syntax not in self._tracings:
            wire = self._compiler(Wire(ndr64=syntax is TransferSyntax.NDR64)).module.wire
            decode = self.codec(syntax).request.decode
            self._tracings[syntax] = Tracing(self.declaration, wire, decode)
        return self._tracings[syntax]

    def _made(self, wire: Wire) -> "OperationCodec":
        compiler = self._compiler(wire)
        request = compiler.codec(self.declaration, response=False)
        return OperationCodec(request, compiler.codec(self.declaration, response=True))

    def __repr__(self) -> str:
        return f"<Operation {self.opnum} {self.name}>"


_OF_OBJECTS: dict[Wire, Compiler] = {}


class Interface:
    """An RPC interface; `operations` has None for each opnum not used on the wire.

    `ms_union` compiles unions as MIDL does with its switch of that name (G29).
    """

    def __init__(self, declaration: InterfaceDeclaration, ms_union: bool = False) -> None:
        self.declaration = declaration
        self.name = declaration.name
        self.uuid = declaration.uuid
        self.version = declaration.version
        self.ms_union = ms_union
        self.syntaxes = tuple(s for s in TransferSyntax if s.name in declaration.syntaxes)
        self.strict_context_handle = declaration.strict_context_handle
        self.type_strict_context_handle = declaration.type_strict_context_handle
        self.operations = tuple(
            None if operation is None else self._operation(operation)
            for operation in declaration.operations
        )
        # Methods of objects have unique names in all files, and inherit: one cache serves all.
        self._compilers = _OF_OBJECTS if declaration.is_object else {}

    def operation(self, name: str) -> Operation:
        """The operation of that name; raises KeyError if the interface has no such operation."""
        for operation in self.operations:
            if operation is not None and operation.name == name:
                return operation
        raise KeyError(name)

    def compiler(self, wire: Wire) -> Compiler:
        """The compiler of a transfer syntax and byte order; the same one each time."""
        wire = Wire(wire.ndr64, wire.big_endian, self.ms_union)
        if wire not in self._compilers:
            self._compilers[wire] = Compiler(wire)
        return self._compilers[wire]

    def _operation(self, declaration: OperationDeclaration) -> Operation:
        return Operation(declaration, tuple(self._handles(declaration)), self.compiler)

    def _handles(self, declaration: OperationDeclaration) -> Iterator[ContextHandleParameter]:
        for parameter in declaration.parameters:
            array = isinstance(parameter.type, Array)
            made = parameter.type.element if isinstance(parameter.type, Array) else parameter.type
            if not isinstance(made, ContextHandleType):
                continue
            directions = ("in" if parameter.in_ else "", "out" if parameter.out else "")
            yield ContextHandleParameter(
                parameter.name,
                ",".join(filter(None, directions)),
                made.name,
                self.strict_context_handle,
                self.type_strict_context_handle,
                made.serialize is not False,
                array,
            )

    def __repr__(self) -> str:
        major, minor = self.version
        return f"<Interface {self.name} {self.uuid} {major}.{minor}>"


def load(name: str, ms_union: bool = False) -> Interface:
    """The interface that idl/<name>.idl declares; the same object each time.

    Of a file with several the interface is named as well: "dcom.IRemUnknown".

    Raises IdlError for a file that is not there or not understood, and ValueError for one that
    has no such interface.
    """
    return _load(name, ms_union)


def read(
    text: str, name: str = "text.idl", syntaxes: Iterable[TransferSyntax] = TransferSyntax
) -> Interface:
    """The interface in an IDL text, for other projects' interfaces; `name` is used in errors.

    Raises IdlError for invalid text, and ValueError if it declares no interface, or several.
    """
    interface = Interface(_only(read_idl(text, name)))
    interface.syntaxes = tuple(syntaxes)
    return interface


@functools.cache
def _load(name: str, ms_union: bool) -> Interface:
    file_name, _, interface_name = name.partition(".")
    file = load_idl(file_name)
    if not interface_name:
        return Interface(_only(file), ms_union)
    if interface_name not in file.interfaces:
        raise ValueError(f"{file.name} declares no interface {interface_name}")
    return Interface(file.interfaces[interface_name], ms_union)


def _only(file: IdlFile) -> InterfaceDeclaration:
    declared = list(file.interfaces.values())
    if len(declared) != 1:
        raise ValueError(f"{file.name} declares {len(declared)} interfaces, not one")
    return declared[0]


def names_of(file: IdlFile) -> Iterator[str]:
    """The names of a file's interfaces for `load`."""
    name = file.name.removesuffix(".idl")
    if len(file.interfaces) == 1:
        yield name
    else:
        yield from (f"{name}.{each}" for each in file.interfaces)


def types_of(name: str, module: str) -> dict[str, object]:
    """The classes and constants of idl/<name>.idl: structures, unions, enumerations, and the
    requests and responses of its interfaces, by their names.

    `module` is the module that they belong to. Methods of automation are called by names, and their
    messages are in no module.
    """
    file = load_idl(name)
    classes: dict[str, type] = {}
    for made in file.types.values():
        classes.update(_classes(made))
    for known, declaration in zip(names_of(file), file.interfaces.values(), strict=True):
        for operation in () if declaration.automation else declaration.own:
            request, response = message(operation, False), message(operation, True)
            assert issubclass(request.python_class, OperationRequest)
            request.python_class.interface_name = known
            request.python_class.operation = operation
            classes[request.name] = request.python_class
            classes[response.name] = response.python_class
    for each in classes.values():
        each.__module__ = module
    return {**file.constants, **classes}


def _classes(made: object) -> Iterator[tuple[str, type]]:
    if isinstance(made, StructureType | Union):
        for name in (made.name, *made.aliases):
            yield name, class_of(made)
        for nested in made.nested.values():
            yield from _classes(nested)
    elif isinstance(made, Enumeration):
        for name in (made.name, *made.aliases):
            yield name, enum_class(made)
