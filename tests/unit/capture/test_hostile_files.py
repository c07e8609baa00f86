"""Files that are cut, damaged or read in the smallest blocks: in columns and one by one alike."""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.capture.columnar import consecutive, template
from rpcqm.capture.columnar.record_batch import pieces, read_pieces
from rpcqm.capture.file import pcap as classic
from rpcqm.capture.file import pcapng as blocks
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import CaptureError, read_records
from rpcqm.capture.file.record import Record
from rpcqm.pipeline.splitting import records_of
from tests.support.capture.captures import TIME, block, enhanced, pcap, pcapng, pcapng_head, segment
from tests.support.capture.hostile_captures import (
    Made,
    made_of_blocks,
    made_of_records,
    read_in_ranges,
)
from tests.support.capture.traffic import hard_traffic
from tests.unit.capture.test_columnar import compare

FRAMES = [segment(n, bytes([n]) * n) for n in range(7)]
OVERLAPPING = pcapng_head() + enhanced(enhanced(FRAMES[3]) * 70) + enhanced(FRAMES[4]) * 70
FILES = {
    "pcap": pcap(FRAMES),
    "pcap of the other byte order": pcap(FRAMES, order=">"),
    "pcapng": pcapng(FRAMES),
    "pcapng of two sections": pcapng(FRAMES[:3]) + pcapng(FRAMES[3:], ">"),
    "blocks in a block": OVERLAPPING,
    "other blocks between": pcapng_head()
    + b"".join(block(5, b"x" * n) + enhanced(frame, TIME + n) for n, frame in enumerate(FRAMES)),
}
Found = tuple[list[Record], list[str], str]


def outcome(read: Callable[[Problems], Iterator[Record]]) -> Found:
    """Records, problems, and the error that ended the reading."""
    found: list[Record] = []
    problems, error = Problems(), ""
    try:
        found += read(problems)
    except CaptureError as reason:
        error = str(reason)
    return found, list(map(str, problems)), error


def one_by_one(path: Path) -> Found:
    return outcome(lambda problems: read_records(path, problems))


def in_columns(path: Path) -> Found:
    return outcome(lambda problems: records_of(read_pieces(path, problems)))


def chunked(octets: bytes, size: int) -> Iterator[bytes]:
    """A head that tells the format, then chunks of a size."""
    yield octets[:24]
    yield from (octets[at : at + size] for at in range(24, len(octets), size))


def in_chunks(octets: bytes, size: int, columns: bool) -> Found:
    def read(problems: Problems) -> Iterator[Record]:
        form = classic if octets[:4] in classic.MAGICS else blocks
        reader = form.reader_of(chunked(octets, size), problems)
        return records_of(pieces(reader)) if columns else reader.records()

    return outcome(read)


@pytest.mark.parametrize("what", FILES)
def test_blocks_of_one_octet_give_the_same_records(what: str, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(FILES[what])
    whole = one_by_one(path)
    assert whole[1:] == ([], "")
    assert len(whole[0]) >= len(FRAMES)
    for size in (1, 2, 3, 5, 16, 31, 32, 61, 64, len(FILES[what])):
        for columns in (False, True):
            assert in_chunks(FILES[what], size, columns) == whole


@pytest.mark.parametrize("what", FILES)
def test_a_file_cut_at_any_octet_is_the_same_in_columns(what: str, tmp_path: Path) -> None:
    """From the empty file on: the same records and problems, or the same error."""
    path, octets = tmp_path / "capture", FILES[what]
    count, least = -1, classic.FILE_HEADER if octets[:4] in classic.MAGICS else blocks.LEAST_BLOCK
    for end in range(min(len(octets), 700)):
        path.write_bytes(octets[:end])
        found = one_by_one(path)
        assert in_columns(path) == found
        assert (found[2] != "") == (end < least), end
        assert len(found[0]) >= count
        count = len(found[0])


@pytest.mark.parametrize("what", FILES)
def test_a_file_in_two_at_any_octet_has_each_record_once(what: str, tmp_path: Path) -> None:
    path, octets = tmp_path / "capture", FILES[what]
    path.write_bytes(octets)
    records, _, _ = one_by_one(path)
    for size in range(len(octets) // 2 + 1, len(octets), 1 + len(octets) // 900):
        found = read_in_ranges(path, size)
        assert found.records == records
        assert (found.problems, found.unclaimed, found.twice) == ([], 0, 0)


@pytest.mark.parametrize("what", FILES)
def test_one_wrong_octet_does_the_same_in_columns(what: str, tmp_path: Path) -> None:
    path, octets = tmp_path / "capture", FILES[what]
    for at in range(4, min(len(octets), 420), 3):
        for wrong in (0, 0xFF, octets[at] ^ 0x80):
            path.write_bytes(octets[:at] + bytes([wrong]) + octets[at + 1 :])
            assert in_columns(path) == one_by_one(path), (at, wrong)


@settings(max_examples=20)
@given(
    st.integers(0, 1 << 40),
    st.sampled_from((made_of_blocks, made_of_records)),
    st.integers(1, 90),
)
def test_chunks_of_any_size_give_the_records_of_hostile_captures(
    seed: int, make: Callable[[int, int], Made], size: int
) -> None:
    made = make(seed, 6)
    for columns in (False, True):
        assert in_chunks(made.octets, size, columns) == (made.records, [], "")


@settings(max_examples=25)
@given(seed=st.integers(0, 1 << 40), clients=st.integers(1, 4), blocked=st.booleans())
def test_flows_that_are_hard_to_follow_are_the_same_in_columns(
    tmp_path_factory: pytest.TempPathFactory, seed: int, clients: int, blocked: bool
) -> None:
    """Overlapping, repeated and swapped segments, and ports that are used again."""
    path = tmp_path_factory.mktemp("hard") / "capture"
    frames = hard_traffic(seed, clients)
    path.write_bytes(pcapng(frames) if blocked else pcap(frames))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consecutive, "SHORTEST_RUN", 2)
        patch.setattr(template, "LEAST_ROWS", 2)
        compare(path)


def test_a_hundred_thousand_interfaces_cost_no_more_than_their_blocks(tmp_path: Path) -> None:
    """Each with a packet, half of them with a time of its own; beyond the bound they are told."""
    path, count = tmp_path / "capture", 100_000
    offsets = (struct.pack("<HHqHH", 14, 8, n // 2 * 2, 0, 0) for n in range(count))
    described = (block(1, struct.pack("<HHI", 1, 0, 0) + option) for option in offsets)
    packets = (enhanced(b"x" * 14, n, interface=n) for n in range(count))
    path.write_bytes(pcapng_head(()) + b"".join((*described, *packets)))
    found = one_by_one(path)
    assert len(found[0]) == count
    assert in_columns(path) == found
    more = block(1, struct.pack("<HHI", 1, 0, 0)) * (blocks.MOST_INTERFACES + 2)
    path.write_bytes(pcapng_head(()) + more + enhanced(FRAMES[3], interface=5))
    records, problems, _ = one_by_one(path)
    assert len(records) == 1
    assert len(problems) == 2
