"""Captures in byte ranges: each record once, whatever the contents of packets look like."""

import random
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import read_records
from rpcqm.pipeline.coverage import claim_rows, counts, coverage
from rpcqm.pipeline.splitting import (
    RangeReading,
    RecordPlace,
    claimed,
    exact_splits,
    is_exact,
    linked,
    records_of,
    splits,
)
from tests.support.capture.captures import TIME, block, enhanced, pcap, pcapng, pcapng_head, segment
from tests.support.capture.hostile_captures import (
    Made,
    made_of_blocks,
    made_of_records,
    read_in_ranges,
)
from tests.support.capture.traffic import spoilt, traffic

Make = Callable[[int, int], Made]
FORGED = [segment(n, b"forged") for n in range(12)]
FRAMES = [segment(n, bytes([n]) * (n + 20)) for n in range(12)]


def stored(factory: pytest.TempPathFactory, octets: bytes) -> Path:
    path = factory.mktemp("ranges") / "capture"
    path.write_bytes(octets)
    return path


def has_each_record_once(path: Path, made: Made, size: int) -> None:
    found = read_in_ranges(path, size)
    assert found.records == made.records
    assert (found.problems, found.unclaimed, found.twice) == ([], 0, 0)


@settings(max_examples=40)
@given(st.integers(0, 1 << 40), st.sampled_from((made_of_blocks, made_of_records)), st.data())
def test_ranges_have_each_record_once_whatever_packets_hold(
    tmp_path_factory: pytest.TempPathFactory, seed: int, make: Make, data: st.DataObject
) -> None:
    made = make(seed, 25)
    size = data.draw(st.integers(len(made.octets) // 50, len(made.octets) - 1))
    path = stored(tmp_path_factory, made.octets)
    assert list(read_records(path, Problems())) == made.records
    has_each_record_once(path, made, size)


@pytest.mark.parametrize("make", [made_of_blocks, made_of_records])
def test_ranges_of_any_size_have_each_record_once(
    tmp_path_factory: pytest.TempPathFactory, make: Make
) -> None:
    made = make(3, 2)
    path = stored(tmp_path_factory, made.octets)
    for size in (*range(1, 40), *range(40, len(made.octets), 23)):
        has_each_record_once(path, made, size)


@pytest.mark.parametrize(("seed", "size"), [(178, 900), (449019475, 4436)])
def test_traffic_that_once_lost_records_has_all_of_them(
    tmp_path_factory: pytest.TempPathFactory, seed: int, size: int
) -> None:
    """Octets of these were taken for a block with which a range begins."""
    frames = list(spoilt(traffic(seed, clients=4, odd=False), seed, 0.0))
    found = read_in_ranges(stored(tmp_path_factory, pcapng(frames)), size)
    assert [record[2] for record in found.records] == frames
    assert (found.problems, found.unclaimed, found.twice) == ([], 0, 0)


WORST = {
    "a chain of forged blocks": lambda: pcapng([pcapng(FORGED) * 3] * 5),
    "forged blocks of the other byte order": lambda: pcapng([pcapng(FORGED, ">") * 3] * 5),
    "forged blocks out of step": lambda: pcapng([b"x" + pcapng(FORGED) * 3] * 5),
    "forged interfaces": lambda: pcapng([pcapng_head((101, 113), "<", 6) * 30, *FRAMES] * 2),
    "a chain of forged records": lambda: pcap([pcap(FORGED)[24:] * 3] * 5),
    "one block larger than many ranges": lambda: pcapng([*FRAMES, pcapng(FORGED) * 40, *FRAMES]),
    "one record larger than many ranges": lambda: pcap([*FRAMES, pcap(FORGED)[24:] * 40]),
    "an interface described in between": lambda: (
        pcapng(FRAMES)
        + block(1, struct.pack("<HHI", 101, 0, 0))
        + b"".join(enhanced(frame, TIME, 1) for frame in FRAMES * 9)
    ),
    "sections with other interfaces": lambda: b"".join(
        pcapng_head((101, 1), order, 6)
        + b"".join(enhanced(frame, TIME // 1000, n % 2, order) for n, frame in enumerate(FRAMES))
        for order in "<><<>"
    ),
}


@pytest.mark.parametrize("what", WORST)
def test_forged_contents_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, what: str
) -> None:
    path = stored(tmp_path_factory, WORST[what]())
    problems = Problems()
    whole = list(read_records(path, problems))
    assert problems.total == 0
    repeated = 0
    for size in (36, 100, 257, 700, 1500):
        found = read_in_ranges(path, size)
        assert found.records == whole
        assert (found.problems, found.unclaimed, found.twice) == ([], 0, 0)
        repeated += found.repeated
    assert repeated, "the guess was right everywhere, so that nothing has been tried"


@settings(max_examples=40)
@given(
    st.integers(0, 1 << 40),
    st.sampled_from((made_of_blocks, made_of_records)),
    st.integers(0, 4),
    st.booleans(),
    st.integers(300, 3000),
)
def test_a_damaged_file_is_the_same_in_ranges(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    make: Make,
    changes: int,
    cut: bool,
    size: int,
) -> None:
    rng = random.Random(seed)
    octets = bytearray(make(seed, 25).octets)
    for _ in range(changes):
        octets[rng.randrange(100, len(octets))] = rng.randrange(256)
    if cut:
        del octets[rng.randrange(100, len(octets)) :]
    path = stored(tmp_path_factory, bytes(octets))
    (whole,) = splits(path, 1 << 40)
    problems = Problems()
    records = list(read_records(path, problems))
    if len(octets) > size:
        found = read_in_ranges(path, size)
        assert found.records == records
        assert found.problems == list(map(str, problems))
        (told,) = coverage(claim_rows(claimed(whole)))
        assert (found.unclaimed, found.twice) == (told["unclaimed"], 0)


@pytest.mark.parametrize("form", [pcap, pcapng])
def test_what_is_cut_short_is_counted(
    tmp_path_factory: pytest.TempPathFactory, form: Callable[[list[bytes]], bytes]
) -> None:
    octets = form(FRAMES)
    last = len(octets) - len(form(FRAMES[:-1]))
    found = read_in_ranges(stored(tmp_path_factory, octets[:-5]), 150)
    assert [record[2] for record in found.records] == FRAMES[:-1]
    assert (found.unclaimed, found.twice) == (last - 5, 0)
    assert len(found.problems) == 1


def test_what_is_damaged_is_counted(tmp_path_factory: pytest.TempPathFactory) -> None:
    octets, at = pcapng(FRAMES), len(pcapng(FRAMES[:6]))
    path = stored(tmp_path_factory, octets[:at] + b"\xff" * 40 + octets[at:])
    found = read_in_ranges(path, 200)
    assert [record[2] for record in found.records] == FRAMES
    assert (found.unclaimed, found.twice) == (40, 0)


def test_behind_damage_with_which_a_range_begins_are_no_records_of_another_time(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The damaged record holds a chain of records that are years older than the one before it."""
    forged = b"".join(struct.pack("<IIII", 9, n, 20, 20) + bytes(20) for n in range(8))
    octets = bytearray(pcap([*FRAMES[:3], forged, *FRAMES]))
    at = len(pcap(FRAMES[:3]))
    octets[at + 8 : at + 12] = b"\xff" * 4
    path = stored(tmp_path_factory, bytes(octets))
    for size in (at - 10, at - 1, at):
        found = read_in_ranges(path, size)
        assert [record[2] for record in found.records] == FRAMES[:3] + FRAMES
        assert (found.unclaimed, found.twice) == (16 + len(forged), 0)


def test_a_range_read_from_the_wrong_place_is_found_out(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whether it is too late, too early, or knows other interfaces."""
    path = stored(tmp_path_factory, pcapng(FRAMES))
    exact = exact_splits(path, 400)
    claims = [claimed(split) for split in exact]
    assert all(map(is_exact, exact, claims))
    place = exact[1].place
    assert place is not None
    for wrong in (
        RecordPlace(claims[1].runs[0][0] + 4, place.order, place.interfaces),
        RecordPlace(place.at, ">", place.interfaces),
        RecordPlace(place.at, place.order),
    ):
        claim = claimed(replace(exact[1], place=wrong))
        assert not is_exact(exact[1], claim)
        assert linked(splits(path, 400), [claims[0], claim, *claims[2:]]) == exact


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted), max_size=8),
    st.integers(60, 80),
)
@example([], 70)
def test_octets_are_counted_as_one_by_one(runs: list[list[int]], size: int) -> None:
    seen = [0] * size
    for first, behind in runs:
        for at in range(first, behind):
            seen[at] += 1
    unclaimed, twice = counts([(first, behind) for first, behind in runs], size)
    assert unclaimed == seen.count(0)
    assert (twice > 0) == any(count > 1 for count in seen)


def test_a_file_that_grows_is_read_to_its_length_when_it_was_split(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    octets = pcapng(FRAMES)
    path = stored(tmp_path_factory, octets[:-9])
    exact = exact_splits(path, 400)
    path.write_bytes(octets + enhanced(segment(99)))
    found = [record[2] for split in exact for record in records_of(RangeReading(split, Problems()))]
    assert found == FRAMES[:-1]
