"""Security contexts of a connection: the peer's identity, and the protection of its PDUs.

A provider makes handshakes (`Handshake`), a finished handshake yields an identity and a
`MessageProtection`; this module applies them to PDUs as [MS-RPCE] 3.3.1.5.2.2 says, for servers and
clients alike. Nothing here does input or output.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from rpcqm.base.errors import DecodeError, FaultStatus, RpcFault
from rpcqm.base.identity import ANONYMOUS, Identity
from rpcqm.rpc.constants import RPC_VERS, AuthenticationLevel, AuthenticationType
from rpcqm.rpc.pdu import HEADER, HEADER_LENGTH, LITTLE_ENDIAN, TRAILER, TRAILER_LENGTH
from rpcqm.rpc.security.logon import NO_CLAIM, LogonClaim

ALIGNMENT = 16
"""The multiple to which request and response bodies are padded ([MS-RPCE] 2.2.2.11)."""

NONE = AuthenticationLevel.RPC_C_AUTHN_LEVEL_NONE
CONNECT = AuthenticationLevel.RPC_C_AUTHN_LEVEL_CONNECT
PKT = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT
PKT_INTEGRITY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY
PKT_PRIVACY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY

_LEVELS: dict[int, AuthenticationLevel] = {
    AuthenticationLevel.RPC_C_AUTHN_LEVEL_CONNECT: CONNECT,
    AuthenticationLevel.RPC_C_AUTHN_LEVEL_CALL: PKT,
    AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT: PKT,
    AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY: PKT_INTEGRITY,
    AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY: PKT_PRIVACY,
}


def normalized_level(auth_level: int) -> AuthenticationLevel | None:
    """The level that is applied for the one in a trailer; CALL means PKT; None is no level."""
    return _LEVELS.get(auth_level)


class AuthenticationError(Exception):
    """A handshake that failed; the text says why and holds no secret."""


class ProtectionError(AuthenticationError):
    """A handshake that proved who the peer is, but not enough for the level that was asked."""


class MessageProtection(Protocol):
    """The protection of messages by a finished handshake; NtlmProtection explains the segments."""

    @property
    def signature_length(self) -> int: ...

    @property
    def dummy_signature(self) -> bytes | None:
        """The octets that a peer may send instead of a signature below PKT_INTEGRITY."""
        ...

    def sign_headers(self) -> None:
        """Let signatures cover the segments `head` and `tail` as well from now on."""
        ...

    def restart_ciphers(self) -> None:
        """Restart the key streams, which signing a negotiation's list of mechanisms has used."""
        ...

    def sign(self, head: bytes, body: bytes, tail: bytes) -> bytes: ...

    def seal(self, head: bytes, body: bytes, tail: bytes) -> tuple[bytes, bytes]: ...

    def verify(self, head: bytes, body: bytes, tail: bytes, signature: bytes) -> None: ...

    def unseal(self, head: bytes, sealed: bytes, tail: bytes, signature: bytes) -> bytes: ...


class Handshake(Protocol):
    """One authentication in progress, on either side."""

    @property
    def complete(self) -> bool: ...

    @property
    def claim(self) -> LogonClaim:
        """The identity that the peer claims, as far as it has claimed one."""
        ...

    def step(self, token: bytes) -> bytes:
        """The next token for the peer, empty when there is none; raises AuthenticationError."""
        ...

    def protection(self, level: AuthenticationLevel) -> MessageProtection:
        """The protection of messages; raises ProtectionError if `level` needs more than agreed."""
        ...

    def peer(self) -> Identity:
        """The identity that the peer has proved."""
        ...


class SecurityProvider(Protocol):
    """A row of a server's table of security providers ([MS-RPCE] 3.1.3.1.1)."""

    def accept(self, level: AuthenticationLevel, address: str = "") -> Handshake:
        """A new handshake with a client; `address` is its host, as a LogonThrottle has it."""
        ...

    @property
    def principal_name(self) -> str:
        """What rpc_mgmt_inq_princ_name answers for this provider."""
        ...


@dataclass(frozen=True, slots=True)
class Authentication:
    """How a client authenticates: a provider's number, a level, and a handshake to make.

    `odd_legs` says that the last leg is an rpc_auth_3 ([MS-RPCE] 2.2.1.1.7).
    """

    auth_type: int
    level: AuthenticationLevel
    begin: Callable[[], Handshake]
    odd_legs: bool = True


class Credentials(Protocol):
    """The credentials of a client, in a form of their own; `host` is the server's name."""

    def authentication(self, level: AuthenticationLevel, host: str = "") -> Authentication: ...


SecurityProviders = Mapping[int, SecurityProvider]


class SecurityContext:
    """One security context of one connection ([MS-RPCE] 3.3.1.1.2).

    Calls made under it have `assured_level` and `identity`. The former is the negotiated `level`,
    except that protection with a publicly known key ([MS-NLMP] 5.1) is worth nothing. Until the
    handshake is complete the identity is ANONYMOUS and nothing can be protected. `claim` is the
    identity that the peer claimed, whether the handshake succeeded or failed. Access checks store
    in `granted` the permissions by which they let a call of this context through.
    """

    __slots__ = (
        "_handshake",
        "_protection",
        "_signs_headers",
        "_unsigned",
        "assured_level",
        "auth_type",
        "claim",
        "context_id",
        "granted",
        "identity",
        "level",
        "refused",
        "signature_length",
        "wire_level",
    )

    def __init__(
        self,
        auth_type: int,
        level: AuthenticationLevel,
        context_id: int,
        handshake: Handshake | None = None,
        *,
        identity: Identity = ANONYMOUS,
        wire_level: int | None = None,
    ) -> None:
        self.auth_type = auth_type
        self.level = self.assured_level = level
        self.wire_level = level if wire_level is None else wire_level
        self.context_id = context_id
        self.identity = identity
        self.claim = NO_CLAIM
        self.refused = False
        self.granted: object = None
        self.signature_length = 0
        self._handshake = handshake
        self._signs_headers = False
        self._protection: MessageProtection | None = None
        self._unsigned: SecurityContext | None = None

    @property
    def established(self) -> bool:
        return self._handshake is None and not self.refused

    def step(self, token: bytes) -> bytes:
        """Feed the peer's token; the answer is empty when there is none.

        Raises AuthenticationError, after which the context is refused for good.
        """
        if self._handshake is None:
            raise AuthenticationError("the handshake is over")
        handshake = self._handshake
        try:
            answer = handshake.step(token)
            if handshake.complete:
                self._finish(handshake)
        except AuthenticationError:
            self._handshake, self.refused = None, True
            raise
        finally:
            self.claim = handshake.claim
        return answer

    def _finish(self, handshake: Handshake) -> None:
        self.identity = handshake.peer()
        if self.identity.is_anonymous:
            self.assured_level = NONE
        if self.level >= PKT:
            self._protection = handshake.protection(self.level)
            self.signature_length = self._protection.signature_length
            if self._signs_headers:
                self._protection.sign_headers()
        self._handshake = None

    def sign_headers(self) -> None:
        """Let signatures cover PDU headers and trailers, which a connection agrees on for good."""
        self._signs_headers = True
        if self._protection is not None:
            self._protection.sign_headers()

    @property
    def unsigned(self) -> "SecurityContext":
        """The context of the same peer without protection: of a PKT caller that does not sign."""
        if self._unsigned is None:
            self._unsigned = SecurityContext(
                self.auth_type, CONNECT, self.context_id, identity=self.identity
            )
            self._unsigned.assured_level = min(CONNECT, self.assured_level)
        return self._unsigned

    def body_space(self, fragment: int, fixed: int) -> int:
        """The octets of stub data that fit into a fragment whose header takes `fixed` octets."""
        if self._protection is None:
            return fragment - fixed
        room = fragment - fixed - TRAILER_LENGTH - self.signature_length
        return room - room % ALIGNMENT

    def protect(
        self, ptype: int, flags: int, call_id: int, fixed: bytes, stub: bytes, minor: int = 0
    ) -> bytes:
        """A whole PDU around one fragment of stub data; `fixed` follows the common header."""
        if self._protection is None:
            length = HEADER_LENGTH + len(fixed) + len(stub)
            head = HEADER.pack(RPC_VERS, minor, ptype, flags, LITTLE_ENDIAN, length, 0, call_id)
            return head + fixed + stub
        padding = -len(stub) % ALIGNMENT
        body = stub + bytes(padding)
        length = HEADER_LENGTH + len(fixed) + len(body) + TRAILER_LENGTH + self.signature_length
        tail = TRAILER.pack(self.auth_type, self.wire_level, padding, 0, self.context_id)
        head = (
            HEADER.pack(
                RPC_VERS,
                minor,
                ptype,
                flags,
                LITTLE_ENDIAN,
                length,
                self.signature_length,
                call_id,
            )
            + fixed
        )
        if self.level == PKT_PRIVACY:
            body, signature = self._protection.seal(head, body, tail)
        else:
            signature = self._protection.sign(head, body, tail)
        return b"".join((head, body, tail, signature))

    def unprotect(self, pdu: bytes, start: int, auth_length: int) -> bytes:
        """The stub data of a PDU with a trailer; `start` is where its body begins.

        Raises RpcFault: nca_s_proto_error for impossible padding, RPC_S_SEC_PKG_ERROR for a
        signature that does not match.
        """
        end = len(pdu) - auth_length - TRAILER_LENGTH
        padding = pdu[end + 2]
        if end - padding < start:
            raise RpcFault(FaultStatus.nca_s_proto_error, "more padding than body")
        body = pdu[start:end]
        if self._protection is not None:
            body = self._verified(pdu, start, end, body)
        return body[: len(body) - padding] if padding else body

    def _verified(self, pdu: bytes, start: int, end: int, body: bytes) -> bytes:
        assert self._protection is not None
        tail, token = pdu[end : end + TRAILER_LENGTH], pdu[end + TRAILER_LENGTH :]
        try:
            if self.level == PKT_PRIVACY:
                return self._protection.unseal(pdu[:start], body, tail, token)
            self._protection.verify(pdu[:start], body, tail, token)
        except DecodeError as error:
            raise RpcFault(FaultStatus.RPC_S_SEC_PKG_ERROR, error.reason) from error
        return body

    def is_unsigned(self, pdu: bytes, auth_length: int) -> bool:
        """Whether a PKT caller put the dummy token of ALWAYS_SIGN in a signature's place."""
        return (
            self.level == PKT
            and self._protection is not None
            and pdu[len(pdu) - auth_length :] == self._protection.dummy_signature
        )


def unauthenticated(identity: Identity, level: AuthenticationLevel) -> SecurityContext:
    """The security of calls without a trailer: `identity` and `level` come from the transport."""
    return SecurityContext(
        AuthenticationType.RPC_C_AUTHN_NONE, level, 0, identity=identity, wire_level=NONE
    )
