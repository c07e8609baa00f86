"""The answer to rpc_ACReceiveMessageEx, filled into octets that stay.

`_received_buffer.fill` and the codec stay the only definition of the answer: where two messages
that differ in one value have answers that differ, there is the place of that value. A template
that does not fill in what they make of other messages is none.
"""

import operator
import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

LOW, HIGH = b"\x01", b"\xfe"
"""What is tried as every octet of a value: two numbers made of them have no octet in common."""
_ALIGNMENT = 4
"""Numbers of four octets stand at multiples of as many, in both syntaxes."""
_LABEL_STEP = 4
"""Characters by which a label is longer so that what follows it stays aligned, in both syntaxes."""
_SHORTEST_LABEL = 2
"""Characters: one, and the null character."""
_UNBOUNDED = 64
"""Octets that are tried where there is no buffer that they would have to go into."""
_CHECKS = 12
"""Random messages whose answers a template must get right."""
_MOST_PLACES = 8
"""Places of one number; a length of a label stands at four."""
_LONGEST_TRIED = 64
"""Characters of the labels that are tried."""


class Received(NamedTuple):
    """What differs from answer to answer; times are seconds, since 1970 or until the end.

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
"""What has places, in the order in which `filled` has the values."""
_NOTHING = Received._make([*[0] * len(_NUMBERS), bytes(20), b"", b"", b""])


class Rooms(NamedTuple):
    """The sizes of a request's buffers, in octets and characters; None for what it has not."""

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
"""What the careful path answers; raises UnplacedError where it refuses."""


class UnplacedError(Exception):
    """There is no template of such answers."""


class _Place(NamedTuple):
    at: int
    size: int
    name: str


def kind_of_label(label: bytes) -> int:
    """What labels have in common that one template can be filled with."""
    return len(label) // 2 % _LABEL_STEP + 1 if label else 0


class ReceivedResponse:
    """The constant octets of the answer; `filled` puts the others in.

    It is for labels of one kind (`kind_of_label`), and for what its request has room for.
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
        """A template of answers to one request, with labels like one; None if none holds."""
        try:
            made = _Learning(careful, rooms, label).template()
        except UnplacedError:
            return None
        source = Random(len(label))
        answers = (_random_answer(source, rooms, label) for _ in range(_CHECKS))
        try:
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
    """What packs the values of `_PLACED`, at their places, in between the other octets."""
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
    """Finds the places of values: `careful` tells the answers."""

    def __init__(self, careful: Careful, rooms: Rooms, label: bytes) -> None:
        self._careful, self._rooms = careful, rooms
        self._plain = _NOTHING._replace(label=_text(_tried_label(label), LOW))
        self._stub = careful(self._plain)

    def template(self) -> ReceivedResponse:
        """The template, which has not been tried yet; raises UnplacedError."""
        label = self._label()
        places = [
            *(place for name in _NUMBERS for place in self._of_number(name)),
            *self._of_octets("correlation", 20),
            *self._of_buffer("extension", self._rooms.extension),
            *self._of_buffer("body", self._rooms.body),
            *self._of_label(label),
        ]
        return ReceivedResponse(self._stub, places, label, self._rooms)

    def _both(self, name: str, low: object, high: object) -> tuple[bytes, bytes]:
        """Two answers that differ in one value."""
        answers = ({**self._plain._asdict(), name: value} for value in (low, high))
        first, second = (self._careful(Received(**each)) for each in answers)
        if len(first) != len(second):
            raise UnplacedError
        return first, second

    def _of_number(self, name: str) -> Iterator[_Place]:
        low, high = (int.from_bytes(octet * 4, "little") for octet in (LOW, HIGH))
        return _places(name, *self._both(name, low, high), low, high)

    def _of_octets(self, name: str, size: int) -> list[_Place]:
        low, high = LOW * size, HIGH * size
        first, second = self._both(name, low, high)
        at = _differ(first, second)
        if at == len(first):
            return []
        end = at + size
        if first[at:end] != low or second[at:end] != high or first[end:] != second[end:]:
            raise UnplacedError
        return [_Place(at, size, name)]

    def _of_buffer(self, name: str, room: int | None) -> list[_Place]:
        """The places of contents that are filled up with null octets, and of their size."""
        size = _UNBOUNDED if room is None else room
        if not size:
            return []
        sized = f"{name}_size"
        sizes = _places(sized, *self._both(name, b"", bytes(size)), 0, size)
        return [*self._of_octets(name, size), *sizes]

    def _label(self) -> slice:
        """Where the label stands: at the end, if nowhere."""
        octets = self._plain.label
        nowhere = slice(len(self._stub), len(self._stub))
        if not octets:
            return nowhere
        other = _text(len(octets) // 2, HIGH)
        first, second = self._both("label", octets, other)
        at = _differ(first, second)
        if at == len(first):
            return nowhere
        end = at + len(octets)
        if first[at:end] != octets or second[at:end] != other or first[end:] != second[end:]:
            raise UnplacedError
        return slice(at, end)

    def _of_label(self, label: slice) -> Iterator[_Place]:
        """The places of its length, in the answer with the label that is tried first."""
        size = len(self._plain.label) // 2
        if not size:
            return
        longer = _text(size + _LABEL_STEP, LOW)
        other = self._careful(self._plain._replace(label=longer))
        if label.start < label.stop:
            if other[label.start : label.start + len(longer)] != longer:
                raise UnplacedError
            other = other[: label.start] + self._plain.label + other[label.start + len(longer) :]
        if len(other) != len(self._stub):
            raise UnplacedError
        yield from _places("label_size", self._stub, other, size, size + _LABEL_STEP)


def _text(size: int, octet: bytes) -> bytes:
    """So many characters, the last of which is null, all others made of one octet."""
    return octet * (2 * size - 2) + bytes(2) if size else b""


def _tried_label(label: bytes) -> int:
    """The characters of the shortest label of a kind."""
    size = len(label) // 2
    return _SHORTEST_LABEL + (size - _SHORTEST_LABEL) % _LABEL_STEP if size else 0


def _differ(first: bytes, second: bytes) -> int:
    """Where two answers of one size begin to differ; their size if they are equal."""
    low, high = 0, len(first)
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _places(name: str, first: bytes, second: bytes, low: int, high: int) -> Iterator[_Place]:
    """The places of a number, which are all that two answers differ in."""
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


def _random_answer(source: Random, rooms: Rooms, label: bytes) -> Received:
    numbers = [source.getrandbits(32) for _ in _NUMBERS]
    longest = _UNBOUNDED if rooms.label is None else rooms.label
    sizes = range(_tried_label(label), min(longest, _LONGEST_TRIED) + 1, _LABEL_STEP)
    text = "".join(chr(source.randrange(1, 0xD800)) for _ in range(source.choice(sizes) - 1))
    extension, body = (
        source.randbytes(source.choice((0, 1, size // 2, size)))
        for size in (_UNBOUNDED if room is None else room for room in (rooms.extension, rooms.body))
    )
    rest = source.randbytes(20), f"{text}\0".encode("utf-16-le") if label else b""
    return Received._make((*numbers, *rest, extension[: rooms.extension], body[: rooms.body]))
