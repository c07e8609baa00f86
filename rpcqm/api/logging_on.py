"""Who asks: accounts by HTTP Basic, tokens as Bearer, and from where that is taken."""

import base64
import binascii
from http import HTTPStatus
from typing import Protocol

from rpcqm.api.problems import Refusal
from rpcqm.base.errors import HResult
from rpcqm.base.identity import Identity
from rpcqm.http import origins
from rpcqm.http.exchange import HttpRequest
from rpcqm.operations.logons import GuessedTooOftenError

_CHALLENGE = (("WWW-Authenticate", 'Basic realm="rpcqm", charset="UTF-8"'),)
_DENIED = HResult.MQ_ERROR_ACCESS_DENIED.name


class Accounts(Protocol):
    """Checks what callers prove themselves with."""

    def log_on(self, name: str, password: str, address: str) -> Identity | None:
        """Who that is, None if the password is wrong; raises GuessedTooOftenError."""
        ...

    def show_token(self, text: str, address: str) -> Identity | None:
        """Who shows a token, None if it is wrong or over; raises GuessedTooOftenError."""
        ...


def identity_of(request: HttpRequest, accounts: Accounts, trusted_proxy: str) -> Identity:
    """Who a request comes from; raises Refusal."""
    address, secure = origin_of(request, trusted_proxy)
    if not secure and not origins.is_loopback(address):
        # Before anybody is asked for a password, which would come in clear.
        raise Refusal(HTTPStatus.FORBIDDEN, _DENIED, "logging on from elsewhere needs TLS")
    given = request.header("Authorization")
    if given is None:
        raise Refusal(HTTPStatus.UNAUTHORIZED, _DENIED, "log on", _CHALLENGE)
    try:
        identity = _proved(accounts, given, address)
    except GuessedTooOftenError as error:
        raise Refusal(HTTPStatus.TOO_MANY_REQUESTS, _DENIED, str(error)) from None
    if identity is None:
        raise Refusal(HTTPStatus.UNAUTHORIZED, _DENIED, "the logon has failed", _CHALLENGE)
    return identity


def _proved(accounts: Accounts, given: str, address: str) -> Identity | None:
    """Whom an Authorization header proves."""
    scheme, _, credentials = given.partition(" ")
    if scheme.lower() == "bearer":
        return accounts.show_token(credentials.strip(), address)
    if scheme.lower() == "basic":
        return accounts.log_on(*_name_and_password(credentials), address)
    return None


def origin_of(request: HttpRequest, trusted_proxy: str) -> tuple[str, bool]:
    """The address that a request comes from, and whether it came by TLS; raises Refusal."""
    try:
        return origins.origin_of(request, trusted_proxy)
    except ValueError:
        raise Refusal(HTTPStatus.BAD_REQUEST, _DENIED, "X-Forwarded-For is no address") from None


def _name_and_password(credentials: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(credentials.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    name, _, password = text.partition(":")
    return name, password
