"""Changed inputs: what a broken or hostile peer might make of good ones."""

from collections.abc import Callable, Sequence
from random import Random

LONGEST = 16_384
"""Octets of an input at most."""

_NUMBERS = (0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 4095, 4096, 0x7FFF)
_EDGES = (0x8000, 0xFFFE, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
_INTERESTING = _NUMBERS + _EDGES

Change = Callable[[Random, bytearray, Sequence[bytes]], None]


def mutated(random: Random, octets: bytes, others: Sequence[bytes]) -> bytes:
    """An input with one to eight changes; `others` give pieces."""
    changed = bytearray(octets)
    for _ in range(1 << random.randrange(4)):
        random.choice(_CHANGES)(random, changed, others)
    return bytes(changed[:LONGEST])


def mutated_stream(random: Random, octets: bytes, others: Sequence[bytes]) -> bytes:
    """The same for a run of PDUs: they are dropped, repeated, moved, and changed one by one."""
    pdus = list(map(bytearray, split_stream(octets)))
    for _ in range(random.randrange(1, 4)):
        if not pdus:
            break
        _change_pdus(random, pdus, others)
    stream = b"".join(pdus)
    return (mutated(random, stream, others) if random.random() < 0.1 else stream)[:LONGEST]


def split_stream(octets: bytes) -> list[bytes]:
    """Cut where the frag_lengths say; what they do not explain is one piece."""
    pieces = []
    while octets:
        length = int.from_bytes(octets[8:10], "little" if octets[4:5] != b"\0" else "big")
        if not 16 <= length <= len(octets):
            length = len(octets)
        pieces.append(octets[:length])
        octets = octets[length:]
    return pieces


def _change_pdus(random: Random, pdus: list[bytearray], others: Sequence[bytes]) -> None:
    index = random.randrange(len(pdus))
    chosen = random.random()
    if chosen < 0.08:
        del pdus[index]
    elif chosen < 0.16:
        pdus.insert(random.randrange(len(pdus) + 1), bytearray(pdus[index]))
    elif chosen < 0.24:
        pdus.append(pdus.pop(index))
    elif chosen < 0.34 and others:
        pieces = split_stream(random.choice(others))
        if pieces:
            pdus.insert(index, bytearray(random.choice(pieces)))
    else:
        random.choice(_CHANGES)(random, pdus[index], others)
        if random.random() < 0.8 and len(pdus[index]) >= 16:
            _set_length(pdus[index])


def _set_length(pdu: bytearray) -> None:
    order = "little" if pdu[4] else "big"
    pdu[8:10] = min(len(pdu), 0xFFFF).to_bytes(2, "little" if order == "little" else "big")


def _place(random: Random, changed: bytearray, width: int = 1) -> int:
    return random.randrange(max(1, len(changed) - width + 1))


def _flip_bit(random: Random, changed: bytearray, others: Sequence[bytes]) -> None:
    if changed:
        changed[_place(random, changed)] ^= 1 << random.randrange(8)


def _set_octet(random: Random, changed: bytearray, others: Sequence[bytes]) -> None:
    if changed:
        changed[_place(random, changed)] = random.randrange(256)


def _set_number(random: Random, changed: bytearray, others: Sequence[bytes]) -> None:
    width = random.choice((1, 2, 4, 4, 8))
    number = random.choice((*_INTERESTING, len(changed), len(changed) // 2))
    _put(random, changed, _place(random, changed, width), number, width)


def _add_number(random: Random, changed: bytearray, others: Sequence[bytes]) -> None:
    width = random.choice((1, 2, 4))
    at = _place(random, changed, width)
    number = int.from_bytes(changed[at : at + width], "little") + random.randrange(-16, 17)
    _put(random, changed, at, number, width)


def _put(random: Random, changed: bytearray, at: int, number: int, width: int) -> None:
    octets = (number & (1 << 8 * width) - 1).to_bytes(width, "little")
    changed[at : at + width] = octets if random.random() < 0.8 else octets[::-1]


def _remove(random: Random, changed: bytearray, others: Sequence[bytes]) -> None:
    at = _place(random, changed)
    del changed[at : at + _length(random)]


def _cut(random: Random, changed: bytearray, others: Sequence[bytes]) -> None:
    del changed[_place(random, changed) :]


def _repeat(random: Random, changed: bytearray, others: Sequence[bytes]) -> None:
    at = _place(random, changed)
    piece = changed[at : at + _length(random)] * (1 << random.randrange(4))
    changed[at:at] = piece[:LONGEST]


def _insert(random: Random, changed: bytearray, others: Sequence[bytes]) -> None:
    at = random.randrange(len(changed) + 1)
    length = _length(random)
    changed[at:at] = random.randbytes(length) if random.random() < 0.5 else bytes(length)


def _borrow(random: Random, changed: bytearray, others: Sequence[bytes]) -> None:
    """Overwrite or extend with a piece of another input."""
    if not others:
        return
    other = random.choice(others)
    start = random.randrange(len(other) + 1)
    piece = other[start : start + _length(random) * 4]
    at = random.randrange(len(changed) + 1)
    changed[at : at + (len(piece) if random.random() < 0.7 else 0)] = piece


def _length(random: Random) -> int:
    return random.choice((1, 1, 2, 4, 4, 8, 16, 20, random.randrange(1, 200)))


_CHANGES: tuple[Change, ...] = (
    _flip_bit,
    _set_octet,
    _set_number,
    _set_number,
    _add_number,
    _remove,
    _cut,
    _repeat,
    _insert,
    _borrow,
)
