"""scripts/bench: a row that fails is told and the others go on; stocks are made by count."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHES = Path(__file__).parents[3] / "scripts" / "bench.d"
FIRST, SECOND, THIRD = "engine of a test, first", "engine of a test, second", "third of a test"


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHES)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A bench `faulty` with three rows, in the place of all others."""
    row, catalogue = import_module("subjects.row"), import_module("catalogue")
    # Before the rows change: what is imported first while they are others would keep these.
    figures, measuring = import_module("figures"), import_module("measuring")
    made = row.rows_of_bench(
        "faulty", row.least(FIRST, 1), row.most(SECOND, 2, "s"), row.shown(THIRD, "limit: a test")
    )
    monkeypatch.setattr(catalogue, "ROWS", {each.name: each for each in made})
    for module in (figures, measuring):
        monkeypatch.setattr(module, "ROWS", catalogue.ROWS)
    disk = import_module("harness").Syncs(1.0, 1.0)
    monkeypatch.setattr(measuring, "syncs_of", lambda *_: disk)
    monkeypatch.setattr(measuring, "busy", lambda *_: 0.0)
    return made


def bench(monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    module = ModuleType("faulty")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "faulty", module)


@pytest.mark.usefixtures("rows")
def test_a_row_that_fails_is_told_the_others_go_on_and_the_exit_is_not_zero(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures, driver = import_module("figures"), import_module("driver")

    def run() -> Iterator[Any]:
        yield from figures.attempt(FIRST, lambda: 1 / 0)
        yield from figures.attempt(SECOND, lambda: figures.figure(SECOND, 1.5))
        yield from figures.attempt(THIRD, lambda: figures.figure(THIRD, 7))

    bench(monkeypatch, run)
    assert driver.main(["faulty"]) == 1
    told = capsys.readouterr().out
    assert f"{FIRST}: failed: ZeroDivisionError: division by zero" in told
    assert f"{SECOND}: 1.5 s   (target at most 2: met)" in told
    assert f"{THIRD}: 7 times   (no target; limit: a test)" in told
    assert told.endswith(f"2 figures, 0 missed; failed: {FIRST}\n")


@pytest.mark.usefixtures("rows")
def test_rows_of_a_bench_that_ends_early_are_all_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures, driver = import_module("figures"), import_module("driver")

    def run() -> Iterator[Any]:
        yield figures.figure(FIRST, 3)
        raise RuntimeError("no server")

    bench(monkeypatch, run)
    assert driver.main(["faulty"]) == 1
    told = capsys.readouterr().out
    assert f"{FIRST}: 3 times" in told
    assert f"{SECOND}: failed: RuntimeError: no server" in told
    assert f"{THIRD}: failed: RuntimeError: no server" in told


@pytest.mark.usefixtures("rows")
def test_what_has_no_peer_here_is_not_measured_which_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures, driver = import_module("figures"), import_module("driver")

    def run() -> Iterator[Any]:
        yield figures.figure(FIRST, 3)
        raise figures.UnavailableError("the peer is not installed")

    bench(monkeypatch, run)
    assert driver.main(["faulty"]) == 0
    told = capsys.readouterr().out
    assert f"{SECOND}: not measured: the peer is not installed" in told
    assert told.endswith("1 figures, 0 missed, 2 not measured\n")


@pytest.mark.parametrize(
    ("samples", "used"), [([0.05], 0.05), ([0.9, 0.02], 0.02), ([0.4, 0.6], 0.4)]
)
def test_what_others_soon_end_does_not_make_a_bench_noisy(
    monkeypatch: pytest.MonkeyPatch, samples: list[float], used: float
) -> None:
    measuring, left = import_module("measuring"), list(samples)
    monkeypatch.setattr(measuring, "busy", lambda *_: left.pop(0))
    assert measuring.used_by_others() == used
    assert left == []


@pytest.mark.usefixtures("rows")
def test_no_row_begins_after_the_end_of_the_run_and_the_bench_is_closed() -> None:
    figures, measuring = import_module("figures"), import_module("measuring")
    closed = []

    def run() -> Iterator[Any]:
        try:
            yield figures.figure(FIRST, 3)
            yield figures.figure(SECOND, 1)
        finally:
            closed.append(True)

    found = list(measuring.figures_of("faulty", run(), end=0.0))
    assert [each.missing for each in found] == ["", *["not measured: " + measuring.OVER] * 2]
    assert closed == [True]


def test_a_row_without_a_target_says_why() -> None:
    row = import_module("subjects.row")
    with pytest.raises(ValueError, match="or says why it has none"):
        row.Row("nothing is said of it")
    with pytest.raises(ValueError, match="or says why it has none"):
        row.Row("both", 1.0, "for comparison: a test")
    rows = import_module("catalogue").ROWS.values()
    whys = [each.why for each in rows if each.why]
    assert [each for each in whys if not each.startswith(("limit: ", "for comparison: "))] == []


def test_each_bench_of_the_catalogue_is_a_file_and_each_file_has_no_more_than_600_lines() -> None:
    benches = import_module("measuring").benches()
    assert [each for each in benches if not (BENCHES / f"{each}.py").exists()] == []
    sources = [path for path in BENCHES.rglob("*") if path.suffix in {".py", ".c", ".h", ".md"}]
    long = [path.name for path in sources if len(path.read_text("utf-8").splitlines()) > 600]
    assert long == []


class Stocked:
    """A queue manager that counts what it is sent and takes it out when that is said."""

    port = 0

    def __init__(self) -> None:
        self.there, self.commands = 70, [""]

    def command(self, *words: str) -> bytes:
        self.commands.append(" ".join(words))
        self.there = 0
        return b""

    def waiting(self, queue: str) -> int:
        return self.there


@pytest.mark.parametrize("share", [1, 0.5])
def test_a_stock_is_made_by_count_whatever_a_send_takes(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    durable, served = import_module("durable"), Stocked()

    def load(port: int, connections: int, script: Any, *times: float) -> None:
        *_, calls = times
        served.there += int(calls * share)

    monkeypatch.setattr(durable, "load", load)
    if share == 1:
        durable.stock(served, 5_000, 10_240)
        assert (served.there, served.commands[-1]) == (5_000, "purge bench")
        return
    with pytest.raises(RuntimeError, match="2,500 messages are there instead of 5,000"):
        durable.stock(served, 5_000, 10_240)
