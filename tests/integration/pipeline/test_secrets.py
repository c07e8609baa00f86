"""What Spark writes and shows: no password in it, and nobody else may read it."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.pipeline.html import Report
from rpcqm.pipeline.queue_options import QueueOptions
from rpcqm.testing.private import PrivateQueueManager, private_queue_manager

CAPTURE = Path(__file__).parents[2] / "vectors" / "captures" / "impacket-privacy.pcapng"
SECRET = "s3cret-Zebra"
HOSTILE = "</script><script>alert(1)</script>\"'<img src=x onerror=alert(2)>&"


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(configuration="[storage]\nreserve = 1\n") as made:
        made.run("queue", "create", "orders")
        made.run("send", "orders", "--body", "x", "--label", HOSTILE)
        yield made


def explained(frame: Any) -> str:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        frame.explain(True)
        frame.explain("formatted")
    return shown.getvalue() + repr(frame)


def events(spark: Any) -> str:
    """The event log of the session."""
    directory = Path(spark.conf.get("spark.eventLog.dir").removeprefix("file:"))
    return "".join(path.read_text("utf-8") for path in directory.rglob("*") if path.is_file())


def octets_below(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


def test_no_password_is_in_plans_events_or_checkpoints(
    spark: Any, queue_manager: PrivateQueueManager, tmp_path: Path
) -> None:
    options = {"socket": str(queue_manager.socket), "queue": "orders", "password": SECRET}
    read = spark.read.format("msmq").options(**options).load()
    assert read.count() == 1
    calls = spark.read.format("msmq_capture").option("account", f"CORP\\alice:{SECRET}")
    calls = calls.load(str(CAPTURE))
    assert calls.count() > 0
    assert SECRET not in explained(read) + explained(calls)
    stream = spark.readStream.format("msmq").options(**options).load().writeStream
    stream = stream.format("parquet").trigger(availableNow=True)
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = stream.start(str(tmp_path / "out"))
    query.awaitTermination()
    assert {each.name for each in (tmp_path / "checkpoint").iterdir()} >= {"offsets", "commits"}
    assert list((tmp_path / "out").glob("*.parquet"))
    assert SECRET.encode() not in octets_below(tmp_path)
    told = events(spark)
    assert "SparkListenerSQLExecutionStart" in told
    assert SECRET not in told


def failing(spark: Any, queue_manager: PrivateQueueManager) -> Iterator[Any]:
    """Reads and writes of which nothing can come."""
    nowhere = {"queue": "orders", "server": "127.0.0.1:1", "user": "alice", "password": SECRET}
    local = {"queue": "orders", "socket": str(queue_manager.socket), "password": SECRET}
    yield lambda: spark.read.format("msmq").options(**nowhere).load().collect()
    yield lambda: spark.read.format("msmq").options(password=SECRET).load().collect()
    yield lambda: spark.read.format("msmq").options(**local, partitions="x").load().collect()
    yield lambda: spark.read.format("msmq_capture").options(table="x", account=SECRET).load("x")
    frame = spark.createDataFrame([("x",)], "body string").write.format("msmq").mode("append")
    yield lambda: frame.options(**nowhere).save()


def test_no_password_is_in_errors(spark: Any, queue_manager: PrivateQueueManager) -> None:
    for action in failing(spark, queue_manager):
        with pytest.raises(Exception) as failed:  # noqa: PT011
            action()
        assert SECRET not in f"{failed.value}{failed.value!r}"
    assert SECRET not in events(spark)


def test_a_password_comes_from_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\r\nanything\n", "utf-8")
    given = {"queue": "q", "server": "s", "passwordfile": str(path)}
    path.chmod(0o640)
    with pytest.raises(ValueError, match="others may read it"):
        QueueOptions.of(given)
    path.chmod(0o600)
    assert QueueOptions.of(given).password == SECRET
    assert SECRET not in repr(QueueOptions.of(given))


def test_reports_hold_texts_of_strangers_as_texts(tmp_path: Path) -> None:
    report = Report(HOSTILE)
    report.summary({HOSTILE: HOSTILE})
    report.plot(HOSTILE, [(HOSTILE, 1.0)])
    report.table("rows", HOSTILE, [{HOSTILE: HOSTILE}])
    report.write(tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count("<script>") == page.count("</script>") == 1
    assert "<img" not in page
    assert page.count("&lt;img src=x") == 12
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["rows"] == [{HOSTILE: HOSTILE}]


def modes(directory: Path) -> set[str]:
    """The modes of a directory and of what is below."""
    return {f"{path.stat().st_mode:o}" for path in (directory, *directory.rglob("*"))}


def test_nobody_else_may_read_what_a_job_writes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rpcqm", "pipeline", "ingest", "--master", "local[1]"]
    command += ["--output", str(tmp_path / "out"), "--input", str(CAPTURE)]
    outcome = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=lambda: os.umask(0o022) and None,
    )
    assert outcome.returncode == 0, outcome.stderr
    assert list((tmp_path / "out").rglob("*.parquet"))
    assert (tmp_path / "out" / "report.html").is_file()
    assert modes(tmp_path / "out") == {"100600", "40700"}
