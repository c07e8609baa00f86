"""`scripts/soak ci` runs CI on clones beside busy loops, `spark-versions` with other packages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project.lock_file import requirements
from tests.support.soak import spark_versions
from tests.support.soak.ci_soak import part_of

ROOT = Path(__file__).parents[3]
CI = """#!/bin/sh
echo begun >> {place}/begun
ps -o args= --ppid $PPID | grep -c getppid >> {place}/busy
echo "${{RPCQM_LIMITS_CONNECTIONS:-none}}" >> {place}/settings
{what}
"""
WELL = """cat <<END
1 passed, 2 warnings in the text of a test
5112 passed, 3 skipped in 812.05s (0:13:32)
minutes by step
   0.4  lint
  13.6  tests
minutes by row, and how many it may take
   4.4 of  5.0  unit and model
   1.5          checks
END
"""
BADLY = """test $(wc -l < {place}/begun) = 1 || {{
echo "FAILED tests/unit/test_a.py::test_one[a - b] - AssertionError: not - so"
echo "2 failed, 1 passed in 3.05s"
exit 1
}}"""


class Soak:
    """The command on a repository of its own, whose CI is a script."""

    def __init__(self, place: Path, what: str = WELL) -> None:
        self.place, self.source, self.page = place, place / "source", place / "soak.md"
        (self.source / ".ci").mkdir(parents=True)
        self.script = self.source / ".ci" / "run"
        self.script.write_text(CI.format(place=place, what=what.format(place=place)))
        self.script.chmod(0o755)
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "all")

    def git(self, *words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", self.source, *identity, *words], check=True)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.support.soak.soak", "ci", "--source", self.source]
        command += ["--state", self.place / "state", "--page", self.page, *words]
        settings = {**os.environ, "RPCQM_LIMITS_CONNECTIONS": "7"}
        return subprocess.run(
            list(map(str, command)),
            cwd=ROOT,
            env=settings,
            capture_output=True,
            text=True,
            check=False,
        )

    def lines(self, name: str) -> list[str]:
        return (self.place / name).read_text().split()

    def logs(self) -> list[Path]:
        return list((self.place / "state").glob("*.log"))


def test_ci_runs_on_clones_beside_busy_loops_and_goes_on_after_an_interruption(
    tmp_path: Path,
) -> None:
    soak = Soak(tmp_path)
    assert soak.run("--times", "3", "--parts", "1").returncode == 1
    ended = soak.run("--times", "3")
    assert ended.returncode == 0, ended.stderr
    assert len(soak.lines("begun")) == 3
    assert soak.lines("busy") == ["2", "2", "2"]
    assert soak.lines("settings") == ["none", "none", "none"]
    row = soak.page.read_text()
    assert "| ci | well | 15,336 passed, 9 skipped, at most 0.4 minutes of lint, " in row
    assert "at most 4.4 minutes of unit and model; " in row
    assert soak.logs() == []


def test_it_ends_with_the_first_run_that_fails_and_keeps_what_that_printed(tmp_path: Path) -> None:
    soak = Soak(tmp_path, BADLY)
    ended = soak.run("--times", "4", "--busy", "1")
    assert ended.returncode == 1
    assert len(soak.lines("begun")) == 2
    assert "failed: tests/unit/test_a.py::test_one[a - b]\n" in ended.stdout
    (log,) = soak.logs()
    assert "2 failed, 1 passed" in log.read_text()
    assert soak.run("--times", "4", "--busy", "1").returncode == 1
    assert len(soak.lines("begun")) == 2


def test_what_is_not_committed_is_not_passed_over(tmp_path: Path) -> None:
    soak = Soak(tmp_path)
    soak.script.write_text("#!/bin/sh\n")
    refused = soak.run()
    assert refused.returncode == 2
    assert refused.stderr == "Commit first: the clones have what is committed.\n"


@pytest.mark.parametrize(
    ("line", "failures"),
    [
        ("ERROR tests/unit/test_a.py::test_one - OSError", ["tests/unit/test_a.py::test_one"]),
        ("replacing crashed worker gw1", ["begun again: replacing crashed worker gw1"]),
        ("the word RERUNS in a test", []),
    ],
)
def test_an_error_and_what_is_begun_again_are_failures(line: str, failures: list[str]) -> None:
    assert part_of([line, "1 passed in 3.05s"], 0).failures == failures


@pytest.mark.parametrize("versions", [spark_versions.oldest(), spark_versions.newest()])
def test_spark_is_tried_with_versions_that_are_allowed(versions: dict[str, str]) -> None:
    allowed = {each.name: each.specifier for each in requirements()["spark"]}
    assert all(version in allowed[name] for name, version in versions.items())


def test_the_page_of_the_pipeline_names_the_versions_that_are_tried() -> None:
    page = (ROOT / "docs" / "pipeline.md").read_text("utf-8")
    for versions in (spark_versions.oldest(), spark_versions.newest()):
        spark = ".".join(versions["pyspark"].split(".")[:2])
        assert f"PySpark {spark} with PyArrow {versions['pyarrow'].split('.')[0]}" in page


def test_the_versions_that_are_installed_are_tried_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    test = tmp_path / "test_one.py"
    test.write_text("def test_one(): pass\ndef test_two(): assert False, 'so'\n")
    monkeypatch.setattr(spark_versions, "oldest", spark_versions.newest)
    words = ["--tests", test, "--state", tmp_path / "state", "--page", tmp_path / "page.md"]
    assert spark_versions.main([str(word) for word in words]) == 1
    said = capfd.readouterr().out
    assert "spark-versions: 1 of 1 parts: 2 tests; " in said
    assert f"failed: {spark_versions.named(spark_versions.newest())}: " in said
