"""Refusals as programs see them: application/problem+json, with the name of an HRESULT as `code`.

The statuses are a table, so that one code has one status wherever it comes from.
"""

import json
from dataclasses import dataclass
from http import HTTPStatus

from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.base.text import visible
from rpcqm.http.exchange import HttpResponse

RETRY_SECONDS = 5
"""When a program tries again that was told to come later: disks and networks take that long."""

_H, _N = HResult, NtStatus
STATUSES: dict[HResult | NtStatus, HTTPStatus] = {
    _H.MQ_ERROR_ACCESS_DENIED: HTTPStatus.FORBIDDEN,
    _H.MQ_ERROR_PRIVILEGE_NOT_HELD: HTTPStatus.FORBIDDEN,
    _H.MQ_ERROR_QUEUE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    _H.MQ_ERROR_MESSAGE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    _N.STATUS_NO_SUCH_USER: HTTPStatus.NOT_FOUND,
    _H.MQ_ERROR_QUEUE_EXISTS: HTTPStatus.CONFLICT,
    _N.STATUS_USER_EXISTS: HTTPStatus.CONFLICT,
    _H.MQ_ERROR_SHARING_VIOLATION: HTTPStatus.CONFLICT,
    _H.MQ_ERROR_TRANSACTION_USAGE: HTTPStatus.CONFLICT,
    _H.MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION: HTTPStatus.CONFLICT,
    _H.MQ_ERROR_UNSUPPORTED_OPERATION: HTTPStatus.CONFLICT,
    _H.MQ_ERROR_QUEUE_DELETED: HTTPStatus.GONE,
    _H.MQ_ERROR_STALE_HANDLE: HTTPStatus.GONE,
    _H.MQ_ERROR_INSUFFICIENT_RESOURCES: HTTPStatus.SERVICE_UNAVAILABLE,
    _H.MQ_ERROR_SERVICE_NOT_AVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    _H.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    _H.MQ_ERROR_NO_DS: HTTPStatus.SERVICE_UNAVAILABLE,
    _H.MQ_ERROR_OPERATION_CANCELLED: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""Every other code is 400: the program has asked for what cannot be."""

WITH_RETRY = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class Refusal(Exception):
    """An answer that is no success."""

    status: HTTPStatus
    code: str
    detail: str
    headers: tuple[tuple[str, str], ...] = ()


def refusal_of(error: MQError) -> Refusal:
    """What a program is told of an error of the queue manager."""
    status = STATUSES.get(error.status, HTTPStatus.BAD_REQUEST)
    if type(error).__name__ == "KeyReusedError":  # its code has another status elsewhere
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    return Refusal(status, error.status.name, error.detail or error.status.meaning)


def bad_request(detail: str) -> Refusal:
    """What is said of a request that is not as the OpenAPI says."""
    return Refusal(HTTPStatus.BAD_REQUEST, HResult.MQ_ERROR_INVALID_PARAMETER.name, detail)


def body_of(refusal: Refusal) -> bytes:
    """A refusal as JSON."""
    told = {
        "type": "about:blank",
        "title": refusal.status.phrase,
        "status": int(refusal.status),
        "code": refusal.code,
        "detail": visible(refusal.detail),
    }
    return json.dumps(told).encode()


def headers_of(refusal: Refusal) -> tuple[tuple[str, str], ...]:
    """The headers that a refusal needs beyond those of every answer."""
    more = refusal.headers
    if refusal.status in WITH_RETRY and not any(name == "Retry-After" for name, _ in more):
        more += (("Retry-After", str(RETRY_SECONDS)),)
    return (("Content-Type", "application/problem+json"), *more)


def explained(status: int) -> HttpResponse:
    """What is answered to a request that the listener refuses before anybody has seen it."""
    phrase = HTTPStatus(status)
    code = (
        HResult.MQ_ERROR
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR
        else HResult.MQ_ERROR_INVALID_PARAMETER
    )
    refusal = Refusal(phrase, code.name, phrase.description or phrase.phrase)
    return HttpResponse(status, body_of(refusal), headers_of(refusal))
