"""The shapes of one operation's stubs in one syntax: found by their heads, learned from misses."""

import sys
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from rpcqm.base.errors import DecodeError
from rpcqm.codec.ndr.trace import Tracing
from rpcqm.fast.formats.stub_exact import Matched
from rpcqm.fast.formats.stub_shape import Head, Holes, StubShape
from rpcqm.fast.learned import Learned

__all__ = ["Holes", "StubShape", "StubShapes"]

Values = tuple[Any, ...]

MOST = 32
"""Shapes of one operation's requests that are known again without decoding them.

Applications send few kinds of messages, each with few of its options.

Bound `rpc.request_shapes` [shapes]: one that was not found lately is forgotten, and such requests
are decoded again.
"""
MOST_ALIKE = 8
"""Shapes that differ only behind the part of fixed size.

The delivery and the acknowledgements of messages stand behind it, and applications vary them
little.

Bound `rpc.alike_request_shapes` [shapes]: one that was not found lately is forgotten, and such
requests are decoded again.
"""
LONGEST = 1 << 18
"""Longest stub that a shape is learned from.

Longer ones are found all the same.

Bound `rpc.request_shape_stub` [octets]: nothing is learned from it, and others of its shape are
decoded until one is shorter.
"""
_MOST_SEEN = 64
"""Heads that are counted before they are learned."""
_MISSES_PER_LESSON = 16_384
"""Learning takes as long as some hundred calls: beyond the first MOST, one of so many misses is
learned from, so that nobody makes it their work."""
MOST_SIZES = 32
"""Lengths of one operation's stubs whose values are taken out in one step.

Bound `rpc.request_shape_sizes` [lengths]: the first that was learned is forgotten, and such stubs
take a few more steps.
"""
_FOUND_PER_SIZE = 4_096
"""Beyond the first MOST_SIZES, one length is learned for so many stubs that were found."""
_COUNTED = 7
"""One of eight stubs that were found is compared in length with the one before."""
_PATIENCE, _LOOKED_AT = 256, 7
"""After _PATIENCE misses in a row that taught nothing, one of _LOOKED_AT is looked at, so that a
client that never repeats does not pay for shapes."""

_SWEPT = 256
"""After so many misses, shapes that no stub has had since they were learned are marked, and the
second time they are forgotten: each of them would be tried for a client that never repeats."""


class _Size(NamedTuple):
    """A shape, and what takes the values out of its stubs of one length."""

    shape: StubShape
    matched: Matched


class StubShapes:
    """At most MOST shapes; those that are not used go first.

    `trace` makes the tracing decoder when it is needed.
    """

    __slots__ = (
        "_alike",
        "_found",
        "_head",
        "_holes",
        "_key",
        "_last_size",
        "_lessons",
        "_misses",
        "_patient",
        "_seen",
        "_shapes",
        "_size",
        "_sizes",
        "_sizes_learned",
        "_trace",
        "_tracing",
        "_unpack",
    )

    def __init__(self, trace: Callable[[], Tracing], holes: Holes) -> None:
        self._trace, self._holes = trace, holes
        self._tracing: Tracing | None = None
        self._head: Head | None = None
        self._size = sys.maxsize
        self._shapes: list[StubShape] = []
        self._alike: dict[object, list[StubShape]] = {}
        self._seen: Learned[Hashable, tuple[int, int]] = Learned(_MOST_SEEN)
        self._misses = self._lessons = 0
        self._patient = _PATIENCE
        self._sizes: dict[int, _Size] = {}
        self._found = self._last_size = self._sizes_learned = 0

    def __len__(self) -> int:
        return len(self._shapes)

    def find(self, stub: bytes) -> tuple[StubShape, Values] | None:
        """The shape of a stub, and its values in the order of the holes; None if it is unknown."""
        known = self._sizes.get(len(stub))
        if known is not None:
            shape, matched = known
            values = matched(stub)
            if values is not None:
                shape.used = True
                return shape, values
        if len(stub) < self._size:
            return None
        fields = self._unpack(stub)
        for shape in self._alike.get(self._key(fields), ()):
            values = shape.matched(stub, fields)
            if values is not None:
                shape.used = True
                self._found += 1
                if not self._found & _COUNTED:
                    self._note_size(shape, stub, values)
                return shape, values
        return None

    def _note_size(self, shape: StubShape, stub: bytes, values: Values) -> None:
        """Learn a length that comes again."""
        size, before = len(stub), self._last_size
        self._last_size = size
        budget = MOST_SIZES + self._found // _FOUND_PER_SIZE
        if size != before or size > LONGEST or self._sizes_learned >= budget:
            return
        self._sizes_learned += 1
        self._sizes.pop(size, None)
        if len(self._sizes) >= MOST_SIZES:
            del self._sizes[next(iter(self._sizes))]
        self._sizes[size] = _Size(shape, shape.of_size(stub, values))

    def note(self, stub: bytes) -> StubShape | None:
        """Note a stub that `find` did not know and that the careful path has accepted.

        The second stub with the same head teaches a shape, which is returned. After every lesson
        a head needs twice as many misses for the next one: there are stubs that never repeat.
        """
        self._misses += 1
        if not self._misses % _SWEPT:
            self._sweep()
        if self._head is None:
            again = self._misses > 1 and self._misses & self._misses - 1 == 0
            return self._learned(stub) if again else None
        if (self._misses > self._patient and self._misses % _LOOKED_AT) or len(stub) < self._size:
            return None
        key = self._key(self._unpack(stub))
        seen, needed = self._seen.find(key) or (0, 2)
        if seen + 1 < needed:
            self._seen.keep(key, (seen + 1, needed))
            return None
        self._seen.keep(key, (0, min(2 * needed, _MISSES_PER_LESSON)))
        return self._learned(stub)

    def _learned(self, stub: bytes) -> StubShape | None:
        """The shape of a stub, which is kept; None if it has none, or there have been many."""
        if len(stub) > LONGEST or self._lessons >= MOST + self._misses // _MISSES_PER_LESSON:
            return None
        self._lessons += 1
        self._patient = self._misses + _PATIENCE
        if self._tracing is None:
            self._tracing = self._trace()
        try:
            shape = StubShape.learn(self._tracing, stub, self._holes)
        except DecodeError:
            return None
        return shape if shape is not None and self._keep(shape) else None

    def _keep(self, shape: StubShape) -> bool:
        head = self._head or shape.head
        if shape.head.codes != head.codes:
            return False
        if self._head is None:
            self._head, self._unpack, self._key = head, head.unpack, head.key
            self._size = head.size
        shape.head = head
        alike = self._alike.setdefault(shape.key, [])
        alike.append(shape)
        self._shapes.append(shape)
        if len(alike) > MOST_ALIKE:
            self._forget_one_of(alike)
        elif len(self._shapes) > MOST:
            self._forget_one_of(self._shapes)
        return True

    def _forget_one_of(self, shapes: list[StubShape]) -> None:
        """Forget the oldest that was not found since the last time; each has a second chance."""
        for shape in shapes[:-1]:
            if not shape.used:
                break
            shape.used, shape.proved = False, True
        else:
            shape = shapes[0]
        self._forget(shape)

    def _sweep(self) -> None:
        """Forget what has never been found; what has been learned lately has another chance."""
        for shape in list(self._shapes):
            if shape.used or shape.proved:
                continue
            if shape.is_old:
                self._forget(shape)
            shape.is_old = True

    def _forget(self, shape: StubShape) -> None:
        self._shapes.remove(shape)
        self._sizes = {size: each for size, each in self._sizes.items() if each.shape is not shape}
        alike = self._alike[shape.key]
        alike.remove(shape)
        if not alike:
            del self._alike[shape.key]
