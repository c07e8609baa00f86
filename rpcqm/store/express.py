"""Bodies of express messages: in memory, and beyond a budget in a file that is never synced."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from rpcqm.store.errors import StoreError

SPILL_NAME = "express.spill"
_LENGTH_BITS = 32
"""A body in the file is one number: its offset, and its length in this many low bits."""


class ExpressBodies:
    """Bodies of express messages by serial, which a restart loses by definition.

    The file is deleted as soon as it is open, so that no end of the process leaves it behind. It is
    truncated when its last body is removed.
    """

    def __init__(self, directory: Path, budget: int) -> None:
        self._path = directory / SPILL_NAME
        self._budget = budget
        self._bodies: dict[int, bytes] = {}
        self._spilled: dict[int, int] = {}
        self._file: BinaryIO | None = None
        self._end = 0
        self.memory = 0
        """Bytes held in memory."""
        self._path.unlink(missing_ok=True)

    @property
    def spilled(self) -> int:
        """The number of bodies in the file."""
        return len(self._spilled)

    def limit(self, budget: int) -> None:
        """Hold at most `budget` bytes in memory from now on; bodies that are held already stay."""
        self._budget = budget

    def fits(self, size: int) -> bool:
        """Whether a body of `size` bytes stays in memory."""
        return self.memory + size <= self._budget

    def put(self, serial: int, packet: bytes) -> None:
        """Keep a body; raises OSError if it has to go to the file and the file cannot grow."""
        if self.fits(len(packet)):
            self._bodies[serial] = packet
            self.memory += len(packet)
        else:
            self._spill(serial, packet)

    def put_many(self, serials: range, packets: Sequence[bytes], size: int) -> None:
        """Keep bodies that fit together, whose lengths add up to `size`."""
        self._bodies.update(zip(serials, packets, strict=True))
        self.memory += size

    def _spill(self, serial: int, packet: bytes) -> None:
        file = self._file or self._open()
        written = 0
        while written < len(packet):
            written += os.pwrite(file.fileno(), packet[written:], self._end + written)
        self._spilled[serial] = self._end << _LENGTH_BITS | len(packet)
        self._end += len(packet)

    def _open(self) -> BinaryIO:
        self._file = self._path.open("w+b", buffering=0)
        self._path.unlink()
        return self._file

    def get(self, serial: int) -> bytes:
        """The body with a serial; raises KeyError if there is none."""
        body = self._bodies.get(serial)
        if body is not None:
            return body
        place = self._spilled[serial]
        length = place & (1 << _LENGTH_BITS) - 1
        assert self._file is not None
        body = os.pread(self._file.fileno(), length, place >> _LENGTH_BITS)
        if len(body) != length:
            raise StoreError("The file of spilled express messages is shorter than it should be.")
        return body

    def serials(self) -> list[int]:
        """The serials of all bodies that are kept."""
        return [*self._bodies, *self._spilled]

    def discard(self, serial: int) -> None:
        """Forget a body."""
        body = self._bodies.pop(serial, None)
        if body is not None:
            self.memory -= len(body)
        elif self._spilled.pop(serial, None) is not None and not self._spilled:
            self._end = 0
            if self._file is not None:
                self._file.truncate(0)

    def discard_many(self, serials: Iterable[int]) -> None:
        """Forget bodies."""
        for serial in serials:
            self.discard(serial)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
