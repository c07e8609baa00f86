"""scripts/conformance, and the page it writes."""

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts" / "conformance"


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"proved": ["MQRR-op-0", "MQRR-op-2"], "tests": {}}))
    return path


def test_the_committed_page_is_the_generated_one_but_for_what_was_proved(
    report: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    assert call("--report", str(report), "--write", str(page)).returncode == 0
    proved = re.compile(r"\d+ /")
    committed = (ROOT / "docs" / "conformance.md").read_text("utf-8")
    assert proved.sub("N /", committed) == proved.sub("N /", page.read_text("utf-8"))


def test_the_table_counts_proved_points_over_listed_ones(report: Path) -> None:
    lines = call("--report", str(report)).stdout.splitlines()
    points = (ROOT / "rpcqm" / "conformance.csv").read_text("utf-8").splitlines()
    needed = sum(",MS-MQRR," in line and ",W," in line for line in points)
    row = next(line for line in lines if line.startswith("MS-MQRR"))
    assert row.split()[1:4] == ["2", "/", str(needed)]


def test_open_names_the_needed_points_that_nothing_proves(report: Path) -> None:
    output = call("--report", str(report), "--open", "mqrr").stdout
    names = [line.split()[0] for line in output.splitlines()]
    assert "MQRR-op-3" in names
    assert not {"MQRR-op-0", "MQRR-op-2"} & set(names)


def test_an_unknown_document_is_refused_with_the_known_ones(report: Path) -> None:
    result = call("--report", str(report), "--open", "MS-NONE")
    assert result.returncode == 1
    assert "MS-NONE is not a document" in result.stderr
    assert "MS-MQRR" in result.stderr


def test_a_missing_report_says_how_to_make_one(tmp_path: Path) -> None:
    result = call("--report", str(tmp_path / "none.json"))
    assert result.returncode == 1
    assert "run scripts/test" in result.stderr
