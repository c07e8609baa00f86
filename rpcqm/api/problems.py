"""Refusals as programs see them: problem+json, with the name of an HRESULT as `code`."""

import json
from dataclasses import dataclass
from http import HTTPStatus

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import visible
from rpcqm.http.exchange import HttpResponse
from rpcqm.http.statuses import code_of_request, status_of

RETRY_SECONDS = 5
"""Seconds until a program should try again: disks and networks take that long."""

WITH_RETRY = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class Refusal(Exception):
    """An answer without success."""

    status: HTTPStatus
    code: str
    detail: str
    headers: tuple[tuple[str, str], ...] = ()


def refusal_of(error: MQError) -> Refusal:
    """The refusal for an error of the queue manager."""
    status = _BY_TYPE.get(type(error).__name__) or status_of(error)
    return Refusal(status, error.status.name, error.detail or error.status.meaning)


_BY_TYPE = {
    "KeyReusedError": HTTPStatus.UNPROCESSABLE_ENTITY,
    "PacketTooLargeError": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}
"""Errors whose codes have another status elsewhere."""


def bad_request(detail: str) -> Refusal:
    """The refusal of a request that does not match the OpenAPI."""
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


def explained(status: int, reason: str = "") -> HttpResponse:
    """The answer to a request that the listener itself refuses.

    The `reason` has no word of the queue manager's: it is about the request and its bounds.
    """
    phrase = HTTPStatus(status)
    name = code_of_request(phrase).name
    refusal = Refusal(phrase, name, reason or phrase.description or phrase.phrase)
    return HttpResponse(status, body_of(refusal), headers_of(refusal))
