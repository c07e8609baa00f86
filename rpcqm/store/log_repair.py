"""Cuts off the traces of a crash behind the last whole record of the database's own logs.

RocksDB takes a torn end for the end of a log only when the file just stops there. When the end
spans several sectors, a disk may keep any of them: RocksDB then takes its manifest for damaged, and
may skip a hole in a write-ahead log in silence and go on behind it. So the logs are cut before it
sees them.

Cutting is right because RocksDB acts on its writes only after the sync: an unsynced end has had no
effect on any other file, and no caller was answered. Damage to synced writes is refused: a later
synced write follows, which had not begun before. Synced writes are numbered for that.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rpcqm.base.log import get_logger
from rpcqm.store.errors import StoreError
from rpcqm.store.log_format import (
    FIRST,
    FULL,
    NUMBERED,
    PLAIN_HEADER,
    read_piece,
    whole_records,
)
from rpcqm.store.records import SYNCED_KEY, SYNCED_NUMBER

_log = get_logger("store")

_LOG_NAME = re.compile(r"([0-9]{1,20})\.log")
_MANIFEST_NAME = re.compile(rb"/?(MANIFEST-[0-9]{1,20})\n?")
"""The contents of CURRENT; a foreign file may lead anywhere (G521)."""
_LONGEST_CURRENT = 64
_MOST_LOGS = 0xFFFF_FFFF
"""The largest number of a log that its pieces have room for."""
_LOG_NUMBER, _NEXT_FILE, _LAST_SEQUENCE, _PREVIOUS_LOG, _OLDEST_LOG = 2, 3, 4, 9, 10
_COMPARATOR, _FAMILY, _FAMILY_NAME, _LARGEST_FAMILY, _IDENTITY = 1, 200, 201, 203, 8193
"""Tags of the fields of an edit (VersionEdit of RocksDB)."""
_NUMBERS = {_LOG_NUMBER, _NEXT_FILE, _LAST_SEQUENCE, _PREVIOUS_LOG, _OLDEST_LOG}
_NUMBERS |= {_FAMILY, _LARGEST_FAMILY}
_TEXTS = {_COMPARATOR, _FAMILY_NAME, _IDENTITY}
_BEGINNINGS = (NUMBERED + FULL, NUMBERED + FIRST)
"""Types of the pieces that records of a log begin with."""


def repair_logs(database: Path) -> None:
    """Cut the torn ends that a crash has left off the manifest and the logs of a database.

    The database must not be open. Raises StoreError with a sentence if a crash does not explain the
    damage.
    """
    oldest = 0  # without a manifest every log counts
    if (manifest := _current_manifest(database)) is not None:
        oldest = _mend_manifest(manifest)
    _mend_logs(_logs(database, oldest))


def _current_manifest(database: Path) -> Path | None:
    """The manifest, or None; RocksDB reports its absence when it opens the database."""
    try:
        with (database / "CURRENT").open("rb") as file:
            named = _MANIFEST_NAME.fullmatch(file.read(_LONGEST_CURRENT))
    except FileNotFoundError:
        return None
    path = None if named is None else database / named[1].decode("ascii")
    return path if path is not None and path.is_file() else None


def _logs(database: Path, oldest: int) -> list[tuple[int, Path]]:
    """Numbers and paths of the logs that are still needed, in order.

    Raises StoreError for a number that no log has.
    """
    found = [(_LOG_NAME.fullmatch(path.name), path) for path in database.iterdir()]
    logs = sorted((int(match[1]), path) for match, path in found if match is not None)
    if logs and logs[-1][0] > _MOST_LOGS:
        raise StoreError(f"The log {logs[-1][1]} has a number that no log gets to.")
    return [log for log in logs if log[0] >= oldest]


@dataclass(slots=True)
class Manifest:
    """The contents of the whole edits at the beginning of a manifest."""

    end: int = 0
    oldest_log: int = 0
    last_sequence: int = 0

    def add(self, edit: bytes, end: int) -> None:
        """Take the next edit into account; it ends at an offset of the file."""
        self.end = end
        for tag, value in _edit_fields(edit):
            if tag == _OLDEST_LOG:
                self.oldest_log = max(self.oldest_log, value)
            elif tag == _LAST_SEQUENCE:
                self.last_sequence = max(self.last_sequence, value)


def _edit_fields(edit: bytes) -> Iterator[tuple[int, int]]:
    """The simple fields at the beginning of an edit; 0 for the value of a text."""
    at = 0
    while at < len(edit):
        tag, at = _number(edit, at)
        if tag not in _NUMBERS and tag not in _TEXTS:
            return
        value, at = _number(edit, at)
        if tag in _TEXTS:
            value, at = 0, at + value
        yield tag, value


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, and the offset of its end."""
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            break
    return value, at


def _mend_manifest(path: Path) -> int:
    """Cut the torn end off a manifest; the number of the oldest log that it needs."""
    data, manifest = path.read_bytes(), Manifest()
    for edit, end in whole_records(data):
        manifest.add(edit, end)
    if manifest.end < len(data):
        _refuse_what_no_crash_does(path, data, manifest)
        _log.warning(
            "the end of the manifest, which a crash tore, is cut off",
            file=path.name,
            bytes=len(data) - manifest.end,
        )
        _cut(path, manifest.end)
    return manifest.oldest_log


def _refuse_what_no_crash_does(path: Path, data: bytes, manifest: Manifest) -> None:
    """Raise StoreError if the part behind the whole one had been synced."""
    if manifest.end == 0 or _adds_family(data, manifest.end):
        raise StoreError(
            f"The file {path} is damaged in what was durable long ago: restore a backup."
        )
    for number, log in _logs(path.parent, manifest.oldest_log):
        first = next(whole_records(log.read_bytes(), number), None)
        if first is not None:
            if _sequences(first[0])[0] > manifest.last_sequence + 1:
                raise StoreError(
                    f"The file {path} is damaged, and logs that it needs are gone: "
                    "restore a backup."
                )
            return


def _adds_family(data: bytes, start: int) -> bool:
    """Whether a whole edit behind the damage adds a family, which is never torn with others."""
    for at in range(start + 1, len(data) - PLAIN_HEADER.size):
        if (piece := read_piece(data, at, None)) is not None and any(
            tag == _FAMILY_NAME for tag, _ in _edit_fields(piece.content)
        ):
            return True
    return False


def _sequences(batch: bytes) -> tuple[int, int]:
    """The first sequence number of a batch, and the first one behind it."""
    first = int.from_bytes(batch[:8], "little")
    return first, first + int.from_bytes(batch[8:12], "little")


def number_of_write(batch: bytes) -> int | None:
    """The number of a synced write, which is its last record; None if the write was not synced."""
    end = len(batch) - SYNCED_NUMBER.size - 1
    if batch[end - len(SYNCED_KEY) : end] != SYNCED_KEY or batch[end] != SYNCED_NUMBER.size:
        return None
    number: int = SYNCED_NUMBER.unpack_from(batch, end + 1)[0]
    return number


@dataclass(slots=True)
class LogScan:
    """The state of reading the logs, up to the first discontinuity."""

    expected: int | None = None
    synced: int | None = None
    cuts: list[tuple[Path, int]] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)

    def read(self, number: int, path: Path) -> None:
        """Take the next log into account."""
        data, kept = path.read_bytes(), 0
        for batch, end in whole_records(data, number):
            first, following = _sequences(batch)
            if self.expected not in (None, first):
                break
            self.expected, kept = following, end
            self.synced = number_of_write(batch) or self.synced
        if kept < len(data):
            self.cuts.append((path, kept))
            self.behind += _writes_behind(data, number, kept)

    def is_damage(self) -> bool:
        """Whether a synced write is damaged.

        Of the synced writes behind a discontinuity, a crash can explain the first: it was under
        way.
        """
        if not self.behind:
            return False
        first = min(self.behind) if self.synced is None else self.synced + 1
        return max(self.behind) > first


def _writes_behind(data: bytes, number: int, start: int) -> list[int]:
    """The numbers of the synced writes that are whole somewhere behind an offset of a log."""
    found, name = [], number.to_bytes(4, "little")
    at = data.find(name, start)
    while at >= 0:
        following = at + 1
        piece = at - PLAIN_HEADER.size
        if piece >= start and data[at - 1] in _BEGINNINGS:
            for batch, end in whole_records(data, number, piece):
                following = end
                if (synced := number_of_write(batch)) is not None:
                    found.append(synced)
        at = data.find(name, following)
    return found


def _mend_logs(logs: list[tuple[int, Path]]) -> None:
    """Cut every log at the first record that is not whole or does not join on.

    The rest of an earlier log in a reused file begins there, too.
    """
    scan = LogScan()
    for number, path in logs:
        if read_piece(path.read_bytes(), 0, None) is not None:
            break  # a log without numbers, which this program does not write
        scan.read(number, path)
    if scan.is_damage():
        path, kept = scan.cuts[0]
        raise StoreError(
            f"The log {path} is damaged at byte {kept}, and writes that were answered follow: "
            "restore a backup, or cut the file there to go on without them."
        )
    for path, kept in scan.cuts:
        _cut(path, kept)


def _cut(path: Path, length: int) -> None:
    """Cut a file durably."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.ftruncate(descriptor, length)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
