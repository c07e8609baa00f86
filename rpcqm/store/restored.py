"""What a store does once, before anybody uses it, when it was restored from a backup.

What happened after the backup is not known: numbers that were given since then must not be given
again (G358, G359). The changes are one synced write, which also says that they are made. So a crash
leaves all of it for the next start, or nothing.
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
"""The mark of restored data: a file with what no other restore has written (G237, G358)."""
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
"""How many identifiers of messages a restore leaves out: by chance, so that two restores of one
backup do not give the same ones, and few beside the 32 bits that they have (G359)."""
LOOKUP_IDENTIFIERS_LEFT_OUT = 1 << 32
"""At least, and up to twice as many: of 56 bits."""

Records = Callable[[bytes], Iterator[tuple[bytes, bytes]]]
"""The records of protocols whose keys begin so."""
BeginAnew = Callable[[Records, int], Mapping[bytes, bytes | None]]
"""The changes of such records by which what was numbered begins anew; None removes one.

The number is a time that is not before the backup, in seconds since 1970."""

_log = get_logger("store")


def new_mark(made: object) -> bytes:
    """The mark of one restore; `made` is when the backup was made, as its note says."""
    return json.dumps({"restore": secrets.token_hex(16), "made": made}).encode()


def is_pending(database: Database, directory: Path) -> bool:
    """Whether the data was restored, and its numbers have not begun anew yet.

    Raises OSError if the mark cannot be read.
    """
    mark = _read(directory / RESTORED_NAME)
    return mark is not None and database.get(Family.META, GONE_ON_KEY) != mark


def go_on(database: Database, directory: Path, begin_anew: BeginAnew, clock: Clock) -> None:
    """Begin numbers anew if the data was restored and that has not been done yet.

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
    """When the backup was made, in seconds since 1970; 0 if the mark does not say."""
    try:
        return int(datetime.fromisoformat(json.loads(mark)["made"]).timestamp())
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return 0  # an earlier version, or an operator, has written it


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
