"""SPNEGO: pyspnego's client against our acceptor, token by token, and what must be refused."""

import sys
from collections.abc import Callable
from pathlib import Path
from socket import gethostname

import pytest
import spnego
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spnego import ContextReq, NegotiateOptions
from spnego._spnego import NegState, NegTokenInit, NegTokenResp, pack_mech_type_list, unpack_token

from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.security.context import (
    CONNECT,
    PKT,
    PKT_INTEGRITY,
    PKT_PRIVACY,
    AuthenticationError,
    Handshake,
)
from rpcqm.rpc.security.ntlm import NtlmCredentials, NtlmInitiator, NtlmProvider
from rpcqm.rpc.security.ntlm_protection import NtlmProtection
from rpcqm.rpc.security.providers import security_providers
from rpcqm.rpc.security.spnego import (
    KERBEROS,
    MS_KERBEROS,
    NTLM,
    SpnegoAcceptor,
    SpnegoInitiator,
    SpnegoProvider,
)
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.rpc.impacket_ntlm import ImpacketCredentials


@pytest.fixture
def accounts(tmp_path: Path) -> TestAccounts:
    return TestAccounts(tmp_path)


Accept = Callable[..., SpnegoAcceptor]


@pytest.fixture
def accept(accounts: TestAccounts) -> Accept:
    def accept(level: AuthenticationLevel = PKT_PRIVACY) -> SpnegoAcceptor:
        return SpnegoProvider({NTLM: NtlmProvider(accounts)}).accept(level)

    return accept


def pyspnego_client(password: str = PASSWORD) -> spnego.ContextProxy:
    return spnego.client(
        "alice",
        password,
        hostname="server",
        context_req=ContextReq.default | ContextReq.dce_style,
        options=NegotiateOptions.use_negotiate | NegotiateOptions.use_ntlm,
    )


def run(client: spnego.ContextProxy, server: SpnegoAcceptor) -> int:
    """Exchange tokens until both are content; how many it took."""
    legs, token = 0, client.step()
    while token:
        legs += 1
        answer = server.step(token)
        legs += bool(answer)
        token = client.step(answer) if answer and not client.complete else None
    return legs


def test_pyspnego_logs_on_in_four_legs(accept: Accept) -> None:
    client, server = pyspnego_client(), accept()
    assert run(client, server) == 4
    assert client.complete
    assert server.complete
    assert server.peer().name == "alice"


def test_messages_follow_the_signed_list(accept: Accept) -> None:
    """The key streams begin anew, the sequence numbers go on ([MS-SPNG] 3.3.5.1)."""
    client, server = pyspnego_client(), accept()
    run(client, server)
    protection = server.protection(PKT_PRIVACY)
    for text in (b"first", b"second"):
        wrapped = client.wrap(text).data
        assert protection.unseal(b"", wrapped[16:], b"", wrapped[:16]) == text
        sealed, signature = protection.seal(b"", text, b"")
        assert client.unwrap(signature + sealed).data == text


def test_a_wrong_password_is_refused(accept: Accept) -> None:
    with pytest.raises(AuthenticationError):
        run(pyspnego_client("wrong"), accept())


def test_bare_ntlm_is_taken_as_windows_takes_it(accept: Accept) -> None:
    client, server = spnego.client("alice", PASSWORD, protocol="ntlm"), accept()
    assert run(client, server) == 3
    assert server.complete
    assert server.peer().name == "alice"


class Initiator:
    """A client of SPNEGO around NTLM that can be made to do anything."""

    def __init__(self, mechanisms: list[str], level: AuthenticationLevel = PKT_PRIVACY) -> None:
        self.ntlm: Handshake = NtlmInitiator(NtlmCredentials("alice", PASSWORD), level)
        self.mechanisms = mechanisms

    def first(self, token: bool = True) -> bytes:
        inner = self.ntlm.step(b"") if token else None
        return NegTokenInit(self.mechanisms, mech_token=inner).pack()

    def next(self, answer: bytes, mic_over: list[str] | None = None) -> bytes:
        response = unpack_token(answer)
        assert isinstance(response, NegTokenResp)
        inner = self.ntlm.step(response.response_token or b"")
        mic = self.mic(mic_over) if mic_over is not None else None
        return NegTokenResp(response_token=inner, mech_list_mic=mic).pack()

    def mic(self, mechanisms: list[str]) -> bytes:
        return self.ntlm.protection(PKT).sign(b"", pack_mech_type_list(mechanisms), b"")


def state(answer: bytes) -> NegState | None:
    response = unpack_token(answer)
    assert isinstance(response, NegTokenResp)
    return response.neg_state


def test_the_preferred_mechanism_needs_no_signed_list(accept: Accept) -> None:
    client, server = Initiator([NTLM]), accept()
    client.ntlm = ImpacketCredentials("alice", PASSWORD).authentication(PKT_PRIVACY).begin()
    answer = server.step(client.first())
    assert state(answer) is NegState.accept_incomplete
    answer = server.step(client.next(answer))
    assert state(answer) is NegState.accept_complete
    assert unpack_token(answer).mech_list_mic is None
    assert server.complete


def test_a_client_that_signs_everything_signs_the_list(accept: Accept) -> None:
    """Its NTLM message says so where nobody can change it."""
    client, server = Initiator([NTLM]), accept()
    with pytest.raises(AuthenticationError, match="lost its signature"):
        server.step(client.next(server.step(client.first())))


def test_a_signed_list_is_answered_with_one(accept: Accept) -> None:
    client, server = Initiator([NTLM]), accept()
    answer = server.step(client.next(server.step(client.first()), [NTLM]))
    mic = unpack_token(answer).mech_list_mic
    client.ntlm.protection(PKT).verify(b"", pack_mech_type_list([NTLM]), b"", mic)


def test_another_mechanism_than_the_first_asks_for_the_signed_list(accept: Accept) -> None:
    """RFC 4178, 5: else whoever is between could choose the mechanism."""
    offered = [MS_KERBEROS, KERBEROS, NTLM]
    client, server = Initiator(offered), accept()
    challenge = asked_to_sign(client, server)
    answer = server.step(client.next(challenge, offered))
    assert state(answer) is NegState.accept_complete
    assert server.complete


def asked_to_sign(client: "Initiator", server: SpnegoAcceptor) -> bytes:
    """The challenge of a server that has chosen another mechanism than the client's first."""
    answer = server.step(client.first(token=False))
    assert state(answer) is NegState.request_mic
    assert unpack_token(answer).supported_mech == NTLM
    return server.step(NegTokenResp(response_token=client.ntlm.step(b"")).pack())


def test_a_signature_that_was_asked_for_comes_with_the_last_token(accept: Accept) -> None:
    """Nobody may strip it and send one of his own later (RFC 4178, 5)."""
    client, server = Initiator([KERBEROS, NTLM]), accept()
    challenge = asked_to_sign(client, server)
    with pytest.raises(AuthenticationError, match="lost its signature"):
        server.step(client.next(challenge))
    assert not server.complete


def test_a_client_whose_messages_promise_nothing_may_sign_later(accept: Accept) -> None:
    offered = [KERBEROS, NTLM]
    client, server = Initiator(offered), accept()
    client.ntlm = ImpacketCredentials("alice", PASSWORD).authentication(PKT_PRIVACY).begin()
    answer = server.step(client.next(asked_to_sign(client, server)))
    assert not server.complete
    assert state(answer) is NegState.accept_incomplete
    answer = server.step(NegTokenResp(mech_list_mic=client.mic(offered)).pack())
    assert state(answer) is NegState.accept_complete
    assert server.complete


def test_a_changed_list_is_refused(accept: Accept) -> None:
    """Somebody took Kerberos out of the client's list."""
    client, server = Initiator([NTLM]), accept()
    answer = server.step(client.first())
    with pytest.raises(AuthenticationError, match="changed"):
        server.step(client.next(answer, mic_over=[KERBEROS, NTLM]))
    assert not server.complete


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(NegTokenResp(response_token=b"x").pack(), id="not the first one"),
        pytest.param(NegTokenInit([KERBEROS], mech_token=b"x").pack(), id="not served"),
        pytest.param(NegTokenInit([]).pack(), id="no mechanism"),
        pytest.param(b"\x60\x06\x06\x04abcd", id="of another mechanism"),
    ],
)
def test_senseless_first_tokens_are_refused(accept: Accept, token: bytes) -> None:
    with pytest.raises(AuthenticationError):
        accept().step(token)


def test_a_server_cannot_end_what_the_client_has_to_prove(accept: Accept) -> None:
    """The client's last token would never be sent."""
    client = SpnegoInitiator([(NTLM, NtlmInitiator(NtlmCredentials("alice", PASSWORD), PKT))])
    challenge = unpack_token(accept().step(client.step(b"")))
    challenge.neg_state = NegState.accept_complete
    with pytest.raises(AuthenticationError, match="not over"):
        client.step(challenge.pack())
    assert not client.complete


def element(tag: int, *parts: bytes) -> bytes:
    """A DER element with a length of four octets."""
    value = b"".join(parts)
    return bytes([tag, 0x84]) + len(value).to_bytes(4, "big") + value


def first_token(name: bytes, *mechanisms: bytes) -> bytes:
    listed = element(0x30, element(0xA0, element(0x30, *mechanisms)))
    return element(0x60, name, element(0xA0, listed))


SPNEGO = bytes.fromhex("06062b0601050502")
LONG = element(6, b"\x2b" + b"\x81" * 16_000 + b"\x01")


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(first_token(SPNEGO, LONG), id="mechanism"),
        pytest.param(first_token(SPNEGO, *[SPNEGO] * 2_000), id="many mechanisms"),
        pytest.param(first_token(LONG, SPNEGO), id="name"),
        pytest.param(b"\x7f\0" + first_token(LONG, SPNEGO)[1:], id="another tag"),
        pytest.param(element(0x60, SPNEGO, first_token(LONG, SPNEGO)), id="nested"),
        pytest.param(element(0xA1, element(0x30, element(0xA1, LONG))), id="answer"),
    ],
)
def test_long_names_of_mechanisms_cost_nothing(accept: Accept, token: bytes) -> None:
    """Decoding them takes time that grows with the square of their length."""
    with pytest.raises(AuthenticationError, match=r"object identifiers|inside another"):
        accept().step(token)


def test_a_second_beginning_is_refused(accept: Accept) -> None:
    client, server = Initiator([NTLM]), accept()
    server.step(client.first())
    with pytest.raises(AuthenticationError):
        server.step(Initiator([NTLM]).first())


def test_a_client_that_gives_up_is_refused(accept: Accept) -> None:
    server = accept()
    server.step(Initiator([NTLM]).first())
    with pytest.raises(AuthenticationError):
        server.step(NegTokenResp(NegState.reject).pack())


def test_a_bare_token_inside_a_negotiation_is_refused(accept: Accept) -> None:
    server = accept()
    server.step(Initiator([NTLM]).first())
    with pytest.raises(AuthenticationError):
        server.step(NtlmInitiator(NtlmCredentials("alice", PASSWORD), PKT).step(b""))


def test_nothing_follows_the_end(accept: Accept) -> None:
    client, server = Initiator([NTLM]), accept()
    server.step(client.next(server.step(client.first()), [NTLM]))
    with pytest.raises(AuthenticationError):
        server.step(client.first())


@pytest.mark.parametrize("level", [CONNECT, PKT, PKT_INTEGRITY, PKT_PRIVACY])
def test_every_level_is_served(accept: Accept, level: AuthenticationLevel) -> None:
    client, server = Initiator([NTLM], level), accept(level)
    server.step(client.next(server.step(client.first()), [NTLM]))
    assert server.complete
    assert isinstance(server.protection(level), NtlmProtection)


def test_the_table_of_providers(accounts: TestAccounts) -> None:
    assert sorted(security_providers(accounts)) == [9, 10]
    assert security_providers(accounts, ntlm=False) == {}
    named = security_providers(accounts, principal="host/server@REALM")
    assert {each.principal_name for each in named.values()} == {"host/server@REALM"}
    unnamed = security_providers(accounts)
    assert {each.principal_name for each in unnamed.values()} == {f"host/{gethostname()}"}


def test_without_the_package_for_kerberos_that_is_said(
    accounts: TestAccounts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rpcqm.rpc.security.kerberos", None)
    with pytest.raises(AuthenticationError, match=r"install rpcqm\[kerberos\]"):
        security_providers(accounts, keytab=tmp_path / "keytab")


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(noise=st.binary(max_size=40), position=st.integers(0, 300), cut=st.integers(0, 400))
def test_hostile_tokens_are_authentication_errors(
    accept: Accept, noise: bytes, position: int, cut: int
) -> None:
    client, server = Initiator([NTLM]), accept()
    token = client.next(server.step(client.first()), [NTLM])
    changed = (token[:position] + noise + token[position + len(noise) :])[:cut]
    try:
        server.step(changed)
    except AuthenticationError:
        assert not server.complete
    with pytest.raises(AuthenticationError):
        accept().step(noise)
