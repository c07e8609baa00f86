"""Logons by NTLM as nobody, which are sealed with a key that everybody knows."""

import os
from dataclasses import dataclass

from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType
from rpcqm.rpc.security import ntlm_messages as messages
from rpcqm.rpc.security.context import Authentication
from rpcqm.rpc.security.ntlm import NtlmCredentials, NtlmInitiator
from rpcqm.rpc.security.ntlm_messages import Challenge
from rpcqm.rpc.security.ntlm_protection import NegotiateFlags


@dataclass(frozen=True)
class AnonymousCredentials:
    """A client without a name and without responses ([MS-NLMP] 3.2.5.1.2)."""

    lm_response: bytes = b"\0"

    def authentication(self, level: AuthenticationLevel, host: str = "") -> Authentication:
        """How to authenticate by NTLM at a level."""
        kind = AuthenticationType.RPC_C_AUTHN_WINNT
        return Authentication(kind, level, lambda: _Nobody(level, self.lm_response))


class _Nobody(NtlmInitiator):
    """The client's side; the base key of its session key is all zeros ([MS-NLMP] 5.1)."""

    def __init__(self, level: AuthenticationLevel, lm_response: bytes) -> None:
        super().__init__(NtlmCredentials("", ""), level)
        self._lm_response = lm_response

    def _answer(self, token: bytes, challenge: Challenge) -> bytes:
        flags = challenge.flags & self._asked | NegotiateFlags.NTLMSSP_ANONYMOUS
        session_key = os.urandom(messages.KEY_LENGTH)
        exchanged = messages.rc4k(bytes(messages.KEY_LENGTH), session_key)
        self._finish(flags, session_key)
        message = messages.Authenticate(flags, self._lm_response, b"", "", "", "", exchanged, 0)
        return messages.pack_authenticate(message)
