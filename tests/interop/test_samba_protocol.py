"""Samba's raw DCE/RPC protocol suite against our endpoint mapper.

`samba/raw_protocol.csv` says of each of its tests what is expected: that it passes, that it does
not yet (open), or that it asks for something else than a queue manager (not applicable).
"""

import csv
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.accounts import PASSWORD
from tests.support.served import ServedQueueManager

HERE = Path(__file__).parent / "samba"
RUNNER = HERE / "run_raw_protocol.py"
PYTHON = "/usr/bin/python3"

with (HERE / "raw_protocol.csv").open(encoding="utf-8", newline="") as _file:
    EXPECTED = {row["test"]: row["expected"] for row in csv.DictReader(_file)}


def expected_to(*expected: str) -> list[str]:
    return [test for test, value in EXPECTED.items() if value in expected]


@pytest.fixture(scope="module")
def samba() -> None:
    """Skips the tests where Samba's suite is not installed."""
    probe = [PYTHON, "-c", "import samba.tests.dcerpc.raw_protocol"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("samba's Python modules are not installed (Debian package python3-samba)")


@pytest.fixture(scope="module")
def outcomes(
    samba: None, server: ServedQueueManager, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """What became of each test: "passed", or why it failed."""
    configuration = tmp_path_factory.mktemp("smb") / "smb.conf"
    configuration.touch()
    environment = {
        "PATH": os.environ["PATH"],
        "SERVER": "127.0.0.1",
        "TARGET_HOSTNAME": "127.0.0.1",
        "DOMAIN": "RPCQM",
        "REALM": "RPCQM",
        "USERNAME": "alice",
        "PASSWORD": PASSWORD,
        "SMB_CONF_PATH": str(configuration),
        "IGNORE_RANDOM_PAD": "1",
    }
    tests = expected_to("pass", "open")
    done = server.namespace.run([PYTHON, RUNNER, *tests], timeout=300, env=environment)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        result["test"]: result["reason"] if result["outcome"] == "failed" else result["outcome"]
        for result in results
    }


@pytest.mark.parametrize("test", expected_to("pass"))
def test_samba_accepts(outcomes: dict[str, str], test: str) -> None:
    assert outcomes[test] == "passed", outcomes[test]


def test_what_is_open_does_not_pass_yet(outcomes: dict[str, str]) -> None:
    passing = [test for test in expected_to("open") if outcomes[test] == "passed"]
    assert passing == [], "they pass now: say so in raw_protocol.csv"


@pytest.mark.usefixtures("samba")
def test_the_list_is_that_of_the_suite() -> None:
    done = subprocess.run([PYTHON, RUNNER, "--list"], capture_output=True, text=True, check=True)
    assert sorted(EXPECTED) == sorted(done.stdout.split())
