"""Records of a replicated log: what they hold, and that a replay of them is the database."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from google_crc32c import value as crc32c

from rpcqm.store import replication
from rpcqm.store.database import Database
from rpcqm.store.errors import PositionStateError, ReplicationError
from rpcqm.store.fsck import check
from rpcqm.store.migration import FORMAT, enter_cluster, place_of_database
from rpcqm.store.records import LOG_POSITION_KEY, SYNCED_KEY, Family
from rpcqm.store.replay import Replay
from rpcqm.store.replication import (
    MAXIMUM_PARTS,
    MAXIMUM_RECORD,
    LogRecord,
    Place,
    RecordKind,
    RowWriter,
    parts_of,
    place_of,
    read_rows,
)
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from tests.crash.script import Operation, Script, perform
from tests.support.store.kept_log import INCARNATION, KeptLog, begin_cluster, replay, rows_of
from tests.support.store.stores import Turns

RECORD = LogRecord(RecordKind.ROWS, INCARNATION, 3, 9, b"8 octets", FORMAT, 1_000, b"body", 2, 5)


# Records and rows


def test_a_record_is_read_as_it_was_written() -> None:
    assert LogRecord.decode(RECORD.encode()) == RECORD


def test_no_octet_of_a_record_can_change_without_notice() -> None:
    octets = RECORD.encode()
    for at in range(len(octets)):
        for bit in (1, 0x80):
            damaged = octets[:at] + bytes([octets[at] ^ bit]) + octets[at + 1 :]
            with pytest.raises(ReplicationError, match="is damaged"):
                LogRecord.decode(damaged)


@pytest.mark.parametrize("length", [0, 3, 67, MAXIMUM_RECORD + 1])
def test_what_is_too_short_or_too_long_is_no_record(length: int) -> None:
    with pytest.raises(ReplicationError, match="no record"):
        LogRecord.decode(bytes(length))


def resealed(octets: bytes, at: int, value: bytes) -> bytes:
    """A record with other octets, whose checksum is right."""
    checked = octets[4:at] + value + octets[at + len(value) :]
    crc: int = crc32c(checked)
    return crc.to_bytes(4, "little") + checked


@pytest.mark.parametrize(("at", "value"), [(4, b"\x02\0"), (6, b"\x63")], ids=["format", "kind"])
def test_a_record_of_a_later_version_says_so(at: int, value: bytes) -> None:
    with pytest.raises(ReplicationError, match="newer version"):
        LogRecord.decode(resealed(RECORD.encode(), at, value))


@pytest.mark.parametrize(
    "changes",
    [
        {"part": 0},
        {"part": 6},
        {"parts": MAXIMUM_PARTS + 1},
        {"number": 0},
        {"number": 1 << 62},
        {"epoch": 0},
        {"kind": RecordKind.NOTHING},
    ],
    ids=str,
)
def test_a_record_that_nobody_would_write_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ReplicationError, match="has a wrong"):
        LogRecord.decode(replace(RECORD, **changes).encode())


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database of a cluster whose log is empty."""
    database = Database(tmp_path / "standby", StoreSettings())
    enter_cluster(database, Place.beginning(INCARNATION))
    yield database
    database.close()


def test_rows_are_read_as_they_were_written(database: Database) -> None:
    rows: list[tuple[Family, bytes, bytes | None]] = [
        (family, key, value)
        for family in Family
        for key, value in ((b"key", b"value"), (b"", b""), (b"k" * 300, None), (b"key", None))
    ]
    handles = database.handles
    octets = RowWriter(handles).write([(key, value, handles[f]) for f, key, value in rows])
    assert list(read_rows(octets)) == rows
    with pytest.raises(ReplicationError, match="within a row"):
        list(read_rows(octets[:6]))
    with pytest.raises(ReplicationError, match="wrong row"):
        list(read_rows(octets[:12]))


@pytest.mark.parametrize(
    "row", [b"\x07\0\0\0\0\0\0", b"\x80\0\0\x01\0\0\0x", b"\0\xff\xff\xff\xff\xff\xff"]
)
def test_a_row_that_nobody_would_write_is_refused(row: bytes) -> None:
    with pytest.raises(ReplicationError, match="wrong row"):
        list(read_rows(row))


def test_a_write_that_no_records_have_room_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replication, "MAXIMUM_BODY", 2)
    assert parts_of(b"") == [b""]
    assert parts_of(b"12345") == [b"12", b"34", b"5"]
    assert len(parts_of(bytes(2 * MAXIMUM_PARTS))) == MAXIMUM_PARTS
    with pytest.raises(ReplicationError, match="2,049 bytes"):
        parts_of(bytes(2 * MAXIMUM_PARTS + 1))


# A replay of all records is the database


def run_script(directory: Path, seed: int) -> list[bytes]:
    """Do a long story in a cluster, with some restarts; all that the log has then."""
    script, random = Script(seed, 120), Random(seed)
    turns = Turns(directory)
    log = begin_cluster(turns.directory)
    log.take_over()
    store = turns.open(log=log)
    for change in script.changes:
        try:
            change_store(store, change)
        except PositionStateError:  # what it is about is not visible yet
            settle(turns, log)
            change_store(store, change)
        if random.random() < 0.3:
            settle(turns, log)
        if random.random() < 0.05:
            settle(turns, log)
            store.close()
            log.take_over()
            store = turns.open(log=log)
    settle(turns, log)
    store.close()
    assert not turns.fatal
    return log.records


def change_store(store: Store, change: list[Operation]) -> None:
    with store.transaction("change") as txn:
        for operation in change:
            perform(store, txn, operation)


def settle(turns: Turns, log: KeptLog) -> None:
    turns.end()
    while log.answer():
        turns.end()


@pytest.mark.parametrize(("seed", "octets"), [(1, 1 << 20), (2, 900), (3, 1 << 20), (4, 5_000)])
def test_a_replay_of_the_whole_log_is_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, octets: int
) -> None:
    """Also where writes take several records each."""
    monkeypatch.setattr(replication, "MAXIMUM_BODY", octets)
    records = run_script(tmp_path / "primary", seed)
    begin_cluster(tmp_path / "standby")
    replay(tmp_path / "standby", records)
    rows = rows_of(tmp_path / "primary")
    assert len(rows) > 50
    assert rows_of(tmp_path / "standby") == rows
    assert [str(each) for each in check(tmp_path / "standby")] == [
        str(each) for each in check(tmp_path / "primary")
    ]


def test_a_standby_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it had read when it stopped: what was not written is read again."""
    monkeypatch.setattr(replication, "MAXIMUM_BODY", 2_000)
    records = run_script(tmp_path / "primary", 5)
    begin_cluster(tmp_path / "standby")
    random, last = Random(5), 0
    while last < len(records):
        last += random.randrange(1, 30)
        begun = replay(tmp_path / "standby", []).number
        replay(tmp_path / "standby", records[begun:last])
    assert rows_of(tmp_path / "standby") == rows_of(tmp_path / "primary")


# What does not belong there


class Writer:
    """Makes records that follow one another, or nearly so."""

    def __init__(self, database: Database) -> None:
        self.end = place_of_database(database)
        self._rows = RowWriter(database.handles)
        self._handles = database.handles

    def row(self, key: bytes, value: bytes, family: Family = Family.STREAM) -> bytes:
        return self._rows.write([(key, value, self._handles[family])])

    def record(
        self, kind: RecordKind, body: bytes = b"", wrong: bool = False, **changes: Any
    ) -> bytes:
        """The next record, which is the last one from now on if it is not a wrong one."""
        epoch = self.end.epoch + (kind is RecordKind.TAKEOVER)
        number = self.end.number + 1
        record = LogRecord(
            kind, self.end.incarnation, epoch, number, self.end.digest, FORMAT, 5, body
        )
        octets = replace(record, **changes).encode()
        if not wrong:
            self.end = place_of(record, octets)
        return octets


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"incarnation": bytes(16)}, "belongs to another log"),
        ({"number": 5}, "does not follow"),
        ({"number": 3}, "does not follow"),
        ({"before": b"8 octets"}, "does not follow"),
        ({"epoch": 1}, "taken over"),
        ({"epoch": 3}, "taken over"),
        ({"kind": RecordKind.TAKEOVER, "epoch": 2}, "taken over"),
        ({"store_format": FORMAT + 1}, "newer version"),
        ({"body": b"\x63"}, "within a row"),
        ({"part": 2, "parts": 2}, "part"),
    ],
    ids=str,
)
def test_a_record_out_of_order_is_not_written(
    database: Database, changes: dict[str, Any], sentence: str
) -> None:
    writer, replay = Writer(database), Replay(database)
    replay.feed(writer.record(RecordKind.TAKEOVER))
    replay.feed(writer.record(RecordKind.ROWS, writer.row(b"first", b"1")))
    replay.feed(writer.record(RecordKind.TAKEOVER))
    before = replay.end
    unlike: dict[str, Any] = {
        "kind": RecordKind.ROWS,
        "body": writer.row(b"wrong", b"2"),
        "wrong": True,
    } | changes
    with pytest.raises(ReplicationError, match=f"Record 4 of the log .*{sentence}"):
        replay.feed(writer.record(**unlike))
    assert replay.end == before
    assert place_of_database(database).number == 2
    replay.feed(writer.record(RecordKind.ROWS, writer.row(b"second", b"3")))
    assert [key for key, _ in database.items(Family.STREAM)] == [b"first", b"second"]
    assert place_of_database(database) == replay.end == writer.end


@pytest.mark.parametrize("key", [LOG_POSITION_KEY, SYNCED_KEY])
def test_no_record_writes_what_each_node_has_of_its_own(database: Database, key: bytes) -> None:
    writer, replay = Writer(database), Replay(database)
    replay.feed(writer.record(RecordKind.TAKEOVER))
    with pytest.raises(ReplicationError, match="of its own"):
        replay.feed(writer.record(RecordKind.ROWS, writer.row(key, bytes(8), Family.META)))


def test_a_write_in_parts_is_made_with_the_last_one(database: Database) -> None:
    writer, replay = Writer(database), Replay(database)
    replay.feed(writer.record(RecordKind.TAKEOVER))
    rows = writer.row(b"a", b"1") + writer.row(b"b", b"2")
    for part, body in enumerate((rows[:5], rows[5:11], rows[11:]), 1):
        assert not list(database.items(Family.STREAM))
        replay.feed(writer.record(RecordKind.ROWS, body, part=part, parts=3))
    assert dict(database.items(Family.STREAM)) == {b"a": b"1", b"b": b"2"}


def test_parts_without_the_last_one_are_void_after_a_takeover(database: Database) -> None:
    writer, replay = Writer(database), Replay(database)
    replay.feed(writer.record(RecordKind.TAKEOVER))
    replay.feed(writer.record(RecordKind.ROWS, writer.row(b"void", b"1"), part=1, parts=2))
    with pytest.raises(ReplicationError, match="part"):
        replay.feed(writer.record(RecordKind.NOTHING, wrong=True))
    replay.feed(writer.record(RecordKind.TAKEOVER))
    replay.feed(writer.record(RecordKind.ROWS, writer.row(b"kept", b"2")))
    assert dict(database.items(Family.STREAM)) == {b"kept": b"2"}


def test_the_latest_time_of_a_writer_is_remembered(database: Database) -> None:
    writer, replay = Writer(database), Replay(database)
    record: Callable[..., bytes] = writer.record
    replay.feed(record(RecordKind.TAKEOVER))
    assert replay.latest == 5
