"""Records of [MS-NRBF], put together by hand as hostile bodies have them."""

import struct

HEADER = b"\0" + struct.pack("<4i", 1, -1, 1, 0)
END = b"\x0b"
NULL, NULL_PRIMITIVE = b"\x0a", 17
OBJECT = b"\2"


def number(value: int) -> bytes:
    return struct.pack("<i", value)


def text(value: str) -> bytes:
    return bytes([len(value)]) + value.encode()


def body(*records: bytes) -> bytes:
    return HEADER + b"".join(records) + END


def reference(identifier: int) -> bytes:
    return b"\x09" + number(identifier)


def array(identifier: int, count: int, *elements: bytes) -> bytes:
    return b"\x10" + number(identifier) + number(count) + b"".join(elements)


def nulls(count: int) -> bytes:
    return b"\x0e" + number(count)


def rectangle(identifier: int, *lengths: int, of: bytes = OBJECT) -> bytes:
    """A rectangular array, without its elements."""
    shape = b"\x07" + number(identifier) + b"\2" + number(len(lengths))
    return shape + b"".join(map(number, lengths)) + of


def nested(depth: int) -> bytes:
    """Arrays within each other, each in the place where it is."""
    return b"".join(array(level, 1) for level in range(1, depth + 1)) + NULL


def chained(depth: int) -> bytes:
    """Arrays that refer to the next one, the last to a text."""
    arrays = b"".join(array(level, 1, reference(level + 1)) for level in range(1, depth + 1))
    return arrays + b"\x06" + number(depth + 1) + text("end")


def doubled(levels: int) -> bytes:
    """Arrays that refer to the next one twice: written out, two to the power of the levels."""
    arrays = (array(level, 2, reference(level + 1) * 2) for level in range(1, levels + 1))
    return b"".join(arrays) + b"\x06" + number(levels + 1) + text("end")


def classes(members: int, instances: int) -> bytes:
    """Objects that have nothing but members of the kind that takes no octet."""
    names = b"".join(text(f"{index:04}") for index in range(members))
    kinds = bytes(members) + bytes([NULL_PRIMITIVE]) * members
    first = b"\x04" + number(1) + text("C") + number(members) + names + kinds
    again = (b"\x01" + number(index) + number(1) for index in range(2, instances + 2))
    return first + b"".join(again)
