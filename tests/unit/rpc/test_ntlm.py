"""NTLM handshakes: our own sides, impacket's client, and what must be refused."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from impacket import ntlm as impacket_ntlm

from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import (
    NONE,
    PKT,
    PKT_INTEGRITY,
    PKT_PRIVACY,
    AuthenticationError,
    SecurityContext,
)
from rpcqm.rpc.security.ntlm import NtlmAcceptor, NtlmCredentials, NtlmInitiator, NtlmProvider
from rpcqm.rpc.security.ntlm_protection import NtlmProtection, ProtectionDirection
from tests.support.accounts import NT_HASH, PASSWORD, TestAccounts

LEVELS = [AuthenticationLevel(number) for number in (2, 4, 5, 6)]


@pytest.fixture
def accounts(tmp_path: Path) -> TestAccounts:
    return TestAccounts(tmp_path)


def log_on(
    accounts: TestAccounts, credentials: NtlmCredentials, level: AuthenticationLevel = PKT_PRIVACY
) -> tuple[NtlmInitiator, NtlmAcceptor]:
    client, server = NtlmInitiator(credentials, level), NtlmProvider(accounts).accept(level)
    challenge = server.step(client.step(b""))
    assert server.step(client.step(challenge)) == b""
    return client, server


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_client_and_server_agree_at_every_level(
    accounts: TestAccounts, level: AuthenticationLevel
) -> None:
    client, server = log_on(accounts, NtlmCredentials("alice", PASSWORD), level)
    assert client.complete
    assert server.complete
    assert server.peer().name == "alice"
    if level >= PKT:
        sealed, signature = client.protection(level).seal(b"h", b"body", b"t")
        assert server.protection(level).unseal(b"h", sealed, b"t", signature) == b"body"


@pytest.mark.parametrize("domain", ["", "WORKGROUP", "OTHER"])
def test_an_account_without_a_domain_stands_for_any(accounts: TestAccounts, domain: str) -> None:
    _, server = log_on(accounts, NtlmCredentials("alice", PASSWORD, domain))
    assert server.peer().sid == "S-1-5-21-1-2-3-1000"


def test_an_account_of_a_domain_is_that_domains_only(accounts: TestAccounts) -> None:
    log_on(accounts, NtlmCredentials("carol", PASSWORD, "CORP"))
    with pytest.raises(AuthenticationError):
        log_on(accounts, NtlmCredentials("carol", PASSWORD, "OTHER"))


def test_the_nt_hash_serves_instead_of_the_password(accounts: TestAccounts) -> None:
    log_on(accounts, NtlmCredentials("alice", nt_hash=bytes.fromhex(NT_HASH)))


@pytest.mark.parametrize(
    "credentials",
    [
        pytest.param(NtlmCredentials("alice", "wrong"), id="wrong password"),
        pytest.param(NtlmCredentials("mallory", PASSWORD), id="unknown account"),
    ],
)
def test_a_wrong_log_on_is_refused(accounts: TestAccounts, credentials: NtlmCredentials) -> None:
    with pytest.raises(AuthenticationError):
        log_on(accounts, credentials)


def test_an_account_that_the_directory_refuses_is_nobody(accounts: TestAccounts) -> None:
    with pytest.raises(AuthenticationError, match="bob may not log on"):
        log_on(accounts, NtlmCredentials("bob", PASSWORD))


def test_no_error_names_the_password(accounts: TestAccounts) -> None:
    credentials = NtlmCredentials("alice", "s3cret-text")
    with pytest.raises(AuthenticationError) as refusal:
        log_on(accounts, credentials)
    assert "s3cret-text" not in str(refusal.value)
    assert "s3cret-text" not in repr(credentials)


def test_a_level_above_what_was_negotiated_is_refused(accounts: TestAccounts) -> None:
    _, server = log_on(accounts, NtlmCredentials("alice", PASSWORD), PKT_INTEGRITY)
    server.protection(PKT_INTEGRITY)
    with pytest.raises(AuthenticationError):
        server.protection(PKT_PRIVACY)


def anonymous_tokens(accounts: TestAccounts, **changes: bytes) -> NtlmAcceptor:
    """An acceptor that impacket's client without a name and a password has talked to."""
    server = NtlmAcceptor(accounts)
    first = impacket_ntlm.getNTLMSSPType1("", "", signingRequired=True)
    challenge = server.step(first.getData())
    third, _ = impacket_ntlm.getNTLMSSPType3(first, challenge, "", "", "")
    for name, value in changes.items():
        third[name] = value
    assert server.step(third.getData()) == b""
    return server


def test_a_client_without_a_name_is_anonymous(accounts: TestAccounts) -> None:
    """NullSession of [MS-NLMP] 3.2.5.1.2."""
    server = anonymous_tokens(accounts)
    assert server.complete
    assert server.peer().is_anonymous


def test_what_anonymous_signs_is_worth_nothing(accounts: TestAccounts) -> None:
    """[MS-NLMP] 5.1: the key is all zeros."""
    context = SecurityContext(10, PKT_PRIVACY, 0, NtlmAcceptor(accounts))
    first = impacket_ntlm.getNTLMSSPType1("", "", signingRequired=True)
    third, _ = impacket_ntlm.getNTLMSSPType3(first, context.step(first.getData()), "", "", "")
    context.step(third.getData())
    assert context.established
    assert (context.level, context.assured_level) == (PKT_PRIVACY, NONE)


@pytest.mark.parametrize(
    "changes", [{"ntlm": b"x" * 24}, {"user_name": "alice".encode("utf-16le")}]
)
def test_half_anonymous_clients_are_refused(
    accounts: TestAccounts, changes: dict[str, bytes]
) -> None:
    with pytest.raises(AuthenticationError):
        anonymous_tokens(accounts, **changes)


def impacket_tokens(server: NtlmAcceptor, ntlm_v2: bool = True) -> tuple[bytes, bytes]:
    first = impacket_ntlm.getNTLMSSPType1("", "", signingRequired=True, use_ntlmv2=ntlm_v2)
    challenge = server.step(first.getData())
    third, key = impacket_ntlm.getNTLMSSPType3(
        first, challenge, "alice", PASSWORD, "", use_ntlmv2=ntlm_v2
    )
    return third.getData(), key


def test_impacket_logs_on(accounts: TestAccounts) -> None:
    server = NtlmAcceptor(accounts)
    token, key = impacket_tokens(server)
    server.step(token)
    assert server.peer().name == "alice"
    protection = server.protection(PKT_PRIVACY)
    client = NtlmProtection(protection.flags, key, ProtectionDirection.CLIENT)
    sealed, signature = client.seal(b"h", b"body", b"t")
    assert protection.unseal(b"h", sealed, b"t", signature) == b"body"


def test_ntlm_v1_is_refused(accounts: TestAccounts) -> None:
    server = NtlmAcceptor(accounts)
    token, _ = impacket_tokens(server, ntlm_v2=False)
    with pytest.raises(AuthenticationError):
        server.step(token)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(noise=st.binary(max_size=60), position=st.integers(0, 400), cut=st.integers(0, 500))
def test_hostile_tokens_are_authentication_errors(
    accounts: TestAccounts, noise: bytes, position: int, cut: int
) -> None:
    client, server = NtlmInitiator(NtlmCredentials("alice", PASSWORD), PKT), NtlmAcceptor(accounts)
    token = client.step(server.step(client.step(b"")))
    changed = (token[:position] + noise + token[position + len(noise) :])[:cut]
    try:
        server.step(changed)
    except AuthenticationError:
        assert not server.complete
    with pytest.raises(AuthenticationError):
        NtlmAcceptor(accounts).step(noise)
