"""The answer to rpc_ACReceiveMessageEx, filled into constant octets.

`_received_buffer.fill` and the codec stay the only definition of the answer: their result for a
message with random values shows the places of these. A template that does not reproduce their
results for other messages is dropped.
"""

import operator
import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

_ALIGNMENT = 4
"""The alignment of numbers of four octets, in both syntaxes."""
_LABEL_STEP = 4
"""Characters added to a label so that the alignment behind it stays, in both syntaxes."""
_SHORTEST_LABEL, _TRIED_LABEL = 2, 20
"""Characters with the null character: of the shortest label, and about those of tried ones."""
_UNBOUNDED = 64
"""Octets that are tried where no buffer bounds them."""
_CHECKS = 4
"""Messages that a template must answer correctly, each with other sizes."""
_MOST_PLACES = 8
"""Places of one number; the length of a label has four."""


class Received(NamedTuple):
    """The values that differ from answer to answer; times are seconds, since 1970 or until the end.

    `label` is UTF-16 with its null character, or nothing.
    """

    timeout: int
    action: int
    arrival: int
    sent: int
    number: int
    left: int
    body_type: int
    application_tag: int
    correlation: bytes
    label: bytes
    extension: bytes
    body: bytes


_NUMBERS = Received._fields[: Received._fields.index("correlation")]
_PLACED = (*Received._fields, "label_size", "extension_size", "body_size")
"""The values with places, in the order of `filled`."""


class Rooms(NamedTuple):
    """The sizes of a request's buffers, in octets and characters; None for absent buffers."""

    body: int | None
    extension: int | None
    label: int | None

    def hold(self, answer: Received) -> bool:
        """Whether the contents of a message fit."""
        return (
            (self.body is None or len(answer.body) <= self.body)
            and (self.extension is None or len(answer.extension) <= self.extension)
            and (self.label is None or len(answer.label) <= 2 * self.label)
        )


Careful = Callable[[Received], bytes]
"""Gives the careful path's answer; raises UnplacedError where it refuses."""


class UnplacedError(Exception):
    """There is no template of such answers."""


class _Place(NamedTuple):
    at: int
    size: int
    name: str


def kind_of_label(label: bytes) -> int:
    """The kind of a label: one template serves all labels of a kind."""
    return len(label) // 2 % _LABEL_STEP + 1 if label else 0


class ReceivedResponse:
    """The constant octets of the answer; `filled` puts the others in.

    It serves labels of one kind (`kind_of_label`), and contents that its request has room for.
    """

    __slots__ = ("_head", "_tail", "rooms")

    def __init__(self, stub: bytes, places: list[_Place], label: slice, rooms: Rooms) -> None:
        self.rooms = rooms
        behind = [
            each._replace(at=each.at - label.stop) for each in places if each.at > label.start
        ]
        self._head = _packer(stub[: label.start], [e for e in places if e.at < label.start])
        self._tail = _packer(stub[label.stop :], behind) if label.stop > label.start else None

    @classmethod
    def learn(cls, careful: Careful, rooms: Rooms, label: bytes) -> "ReceivedResponse | None":
        """A template of answers to one request, with labels like one; None if no template holds."""
        source = Random()
        answers = (_random_answer(source, rooms, label, number) for number in range(_CHECKS))
        try:
            made = _Learning(careful, rooms, label, source).template()
            return made if all(made.filled(each) == careful(each) for each in answers) else None
        except UnplacedError:
            return None

    def filled(self, answer: Received) -> bytes:
        """The octets of an answer, whose contents the request has room for."""
        label = answer.label
        values = (*answer, len(label) >> 1, len(answer.extension), len(answer.body))
        tail = self._tail
        if tail is None:
            return self._head(values)
        return b"".join((self._head(values), label, tail(values)))


_Packer = Callable[[tuple[object, ...]], bytes]


def _packer(stub: bytes, places: list[_Place]) -> _Packer:
    """A packer of the values of `_PLACED` at their places between the other octets."""
    constants: list[bytes] = []
    order: list[int] = []
    codes, at = ["<"], 0
    for place in sorted(places):
        constants.append(stub[at : place.at])
        order += [len(_PLACED) + len(constants) - 1, _PLACED.index(place.name)]
        code = "I" if place.name in _NUMBERS or place.name.endswith("_size") else f"{place.size}s"
        codes.append(f"{place.at - at}s{code}")
        at = place.at + place.size
    constants.append(stub[at:])
    order += [len(_PLACED) + len(constants) - 1] * 2
    codes.append(f"{len(stub) - at}s0s")
    pack, pick, known = (
        struct.Struct("".join(codes)).pack,
        operator.itemgetter(*order),
        (*constants,),
    )
    return lambda values: pack(*pick(values + known))


class _Learning:
    """Finds the places of values; `careful` gives the answers.

    All values of the first answer are random, so that they appear nowhere else in it but by chance;
    a template that chance has misled fails its checks.
    """

    def __init__(self, careful: Careful, rooms: Rooms, label: bytes, source: Random) -> None:
        self._careful, self._rooms = careful, rooms
        self._plain = _random_answer(source, rooms, label, _CHECKS - 1)
        if label:
            self._plain = self._plain._replace(label=_random_label(source, _tried(rooms, label)))
        self._stub = careful(self._plain)

    def template(self) -> ReceivedResponse:
        """The template, which has not been tried yet; raises UnplacedError."""
        label = self._where(self._plain.label)
        places = [
            *(place for name in _NUMBERS for place in self._of_number(name)),
            *self._of_octets("correlation"),
            *self._of_buffer("extension"),
            *self._of_buffer("body"),
            *self._of_label(label),
        ]
        return ReceivedResponse(self._stub, places, label, self._rooms)

    def _of_number(self, name: str) -> Iterator[_Place]:
        octets, at = _number(getattr(self._plain, name)), -1
        for _ in range(_MOST_PLACES):
            at = self._stub.find(octets, at + 1)
            if at < 0:
                return
            if at % _ALIGNMENT == 0:
                yield _Place(at, len(octets), name)

    def _where(self, octets: bytes) -> slice:
        """The place of some octets; at the end if they are nowhere."""
        at = self._stub.find(octets) if octets else -1
        if at < 0:
            at = len(self._stub)
            return slice(at, at)
        return slice(at, at + len(octets))

    def _of_octets(self, name: str) -> list[_Place]:
        octets: bytes = getattr(self._plain, name)
        found = self._where(octets)
        return [_Place(found.start, len(octets), name)] if found.start < found.stop else []

    def _of_buffer(self, name: str) -> list[_Place]:
        """The places of contents that are filled up with null octets, and of their size."""
        octets: bytes = getattr(self._plain, name)
        if not octets:
            return []
        contents = self._of_octets(name)
        emptied = self._stub
        for place in contents:
            emptied = _with(emptied, slice(place.at, place.at + place.size), bytes(place.size))
        other = self._careful(Received(**{**self._plain._asdict(), name: b""}))
        return [*contents, *_places(f"{name}_size", emptied, other, len(octets), 0)]

    def _of_label(self, label: slice) -> Iterator[_Place]:
        """The places of the label's length, in the answer with the label that is tried first."""
        octets = self._plain.label
        if not octets:
            return
        longer = octets[:2] * _LABEL_STEP + octets
        other = self._careful(self._plain._replace(label=longer))
        if label.start < label.stop:
            other = _with(other, slice(label.start, label.start + len(longer)), octets)
        size = len(octets) // 2
        yield from _places("label_size", self._stub, other, size, size + _LABEL_STEP)


def _with(stub: bytes, place: slice, octets: bytes) -> bytes:
    return stub[: place.start] + octets + stub[place.stop :]


def _tried(rooms: Rooms, label: bytes) -> int:
    """The characters of the label to try, of the same kind as the given one; longer ones exist."""
    longest = _TRIED_LABEL if rooms.label is None else min(rooms.label - _LABEL_STEP, _TRIED_LABEL)
    shortest = _shortest(label)
    return max(shortest, longest - (longest - shortest) % _LABEL_STEP)


def _shortest(label: bytes) -> int:
    """The characters of the shortest label of a kind."""
    return _SHORTEST_LABEL + (len(label) // 2 - _SHORTEST_LABEL) % _LABEL_STEP


def _differ(first: bytes, second: bytes) -> int:
    """The place where two answers of one size begin to differ; their size if they are equal."""
    low, high = 0, len(first)
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _places(name: str, first: bytes, second: bytes, low: int, high: int) -> Iterator[_Place]:
    """The places of a number, which are the only differences of two answers."""
    if len(first) != len(second):
        raise UnplacedError
    behind = 0
    for _ in range(_MOST_PLACES):
        at = behind + _differ(first[behind:], second[behind:])
        if at == len(first):
            return
        at -= at % _ALIGNMENT
        behind = at + 4
        if (first[at:behind], second[at:behind]) != (_number(low), _number(high)):
            raise UnplacedError
        yield _Place(at, 4, name)
    raise UnplacedError


def _number(value: int) -> bytes:
    return value.to_bytes(4, "little")


def _random_answer(source: Random, rooms: Rooms, label: bytes, number: int) -> Received:
    """An answer with random values; its sizes are those of that number."""
    numbers = [source.getrandbits(32) for _ in _NUMBERS]
    text = b""
    if label:
        sizes = range(_shortest(label), _tried(rooms, label) + _LABEL_STEP + 1, _LABEL_STEP)
        text = _random_label(source, sizes[number % len(sizes)])
    extension = source.randbytes(_sizes(rooms.extension)[number])
    body = source.randbytes(_sizes(rooms.body)[number])
    return Received._make((*numbers, source.randbytes(20), text, extension, body))


def _random_label(source: Random, size: int) -> bytes:
    characters = (chr(source.randrange(0x100, 0xD800)) for _ in range(size - 1))
    return f"{''.join(characters)}\0".encode("utf-16-le")


def _sizes(room: int | None) -> tuple[int, int, int, int]:
    """Sizes of contents to try, from nothing to a full buffer."""
    most = _UNBOUNDED if room is None else room
    return 0, min(1, most), most // 2, most
