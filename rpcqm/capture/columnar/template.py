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
from rpcqm.capture.columnar.record_batch import Array, Buffer, distinct
from rpcqm.capture.columnar.texts import (
    Text,
    column,
    decimal,
    guid_text,
    hexadecimal,
    octets_at,
)
from rpcqm.capture.conversation.subjects import IDENTIFIER_DEPTH, MOST_ELEMENTS
from rpcqm.capture.ndr_fields import StubWalk, walked
from rpcqm.capture.values import plain
from rpcqm.codec.idl.tree import Array as ArrayType
from rpcqm.codec.idl.tree import ContextHandleType, Guid, Integer, Type
from rpcqm.codec.interface import Operation, TransferSyntax, Value
from rpcqm.codec.types.mqmq import OBJECTID

FieldPath = tuple[str | int, ...]

Method = tuple[Operation, TransferSyntax, bool]
"""A method in a transfer syntax, and whether its responses are meant."""

MOST_LEAVES = 128
"""Each leaf costs several decodings: with more, only stubs that are equal share a template."""
MOST_TEMPLATES = 32
"""Of one method, side and length; what fits none of them is decoded by itself."""
LEAST_ROWS = 8
"""For fewer stubs a template is not worth making."""
_LOOKED_AT = 16
"""Where so many rows are equal, all may be."""
_FETCHED = 256
"""How many octets at the beginning of stubs are fetched at once: most fields are there."""
_LONGEST_STUB = 1 << 20
"""Longer stubs are decoded by themselves: few of them are alike."""
_LONGEST_TRIED = 1 << 14
"""Leaves of longer stubs are not tried: each takes a decoding of the whole."""
_NUMBER, _GUID, _OCTETS = "number", "guid", "octets"


class Stubs:
    """Stubs of one size at some places of a buffer; what stands at their begin is fetched once."""

    __slots__ = ("_begin", "buffer", "places", "size")

    def __init__(self, buffer: Buffer, places: Array, size: int) -> None:
        self.buffer = buffer
        self.places = places
        self.size = size
        self._begin: Array | None = None

    def __len__(self) -> int:
        return len(self.places)

    def one(self, row: int) -> bytes:
        """The octets of one stub."""
        begin = int(self.places[row])
        return self.buffer[begin : begin + self.size]

    def chosen(self, rows: Array) -> "Stubs":
        """Some of the stubs."""
        if len(rows) == len(self):
            return self
        made = Stubs(self.buffer, self.places[rows], self.size)
        if self._begin is not None:
            made._begin = self._begin[rows]
        return made

    def octets(self, offset: int, size: int) -> Array:
        """`size` octets at an offset of each stub, as rows."""
        end = offset + size
        if end > _FETCHED:
            return octets_at(self.buffer, self.places + offset, size)
        if self._begin is None:
            self._begin = octets_at(self.buffer, self.places, min(self.size, _FETCHED))
        return self._begin[:, offset:end]

    def numbers(self, offset: int, code: str) -> Array:
        """The number at an offset of each stub; `code` is its numpy type."""
        octets = np.ascontiguousarray(self.octets(offset, np.dtype(code).itemsize))
        return octets.view(code)[:, 0]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field that may have any value; `path` leads to it in the decoded value."""

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

    def text(self, stubs: Stubs) -> Text | str:
        """The values as JSON has them; a constant if they are all the same."""
        if self.kind == _NUMBER:
            numbers = stubs.numbers(self.offset, self.code)
            same = (numbers == numbers[0]).all()
            return str(int(numbers[0])) if same else decimal(numbers)
        octets = stubs.octets(self.offset, self.size)
        if (octets[:_LOOKED_AT] == octets[0]).all() and (octets == octets[0]).all():
            return str(self.shown(octets[0].tobytes()))
        return guid_text(octets) if self.kind == _GUID else hexadecimal(octets)


class _LeafWalk(StubWalk):
    """Walks through a stub and notes what could be a leaf."""

    def __init__(self, stub: bytes, wire: Any) -> None:
        super().__init__(stub, wire)
        self.found: list[tuple[int, int, str, bool]] = []

    def scalar(self, made: Type, path: str) -> None:
        super().scalar(made, path)
        kind = {Integer: _NUMBER, Guid: _GUID, ContextHandleType: _OCTETS}.get(type(made))
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
        self, stub: bytes, value: Value, leaves: list[Leaf], ignored: list[tuple[int, int]]
    ) -> None:
        self.value = value
        self.leaves = leaves
        self.size = len(stub)
        fixed = np.ones(len(stub), bool)
        for start, stop in ignored:
            fixed[start:stop] = False
        for leaf in leaves:
            fixed[leaf.offset : leaf.offset + leaf.size] = False
        self._fixed = list(_words(stub, fixed))
        self._by_path = {leaf.path: leaf for leaf in leaves}
        self.carriers = list(_carriers(value))
        self._pieces = _json_pieces(plain(value), self._by_path)

    def fits(self, stubs: Stubs) -> Array:
        """Which of some stubs (of this size) have this shape."""
        found = np.ones(len(stubs), bool)
        for offset, code, value in self._fixed:
            found &= stubs.numbers(offset, code) == value
        return found

    @property
    def counted_leaves(self) -> list[Leaf]:
        """The leaves with numbers that a listing shows: sizes, and elements of lists."""
        numbers = (leaf for leaf in self.leaves if leaf.is_number)
        return [n for n in numbers if n.path[-1] == "SectionSize" or isinstance(n.path[-1], int)]

    def leaf(self, *path: str | int) -> Leaf | None:
        """The leaf at a path, if the value there is one."""
        return self._by_path.get(path)

    def json(self, stubs: Stubs) -> Text:
        """The parameters of stubs as JSON."""
        parts = [part if isinstance(part, str) else part.text(stubs) for part in self._pieces]
        return column(parts, len(stubs))


def _words(stub: bytes, fixed: Array) -> Iterator[tuple[int, str, int]]:
    """The numbers that the octets of a mask make: offset, type and value, as wide as they can."""
    for start, stop in _spans(fixed):
        at = start
        while at < stop:
            size = next(n for n in (8, 4, 2, 1) if at + n <= stop)
            yield at, f"<u{size}", int.from_bytes(stub[at : at + size], "little")
            at += size


def _spans(mask: Array) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def make_template(
    operation: Operation, syntax: TransferSyntax, response: bool, stub: bytes
) -> Template | None:
    """The template of a little-endian stub; None if the stub cannot be decoded."""
    codec = operation.codec(syntax)
    decode = (codec.response if response else codec.request).decode
    try:
        value = decode(stub)
    except DecodeError:
        # Such a stub is decoded by itself later, and its error told then.
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
    """The offsets of octets that no field covers: padding, and what is behind the last field."""
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
            # The octets that were tried mean something else to the codec.
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
        """Whether the octets between two offsets change nothing in the decoded value."""
        return all(
            self._with(start, each * (stop - start)) == self._flat for each in (b"\0", b"\xff")
        )


def _flat(value: object, path: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    """The leaves of a value as JSON has it; empty dictionaries and lists are leaves too."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(inner, (*path, name))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _flat(inner, (*path, index))
    else:
        yield path, value


def _json_pieces(value: object, leaves: dict[FieldPath, Leaf]) -> list[str | Leaf]:
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


def _marked(value: object, path: FieldPath, numbers: dict[FieldPath, int], mark: str) -> Any:
    if path in numbers:
        return f"{mark}{numbers[path]}"
    if isinstance(value, dict):
        return {k: _marked(inner, (*path, k), numbers, mark) for k, inner in value.items()}
    if isinstance(value, list):
        return [_marked(inner, (*path, n), numbers, mark) for n, inner in enumerate(value)]
    return value


def _carriers(
    value: object, path: FieldPath = (), depth: int = IDENTIFIER_DEPTH
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
        self._known: dict[tuple[object, ...], list[Template]] = {}
        self._tries: dict[tuple[object, ...], int] = {}

    def matched(
        self,
        operation: Operation,
        syntax: TransferSyntax,
        response: bool,
        buffer: Buffer,
        places: Array,
        sizes: Array,
    ) -> Iterator[tuple[Template, Array, Stubs]]:
        """Each template with the positions of the stubs that fit it, and these stubs.

        A stub that fits no template is in none of the results.
        """
        for size in distinct(sizes):
            rows = np.flatnonzero(sizes == size)
            stubs = Stubs(buffer, places[rows], size)
            yield from self._of_size((operation, syntax, response), stubs, rows)

    def _of_size(
        self, method: Method, stubs: Stubs, rows: Array
    ) -> Iterator[tuple[Template, Array, Stubs]]:
        known = self._known.setdefault((*method, stubs.size), [])
        number = 0
        while len(rows) and (number < len(known) or self._learnt(method, stubs, known)):
            fits = known[number].fits(stubs)
            number += 1
            if fits.any():
                mine = np.flatnonzero(fits)
                yield known[number - 1], rows[mine], stubs.chosen(mine)
            rest = np.flatnonzero(~fits)
            rows, stubs = rows[rest], stubs.chosen(rest)

    def _learnt(self, method: Method, stubs: Stubs, known: list[Template]) -> bool:
        """Make a template of one of some stubs that fit no other; whether that succeeded."""
        key = (*method, stubs.size)
        for row in range(len(stubs) - LEAST_ROWS + 1):
            self._tries[key] = self._tries.get(key, 0) + 1
            if self._tries[key] > MOST_TEMPLATES:
                return False
            made = make_template(*method, stubs.one(row))
            if made is not None:
                known.append(made)
                return True
        return False
