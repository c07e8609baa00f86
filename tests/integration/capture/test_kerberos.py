"""Recorded Kerberos traffic of a real KDC's realm is unsealed with the service's keys."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rpcqm.capture.analysis import Exchange
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.unsealing.accounts import UnsealingAccount, parse_account, read_keytabs
from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import PKT, PKT_INTEGRITY, PKT_PRIVACY, Credentials
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.rpc.security.spnego import SpnegoCredentials
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.capture.analysed import calls_of
from tests.support.network.tap import tapped
from tests.support.rpc.impacket_probe import impacket_with_ticket
from tests.support.rpc.kdc import REALM, SERVICE, SERVICE_PASSWORD, Kdc, require_kdc
from tests.support.rpc.probe import ProbeHandlers, ProbeInterface, ProbeRequest
from tests.support.rpc.rpc_server import serving

kerberos = pytest.importorskip("rpcqm.rpc.security.kerberos", exc_type=ImportError)

PROBE: Any = ProbeInterface()
RESULT = bytes(4)
PADDING = bytes(range(9)) + b"\xbb\xff"
SENT = [os.urandom(size) for size in (0, 1, 15, 16, 17, 30_000)]


@pytest.fixture(scope="module", params=["", "aes128-cts-hmac-sha1-96", "arcfour-hmac"])
def kdc(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Kdc]:
    """A KDC with keys of one kind; without a name AES with 256 bits."""
    require_kdc()
    directory = tmp_path_factory.mktemp("kdc")
    with Kdc(directory, key_type=request.param) as made, pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        yield made


def alice(kdc: Kdc) -> Credentials:
    found: Credentials = kerberos.KerberosCredentials(SERVICE, ccache=kdc.log_on("alice"))
    return found


def in_spnego(kdc: Kdc) -> Credentials:
    return SpnegoCredentials((alice(kdc), NtlmCredentials("alice", PASSWORD)))


async def _call(port: int, credentials: Credentials, level: AuthenticationLevel) -> None:
    async with (
        asyncio.timeout(20),
        await RpcClient.connect_tcp(
            "127.0.0.1", port, credentials=credentials, level=level
        ) as client,
    ):
        binding = await client.bind(PROBE)
        for octets in SENT:
            assert (await binding.call("echo", ProbeRequest(octets=octets))).octets == octets


@pytest.fixture
def recorded(kdc: Kdc, tmp_path: Path) -> Any:
    """Records calls with credentials and at a level; the place of the capture."""

    def record(credentials: Credentials, level: AuthenticationLevel) -> Path:
        path, accounts = tmp_path / "recorded.pcapng", TestAccounts(tmp_path)
        served = (PROBE, ProbeHandlers())
        with (
            serving(served, accounts=accounts, keytab=kdc.keytab, principal=SERVICE) as running,
            tapped(running.port, path) as port,
        ):
            asyncio.run(_call(port, credentials, level))
        return path

    return record


def _read(path: Path, accounts: Sequence[UnsealingAccount]) -> tuple[list[CapturedCall], Problems]:
    found, problems = calls_of(path, accounts)
    return [_as_call(each) for each in found], problems


def _as_call(exchange: Exchange) -> CapturedCall:
    assert isinstance(exchange, CapturedCall)
    return exchange


def assert_unsealed(path: Path, accounts: Sequence[UnsealingAccount], level: int) -> None:
    calls, problems = _read(path, accounts)
    assert problems.counts == {}
    assert [call.sealed for call in calls] == [False] * len(SENT)
    for call, octets in zip(calls, SENT, strict=True):
        assert (call.request, call.response) == (octets, octets + RESULT)
        assert call.request_size == len(octets)
    conversation = calls[0].conversation
    assert (conversation.account, conversation.level) == (f"{REALM}\\alice", level)


@pytest.mark.parametrize("credentials", [alice, in_spnego], ids=["Kerberos", "SPNEGO"])
@pytest.mark.parametrize("level", [PKT, PKT_INTEGRITY, PKT_PRIVACY], ids=lambda level: level.name)
def test_a_keytab_unseals(
    kdc: Kdc, recorded: Any, credentials: Any, level: AuthenticationLevel
) -> None:
    path = recorded(credentials(kdc), level)
    assert_unsealed(path, read_keytabs([kdc.keytab]), level)


def test_a_password_of_the_service_unseals(kdc: Kdc, recorded: Any) -> None:
    kdc.set_service_password()
    path = recorded(alice(kdc), PKT_PRIVACY)
    assert_unsealed(path, [parse_account(f"svc-msmq:{SERVICE_PASSWORD}")], PKT_PRIVACY)


def test_another_key_does_not_unseal(kdc: Kdc, recorded: Any) -> None:
    path = recorded(alice(kdc), PKT_PRIVACY)
    for accounts in ([], [parse_account("alice:" + PASSWORD)]):
        calls, problems = _read(path, accounts)
        assert problems.counts == {"sealed": 1}
        assert [call.sealed for call in calls] == [True] * len(SENT)
        assert [call.request_size for call in calls] == [len(octets) for octets in SENT]


@pytest.mark.parametrize("level", [PKT_INTEGRITY, PKT_PRIVACY], ids=lambda level: level.name)
def test_what_was_changed_on_its_way_is_told(
    kdc: Kdc, recorded: Any, level: AuthenticationLevel
) -> None:
    """Only that message: each carries its own number."""
    path = recorded(alice(kdc), level)
    calls, _ = _read(path, read_keytabs([kdc.keytab]))
    octets = bytearray(path.read_bytes())
    # The frame of the fourth request: behind its IP, TCP, PDU and request headers is the body.
    octets[calls[3].offset + 28 + 40 + 24 + 2] ^= 1
    path.write_bytes(octets)
    changed, problems = _read(path, read_keytabs([kdc.keytab]))
    assert problems.counts == ({"signature": 1} if level is PKT_INTEGRITY else {"sealed": 2})
    assert [call.sealed for call in changed].count(True) == (level is PKT_PRIVACY)
    assert changed[4].request == SENT[4]


@pytest.mark.parametrize("level", [PKT_INTEGRITY, PKT_PRIVACY], ids=lambda level: level.name)
def test_impackets_calls_are_unsealed(
    kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: AuthenticationLevel
) -> None:
    """It wraps Kerberos in SPNEGO, and does not sign headers."""
    monkeypatch.setenv("KRB5CCNAME", kdc.service_ticket("alice").removeprefix("FILE:"))
    path, accounts = tmp_path / "impacket.pcapng", TestAccounts(tmp_path)
    served = (PROBE, ProbeHandlers())
    with (
        serving(served, accounts=accounts, keytab=kdc.keytab, principal=SERVICE) as running,
        tapped(running.port, path) as port,
        impacket_with_ticket(port, level) as rpc,
    ):
        for octets in SENT[1:]:
            rpc.call(1, octets)
            rpc.recv()
    calls, problems = _read(path, read_keytabs([kdc.keytab]))
    assert problems.counts == {}
    for call, octets in zip(calls, SENT[1:], strict=True):
        assert call.request is not None
        assert call.response is not None
        # With RC4 it counts its padding as stub data.
        assert call.request.rstrip(PADDING) == octets.rstrip(PADDING)
        assert call.response[: len(octets)] == octets
