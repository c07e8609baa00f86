"""Cuts a stub at its holes: the parts that change from request to request, and those around.

A stub is cut into segments. The parts of a segment are at fixed distances from its start; it ends
behind the counts of a part of variable size, which lies between it and the next one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rpcqm.codec.idl.tree import Array, String
from rpcqm.codec.ndr.trace import Aligned, Counts, Deferred, Read, Trace

EVERYWHERE = 1 << 30
"""The alignment of a segment that always starts at the same offset."""


class UnfitError(Exception):
    """A stub that has no shape."""


@dataclass(frozen=True, slots=True)
class Holes:
    """The changing parts of an operation's requests; paths are attributes of the request.

    `values` are those that a caller wants; an absent field has the value that the careful decoder
    gives it. `sizes` are the fields with the sizes of variable parts. The `ignored` fields may have
    any value. Stubs without the `given` fields have no shape.
    """

    values: tuple[str, ...]
    sizes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    given: tuple[tuple[str, object], ...] = ()

    def ignores(self, path: str) -> bool:
        """Whether a field is ignored, or is inside one that is."""
        return any(path == each or path.startswith(f"{each}.") for each in self.ignored)


class Constant(NamedTuple):
    """Octets that are always the same."""

    octets: bytes


class Hole(NamedTuple):
    """A field of fixed size; `sample` are the octets in the stub that was cut."""

    path: str
    code: str
    sample: bytes


class Skipped(NamedTuple):
    """Octets that may have any value."""

    size: int


class Count(NamedTuple):
    """A count of the elements behind the segment: `role` is "maximum", "first" or "actual"."""

    role: str
    code: str


Part = Constant | Hole | Skipped | Count


def code_of(part: Part) -> str:
    """The format of `struct` for the octets of a part."""
    match part:
        case Constant(octets):
            return f"{len(octets)}s"
        case Skipped(size):
            return f"{size}x"
    return part.code


class Variable(NamedTuple):
    """An array or a string of variable size, whose elements have `element` octets.

    `size` and `length` are the paths of the fields that give them, "" without such a field.
    `sample` are the octets in the stub that was cut.
    """

    path: str
    made: Array | String
    size: str
    length: str
    element: int
    sample: bytes


@dataclass(slots=True)
class Segment:
    """Parts in a row, from a multiple of `align` on; `behind` is the variable part that follows."""

    align: int
    parts: list[Part] = field(default_factory=list)
    behind: Variable | None = None

    def add(self, part: Part) -> None:
        """Add a part; constant octets are joined with constant ones before."""
        last = self.parts[-1] if self.parts else None
        if isinstance(part, Constant) and isinstance(last, Constant):
            self.parts[-1] = Constant(last.octets + part.octets)
        elif isinstance(part, Skipped) and isinstance(last, Skipped):
            self.parts[-1] = Skipped(last.size + part.size)
        else:
            self.parts.append(part)

    def without_end(self, size: int) -> None:
        """Take back the last octets, which are constant; raises UnfitError."""
        last = self.parts.pop() if self.parts else None
        if not isinstance(last, Constant) or len(last.octets) < size:
            raise UnfitError("counts that do not stand before what they count")
        if len(last.octets) > size:
            self.parts.append(Constant(last.octets[:-size]))

    @property
    def codes(self) -> str:
        return "".join(map(code_of, self.parts))

    def holes(self) -> Iterator[Hole]:
        return (part for part in self.parts if isinstance(part, Hole))


def cut(stub: bytes, trace: Trace, holes: Holes, word: int) -> list[Segment]:
    """The segments of a stub; the first is its head, up to the first variable part.

    `word` is the size of counts. Raises UnfitError.
    """
    cutter = _Cutter(stub, holes, word)
    for event in trace.events:
        match event:
            case Read():
                cutter.read(event)
            case Counts():
                cutter.counts = event
            case Aligned():
                cutter.aligned(event)
            case Deferred():
                cutter.deferred()
    if cutter.at != len(stub):
        raise UnfitError("octets behind the end")
    return cutter.segments


class _Cutter:
    """Cuts a stub by the events of a decoder; `at` is the place up to which it is cut."""

    def __init__(self, stub: bytes, holes: Holes, word: int) -> None:
        self.at = 0
        self.segments = [Segment(EVERYWHERE)]
        self.counts: Counts | None = None
        self._stub, self._holes = stub, holes
        self._word, self._word_code = word, "Q" if word == 8 else "I"
        self._wanted = {*holes.values, *holes.sizes}
        self._alignment: Aligned | None = None

    def aligned(self, event: Aligned) -> None:
        """Begin a segment if the next part has a larger alignment than the segment's start."""
        if event.to > self.segments[-1].align:
            before = self._alignment
            if before is None or event.to > before.to:
                self._alignment = event

    def deferred(self) -> None:
        if len(self.segments) == 1:
            self.segments.append(Segment(EVERYWHERE))

    def read(self, event: Read) -> None:
        if self._alignment is not None:
            self._begin(self._alignment)
        if event.start > self.at:
            self._constant(event.start)
        counts = self.counts if event.path and not event.code else None
        if counts is not None and counts.path == event.path and self._varies(counts):
            self._variable(event, counts)
        elif event.path in self._wanted and event.plain and event.end > event.start:
            code = event.code or f"{event.end - event.start}s"
            sample = self._stub[event.start : event.end]
            self.segments[-1].add(Hole(event.path, code, sample))
        elif event.path and self._holes.ignores(event.path) and event.plain:
            self.segments[-1].add(Skipped(event.end - event.start))
        else:
            self._constant(event.end)
        self.at = event.end

    def _begin(self, alignment: Aligned) -> None:
        """Begin a segment; an empty one is replaced."""
        if not self.segments[-1].parts and len(self.segments) > 1:
            self.segments.pop()
        self.segments.append(Segment(alignment.to))
        self.at, self._alignment = alignment.start, None

    def _constant(self, end: int) -> None:
        if end > len(self._stub):
            raise UnfitError("a stub without the last of its padding")
        self.segments[-1].add(Constant(self._stub[self.at : end]))
        self.at = end

    def _varies(self, counts: Counts) -> bool:
        """Whether a part is of variable size, and wanted."""
        if counts.path not in self._holes.values:
            return False
        made = counts.made
        sizes = [counts.size] if made.size is not None else []
        if isinstance(made, Array) and made.varying:
            sizes.append(counts.length)
        return made.conformant and set(sizes) <= set(self._holes.sizes)

    def _variable(self, event: Read, counts: Counts) -> None:
        """End the segment behind the counts of a variable part."""
        segment, made = self.segments[-1], counts.made
        if len(self.segments) == 1:
            raise UnfitError("a head of variable size")
        if isinstance(made, String) and event.element != 2:
            raise UnfitError("a string of narrow characters")
        roles = ["maximum"]
        if isinstance(made, String) or made.varying:
            roles += ["first", "actual"]
        segment.without_end(len(roles) * self._word)
        for role in roles:
            segment.add(Count(role, self._word_code))
        sample = self._stub[event.start : event.end]
        known = counts.size, counts.length, event.element, sample
        segment.behind = Variable(event.path, made, *known)
        self.segments.append(Segment(1))
