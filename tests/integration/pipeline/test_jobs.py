"""Captures become tables, and tables become reports."""

import json
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rpcqm.capture.unsealing.accounts import parse_account
from rpcqm.cli.main import main
from rpcqm.pipeline.coverage import coverage
from rpcqm.pipeline.flow_index import exact, misread, plan
from rpcqm.pipeline.splitting import claimed
from rpcqm.pipeline.tables import table
from tests.support.accounts import PASSWORD
from tests.support.capture.analysed import calls_of
from tests.support.capture.captures import pcapng
from tests.support.capture.traffic import traffic

CAPTURES = Path(__file__).parents[2] / "vectors" / "captures"
FILES = ("wine-none.pcapng", "impacket-privacy.pcapng", "srmp.pcapng")
ACCOUNT = f"alice:{PASSWORD}"


def run(*words: object) -> int:
    return main(["pipeline", *map(str, words), "--master", "local[2]"])


@pytest.fixture(scope="module")
def tables(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `ingest` makes of three captures and a damaged file."""
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


def test_messages_over_http_are_calls_and_messages(spark: Any, tables: Path) -> None:
    calls = spark.read.parquet(str(tables / "calls")).where("protocol = 'MC-MQSRM'")
    rows = calls.orderBy("conversation", "record").collect()
    assert len(rows) == len(calls_of(CAPTURES / "srmp.pcapng")[0]) == 13
    stream = [row for row in rows if "tsimpleq" in (row.queue or "")]
    assert [json.loads(row.request)["stream"]["current"] for row in stream] == [1, 2, 3]
    assert {(row.status, row.status_name) for row in stream} == {(200, "200 OK")}
    (wrong,) = [row for row in rows if row.status == 400]
    assert json.loads(wrong.request)["error"].startswith("it is no message")
    flows = spark.read.parquet(str(tables / "flows")).where("protocol = 'MC-MQSRM'").collect()
    assert sorted(row.calls for row in flows) == [1, 5, 7]
    messages = spark.read.parquet(str(tables / "messages")).where("interface = 'MC-MQSRM'")
    number = "{00000000-0000-0000-0000-000000000000}\\1"
    about = [row for row in messages.collect() if row.message_id == number]
    assert {row.name for row in about} > {"DeliveryReceipt", "CommitmentReceipt"}


def test_only_new_files_are_ingested(spark: Any, tables: Path) -> None:
    captures = tables.parent / "captures"
    before = spark.read.parquet(str(tables / "calls")).count()
    words = ("--input", captures, "--output", tables, "--account", ACCOUNT)
    assert run("ingest", *words) == 0
    assert spark.read.parquet(str(tables / "calls")).count() == before


@pytest.mark.parametrize(
    "name",
    ["calls", *(pytest.param(each, marks=pytest.mark.soak) for each in ("pdus", "messages"))],
)
def test_a_file_split_in_ranges_gives_the_same_rows(spark: Any, name: str) -> None:
    """Ranges cut records and flows; what comes out of the shuffle is what one task would give."""
    path = str(CAPTURES / "wine-privacy.pcapng")
    whole = table(spark, name, [path], [ACCOUNT])
    split = table(spark, name, [path], [ACCOUNT], split_bytes=3000)
    columns = [c for c in whole.columns if c not in ("conversation", "queue")]
    rows = [sorted(map(str, each.select(*columns).collect())) for each in (whole, split)]
    assert rows[0] == rows[1]
    assert len(rows[0]) > 10


def octets_of(report: Path) -> list[tuple[str, int, int]]:
    """The files of a report, and the octets that no reader and that two readers claimed."""
    rows = json.loads((report / "report.json").read_text("utf-8"))["octets"]
    return [(Path(row["file"]).name, row["unclaimed"], row["twice"]) for row in rows]


@pytest.mark.soak
def test_ranges_read_from_the_wrong_place_are_read_again(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What packets hold looks like blocks; all jobs tell that no octet is lost or taken twice."""
    frames = [*traffic(7), *[pcapng(traffic(8, calls=3)) for _ in range(4)]]
    octets = pcapng(frames)
    captures = tmp_path / "captures"
    captures.mkdir()
    (captures / "whole.pcapng").write_bytes(octets)
    (captures / "cut.pcapng").write_bytes(octets[:-9])
    ranged = partial(plan, size=len(octets) // 25)
    made = ranged([captures / "whole.pcapng"], 2)
    assert misread(exact(made, claims := [*map(claimed, made.ranges)]), claims)
    monkeypatch.setattr("rpcqm.pipeline.flow_index.plan", ranged)
    out = tmp_path / "out"
    assert run("ingest", "--input", captures, "--output", out) == 0
    cut = len(octets) - len(pcapng(frames[:-1])) - 9
    expected = [("cut.pcapng", cut, 0), ("whole.pcapng", 0, 0)]
    assert octets_of(out) == expected
    told = capsys.readouterr()
    assert f"{cut} octets of {captures}/cut.pcapng were claimed by no reader" in told.err
    assert f"{cut:,} octets claimed by no reader, 0 octets claimed twice" in told.out
    calls = spark.read.parquet(str(out / "calls")).where("file like '%whole%'").count()
    assert calls == len(calls_of(captures / "whole.pcapng", [])[0])
    for job in ("conform", "trace"):
        assert run(job, "--input", out, "--output", tmp_path / job) == 0
        assert octets_of(tmp_path / job) == expected
    assert run("compare", "--left", out, "--right", out, "--output", tmp_path / "compare") == 0
    assert octets_of(tmp_path / "compare") == expected * 2


def test_the_data_source_tells_what_its_readers_claim(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(pcapng([pcapng(traffic(8, calls=3)) for _ in range(4)]))
    reader = spark.read.format("msmq_capture").option("splitBytes", "1500")
    rows = [row.asDict() for row in reader.option("table", "claims").load(str(path)).collect()]
    assert len(rows) > 5
    (told,) = coverage(rows)
    assert (told["unclaimed"], told["twice"]) == (0, 0)
    assert reader.option("table", "packets").load(str(path)).count() == 4


def test_the_data_source_has_its_options(spark: Any) -> None:
    reader = spark.read.format("msmq_capture").option("table", "packets")
    packets = reader.option("splitBytes", "4000").load(str(CAPTURES / "wine-none.pcapng"))
    offsets = [row.offset for row in packets.collect()]
    assert len(offsets) == len(set(offsets)) > 100
    assert packets.rdd.getNumPartitions() == 6


def test_the_data_source_takes_paths_as_the_sources_of_spark_do(spark: Any, tmp_path: Path) -> None:
    """A list, a file: URL, alternatives in braces, and commas, also within a name."""
    for name in ("a", "b", "c, d", "e f"):
        shutil.copy(CAPTURES / "srmp.pcapng", tmp_path / name)
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    comma = f"{tmp_path}/c, d"
    reader = spark.read.format("msmq_capture").option("table", "flows")
    taken: list[tuple[str | list[str], int]] = [
        ([a, b], 2),
        ([a, comma], 2),
        ((tmp_path / "e f").as_uri(), 1),
        (f"file:{a},{tmp_path}/{{b,c*}}", 3),
        (comma, 1),
    ]
    for path, files in taken:
        rows = reader.load(path).select("file").distinct().count()
        assert rows == files, path
    (tmp_path / "empty").mkdir()
    assert reader.load(str(tmp_path / "empty")).count() == 0


def test_the_data_source_refuses_paths_in_a_sentence(spark: Any, tmp_path: Path) -> None:
    reader = spark.read.format("msmq_capture").option("table", "flows")
    elsewhere = "is not on a file system of this machine"
    refused = {
        f"{tmp_path}/none": "none is not there",
        f"{CAPTURES}/srmp.pcapng,{tmp_path}/*.pcap": r"\*.pcap is not there",
        "s3a://bucket/a.pcapng": f"s3a://bucket/a.pcapng {elsewhere}",
        "hdfs:///captures": elsewhere,
        "file://other/captures": elsewhere,
        "": "msmq_capture reads files: name them",
    }
    for path, sentence in refused.items():
        with pytest.raises(Exception, match=f"SourceError: .*{sentence}"):
            reader.load(path).count()
    with pytest.raises(Exception, match="SourceError: msmq_capture reads files: name them"):
        reader.load().count()


def test_jobs_refuse_paths_of_other_file_systems_in_a_sentence(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = CAPTURES / "srmp.pcapng"
    for words in (
        ("ingest", "--input", "s3a://bucket/a", "--output", tmp_path),
        ("ingest", "--input", capture, "--output", "s3a://bucket/a"),
        ("conform", "--input", "s3a://bucket/a", "--output", tmp_path),
    ):
        assert run(*words) == 1
        told = capsys.readouterr().err
        assert told.startswith("rpcqm: s3a://bucket/a is not on a file system of this machine")
        assert told.count("\n") == 1


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
