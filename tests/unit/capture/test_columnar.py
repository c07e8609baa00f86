"""Captures read in columns tell what they tell record by record."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rpcqm.base.text import visible
from rpcqm.capture.analysis import Exchange, analyse
from rpcqm.capture.arrow_schema import arrow_schema
from rpcqm.capture.columnar import consecutive, template
from rpcqm.capture.columnar.analysis import Single, analyse_columns
from rpcqm.capture.columnar.batch import CallBatch
from rpcqm.capture.columnar.call_queues import QueueTracker
from rpcqm.capture.columnar.listing import Listing, milliseconds, times
from rpcqm.capture.columnar.record_batch import RecordBatch, read_pieces
from rpcqm.capture.columnar.rows import call_columns
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.conversation.srmp import SrmpExchange
from rpcqm.capture.conversation.subjects import Subjects
from rpcqm.capture.export import COLUMNS, row
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import read_records
from rpcqm.capture.report import as_object, line, utc_time
from rpcqm.capture.unsealing.accounts import UnsealingAccount, parse_account
from tests.support.accounts import PASSWORD
from tests.support.capture.captures import pcap, pcapng
from tests.support.capture.traffic import spoilt, traffic

CAPTURES = Path(__file__).parents[2] / "vectors" / "captures"
ALICE = parse_account(f"alice:{PASSWORD}")
SCHEMA = arrow_schema(COLUMNS)


@pytest.fixture(autouse=True)
def _short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that little traffic is enough."""
    monkeypatch.setattr(consecutive, "SHORTEST_RUN", 2)
    monkeypatch.setattr(template, "LEAST_ROWS", 2)


def flat(exchange: Exchange) -> tuple[Any, ...]:
    """All that is known of an exchange."""
    each = exchange.conversation
    told = (each.number, each.client, each.server, each.protocol, each.started, each.level)
    if isinstance(exchange, SrmpExchange):
        return (*told, *as_object(exchange).items(), exchange.offset)
    if not isinstance(exchange, CapturedCall):
        return (*told, exchange.octets, exchange.from_client, exchange.time, exchange.offset)
    names = [name for name in CapturedCall.__slots__ if not name.startswith("_")]
    parts = [getattr(exchange, n) for n in names if n not in ("conversation", "context")]
    context = exchange.context
    return (*told, each.account, each.group, *parts, context.name, context.syntax)


def one_by_one(path: Path, *accounts: UnsealingAccount) -> tuple[list[Any], list[Any], list[str]]:
    """Calls, rows, and problems, as the ordinary analysis has them."""
    problems, found, subjects = Problems(), list[Exchange](), Subjects()
    analyse(path, found.append, problems, accounts)
    calls = [flat(each) for each in found]
    rows = [row(each, subjects.queue(each)) for each in found]
    return calls, pa.Table.from_pylist(rows, SCHEMA).to_pylist(), list(map(str, problems))


class InColumns:
    """The same in columns."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.rows: list[tuple[int, Any]] = []
        self.in_batches = self.in_groups = 0
        self._teller = QueueTracker()
        self._batches = 0

    def take(self, singles: list[Single], batch: CallBatch | None) -> None:
        several = list(batch.calls()) if batch is not None else []
        self.in_batches += len(several)
        ordered = sorted([*singles, *several], key=lambda single: single[0])
        self.calls += [flat(each) for _, each in ordered]
        self._rows(singles, batch)

    def _rows(self, singles: list[Single], batch: CallBatch | None) -> None:
        told = self._teller.tell(singles, batch)
        found = [(index, row(each, queue)) for index, each, queue in told.singles]
        table = pa.Table.from_pylist([each for _, each in found], SCHEMA).to_pylist()
        rows = [(index, each) for (index, _), each in zip(found, table, strict=True)]
        for group, queues in told.groups:
            columns = call_columns(group, queues)
            made = pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)
            rows += zip(group.batch.index[group.rows].tolist(), made.to_pylist(), strict=True)
            self.in_groups += len(made)
        self.rows += [each for _, each in sorted(rows, key=lambda pair: pair[0])]


def in_columns(path: Path, *accounts: UnsealingAccount) -> tuple[InColumns, list[str]]:
    problems, found = Problems(), InColumns()
    analyse_columns(path, found.take, problems, accounts)
    return found, list(map(str, problems))


def compare(path: Path, *accounts: UnsealingAccount) -> InColumns:
    calls, rows, problems = one_by_one(path, *accounts)
    found, told = in_columns(path, *accounts)
    assert found.calls == calls
    assert found.rows == rows
    assert told == problems
    return found


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcapng")), ids=lambda path: path.stem)
def test_recorded_captures_are_the_same_in_columns(path: Path) -> None:
    compare(path, ALICE)


def test_regular_traffic_is_read_in_columns(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(pcapng(traffic(1, calls=400, odd=False)))
    found = compare(path)
    assert found.in_batches > len(found.calls) * 0.8
    assert found.in_groups > found.in_batches * 0.7


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1 << 30), share=st.sampled_from((0.0, 0.02, 0.1, 0.5)))
def test_spoilt_traffic_is_the_same_in_columns(
    tmp_path_factory: pytest.TempPathFactory, seed: int, share: float
) -> None:
    path = tmp_path_factory.mktemp("spoilt") / "capture"
    frames = list(spoilt(traffic(seed, odd=seed % 3 > 0), seed, share))
    path.write_bytes(pcap(frames) if seed % 2 else pcapng(frames))
    compare(path)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1 << 30), blocks=st.booleans(), nano=st.booleans(), big=st.booleans())
def test_damaged_files_have_the_same_records_in_batches(
    tmp_path_factory: pytest.TempPathFactory, seed: int, blocks: bool, nano: bool, big: bool
) -> None:
    rng = random.Random(seed)
    frames = traffic(seed, calls=20)
    order = ">" if big else "<"
    octets = bytearray(pcapng(frames, order) if blocks else pcap(frames, order=order, nano=nano))
    for _ in range(rng.randrange(4)):
        octets[rng.randrange(200, len(octets))] = rng.randrange(256)
    if rng.random() < 0.5:
        del octets[rng.randrange(200, len(octets)) :]
    path = tmp_path_factory.mktemp("damaged") / "capture"
    path.write_bytes(octets)
    problems, told = Problems(), Problems()
    expected = list(read_records(path, problems))
    found = []
    for piece in read_pieces(path, told):
        found += (
            [piece.record(n) for n in range(len(piece))]
            if isinstance(piece, RecordBatch)
            else [piece]
        )
    assert found == expected
    assert list(map(str, told)) == list(map(str, problems))


def listed(path: Path) -> tuple[list[str], dict[int, int]]:
    """The lines of a capture in columns, and how many calls each conversation has."""
    lines: list[str] = []
    listing = Listing(lines.append, visible)
    analyse_columns(path, listing.take, Problems(), (ALICE,))
    return "".join(lines).splitlines(), dict(listing.calls)


def lines_one_by_one(path: Path) -> tuple[list[str], dict[int, int]]:
    lines: list[str] = []
    calls: dict[int, int] = {}
    subjects = Subjects()

    def take(exchange: Exchange) -> None:
        lines.append(visible(line(exchange, subjects.queue(exchange))))
        number = exchange.conversation.number
        calls[number] = calls.get(number, 0) + 1

    analyse(path, take, Problems(), (ALICE,))
    return lines, calls


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcapng")), ids=lambda path: path.stem)
def test_recorded_captures_have_the_same_lines_in_columns(path: Path) -> None:
    assert listed(path) == lines_one_by_one(path)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1 << 30), share=st.sampled_from((0.0, 0.1)))
def test_spoilt_traffic_has_the_same_lines_in_columns(
    tmp_path_factory: pytest.TempPathFactory, seed: int, share: float
) -> None:
    path = tmp_path_factory.mktemp("listed") / "capture"
    path.write_bytes(pcap(spoilt(traffic(seed, odd=share > 0), seed, share)))
    assert listed(path) == lines_one_by_one(path)


@given(st.lists(st.integers(-(10**9), 10**12), min_size=1))
def test_durations_and_moments_are_written_as_one_by_one(numbers: list[int]) -> None:
    durations = milliseconds(np.array(numbers)).to_pylist()
    assert durations == [f"{each / 1_000_000:9.3f}" for each in numbers]
    moments = [abs(each) for each in numbers]
    assert times(np.array(moments)).to_pylist() == [utc_time(each) for each in moments]
