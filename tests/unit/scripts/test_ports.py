"""Ports for tests come from one place, which gives none twice and holds each."""

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import ports
from tests.support.ports import ephemeral, outside, ports_of, reserved_port, reserved_ports

ROOT = Path(__file__).parents[3]
ASKING = """
import sys
from tests.support.ports import reserved_ports
print(*reserved_ports(100), flush=True)
sys.stdin.read()
"""


def test_ten_processes_are_given_a_thousand_different_ports() -> None:
    with ExitStack() as stack:
        asking = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", ASKING],
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(10)
        ]
        given = [each.stdout.readline().split() for each in asking if each.stdout]
        for each in asking:
            each.communicate()
    assert [len(each) for each in given] == [100] * 10
    assert len({port for each in given for port in each}) == 1000


def test_no_outgoing_connection_has_one() -> None:
    first, last = ephemeral()
    assert all(not first <= port <= last for port in reserved_ports(20))


@pytest.mark.parametrize(
    ("first", "last", "given"),
    [
        (32768, 60999, range(20000, 32768)),
        (10000, 50000, range(50001, 65536)),
        (1024, 65535, range(20000, 65536)),
    ],
)
def test_they_are_beside_those_of_the_system_where_there_is_room(
    first: int, last: int, given: range
) -> None:
    assert outside(first, last) == given


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1"])
def test_a_server_takes_one_and_again_after_a_restart(host: str) -> None:
    port = reserved_port()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for _ in range(2):
        with socket.create_server((host, port), family=family):
            socket.create_connection((host, port)).close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, port))


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])
def test_one_that_somebody_has_at_any_address_is_not_given(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setattr(ports, "_held", [])
    taken = reserved_port()
    ports._held.pop().close()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, taken), family=family):
        monkeypatch.setattr(ports, "_next", outside(*ephemeral()).index(taken) - 1)
        assert reserved_port() > taken


def test_each_name_has_its_own() -> None:
    named = ports_of(("alice", "bob"))
    assert list(named) == ["alice", "bob"]
    assert len(set(named.values())) == 2
