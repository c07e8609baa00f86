"""Other people's tools ask our endpoint mapper on port 135, as their users would."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rpcqm.codec.interface import load
from tests.support.accounts import PASSWORD
from tests.support.served import ServedQueueManager

SCRIPTS = Path(sys.executable).parent

SERVED = ("remoteread", "qmcomm", "qmcomm2", "qmmgmt")
MORE_LATER = "0x16c9a0d6"

OPEN = ("R_GetServerPort", "R_QMGetRTQMServerPort")
"""What everybody may ask."""

LEVELS = ["", "connect", "packet", "sign", "seal"]
"""Of rpcclient's bindings: none, RPC_C_AUTHN_LEVEL_CONNECT, PKT, PKT_INTEGRITY, PKT_PRIVACY."""


def impacket(server: ServedQueueManager, script: str, *arguments: str) -> str:
    """The output of one of impacket's scripts."""
    done = server.namespace.run([sys.executable, SCRIPTS / script, *arguments])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def towers(output: str) -> dict[str, set[str]]:
    """The TCP bindings of each interface in the output of rpcdump.py."""
    found: dict[str, set[str]] = {}
    for block in output.split("Protocol: ")[1:]:
        uuid = re.search(r"UUID *: ([0-9A-F-]{36})", block)
        assert uuid is not None
        bindings = re.findall(r"ncacn_ip_tcp:127\.0\.0\.1\[(\d+)\]", block)
        found.setdefault(uuid[1].lower(), set()).update(bindings)
    return found


def test_rpcdump_lists_every_interface_with_its_ports(server: ServedQueueManager) -> None:
    listed = towers(impacket(server, "rpcdump.py", "127.0.0.1"))
    for name in SERVED:
        assert str(server.rpc_port) in listed[str(load(name).uuid)], name


def opnums(output: str) -> dict[str, dict[int, str]]:
    """What rpcmap.py found out about each opnum of each interface."""
    found: dict[str, dict[int, str]] = {}
    for line in output.splitlines():
        if uuid := re.match(r"UUID: ([0-9A-F-]{36})", line):
            outcomes = found.setdefault(uuid[1].lower(), {})
        elif told := re.match(r"Opnums? (\d+)(?:-(\d+))?: (\w+)", line):
            first, last = int(told[1]), int(told[2] or told[1])
            outcomes.update(dict.fromkeys(range(first, last + 1), told[3]))
    return found


def expected_outcome(name: str, opnum: int, logged_on: bool) -> str:
    """What an empty stub gets: only a method without parameters can succeed.

    Who has not logged on may ask for ports and versions, and the management interface.
    """
    operations = load(name).operations
    operation = operations[opnum] if opnum < len(operations) else None
    if operation is None:
        return "nca_s_op_rng_error"
    if not (logged_on or name == "mgmt" or operation.name in OPEN):
        return "rpc_s_access_denied"
    return "rpc_x_bad_stub_data" if operation.request_class.__slots__ else "success"


@pytest.mark.parametrize(
    ("credentials", "logged_on"),
    [(["-auth-level", "1"], False), (["-auth-rpc", f"alice:{PASSWORD}"], True)],
    ids=["none", "ntlm"],
)
def test_rpcmap_gets_an_answer_from_every_opnum(
    server: ServedQueueManager, credentials: list[str], logged_on: bool
) -> None:
    binding = f"ncacn_ip_tcp:127.0.0.1[{server.rpc_port}]"
    call = (binding, *credentials, "-brute-opnums", "-opnum-max", "40")
    found = opnums(impacket(server, "rpcmap.py", *call))
    for name in (*SERVED, "mgmt"):
        expected = {opnum: expected_outcome(name, opnum, logged_on) for opnum in range(41)}
        assert found[str(load(name).uuid)] == expected, name


@pytest.fixture(scope="module")
def rpcclient(
    server: ServedQueueManager, require: Callable[..., None]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs one command of Samba's rpcclient at an authentication level."""
    require("rpcclient")

    def run(command: str, level: str = "") -> subprocess.CompletedProcess[str]:
        options = f"ntlm,{level}" if level else ""
        user = f"alice%{PASSWORD}" if level else "%"
        call = ("--configfile=/dev/null", "--user", user, "--command", command)
        return server.namespace.run(["rpcclient", *call, f"ncacn_ip_tcp:127.0.0.1[{options}]"])

    return run


@pytest.mark.parametrize("level", LEVELS, ids=[level or "none" for level in LEVELS])
def test_epmlookup_ends_with_every_interface_seen(
    server: ServedQueueManager,
    rpcclient: Callable[..., subprocess.CompletedProcess[str]],
    level: str,
) -> None:
    done = rpcclient("epmlookup", level)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in SERVED:
        assert str(load(name).uuid) in done.stdout, name
    assert f"[{server.rpc_port}" in done.stdout


def test_epmmap_is_told_that_nobody_serves_lsarpc(
    rpcclient: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = rpcclient("epmmap lsarpc ncacn_ip_tcp")
    assert MORE_LATER in (done.stdout + done.stderr).lower()
