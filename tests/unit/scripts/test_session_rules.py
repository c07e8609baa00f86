"""The rules that tests/conftest.py lays on every run, each seen at work in a small run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    configuration.write_text("[pytest]\nmarkers = conformance(*points): points\n")
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
