"""NTLM handshakes by pyspnego ([MS-NLMP] 3.1, 3.2), accounts from an smbpasswd-format file.

One computation of pyspnego's acceptor is replaced: it rebuilds the client's challenge before it
checks the proof, with four octets that some clients do not send (impacket, ntlm_auth). Here the
proof is checked over the octets as they were received. Only NTLMv2 is accepted.
"""

import hmac
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import spnego._ntlm as pyspnego
from spnego import ContextReq, NTLMHash, Password
from spnego._context import split_username
from spnego._ntlm_raw.crypto import rc4k
from spnego._ntlm_raw.messages import Authenticate, NTClientChallengeV2, TargetInfo
from spnego.exceptions import SpnegoError

from rpcqm.base.identity import ANONYMOUS, Identity
from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType
from rpcqm.rpc.logon import NO_CLAIM, Claim, LogonGuard, OpenGuard
from rpcqm.rpc.ntlm_protection import Direction, NegotiateFlags, NtlmProtection
from rpcqm.rpc.security import (
    CONNECT,
    PKT,
    PKT_INTEGRITY,
    PKT_PRIVACY,
    Authentication,
    AuthenticationError,
    ProtectionError,
    normalized_level,
)


class AccountDirectory(Protocol):
    """The accounts that callers may log on with; injected by who starts the server."""

    @property
    def user_file(self) -> Path:
        """NT hashes in smbpasswd format, or DOMAIN:user:password lines."""
        ...

    def identity(self, name: str, domain: str) -> Identity | None:
        """Who `name` is once it has proved it; None refuses it. `domain` is what it claimed."""
        ...


@dataclass(frozen=True, slots=True)
class NtlmCredentials:
    """What a client logs on with: a password or, instead, an NT hash of 16 octets."""

    username: str
    password: str = field(default="", repr=False)
    domain: str = ""
    nt_hash: bytes = field(default=b"", repr=False)

    def authentication(self, level: AuthenticationLevel, host: str = "") -> Authentication:
        """How to authenticate by NTLM at a level."""
        return ntlm(self, level)


class _ReceivedTargetInfo(TargetInfo):
    """Target information that remembers the challenge it came in."""

    received: bytes = b""


class _ReceivedChallenge(NTClientChallengeV2):
    """A client challenge that hands its octets on to the check of the proof."""

    @staticmethod
    def unpack(b_data: bytes) -> "_ReceivedChallenge":
        return _ReceivedChallenge(_b_data=b_data)

    @property
    def av_pairs(self) -> TargetInfo:
        received = self.pack()
        info = _ReceivedTargetInfo(TargetInfo.unpack(received[28:]))
        info.received = received
        return info


def _response_as_received(
    nt_hash: bytes, server_challenge: bytes, client: bytes, time: object, info: _ReceivedTargetInfo
) -> tuple[bytes, bytes, bytes]:
    """ComputeResponse of [MS-NLMP] 3.3.2 over the challenge as it came."""
    proof = hmac.digest(nt_hash, server_challenge + info.received, "md5")
    lm_response = hmac.digest(nt_hash, server_challenge + client, "md5") + client
    return proof + info.received, lm_response, hmac.digest(nt_hash, proof, "md5")


def _with_names(function: Any, **names: object) -> Any:
    """The same function, with other meanings for some of its module's names."""
    return types.FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


def _stored_credential(path: Path, username: str) -> types.SimpleNamespace:
    """The account's hashes; an account without a domain stands for any domain."""
    domain, name = split_username(username)
    try:
        found = pyspnego._get_credential(str(path), domain, name)
    except SpnegoError:
        if not domain:
            raise
        found = pyspnego._get_credential(str(path), None, name)
    return types.SimpleNamespace(domain=domain, username=name, lm_hash=found[2], nt_hash=found[3])


class _Acceptor(pyspnego.NTLMProxy):
    """pyspnego's acceptor with the replaced computation, reading `path` for the accounts."""

    def __init__(self, path: Path) -> None:
        initialize = _with_names(
            pyspnego.NTLMProxy.__init__, _get_credential_file=lambda: str(path)
        )
        initialize(self, usage="accept")
        self._authenticate = _with_names(
            pyspnego.NTLMProxy._step_accept_authenticate,
            NTClientChallengeV2=_ReceivedChallenge,
            compute_response_v2=_response_as_received,
            _NTLMCredential=lambda cache: _stored_credential(path, cache.username),
        )
        self._lm = self._nt_v1 = False

        self.anonymous = False

    def _step_accept_authenticate(self, token: bytes, channel_bindings: Any) -> None:
        message = Authenticate.unpack(token)
        if _is_anonymous(message):
            self._accept_anonymous(message)
        else:
            self._authenticate(self, token, channel_bindings=channel_bindings)

    def _accept_anonymous(self, message: Authenticate) -> None:
        """NullSession of [MS-NLMP] 3.2.5.1.2: a key of zeros, which protects nothing."""
        self.anonymous = True
        self._session_key = bytes(16)
        if message.flags & NegotiateFlags.NTLMSSP_NEGOTIATE_KEY_EXCH:
            self._session_key = rc4k(bytes(16), message.encrypted_random_session_key or b"")
        self._context_attr = message.flags
        self._complete = True


def _is_anonymous(message: Authenticate) -> bool:
    return (
        not message.user_name
        and not message.nt_challenge_response
        and message.lm_challenge_response in (None, b"", b"\0")
    )


class _NtlmHandshake:
    """What both sides of a handshake share."""

    def __init__(self, context: Any, own: Direction) -> None:
        self._context = context
        self._own = own
        self._protection: NtlmProtection | None = None

    @property
    def complete(self) -> bool:
        return bool(self._context.complete)

    @property
    def claim(self) -> Claim:
        return NO_CLAIM

    def step(self, token: bytes) -> bytes:
        try:
            return self._context.step(token) or b""
        except Exception as error:  # a hostile token may trip pyspnego anywhere
            raise AuthenticationError(f"NTLM: {error}") from error

    def protection(self, level: AuthenticationLevel) -> NtlmProtection:
        flags = int(self._context._context_attr)
        if level == PKT_PRIVACY and not flags & NegotiateFlags.NTLMSSP_NEGOTIATE_SEAL:
            raise ProtectionError("NTLM: sealing was not negotiated")
        if self._protection is None:
            self._protection = NtlmProtection(flags, self._context.session_key, self._own)
        return self._protection


class NtlmAcceptor(_NtlmHandshake):
    """A handshake on the server's side."""

    def __init__(self, accounts: AccountDirectory) -> None:
        super().__init__(_Acceptor(accounts.user_file), Direction.SERVER)
        self._accounts = accounts

    def peer(self) -> Identity:
        if self._context.anonymous:
            return ANONYMOUS
        credential: Any = self._context._credential
        identity = self._accounts.identity(credential.username, credential.domain or "")
        if identity is None:
            raise AuthenticationError(f"NTLM: {credential.username} may not log on")
        return identity


class NtlmInitiator(_NtlmHandshake):
    """A handshake on the client's side."""

    def __init__(self, credentials: NtlmCredentials, level: AuthenticationLevel) -> None:
        name = credentials.username
        if credentials.domain:
            name = f"{credentials.domain}\\{name}"
        secret: NTLMHash | Password = Password(name, credentials.password)
        if credentials.nt_hash:
            secret = NTLMHash(username=name, nt_hash=credentials.nt_hash.hex())
        context = pyspnego.NTLMProxy(secret, usage="initiate", context_req=_requirements(level))
        super().__init__(context, Direction.CLIENT)

    def peer(self) -> Identity:
        return ANONYMOUS  # NTLM does not prove who the server is


def ntlm(credentials: NtlmCredentials, level: AuthenticationLevel) -> Authentication:
    """How a client authenticates by NTLM; CALL is raised to PKT ([MS-RPCE] 2.2.1.1.8)."""
    level = normalized_level(level) or CONNECT
    return Authentication(
        AuthenticationType.RPC_C_AUTHN_WINNT, level, lambda: NtlmInitiator(credentials, level)
    )


def _requirements(level: AuthenticationLevel) -> ContextReq:
    """What a level asks of the provider ([MS-RPCE] 3.3.1.5.2.2)."""
    wanted = ContextReq.none
    if level >= PKT:
        wanted |= ContextReq.replay_detect
    if level >= PKT_INTEGRITY:
        wanted |= ContextReq.sequence_detect | ContextReq.integrity
    if level >= PKT_PRIVACY:
        wanted |= ContextReq.confidentiality
    return wanted


class NtlmProvider:
    """The row of a server's table of security providers for RPC_C_AUTHN_WINNT."""

    def __init__(
        self,
        accounts: AccountDirectory,
        principal_name: str = "",
        guard: LogonGuard | None = None,
    ) -> None:
        self._accounts = accounts
        self._guard = guard or OpenGuard()
        self.principal_name = principal_name

    def accept(self, level: AuthenticationLevel, address: str = "") -> NtlmAcceptor:
        try:
            return NtlmAcceptor(self._accounts)
        except SpnegoError as error:
            raise AuthenticationError(f"NTLM: {error}") from error
