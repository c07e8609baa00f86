"""Samba's rpcclient: every mechanism at every level, against the endpoint mapper."""

import subprocess
from collections.abc import Callable

import pytest

from rpcqm.codec.interface import load
from tests.support.accounts import PASSWORD
from tests.support.rpc.kdc import HOST, REALM, Kdc
from tests.support.served import ServedQueueManager

PROGRAMS = ("rpcclient",)
KERBEROS = True
LEVELS = ("connect", "packet", "sign", "seal")

Look = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def look(server: ServedQueueManager, kdc: Kdc) -> Look:
    """`epmlookup` under a binding's options, as somebody: with a user's ticket, or by options."""

    def look(options: str, *who: str, ticket: str = "") -> subprocess.CompletedProcess[str]:
        binding = f"ncacn_ip_tcp:127.0.0.1[{options},target_hostname={HOST}]"
        command = ["rpcclient", "--configfile=/dev/null", *who, "--command=epmlookup", binding]
        environment = {"PATH": "/usr/bin:/bin", **kdc.environment}
        if ticket:
            command[2:2] = ["--use-kerberos=required", f"--user={ticket}@{REALM}"]
            environment["KRB5CCNAME"] = kdc.log_on(ticket)
        return server.namespace.run(command, env=environment)

    return look


def assert_seen(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(load("remoteread").uuid) in done.stdout


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mechanism", ["krb5", "spnego"])
def test_kerberos(look: Look, mechanism: str, level: str) -> None:
    assert_seen(look(f"{mechanism},{level}", ticket="alice"))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mechanism", ["ntlm", "spnego"])
@pytest.mark.parametrize("user", [f"--user=alice%{PASSWORD}", "--user=%"], ids=["alice", "nobody"])
def test_ntlm(look: Look, mechanism: str, level: str, user: str) -> None:
    """Who has no name is anonymous, which is enough to look up endpoints."""
    assert_seen(look(f"{mechanism},{level}", "--use-kerberos=off", user))


@pytest.mark.parametrize("options", ["spnego,sign,bigendian", "spnego,seal,ndr64", "spnego,sign"])
def test_spnego_in_other_representations(look: Look, options: str) -> None:
    assert_seen(look(options, "--use-kerberos=off", f"--user=alice%{PASSWORD}"))


@pytest.mark.parametrize("mechanism", ["ntlm", "spnego"])
def test_a_wrong_password(look: Look, mechanism: str) -> None:
    done = look(f"{mechanism},sign", "--use-kerberos=off", "--user=alice%wrong")
    assert "NT_STATUS_ACCESS_DENIED" in done.stdout + done.stderr


def test_somebody_without_an_account(look: Look) -> None:
    done = look("krb5,sign", ticket="mallory")
    assert "NT_STATUS_ACCESS_DENIED" in done.stdout + done.stderr
