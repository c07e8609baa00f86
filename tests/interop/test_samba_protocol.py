"""Samba's raw DCE/RPC protocol suite against our endpoint mapper.

`samba/raw_protocol.csv` says of each of its tests what is expected: that it passes, or that it is
not applicable, and why. What uses SPNEGO runs twice: with NTLM inside, and with Kerberos.
"""

import csv
import json
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.support.accounts import PASSWORD
from tests.support.kdc import HOST, REALM, Kdc
from tests.support.served import ServedQueueManager

HERE = Path(__file__).parent / "samba"
RUNNER = HERE / "run_raw_protocol.py"
PYTHON = "/usr/bin/python3"

with (HERE / "raw_protocol.csv").open(encoding="utf-8", newline="") as _file:
    EXPECTED = {row["test"]: row["expected"] for row in csv.DictReader(_file)}


PASSING = [test for test, value in EXPECTED.items() if value == "pass"]
# NTLM covers headers whether that was agreed on or not, and one test tells the difference.
KERBEROS_ONLY = [test for test in PASSING if "krb5" in test or test.endswith("auth_hdr_signing")]
NTLM = [test for test in PASSING if test not in KERBEROS_ONLY]
WITH_KERBEROS = [test for test in PASSING if test in KERBEROS_ONLY or "spnego" in test]

SECURITY_CONTEXTS = 64
"""The limit of one connection: the suite tries one more."""

KERBEROS = True
CONFIGURATION = f"[limits]\nsecurity_contexts = {SECURITY_CONTEXTS}\n"


@pytest.fixture(scope="module")
def samba() -> None:
    """Skips the tests where Samba's suite is not installed."""
    probe = [PYTHON, "-c", "import samba.tests.dcerpc.raw_protocol"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("samba's Python modules are not installed (Debian package python3-samba)")


Outcomes = Callable[[bool], dict[str, str]]


@pytest.fixture(scope="module")
def outcomes(
    samba: None, server: ServedQueueManager, kdc: Kdc, tmp_path_factory: pytest.TempPathFactory
) -> Outcomes:
    """What became of each test, with NTLM or with Kerberos: "passed", or why it failed."""
    configuration = tmp_path_factory.mktemp("smb") / "smb.conf"
    configuration.touch()
    environment = {
        "PATH": os.environ["PATH"],
        "SERVER": "127.0.0.1",
        "USERNAME": "alice",
        "PASSWORD": PASSWORD,
        "SMB_CONF_PATH": str(configuration),
        "IGNORE_RANDOM_PAD": "1",
        "MAX_NUM_AUTH": str(SECURITY_CONTEXTS),
    }

    @cache
    def outcomes(with_kerberos: bool) -> dict[str, str]:
        if with_kerberos:
            changes = {"TARGET_HOSTNAME": HOST, "DOMAIN": "RPCQM", "REALM": REALM}
            environment.update(changes | kdc.environment)
        else:  # there are no tickets for an address
            changes = {"TARGET_HOSTNAME": "127.0.0.1", "DOMAIN": "RPCQM", "REALM": "RPCQM"}
            environment.update(changes)
        tests = WITH_KERBEROS if with_kerberos else NTLM
        done = server.namespace.run([PYTHON, RUNNER, *tests], timeout=300, env=environment)
        results = [json.loads(line) for line in done.stdout.splitlines()]
        return {
            result["test"]: result["reason"] if result["outcome"] == "failed" else result["outcome"]
            for result in results
        }

    return outcomes


@pytest.mark.parametrize("test", NTLM)
def test_samba_accepts(outcomes: Outcomes, test: str) -> None:
    assert outcomes(False)[test] == "passed", outcomes(False)[test]


@pytest.mark.parametrize("test", WITH_KERBEROS)
def test_samba_accepts_kerberos(outcomes: Outcomes, test: str) -> None:
    """By itself, and as what SPNEGO prefers."""
    assert outcomes(True)[test] == "passed", outcomes(True)[test]


@pytest.mark.usefixtures("samba")
def test_the_list_is_that_of_the_suite() -> None:
    done = subprocess.run([PYTHON, RUNNER, "--list"], capture_output=True, text=True, check=True)
    assert sorted(EXPECTED) == sorted(done.stdout.split())
