"""Samba's raw DCE/RPC protocol suite against our endpoint mapper.

`samba/raw_protocol.csv` says of each of its tests what is expected: that it passes, or that it is
not applicable, and why. What uses SPNEGO runs twice: with NTLM inside, and with Kerberos.
"""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.accounts import PASSWORD
from tests.support.network.namespace import Namespace
from tests.support.rpc.kdc import HOST, REALM, Kdc
from tests.support.served import ServedQueueManager

HERE = Path(__file__).parent / "samba"
RUNNER = HERE / "run_raw_protocol.py"
PYTHON = "/usr/bin/python3"

with (HERE / "raw_protocol.csv").open(encoding="utf-8", newline="") as _file:
    ROWS = {row["test"]: row for row in csv.DictReader(_file)}

PASSING = [test for test, row in ROWS.items() if row["expected"] == "pass"]
STAND_IN = [test for test in PASSING if "stand-in" in ROWS[test]["reason"]]
# NTLM covers headers whether that was agreed on or not, and one test tells the difference.
KERBEROS_ONLY = [test for test in PASSING if "krb5" in test or test.endswith("auth_hdr_signing")]
NTLM = [test for test in PASSING if test not in {*KERBEROS_ONLY, *STAND_IN}]
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


def environment(directory: Path, host: str = "127.0.0.1", realm: str = "RPCQM") -> dict[str, str]:
    """What the suite wants to know; there are no tickets for an address."""
    configuration = directory / "smb.conf"
    configuration.touch()
    return {
        "PATH": os.environ["PATH"],
        "SERVER": "127.0.0.1",
        "TARGET_HOSTNAME": host,
        "DOMAIN": "RPCQM",
        "REALM": realm,
        "USERNAME": "alice",
        "PASSWORD": PASSWORD,
        "SMB_CONF_PATH": str(configuration),
        "IGNORE_RANDOM_PAD": "1",
        "MAX_NUM_AUTH": str(SECURITY_CONTEXTS),
        "WAIT": "0.001",
    }


def run(namespace: Namespace, tests: list[str], settings: dict[str, str]) -> dict[str, str]:
    """What became of each test: "passed", or why it failed."""
    done = namespace.run([PYTHON, RUNNER, *tests], timeout=300, env=settings)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        result["test"]: result["reason"] if result["outcome"] == "failed" else result["outcome"]
        for result in results
    }


@pytest.fixture(scope="module")
def with_ntlm(
    samba: None, server: ServedQueueManager, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    return run(server.namespace, NTLM, environment(tmp_path_factory.mktemp("smb")))


@pytest.fixture(scope="module")
def with_kerberos(
    samba: None, server: ServedQueueManager, kdc: Kdc, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    settings = environment(tmp_path_factory.mktemp("smb"), HOST, REALM) | kdc.environment
    return run(server.namespace, WITH_KERBEROS, settings)


@pytest.fixture(scope="module")
def with_stand_in(samba: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    with Namespace() as namespace:
        command = [sys.executable, HERE / "serve_netlogon.py"]
        serving = namespace.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert serving.stdout is not None
        assert serving.stdout.readline() == "ready\n"
        try:
            return run(namespace, STAND_IN, environment(tmp_path_factory.mktemp("smb")))
        finally:
            serving.communicate()


@pytest.mark.parametrize("test", NTLM)
def test_samba_accepts(with_ntlm: dict[str, str], test: str) -> None:
    assert with_ntlm[test] == "passed", with_ntlm[test]


@pytest.mark.parametrize("test", WITH_KERBEROS)
def test_samba_accepts_kerberos(with_kerberos: dict[str, str], test: str) -> None:
    """By itself, and as what SPNEGO prefers."""
    assert with_kerberos[test] == "passed", with_kerberos[test]


@pytest.mark.parametrize("test", STAND_IN)
def test_samba_accepts_what_stands_in_for_netlogon(
    with_stand_in: dict[str, str], test: str
) -> None:
    """Requests in thousands of fragments, of more octets than are taken, and out of order."""
    assert with_stand_in[test] == "passed", with_stand_in[test]


@pytest.mark.usefixtures("samba")
def test_the_list_is_that_of_the_suite() -> None:
    done = subprocess.run([PYTHON, RUNNER, "--list"], capture_output=True, text=True, check=True)
    assert sorted(ROWS) == sorted(done.stdout.split())
