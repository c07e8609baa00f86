"""The places of a request's fields on the wire: a decoder that notes what it reads.

The compiler of the careful decoder makes it, of the same declarations, so that both have one
layout. It is compiled only for learning shapes of stubs (`fast.formats.stub_shape`).
"""

import re
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rpcqm.codec.idl.nodes import Expression, Name
from rpcqm.codec.idl.tree import Array, Enumeration, Integer, OperationDeclaration, String, Type
from rpcqm.codec.ndr.classes import message
from rpcqm.codec.ndr.compile import NAMESPACE, Buffer, add_decoder
from rpcqm.codec.ndr.decode import Decoder, Readers
from rpcqm.codec.ndr.layout import Position, Wire
from rpcqm.codec.ndr.source import Frame, Module, Source
from rpcqm.codec.ndr.values import Value

_CODES = re.compile(r"(\d*)([A-Za-z])")


class Aligned(NamedTuple):
    """The part from `start` on is aligned to a multiple of `to`."""

    start: int
    to: int


class Deferred(NamedTuple):
    """The part from `start` on holds targets of pointers."""

    start: int


class Counts(NamedTuple):
    """The counts of the array or string at `path` come next.

    `size` and `length` are the paths of the fields that these must be equal to, "" without such a
    field.
    """

    path: str
    made: Array | String
    size: str
    length: str


class Read(NamedTuple):
    """The octets from `start` to `end` are the field at `path`, "" outside of fields.

    `code` is the struct code of a number, "" for elements of an array, which have `element` octets
    each. A field that is not `plain` does not take every value.
    """

    start: int
    end: int
    path: str
    code: str
    plain: bool
    element: int


Event = Aligned | Deferred | Counts | Read


class Trace(NamedTuple):
    """A request, and how it was read, in order."""

    request: Value
    events: tuple[Event, ...]


class _Readers(Readers):
    """Readers whose functions take notes."""

    def decoder(self, source: Source) -> Decoder:
        return _Decoder(self, source, Position())


class _Decoder(Decoder):
    """Writes the body of one function that reads and takes notes.

    Notes are lines `note(kind, owner, field, …)`: the owner's place in the request is found at the
    end.
    """

    def __init__(self, readers: Readers, source: Source, position: Position) -> None:
        super().__init__(readers, source, position)
        self._choosy: set[str] = set()

    def _note(self, kind: str, target: str, *more: str) -> None:
        owner, _, field = target.rpartition(".")
        self.line(f"note({', '.join((repr(kind), owner or 'None', repr(field), *more))})")

    def emit_run(self, code: str, what: list[str]) -> None:
        super().emit_run(code, what)
        at, targets = self.at(), iter(what)
        for count, letter in _CODES.findall(code):
            end = f"{at} + {struct.calcsize(f'<{count}{letter}')}"
            if letter != "x":
                target = next(targets)
                plain = str(target not in self._choosy)
                self._note("read", target, at, end, repr(count + letter), plain, "1")
            at = end

    def number(self, made: Type, target: str) -> None:
        if isinstance(made, Enumeration) or (
            isinstance(made, Integer) and (made.limits or made.truth)
        ):
            self._choosy.add(target)
        super().number(made, target)

    def align_at_run_time(self, align: int) -> None:
        super().align_at_run_time(align)
        self._note("aligned", "", "o", str(align))

    def run_deferred(self) -> None:
        if self.deferred:
            self.settle()
            self._note("deferred", "", "o")
        super().run_deferred()

    def counted(self, made: Array | String, count: str, target: str, frame: Frame) -> None:
        length = made.length if isinstance(made, Array) else None
        names = repr(_name(made.size, frame)), repr(_name(length, frame))
        self._note("counts", target, self.module.known(made, "k"), *names)
        super().counted(made, count, target, frame)

    def _span(self, count: str, size: int, target: str) -> tuple[str, str]:
        at, end = super()._span(count, size, target)
        self._note("read", target, at, end, "''", "True", str(size))
        return at, end

    def _characters(self, size: int, count: str, end: str, target: str) -> None:
        at = self.at()
        super()._characters(size, count, end, target)
        self._note("read", target, at, end, "''", "True", str(size))


def _name(expression: Expression | None, frame: Frame) -> str:
    """The sibling field that an expression names; "" if it is anything but one name."""
    if isinstance(expression, Name) and frame.knows(expression):
        return expression.text
    return ""


class Tracing:
    """The tracing decoder of the requests of one operation; `decode` is the careful one."""

    def __init__(
        self, declaration: OperationDeclaration, wire: Wire, decode: Callable[[Buffer], Any]
    ) -> None:
        self.wire = wire
        self.decode = decode
        self._declaration = declaration
        self._notes: list[tuple[Any, ...]] = []
        self._read: Callable[[Buffer], Value] | None = None

    def trace(self, stub: bytes) -> Trace:
        """How a stub is read; raises DecodeError as the careful decoder."""
        if self._read is None:
            self._read = self._compiled()
        self._notes.clear()
        request = self._read(stub)
        paths = dict(_paths(request, ""))
        events = tuple(_events(self._notes, paths))
        self._notes.clear()
        return Trace(request, events)

    def _compiled(self) -> Callable[[Buffer], Value]:
        def note(*what: object) -> None:
            self._notes.append(what)

        module = Module(self.wire, {**NAMESPACE, "note": note})
        add_decoder(module, _Readers(module), message(self._declaration, False), "decode")
        names: dict[str, Any] = module.namespace
        exec(compile(module.take(), f"<trace {self._declaration.name}>", "exec"), names)
        read: Callable[[Buffer], Value] = names["decode"]
        return read


def _paths(value: object, path: str) -> Iterator[tuple[int, str]]:
    """The identities of the structures and unions in a request, and where they are in it."""
    if isinstance(value, Value):
        yield id(value), path
        for name in value.__slots__:
            yield from _paths(getattr(value, name), f"{path}{name}.")


def _events(notes: list[tuple[Any, ...]], paths: dict[int, str]) -> Iterator[Event]:
    for kind, owner, field, *more in notes:
        inside = paths.get(id(owner), "") if owner is not None else ""
        path = inside + field if id(owner) in paths else ""
        if kind == "read":
            start, end, *rest = more
            yield Read(start, end, path, *rest)
        elif kind == "counts":
            made, size, length = more
            yield Counts(path, made, size and inside + size, length and inside + length)
        else:
            yield Aligned(*more) if kind == "aligned" else Deferred(*more)
