"""The file in which messages leave a queue and come back; docs/export-format.md describes it."""

import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Protocol

from rpcqm.base.errors import DecodeError
from rpcqm.codec.packet.base import LARGEST_KEPT_PACKET

MAGIC = b"RPCQMEXP"
VERSION = 1
MAXIMUM_NOTE = 1 << 16
"""Bytes of a note: far more than any has, and little enough to be read from a damaged file."""
MAXIMUM_PACKET = LARGEST_KEPT_PACKET

_OPENING = struct.Struct("<8sII")
_RECORD = struct.Struct("<III")
_END = struct.Struct("<IIQ")
_END_MARK = 0xFFFF_FFFF


def opening(note: Mapping[str, object]) -> bytes:
    """The beginning of a file, with what is told of the queue."""
    encoded = _encoded(note)
    return _OPENING.pack(MAGIC, VERSION, len(encoded)) + encoded


def record(packet: bytes, note: Mapping[str, object]) -> bytes:
    """A message: its packet, and further facts about it."""
    encoded = _encoded(note)
    check = zlib.crc32(packet, zlib.crc32(encoded))
    return _RECORD.pack(len(encoded), len(packet), check) + encoded + packet


def ending(count: int) -> bytes:
    """The end of a file, which says how many messages there are; without it none is whole."""
    return _END.pack(_END_MARK, 0, count)


class ExportWriter:
    """Writes messages to a file; without the end that `finish` writes, the file is not whole."""

    def __init__(self, file: BinaryIO, note: Mapping[str, object]) -> None:
        self._file = file
        self.count = 0
        file.write(opening(note))

    def write(self, packet: bytes, note: Mapping[str, object]) -> None:
        """Write a message: its packet, and further facts about it."""
        self._file.write(record(packet, note))
        self.count += 1

    def finish(self) -> None:
        """Write the end, which says how many messages there are."""
        self._file.write(ending(self.count))
        self._file.flush()


class Octets(Protocol):
    """What a file of messages is read from."""

    def read(self, size: int, /) -> bytes: ...


class ExportReader:
    """Reads a file of ExportWriter; `note` is its description of the queue.

    Raises DecodeError for another kind of file, a newer version, a damaged message, or a file
    that was cut off.
    """

    def __init__(self, file: Octets) -> None:
        self._file = file
        magic, version, size = _OPENING.unpack(self._take(_OPENING.size, "the beginning"))
        if magic != MAGIC:
            raise DecodeError("the file holds no exported messages")
        if version != VERSION:
            raise DecodeError(f"the file has format {version}; this rpcqm reads format {VERSION}")
        if size > MAXIMUM_NOTE:
            raise DecodeError("the beginning of the file is damaged")
        self.note = _decoded(self._take(size, "the beginning"))

    def __iter__(self) -> Iterator[tuple[bytes, dict[str, object]]]:
        """Each message: its packet, and the further facts about it."""
        count = 0
        while True:
            head = self._take(4, f"message {count + 1}")
            if int.from_bytes(head, "little") == _END_MARK:
                self._finish(head, count)
                return
            count += 1
            yield self._message(head, count)

    def _message(self, head: bytes, number: int) -> tuple[bytes, dict[str, object]]:
        what = f"message {number}"
        note_size, size, check = _RECORD.unpack(head + self._take(_RECORD.size - 4, what))
        if note_size > MAXIMUM_NOTE or size > MAXIMUM_PACKET:
            raise DecodeError(f"{what} is damaged")
        note, packet = self._take(note_size, what), self._take(size, what)
        if zlib.crc32(packet, zlib.crc32(note)) != check:
            raise DecodeError(f"{what} is damaged")
        return packet, _decoded(note)

    def _finish(self, head: bytes, count: int) -> None:
        _, _, told = _END.unpack(head + self._take(_END.size - 4, "the end"))
        if told != count:
            raise DecodeError(f"the file says that it holds {told} messages, but it holds {count}")

    def _take(self, size: int, what: str) -> bytes:
        taken = self._file.read(size)
        if len(taken) < size:
            raise DecodeError(f"the file ends within {what}")
        return taken


def _encoded(note: Mapping[str, object]) -> bytes:
    return json.dumps(note, ensure_ascii=False, sort_keys=True).encode()


def _decoded(note: bytes) -> dict[str, object]:
    try:
        found = json.loads(note)
    except (ValueError, RecursionError) as error:
        raise DecodeError("a description in the file is damaged") from error
    if not isinstance(found, dict):
        raise DecodeError("a description in the file is damaged")
    return found
