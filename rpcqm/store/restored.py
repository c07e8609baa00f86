"""The single step after a restore from a backup, before anybody uses the store.

Events after the backup are lost: numbers given since then must not be given again (G358, G359). The
changes are one synced write, which also records that they are made. So a crash leaves all of it for
the next start, or nothing.
"""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from rocksdict import WriteBatch

from rpcqm.base.clock import Clock
from rpcqm.base.log import get_logger
from rpcqm.store.counters import Counters
from rpcqm.store.database import Database
from rpcqm.store.records import COUNTER, Family

RESTORED_NAME = "restored"
"""The mark of restored data: a file with unique contents for each restore (G237, G358)."""
MAXIMUM_MARK = 4096
"""What is read of the mark of restored data.

`new_mark` writes a hundred.

Bound `backup.mark_octets` [octets]: a mark that differs from the last one only behind them is the
same one.
"""

GONE_ON_KEY = b"gone on after restore"
"""In META: the mark of the restore after which numbers have begun anew."""

ORDINALS_AT_LEAST = 1 << 28
ORDINALS_BELOW = 1 << 31
"""The largest number of message identifiers that a restore skips: random, so that two restores of
one backup do not give the same ones, and few of the 32 bits that they have (G359)."""
LOOKUP_IDENTIFIERS_LEFT_OUT = 1 << 32
"""The number of lookup identifiers that are skipped at least, and at most twice: of 56 bits."""

Records = Callable[[bytes], Iterator[tuple[bytes, bytes]]]
"""Gives the records of protocols whose keys have a prefix."""
BeginAnew = Callable[[Records, int], Mapping[bytes, bytes | None]]
"""Gives the changes of such records that let numbering begin anew; None removes one.

The number is a time not before the backup, in seconds since 1970.
"""

_log = get_logger("store")


def new_mark(made: object) -> bytes:
    """The mark of one restore; `made` is the time of the backup in its note."""
    return json.dumps({"restore": secrets.token_hex(16), "made": made}).encode()


def is_pending(database: Database, directory: Path) -> bool:
    """Whether the data was restored, and its numbers have not begun anew yet.

    Raises OSError if the mark cannot be read.
    """
    mark = _read(directory / RESTORED_NAME)
    return mark is not None and database.get(Family.META, GONE_ON_KEY) != mark


def go_on(database: Database, directory: Path, begin_anew: BeginAnew, clock: Clock) -> None:
    """Begin numbers anew after a restore, once.

    Raises OSError if the mark cannot be read.
    """
    mark = _read(directory / RESTORED_NAME)
    if mark is None or database.get(Family.META, GONE_ON_KEY) == mark:
        return
    now = max(clock.now() // 1000, _made(mark))
    changes = begin_anew(lambda prefix: database.items(Family.STREAM, prefix), now)
    batch = WriteBatch(raw_mode=True)
    _leave_out(database, batch)
    for key, value in changes.items():
        _change(batch, database, key, value)
    batch.put(GONE_ON_KEY, mark, database.handles[Family.META])
    database.write(batch, sync=True)
    _log.info("restored from a backup: numbers begin anew")


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(MAXIMUM_MARK)
    except FileNotFoundError:  # most data was never restored
        return None


def _made(mark: bytes) -> int:
    """The time of the backup, in seconds since 1970; 0 if the mark has none."""
    try:
        return int(datetime.fromisoformat(json.loads(mark)["made"]).timestamp())
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return 0  # written by an earlier version, or by an operator


def _leave_out(database: Database, batch: WriteBatch) -> None:
    counters = Counters(lambda key, value: None)
    spread = ORDINALS_BELOW - ORDINALS_AT_LEAST
    several = LOOKUP_IDENTIFIERS_LEFT_OUT
    for counter, count in (
        (counters.message_ordinal, ORDINALS_AT_LEAST + secrets.randbelow(spread)),
        (counters.lookup_identifier, several + secrets.randbelow(several)),
    ):
        counter.resume(database.get(Family.META, counter.key))
        limit = COUNTER.pack(counter.limit + count)
        batch.put(counter.key, limit, database.handles[Family.META])


def _change(batch: WriteBatch, database: Database, key: bytes, value: bytes | None) -> None:
    handle = database.handles[Family.STREAM]
    if value is None:
        batch.delete(key, handle)
    else:
        batch.put(key, value, handle)
