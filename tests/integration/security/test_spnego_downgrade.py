"""A man in the middle changes what client and server agree on by SPNEGO (RFC 4178, 5)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from rpcqm.base.errors import RpcFault
from rpcqm.base.identity import ANONYMOUS, Identity
from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType
from rpcqm.rpc.security.context import (
    Authentication,
    AuthenticationError,
    MessageProtection,
)
from rpcqm.rpc.security.logon import NO_CLAIM
from rpcqm.rpc.security.ntlm import NtlmCredentials, NtlmInitiator
from rpcqm.rpc.security.spnego import KERBEROS, NTLM, SpnegoInitiator
from rpcqm.rpc.security.spnego_tokens import NegTokenInit, NegTokenResp, unpack_token
from tests.support.accounts import PASSWORD
from tests.support.rpc.probe import ProbeHandlers
from tests.support.rpc.probe_server import call
from tests.support.rpc.rpc_server import RunningServer

Change = Callable[[Any], None]


class Ticket:
    """A client's Kerberos, of which only the first token is ever seen."""

    claim = NO_CLAIM
    complete = False

    def step(self, token: bytes) -> bytes:
        return b"\x6e\x03abc"

    def protection(self, level: AuthenticationLevel) -> MessageProtection:
        raise AuthenticationError("Kerberos was not chosen")

    def peer(self) -> Identity:
        return ANONYMOUS


def nothing(token: Any) -> None:
    """Let it pass."""


@dataclass(frozen=True)
class Intercepted:
    """A victim's negotiation; each of its tokens, and of the server's, is changed on its way."""

    to_server: Change = nothing
    to_client: Change = nothing
    kerberos: bool = True

    def authentication(self, level: AuthenticationLevel, host: str = "") -> Authentication:
        """How the victim authenticates, with somebody on the line."""
        kind = AuthenticationType.RPC_C_AUTHN_GSS_NEGOTIATE
        return Authentication(kind, level, lambda: _Line(self, level), odd_legs=False)


class _Line:
    claim = NO_CLAIM

    def __init__(self, line: Intercepted, level: AuthenticationLevel) -> None:
        ntlm = NTLM, NtlmInitiator(NtlmCredentials("alice", PASSWORD), level)
        self._line = line
        self._victim = SpnegoInitiator([(KERBEROS, Ticket()), ntlm] if line.kerberos else [ntlm])
        self.protection = self._victim.protection
        self.peer = self._victim.peer

    @property
    def complete(self) -> bool:
        return self._victim.complete

    def step(self, token: bytes) -> bytes:
        if token:
            token = _changed(token, self._line.to_client)
        answer = self._victim.step(token)
        return _changed(answer, self._line.to_server) if answer else b""


def _changed(token: bytes, change: Change) -> bytes:
    message: Any = unpack_token(token)
    change(message)
    return bytes(message.pack())


def only_ntlm(token: Any) -> None:
    """Kerberos, and its token, are taken out of the list."""
    if isinstance(token, NegTokenInit):
        token.mech_types, token.mech_token = [NTLM], None


def ntlm_first(token: Any) -> None:
    if isinstance(token, NegTokenInit):
        token.mech_types, token.mech_token = [NTLM, KERBEROS], None


def without_signature(token: Any) -> None:
    if isinstance(token, NegTokenResp):
        token.mech_list_mic = None


def wrong_signature(token: Any) -> None:
    if isinstance(token, NegTokenResp) and token.mech_list_mic:
        token.mech_list_mic = token.mech_list_mic[:-1] + b"\xff"


def both(*changes: Change) -> Change:
    def change(token: Any) -> None:
        for each in changes:
            each(token)

    return change


@pytest.mark.parametrize("kerberos", [False, True])
def test_an_untouched_negotiation_leads_to_ntlm(server: RunningServer, kerberos: bool) -> None:
    """The server has no Kerberos."""
    assert call(server, Intercepted(kerberos=kerberos)) == b"x"


@pytest.mark.parametrize("change", [only_ntlm, ntlm_first])
@pytest.mark.parametrize("signature", [nothing, without_signature])
def test_a_list_that_was_changed_is_refused(
    server: RunningServer, handlers: ProbeHandlers, change: Change, signature: Change
) -> None:
    with pytest.raises((RpcFault, AuthenticationError)):
        call(server, Intercepted(both(change, signature)))
    assert not handlers.calls


@pytest.mark.parametrize(
    ("change", "kerberos"),
    [
        (without_signature, False),
        (without_signature, True),
        (wrong_signature, False),
        (wrong_signature, True),
    ],
)
def test_the_clients_signature_must_be_there_and_right(
    server: RunningServer, handlers: ProbeHandlers, change: Change, kerberos: bool
) -> None:
    with pytest.raises((RpcFault, AuthenticationError)):
        call(server, Intercepted(change, kerberos=kerberos))
    assert not handlers.calls


@pytest.mark.parametrize("change", [without_signature, wrong_signature])
@pytest.mark.parametrize("kerberos", [False, True])
def test_the_servers_signature_must_be_there_and_right(
    server: RunningServer, handlers: ProbeHandlers, change: Change, kerberos: bool
) -> None:
    with pytest.raises(AuthenticationError):
        call(server, Intercepted(to_client=change, kerberos=kerberos))
    assert not handlers.calls
