"""Kerberos against a real KDC: our client and impacket's, and a forger."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rpcqm.base.errors import DecodeError, RpcFault
from rpcqm.rpc import pdu
from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.constants import WHOLE, AuthenticationLevel
from rpcqm.rpc.events import CancelIgnored
from rpcqm.rpc.security.context import (
    CONNECT,
    PKT,
    PKT_INTEGRITY,
    PKT_PRIVACY,
    AuthenticationError,
    Credentials,
)
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.rpc.security.providers import security_providers
from rpcqm.rpc.security.spnego import SpnegoCredentials
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.rpc import secured
from tests.support.rpc.impacket_probe import impacket_with_ticket
from tests.support.rpc.kdc import HOST, REALM, SERVICE, Kdc
from tests.support.rpc.probe import ProbeHandlers, ProbeInterface, ProbeRequest, Rig
from tests.support.rpc.rpc_server import RunningServer, serving

kerberos = pytest.importorskip("rpcqm.rpc.security.kerberos", exc_type=ImportError)

PROBE: Any = ProbeInterface()
LEVELS = [AuthenticationLevel(number) for number in (2, 4, 5, 6)]


@pytest.fixture
def accounts(tmp_path: Path) -> TestAccounts:
    return TestAccounts(tmp_path)


@pytest.fixture
def handlers() -> ProbeHandlers:
    return ProbeHandlers()


@pytest.fixture
def running(kdc: Kdc, accounts: TestAccounts, handlers: ProbeHandlers) -> Iterator[RunningServer]:
    with serving(
        (PROBE, handlers), accounts=accounts, keytab=kdc.keytab, principal=SERVICE
    ) as server:
        yield server


def alice(kdc: Kdc) -> Any:
    return kerberos.KerberosCredentials(SERVICE, ccache=kdc.log_on("alice"))


def with_spnego(kdc: Kdc) -> Credentials:
    return SpnegoCredentials((alice(kdc), NtlmCredentials("alice", PASSWORD)))


def go(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def limited() -> Any:
        async with asyncio.timeout(20):
            return await coroutine

    return asyncio.run(limited())


# Calls.


@pytest.mark.parametrize("credentials", [alice, with_spnego], ids=["Kerberos", "SPNEGO"])
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_calls_at_every_level(
    running: RunningServer,
    handlers: ProbeHandlers,
    kdc: Kdc,
    credentials: Callable[[Kdc], Credentials],
    level: AuthenticationLevel,
) -> None:
    async def main() -> None:
        octets = os.urandom(30_000)
        async with await RpcClient.connect_tcp(
            "127.0.0.1", running.port, credentials=credentials(kdc), level=level
        ) as client:
            binding = await client.bind(PROBE)
            for _ in range(3):
                assert (await binding.call("echo", ProbeRequest(octets=octets))).octets == octets

    go(main())
    assert {(call.identity.name, call.authentication_level) for call in handlers.calls} == {
        ("alice", level)
    }


def test_spnego_prefers_kerberos(running: RunningServer, kdc: Kdc) -> None:
    """NTLM would be refused here: its password is wrong."""

    async def main() -> None:
        mechanisms = alice(kdc), NtlmCredentials("alice", "wrong")
        async with await RpcClient.connect_tcp(
            "127.0.0.1", running.port, credentials=SpnegoCredentials(mechanisms)
        ) as client:
            binding = await client.bind(PROBE)
            assert (await binding.call("echo", ProbeRequest(octets=b"x"))).octets == b"x"

    go(main())


@pytest.mark.parametrize(
    ("service", "cache"),
    [(SERVICE, "FILE:/nowhere/at/all"), (f"host/nobody@{REALM}", "")],
    ids=["no ticket", "unknown service"],
)
def test_spnego_goes_on_without_kerberos(
    running: RunningServer, handlers: ProbeHandlers, kdc: Kdc, service: str, cache: str
) -> None:
    async def main() -> None:
        tickets = kerberos.KerberosCredentials(service, ccache=cache or kdc.log_on("alice"))
        mechanisms = tickets, NtlmCredentials("alice", PASSWORD)
        async with await RpcClient.connect_tcp(
            "127.0.0.1", running.port, credentials=SpnegoCredentials(mechanisms)
        ) as client:
            binding = await client.bind(PROBE)
            assert (await binding.call("echo", ProbeRequest(octets=b"x"))).octets == b"x"

    go(main())
    assert handlers.calls[-1].identity.name == "alice"


@pytest.mark.parametrize("name", ["mallory", "alice/admin"])
def test_who_has_no_account_is_refused(running: RunningServer, kdc: Kdc, name: str) -> None:
    """mallory has none; alice/admin is not alice."""

    async def main() -> None:
        credentials = kerberos.KerberosCredentials(SERVICE, ccache=kdc.log_on(name))
        async with await RpcClient.connect_tcp(
            "127.0.0.1", running.port, credentials=credentials
        ) as client:
            binding = await client.bind(PROBE)
            with pytest.raises(RpcFault, match="RPC_S_ACCESS_DENIED"):
                await binding.call("null", ProbeRequest())

    go(main())


def test_a_password_serves_instead_of_a_cache(running: RunningServer) -> None:
    async def main() -> None:
        credentials = kerberos.KerberosCredentials(SERVICE, f"alice@{REALM}", PASSWORD)
        async with await RpcClient.connect_tcp(
            "127.0.0.1", running.port, credentials=credentials
        ) as client:
            await (await client.bind(PROBE)).call("null", ProbeRequest())

    go(main())


def test_a_client_without_a_ticket_is_told(kdc: Kdc) -> None:
    credentials = kerberos.KerberosCredentials(SERVICE)
    with pytest.raises(AuthenticationError, match="Kerberos"):
        credentials.authentication(PKT_PRIVACY).begin()


def test_the_service_is_that_of_the_host(kdc: Kdc, accounts: TestAccounts) -> None:
    credentials = kerberos.KerberosCredentials(ccache=kdc.log_on("alice"))
    both = SpnegoCredentials((credentials,))
    for each, kind in ((credentials, 16), (both, 9)):
        client = each.authentication(PKT_PRIVACY, HOST).begin()
        server = security_providers(accounts, keytab=kdc.keytab)[kind].accept(PKT_PRIVACY)
        assert server.step(client.step(b""))


# Handshakes and protection, side by side.


def log_on(
    kdc: Kdc, accounts: TestAccounts, level: AuthenticationLevel = PKT_PRIVACY
) -> tuple[Any, Any]:
    client = kerberos.KerberosInitiator(alice(kdc), SERVICE)
    server = kerberos.KerberosProvider(accounts, kdc.keytab).accept(level)
    answer = server.step(client.step(b""))
    assert not server.complete  # the DCE style has a third leg
    assert server.step(client.step(answer)) == b""
    return client, server


def test_the_account_is_the_principals(kdc: Kdc, accounts: TestAccounts) -> None:
    client, server = log_on(kdc, accounts)
    assert (client.complete, server.complete) == (True, True)
    assert server.peer().sid == "S-1-5-21-1-2-3-1000"


def test_another_realm_has_no_accounts(kdc: Kdc, accounts: TestAccounts) -> None:
    _, server = log_on(kdc, accounts)
    server._provider.realm = "ELSEWHERE"
    with pytest.raises(AuthenticationError, match="may not log on"):
        server.peer()


@pytest.mark.parametrize(
    ("whole", "changed", "noticed"),
    [
        pytest.param(False, None, False, id="nothing"),
        pytest.param(True, None, False, id="nothing, headers signed"),
        pytest.param(False, 0, False, id="head, which is not signed"),
        pytest.param(True, 0, True, id="head"),
        pytest.param(False, 1, True, id="body"),
        pytest.param(True, 1, True, id="body, headers signed"),
        pytest.param(False, 2, False, id="tail, which is not signed"),
        pytest.param(True, 2, True, id="tail"),
    ],
)
@pytest.mark.parametrize("level", [PKT, PKT_INTEGRITY, PKT_PRIVACY], ids=lambda level: level.name)
def test_what_is_changed_is_noticed(
    kdc: Kdc,
    accounts: TestAccounts,
    level: AuthenticationLevel,
    whole: bool,
    changed: int | None,
    noticed: bool,
) -> None:
    client, server = log_on(kdc, accounts, level)
    ours, theirs = client.protection(level), server.protection(level)
    if whole:
        ours.sign_headers()
        theirs.sign_headers()
    segments = [b"head" * 6, b"body" * 8, b"trailer!"]
    if level is PKT_PRIVACY:
        segments[1], token = ours.seal(*segments)
    else:
        token = ours.sign(*segments)
    assert len(token) == ours.signature_length == theirs.signature_length
    if changed is not None:
        segments[changed] = segments[changed][:-1] + b"?"
    check = theirs.unseal if level is PKT_PRIVACY else theirs.verify
    with pytest.raises(DecodeError) if noticed else nullcontext():
        check(*segments, token)


@pytest.mark.parametrize(
    ("right", "wrong"), [([0], 0), ([], 1), ([0, 1], 0)], ids=["twice", "a gap", "an old one"]
)
def test_messages_come_once_and_in_order(
    kdc: Kdc, accounts: TestAccounts, right: list[int], wrong: int
) -> None:
    client, server = log_on(kdc, accounts)
    ours, theirs = client.protection(PKT_PRIVACY), server.protection(PKT_PRIVACY)
    sealed = [ours.seal(b"", b"body" * 4, b"") for _ in range(2)]
    for index in right:
        theirs.unseal(b"", sealed[index][0], b"", sealed[index][1])
    with pytest.raises(DecodeError):
        theirs.unseal(b"", sealed[wrong][0], b"", sealed[wrong][1])


@pytest.mark.parametrize("missing", ["replay_detection", "out_of_sequence_detection"])
def test_a_context_that_takes_messages_twice_protects_nothing(
    kdc: Kdc, accounts: TestAccounts, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """What a context notices is the client's choice; every level above CONNECT needs both."""
    asked = kerberos._ASKED & ~getattr(kerberos._Flag, missing)
    monkeypatch.setattr(kerberos, "_ASKED", asked)
    client, server = log_on(kdc, accounts)
    for side in (client, server):
        side.protection(CONNECT)
        for level in (PKT, PKT_INTEGRITY, PKT_PRIVACY):
            with pytest.raises(AuthenticationError, match="replays would not be noticed"):
                side.protection(level)


@pytest.mark.parametrize("kind", [pdu.CoCancel, pdu.Orphaned], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("level", [PKT_INTEGRITY, PKT_PRIVACY], ids=lambda level: level.name)
def test_a_cancel_ends_a_call_when_it_is_signed_as_the_call_is(
    kdc: Kdc, accounts: TestAccounts, level: AuthenticationLevel, kind: Any
) -> None:
    providers = {16: kerberos.KerberosProvider(accounts, kdc.keytab)}
    wire = Rig(providers=providers).connect()
    security = secured.log_on(wire, level, credentials=alice(kdc))
    assert wire.send(secured.protected(security, 2, b"waits", call_id=7)) == []
    assert wire.send(kind(call_id=7).pack()) == []
    assert isinstance(wire.events[-1], CancelIgnored)
    assert not wire.calls[0].cancelled
    assert not wire.calls[0].abandoned
    assert wire.send(security.protect(kind.ptype, WHOLE, 7, b"", b"")) == []
    assert wire.calls[0].cancelled or wire.calls[0].abandoned


def test_a_signed_message_does_not_pass_for_a_sealed_one(kdc: Kdc, accounts: TestAccounts) -> None:
    client, server = log_on(kdc, accounts)
    token = client.protection(PKT_INTEGRITY).sign(b"", b"body" * 4, b"")
    with pytest.raises(DecodeError):
        server.protection(PKT_PRIVACY).unseal(b"", b"body" * 4, b"", token)


def test_an_application_request_is_good_once(kdc: Kdc, accounts: TestAccounts) -> None:
    """A recorded first leg leads nowhere without the session key that the third leg proves."""
    client = kerberos.KerberosInitiator(alice(kdc), SERVICE)
    request = client.step(b"")
    provider = kerberos.KerberosProvider(accounts, kdc.keytab)
    server = provider.accept(PKT_PRIVACY)
    third = client.step(server.step(request))
    server.step(third)
    with pytest.raises(AuthenticationError):
        _all_steps(provider.accept(PKT_PRIVACY), request, third)


def _all_steps(server: Any, *tokens: bytes) -> None:
    for token in tokens:
        server.step(token)


@pytest.mark.parametrize("token", [b"", b"x", b"\x6e\x82", b"\x60" + bytes(40)])
def test_hostile_tokens_are_authentication_errors(
    kdc: Kdc, accounts: TestAccounts, token: bytes
) -> None:
    with pytest.raises(AuthenticationError):
        kerberos.KerberosProvider(accounts, kdc.keytab).accept(PKT).step(token)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    position=st.integers(0, 700), noise=st.binary(min_size=1, max_size=8), cut=st.integers(0, 900)
)
def test_changed_requests_are_authentication_errors(
    kdc: Kdc, accounts: TestAccounts, position: int, noise: bytes, cut: int
) -> None:
    token = kerberos.KerberosInitiator(alice(kdc), SERVICE).step(b"")
    changed = (token[:position] + noise + token[position + len(noise) :])[:cut]
    server = kerberos.KerberosProvider(accounts, kdc.keytab).accept(PKT)
    with suppress(AuthenticationError):
        server.step(changed)
    assert not server.complete  # no third leg


def test_a_keytab_that_cannot_be_used(kdc: Kdc, accounts: TestAccounts, tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match="nonexistent or empty"):
        security_providers(accounts, keytab=tmp_path / "nothing")
    with pytest.raises(AuthenticationError, match="No key table entry"):
        security_providers(accounts, keytab=kdc.keytab, principal=f"host/other@{REALM}")


def test_without_ntlm_spnego_leads_to_kerberos_only(kdc: Kdc, accounts: TestAccounts) -> None:
    providers = security_providers(accounts, ntlm=False, keytab=kdc.keytab)
    assert sorted(providers) == [9, 16]
    client = NtlmCredentials("alice", PASSWORD)
    token = SpnegoCredentials((client,)).authentication(PKT).begin().step(b"")
    with pytest.raises(AuthenticationError, match="none of"):
        providers[9].accept(PKT).step(token)


def test_the_name_is_the_first_of_the_keytab(kdc: Kdc, accounts: TestAccounts) -> None:
    providers = security_providers(accounts, keytab=kdc.keytab)
    assert sorted(providers) == [9, 10, 16]
    assert {each.principal_name for each in providers.values()} == {SERVICE}


@pytest.mark.parametrize(
    ("key_type", "signature", "token"),
    [
        ("aes128-cts-hmac-sha1-96", 28, 76),
        ("aes256-cts-hmac-sha384-192", 40, 88),
        ("arcfour-hmac", 37, 45),
    ],
)
def test_keys_of_every_kind(
    kdc: Kdc,
    accounts: TestAccounts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    key_type: str,
    signature: int,
    token: int,
) -> None:
    """Their signatures and tokens differ in length, which PDUs announce beforehand."""
    with Kdc(tmp_path / "kdc", key_type=key_type) as other:
        for name, value in other.environment.items():
            monkeypatch.setenv(name, value)
        client, server = log_on(other, accounts)
        for level, length in ((PKT_INTEGRITY, signature), (PKT_PRIVACY, token)):
            ours, theirs = client.protection(level), server.protection(level)
            assert ours.signature_length == length
            for body in (b"", b"body" * 4, b"body" * 400):
                if level is PKT_PRIVACY:
                    sealed, made = ours.seal(b"head", body, b"tail")
                    assert theirs.unseal(b"head", sealed, b"tail", made) == body
                else:
                    made = ours.sign(b"head", body, b"tail")
                    theirs.verify(b"head", body, b"tail", made)
                assert len(made) == length


# Other people's clients.


@pytest.mark.parametrize("level", [2, 4, 5, 6])
def test_impacket_calls_with_a_ticket(
    running: RunningServer,
    handlers: ProbeHandlers,
    kdc: Kdc,
    monkeypatch: pytest.MonkeyPatch,
    level: int,
) -> None:
    """It wraps Kerberos in SPNEGO, and does not sign headers."""
    monkeypatch.setenv("KRB5CCNAME", kdc.service_ticket("alice").removeprefix("FILE:"))
    with impacket_with_ticket(running.port, level) as rpc:
        for octets in (b"first", b"second" * 100):
            rpc.call(1, octets)
            assert rpc.recv()[: len(octets)] == octets
    assert {call.identity.name for call in handlers.calls} == {"alice"}
