"""What the fault suite is made of: its faults come by a seed, and its evidence from the log."""

import argparse
from itertools import chain

from rpcqm.replica.following import Writer
from rpcqm.store.replication import DIGEST_SIZE, LogRecord, RecordKind
from tests.support.cluster import faults
from tests.support.cluster.evidence import written
from tests.support.cluster.history import Name, Written
from tests.support.soak import replica_soak
from tests.support.soak.soak_record import Goal, Record


def test_all_kinds_of_faults_come_before_any_comes_again() -> None:
    kinds = len(faults.KINDS)
    assert len({kind.name for kind in faults.KINDS}) == kinds
    first = [each[0] for each in faults.chosen(7, 2 * kinds)]
    assert set(first[:kinds]) == set(first[kinds:]) == set(faults.KINDS)
    assert set(map(len, faults.chosen(7, kinds))) == {1, 2}


def test_a_part_of_a_run_has_the_faults_that_the_whole_run_has_there() -> None:
    whole = faults.chosen(3, 100)
    parts = [faults.chosen(3, first + 10)[first:] for first in range(0, 100, 10)]
    assert [*chain.from_iterable(parts)] == whole
    assert faults.chosen(4, 100) != whole


def _record(kind: RecordKind, epoch: int, number: int, body: bytes) -> bytes:
    return LogRecord(kind, bytes(16), epoch, number, bytes(DIGEST_SIZE), 2, 7, body).encode()


def test_records_tell_their_writer_and_the_messages_in_them() -> None:
    records = [
        _record(RecordKind.TAKEOVER, 1, 1, Writer(bytes(16), "alice").encode()),
        _record(RecordKind.ROWS, 1, 2, b"\0<rpc-a:1>...<rpc-a:2>"),
        _record(RecordKind.NOTHING, 1, 3, b""),
        _record(RecordKind.TAKEOVER, 2, 4, Writer(bytes(16), "bob").encode()),
        _record(RecordKind.ROWS, 2, 5, Name("carol", 10).body),
    ]
    assert written(records) == [
        Written(1, 1, "alice"),
        Written(2, 1, "alice", (Name("rpc-a", 1), Name("rpc-a", 2))),
        Written(3, 1, "alice"),
        Written(4, 2, "bob"),
        Written(5, 2, "bob", (Name("carol", 10),)),
    ]


def test_the_last_line_sums_all_parts(tmp_path: object) -> None:
    made = replica_soak.parser()
    given = made.parse_args(["--faults", "13", "--state", str(tmp_path), "--again"])
    assert isinstance(given, argparse.Namespace)
    record = Record(made, given, Goal(2))
    told = {"faults": 10, "acknowledged": 700, "taken": 90, "lost": 0, "twice": 0, "problems": []}
    record.keep("0", replica_soak.part_of(told))
    more = {**told, "faults": 3, "lost": 2, "problems": ["2 are lost: a:1, a:2"]}
    record.keep("10", replica_soak.part_of(more))
    assert replica_soak.last_line(record) == "13 faults, 1400 acknowledged, 2 lost, 0 twice"
    assert record.failures == ["2 are lost: a:1, a:2"]
