"""The rules that tests/conftest.py lays on every run, each seen at work in a small run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project.minutes import ALL, ROWS, main, row_of, suite_of

ROOT = Path(__file__).parents[3]

EXAMPLES = """
import pytest

@pytest.mark.conformance("MQRR-op-0")
def test_passes():
    assert True

@pytest.mark.conformance("MQRR-op-2", "MQRR-op-3")
@pytest.mark.parametrize("right", [True, False])
def test_passes_once(right):
    assert right
"""
SKIPPING = "import pytest\n\ndef test_skips():\n    pytest.skip('wine is not installed')\n"
SKIPPING_MODULE = "import pytest\n\npytest.importorskip('no_such_module')\n"
EXPECTED = "import pytest\n\n@pytest.mark.xfail\ndef test_fails():\n    assert False\n"


def run(directory: Path, text: str, *options: str, ci: bool) -> subprocess.CompletedProcess[str]:
    (directory / "test_example.py").write_text(text)
    configuration = directory / "pytest.ini"
    configuration.write_text("[pytest]\nmarkers =\n  conformance(*points)\n  soak\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", str(configuration)]
    environment = {**os.environ, "RPCQM_CI": "1" if ci else ""}
    environment.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(
        [*command, *options, str(directory)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("text", [SKIPPING, SKIPPING_MODULE, EXPECTED])
@pytest.mark.parametrize("options", [[], ["-n", "1"]])
def test_a_skip_fails_the_run_in_ci_only(tmp_path: Path, text: str, options: list[str]) -> None:
    assert run(tmp_path, text, *options, ci=True).returncode == pytest.ExitCode.TESTS_FAILED
    assert run(tmp_path, text, *options, ci=False).returncode in (
        pytest.ExitCode.OK,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    )


def test_a_skip_in_ci_is_named_with_its_reason(tmp_path: Path) -> None:
    output = run(tmp_path, SKIPPING, ci=True).stdout
    assert "test_skips: Skipped: wine is not installed" in output


@pytest.mark.parametrize("options", [[], ["-n", "1"]])
def test_a_point_is_proved_when_no_test_that_claims_it_fails(
    tmp_path: Path, options: list[str]
) -> None:
    report = tmp_path / "report.json"
    run(tmp_path, EXAMPLES, "--conformance-report", str(report), *options, ci=False)
    written = json.loads(report.read_text())
    assert written["proved"] == ["MQRR-op-0"]
    assert set(written["tests"]) == {"MQRR-op-0", "MQRR-op-2", "MQRR-op-3"}


def test_an_unknown_point_stops_the_run(tmp_path: Path) -> None:
    text = EXAMPLES.replace("MQRR-op-0", "MQRR-op-99")
    result = run(tmp_path, text, ci=False)
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert "claims unknown points: MQRR-op-99" in result.stderr


LONG = "import pytest\n\ndef test_short(): pass\n\n@pytest.mark.soak\ndef test_long(): pass\n"


@pytest.mark.parametrize(
    ("options", "tests"), [([], "1 passed, 1 deselected"), (["-m", "soak or not soak"], "2 passed")]
)
def test_what_takes_long_is_left_for_the_soak(
    tmp_path: Path, options: list[str], tests: str
) -> None:
    assert tests in run(tmp_path, LONG, *options, ci=True).stdout


@pytest.mark.parametrize("options", [[], ["-n", "1"]])
def test_ci_prints_the_minutes_of_every_suite_and_of_all(
    tmp_path: Path, options: list[str]
) -> None:
    told = run(tmp_path, EXAMPLES, *options, ci=True).stdout
    assert re.search(r"(?m)^ +\d+\.\d +\d+\.\d +3 tests  total$", told)
    quiet = run(tmp_path, EXAMPLES, *options, ci=False).stdout
    assert "tests  total" not in quiet


@pytest.mark.parametrize(
    ("nodeid", "suite"),
    [
        ("tests/unit/test_layers.py::test_one", "unit"),
        ("tests/unit/qm/test_quotas.py::test_one", "unit/qm"),
        ("tests/integration/cli/test_serve.py::Tests::test_one", "integration/cli"),
        ("tests/integration/dcom/impacket_walk/test_a.py::test_one", "integration/dcom"),
        ("tests/crash/test_kill.py::test_one[a/b]", "crash"),
    ],
)
def test_a_suite_is_a_folder_of_tests(nodeid: str, suite: str) -> None:
    assert suite_of(nodeid) == suite


def test_every_folder_of_tests_belongs_to_a_row_of_minutes() -> None:
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    assert [file for file in sorted(files) if row_of(f"{file}::test_one") is None] == []


@pytest.mark.parametrize(
    ("nodeid", "row"),
    [
        ("tests/unit/test_layers.py::test_one", "unit and model"),
        ("tests/model/test_store.py::test_one", "unit and model"),
        ("tests/integration/pipeline/test_a.py::test_one", "Spark"),
        ("tests/integration/dcom/impacket_walk/test_a.py::test_one", "integration"),
        ("tests/interop/browser/test_a.py::test_one", "browser"),
        ("tests/interop/srmp/test_a.py::Tests::test_one", "peers"),
        ("tests/new/test_a.py::test_one", None),
    ],
)
def test_the_row_of_a_test_is_that_of_its_nearest_folder(nodeid: str, row: str | None) -> None:
    assert row_of(nodeid) == row


def test_the_minutes_of_the_rows_are_those_that_ci_may_take() -> None:
    assert sum(row.minutes for row in ROWS) == ALL
    assert f"{ALL:g} * 60" in (ROOT / "scripts/test").read_text()


def test_the_rows_share_the_step_of_the_tests_by_their_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "minutes.json"
    report.write_text(json.dumps({"work": {"integration": 900.0, "Spark": 300.0}}))
    steps = ["peers=700", "set-up=600", "lint=30", "types=60", "tests=600", "mutations=180"]
    main([str(report), *steps])
    printed = capsys.readouterr().out.splitlines()
    assert "   7.5 of  5.0  integration" in printed
    assert "   2.5 of  3.0  Spark" in printed
    assert "   0.0 of  1.0  replica" in printed
    assert "   3.0 of  2.5  mutations" in printed
    assert "   1.5          checks" in printed
    assert "  14.5 of 27.0  in all" in printed
    above = [line.partition(" took ")[0] for line in printed if "may take" in line][1:]
    assert above == ["integration", "mutations"]


@pytest.mark.parametrize("options", [[], ["-n", "1"]])
def test_a_report_has_the_work_and_what_came_of_the_tests(
    tmp_path: Path, options: list[str]
) -> None:
    report = tmp_path / "minutes.json"
    failing = EXAMPLES + "\ndef test_has_no_such_thing(no_such_thing): pass\n"
    run(tmp_path, failing, "--minutes-report", str(report), *options, ci=False)
    written = json.loads(report.read_text())
    assert written["outcome"] == {"passed": 2, "failed": 1, "error": 1}
    assert sum(written["tests"].values()) == 3
    assert set(written["work"]) == {"none"}


def test_ci_fails_above_27_minutes(tmp_path: Path) -> None:
    """The whole script with commands that do nothing, begun long ago."""
    for name in ("scripts/test", "scripts/setup", "scripts/install-peers", "scripts/release"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    tools = tmp_path / ".venv/bin"
    tools.mkdir(parents=True)
    for name in ("ruff", "mypy", "python"):
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    text = (ROOT / "scripts/test").read_text()
    for seconds, status in ((27 * 60 - 30, 0), (27 * 60 + 1, 1)):
        assert "prepared=$SECONDS" in text
        begun = text.replace("prepared=$SECONDS", f"prepared=0 SECONDS={seconds}", 1)
        (tmp_path / "scripts/test").write_text(begun)
        for ci in ("1", ""):
            ran = subprocess.run(
                [tmp_path / "scripts/test"],
                env={**os.environ, "RPCQM_CI": ci},
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == (status if ci else 0), ran.stderr
            assert ("total" in ran.stdout) == bool(ci)
