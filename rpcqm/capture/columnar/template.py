"""Stubs of one shape: decoded once, their fields then read column by column.

A template is made of one stub. Its leaves are the fields whose octets may be anything without
moving another field or changing what it means: integers that count nothing and choose nothing,
GUIDs, context handles, octets. That is not concluded from the IDL but tried with the codec, for
each leaf with several values. All other octets must be those of the example.
"""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rpcqm.base.errors import DecodeError
from rpcqm.capture.columnar.stretch import Array, Buffer
from rpcqm.capture.columnar.texts import (
    Text,
    column,
    decimal,
    guid_text,
    hexadecimal,
    numbers_at,
    octets_at,
)
from rpcqm.capture.ndr_fields import StubWalk, walked
from rpcqm.capture.subjects import IDENTIFIER_DEPTH, MOST_ELEMENTS
from rpcqm.capture.values import plain
from rpcqm.codec.idl_tree import Array as ArrayType
from rpcqm.codec.idl_tree import ContextHandle, Guid, Integer, Type
from rpcqm.codec.interface import Operation, TransferSyntax, Value
from rpcqm.codec.types.mqmq import OBJECTID

FieldPath = tuple[str | int, ...]

MOST_LEAVES = 128
MOST_TEMPLATES = 32
"""Of one method, side and length; what fits none of them is decoded by itself."""
LEAST_ROWS = 8
"""For fewer stubs a template is not worth making."""
_LONGEST_STUB = 1 << 20
_LONGEST_TRIED = 1 << 14
"""Leaves of longer stubs are not tried: each takes a decoding of the whole."""
_NUMBER, _GUID, _OCTETS = "number", "guid", "octets"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field that may have any value; `path` is where it is in the decoded value."""

    path: FieldPath
    offset: int
    size: int
    kind: str
    signed: bool = False

    @property
    def code(self) -> str:
        return f"<{'i' if self.signed else 'u'}{self.size}"

    @property
    def is_number(self) -> bool:
        return self.kind == _NUMBER

    @property
    def is_octets(self) -> bool:
        return self.kind == _OCTETS

    def shown(self, octets: bytes) -> Any:
        """The value as JSON has it."""
        if self.kind == _NUMBER:
            return int.from_bytes(octets, "little", signed=self.signed)
        return str(uuid.UUID(bytes_le=octets)) if self.kind == _GUID else octets.hex()

    def text(self, buffer: Buffer, places: Array) -> Text | str:
        """The values as JSON has them; a constant if they are all the same."""
        at = places + self.offset
        if self.kind == _NUMBER:
            numbers = numbers_at(buffer, at, self.code)
            same = (numbers == numbers[0]).all()
            return str(int(numbers[0])) if same else decimal(numbers)
        octets = octets_at(buffer, at, self.size)
        if (octets == octets[0]).all():
            return str(self.shown(octets[0].tobytes()))
        return guid_text(octets) if self.kind == _GUID else hexadecimal(octets)


class _LeafWalk(StubWalk):
    """Finds what could be a leaf."""

    def __init__(self, stub: bytes, wire: Any) -> None:
        super().__init__(stub, wire)
        self.found: list[tuple[int, int, str, bool]] = []

    def scalar(self, made: Type, path: str) -> None:
        super().scalar(made, path)
        kind = {Integer: _NUMBER, Guid: _GUID, ContextHandle: _OCTETS}.get(type(made))
        if kind is not None:
            size = self.fields[-1].size
            signed = isinstance(made, Integer) and made.signed
            self.found.append((self.at - size, size, kind, signed))

    def counted(self, made: Any, path: str, count: int) -> None:
        super().counted(made, path, count)
        if isinstance(made, ArrayType) and isinstance(made.element, Integer):
            size = self.fields[-1].size
            if made.element.octet and size:
                self.found.append((self.at - size, size, _OCTETS, False))


class Template:
    """What is common to stubs of one shape; `value` is the decoded example."""

    def __init__(
        self, stub: bytes, value: Any, leaves: list[Leaf], ignored: list[tuple[int, int]]
    ) -> None:
        self.value = value
        self.leaves = leaves
        self.size = len(stub)
        fixed = np.ones(len(stub), bool)
        for start, stop in ignored:
            fixed[start:stop] = False
        for leaf in leaves:
            fixed[leaf.offset : leaf.offset + leaf.size] = False
        self._spans = [(a, stub[a:b]) for a, b in _spans(fixed)]
        self._by_path = {leaf.path: leaf for leaf in leaves}
        self.carriers = list(_carriers(value))
        self._pieces = _json_pieces(plain(value), self._by_path)

    def fits(self, buffer: Buffer, places: Array) -> Array:
        """Which of the stubs (of this size) at some places have this shape."""
        found = np.ones(len(places), bool)
        for start, octets in self._spans:
            wanted = np.frombuffer(octets, np.uint8)
            found &= (octets_at(buffer, places + start, len(octets)) == wanted).all(axis=1)
        return found

    def leaf(self, *path: str | int) -> Leaf | None:
        """The leaf at a path, if the value there is one."""
        return self._by_path.get(path)

    def json(self, buffer: Buffer, places: Array) -> Text:
        """The parameters of the stubs at some places as JSON."""
        parts = [
            part if isinstance(part, str) else part.text(buffer, places) for part in self._pieces
        ]
        return column(parts, len(places))


def _spans(mask: Array) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def make_template(
    operation: Operation, syntax: TransferSyntax, response: bool, stub: bytes
) -> Template | None:
    """The template of a little-endian stub; None when it cannot be decoded."""
    codec = operation.codec(syntax)
    decode = (codec.response if response else codec.request).decode
    try:
        value = decode(stub)
    except DecodeError:
        return None
    if len(stub) > _LONGEST_STUB:
        return None
    walk = walked(_LeafWalk, operation, response, syntax, stub)
    if walk is None or len(walk.found) > MOST_LEAVES or len(stub) > _LONGEST_TRIED:
        return Template(stub, value, [], [])
    trial = _Trial(decode, stub, value)
    leaves = [leaf for found in walk.found if (leaf := trial.leaf(*found)) is not None]
    gaps = [gap for gap in _gaps(walk, len(stub)) if trial.ignores(*gap)]
    return Template(stub, value, leaves, gaps)


def _gaps(walk: StubWalk, size: int) -> Iterator[tuple[int, int]]:
    """What no field covers: padding, and what is behind the last field."""
    covered = np.zeros(size, bool)
    for field in walk.fields:
        covered[field.offset : field.offset + field.size] = True
    yield from _spans(~covered)


class _Trial:
    """Finds out with the codec what the octets of a stub mean."""

    def __init__(self, decode: Any, stub: bytes, value: Any) -> None:
        self._decode = decode
        self._stub = stub
        self._flat = dict(_flat(plain(value), ()))

    def _with(self, offset: int, octets: bytes) -> dict[FieldPath, Any] | None:
        stub = self._stub[:offset] + octets + self._stub[offset + len(octets) :]
        try:
            return dict(_flat(plain(self._decode(stub)), ()))
        except DecodeError:
            return None

    def leaf(self, offset: int, size: int, kind: str, signed: bool) -> Leaf | None:
        """The leaf at an offset, when any value there changes itself and nothing else."""
        own = self._stub[offset : offset + size]
        inverted = bytes(each ^ 0xFF for each in own)
        changed = self._with(offset, inverted)
        if changed is None or changed.keys() != self._flat.keys():
            return None
        paths = [path for path, value in changed.items() if value != self._flat[path]]
        if len(paths) != 1:
            return None
        leaf = Leaf(paths[0], offset, size, kind, signed)
        values = (own, inverted, bytes(size), b"\xff" * size, b"\1" + bytes(size - 1))
        return leaf if all(self._shows(leaf, each) for each in values) else None

    def _shows(self, leaf: Leaf, octets: bytes) -> bool:
        found = self._with(leaf.offset, octets)
        return found == self._flat | {leaf.path: leaf.shown(octets)}

    def ignores(self, start: int, stop: int) -> bool:
        """Whether what is between two offsets says nothing."""
        return all(
            self._with(start, each * (stop - start)) == self._flat for each in (b"\0", b"\xff")
        )


def _flat(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    """The leaves of a value as JSON has it; empty dictionaries and lists are leaves too."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(inner, (*path, name))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _flat(inner, (*path, index))
    else:
        yield path, value


def _json_pieces(value: Any, leaves: dict[FieldPath, Leaf]) -> list[str | Leaf]:
    """The JSON text of a value, cut where leaves are."""
    mark = uuid.uuid4().hex
    order = list(leaves.values())
    numbers = {leaf.path: number for number, leaf in enumerate(order)}
    text = json.dumps(_marked(value, (), numbers, mark), ensure_ascii=False)
    pieces: list[str | Leaf] = []
    for part in text.split(f'"{mark}'):
        if not pieces:
            pieces.append(part)
            continue
        number, _, rest = part.partition('"')
        leaf = order[int(number)]
        quote = "" if leaf.is_number else '"'
        pieces += [quote, leaf, quote + rest]
    return pieces


def _marked(value: Any, path: FieldPath, numbers: dict[FieldPath, int], mark: str) -> Any:
    if path in numbers:
        return f"{mark}{numbers[path]}"
    if isinstance(value, dict):
        return {k: _marked(inner, (*path, k), numbers, mark) for k, inner in value.items()}
    if isinstance(value, list):
        return [_marked(inner, (*path, n), numbers, mark) for n, inner in enumerate(value)]
    return value


def _carriers(
    value: Any, path: FieldPath = (), depth: int = IDENTIFIER_DEPTH
) -> Iterator[tuple[FieldPath, Any]]:
    """What in a decoded value may carry an identifier of a message: OBJECTIDs, and octets."""
    if isinstance(value, OBJECTID | bytes):
        yield path, value
    if not depth or isinstance(value, bytes):
        return
    if isinstance(value, Value):
        for name in value.__slots__:
            yield from _carriers(getattr(value, name, None), (*path, name), depth - 1)
    elif isinstance(value, list):
        for index, each in enumerate(value[:MOST_ELEMENTS]):
            if isinstance(each, Value | bytes | list):
                yield from _carriers(each, (*path, index), depth - 1)


class Templates:
    """All templates of a reader, by method, side and length."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], list[Template]] = {}
        self._tries: dict[tuple[Any, ...], int] = {}

    def matched(
        self,
        operation: Operation,
        syntax: TransferSyntax,
        response: bool,
        buffer: Buffer,
        places: Array,
        sizes: Array,
    ) -> Iterator[tuple[Template, Array]]:
        """Templates, and the positions of the stubs that fit; what is left over fits none."""
        for size in np.unique(sizes).tolist():
            left = np.flatnonzero(sizes == size)
            key = operation, syntax, response, size
            for template in self._known.setdefault(key, []):
                if not len(left):
                    break
                fits = template.fits(buffer, places[left])
                if fits.any():
                    yield template, left[fits]
                    left = left[~fits]
            while len(left) >= LEAST_ROWS and self._may_try(key):
                begin = int(places[left[0]])
                made = make_template(operation, syntax, response, buffer[begin : begin + size])
                if made is None:
                    left = left[1:]
                    continue
                self._known[key].append(made)
                fits = made.fits(buffer, places[left])
                yield made, left[fits]
                left = left[~fits]

    def _may_try(self, key: tuple[Any, ...]) -> bool:
        """Whether one more template may be made;"""
        self._tries[key] = self._tries.get(key, 0) + 1
        return self._tries[key] <= MOST_TEMPLATES
