"""fsck finds every kind of damage, and changes nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rocksdict import WriteBatch

from rpcqm.adm.queue import Queue
from rpcqm.adm.records import encode_queue
from rpcqm.adm.sent_keys import SENT_KEY_PREFIX, SentKey
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.store import migration
from rpcqm.store.database import DATABASE_NAME, Database
from rpcqm.store.errors import StoreError, StoreFormatError, StoreLockedError
from rpcqm.store.fsck import StoreProblemKind, check
from rpcqm.store.records import (
    COUNTER,
    NEVER,
    POSITION,
    POSITION_KEY,
    QUEUE_ID,
    SERIAL,
    STAGED,
    STAGED_KEY,
    Family,
)
from rpcqm.store.settings import StoreSettings
from tests.support.store.stores import Turns

SYSTEM, Q, JOURNAL, SUBQUEUE = 1, 16, 17, 18
OPEN = b"t" * 16
SENT_KEY = SentKey(1, "S-1-5-21-1", bytes(32), (MessageIdentifier(),))


def queue_record(journal: int = 0, parent: int = 0) -> bytes:
    queue = Queue(queue_id=Q)
    if journal:
        queue.journal_queue_reference = Queue(queue_id=journal)
    if parent:
        queue.parent = Queue(queue_id=parent)
    return encode_queue(queue)


@pytest.fixture
def sound(turns: Turns) -> Path:
    """A data directory with everything that may be in one."""
    store = turns.open()
    for _ in range(3):
        store.counters.queue_id.take()
    with store.transaction("populate") as txn:
        txn.put(Family.QUEUE, QUEUE_ID.pack(Q), queue_record(journal=JOURNAL))
        txn.put(Family.QUEUE, QUEUE_ID.pack(SUBQUEUE), queue_record(parent=Q))
        for queue_id in (SYSTEM, Q, JOURNAL, SUBQUEUE):
            key = store.counters.next_lookup_identifier(3)
            txn.insert(queue_id, key, bytes(5_000), arrival=1)
        txn.stage_message(OPEN, Q, b"staged", b"data")
        txn.stage(OPEN, b"operation")
        txn.put(Family.STREAM, SENT_KEY_PREFIX + bytes(32), SENT_KEY.encode())
        txn.put(Family.STREAM, b"another record", b"of a protocol")
    turns.end()
    store.close()
    return turns.directory


def test_a_sound_directory_has_no_findings(sound: Path) -> None:
    told: list[tuple[str, int]] = []
    assert check(sound, lambda family, count: told.append((family, count))) == []
    assert ("position", 4) in told
    assert ("body", 5) in told


def test_a_directory_is_sound_after_a_crash_with_an_open_transaction(turns: Turns) -> None:
    store = turns.open()
    with store.transaction("stage") as txn:
        txn.stage_message(OPEN, SYSTEM, b"staged", b"data")
    turns.end()
    store.close()
    assert check(turns.directory) == []


def test_fsck_changes_nothing(sound: Path) -> None:
    def contents() -> dict[str, bytes]:
        database = sound / DATABASE_NAME
        return {
            path.name: path.read_bytes()
            for path in database.iterdir()
            if not path.name.startswith("LOG")
        }

    before = contents()
    check(sound)
    assert contents() == before


Write = Callable[[Family, bytes, bytes | None], None]
Damage = Callable[[Write], None]

KEY = 4 << 56 | 9


def position(serial: int, size: int = 5_000) -> bytes:
    return POSITION.pack(serial, 1, NEVER, size, 0, 0, 0, 0)


def staged(kind: int, serial: int, size: int) -> bytes:
    return STAGED.pack(kind, Q, serial, size)


def write_position_without_queue(write: Write) -> None:
    write(Family.BODY, SERIAL.pack(6), b"body")
    write(Family.POSITION, POSITION_KEY.pack(30, KEY), position(6, 4))


DAMAGES: dict[StoreProblemKind, Damage] = {
    StoreProblemKind.UNREADABLE_QUEUE: lambda write: write(
        Family.QUEUE, QUEUE_ID.pack(SUBQUEUE + 1), b"{torn"
    ),
    StoreProblemKind.QUEUE_WITHOUT_PARENT: lambda write: write(
        Family.QUEUE, QUEUE_ID.pack(SUBQUEUE), queue_record(parent=31)
    ),
    StoreProblemKind.UNREADABLE_POSITION: lambda write: write(
        Family.POSITION, POSITION_KEY.pack(Q, KEY), b"short"
    ),
    StoreProblemKind.POSITION_WITHOUT_QUEUE: write_position_without_queue,
    StoreProblemKind.POSITION_WITHOUT_BODY: lambda write: write(Family.BODY, SERIAL.pack(2), None),
    StoreProblemKind.WRONG_SIZE: lambda write: write(Family.BODY, SERIAL.pack(2), b"cut"),
    StoreProblemKind.SHARED_BODY: lambda write: write(
        Family.POSITION, POSITION_KEY.pack(Q, KEY), position(2)
    ),
    StoreProblemKind.UNREADABLE_STAGED: lambda write: write(
        Family.STAGED, STAGED_KEY.pack(OPEN, 3), staged(7, 0, 0)
    ),
    StoreProblemKind.STAGED_WITHOUT_BODY: lambda write: write(
        Family.STAGED, STAGED_KEY.pack(OPEN, 3), staged(1, 99, 5)
    ),
    StoreProblemKind.ORPHANED_BODY: lambda write: write(Family.BODY, SERIAL.pack(50), b"nobody's"),
    StoreProblemKind.UNREADABLE_KEY: lambda write: write(
        Family.STREAM, SENT_KEY_PREFIX + bytes(31) + b"1", SENT_KEY.encode()[:-1]
    ),
    StoreProblemKind.COUNTER_BEHIND: lambda write: write(
        Family.META, b"counter:serial", COUNTER.pack(3)
    ),
}


@pytest.mark.parametrize("kind", DAMAGES, ids=lambda kind: kind.name.lower())
def test_damage_is_found(sound: Path, kind: StoreProblemKind) -> None:
    database = Database(sound, StoreSettings())
    batch = WriteBatch(raw_mode=True)

    def write(family: Family, key: bytes, value: bytes | None) -> None:
        if value is None:
            batch.delete(key, database.handles[family])
        else:
            batch.put(key, value, database.handles[family])

    DAMAGES[kind](write)
    database.write(batch, sync=True)
    database.close()
    findings = check(sound)
    assert [finding.kind for finding in findings] == [kind]
    assert findings[0].subject in str(findings[0])


@pytest.mark.parametrize("counter", ["serial", "lookup identifier", "queue id"])
def test_a_lost_counter_is_found(sound: Path, counter: str) -> None:
    database = Database(sound, StoreSettings())
    batch = WriteBatch(raw_mode=True)
    batch.delete(b"counter:" + counter.encode(), database.handles[Family.META])
    database.write(batch, sync=True)
    database.close()
    assert [str(finding.kind.name) for finding in check(sound)] == ["COUNTER_BEHIND"]


def test_a_file_that_cannot_be_read_is_found(sound: Path) -> None:
    database = Database(sound, StoreSettings())
    database.tidy()
    database.close()
    tables = sorted((sound / DATABASE_NAME).glob("*.blob"))
    assert tables
    for table in tables:
        content = bytearray(table.read_bytes())
        content[len(content) // 2] ^= 1
        table.write_bytes(content)
    kinds = {finding.kind for finding in check(sound)}
    assert StoreProblemKind.DAMAGED_FILE in kinds


def test_no_database_is_no_finding_but_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no database"):
        check(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_use_is_refused(turns: Turns) -> None:
    store = turns.open()
    with pytest.raises(StoreLockedError):
        check(turns.directory)
    store.close()


def test_a_newer_format_is_refused(sound: Path) -> None:
    database = Database(sound, StoreSettings())
    migration.bring_to_format(database, 3, {2: lambda *_: None})
    database.close()
    with pytest.raises(StoreFormatError):
        check(sound)
