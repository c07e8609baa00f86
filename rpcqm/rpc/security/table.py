"""The security contexts of one connection, server side ([MS-RPCE] 3.3.1.5.2, 3.3.1.5.4)."""

from collections.abc import Callable

from rpcqm.base.errors import FaultStatus, RpcFault
from rpcqm.base.identity import ANONYMOUS
from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType, RejectReason
from rpcqm.rpc.pdu import (
    BIG_TRAILER,
    HEADER_LENGTH,
    TRAILER,
    TRAILER_LENGTH,
    SecurityTrailer,
)
from rpcqm.rpc.security.context import (
    CONNECT,
    PKT,
    AuthenticationError,
    Handshake,
    ProtectionError,
    SecurityContext,
    SecurityProviders,
    normalized_level,
)
from rpcqm.rpc.security.logon import NO_CLAIM, LogonClaim

_AUTHENTICATE = b"NTLMSSP\0\3\0\0\0"
"""How an AUTHENTICATE_MESSAGE begins ([MS-NLMP] 2.2.1.3)."""


class SecurityRefusal(Exception):
    """An authentication that is refused: by bind_nak with `reason`, later by a fault.

    `claim` is the identity that the peer claimed, `level` the authentication level that it asked
    for.
    """

    def __init__(
        self, text: str, reason: RejectReason, status: FaultStatus, claim: LogonClaim = NO_CLAIM
    ) -> None:
        super().__init__(text)
        self.reason = reason
        self.status = status
        self.claim = claim
        self.level: AuthenticationLevel | None = None


class HandshakeUnfinished(RpcFault):
    """A request was made under a handshake that is not complete."""

    def __init__(self) -> None:
        super().__init__(FaultStatus.nca_s_proto_error, "the handshake is not over")


def _denied(
    text: str, reason: RejectReason = RejectReason.invalid_checksum, claim: LogonClaim = NO_CLAIM
) -> SecurityRefusal:
    return SecurityRefusal(text, reason, FaultStatus.RPC_S_ACCESS_DENIED, claim)


def _nothing(context: SecurityContext) -> None:
    """Ignore a logon: the default of `on_logon`."""


def _never(context: SecurityContext) -> bool:
    """The default of `in_use`: nothing is in flight."""
    return False


class SecurityTable:
    """The security contexts of a connection, by auth_context_id.

    `base` is the security of calls on a connection without authentication; `authenticated` says
    that a context exists. `in_use` says whether a call in flight uses a context; with `replaces` a
    further context takes the place of an unused one. `address` is the client's, for the throttle
    that slows its attempts down; `on_logon` is called for every handshake that has succeeded.
    """

    __slots__ = (
        "_address",
        "_contexts",
        "_default",
        "_limit",
        "_on_logon",
        "_providers",
        "authenticated",
        "base",
        "in_use",
        "replaces",
        "signs_headers",
    )

    def __init__(
        self,
        base: SecurityContext,
        providers: SecurityProviders,
        limit: int,
        address: str = "",
        on_logon: Callable[[SecurityContext], None] = _nothing,
    ) -> None:
        self.base = base
        self._address = address
        self._on_logon = on_logon
        self._default = base
        self.authenticated = False
        self._providers = providers
        self._limit = limit
        self.signs_headers = False
        self._contexts: dict[int, SecurityContext] = {}
        self.in_use: Callable[[SecurityContext], bool] = _never
        self.replaces = False

    @property
    def unfinished(self) -> SecurityContext | None:
        """The oldest handshake that is not complete; None if there is none."""
        for context in self._contexts.values():
            if not (context.established or context.refused):
                return context
        return None

    @property
    def proved(self) -> bool:
        """Whether the client has an identity, from a handshake or from the kernel on a local
        socket."""
        return any(
            context.identity != ANONYMOUS
            for context in (self.base, *self._contexts.values())
            if context.established
        )

    def callers(self) -> tuple[str, ...]:
        """The names of the accounts that may call over this connection."""
        found = (self.base, *self._contexts.values())
        names = [each.identity.name for each in found if each.established]
        anonymous = ANONYMOUS.name
        return tuple(dict.fromkeys(name for name in names if name != anonymous))

    def has_caller(self, sid: str) -> bool:
        """Whether an account is among those that may call over this connection."""
        return any(
            context.identity.sid == sid
            for context in (self.base, *self._contexts.values())
            if context.established
        )

    def sign_headers(self) -> None:
        """Sign headers from now on: the connection has agreed on PFC_SUPPORT_HEADER_SIGN."""
        if not self.signs_headers:
            self.signs_headers = True
            for context in self._contexts.values():
                context.sign_headers()

    def bind(self, trailer: SecurityTrailer) -> bytes:
        """The first leg in a bind: its context is the connection's default."""
        context = self._begin(trailer)
        self._default = context
        return self._step(context, trailer)

    def check_type(self, trailer: SecurityTrailer) -> None:
        """Refuse a PDU that changes the authentication type."""
        if trailer.auth_type == AuthenticationType.RPC_C_AUTHN_NONE:
            raise _denied("the authentication type was taken back")

    def alter(self, trailer: SecurityTrailer) -> bytes:
        """A leg in an alter_context: of a handshake in progress, or the first of a new one."""
        context = self._contexts.get(trailer.auth_context_id)
        if context is None:
            if len(self._contexts) >= self._limit:
                self._drop_oldest()
            context = self._begin(trailer)
        self._check_unchanged(context, trailer)
        return b"" if context.established else self._step(context, trailer)

    def _drop_oldest(self) -> None:
        """Forget the oldest unused context: clients of COM objects make many (G251)."""
        for identifier, context in self._contexts.items():
            over = context.established or context.refused
            useless = over and context is not self._default and not self.in_use(context)
            if self.replaces and useless:
                del self._contexts[identifier]
                return
        raise SecurityRefusal(
            "too many security contexts",
            RejectReason.LOCAL_LIMIT_EXCEEDED,
            FaultStatus.nca_s_proto_error,
        )

    def finish(self, trailer: SecurityTrailer) -> None:
        """The last leg, in an rpc_auth_3; a failure shows at the first request."""
        context = self._contexts.get(trailer.auth_context_id)
        if context is None or context.established or context.refused:
            raise RpcFault(FaultStatus.nca_s_proto_error, "rpc_auth_3 without a handshake")
        try:
            self.check_type(trailer)
            self._check_unchanged(context, trailer)
        except SecurityRefusal:
            context.refused = True
            raise
        if self._step(context, trailer) or not context.established:
            context.refused = True
            raise _denied("the handshake needs more than three legs")

    def _begin(self, trailer: SecurityTrailer) -> SecurityContext:
        level = normalized_level(trailer.auth_level)
        if level is None:
            raise _denied(
                f"authentication level {trailer.auth_level}", RejectReason.REASON_NOT_SPECIFIED
            )
        handshake = self._handshake(trailer, level)
        context = SecurityContext(
            trailer.auth_type,
            level,
            trailer.auth_context_id,
            handshake,
            wire_level=trailer.auth_level,
        )
        if self.signs_headers:
            context.sign_headers()
        self._contexts[trailer.auth_context_id] = context
        self.authenticated = True
        return context

    def _handshake(self, trailer: SecurityTrailer, level: AuthenticationLevel) -> Handshake:
        """The handshake that answers the caller's legs. Raises SecurityRefusal with the level."""
        provider = self._providers.get(trailer.auth_type)
        try:
            if provider is None:
                reason = RejectReason.authentication_type_not_recognized
                raise _denied(f"authentication type {trailer.auth_type}", reason)
            return provider.accept(level, self._address)
        except AuthenticationError as error:
            refusal = _denied(str(error))
            refusal.level = level
            raise refusal from error
        except SecurityRefusal as error:
            error.level = level
            raise

    def _step(self, context: SecurityContext, trailer: SecurityTrailer) -> bytes:
        try:
            return self._advance(context, trailer)
        except SecurityRefusal as error:
            error.level = context.level
            raise

    def _advance(self, context: SecurityContext, trailer: SecurityTrailer) -> bytes:
        try:
            answer = context.step(trailer.auth_value)
        except ProtectionError as error:
            status, reason = FaultStatus.RPC_S_SEC_PKG_ERROR, RejectReason.invalid_checksum
            raise SecurityRefusal(str(error), reason, status, context.claim) from error
        except AuthenticationError as error:
            raise _denied(str(error), claim=context.claim) from error
        if context.established and context.identity.has_ended:
            context.refused = True
            raise _denied("the account has ended since it was proved", claim=context.claim)
        if context.established:
            self._on_logon(context)
        return answer

    def _check_unchanged(self, context: SecurityContext, trailer: SecurityTrailer) -> None:
        if trailer.auth_type != context.auth_type:
            raise SecurityRefusal(
                "the authentication type changed",
                RejectReason.invalid_checksum,
                FaultStatus.RPC_S_SEC_PKG_ERROR,
            )
        over = context.refused or (context.established and not _is_last_leg(trailer))
        if trailer.auth_level != context.wire_level or over:
            raise _denied("the authentication level changed, or the handshake is over")

    def of_request(self, pdu: bytes, auth_length: int, big_endian: bool) -> SecurityContext:
        """The context a request is made under.

        Raises RpcFault: RPC_S_ACCESS_DENIED for a context that is unknown, refused, or not the
        one that was negotiated; nca_s_proto_error for a handshake that is not over.
        """
        if auth_length == 0:
            return self._of_plain_request()
        end = len(pdu) - auth_length - TRAILER_LENGTH
        if end < HEADER_LENGTH:
            raise RpcFault(FaultStatus.nca_s_proto_error, "a token longer than its PDU")
        layout = BIG_TRAILER if big_endian else TRAILER
        auth_type, auth_level, _, _, context_id = layout.unpack_from(pdu, end)
        context = self._contexts.get(context_id)
        if context is None or auth_type != context.auth_type or auth_level != context.wire_level:
            raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED, "no such security context")
        _check_usable(context)
        return context.unsigned if context.is_unsigned(pdu, auth_length) else context

    def _of_plain_request(self) -> SecurityContext:
        """The security context of a request without a trailer ([MS-RPCE] 3.3.1.5.4).

        That is the only context, unless it came after the bind and protects more than CONNECT.
        Where a connection has contexts of several callers, a plain request belongs to none of them.
        """
        context = self._default
        if context is self.base:
            context = next(iter(self._contexts.values()), context)
            if context.level != CONNECT or not context.established:
                return self.base
        established = (each for each in self._contexts.values() if each.established)
        if any(each.identity != context.identity for each in established):
            return self.base
        _check_usable(context)
        if context.level == CONNECT:
            return context
        if context.level == PKT:
            return context.unsigned
        raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED, "a request without its signature")


def _is_last_leg(trailer: SecurityTrailer) -> bool:
    """Whether a token is NTLM's last; node-dcom repeats it, empty, with further interfaces (G251).

    A repeated one is ignored: nobody is logged on anew.
    """
    ntlm = trailer.auth_type == AuthenticationType.RPC_C_AUTHN_WINNT
    return ntlm and trailer.auth_value.startswith(_AUTHENTICATE)


def _check_usable(context: SecurityContext) -> None:
    if context.refused:
        raise RpcFault(FaultStatus.RPC_S_ACCESS_DENIED, "the authentication had failed")
    if not context.established:
        raise HandshakeUnfinished
