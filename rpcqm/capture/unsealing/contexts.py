"""Security contexts as a listener to both sides follows them."""

import struct
from collections.abc import Sequence
from contextlib import suppress

from rpcqm.base.errors import DecodeError
from rpcqm.capture.unsealing import kerberos_keys
from rpcqm.capture.unsealing.accounts import UnsealingAccount
from rpcqm.capture.unsealing.kerberos_keys import SessionKey, open_request, subkey_of_reply
from rpcqm.capture.unsealing.kerberos_messages import SessionProtection, messages_under
from rpcqm.capture.unsealing.ntlm_keys import (
    find_message,
    is_anonymous,
    server_challenge,
    session_key,
)
from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType
from rpcqm.rpc.security.ntlm_messages import (
    AUTHENTICATE,
    CHALLENGE,
    Authenticate,
    read_authenticate,
)
from rpcqm.rpc.security.ntlm_protection import (
    SIGNATURE_LENGTH,
    NegotiateFlags,
    NtlmProtection,
    ProtectionDirection,
)

INTEGRITY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY
PRIVACY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY
_TYPES = frozenset(
    {
        AuthenticationType.RPC_C_AUTHN_WINNT,
        AuthenticationType.RPC_C_AUTHN_GSS_KERBEROS,
        AuthenticationType.RPC_C_AUTHN_GSS_NEGOTIATE,
    }
)
_SEQUENCE = struct.Struct("<I")


class ObservedSecurityContext:
    """One security context of a connection: tokens go in, messages come out in clear.

    `why` says why sealed messages stay sealed; it is empty while none has to.
    """

    def __init__(self, auth_type: int, level: int, accounts: Sequence[UnsealingAccount]) -> None:
        self.auth_type = auth_type
        self.level = level
        self.account = ""
        self.why = "no account was given"
        self._accounts = accounts
        self._challenge: bytes | None = None
        self._ticket_key: SessionKey | None = None
        self._of_client: SessionProtection | None = None
        self._of_server: SessionProtection | None = None
        self._begun: set[bool] = set()

    def token(self, value: bytes) -> None:
        """A token of the handshake, from either side."""
        if self.auth_type not in _TYPES:
            self.why = f"security provider {self.auth_type} cannot be unsealed"
            return
        try:
            if not self._kerberos(value):
                self._ntlm(value)
        except DecodeError as error:
            self.why = error.reason

    def _ntlm(self, value: bytes) -> None:
        kind, message = find_message(value)
        if kind == CHALLENGE:
            self._challenge = server_challenge(message)
        elif kind == AUTHENTICATE:
            self._authenticated(read_authenticate(message))

    def _authenticated(self, message: Authenticate) -> None:
        self.account = "ANONYMOUS LOGON" if is_anonymous(message) else message.account
        if self._challenge is None:
            self.why = "the server's challenge was not captured"
            return
        key = session_key(message, self._challenge, self._accounts)
        if key is None:
            if self._accounts:
                self.why = f"no account that was given is that of {self.account}"
            return
        # To read what one side sends, the listener takes the place of the other side.
        self._of_client = NtlmProtection(message.flags, key, ProtectionDirection.SERVER)
        self._of_server = self._of_client
        self.why = ""
        if message.flags & NegotiateFlags.NTLMSSP_NEGOTIATE_EXTENDED_SESSIONSECURITY:
            self._of_server = NtlmProtection(message.flags, key, ProtectionDirection.CLIENT)

    def _kerberos(self, value: bytes) -> bool:
        """The last subkey that a side chose is the key, else that of the ticket."""
        kind, message = kerberos_keys.find_message(value)
        if kind == kerberos_keys.REQUEST:
            opened = open_request(message, self._accounts)
            self.account, self._ticket_key = opened.client, opened.ticket_key
            self._under(opened.subkey or opened.ticket_key)
            self.why = ""
        elif kind == kerberos_keys.REPLY and self._ticket_key is not None:
            subkey = subkey_of_reply(message, self._ticket_key)
            if subkey is not None:
                self._under(subkey)
        return kind != 0

    def _under(self, key: SessionKey) -> None:
        self._of_client = self._of_server = messages_under(key)

    @property
    def opens(self) -> bool:
        """Whether sealed messages can be read."""
        return self._of_client is not None

    def gap(self) -> None:
        """Octets were not captured: NTLM's key stream and numbers have gone on without us."""
        if self.opens and self._ticket_key is None:
            self._lost("octets before it were not captured")

    def _lost(self, why: str) -> None:
        """What follows cannot be read."""
        self._of_client = self._of_server = None
        self.why = why

    def unseal(
        self, from_client: bool, head: bytes, body: bytes, tail: bytes, signature: bytes
    ) -> bytes | None:
        """The body in clear; None if it cannot be read, and `why` says the reason."""
        messages = self._of_client if from_client else self._of_server
        if messages is None:
            return None
        self._begin(from_client, signature)
        try:
            return messages.unseal(head, body, tail, signature)
        except DecodeError as error:
            self._failed(error.reason)
            return None

    def verify(
        self, from_client: bool, head: bytes, body: bytes, tail: bytes, signature: bytes
    ) -> str:
        """What is wrong with a signed message; empty if it is right, or cannot be checked."""
        messages = self._of_client if from_client else self._of_server
        if messages is None or not self._follows_order:
            return ""
        self._begin(from_client, signature)
        try:
            messages.verify(head, body, tail, signature)
        except DecodeError as error:
            self._failed(error.reason)
            return error.reason
        return ""

    def _failed(self, why: str) -> None:
        if self._ticket_key is None:
            self._lost(why)
        self.why = why

    @property
    def _follows_order(self) -> bool:
        """Whether a signature depends on nothing that the other side sends meanwhile."""
        return self._ticket_key is not None or self._of_client is not self._of_server

    def _begin(self, from_client: bool, signature: bytes) -> None:
        """A negotiation that signed its mechanisms has used the first sequence number."""
        protection = self._of_client if from_client else self._of_server
        if from_client in self._begun or not isinstance(protection, NtlmProtection):
            return
        self._begun.add(from_client)
        if len(signature) != SIGNATURE_LENGTH or self._of_client is self._of_server:
            return
        if _SEQUENCE.unpack_from(signature, 12)[0] == 1:
            # The check fails on purpose: only the count of messages goes on.
            with suppress(DecodeError):
                protection.verify(b"", b"", b"", bytes(SIGNATURE_LENGTH))
            protection.restart_ciphers()
