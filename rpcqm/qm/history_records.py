"""Records of the messages that a history remembers: one for each, or one for many (G357).

Messages that come together are remembered by one record, which stays until all of them are
forgotten. So it may tell of some that are forgotten already, which are the first ones of it.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, repeat
from typing import NamedTuple

_TIME = struct.Struct("<Q")
_PART = struct.Struct("<HI")
"""The head of equally long identities: their length and number."""
_NUMBER = struct.Struct(">Q")
_BETWEEN = b"\0"
"""A separator that no owner contains."""


class Remembered(NamedTuple):
    """A record of one message; `time` is milliseconds since 1970, when it was seen last."""

    time: int
    owner: str
    content: bytes
    identifier: bytes

    def encode(self) -> bytes:
        """The value of the record; its key has the identity."""
        content = _BETWEEN + self.content if self.content else b""
        return _TIME.pack(self.time) + self.owner.encode() + content

    @classmethod
    def decode(cls, identifier: bytes, value: bytes) -> "Remembered":
        owner, _, content = value[_TIME.size :].partition(_BETWEEN)
        return cls(
            _TIME.unpack_from(value)[0], owner.decode("utf-8", "replace"), content, identifier
        )


class HistoryRecords:
    """Keys of records, which begin with `prefix` (of one message) or with `many`.

    Those of many are numbered in the order in which they are written.
    """

    __slots__ = ("_left", "_next", "_record_of", "many", "prefix")

    def __init__(self, prefix: bytes) -> None:
        self.prefix, self.many = prefix, b"many of " + prefix
        self._next = 0
        self._record_of: dict[bytes, bytes] = {}
        """The keys of records of many, by the messages in them."""
        self._left: dict[bytes, int] = {}
        """The number of messages in such a record that are still remembered."""

    def is_with_others(self, identifier: bytes) -> bool:
        """Whether a message is remembered by a record of many."""
        return identifier in self._record_of

    def keep(self, time: int, identifiers: Sequence[bytes]) -> tuple[bytes, bytes]:
        """Key and value of a record of messages that are not remembered yet."""
        key = self.many + _NUMBER.pack(self._next)
        self._next += 1
        self._record_of.update(dict.fromkeys(identifiers, key))
        self._left[key] = len(identifiers)
        return key, _TIME.pack(time) + b"".join(_parts(identifiers))

    def forget(self, identifiers: Sequence[bytes]) -> list[bytes]:
        """Forget messages; returns the keys of records to delete."""
        records = list(map(self._record_of.pop, identifiers, repeat(None)))
        gone: list[bytes] = []
        for key, count in Counter(records).items():
            if key is None:
                alone = zip(identifiers, records, strict=True)
                gone += [self.prefix + each for each, record in alone if record is None]
            elif self._left[key] > count:
                self._left[key] -= count
            else:
                del self._left[key]
                gone.append(key)
        return gone

    def restore(
        self, alone: Iterable[Remembered], many: Iterable[tuple[bytes, bytes]], most: int
    ) -> tuple[list[Remembered], list[bytes]]:
        """The messages in records, in the order of time, and the keys of useless records.

        `many` are in the order of their keys. The last messages are remembered, so that there are
        `most` in all. A message with a record of its own as well, or in a later one, has come
        again.
        """
        single = sorted(alone)
        known = {each.identifier for each in single}
        grouped: dict[bytes, Remembered] = {}
        keys = []
        for key, value in many:
            keys.append(key)
            time, identifiers = decode_many(value)
            for identifier in identifiers:
                if identifier not in known:
                    grouped.pop(identifier, None)
                    grouped[identifier] = Remembered(time, "", b"", identifier)
                    self._record_of[identifier] = key
        for identifier in list(grouped)[: max(len(single) + len(grouped) - most, 0)]:
            del grouped[identifier], self._record_of[identifier]
        self._left = dict(Counter(self._record_of.values()))
        self._next = _NUMBER.unpack(keys[-1][len(self.many) :])[0] + 1 if keys else 0
        remembered = sorted([*grouped.values(), *single], key=lambda each: each.time)
        return remembered, [key for key in keys if key not in self._left]


def _parts(identifiers: Sequence[bytes]) -> Iterator[bytes]:
    for length, run in groupby(identifiers, len):
        equal = list(run)
        yield _PART.pack(length, len(equal))
        yield b"".join(equal)


def decode_many(data: bytes) -> tuple[int, list[bytes]]:
    """When messages were seen, and their identities in the order of their arrival."""
    start = _TIME.size
    found: list[bytes] = []
    while start + _PART.size <= len(data):
        length, count = _PART.unpack_from(data, start)
        start += _PART.size
        end = min(start + length * count, len(data))
        found += [data[at : at + length] for at in range(start, end, max(length, 1))]
        start = end
    return _TIME.unpack_from(data)[0], found
