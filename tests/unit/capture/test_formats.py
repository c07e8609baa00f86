"""Captures of every format are read, and damage is passed over."""

import gzip
import struct
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import CaptureError, read_records
from rpcqm.cli.main import main
from tests.support.capture.captures import (
    TIME,
    block,
    enhanced,
    pcap,
    pcapng,
    pcapng_head,
    read,
    segment,
)

FRAMES = [segment(100 + n, b"x" * (n + 1)) for n in range(20)]


def stored(directory: Path, octets: bytes) -> Path:
    path = directory / "capture"
    path.write_bytes(octets)
    return path


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nano", [False, True])
def test_pcap_is_read_in_both_byte_orders_and_units(tmp_path: Path, order: str, nano: bool) -> None:
    found, problems = read(stored(tmp_path, pcap(FRAMES, order=order, nano=nano)))
    assert [record[2] for record in found] == FRAMES
    assert [record[0] for record in found[:2]] == [TIME, TIME + 1_000_000]
    assert [record[1] for record in found] == [1] * len(FRAMES)
    assert problems.total == 0


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_is_read_in_both_byte_orders(tmp_path: Path, order: str) -> None:
    found, problems = read(stored(tmp_path, pcapng(FRAMES, order)))
    assert [record[2] for record in found] == FRAMES
    assert found[1][0] == TIME + 1_000_000
    assert problems.total == 0


def test_offsets_are_those_of_the_records(tmp_path: Path) -> None:
    octets = pcap(FRAMES)
    for record in read(stored(tmp_path, octets))[0]:
        assert octets[record[4] + 16 :].startswith(record[2])


def test_each_interface_has_its_link_type_and_resolution(tmp_path: Path) -> None:
    octets = pcapng_head((1, 101), resolution=6)
    octets += enhanced(b"a" * 60, 5_000_001) + enhanced(b"b" * 60, 6_000_000, interface=1)
    found, _ = read(stored(tmp_path, octets))
    assert [(r[0], r[1]) for r in found] == [(5_000_001_000, 1), (6_000_000_000, 101)]


def test_a_new_section_has_its_own_order_and_interfaces(tmp_path: Path) -> None:
    octets = pcapng(FRAMES[:2]) + pcapng(FRAMES[2:4], ">")
    found, problems = read(stored(tmp_path, octets))
    assert [record[2] for record in found] == FRAMES[:4]
    assert problems.total == 0


def test_simple_and_old_packet_blocks_are_read(tmp_path: Path) -> None:
    simple = block(3, struct.pack("<I", 5) + b"12345")
    old = block(2, struct.pack("<HHIIII", 0, 0, TIME >> 32, TIME & 0xFFFFFFFF, 3, 3) + b"abc")
    found, _ = read(stored(tmp_path, pcapng_head() + simple + old))
    assert [(r[0], r[2]) for r in found] == [(0, b"12345"), (TIME, b"abc")]


@pytest.mark.parametrize("form", [pcap, pcapng])
def test_gzip_and_zstd_are_unpacked(tmp_path: Path, form: object) -> None:
    octets = pcap(FRAMES) if form is pcap else pcapng(FRAMES)
    for packed in (gzip.compress(octets), zstandard.ZstdCompressor().compress(octets)):
        found, problems = read(stored(tmp_path, packed))
        assert [record[2] for record in found] == FRAMES
        assert problems.total == 0


def test_a_gzip_file_cut_short_gives_what_it_has(tmp_path: Path) -> None:
    packed = gzip.compress(pcap([bytes([n]) * 500 + segment(n) for n in range(200)]), 0)
    found, problems = read(stored(tmp_path, packed[: len(packed) // 2]))
    assert 50 < len(found) < 200
    assert problems.counts["compression"] == 1


def zstd_of_two_frames(cut: int) -> bytes:
    """A capture in two frames, each of whole records, whose last octets are not there."""
    whole, half = pcap(FRAMES), len(pcap(FRAMES[:10]))
    frames = map(zstandard.ZstdCompressor().compress, (whole[:half], whole[half:]))
    octets = b"".join(frames)
    return octets[: len(octets) - cut]


def test_a_zstd_file_cut_between_records_says_so(tmp_path: Path) -> None:
    """Its library's readers end there without an error."""
    found, problems = read(stored(tmp_path, zstd_of_two_frames(5)))
    assert [record[2] for record in found] == FRAMES[:10]
    assert problems.counts == {"compression": 1}
    found, problems = read(stored(tmp_path, zstd_of_two_frames(0)))
    assert ([record[2] for record in found], problems.total) == (FRAMES, 0)


def test_show_tells_of_a_zstd_file_that_was_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["capture", "show", str(stored(tmp_path, zstd_of_two_frames(5)))])
    assert "the file ends within a frame of zstd" in "".join(capsys.readouterr())


@pytest.mark.parametrize("octets", [b"", b"\xd4\xc3\xb2\xa1", b"GET / HTTP/1.1\r\n"])
def test_what_is_no_capture_is_refused(tmp_path: Path, octets: bytes) -> None:
    with pytest.raises(CaptureError):
        list(read_records(stored(tmp_path, octets), Problems()))


def test_a_capture_cut_short_is_read_to_its_end(tmp_path: Path) -> None:
    for octets in (pcap(FRAMES), pcapng(FRAMES)):
        found, problems = read(stored(tmp_path, octets[:-5]))
        assert [record[2] for record in found] == FRAMES[:-1]
        assert problems.counts == {"truncated": 1}


@pytest.mark.parametrize("garbage", [b"\xff" * 40, b"\0" * 333, bytes(range(256)) * 40])
def test_records_go_on_behind_damage(tmp_path: Path, garbage: bytes) -> None:
    """Octets in between cost at most the record before them, in either format."""
    whole = pcap(FRAMES)
    at = len(pcap(FRAMES[:10]))
    claim = struct.pack("<IIII", 1, 2, 0x7FFFFFFF, 60)
    found, problems = read(stored(tmp_path, whole[:at] + claim + garbage + whole[at:]))
    assert [record[2] for record in found] == FRAMES
    assert [p.offset for p in problems] == [at]

    whole = pcapng(FRAMES)
    at = len(pcapng(FRAMES[:10]))
    claim = struct.pack("<II", 6, 0x7FFFFFF0)
    found, problems = read(stored(tmp_path, whole[:at] + claim + garbage + whole[at:]))
    assert [record[2] for record in found] == FRAMES
    assert problems.counts["record"] >= 1


def test_a_packet_of_an_unknown_interface_is_reported(tmp_path: Path) -> None:
    octets = pcapng_head() + enhanced(b"a", interface=7) + enhanced(FRAMES[0])
    found, problems = read(stored(tmp_path, octets))
    assert [record[2] for record in found] == FRAMES[:1]
    assert "interface 7" in next(iter(problems)).reason


@settings(max_examples=60, deadline=None)
@given(
    st.booleans(),
    st.lists(st.tuples(st.integers(24, 1500), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_no_damage_stops_the_reader(
    tmp_path_factory: pytest.TempPathFactory,
    blocks: bool,
    changes: list[tuple[int, int]],
) -> None:
    octets = bytearray(pcapng(FRAMES) if blocks else pcap(FRAMES))
    for place, value in changes:
        octets[place % len(octets)] = value
    octets[:12] = (pcapng(FRAMES) if blocks else pcap(FRAMES))[:12]
    found, _ = read(stored(tmp_path_factory.mktemp("damaged"), bytes(octets)))
    assert len(found) <= 2 * len(FRAMES)
