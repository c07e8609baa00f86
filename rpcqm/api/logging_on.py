"""The identity of the caller by HTTP Basic, Bearer or Negotiate, and its address."""

import base64
import binascii
from http import HTTPStatus
from typing import NamedTuple, Protocol

from rpcqm.api.problems import Refusal, bad_request
from rpcqm.base.errors import HResult
from rpcqm.base.identity import Identity
from rpcqm.http import origins
from rpcqm.http.exchange import HttpRequest
from rpcqm.operations.logons import GuessedTooOftenError

Headers = tuple[tuple[str, str], ...]

_BASIC = ("WWW-Authenticate", 'Basic realm="rpcqm", charset="UTF-8"')
_NEGOTIATE = ("WWW-Authenticate", "Negotiate")
_EACH_REQUEST = ("Persistent-Auth", "false")
"""Says that no logon holds for the requests behind it on the same connection."""
_PREFIX = b"tls-server-end-point:"
_NO_CHANNEL = b"none"
"""No channel has this name: without TLS only tokens count that are bound to nothing."""
_DENIED = HResult.MQ_ERROR_ACCESS_DENIED.name


class Accounts(Protocol):
    """Checks the credentials of callers."""

    def log_on(self, name: str, password: str, address: str) -> Identity | None:
        """An account's identity, None if the password is wrong; raises GuessedTooOftenError."""
        ...

    def show_token(self, text: str, address: str) -> Identity | None:
        """The identity for a token, None if it is wrong or expired; raises GuessedTooOftenError."""
        ...

    @property
    def negotiates(self) -> bool:
        """Whether Kerberos is served."""
        ...

    def negotiate(
        self, token: bytes, channel: bytes | None, bound: bool, address: str
    ) -> tuple[Identity, bytes] | None:
        """Who shows a token of Kerberos, with the answer to it; raises GuessedTooOftenError.

        What it is bound to must be `channel`, None takes all; with `bound` it must be bound.
        """
        ...

    def present(self, identity: Identity) -> Identity | None:
        """The identity now of a caller that logged on before, None if the account is removed."""
        ...


class LogonSettings(Protocol):
    """The addresses from which logons come, and whether those by Kerberos are `bound` to TLS."""

    @property
    def trusted_proxy(self) -> str: ...

    @property
    def bound(self) -> bool: ...


class LoggedOn(NamedTuple):
    """The identity of the caller, and the headers of an answer to it."""

    identity: Identity
    headers: Headers = ()


def log_on(request: HttpRequest, accounts: Accounts, settings: LogonSettings) -> LoggedOn:
    """The identity of the caller of a request; raises Refusal."""
    address, secure = origin_of(request, settings.trusted_proxy)
    _check_way(address, secure)
    given = request.header("Authorization")
    if given is None:
        raise _unproved(request, accounts, settings, "log on")
    try:
        proved = _proved(request, accounts, settings, given, address)
    except GuessedTooOftenError as error:
        raise _slowed(error) from None
    if proved is None:
        raise _unproved(request, accounts, settings, "the logon has failed")
    return proved


def show_token(
    request: HttpRequest, token: str, accounts: Accounts, settings: LogonSettings
) -> Identity:
    """The same for a caller with a token that came by no proxy."""
    _check_way(request.peer, request.secure)
    try:
        identity = accounts.show_token(token, request.peer)
    except GuessedTooOftenError as error:
        raise _slowed(error) from None
    if identity is None:
        raise _unproved(request, accounts, settings, "the logon has failed")
    return identity


def _check_way(address: str, secure: bool) -> None:
    if not secure and not origins.is_loopback(address):
        # Before anybody is asked for a password, which would come in clear.
        raise Refusal(HTTPStatus.FORBIDDEN, _DENIED, "logging on from elsewhere needs TLS")


def _slowed(error: GuessedTooOftenError) -> Refusal:
    return Refusal(HTTPStatus.TOO_MANY_REQUESTS, _DENIED, str(error))


def _unproved(
    request: HttpRequest, accounts: Accounts, settings: LogonSettings, why: str
) -> Refusal:
    """The refusal for a caller without a logon, with the possible schemes."""
    challenges: Headers = (_BASIC,)
    by_proxy = _comes_by_proxy(request, settings.trusted_proxy)
    if accounts.negotiates and not (by_proxy and settings.bound):
        challenges = (_NEGOTIATE, _BASIC)
    return Refusal(HTTPStatus.UNAUTHORIZED, _DENIED, why, challenges)


def log_on_again(
    request: HttpRequest, accounts: Accounts, settings: LogonSettings, before: Identity
) -> Identity:
    """The identity of the caller now; a ticket is good once, so its account is checked."""
    if _scheme_of(request.header("Authorization") or "")[0] != "negotiate":
        return log_on(request, accounts, settings).identity
    identity = accounts.present(before)
    if identity is None:
        raise Refusal(HTTPStatus.UNAUTHORIZED, _DENIED, "the account has gone")
    return identity


def _proved(
    request: HttpRequest, accounts: Accounts, settings: LogonSettings, given: str, address: str
) -> LoggedOn | None:
    """The logon that an Authorization header proves, or None."""
    scheme, credentials = _scheme_of(given)
    if scheme == "negotiate":
        return _negotiated(request, accounts, settings, credentials, address)
    identity = None
    if scheme == "bearer":
        identity = accounts.show_token(credentials, address)
    elif scheme == "basic":
        identity = accounts.log_on(*_name_and_password(credentials), address)
    return None if identity is None else LoggedOn(identity)


def _negotiated(
    request: HttpRequest, accounts: Accounts, settings: LogonSettings, text: str, address: str
) -> LoggedOn | None:
    """The logon that a token of Kerberos proves, with our own proof as the answer, or None."""
    by_proxy = _comes_by_proxy(request, settings.trusted_proxy)
    channel: bytes | None = _NO_CHANNEL
    if by_proxy:
        channel = None  # which only the proxy knows
    elif request.channel is not None:
        channel = _PREFIX + request.channel.end_point
    bound = settings.bound and (by_proxy or request.channel is not None)
    done = accounts.negotiate(_octets(text), channel, bound, address)
    if done is None:
        return None
    identity, answer = done
    ours = ("WWW-Authenticate", f"Negotiate {base64.b64encode(answer).decode()}")
    return LoggedOn(identity, (ours, _EACH_REQUEST) if answer else (_EACH_REQUEST,))


def _comes_by_proxy(request: HttpRequest, trusted_proxy: str) -> bool:
    return bool(trusted_proxy) and request.peer == trusted_proxy


def _scheme_of(given: str) -> tuple[str, str]:
    scheme, _, credentials = given.partition(" ")
    return scheme.lower(), credentials.strip()


def origin_of(request: HttpRequest, trusted_proxy: str) -> tuple[str, bool]:
    """The address that a request comes from, and whether it came by TLS; raises Refusal."""
    try:
        return origins.origin_of(request, trusted_proxy)
    except ValueError:
        raise bad_request("X-Forwarded-For is no address") from None


def _name_and_password(credentials: str) -> tuple[str, str]:
    try:
        text = _octets(credentials).decode()
    except ValueError:
        text = ""
    name, _, password = text.partition(":")
    return name, password


def _octets(text: str) -> bytes:
    """The octets of Base64; none for malformed text."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
