"""Stubs like one that was read before.

A shape remembers an outcome of the careful decoder, which stays the only definition of what a stub
says: the octets around the values that change from request to request. The values of the next stub
with the same octets there are cut out, without making a request.

A shape is made by generating a function of what `fast.formats.stub_cut` has found. Then the
careful decoder must give the same values, with random octets in each hole and things of other
sizes in those of variable size; where it does not, there is no shape.
"""

import operator
import struct
from collections.abc import Callable, Iterator
from typing import Any

from rpcqm.codec.idl.tree import String
from rpcqm.codec.ndr.source import Source
from rpcqm.codec.ndr.trace import Tracing
from rpcqm.fast.formats.stub_check import agrees, value_at
from rpcqm.fast.formats.stub_cut import (
    EVERYWHERE,
    Constant,
    Count,
    Hole,
    Holes,
    Segment,
    Skipped,
    UnfitError,
    Variable,
    cut,
)
from rpcqm.fast.formats.stub_exact import Matched, exact

__all__ = ["Head", "Holes", "StubShape"]

Fields = tuple[Any, ...]
Values = tuple[Any, ...]

MOST_CONSTANT = 8_192
"""What is the same in all requests of one shape.

Of the stubs of MSMQ's own clients some hundreds are constant.

Bound `rpc.request_shape_constants` [octets]: it has no shape, and is decoded each time.
"""


class Head:
    """The part of fixed size with which all stubs of an operation begin: it finds their shapes."""

    __slots__ = ("codes", "key", "size", "unpack")

    def __init__(self, segment: Segment) -> None:
        packer = struct.Struct(f"<{segment.codes}")
        parts = [part for part in segment.parts if not isinstance(part, Skipped)]
        constants = [at for at, part in enumerate(parts) if isinstance(part, Constant)]
        self.codes, self.size, self.unpack = segment.codes, packer.size, packer.unpack_from
        self.key: Callable[[Fields], object] = operator.itemgetter(*constants) if constants else len


class StubShape:
    """What stubs of one shape have in common, and where their holes are.

    `key` finds it, and others that differ only behind their heads. `attached` holds what a door has
    worked out for the shape, and goes with it. `StubShapes` sets `used` when it finds the shape,
    `proved` and `is_old` when it looks for shapes to forget. `matched` does what `values` does, for
    the fields of a head that has the shape's key.
    """

    __slots__ = (
        "_paths",
        "_segments",
        "attached",
        "head",
        "is_old",
        "key",
        "matched",
        "proved",
        "used",
    )

    def __init__(
        self, stub: bytes, segments: list[Segment], paths: tuple[str, ...], matched: "_Matched"
    ) -> None:
        self._segments, self._paths = segments, paths
        self.head = Head(segments[0])
        self.key = self.head.key(self.head.unpack(stub))
        self.used = self.proved = self.is_old = False
        self.attached: object = None
        self.matched = matched

    @classmethod
    def learn(cls, tracing: Tracing, stub: bytes, holes: Holes) -> "StubShape | None":
        """The shape of a stub; None where it has none that holds.

        `tracing` is the operation's, in the syntax of the stub. Raises DecodeError.
        """
        try:
            return cls._learned(tracing, stub, holes)
        except UnfitError:
            return None

    @classmethod
    def _learned(cls, tracing: Tracing, stub: bytes, holes: Holes) -> "StubShape | None":
        trace = tracing.trace(stub)
        request = trace.request
        if any(value_at(request, path) != value for path, value in holes.given):
            return None
        segments = cut(stub, trace, holes, tracing.wire.word)
        if sum(len(each.octets) for each in _constants(segments)) > MOST_CONSTANT:
            return None
        constants = tuple(value_at(request, path) for path in holes.values)
        matched = _Generator(segments, holes, constants, request).function()
        shape = cls(stub, segments, holes.values, matched)
        return shape if agrees(tracing.decode, stub, holes, segments, shape.values) else None

    def values(self, stub: bytes) -> Values | None:
        """The values of the holes in their order; None for a stub that is not of this shape.

        Arrays and strings of characters are their octets, UUIDs too.
        """
        head = self.head
        if len(stub) < head.size:
            return None
        fields = head.unpack(stub)
        return self.matched(stub, fields) if head.key(fields) == self.key else None

    def of_size(self, stub: bytes, values: Values) -> Matched:
        """As `values`, for stubs as long as one whose values are known; it may miss some."""
        return exact(stub, self._segments, self._paths, values)


_Matched = Callable[[bytes, Fields], Values | None]


def _constants(segments: list[Segment]) -> Iterator[Constant]:
    return (part for each in segments for part in each.parts if isinstance(part, Constant))


class _Generator:
    """Writes the function that takes the values out of stubs whose heads have a shape's key.

    Locals: `o` is up to where the stub is looked at, `w…` are values, `s…` sizes, `k…` constants.
    """

    def __init__(
        self, segments: list[Segment], holes: Holes, constants: Values, request: object
    ) -> None:
        self._segments, self._holes = segments, holes
        self._constants, self._request = constants, request
        self._names: dict[str, Any] = {"error": struct.error}
        self._known: dict[str, str] = {}
        self._source = Source()

    def function(self) -> _Matched:
        """The function, compiled; raises UnfitError."""
        with self._source.block("def matched(stub, fields):"):
            with self._source.block("try:"):
                self._head(self._segments[0])
                self._others()
            with self._source.block("except error:"):
                self._source.line("return None")
            self._source.line(f"return ({''.join(f'{each}, ' for each in self._values())})")
        exec(compile("\n".join(self._source.lines), "<shape>", "exec"), self._names)
        matched: _Matched = self._names["matched"]
        return matched

    # names

    def _global(self, value: object) -> str:
        name = f"k{len(self._names)}"
        self._names[name] = value
        return name

    def _local(self, path: str) -> str:
        """The local of a field; one that comes twice is none that can be told."""
        if path in self._known:
            raise UnfitError("a field that comes twice")
        self._known[path] = f"w{len(self._known)}"
        return self._known[path]

    def _values(self) -> Iterator[str]:
        for path, constant in zip(self._holes.values, self._constants, strict=True):
            yield self._known.get(path) or self._global(constant)

    # lines

    def _refuse(self, conditions: list[str]) -> None:
        if conditions:
            with self._source.block(f"if {' or '.join(conditions)}:"):
                self._source.line("return None")

    def _head(self, segment: Segment) -> None:
        """Name the holes of the head."""
        names: list[str] = []
        conditions: list[str] = []
        for part in segment.parts:
            if isinstance(part, Hole):
                names.append(self._local(part.path))
                conditions += self._unneeded(part.path)
            elif not isinstance(part, Skipped):
                names.append("_")
        if any(name != "_" for name in names):
            self._source.line(f"{', '.join(names)}, = fields")
        self._refuse(conditions)

    def _unneeded(self, path: str) -> Iterator[str]:
        """That a size of what is not there, or is constant, has another value."""
        if path not in self._needed():
            yield f"{self._known[path]} != {self._global(value_at(self._request, path))}"

    def _needed(self) -> set[str]:
        """The fields that are values, or that counts are compared with."""
        behind = [each.behind for each in self._segments if each.behind]
        return {*self._holes.values, *(e.size for e in behind), *(e.length for e in behind)}

    def _others(self) -> None:
        """Go through what is behind the head; the stub must end where the last segment does."""
        at: int | None = struct.calcsize(f"<{self._segments[0].codes}")
        for segment in self._segments[1:]:
            at = self._segment(segment, at)
        self._refuse([f"len(stub) != {'o' if at is None else at}"])

    def _segment(self, segment: Segment, at: int | None) -> int | None:
        """Compare a segment that starts at `at`, or at `o`; tell where the next one starts."""
        align, size = segment.align, struct.calcsize(f"<{segment.codes}")
        if at is None and 1 < align < EVERYWHERE:
            self._source.line(f"o = o + {align - 1} & {-align}")
        elif at is not None and align < EVERYWHERE:
            at = at + align - 1 & -align
        counts = self._parts(segment, "o" if at is None else str(at))
        end = at + size if at is not None else None
        if segment.behind is None:
            if end is None:
                self._source.line(f"o += {size}")
            return end
        self._variable(segment.behind, counts, f"o + {size}" if end is None else str(end))
        return None

    def _parts(self, segment: Segment, at: str) -> dict[str, str]:
        """Unpack a segment and compare its constants; the locals of counts by their roles."""
        names: list[str] = []
        conditions, counts = [], {}
        for part in segment.parts:
            match part:
                case Constant():
                    names.append(f"c{len(names)}")
                    conditions.append(f"{names[-1]} != {self._global(part.octets)}")
                case Hole():
                    names.append(self._local(part.path))
                    conditions += self._unneeded(part.path)
                case Count():
                    names.append(f"n{len(names)}")
                    counts[part.role] = names[-1]
        if segment.parts:
            unpack = self._global(struct.Struct(f"<{segment.codes}").unpack_from)
            target = f"{', '.join(names)}, = " if names else ""
            self._source.line(f"{target}{unpack}(stub, {at})")
        self._refuse(conditions)
        return counts

    def _variable(self, behind: Variable, counts: dict[str, str], start: str) -> None:
        """Check the counts as the careful decoder does, and cut out what they count."""
        maximum = counts["maximum"]
        actual = counts.get("actual", maximum)
        self._refuse(list(self._wrong_counts(behind, counts)))
        self._source.line(f"b = {start}")
        size = actual if behind.element == 1 else f"{actual} * {behind.element}"
        self._source.line(f"o = b + {size}")
        value = self._local(behind.path)
        self._source.line(f"{value} = stub[b:o]")
        if isinstance(behind.made, String):
            self._refuse(["o > len(stub)"])
            self._source.line(f"t = str({value}, 'utf-16-le', 'surrogatepass')")
            self._refuse(["t.find('\\0') != len(t) - 1"])

    def _wrong_counts(self, behind: Variable, counts: dict[str, str]) -> Iterator[str]:
        maximum, limits = counts["maximum"], behind.made.limits
        if limits:
            yield f"not {limits[0]} <= {maximum} <= {limits[1]}"
        if behind.made.size is not None:
            yield f"{maximum} != {self._size(behind.size)}"
        if "actual" not in counts:
            return
        yield f"{counts['first']} or {counts['actual']} > {maximum}"
        if isinstance(behind.made, String):
            yield f"not {counts['actual']}"
        else:
            yield f"{counts['actual']} != {self._size(behind.length)}"

    def _size(self, path: str) -> str:
        """The local of a field before it that a count is compared with."""
        if path not in self._known:
            raise UnfitError("a size that is not told before")
        return self._known[path]
