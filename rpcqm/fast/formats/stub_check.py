"""Checks a shape of stubs against the careful decoder."""

import struct
from collections.abc import Callable
from random import Random
from typing import Any
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.codec.idl.tree import String
from rpcqm.codec.ndr.values import guid
from rpcqm.fast.formats.stub_cut import (
    EVERYWHERE,
    Constant,
    Count,
    Hole,
    Holes,
    Part,
    Segment,
    Variable,
    code_of,
)

_SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 31, 4_095)
"""Numbers of elements that are tried for variable sizes: each residue modulo eight, and more."""
_USUAL = 6
_MOST_SPARE = 5
"""Elements by which a size exceeds a length in trials."""

Octets = dict[str, bytes]
Told = tuple[Any, ...]


def value_at(request: object, path: str) -> object:
    """The field of a request at a path; None where something before it is absent."""
    value = request
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def agrees(
    decode: Callable[[bytes], Any],
    stub: bytes,
    holes: Holes,
    segments: list[Segment],
    values: Callable[[bytes], Told | None],
) -> bool:
    """Whether the careful decoder and a shape agree on stubs with other values."""
    writer, paths = _Writer(segments, Random(len(stub))), []
    for segment in segments:
        paths += [hole.path for hole in segment.holes() if hole.path in holes.values]
        paths += [segment.behind.path] if segment.behind else []
    trials = [({path}, _USUAL) for path in paths] + [(set(paths), size) for size in _SIZES]
    if values(stub) is None:
        return False
    try:
        for changed, size in trials:
            other, octets = writer.written(changed, size)
            request, expected = decode(other), decode(stub)
            if not _same(holes, values(other), request, expected, octets, writer):
                return False
    except DecodeError:
        return False
    return True


def _same(
    holes: Holes,
    told: Told | None,
    request: object,
    expected: object,
    octets: Octets,
    writer: "_Writer",
) -> bool:
    """Whether the decoded values are the written ones, and the rest of the request is unchanged."""
    for path, raw in octets.items():
        _put(expected, path, writer.decoded(path, raw, value_at(expected, path)))
    for path in holes.ignored:
        if value_at(expected, path) is not None:
            _put(expected, path, value_at(request, path))
    if told is None or request != expected:
        return False
    pairs = zip(holes.values, told, strict=True)
    return all(
        writer.decoded(path, value, value_at(expected, path)) == value_at(request, path)
        for path, value in pairs
    )


def _put(request: object, path: str, value: object) -> None:
    owner, _, name = path.rpartition(".")
    setattr(value_at(request, owner) if owner else request, name, value)


class _Writer:
    """Writes stubs like the one that was cut into segments, with random octets in its holes."""

    def __init__(self, segments: list[Segment], random: Random) -> None:
        self._segments, self._random = segments, random
        self._variables = {each.behind.path: each.behind for each in segments if each.behind}
        self._fixed = {hole.path: hole for each in segments for hole in each.holes()}

    def decoded(self, path: str, raw: object, old: object) -> object:
        """The careful decoder's value for the octets of a hole; `old` is another such value."""
        if not isinstance(raw, bytes) or isinstance(old, bytes):
            return raw
        if isinstance(old, UUID):
            return guid(raw)
        if isinstance(old, str):
            text = raw.decode("utf-16-le", "surrogatepass")
            known = self._variables.get(path)
            return text[:-1] if known and isinstance(known.made, String) else text
        return struct.unpack(f"<{self._fixed[path].code}", raw)[0]

    def written(self, changed: set[str], size: int) -> tuple[bytes, Octets]:
        """A stub and the contents of its holes; the `changed` hole has so many elements."""
        octets = {hole.path: hole.sample for hole in self._fixed.values()}
        for path in changed & octets.keys():
            octets[path] = self._random.randbytes(len(octets[path]))
        for path, variable in self._variables.items():
            octets[path] = self._elements(variable, size) if path in changed else variable.sample
            self._put_sizes(variable, octets)
        stub = bytearray()
        for segment in self._segments:
            if segment.align < EVERYWHERE:
                stub += self._random.randbytes(-len(stub) % segment.align)
            for part in segment.parts:
                stub += self._part(part, octets, segment.behind)
            stub += octets[segment.behind.path] if segment.behind else b""
        return bytes(stub), octets

    def _elements(self, variable: Variable, size: int) -> bytes:
        if not isinstance(variable.made, String):
            return self._random.randbytes(size * variable.element)
        characters = (self._random.randrange(1, 0xD800) for _ in range(size - 1))
        return "".join(map(chr, [*characters, 0])).encode("utf-16-le")

    def _put_sizes(self, variable: Variable, octets: Octets) -> None:
        """Put the sizes of a variable part into their fields; a size may exceed a length."""
        count = len(octets[variable.path]) // variable.element
        for path in {variable.size, variable.length} & octets.keys():
            octets[path] = count.to_bytes(len(octets[path]), "little")
        if variable.size != variable.length != "" and variable.size in octets:
            spare = count + self._random.randint(0, _MOST_SPARE)
            octets[variable.size] = spare.to_bytes(len(octets[variable.size]), "little")

    def _part(self, part: Part, octets: Octets, behind: Variable | None) -> bytes:
        match part:
            case Constant():
                return part.octets
            case Hole():
                return octets[part.path]
            case Count() if behind is not None:
                return self._count(part, octets, behind)
        return self._random.randbytes(struct.calcsize(f"<{code_of(part)}"))

    def _count(self, count: Count, octets: Octets, behind: Variable) -> bytes:
        width = struct.calcsize(f"<{count.code}")
        if count.role == "first":
            return bytes(width)
        if count.role == "maximum" and behind.size in octets:
            return octets[behind.size].ljust(width, b"\0")
        number = len(octets[behind.path]) // behind.element
        return number.to_bytes(width, "little")
