"""Changes to DER that keep its structure: elements are moved, repeated and retold, lengths fit."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.fuzz.mutation import LONGEST, mutated

_CONSTRUCTED = 0x20
_TAGS = (1, 2, 3, 4, 5, 6, 9, 10, 12, 19, 20, 22, 23, 24, 30, 0x30, 0x31, 0x80, 0xA0, 0xA3)
_DEEP = 60


@dataclass
class Element:
    """One element: its own octets, or the elements in it; `lie` is added to its length."""

    tag: int
    octets: bytes = b""
    inner: "list[Element]" = field(default_factory=list)
    lie: int = 0

    def encode(self) -> bytes:
        content = self.octets + b"".join(each.encode() for each in self.inner)
        length = max(0, len(content) + self.lie)
        if length < 0x80:
            return bytes([self.tag, length]) + content
        octets = length.to_bytes((length.bit_length() + 7) // 8, "big")
        return bytes([self.tag, 0x80 | len(octets)]) + octets + content

    def all(self) -> "Iterator[Element]":
        yield self
        for each in self.inner:
            yield from each.all()


def parsed(data: bytes) -> list[Element]:
    """The elements that octets hold; ValueError where they are none."""
    found = []
    while data:
        tag, content, data = _split(data)
        inner = parsed(content) if tag & _CONSTRUCTED else []
        found.append(Element(tag, b"" if inner else content, inner))
    return found


def _split(data: bytes) -> tuple[int, bytes, bytes]:
    """A tag, what belongs to it, and the rest."""
    if len(data) < 2:
        raise ValueError("cut off")
    at, length = 2, data[1]
    if length >= 0x80:
        at += length & 0x7F
        length = int.from_bytes(data[2:at], "big")
    if length > len(data) - at:
        raise ValueError("cut off")
    return data[0], data[at : at + length], data[at + length :]


def mutated_der(random: Random, octets: bytes, others: Sequence[bytes]) -> bytes:
    """An input with one to four changed elements; now and then any octets are changed."""
    try:
        encoded = _changed(random, parsed(octets), others)
    except (ValueError, RecursionError):
        return mutated(random, octets, others)
    return (mutated(random, encoded, others) if random.random() < 0.1 else encoded)[:LONGEST]


def _changed(random: Random, elements: list[Element], others: Sequence[bytes]) -> bytes:
    for _ in range(random.randrange(1, 5)):
        every = [each for element in elements for each in element.all()]
        if every:
            _change(random, random.choice(every), others)
    return b"".join(each.encode() for each in elements)


def _change(random: Random, element: Element, others: Sequence[bytes]) -> None:
    match random.randrange(8):
        case 0:
            element.tag = random.choice(_TAGS)
        case 1:
            element.octets, element.inner = random.randbytes(random.choice((0, 1, 4, 300))), []
        case 2 if not element.inner:
            element.octets = mutated(random, element.octets, others)
        case 3:
            element.lie = random.choice((-1, 1, 0x7F, 0xFFFF, 0x7FFFFFFF, 1 << 40))
        case 4:
            element.inner = element.inner[:] * random.choice((0, 2, 5))
        case 5:
            random.shuffle(element.inner)
        case 6:
            _borrow(random, element, others)
        case _:
            for _ in range(random.choice((1, 2, _DEEP))):
                element.octets, element.inner = b"", [Element(*_parts(element))]


def _parts(element: Element) -> tuple[int, bytes, list[Element]]:
    return element.tag, element.octets, element.inner


def _borrow(random: Random, element: Element, others: Sequence[bytes]) -> None:
    """Take the place of an element of another input."""
    try:
        every = [each for other in parsed(random.choice(others)) for each in other.all()]
    except (ValueError, IndexError, RecursionError):
        return
    if every:
        element.tag, element.octets, element.inner = _parts(random.choice(every))
