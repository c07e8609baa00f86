"""Credentials whose NTLM messages impacket makes, so that they can be of kinds we never send."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from impacket import ntlm

from rpcqm.base.identity import ANONYMOUS, Identity
from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType
from rpcqm.rpc.security.context import Authentication
from rpcqm.rpc.security.logon import NO_CLAIM
from rpcqm.rpc.security.ntlm_protection import NtlmProtection, ProtectionDirection

Change = Callable[[Any, bytes], None]
"""What is done to an AUTHENTICATE_MESSAGE; the octets are the server's challenge."""


@dataclass(frozen=True)
class ImpacketCredentials:
    """A name and a password; `change` has the last word about the last message."""

    username: str
    password: str
    ntlm_v2: bool = True
    change: Change | None = None

    def authentication(self, level: AuthenticationLevel, host: str = "") -> Authentication:
        """How to authenticate by NTLM at a level."""
        kind = AuthenticationType.RPC_C_AUTHN_WINNT
        return Authentication(kind, level, lambda: _Handshake(self))


class _Handshake:
    """The client's side, which believes in itself whatever the server thinks of it."""

    claim = NO_CLAIM

    def __init__(self, credentials: ImpacketCredentials) -> None:
        self._credentials = credentials
        self._first = ntlm.getNTLMSSPType1(
            "", "", signingRequired=True, use_ntlmv2=credentials.ntlm_v2
        )
        self._key = b""
        self._flags = 0
        self.complete = False

    def step(self, token: bytes) -> bytes:
        if not token:
            return bytes(self._first.getData())
        who = self._credentials
        message, self._key = ntlm.getNTLMSSPType3(
            self._first, token, who.username, who.password, "", use_ntlmv2=who.ntlm_v2
        )
        if who.change is not None:
            who.change(message, ntlm.NTLMAuthChallenge(token)["challenge"])
        self._flags = message["flags"]
        self.complete = True
        return bytes(message.getData())

    def protection(self, level: AuthenticationLevel) -> NtlmProtection:
        return NtlmProtection(self._flags, self._key, ProtectionDirection.CLIENT)

    def peer(self) -> Identity:
        return ANONYMOUS
