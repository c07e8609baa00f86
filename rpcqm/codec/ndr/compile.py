"""The NDR and NDR64 compilers: trees of IDL → Python functions that read and write stubs.

The source is generated and compiled once for each message and syntax. Runs of fields of fixed size
become one `struct.Struct`; alignment that is certain at that time costs nothing later.
"""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from rpcqm.base.errors import DecodeError
from rpcqm.codec.idl.tree import OperationDeclaration, Type
from rpcqm.codec.ndr.classes import OperationMessage, message
from rpcqm.codec.ndr.decode import Decoder, Readers
from rpcqm.codec.ndr.encode import Encoder, Writers
from rpcqm.codec.ndr.layout import Position, Wire, full_pointers
from rpcqm.codec.ndr.source import Frame, Module, Source
from rpcqm.codec.ndr.values import (
    NULL,
    FullPointers,
    Value,
    guid,
    guid_big_endian,
    handle_big_endian,
    handle_to_big_endian,
    referents,
)

__all__ = ["Buffer", "Compiler", "MessageCodec", "Wire"]

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class MessageCodec:
    """The codec of one request or response."""

    decode: Callable[[Buffer], Any]
    encode: Callable[[Value], bytes]


class CompiledCodec(MessageCodec):
    """A codec whose functions are compiled separately, each at its first use.

    A client writes requests and reads responses, a server does the opposite: compiling the other
    half would only take time at the start.
    """

    __slots__ = ("_compile",)

    def __init__(self, compile_function: Callable[[str], Callable[[Any], Any]]) -> None:
        object.__setattr__(self, "_compile", compile_function)

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        if name not in ("decode", "encode"):
            raise AttributeError(name)
        made: Callable[[Any], Any] = self._compile(name)
        object.__setattr__(self, name, made)
        return made


def _alias(
    seen: dict[int, tuple[Type, object]], identifier: int, kind: Type, offset: int
) -> object:
    """The target of a full pointer that was met before; it must be of the same type."""
    found, value = seen[identifier]
    if found != kind:
        raise DecodeError("a full pointer is an alias of a value of another type", offset)
    return value


NAMESPACE: dict[str, object] = {
    "DecodeError": DecodeError,
    "FullPointers": FullPointers,
    "GAPS": tuple(bytes(size) for size in range(8)),
    "NULL": NULL,
    "alias": _alias,
    "error": struct.error,
    "guid": guid,
    "guid_big_endian": guid_big_endian,
    "handle_big_endian": handle_big_endian,
    "handle_to_big_endian": handle_to_big_endian,
    "new": object.__new__,
    "pack": struct.pack,
    "referents": referents,
    "unpack_from": struct.unpack_from,
}
"""The names that generated code uses."""

_MARSHALLED = re.compile(r"\b(EMPTY|(read|write)_(BSTR|OBJREF|SAFEARRAY|VARIANT)\b)")
"""The functions of `codec.automation` that generated code calls."""


def add_decoder(module: Module, readers: Readers, made: OperationMessage, name: str) -> None:
    """Generate the function that reads a message."""
    body = Source(2)
    _read_parameters(readers.decoder(body), made)
    source = Source()
    with source.block(f"def {name}(buf):"):
        if _mentions(body, "end"):
            source.line("end = len(buf)")
        if _mentions(body, "seen"):
            source.line(f"depth, seen = 0, {'{}' if _aliases(made) else 'None'}")
        value = module.known(made.python_class, "c")
        with source.block("try:"):
            source.line(f"v = new({value})")
            source.lines += body.lines
        with source.block("except (error, IndexError):"):
            source.line(
                f'raise DecodeError("the stub data of {made.name} ends too early") from None'
            )
        source.line("return v")
    module.add(source)


def _mentions(source: Source, name: str) -> bool:
    return any(re.search(rf"\b{name}\b", line) for line in source.lines)


def _read_parameters(decoder: Decoder, made: OperationMessage) -> None:
    decoder.fixed = True
    names = frozenset(p.name for p in made.parameters)
    frame = Frame("v", names, read=set(), extras=frozenset(made.extras))
    for parameter in made.parameters:
        decoder.whole(parameter.type, f"v.{parameter.name}", frame, parameter.switch)
        if frame.read is not None:
            frame.read.add(parameter.name)
        if frame.late:
            decoder.late_checks(frame)
    decoder.flush()


def _encoder(module: Module, writers: Writers, made: OperationMessage, name: str) -> None:
    body = _write_parameters(writers, made, Source(2))
    source = Source()
    with source.block(f"def {name}(v):"):
        at_once = _only_write(body)
        if not at_once:
            source.line("parts = []")
            source.line("w = parts.append")
        if _mentions(body, "ids"):
            source.line("ids = referents()")
        if _mentions(body, "full"):
            source.line(f"full = {'FullPointers(ids)' if _aliases(made) else 'None'}")
        with source.block("try:"):
            source.lines += body.lines
            source.line(f"return {at_once}" if at_once else 'return b"".join(parts)')
        with source.block("except error as problem:"):
            source.line(f'raise ValueError(f"{made.name} does not fit: {{problem}}") from None')
        with source.block("except AttributeError as problem:"):
            source.line(f'raise TypeError(f"{made.name} does not fit: {{problem}}") from None')
    module.add(source)


def _only_write(body: Source) -> str:
    """The single expression of a message that is written in one piece, taken out of the body."""
    writes = [line for line in body.lines if line.lstrip().startswith(("w(", "o = "))]
    if len(writes) == 1 and body.lines[-1] is writes[0] and writes[0].startswith("        w("):
        return body.lines.pop().strip()[2:-1]
    return ""


def _write_parameters(writers: Writers, made: OperationMessage, source: Source) -> Source:
    encoder = Encoder(writers, source, Position())
    encoder.fixed = True
    names = frozenset(p.name for p in made.parameters)
    frame = Frame("v", names, extras=frozenset(made.extras))
    for parameter in made.parameters:
        encoder.whole(parameter.type, f"v.{parameter.name}", frame, parameter.switch)
    encoder.flush()
    return source


def _aliases(made: OperationMessage) -> bool:
    return any(full_pointers(parameter.type) for parameter in made.parameters)


class Compiler:
    """The codecs of an interface in one syntax, each compiled at its first use.

    Common parts of messages (structures, arrays of them) are compiled once.
    """

    def __init__(self, wire: Wire) -> None:
        self.module = Module(wire, NAMESPACE)
        self._readers = Readers(self.module)
        self._writers = Writers(self.module)
        self._codecs: dict[str, MessageCodec] = {}

    def codec(self, operation: OperationDeclaration, response: bool) -> MessageCodec:
        """The codec of the request or the response of an operation."""
        made = message(operation, response)
        if made.name not in self._codecs:
            self._codecs[made.name] = CompiledCodec(partial(self._compiled, made))
        return self._codecs[made.name]

    def source(self, operation: OperationDeclaration, response: bool) -> str:
        """The source generated for a message that was not compiled before, for reading."""
        made = message(operation, response)
        self._generate(made, "decode")
        self._generate(made, "encode")
        return self.module.take()

    def _generate(self, made: OperationMessage, function: str) -> None:
        """Add the source of one of a codec's functions, "decode" or "encode"."""
        if function == "decode":
            add_decoder(self.module, self._readers, made, f"decode_{made.name}")
        else:
            _encoder(self.module, self._writers, made, f"encode_{made.name}")

    def _compiled(self, made: OperationMessage, function: str) -> Callable[[Any], Any]:
        self._generate(made, function)
        names: dict[str, Any] = self.module.namespace
        text = self.module.take()
        if "read_BSTR" not in names and _MARSHALLED.search(text):
            # here, because only methods of objects need automation
            from rpcqm.codec.automation.marshalling import functions

            names.update(functions(self.module.wire.ndr64, self.module.wire.big_endian))
        exec(compile(text, f"<ndr {made.name}>", "exec"), names)
        compiled: Callable[[Any], Any] = names[f"{function}_{made.name}"]
        return compiled
