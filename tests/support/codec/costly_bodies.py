"""Bodies of which more may be made than they are: a few octets that name much, by kinds."""

from collections.abc import Callable

from rpcqm.codec.bodies.formatters import DOTNET_BINARY
from rpcqm.codec.packet.enums import BodyType
from tests.support.codec import dotnet

VT_LPSTR = 30


def declared_nulls(size: int) -> bytes:
    """One array that declares four null elements for every octet of the body."""
    array = dotnet.body(dotnet.array(1, 4 * size, dotnet.nulls(4 * size)))
    return array.ljust(size, b"\0")


def references(size: int) -> bytes:
    """A long text that many elements refer to."""
    text = b"\x06" + dotnet.number(2) + b"\xa0\x9c\x01" + b"x" * 20_000
    count = max(size - 20_100, 0) // 5 + 100
    return dotnet.body(dotnet.array(1, count, dotnet.reference(2) * count), text)


def octets_of(kind: int, value: bytes) -> Callable[[int], bytes]:
    """An array of primitives of one octet each."""

    def make(size: int) -> bytes:
        head = b"\x0f" + dotnet.number(1) + dotnet.number(size) + bytes([kind])
        return dotnet.body(head + value * size)

    return make


def members(size: int) -> bytes:
    """Objects of nothing but a member with a long name."""
    name = b"\xe8\x07" + b"n" * 1000
    first = b"\x04" + dotnet.number(1) + dotnet.text("C") + dotnet.number(1) + name + b"\0\x11"
    count = max(size // 14, 100)
    again = (b"\x01" + dotnet.number(index) + dotnet.number(1) for index in range(2, count))
    parts = b"".join(dotnet.reference(index) for index in range(2, count))
    array = dotnet.array(count + 1, count - 2, parts)
    stream = dotnet.body(first, *again, array)
    return stream.replace(dotnet.number(1), dotnet.number(count + 1), 1)


def repeated(begin: bytes, part: bytes, end: bytes) -> Callable[[int], bytes]:
    return lambda size: begin + part * (size // len(part)) + end


COSTLY: dict[str, tuple[int, Callable[[int], bytes]]] = {
    "nulls of .NET": (DOTNET_BINARY, declared_nulls),
    "references of .NET": (DOTNET_BINARY, references),
    "booleans of .NET": (DOTNET_BINARY, octets_of(1, b"\0")),
    "characters of .NET": (DOTNET_BINARY, octets_of(3, b"\1")),
    "names of .NET": (DOTNET_BINARY, members),
    "lists of JSON": (0, repeated(b"[0", b",[]", b"]")),
    "numbers of JSON": (0, repeated(b"[0", b",1e15", b"]")),
    "one number of JSON": (0, repeated(b"[", b"1234567890", b"]")),
    "deep JSON": (0, lambda size: b"[" * (size // 2) + b"]" * (size // 2)),
    "ArrayOfInt": (0, repeated(b"<ArrayOfInt>", b"<int>1</int>", b"</ArrayOfInt>")),
    "elements of XML": (0, repeated(b"<a xmlns='urn:x'>", b"<b/>", b"</a>")),
    "marks of XML": (
        0,
        repeated(b'<?xml version="1.0" encoding="latin-1"?><a>\xe9', b">", b"</a>"),
    ),
    "deep XML": (0, lambda size: b"<a>" * (size // 7) + b"</a>" * (size // 7)),
    "controls": (0, lambda size: b"\1" * size),
    "controls of VT_LPSTR": (VT_LPSTR, lambda size: b"\1" * size),
    "controls of VT_BSTR": (int(BodyType.VT_BSTR), lambda size: b"\1\0" * (size // 2)),
    "octets of no text": (0, lambda size: b"\xff" * size),
}
"""The type of each, and what makes one of about so many octets."""
