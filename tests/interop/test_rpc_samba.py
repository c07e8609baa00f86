"""Samba's client in C, driven through its Python bindings."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.rpc.probe import PROBE, ProbeHandlers, ProbeInterface
from tests.support.rpc.rpc_server import RunningServer, serving

SYSTEM_PYTHON = "/usr/bin/python3"

MANAGEMENT_CALLS = """
import sys
from samba import credentials, param
from samba.dcerpc import mgmt

port, options, user, password = sys.argv[1:]
settings = param.LoadParm()
account = credentials.Credentials()
account.guess(settings)
account.set_kerberos_state(credentials.DONT_USE_KERBEROS)
if user:
    account.set_username(user)
    account.set_password(password)
    account.set_domain("WORKGROUP")
else:
    account.set_anonymous()
server = mgmt.mgmt(f"ncacn_ip_tcp:127.0.0.1[{port}{options}]", settings, account)
for _ in range(3):
    print(server.is_server_listening())
vector = server.inq_if_ids()
print(vector.count, sorted(str(each.id.uuid) for each in vector.if_id))
print(server.inq_princ_name(10, 100))
"""


@pytest.fixture(scope="module")
def samba() -> None:
    probe = [SYSTEM_PYTHON, "-c", "import samba.dcerpc.mgmt"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("samba's Python modules are not installed (Debian package python3-samba)")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningServer]:
    with serving((ProbeInterface(), ProbeHandlers()), accounts=TestAccounts(tmp_path)) as server:
        yield server


OPTIONS = [
    pytest.param("", "", id="anonymous"),
    pytest.param(",ndr64", "", id="anonymous, NDR64"),
    pytest.param(",bigendian", "", id="anonymous, big-endian"),
    *[
        pytest.param(f",{level},ntlm{extra}", "alice", id=f"{level}{extra}")
        for level in ("connect", "packet", "sign", "seal")
        for extra in ("", ",ndr64", ",bigendian")
    ],
]


def management_calls(
    port: int, options: str, user: str, password: str
) -> subprocess.CompletedProcess[str]:
    argv = [SYSTEM_PYTHON, "-c", MANAGEMENT_CALLS, str(port), options, user, password]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.usefixtures("samba")
@pytest.mark.parametrize(("options", "user"), OPTIONS)
def test_calls_at_every_level_in_every_representation(
    running: RunningServer, options: str, user: str
) -> None:
    """It signs headers, adds a verification trailer and negotiates bind-time features."""
    done = management_calls(running.port, options, user, PASSWORD if user else "")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        *["(0, 1)"] * 3,
        f"1 ['{PROBE.uuid}']",
        "rpcqm/test",
    ]


@pytest.mark.usefixtures("samba")
@pytest.mark.parametrize("level", ["connect", "packet", "sign", "seal"])
def test_a_wrong_password_gets_nowhere(running: RunningServer, level: str) -> None:
    done = management_calls(running.port, f",{level},ntlm", "alice", "wrong")
    assert done.returncode != 0
    assert "denied" in done.stderr.lower()
