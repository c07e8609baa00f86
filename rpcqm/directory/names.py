"""Distinguished names, and the names that queues have in a directory ([MS-MQDSSM] 2.2.1, 2.2.5)."""

import re
from collections.abc import Iterator
from functools import lru_cache

from rpcqm.base.errors import DecodeError
from rpcqm.base.text import folded, wide_length

LONGEST_RDN = 63
"""Characters of UTF-16 that the name of a queue may have before it is shortened."""
KEPT = 55
"""Characters of a long name that stay in front of its hash."""
HASHED = 64
"""Characters of a shortened name: what is kept, a hyphen and eight digits."""

_POLYNOMIAL = 0x9B619023
_SPECIAL = frozenset(',+"\\<>;=#/')
_HEX = "0123456789abcdefABCDEF"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


# Distinguished names (RFC 4514)


def escaped(value: str) -> str:
    """A value in the syntax of a distinguished name; the whole value, never a part of it."""
    text = "".join(f"\\{each}" if each in _SPECIAL else each for each in value)
    text = _CONTROL.sub(lambda match: f"\\{ord(match[0]):02x}", text)
    if text.startswith(" "):
        text = f"\\20{text[1:]}"
    if text.endswith(" "):
        text = f"{text[:-1]}\\20"
    return text


def unescaped(text: str) -> str:
    """The value of an escaped text; DecodeError for an invalid escape."""
    if "\\" not in text:
        return text
    octets, position = bytearray(), 0
    while position < len(text):
        character = text[position]
        if character != "\\":
            octets += character.encode("utf-8", "surrogatepass")
            position += 1
        elif len(pair := text[position + 1 : position + 3]) == 2 and all(c in _HEX for c in pair):
            octets.append(int(pair, 16))
            position += 3
        elif position + 1 < len(text):
            octets += text[position + 1].encode("utf-8", "surrogatepass")
            position += 2
        else:
            raise DecodeError("a distinguished name ends in a backslash")
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError("a distinguished name has octets that are no text") from error


def parts_of(name: str) -> list[str]:
    """The relative names of a distinguished name, still escaped, the first one in front."""
    if "\\" not in name:
        return [part.strip() for part in name.split(",")]
    return list(_parts(name))


def _parts(name: str) -> Iterator[str]:
    start, position = 0, 0
    while position < len(name):
        if name[position] == "\\":
            position += 1
        elif name[position] == ",":
            yield name[start:position].lstrip()
            start = position + 1
        position += 1
    yield name[start:].lstrip()


def value_of(part: str) -> str:
    """The value of a relative name like ``CN=offers``; DecodeError if it has none."""
    _, equals, value = part.partition("=")
    if not equals:
        raise DecodeError("a distinguished name has a part without a value")
    return unescaped(value)


def parent_of(name: str, levels: int = 1) -> str:
    """The distinguished name so many levels above; DecodeError if it is not so deep."""
    parts = parts_of(name)
    if len(parts) <= levels:
        raise DecodeError("a distinguished name has too few parts")
    return ",".join(parts[levels:])


def child_of(parent: str, value: str, kind: str = "CN") -> str:
    """The distinguished name of an object below another one."""
    return f"{kind}={escaped(value)},{parent}"


def comparable(name: str) -> str:
    """A form in which two writings of one distinguished name are the same; damaged ones differ."""
    if "\\" not in name:
        return folded(",".join(parts_of(name)))
    try:
        pairs = [(part.partition("=")[0], value_of(part)) for part in parts_of(name)]
    except DecodeError:
        return name
    return folded(",".join(f"{kind.strip()}={escaped(value)}" for kind, value in pairs))


def domain_of(name: str) -> str:
    """The DNS name of a naming context: corp.test for DC=corp,DC=test."""
    return ".".join(value_of(part) for part in parts_of(name) if part[:3].casefold() == "dc=")


# Names of queues


@lru_cache(maxsize=1)
def _table() -> tuple[int, ...]:
    """The table of the section, made from its reflected polynomial."""
    table = []
    for index in range(256):
        value = index
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


def hash_of(name: str) -> str:
    """The hash of a queue's name ([MS-MQDSSM] 2.2.5): eight lowercase hexadecimal digits."""
    table, value = _table(), 0
    for octet in _lowered(name).encode("utf-16-be", "surrogatepass"):
        value = (value >> 8) ^ table[(value ^ octet) & 0xFF]
    return f"{value:08x}"


def _lowered(name: str) -> str:
    """Each character in lower case by itself, as the hash counts them."""
    return "".join(low if len(low := each.lower()) == 1 else each for each in name)


def stored_name(queue: str) -> tuple[str, str]:
    """The name of a queue's object before escaping, and its mSMQQueueNameExt, mostly empty.

    Source: [MS-MQDSSM] 3.1.6.1.2.5, with lengths counted before escaping.
    """
    if wide_length(queue) <= LONGEST_RDN:
        return queue, ""
    units = queue.encode("utf-16-le", "surrogatepass")
    kept = units[: 2 * KEPT].decode("utf-16-le", "ignore")
    return f"{kept}-{hash_of(queue)}", queue[len(kept) :]


def queue_name(stored: str, extension: str) -> str:
    """The name of a queue from the name of its object and its mSMQQueueNameExt."""
    if extension and stored[-9:-8] == "-" and wide_length(stored) in (HASHED, HASHED - 1):
        return stored[:-9] + extension
    return stored


def may_be_published(queue: str) -> bool:
    """Whether a directory keeps the name of a queue unchanged."""
    return queue == queue.strip(" ") and not _CONTROL.search(queue)
