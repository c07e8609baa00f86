"""Security contexts as somebody sees them who listens to both sides."""

import struct
from collections.abc import Sequence
from contextlib import suppress

from rpcqm.base.errors import DecodeError
from rpcqm.capture.accounts import Account
from rpcqm.capture.ntlm_keys import (
    Authenticate,
    find_message,
    read_authenticate,
    server_challenge,
    session_key,
)
from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType
from rpcqm.rpc.ntlm_protection import SIGNATURE_LENGTH, Direction, NegotiateFlags, NtlmProtection
from rpcqm.rpc.security import MessageProtection

PRIVACY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY
_NTLM_TYPES = frozenset(
    {AuthenticationType.RPC_C_AUTHN_WINNT, AuthenticationType.RPC_C_AUTHN_GSS_NEGOTIATE}
)
_CHALLENGE, _AUTHENTICATE = 2, 3
_SEQUENCE = struct.Struct("<I")


class SecurityContext:
    """One security context of a connection: tokens go in, messages come out in clear.

    `why` says why sealed messages stay sealed.
    """

    def __init__(self, auth_type: int, level: int, accounts: Sequence[Account]) -> None:
        self.auth_type = auth_type
        self.level = level
        self.account = ""
        self.why = "no account was given"
        self._accounts = accounts
        self._challenge: bytes | None = None
        self._of_client: MessageProtection | None = None
        self._of_server: MessageProtection | None = None
        self._begun: set[bool] = set()

    def token(self, value: bytes) -> None:
        """A token of the handshake, from either side."""
        if self.auth_type not in _NTLM_TYPES:
            self.why = f"security provider {self.auth_type} cannot be unsealed"
            return
        kind, message = find_message(value)
        try:
            if kind == _CHALLENGE:
                self._challenge = server_challenge(message)
            elif kind == _AUTHENTICATE:
                self._authenticated(read_authenticate(message))
        except DecodeError as error:
            self.why = error.reason

    def _authenticated(self, message: Authenticate) -> None:
        self.account = "ANONYMOUS LOGON" if message.anonymous else message.account
        if self._challenge is None:
            self.why = "the server's challenge was not captured"
            return
        key = session_key(message, self._challenge, self._accounts)
        if key is None:
            if self._accounts:
                self.why = f"no account that was given is that of {self.account}"
            return
        # Whoever listens takes the other party's place, once for each side.
        self._of_client = NtlmProtection(message.flags, key, Direction.SERVER)
        self._of_server = self._of_client
        if message.flags & NegotiateFlags.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY:
            self._of_server = NtlmProtection(message.flags, key, Direction.CLIENT)

    @property
    def opens(self) -> bool:
        """Whether sealed messages can be read."""
        return self._of_client is not None

    def lost(self, why: str) -> None:
        """Messages were not captured: what follows cannot be read, a key stream has gone on."""
        self._of_client = self._of_server = None
        self.why = why

    def unseal(
        self, from_client: bool, head: bytes, body: bytes, tail: bytes, signature: bytes
    ) -> bytes | None:
        """The body in clear; None, and `why` says the reason, when it cannot be read."""
        protection = self._of_client if from_client else self._of_server
        if protection is None:
            return None
        if from_client not in self._begun:
            self._begun.add(from_client)
            self._begin(protection, signature)
        try:
            return protection.unseal(head, body, tail, signature)
        except DecodeError as error:
            self.lost(error.reason)
            return None

    def _begin(self, protection: MessageProtection, signature: bytes) -> None:
        """A negotiation that signed its mechanisms has used the first sequence number."""
        if len(signature) != SIGNATURE_LENGTH or self._of_client is self._of_server:
            return
        if _SEQUENCE.unpack_from(signature, 12)[0] == 1:
            with suppress(DecodeError):
                protection.verify(b"", b"", b"", bytes(SIGNATURE_LENGTH))
            protection.restart_ciphers()
