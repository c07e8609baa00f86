"""The same programs on a standalone cluster of two workers give what they give here."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rpcqm.capture.unsealing.accounts import read_accounts
from tests.support.accounts import PASSWORD
from tests.support.capture.analysed import calls_of
from tests.support.pipeline import pipeline_programs
from tests.support.pipeline.spark_cluster import SPARK, SparkCluster

pytestmark = pytest.mark.soak
CAPTURES = Path(__file__).parents[2] / "vectors" / "captures"
FILES = (CAPTURES / "wine-privacy.pcapng", CAPTURES / "impacket-kerberos.pcapng")
ACCOUNT, KEYTAB = f"alice:{PASSWORD}", CAPTURES / "kerberos.keytab"
KEYS = ("--account", ACCOUNT, "--keytab", KEYTAB)
SECONDS = 300


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def output(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ingest, conform and compare make on the cluster, in one session."""
    target = tmp_path_factory.mktemp("output")
    tables = target / "tables"
    commands = (
        ("ingest", "--input", *FILES, "--output", tables, *KEYS),
        ("conform", "--input", tables, "--output", target / "conform"),
        ("compare", "--left", tables, "--right", tables, "--output", target / "compare"),
    )
    submit = [SPARK / "bin" / "spark-submit", "--master", cluster.master]
    submit += [Path(pipeline_programs.__file__)]
    done = subprocess.run(
        [*map(str, submit), *("\n".join(map(str, each)) for each in commands)],
        env=cluster.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def expected() -> Counter[tuple[Any, ...]]:
    accounts = read_accounts([ACCOUNT, str(KEYTAB)])
    found = [call for path in FILES for call in calls_of(path, accounts)[0]]
    return Counter((each.interface_name, each.name, each.status_name) for each in found)


def test_tables_are_the_same_as_without_a_cluster(output: Path) -> None:
    calls = output / "tables" / "calls"
    rows = pq.read_table(calls, columns=["interface", "name", "status_name"]).to_pylist()
    assert Counter(tuple(map(str, row.values())) for row in rows) == expected()


def test_both_workers_took_part(cluster: SparkCluster, output: Path) -> None:
    """The session was one of the cluster, as spark-submit was told."""
    assert [each["name"] for each in cluster.status()["completedapps"]] == ["commands"]
    executors = cluster.directory.glob("worker-*/app-*/*")
    assert {each.parents[1].name for each in executors} == {"worker-0", "worker-1"}


def test_reports_are_written(output: Path) -> None:
    conform = json.loads((output / "conform" / "report.json").read_text("utf-8"))
    assert sum(row["calls"] for row in conform["methods"]) == sum(expected().values())
    compared = json.loads((output / "compare" / "report.json").read_text("utf-8"))
    assert compared["differences"] == []
    for name in ("conform", "compare"):
        assert "<svg" in (output / name / "report.html").read_text("utf-8")
