"""Files of Windows' Network Monitor 2 hold the records of other captures."""

import gzip
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.capture.columnar.record_batch import read_pieces
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import CaptureError, read_records
from rpcqm.cli.main import main
from rpcqm.pipeline.column_tables import file_tables
from rpcqm.pipeline.coverage import coverage
from rpcqm.pipeline.splitting import splits
from tests.support.capture.captures import TIME, pcap, read, segment
from tests.support.capture.netmon import START, frame, netmon
from tests.support.capture.traffic import traffic

FRAMES = [segment(100 + n, b"x" * (n + 1)) for n in range(20)]


def made(minor: int = 0, **more: object) -> bytes:
    return netmon([frame(each, n, minor) for n, each in enumerate(FRAMES)], minor, **more)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "capture.cap"


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("minor", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("hole", [0, 7])
def test_every_minor_version_is_read(path: Path, minor: int, hole: int) -> None:
    """Wherever frames are; their own moments count where they have some."""
    path.write_bytes(made(minor, hole=hole) if minor < 4 else made(3).replace(b"\3\2", b"\4\2", 1))
    found, problems = read(path)
    assert [record[2] for record in found] == FRAMES
    finer = 100 if minor >= 3 else 0
    assert [record[0] for record in found[:2]] == [TIME + finer, TIME + 1_000_000 + finer]
    assert {record[1] for record in found} == {1}
    assert problems.total == 0


def test_the_beginning_is_local_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    path.write_bytes(made())
    assert read(path)[0][0][0] == TIME + 5 * 3600 * 1_000_000_000
    path.write_bytes(made(3))
    assert read(path)[0][0][0] == TIME + 100


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_packed_files_are_read(path: Path, pack: object) -> None:
    path.write_bytes(pack(made(2)))  # type: ignore[operator]
    assert [record[2] for record in read(path)[0]] == FRAMES


def test_frames_come_in_the_order_of_the_table(path: Path) -> None:
    frames = [frame(each, n, 1) for n, each in enumerate(FRAMES[:3])]
    first, second = 128, 128 + len(frames[0])
    path.write_bytes(netmon(frames, 1, places=[second, first]))
    assert [record[2] for record in read(path)[0]] == [FRAMES[1], FRAMES[0]]


def test_each_frame_has_its_network(path: Path) -> None:
    """Ethernet, IP, Wi-Fi, a link type of its own, and one that is nowhere else; notes are none."""
    networks = (0, 1, 8, 6, 0xE000 + 101, 5, 0xFFFB, 0xFFFF)
    path.write_bytes(netmon([frame(b"x" * 20, n, 1, each) for n, each in enumerate(networks)], 1))
    assert [record[1] for record in read(path)[0]] == [1, 1, 101, 105, 101, (1 << 16) + 5]
    path.write_bytes(netmon([frame(b"x" * 20, 0, 0)], network=9))
    assert [record[1] for record in read(path)[0]] == [101]


def test_tables_that_point_outside_cost_the_frames_they_name(path: Path) -> None:
    """A frame behind the end, one that goes beyond it, and a table that is longer than the file."""
    frames = [frame(each, n, 0) for n, each in enumerate(FRAMES[:3])]
    liar = struct.pack("<qII", 0, 900, 900) + bytes(20)
    places = [128, 0xFFFFFFF0, 128 + sum(map(len, frames)), 128 + len(frames[0])]
    path.write_bytes(netmon([*frames, liar], places=places))
    found, problems = read(path)
    assert [record[2] for record in found] == FRAMES[:2]
    assert problems.counts == {"record": 2}
    octets = bytearray(netmon(frames))
    octets[28:32] = struct.pack("<I", 0xFFFFFFFC)
    path.write_bytes(octets)
    found, problems = read(path)
    assert [record[2] for record in found] == FRAMES[:3]
    assert problems.counts == {"truncated": 1}


def test_a_table_cannot_make_more_frames_than_the_file_has_octets(path: Path) -> None:
    """A thousand times the same frame: bounded, and told."""
    path.write_bytes(netmon([frame(b"x" * 5000, 0, 0)], places=[128] * 1000))
    found, problems = read(path)
    assert len(found) == 1
    assert [problem.reason for problem in problems] == [
        "frames of the table overlap; those from here on are left out"
    ]


def test_a_beginning_that_is_no_moment_is_told(path: Path) -> None:
    path.write_bytes(made(start=(2023, 13, 0, 99, 0, 0, 0, 0)))
    found, problems = read(path)
    assert [record[0] for record in found[:2]] == [0, 1_000_000]
    assert problems.counts == {"record": 1}


@pytest.mark.parametrize("octets", [b"GMBU", made()[:127], b"GMBU\0\3" + bytes(200)])
def test_what_is_no_such_file_is_refused(path: Path, octets: bytes) -> None:
    path.write_bytes(octets)
    with pytest.raises(CaptureError):
        list(read_records(path, Problems()))


@settings(max_examples=60)
@given(seed=st.randoms(use_true_random=False))
def test_damage_anywhere_is_bounded_and_the_same_in_columns(
    tmp_path_factory: pytest.TempPathFactory, seed: object
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "capture.cap"
    octets = bytearray(made(seed.randrange(4)))  # type: ignore[attr-defined]
    for _ in range(seed.randrange(1, 6)):  # type: ignore[attr-defined]
        octets[seed.randrange(6, len(octets))] = seed.randrange(256)  # type: ignore[attr-defined]
    path.write_bytes(octets)
    problems, told = Problems(), Problems()
    found = list(read_records(path, problems))
    assert list(read_pieces(path, told)) == found
    assert list(map(str, told)) == list(map(str, problems))


def test_its_calls_are_those_of_other_captures(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frames = traffic(5, clients=2, calls=20, odd=False)
    lists = []
    for octets in (pcap(frames), netmon([frame(each, n, 2) for n, each in enumerate(frames)], 2)):
        path.write_bytes(octets)
        for command in ("show", "export"):
            assert main(["capture", command, str(path)]) == 0
            lists.append(capsys.readouterr())
    assert lists[:2] == lists[2:]
    assert "calls in 2 conversations" in lists[0].out


def test_spark_reads_it_whole_and_claims_its_octets(path: Path) -> None:
    path.write_bytes(made(3, hole=9, start=START))
    assert len(splits(path, 100)) == 1
    rows = [
        row for _, batch in file_tables(("claims",), str(path), ()) for row in batch.to_pylist()
    ]
    assert [(each["unclaimed"], each["twice"]) for each in coverage(rows)] == [(0, 0)]


@pytest.mark.parametrize(
    ("name", "octets", "command"),
    [
        ("a.cap", b"RTSS" + bytes(100), "editcap -F pcapng"),
        ("a.snoop", b"snoop\0\0\0" + bytes(9), "editcap -F pcapng"),
        ("a.etl", b"\0\0\1\0" + bytes(100), "pktmon etl2pcap"),
        ("a.pcap.xz", b"\xfd7zXZ\0" + bytes(9), "unxz --keep"),
    ],
)
def test_files_of_other_kinds_name_the_command_that_converts_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, octets: bytes, command: str
) -> None:
    path = tmp_path / name
    path.write_bytes(octets)
    assert main(["capture", "show", str(path)]) == 1
    assert f"which is not read; convert it by: {command} {path}" in capsys.readouterr().err
