"""Negotiates the mechanism that authenticates (RFC 4178, [MS-SPNG]).

Every mechanism is a handshake of its own, found by its object identifier; this module has only the
negotiation and its protection against tampering. Raw tokens of a mechanism are accepted as well, as
Windows accepts them: some clients skip the negotiation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rpcqm.base.errors import DecodeError
from rpcqm.base.identity import Identity
from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType
from rpcqm.rpc.security.context import (
    CONNECT,
    Authentication,
    AuthenticationError,
    Credentials,
    Handshake,
    MessageProtection,
    SecurityProvider,
    normalized_level,
)
from rpcqm.rpc.security.logon import NO_CLAIM, LogonClaim
from rpcqm.rpc.security.spnego_tokens import (
    NegState,
    NegTokenInit,
    NegTokenResp,
    pack_mech_type_list,
    unpack_token,
)

NTLM = "1.3.6.1.4.1.311.2.2.10"
KERBEROS = "1.2.840.113554.1.2.2"
MS_KERBEROS = "1.2.840.48018.1.2.2"
"""Kerberos under the number that Windows 2000 wrote by mistake; Windows still names it first."""


class Mechanism(Handshake, Protocol):
    """The server's side of a handshake that can be negotiated."""

    @property
    def signs_mechanisms(self) -> bool:
        """Whether the client's messages prove that it signs the list of mechanisms, too."""
        ...


class MechanismProvider(SecurityProvider, Protocol):
    """A provider of such handshakes."""

    def accept(self, level: AuthenticationLevel, address: str = "") -> Mechanism: ...


class SpnegoAcceptor:
    """One negotiation with a client, and the handshake of the mechanism it leads to.

    The client's list must be signed when another mechanism than the first was chosen (RFC 4178,
    5), and when NTLM's last message proves that the client signs it (G81): with that message,
    because no token of the mechanism follows it (G127).
    """

    def __init__(self, mechanisms: Mapping[str, Callable[[], Mechanism]]) -> None:
        self._mechanisms = mechanisms
        self._chosen: Mechanism | None = None
        self._offered = b""
        self._raw = self._done = False
        self._mic_needed = self._mic_received = self._mic_sent = False

    @property
    def complete(self) -> bool:
        return self._done

    @property
    def claim(self) -> LogonClaim:
        return NO_CLAIM if self._chosen is None else self._chosen.claim

    @property
    def _mechanism(self) -> Mechanism:
        if self._chosen is None:
            raise AuthenticationError("SPNEGO: the first token is not one")
        return self._chosen

    def step(self, token: bytes) -> bytes:
        if self._done:
            raise AuthenticationError("SPNEGO: the negotiation is over")
        message = _unpack(token)
        if isinstance(message, NegTokenInit):
            return self._begin(message)
        if isinstance(message, NegTokenResp):
            return self._go_on(message)
        return self._step_raw(token)

    def protection(self, level: AuthenticationLevel) -> MessageProtection:
        return self._mechanism.protection(level)

    def peer(self) -> Identity:
        return self._mechanism.peer()

    def _begin(self, message: NegTokenInit) -> bytes:
        """Take the client's list of mechanisms, and its token for the first of them."""
        if self._chosen is not None:
            raise AuthenticationError("SPNEGO: a second NegTokenInit")
        offered = list(message.mech_types)
        name = next((each for each in offered if each in self._mechanisms), None)
        if name is None:
            raise AuthenticationError(f"SPNEGO: none of {', '.join(offered)} is served")
        self._chosen = self._mechanisms[name]()
        self._offered = pack_mech_type_list(offered)
        self._mic_needed = name != offered[0]
        answer = b""
        if message.mech_token and name == offered[0]:
            answer = self._chosen.step(message.mech_token)
        return self._answer(answer, message.mech_list_mic, name)

    def _go_on(self, message: NegTokenResp) -> bytes:
        if self._raw or message.neg_state == NegState.reject:
            raise AuthenticationError("SPNEGO: the client gave up")
        mechanism, answer = self._mechanism, b""
        if message.response_token and not mechanism.complete:
            answer = mechanism.step(message.response_token)
        return self._answer(answer, message.mech_list_mic)

    def _answer(self, token: bytes, received: bytes | None, name: str | None = None) -> bytes:
        """The next token; `name` is the chosen mechanism's in the first one."""
        mic = self._exchange_mics(received) if self._mechanism.complete else None
        self._done = self._mechanism.complete and (self._mic_received or not self._mic_needed)
        state = NegState.accept_complete if self._done else NegState.accept_incomplete
        if name is not None and self._mic_needed and not self._done:
            state = NegState.request_mic
        return NegTokenResp(state, name, token or None, mic).pack()

    def _exchange_mics(self, received: bytes | None) -> bytes | None:
        """Check that the list of mechanisms arrived as the client had sent it (RFC 4178, 5)."""
        if not received and self._mechanism.signs_mechanisms:
            raise AuthenticationError("SPNEGO: the list of mechanisms has lost its signature")
        if not (received or self._mic_needed):
            return None
        protection = self._mechanism.protection(CONNECT)
        if received:
            self._check_mic(protection, received)
        if self._mic_sent:
            return None
        self._mic_sent = True
        mic = protection.sign(b"", self._offered, b"")
        protection.restart_ciphers()
        return mic

    def _check_mic(self, protection: MessageProtection, received: bytes) -> None:
        try:
            protection.verify(b"", self._offered, b"", received)
        except DecodeError as error:
            raise AuthenticationError("SPNEGO: the list of mechanisms was changed") from error
        self._mic_received = True
        if self._mic_sent:
            protection.restart_ciphers()

    def _step_raw(self, token: bytes) -> bytes:
        """Take a mechanism's own token: NTLM's begins with its name, any other is Kerberos's."""
        if self._chosen is None:
            name = NTLM if token.startswith(b"NTLMSSP\0") else KERBEROS
            if name not in self._mechanisms:
                raise AuthenticationError("SPNEGO: the token is of no mechanism served")
            self._chosen, self._raw = self._mechanisms[name](), True
        if not self._raw:
            raise AuthenticationError("SPNEGO: a token outside the negotiation")
        answer = self._chosen.step(token)
        self._done = self._chosen.complete
        return answer


class SpnegoInitiator:
    """A client's negotiation: mechanisms by object identifier, the first one tried at once.

    One that cannot begin, for want of a ticket for example, is not offered. The list is signed
    whenever the handshake is over before the negotiation.
    """

    def __init__(self, mechanisms: Sequence[tuple[str, Handshake]]) -> None:
        self._mechanisms = dict(mechanisms)
        self._name, self._chosen = mechanisms[0]
        self._offered = pack_mech_type_list(list(self._mechanisms))
        self._first, self._mic_sent, self._done = True, False, False

    @property
    def complete(self) -> bool:
        return self._done

    @property
    def claim(self) -> LogonClaim:
        return self._chosen.claim

    def step(self, token: bytes) -> bytes:
        if self._first:
            self._first = False
            token = self._begin()
            return NegTokenInit(list(self._mechanisms), mech_token=token).pack()
        message = _unpack(token)
        if not isinstance(message, NegTokenResp) or message.neg_state == NegState.reject:
            raise AuthenticationError("SPNEGO: the server refused")
        answer = self._go_on(message)
        if message.neg_state == NegState.accept_complete:
            self._finish(message, answer)
            return b""
        mic = self._sign() if self._chosen.complete and not self._mic_sent else None
        return NegTokenResp(response_token=answer or None, mech_list_mic=mic).pack()

    def _begin(self) -> bytes:
        """The token of the first mechanism that can begin."""
        while True:
            try:
                return self._chosen.step(b"")
            except AuthenticationError:  # the next mechanism may be able to begin
                del self._mechanisms[self._name]
                if not self._mechanisms:
                    raise
            self._name, self._chosen = next(iter(self._mechanisms.items()))
            self._offered = pack_mech_type_list(list(self._mechanisms))

    def protection(self, level: AuthenticationLevel) -> MessageProtection:
        return self._chosen.protection(level)

    def peer(self) -> Identity:
        return self._chosen.peer()

    def _go_on(self, message: NegTokenResp) -> bytes:
        """The chosen mechanism's next token, which may be the first of another mechanism."""
        token = message.response_token or b""
        if message.supported_mech and message.supported_mech != self._name:
            if message.supported_mech not in self._mechanisms:
                raise AuthenticationError("SPNEGO: the server chose what was not offered")
            self._name = message.supported_mech
            self._chosen, token = self._mechanisms[self._name], b""
        elif not token:
            return b""
        return b"" if self._chosen.complete else self._chosen.step(token)

    def _sign(self) -> bytes:
        self._mic_sent = True
        return self._chosen.protection(CONNECT).sign(b"", self._offered, b"")

    def _finish(self, message: NegTokenResp, unsent: bytes) -> None:
        """Finish: a list that was signed here must have been signed by the other side, too."""
        if unsent or not self._chosen.complete:
            raise AuthenticationError("SPNEGO: the server ends a handshake that is not over")
        if self._mic_sent or self._name != next(iter(self._mechanisms)):
            protection = self._chosen.protection(CONNECT)
            try:
                protection.verify(b"", self._offered, b"", message.mech_list_mic or b"")
            except DecodeError as error:
                raise AuthenticationError("SPNEGO: the list of mechanisms was changed") from error
            protection.restart_ciphers()
        self._done = True


@dataclass(frozen=True, slots=True)
class SpnegoCredentials:
    """Credentials of several mechanisms, the preferred one first."""

    mechanisms: tuple[Credentials, ...]

    def authentication(self, level: AuthenticationLevel, host: str = "") -> Authentication:
        """How to authenticate by SPNEGO at a level."""
        level = normalized_level(level) or CONNECT

        def begin() -> SpnegoInitiator:
            begun: list[tuple[str, Handshake]] = []
            reason = AuthenticationError("SPNEGO: no credentials")
            for single in (each.authentication(level, host) for each in self.mechanisms):
                try:
                    begun.append((_MECHANISMS[single.auth_type], single.begin()))
                except AuthenticationError as error:  # other credentials may do
                    reason = error
            if not begun:
                raise reason
            return SpnegoInitiator(begun)

        kind = AuthenticationType.RPC_C_AUTHN_GSS_NEGOTIATE
        return Authentication(kind, level, begin, odd_legs=False)


_MECHANISMS: dict[int, str] = {
    AuthenticationType.RPC_C_AUTHN_WINNT: NTLM,
    AuthenticationType.RPC_C_AUTHN_GSS_KERBEROS: KERBEROS,
}


def _unpack(token: bytes) -> object:
    try:
        return unpack_token(token)
    except Exception as error:  # a hostile token may trip the decoder anywhere
        raise AuthenticationError(f"SPNEGO: {error}") from error


class SpnegoProvider:
    """The row of a server's table of security providers for RPC_C_AUTHN_GSS_NEGOTIATE.

    `mechanisms` are the providers that may be agreed on, by object identifier.
    """

    def __init__(self, mechanisms: Mapping[str, MechanismProvider]) -> None:
        self._mechanisms = mechanisms

    @property
    def principal_name(self) -> str:
        """The first name that any of the mechanisms has."""
        names = (each.principal_name for each in self._mechanisms.values())
        return next(filter(None, names), "")

    def accept(self, level: AuthenticationLevel, address: str = "") -> SpnegoAcceptor:
        def begin(provider: MechanismProvider) -> Callable[[], Mechanism]:
            return lambda: provider.accept(level, address)

        return SpnegoAcceptor({name: begin(each) for name, each in self._mechanisms.items()})
