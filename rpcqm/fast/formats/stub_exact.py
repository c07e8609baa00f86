"""Stubs of a shape that are also of one size: all of their holes are at fixed places.

The messages of an application are often as long as each other. Then counts are constant, too, and
one look at the whole stub gives its values. A stub that fits here fits the shape, and has the same
values there; one that does not may fit the shape all the same.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rpcqm.codec.idl.tree import String
from rpcqm.codec.ndr.source import Source
from rpcqm.fast.formats.stub_cut import EVERYWHERE, Count, Hole, Segment, Skipped, Variable, code_of

Values = tuple[Any, ...]
Matched = Callable[[bytes], Values | None]


class _Place(NamedTuple):
    """Octets in a row: a value with its path, or constant octets without one."""

    code: str
    path: str = ""
    text: bool = False


class _Skip(NamedTuple):
    """Octets in a row that may have any value."""

    size: int


def exact(stub: bytes, segments: list[Segment], paths: tuple[str, ...], values: Values) -> Matched:
    """A function that takes the values out of stubs as long as this one.

    The stub fits the segments. `paths` are those of the holes, `values` the shape's values for this
    stub.
    """
    places = list(_joined(_places(stub, segments, paths)))
    return _function(stub, places, dict(zip(paths, values, strict=True)))


def _places(
    stub: bytes, segments: list[Segment], paths: tuple[str, ...]
) -> Iterator[_Place | _Skip]:
    """The places of a stub, from its first octet to the last."""
    sizes = {path for each in segments if each.behind for path in _sizes(each.behind)}
    fields = set(paths) - sizes
    at = 0
    for segment in segments:
        gap = -at % segment.align if segment.align < EVERYWHERE else 0
        yield _Skip(gap)
        at += gap
        counts: dict[str, int] = {}
        for part in segment.parts:
            code = code_of(part)
            size = struct.calcsize(f"<{code}")
            match part:
                case Skipped():
                    yield _Skip(size)
                case Hole(path) if path in fields:
                    yield _Place(code, path)
                case Count(role):
                    counts[role] = int.from_bytes(stub[at : at + size], "little")
                    yield _Place(f"{size}s")
                case _:
                    yield _Place(f"{size}s")
            at += size
        if segment.behind is not None:
            length = counts.get("actual", counts["maximum"]) * segment.behind.element
            yield _Place(f"{length}s", segment.behind.path, isinstance(segment.behind.made, String))
            at += length


def _sizes(behind: Variable) -> Iterator[str]:
    return (path for path in (behind.size, behind.length) if path)


def _joined(places: Iterator[_Place | _Skip]) -> Iterator[_Place | _Skip]:
    """The same with neighbouring constant octets joined."""
    constant = 0
    for place in places:
        if isinstance(place, _Skip) and not place.size:
            continue
        if isinstance(place, _Place) and not place.path:
            constant += struct.calcsize(f"<{place.code}")
            continue
        if constant:
            yield _Place(f"{constant}s")
        constant = 0
        yield place
    if constant:
        yield _Place(f"{constant}s")


def _function(stub: bytes, places: list[_Place | _Skip], known: dict[str, Any]) -> Matched:
    """Compile it; its locals `w…` are values, `c…` are compared with the constants `k…`."""
    packer = struct.Struct("<" + "".join(map(_code, places)))
    found = iter(packer.unpack(stub))
    names: dict[str, Any] = {"unpack": packer.unpack}
    targets, conditions, texts, told = [], [], [], {}
    for number, place in enumerate(places):
        if isinstance(place, _Skip):
            continue
        octets = next(found)
        targets.append(f"w{number}" if place.path else f"c{number}")
        if place.path:
            told[place.path] = targets[-1]
            texts += [targets[-1]] if place.text else []
        else:
            names[f"k{number}"] = octets
            conditions.append(f"c{number} != k{number}")
    names |= {f"v{number}": value for number, value in enumerate(known.values())}
    result = [told.get(path, f"v{number}") for number, path in enumerate(known)]
    return _compiled(targets, conditions, texts, result, names)


def _code(place: _Place | _Skip) -> str:
    return f"{place.size}x" if isinstance(place, _Skip) else place.code


def _compiled(
    targets: list[str],
    conditions: list[str],
    texts: list[str],
    result: list[str],
    names: dict[str, Any],
) -> Matched:
    source = Source()
    with source.block("def matched(stub):"):
        if targets:
            source.line(f"{''.join(f'{each}, ' for each in targets)}= unpack(stub)")
        for text in texts:
            source.line(f"t = str({text}, 'utf-16-le', 'surrogatepass')")
            conditions.append("t.find('\\0') != len(t) - 1")
            _refuse(source, conditions)
            conditions = []
        _refuse(source, conditions)
        source.line(f"return ({''.join(f'{each}, ' for each in result)})")
    exec(compile("\n".join(source.lines), "<exact shape>", "exec"), names)
    matched: Matched = names["matched"]
    return matched


def _refuse(source: Source, conditions: list[str]) -> None:
    if conditions:
        with source.block(f"if {' or '.join(conditions)}:"):
            source.line("return None")
