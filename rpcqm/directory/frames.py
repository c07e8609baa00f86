"""The frames of the pipe to the process that asks a directory, and back.

A frame is its length in four octets and JSON. Octets of values are characters up to U+00FF there.
The contents come from a controller, so everything in them is checked.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rpcqm.base.errors import DecodeError
from rpcqm.directory.values import Entry

LONGEST_FRAME = 10 << 20
"""Octets of one frame.

Bound `directory.frame_octets` [octets]: the process is ended, and the round begins again.
"""
LENGTH = 4
LONGEST_TEXT = 500
"""Characters of a controller's error text that are shown."""


@dataclass(frozen=True, slots=True)
class Result:
    """The end of an operation: the code of LDAP, a text, and further members."""

    code: int = 0
    text: str = ""
    step: str = ""
    more: Mapping[str, Any] | None = None


def encode_frame(message: Mapping[str, Any]) -> bytes:
    """A frame with its length."""
    data = json.dumps(message, separators=(",", ":")).encode()
    return len(data).to_bytes(LENGTH, "big") + data


def frame_length(head: bytes) -> int:
    """The length of the frame behind; DecodeError if it is too long."""
    length = int.from_bytes(head, "big")
    if length > LONGEST_FRAME:
        raise DecodeError(f"a frame of {length:,} octets")
    return length


def decode_reply(data: bytes) -> list[Entry] | Result:
    """Some of the objects found, or the end of an operation; raises DecodeError."""
    try:
        message = json.loads(data)
        if "entries" in message:
            return [_entry(name, values) for name, values in message["entries"]]
        code, text, step = message["code"], message["text"], message.get("step", "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DecodeError(f"damaged frame: {type(error).__name__}") from error
    more = message.get("more")
    if type(code) is not int or not isinstance(text, str) or not isinstance(step, str):
        raise DecodeError("a result whose code is no number or whose text is none")
    if more is not None and not isinstance(more, dict):
        raise DecodeError("a result with something that is no object")
    return Result(code, text[:LONGEST_TEXT], step[:LONGEST_TEXT], more)


def _entry(name: object, values: Mapping[str, Sequence[str]]) -> Entry:
    if not isinstance(name, str):
        raise TypeError("a name that is no text")
    found: dict[str, list[bytes]] = {}
    for attribute, several in values.items():
        if not isinstance(several, list):
            raise TypeError("values that are no list")
        found[attribute] = [value.encode("latin-1") for value in several]
    return Entry(name, found)


def plain(values: Mapping[str, Sequence[bytes]]) -> dict[str, list[str]]:
    """Values in the form of a frame."""
    return {name: [each.decode("latin-1") for each in several] for name, several in values.items()}
