"""The one RocksDB database and its settings, without knowledge of messages."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    BottommostLevelCompaction,
    Cache,
    Checkpoint,
    CompactOptions,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)
from rocksdict import ColumnFamily as FamilyHandle

from rpcqm.base.files import sync_directory
from rpcqm.base.log import get_logger
from rpcqm.store.errors import StoreError, StoreLockedError
from rpcqm.store.log_repair import repair_logs
from rpcqm.store.records import LOG_POSITION_KEY, MOST, SYNCED_KEY, SYNCED_NUMBER, Family
from rpcqm.store.settings import KIB, MIB, StoreSettings

DATABASE_NAME = "messages"
CONFIG_NAME = "rocksdict-config.json"
BLOB_AGE = 0.25
"""Compaction rewrites what is left in the oldest quarter of the files of large bodies."""

_log = get_logger("store")
_open_here: set[Path] = set()


def is_open_here(directory: Path) -> bool:
    """Whether this very process has the database of a directory open for writing.

    File locks cannot answer that: they belong to the process, and go when it closes the file
    anywhere.
    """
    return (directory / DATABASE_NAME).resolve() in _open_here


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a data directory, which keeps its database from being opened elsewhere.

    Raises StoreLockedError if it is open, here or in another process.
    """
    if is_open_here(directory):
        raise StoreLockedError(f"This process has {directory} open.")
    descriptor = os.open(directory / DATABASE_NAME / "LOCK", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise StoreLockedError(
            f"Another process has {directory} open: stop it, or choose another data directory."
        ) from error
    try:
        yield
    finally:
        os.close(descriptor)


def make_durable_directory(path: Path) -> None:
    """Make a directory and its parents, with names that survive the loss of power."""
    if not path.is_dir():
        make_durable_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync_directory(path.parent)


class Database:
    """An open database; errors of RocksDB come out as they are, except when opening.

    Reads and writes are in bytes. `handles` name the families in a batch.
    """

    def __init__(self, directory: Path, settings: StoreSettings, read_only: bool = False) -> None:
        self.path = directory / DATABASE_NAME
        self._settings = settings
        try:
            make_durable_directory(self.path)
            self._drop_torn_config()
            if not read_only:
                with locked(directory):
                    repair_logs(self.path)
        except OSError as error:
            raise StoreError(
                f"The data directory {directory} cannot be used: {error.strerror}."
            ) from error
        self._db = self._open(read_only)
        if not read_only:
            _open_here.add(self.path.resolve())
        self.handles: dict[Family, FamilyHandle] = {
            family: self._db.get_column_family_handle(family.value) for family in Family
        }
        self.families: dict[Family, Rdict] = {
            family: self._db.get_column_family(family.value) for family in Family
        }
        self._synced = WriteOptions()
        self._synced.sync = True
        self._unsynced = WriteOptions()
        self._synced_writes = self._last_synced()

    def _last_synced(self) -> int:
        """The number of the last synced write; raises StoreError for an impossible one."""
        octets = self.get(Family.META, SYNCED_KEY)
        if octets is None:
            return 0
        number = SYNCED_NUMBER.unpack(octets)[0] if len(octets) == SYNCED_NUMBER.size else MOST
        if number >= MOST:
            self.close()
            raise StoreError(f"The database in {self.path} is damaged: restore a backup.")
        return int(number)

    def _drop_torn_config(self) -> None:
        """Delete the binding's own note of its mode if it is torn; opening makes it anew."""
        path = self.path / CONFIG_NAME
        try:
            json.loads(path.read_bytes())
        except FileNotFoundError:  # a new database has none yet
            return
        except (ValueError, RecursionError):  # a crash has left a part of it
            path.unlink()

    def _open(self, read_only: bool) -> Rdict:
        cache = Cache(self._settings.block_cache)
        families = {family.value: self._family_options(family, cache) for family in Family}
        access = AccessType.read_only(False) if read_only else AccessType.read_write()
        try:
            return Rdict(str(self.path), self._options(cache), families, access)
        except Exception as error:
            raise _explained(error, self.path) from error

    def _options(self, cache: Cache) -> Options:
        options = self._family_options(Family.META, cache)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        options.set_recycle_log_file_num(1)  # one is flushed while another one is written
        # All families are flushed at once: an old log is free for reuse as soon as one is full.
        options.set_atomic_flush(True)
        options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
        # Bounds of memory, of the log that a start reads, and of RocksDB's own log files.
        options.set_db_write_buffer_size(3 * self._settings.memtable)
        options.set_max_total_wal_size(8 * self._settings.memtable)
        options.set_bytes_per_sync(
            MIB
        )  # tables are written evenly, so that syncs of the log do not wait
        options.set_max_background_jobs(2)
        options.set_keep_log_file_num(4)
        options.set_max_log_file_size(4 * MIB)
        options.set_stats_dump_period_sec(0)
        options.set_is_fd_close_on_exec(True)
        options.set_avoid_unnecessary_blocking_io(True)
        options.set_paranoid_checks(True)
        return options

    def _family_options(self, family: Family, cache: Cache) -> Options:
        options = Options(raw_mode=True)
        options.set_write_buffer_size(self._settings.memtable)
        options.set_max_write_buffer_number(4)
        options.set_compression_type(DBCompressionType.none())
        options.set_target_file_size_base(16 * MIB)
        options.set_max_bytes_for_level_base(128 * MIB)
        options.set_max_compaction_bytes(128 * MIB)  # what a compaction needs besides
        options.add_compact_on_deletion_collector_factory(4096, 2048, 0.5)
        table = BlockBasedOptions()
        table.set_block_cache(cache)
        table.set_block_size(16 * KIB)
        table.set_cache_index_and_filter_blocks(True)
        options.set_block_based_table_factory(table)
        if family is Family.BODY:
            options.set_enable_blob_files(True)
            options.set_min_blob_size(self._settings.large_body)
            options.set_blob_file_size(16 * MIB)  # small ones are given back sooner
            options.set_enable_blob_gc(True)
            options.set_blob_gc_age_cutoff(BLOB_AGE)
            options.set_blob_gc_force_threshold(0.5)
        return options

    def get(self, family: Family, key: bytes) -> bytes | None:
        value: bytes | None = self.families[family].get(key)
        return value

    def items(
        self, family: Family, prefix: bytes = b"", first: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """Every key from `first` on that begins with `prefix` and its value, in order."""
        start = max(prefix, first)
        for key, value in self.families[family].items(from_key=start, read_opt=self.scan()):
            assert isinstance(key, bytes)
            if not key.startswith(prefix):
                return
            yield key, value

    def scan(self) -> ReadOptions:
        """Options for reading a whole family once."""
        options = ReadOptions()
        options.set_readahead_size(self._settings.recovery_readahead)
        fill_cache: Any = options.fill_cache  # its stub lacks the argument
        fill_cache(False)
        return options

    def write(self, batch: WriteBatch, sync: bool, position: bytes | None = None) -> None:
        """Write a batch, atomically; durable on return when `sync`.

        `position` is the place of the replicated log after this write, in a cluster. A synced write
        has its number as the last record, by which a start distinguishes damage from the traces of
        a crash (`log_repair`).
        """
        if position is not None:
            batch.put(LOG_POSITION_KEY, position, self.handles[Family.META])
        if sync:
            self._synced_writes += 1
            batch.put(
                SYNCED_KEY, SYNCED_NUMBER.pack(self._synced_writes), self.handles[Family.META]
            )
        self._db.write(batch, self._synced if sync else self._unsynced)

    def sync(self) -> None:
        """Make the unsynced writes durable; may be called from a thread."""
        self._db.flush_wal(True)

    def background_errors(self) -> int:
        """The number of errors that RocksDB's own threads have met since the start."""
        return self._db.property_int_value("rocksdb.background-errors") or 0

    def checkpoint(self, directory: Path) -> None:
        """Make a consistent copy, a data directory of its own, while everything goes on."""
        make_durable_directory(directory)
        Checkpoint(self._db).create_checkpoint(str(directory / DATABASE_NAME))

    def tidy(self) -> None:
        """Reclaim the space of most removed data, with little temporary space."""
        self.families[Family.BODY].compact_range(None, None)

    def compact(self) -> None:
        """Reclaim the space of all removed data; this takes long."""
        everything = CompactOptions()
        everything.set_bottommost_level_compaction(BottommostLevelCompaction.force())
        self._collect_blobs(1.0)
        try:
            for family in self.families.values():
                family.compact_range(None, None, everything)
        finally:
            self._collect_blobs(BLOB_AGE)

    def _collect_blobs(self, share: float) -> None:
        """Set which share of the blob files, from the oldest on, compaction may rewrite."""
        self.families[Family.BODY].set_options({"blob_garbage_collection_age_cutoff": str(share)})

    def disk_bytes(self) -> int:
        """The bytes that the files take on the disk."""
        total = 0
        for path in self.path.iterdir():
            with suppress(FileNotFoundError):  # a file of RocksDB may go at any time
                total += path.stat().st_blocks * 512  # st_blocks has this unit everywhere
        return total

    def cancel_background_work(self) -> None:
        """Make work in the background end soon, without which the database cannot be closed."""
        self._db.cancel_all_background(True)

    def close(self) -> None:
        """Close the database; the directory stays locked while a handle or a family is in use.

        What is in memory goes to tables, or stays in the log.
        """
        self.handles.clear()
        self.families.clear()
        try:
            self._db.close()
        except Exception as error:  # the data is safe: the next start repeats what was left out
            _log.warning("database closed without tidying up", error=str(error))
        _open_here.discard(self.path.resolve())


def _explained(error: Exception, path: Path) -> StoreError:
    text = str(error)
    if "lock" in text.lower():
        return StoreLockedError(
            f"Another process has {path} open: stop it, or choose another data directory."
        )
    return StoreError(f"The database in {path} cannot be opened: {text}")
