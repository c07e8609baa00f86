"""Captures become tables, and tables become reports."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rpcqm.capture.accounts import parse_account
from rpcqm.capture.analysis import calls_of
from rpcqm.cli.main import main
from rpcqm.pipeline.tables import table
from tests.support.accounts import PASSWORD

CAPTURES = Path(__file__).parents[2] / "vectors" / "captures"
FILES = ("wine-none.pcapng", "impacket-privacy.pcapng")
ACCOUNT = f"alice:{PASSWORD}"


def run(*words: object) -> int:
    return main(["pipeline", *map(str, words), "--master", "local[2]"])


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `ingest` makes of two captures and a damaged file."""
    directory = tmp_path_factory.mktemp("tables")
    captures = directory / "captures"
    captures.mkdir()
    for name in FILES:
        shutil.copy(CAPTURES / name, captures / name)
    (captures / "damaged.pcap").write_bytes(b"no capture at all")
    output = directory / "out"
    assert run("ingest", "--input", captures, "--output", output, "--account", ACCOUNT) == 0
    return output


def expected() -> Counter[tuple[str, str, str | None]]:
    found: Counter[tuple[str, str, str | None]] = Counter()
    for name in FILES:
        for call in calls_of(CAPTURES / name, [parse_account(ACCOUNT)])[0]:
            found[call.interface_name, call.name, call.status_name] += 1
    return found


def test_calls_are_written_by_day_and_interface(spark: Any, tables: Path) -> None:
    calls = spark.read.parquet(str(tables / "calls"))
    rows = calls.select("interface", "name", "status_name").collect()
    assert Counter(map(tuple, rows)) == expected()
    assert list((tables / "calls").glob("day=*/interface=RemoteRead"))
    flows = spark.read.parquet(str(tables / "flows")).collect()
    assert sum(row.calls for row in flows) == sum(expected().values())
    assert {row.level for row in flows} == {1, 6}


def test_what_is_damaged_is_a_row_of_problems(spark: Any, tables: Path) -> None:
    (row,) = spark.read.parquet(str(tables / "problems")).collect()
    assert row.file.endswith("damaged.pcap")
    assert row.kind == "unreadable"
    report = json.loads((tables / "report.json").read_text("utf-8"))
    assert report["problems"][0]["kind"] == "unreadable"
    assert "<svg" in (tables / "report.html").read_text("utf-8")


def test_only_new_files_are_ingested(spark: Any, tables: Path) -> None:
    captures = tables.parent / "captures"
    before = spark.read.parquet(str(tables / "calls")).count()
    words = ("--input", captures, "--output", tables, "--account", ACCOUNT)
    assert run("ingest", *words) == 0
    assert spark.read.parquet(str(tables / "calls")).count() == before


@pytest.mark.parametrize("name", ["calls", "pdus", "messages"])
def test_a_file_split_in_ranges_gives_the_same_rows(spark: Any, name: str) -> None:
    """Ranges cut records and flows; what comes out of the shuffle is what one task would give."""
    path = str(CAPTURES / "wine-privacy.pcapng")
    whole = table(spark, name, [path], [ACCOUNT])
    split = table(spark, name, [path], [ACCOUNT], split_bytes=3000)
    columns = [c for c in whole.columns if c not in ("conversation", "queue")]
    rows = [sorted(map(str, each.select(*columns).collect())) for each in (whole, split)]
    assert rows[0] == rows[1]
    assert len(rows[0]) > 10


def test_the_data_source_has_its_options(spark: Any) -> None:
    reader = spark.read.format("msmq_capture").option("table", "packets")
    packets = reader.option("splitBytes", "4000").load(str(CAPTURES / "wine-none.pcapng"))
    offsets = [row.offset for row in packets.collect()]
    assert len(offsets) == len(set(offsets)) > 100
    assert packets.rdd.getNumPartitions() == 6


def test_conform_tells_of_each_method(spark: Any, tables: Path, tmp_path: Path) -> None:
    assert run("conform", "--input", tables, "--output", tmp_path) == 0
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    methods = {row["name"]: row for row in report["methods"]}
    assert methods["R_StartReceive"]["calls"] == 30
    assert methods["R_StartReceive"]["p50_ms"] > 0
    points = {row["point"] for row in report["conformance_points"]}
    assert {"MQRR-op-7", "MQRR-op-10", "MQMR-op-0"} <= points
    assert report["disagreements"] == []
    assert spark.read.parquet(str(tmp_path / "methods")).count() == len(methods)


def test_compare_tells_what_was_answered_differently(
    spark: Any, tables: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    changed = spark.read.parquet(str(tables / "calls"))
    wrong = "if(name = 'R_CloseCursor', 'MQ_ERROR', status_name)"
    changed.selectExpr("*", f"{wrong} as s").drop("status_name").withColumnRenamed(
        "s", "status_name"
    ).write.parquet(str(other / "calls"))
    output = tmp_path / "report"
    assert run("compare", "--left", tables, "--right", tables, "--output", output) == 0
    report = json.loads((output / "report.json").read_text("utf-8"))
    assert report["differences"] == []
    assert run("compare", "--left", tables, "--right", other, "--output", output) == 0
    report = json.loads((output / "report.json").read_text("utf-8"))
    assert {row["name"] for row in report["differences"]} == {"R_CloseCursor"}
    assert report["differences"][0]["right"] == "MQ_ERROR"


def test_trace_follows_a_message_that_was_moved(spark: Any, tables: Path, tmp_path: Path) -> None:
    assert run("trace", "--input", tables, "--output", tmp_path) == 0
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    moved = [row for row in report["lives"] if "later" in row["queues"]]
    assert len(moved) == 1
    identifier = moved[0]["message_id"]
    assert run("trace", "--input", tables, "--output", tmp_path, "--message-id", identifier) == 0
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert [row["step"] for row in report["trace"]] == list(range(1, len(report["trace"]) + 1))
    assert report["trace"][-1]["queue"].endswith(";later")


def test_tables_that_are_not_there_are_told(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("conform", "--input", tmp_path, "--output", tmp_path) == 1
    assert "run `rpcqm pipeline ingest` first" in capsys.readouterr().err
    assert run("ingest", "--input", tmp_path / "none", "--output", tmp_path) == 1
