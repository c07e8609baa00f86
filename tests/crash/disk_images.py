"""What a disk may hold after a crash, from a recording of what was written and synced.

The recording is made by tests/support/write_recorder.c. The rules are those of POSIX, not of a
kind file system: content is durable when its file was synced after the write, a name when its
directory was. What is not durable may be there, in part or not at all.
"""

import enum
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

_HEADER = struct.Struct("<BiQII")
_SECTOR = 512


class Loss(enum.Enum):
    """What the crash took."""

    NOTHING = "the process was killed, the machine went on"
    ALL = "everything that was not durable"
    TAIL = "the end of what was not durable in each file, from some byte on"
    SECTOR = "one sector that was not durable"
    SECTORS = "any sectors that were not durable, and any names"


@dataclass(frozen=True)
class Event:
    kind: str
    descriptor: int
    offset: int
    first: bytes
    second: bytes


def read_events(log: Path) -> Iterator[Event]:
    """The events of a recording, in order; a torn last one is dropped."""
    data, at = log.read_bytes(), 0
    while at + _HEADER.size <= len(data):
        kind, descriptor, offset, first, second = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        if at + first + second > len(data):
            return
        parts = data[at : at + first], data[at + first : at + first + second]
        yield Event(chr(kind), descriptor, offset, *parts)
        at += first + second


Change = tuple[int, bytes | None]
"""(offset, bytes), or (length, None) for a truncation."""


@dataclass(eq=False)
class File:
    """Content that is durable, how many changes are in it, and what was done since."""

    durable: bytearray = field(default_factory=bytearray)
    applied: int = 0
    pending: list[Change] = field(default_factory=list)

    @property
    def changes(self) -> int:
        """How often the file was ever changed."""
        return self.applied + len(self.pending)

    def content(self, changes: list[Change]) -> bytearray:
        content = bytearray(self.durable)
        for offset, data in changes:
            _apply(content, offset, data)
        return content

    def make_durable(self, changes: int) -> None:
        """The first so many changes are durable."""
        count = changes - self.applied
        if count > 0:
            self.durable = self.content(self.pending[:count])
            del self.pending[:count]
            self.applied = changes


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        offset, data = offset, b""
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


class Disk:
    """A directory tree, as it is seen and as it would survive."""

    def __init__(self) -> None:
        self.root = ""
        self.names: dict[str, File | None] = {}
        """Files by path, and directories (None), as processes see them."""
        self.durable_names: dict[str, File | None] = {}
        self._open: dict[int, tuple[str, File | None]] = {}
        self._syncs: dict[int, tuple[File, int]] = {}
        """File syncs under way: the file, and how often it had been changed."""
        self._directory_syncs: dict[int, tuple[str, dict[str, File | None]]] = {}
        """Directory syncs under way: the directory, and what was in it."""
        self._newest_sync: dict[str, int] = {}

    @classmethod
    def of(cls, root: Path) -> "Disk":
        """A directory as it is now, all of it durable."""
        disk = cls()
        disk.root = str(root)
        for path in sorted(root.rglob("*")):
            disk.names[str(path)] = (
                None if path.is_dir() else File(durable=bytearray(path.read_bytes()))
            )
        disk.durable_names = dict(disk.names)
        return disk

    def apply(self, event: Event) -> None:
        """Let one event happen."""
        match event.kind:
            case "S":
                self._start(event.first.decode())
            case "o":
                self._open_file(event.descriptor, event.first.decode(), event.offset)
            case "c":
                self._open.pop(event.descriptor, None)
            case "w":
                self._change(event.descriptor, (event.offset, event.first))
            case "t":
                self._change(event.descriptor, (event.offset, None))
            case "b":
                self._begin_sync(event.descriptor, event.offset)
            case "e":
                self._end_sync(event.offset)
            case _:
                self._change_names(event)

    def _start(self, root: str) -> None:
        """A process begins; what others had open is closed, and root itself is durable."""
        self.root = root
        self._open.clear()
        self._syncs.clear()
        self._directory_syncs.clear()
        self._newest_sync.clear()

    def _open_file(self, descriptor: int, path: str, flags: int) -> None:
        if path == self.root or self.names.get(path, self) is None:
            self._open[descriptor] = path, None
            return
        file = self.names.get(path)
        if file is None:
            file = self.names[path] = File()
        if flags & os.O_TRUNC:
            file.pending.append((0, None))
        self._open[descriptor] = path, file

    def _change(self, descriptor: int, change: Change) -> None:
        _, file = self._open.get(descriptor, ("", None))
        if file is not None:
            file.pending.append(change)

    def _begin_sync(self, descriptor: int, number: int) -> None:
        if descriptor in self._open:
            path, file = self._open[descriptor]
            if file is not None:
                self._syncs[number] = file, file.changes
            else:
                self._directory_syncs[number] = path, _entries(self.names, path)

    def _end_sync(self, number: int) -> None:
        if number in self._syncs:
            file, changes = self._syncs.pop(number)
            file.make_durable(changes)
        elif number in self._directory_syncs:
            path, entries = self._directory_syncs.pop(number)
            if number > self._newest_sync.get(path, 0):
                self._newest_sync[path] = number
                for name in _entries(self.durable_names, path):
                    del self.durable_names[name]
                self.durable_names |= entries

    def _change_names(self, event: Event) -> None:
        first, second = event.first.decode(), event.second.decode()
        match event.kind:
            case "r":
                self.names[second] = self.names.pop(first)
            case "l":
                self.names[second] = self.names[first]
            case "m":
                self.names[first] = None
            case "u" | "d":
                self.names.pop(first, None)
            case _:
                raise ValueError(f"an event of kind {event.kind!r} is not known")

    def image(self, target: Path, loss: Loss, random: Random, lost: int | None = None) -> None:
        """Write what may be found after a crash now.

        `lost` is the number of the sector that Loss.SECTOR takes, any when it is None.
        """
        names = self._surviving_names(loss, random)
        gone = self._lost_sector(loss, random, lost)
        for path, file in sorted(names.items()):
            place = target / os.path.relpath(path, self.root)
            if file is None:
                place.mkdir(parents=True, exist_ok=True)
            elif place.parent.is_dir():
                left = gone[file] if file in gone else _surviving(file.pending, loss, random)
                place.write_bytes(file.content(left))

    def _surviving_names(self, loss: Loss, random: Random) -> dict[str, File | None]:
        if loss is Loss.ALL or (loss is Loss.SECTORS and random.random() < 0.5):
            return self.durable_names
        return self.names

    def unsynced_sectors(self) -> list[tuple[File, int]]:
        """Each sector of the database that is not durable: its file, and which it is there."""
        return [
            (file, number)
            for path, file in sorted(self.names.items())
            if file is not None and file.pending and _matters(path)
            for number in range(len(_all_sectors(file.pending)))
        ]

    def sectors_to_lose(self, descriptor: int, seen: dict[File, int]) -> list[int]:
        """Numbers of the unsynced sectors to try where a sync of a file begins.

        Of that file all, of others those of changes that are not in `seen`, how often each file
        had been changed; it is brought up to date.
        """
        _, synced = self._open.get(descriptor, ("", None))
        chosen = []
        for at, (file, number) in enumerate(self.unsynced_sectors()):
            known = max(seen.get(file, 0) - file.applied, 0)
            if file is synced or number >= len(_all_sectors(file.pending[:known])):
                chosen.append(at)
        seen.update((file, file.changes) for file in self.names.values() if file is not None)
        return chosen

    def _lost_sector(
        self, loss: Loss, random: Random, lost: int | None
    ) -> dict[File, list[Change]]:
        """The file that loses a sector, with the changes that are left of it."""
        if loss is not Loss.SECTOR or not (sectors := self.unsynced_sectors()):
            return {}
        file, number = sectors[random.randrange(len(sectors)) if lost is None else lost]
        changes = _all_sectors(file.pending)
        return {file: changes[:number] + changes[number + 1 :]}


def _matters(path: str) -> bool:
    """Whether anybody reads the file again: RocksDB's diary of its own nobody does."""
    return not os.path.basename(path).startswith("LOG")


def _all_sectors(pending: list[Change]) -> list[Change]:
    return [sector for change in pending for sector in _sectors(*change)]


def _entries(names: dict[str, File | None], directory: str) -> dict[str, File | None]:
    return {path: file for path, file in names.items() if os.path.dirname(path) == directory}


def _surviving(pending: list[Change], loss: Loss, random: Random) -> list[Change]:
    """Which changes of a file survive."""
    match loss:
        case Loss.NOTHING | Loss.SECTOR:
            return pending
        case Loss.ALL:
            return []
        case Loss.TAIL:
            return _cut(pending, random)
        case Loss.SECTORS:
            chance = random.choice([0.2, 0.5, 0.9])
            return [sector for sector in _all_sectors(pending) if random.random() < chance]


def _cut(pending: list[Change], random: Random) -> list[Change]:
    if not pending:
        return []
    kept = random.randrange(len(pending))
    offset, data = pending[kept]
    torn = [] if data is None else [(offset, data[: random.randrange(len(data) + 1)])]
    return [*pending[:kept], *torn]


def _sectors(offset: int, data: bytes | None) -> Iterator[Change]:
    if data is None:
        yield offset, None
        return
    at = 0
    while at < len(data):
        end = at + _SECTOR - (offset + at) % _SECTOR
        yield offset + at, data[at:end]
        at = end
