"""Kerberos security contexts by GSS-API, in its DCE style ([MS-KILE] 3.4.5, RFC 4121).

A handshake has three legs then, and a sealed message is as long as the message itself: all overhead
of the mechanism is in its token. The package `gssapi` is needed (the extra `kerberos`); nothing
else imports it.
"""

from dataclasses import dataclass, field
from pathlib import Path

import gssapi
from gssapi.exceptions import InvalidTokenError
from gssapi.raw import (
    IOV,
    ChannelBindings,
    GSSError,
    IOVBufferType,
    acquire_cred_with_password,
    get_mic_iov_length,
    inquire_sec_context_by_oid,
    unwrap_iov,
    wrap_iov,
    wrap_iov_length,
)

from rpcqm.base.errors import DecodeError, FaultStatus, RpcFault
from rpcqm.base.identity import ANONYMOUS, Identity
from rpcqm.rpc.constants import AuthenticationLevel, AuthenticationType
from rpcqm.rpc.security.context import (
    CONNECT,
    PKT,
    PKT_PRIVACY,
    Authentication,
    AuthenticationError,
    ProtectionError,
    normalized_level,
)
from rpcqm.rpc.security.logon import NO_CLAIM, LogonClaim, claimed, domain_of
from rpcqm.rpc.security.ntlm import AccountDirectory
from rpcqm.rpc.security.privileges import logon_information

_Flag = gssapi.RequirementFlag
_SIGNED, _DATA, _TOKEN = IOVBufferType.sign_only, IOVBufferType.data, IOVBufferType.header


_SESSION_KEY = gssapi.OID.from_int_seq("1.2.840.113554.1.2.2.5.5")
"""Asks for the session key and its kind, an object identifier that ends in the number."""

_ORDERED = frozenset((_Flag.replay_detection, _Flag.out_of_sequence_detection))
"""Without these a context takes messages as often as they come, and in any order (G128)."""

_RC4_HMAC = b"\x17"
_RC4_SIGNATURE = 37
"""A signature with its frame, which only this old kind of key has (RFC 4757, 7.2)."""


class KerberosProtection:
    """Signs or seals with the session key of a Kerberos context, and checks what the peer sent.

    The context itself refuses messages that come twice or out of order. Without `sign_headers` only
    the body of a PDU is covered.
    """

    dummy_signature = None

    def __init__(self, context: gssapi.SecurityContext, level: AuthenticationLevel) -> None:
        self._context = context
        self._whole = False
        self.signature_length = _token_length(context, level)

    def sign_headers(self) -> None:
        self._whole = True

    def restart_ciphers(self) -> None:
        """Nothing: every message has a key stream of its own."""

    def sign(self, head: bytes, body: bytes, tail: bytes) -> bytes:
        """The signature of a message in clear; raises RpcFault if the context has expired."""
        message = head + body + tail if self._whole else body
        try:
            signature: bytes = self._context.get_signature(message)
        except GSSError as error:
            raise RpcFault(FaultStatus.RPC_S_SEC_PKG_ERROR, _told(error)) from error
        return signature

    def verify(self, head: bytes, body: bytes, tail: bytes, signature: bytes) -> None:
        """Check a message that came in clear; raises DecodeError if the signature is wrong."""
        message = head + body + tail if self._whole else body
        try:
            self._context.verify_signature(message, signature)
        except GSSError as error:
            raise DecodeError(_told(error)) from error

    def seal(self, head: bytes, body: bytes, tail: bytes) -> tuple[bytes, bytes]:
        """The sealed body and the token of a message; raises RpcFault like `sign`."""
        iov = self._segments(head, body, tail, (_TOKEN, True))
        try:
            wrap_iov(self._context, iov, confidential=True)
        except GSSError as error:
            raise RpcFault(FaultStatus.RPC_S_SEC_PKG_ERROR, _told(error)) from error
        return iov[1].value, iov[3].value

    def unseal(self, head: bytes, sealed: bytes, tail: bytes, signature: bytes) -> bytes:
        """The body of a sealed message; raises DecodeError if it was changed."""
        iov = self._segments(head, sealed, tail, (_TOKEN, False, signature))
        try:
            if not unwrap_iov(self._context, iov).encrypted:
                raise DecodeError("Kerberos: the message is not sealed")
        except GSSError as error:
            raise DecodeError(_told(error)) from error
        body: bytes = iov[1].value
        return body

    def _segments(self, head: bytes, body: bytes, tail: bytes, token: tuple[object, ...]) -> IOV:
        if not self._whole:
            head = tail = b""
        segments = (_SIGNED, False, head), (_DATA, False, body), (_SIGNED, False, tail), token
        return IOV(*segments, std_layout=False)


def _token_length(context: gssapi.SecurityContext, level: AuthenticationLevel) -> int:
    """How long tokens are: the same for bodies of every length that is a multiple of 16."""
    body = (_DATA, False, bytes(16))
    if level == PKT_PRIVACY:
        iov = IOV(body, (_TOKEN, True), std_layout=False)
        wrap_iov_length(context, iov, confidential=True)
    elif inquire_sec_context_by_oid(context, _SESSION_KEY)[1].endswith(_RC4_HMAC):
        return _RC4_SIGNATURE
    else:
        iov = IOV(body, (IOVBufferType.mic_token, True), std_layout=False)
        get_mic_iov_length(context, iov)
    return len(iov[1].value)


def _told(error: GSSError) -> str:
    """What went wrong in the mechanism's words, or in GSS-API's where it has none."""
    words = [each for each in error.get_all_statuses(error.min_code, False) if each != "Success"]
    return f"Kerberos: {'; '.join(words or error.get_all_statuses(error.maj_code, True))}"


class _KerberosHandshake:
    """What both sides of a handshake share."""

    def __init__(self, context: gssapi.SecurityContext) -> None:
        self._context = context

    @property
    def complete(self) -> bool:
        return bool(self._context.complete)

    @property
    def claim(self) -> LogonClaim:
        return NO_CLAIM

    def step(self, token: bytes) -> bytes:
        try:
            return self._advance(token)
        except GSSError as error:
            raise AuthenticationError(_told(error)) from error

    def _advance(self, token: bytes) -> bytes:
        return self._context.step(token or None) or b""

    def protection(self, level: AuthenticationLevel) -> KerberosProtection:
        if level == PKT_PRIVACY and _Flag.confidentiality not in self._context.actual_flags:
            raise ProtectionError("Kerberos: sealing was not negotiated")
        if level >= PKT and not _ORDERED.issubset(self._context.actual_flags):
            raise ProtectionError("Kerberos: replays would not be noticed")
        return KerberosProtection(self._context, level)


class KerberosAcceptor(_KerberosHandshake):
    """A handshake on the server's side."""

    signs_mechanisms = False
    """A client need not sign the list of mechanisms when Kerberos is its first."""

    def __init__(self, provider: "KerberosProvider") -> None:
        super().__init__(_context(creds=provider.recorded, usage="accept"))
        self._provider = provider
        self._first = True

    @property
    def claim(self) -> LogonClaim:
        return _claim(self._context)

    def step(self, token: bytes) -> bytes:
        if not self._first:
            return super().step(token)
        self._first = False
        request = _without_frame(token)
        if request != token:
            self._context = _context(creds=self._provider.unframed, usage="accept")
        try:
            return self._advance(request)
        except InvalidTokenError as error:
            if request == token:
                raise AuthenticationError(_told(error)) from error
        except GSSError as error:
            raise AuthenticationError(_told(error)) from error
        self._context = _context(creds=self._provider.recorded, usage="accept")
        return super().step(token)

    def peer(self) -> Identity:
        """The account that has the name of the client's principal; other realms have none."""
        return _account(self._provider.accounts, self._context, self._provider.realm)


def _claim(context: gssapi.SecurityContext) -> LogonClaim:
    if not context.complete:
        return NO_CLAIM
    name, _, realm = str(context.initiator_name).rpartition("@")
    return claimed(name, realm)


def _account(
    accounts: AccountDirectory, context: gssapi.SecurityContext, own_realm: str
) -> Identity:
    """Who a client's principal is here; raises AuthenticationError.

    An account of the domain is who its controller says in the ticket, never who has that name
    here (G770). A realm is the whole of its name: the library writes an @ in it with a backslash.
    """
    principal = str(context.initiator_name)
    name, _, realm = principal.rpartition("@")
    identity, domain = None, domain_of(accounts)
    if realm == own_realm and not name.endswith("\\") and "/" not in name:
        if domain is None:
            identity = accounts.identity(name, realm)
        else:
            identity = domain.log_on(logon_information(context.initiator_name))
    if identity is None:
        raise AuthenticationError(f"Kerberos: {principal} may not log on")
    return identity


_REQUEST = b"\x01\0\x6e"
"""Where a frame ends and an AP-REQ begins: the token's kind, and the request's tag."""


def _without_frame(token: bytes) -> bytes:
    """An application request without the frame that other styles have around it.

    In the DCE style there is none; impacket sends it all the same, and Windows takes that.
    """
    frame = token[:32].find(_REQUEST)
    return token[frame + 2 :] if token[:1] == b"\x60" and frame >= 0 else token


_CHANNEL_BOUND = 2048
"""GSS_C_CHANNEL_BOUND_FLAG, which the package has no name for."""


class BoundAcceptor(_KerberosHandshake):
    """A handshake of one token and one answer, as HTTP has it (RFC 4559).

    A client that has bound its token has bound it to `channel`, or is refused; None takes all.
    """

    signs_mechanisms = False

    def __init__(self, provider: "HttpKerberosProvider", channel: bytes | None) -> None:
        bindings = None if channel is None else ChannelBindings(application_data=channel)
        super().__init__(
            _context(creds=provider.credentials, usage="accept", channel_bindings=bindings)
        )
        self._accounts = provider.accounts

    @property
    def bound(self) -> bool:
        """Whether the client has bound its token to the channel."""
        return bool(int(self._context.actual_flags) & _CHANNEL_BOUND)

    @property
    def claim(self) -> LogonClaim:
        return _claim(self._context)

    def peer(self) -> Identity:
        """The account that has the name of the client's principal, in the service's own realm."""
        realm = str(self._context.target_name).rpartition("@")[2]
        return _account(self._accounts, self._context, realm)


class HttpKerberosProvider:
    """What tickets for the services HTTP/… are accepted with; raises AuthenticationError.

    Used requests are recorded where those of KerberosProvider are.
    """

    def __init__(self, accounts: AccountDirectory, keytab: Path) -> None:
        self.accounts = accounts
        store = {"keytab": str(keytab), "rcache": _record(accounts)}
        service = gssapi.Name("HTTP", gssapi.NameType.hostbased_service)
        mechanisms = [gssapi.MechType.kerberos]
        try:
            self.credentials = gssapi.Credentials(
                usage="accept", name=service, mechs=mechanisms, store=store
            )
        except GSSError as error:
            raise AuthenticationError(_told(error)) from error

    def accept(self, channel: bytes | None) -> BoundAcceptor:
        """A new handshake with a client."""
        return BoundAcceptor(self, channel)


RECORD_NAME = "kerberos-requests"
"""The file of requests that have been used."""


def _record(accounts: AccountDirectory) -> str:
    return f"file2:{accounts.user_file.with_name(RECORD_NAME)}"


class KerberosProvider:
    """The row of a server's table of security providers for RPC_C_AUTHN_GSS_KERBEROS.

    Tickets are decrypted by the keys in `keytab`: those of `principal`, or all of them. Raises
    AuthenticationError when there are none.

    A record of requests is kept beside the accounts, whatever the environment says, so that none
    is good twice. Only those out of a frame, which some clients of the DCE style send, are not
    recorded: the request may be tried again with its frame, and the third leg proves that it is
    not an old one.
    """

    def __init__(self, accounts: AccountDirectory, keytab: Path, principal: str = "") -> None:
        self.accounts = accounts
        try:
            record = _record(accounts)
            self.recorded = _acceptor_credentials(principal, keytab=str(keytab), rcache=record)
            self.unframed = _acceptor_credentials(principal, keytab=str(keytab), rcache="none:")
            self.principal_name = str(self.recorded.name)
        except GSSError as error:
            raise AuthenticationError(_told(error)) from error
        self.realm = self.principal_name.rpartition("@")[2]

    def accept(self, level: AuthenticationLevel, address: str = "") -> KerberosAcceptor:
        return KerberosAcceptor(self)


def _acceptor_credentials(principal: str, **store: str) -> gssapi.Credentials:
    name = _name(principal) if principal else None
    mechs = [gssapi.MechType.kerberos]
    return gssapi.Credentials(usage="accept", name=name, mechs=mechs, store=store)


@dataclass(frozen=True, slots=True)
class KerberosCredentials:
    """What a client logs on with: a ticket cache (the environment's by default) or a password.

    `target` is the server's principal, for example host/server@REALM; without one it is host/
    and the name that the client connects to.
    """

    target: str = ""
    principal: str = ""
    password: str = field(default="", repr=False)
    ccache: str = ""

    def authentication(self, level: AuthenticationLevel, host: str = "") -> Authentication:
        """How to authenticate by Kerberos at a level."""
        level = normalized_level(level) or CONNECT
        target = self.target or f"host/{host}"
        return Authentication(
            AuthenticationType.RPC_C_AUTHN_GSS_KERBEROS,
            level,
            lambda: KerberosInitiator(self, target),
        )

    def acquire(self) -> gssapi.Credentials:
        """The credentials as GSS-API has them; raises GSSError when there are none."""
        name = _name(self.principal) if self.principal else None
        if self.password:
            acquired = acquire_cred_with_password(
                name, self.password.encode(), mechs=[gssapi.MechType.kerberos], usage="initiate"
            )
            return gssapi.Credentials(acquired.creds)
        store = {"ccache": self.ccache} if self.ccache else None
        return gssapi.Credentials(
            usage="initiate", name=name, mechs=[gssapi.MechType.kerberos], store=store
        )


_ASKED = (
    _Flag.dce_style
    | _Flag.mutual_authentication
    | _Flag.integrity
    | _Flag.confidentiality
    | _Flag.replay_detection
    | _Flag.out_of_sequence_detection
)


class KerberosInitiator(_KerberosHandshake):
    """A handshake on the client's side."""

    def __init__(self, credentials: KerberosCredentials, target: str) -> None:
        try:
            context = _context(
                name=_name(target),
                creds=credentials.acquire(),
                flags=_ASKED,
                mech=gssapi.MechType.kerberos,
                usage="initiate",
            )
        except GSSError as error:
            raise AuthenticationError(_told(error)) from error
        super().__init__(context)

    def peer(self) -> Identity:
        return ANONYMOUS  # which account a service has means nothing to a client


def _context(**settings: object) -> gssapi.SecurityContext:
    """A context whose errors come at once, not with what is asked of it next."""
    context = gssapi.SecurityContext(**settings)
    context.__DEFER_STEP_ERRORS__ = False
    return context


def _name(principal: str) -> gssapi.Name:
    return gssapi.Name(principal, gssapi.NameType.kerberos_principal)
