"""The status that a refusal of the queue manager has, wherever it comes from."""

from http import HTTPStatus
from typing import NamedTuple

from rpcqm.base.errors import HResult, MQError, NtStatus

_H, _N = HResult, NtStatus
STATUSES: dict[HResult | NtStatus, HTTPStatus] = {
    _H.MQ_ERROR_ACCESS_DENIED: HTTPStatus.FORBIDDEN,
    _H.MQ_ERROR_PRIVILEGE_NOT_HELD: HTTPStatus.FORBIDDEN,
    _H.MQ_ERROR_QUEUE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    _H.MQ_ERROR_MESSAGE_NOT_FOUND: HTTPStatus.NOT_FOUND,
    _N.STATUS_NO_SUCH_USER: HTTPStatus.NOT_FOUND,
    _N.STATUS_OBJECT_NAME_NOT_FOUND: HTTPStatus.NOT_FOUND,
    _H.MQ_ERROR_QUEUE_EXISTS: HTTPStatus.CONFLICT,
    _N.STATUS_USER_EXISTS: HTTPStatus.CONFLICT,
    _N.STATUS_OBJECT_NAME_COLLISION: HTTPStatus.CONFLICT,
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


class StatusRow(NamedTuple):
    """A status with the code that is told with it, and when that is."""

    status: HTTPStatus
    code: HResult | NtStatus
    meaning: str


OF_REQUESTS = tuple(
    StatusRow(*each)
    for each in (
        (HTTPStatus.UNAUTHORIZED, _H.MQ_ERROR_ACCESS_DENIED, "Nobody has logged on."),
        (
            HTTPStatus.NOT_FOUND,
            _H.MQ_ERROR_UNSUPPORTED_OPERATION,
            "There is nothing of that name to ask for.",
        ),
        (
            HTTPStatus.METHOD_NOT_ALLOWED,
            _H.MQ_ERROR_UNSUPPORTED_OPERATION,
            "The methods that `Allow` names are served.",
        ),
        (HTTPStatus.GONE, _H.MQ_ERROR_STALE_HANDLE, "The lease has ended, or is unknown."),
        (
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            _H.MQ_ERROR_INSUFFICIENT_RESOURCES,
            "The body of the request, or the message, is too large.",
        ),
        (
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            _H.MQ_ERROR_INVALID_PARAMETER,
            "The body of the request is compressed.",
        ),
        (
            HTTPStatus.EXPECTATION_FAILED,
            _H.MQ_ERROR_INVALID_PARAMETER,
            "Something else than 100-continue is expected.",
        ),
        (
            HTTPStatus.UNPROCESSABLE_ENTITY,
            _H.MQ_ERROR_PROPERTIES_CONFLICT,
            "Another request was made under the Idempotency-Key.",
        ),
        (
            HTTPStatus.TOO_MANY_REQUESTS,
            _H.MQ_ERROR_ACCESS_DENIED,
            "Too many wrong passwords or tokens have come.",
        ),
        (HTTPStatus.INTERNAL_SERVER_ERROR, _H.MQ_ERROR, "A mistake of ours; the log has it."),
        (
            HTTPStatus.NOT_IMPLEMENTED,
            _H.MQ_ERROR_INVALID_PARAMETER,
            "The request is in a transfer coding other than chunked.",
        ),
        (HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, _H.MQ_ERROR, "Neither HTTP/1.0 nor HTTP/1.1."),
    )
)
"""What is refused for what a request is, whatever its code means elsewhere."""


def status_table() -> list[StatusRow]:
    """All that /api/v1 refuses with, but for the codes whose status is 400."""
    rows = {(row.status, row.code): row for row in OF_REQUESTS}
    for code, status in STATUSES.items():
        rows.setdefault((status, code), StatusRow(status, code, code.meaning))
    return sorted(rows.values(), key=lambda row: row.status)


def code_of_request(status: HTTPStatus) -> HResult | NtStatus:
    """The code that a request is refused with before anybody has read it."""
    found = (row.code for row in OF_REQUESTS if row.status is status)
    return next(found, _H.MQ_ERROR_INVALID_PARAMETER)


def status_of(error: MQError) -> HTTPStatus:
    """The status of an error."""
    return STATUSES.get(error.status, HTTPStatus.BAD_REQUEST)


def status_of_code(name: str) -> HTTPStatus | None:
    """The status of a refusal by the name of its code; None for what is no refusal."""
    found: HResult | NtStatus | None = HResult.__members__.get(name) or NtStatus.__members__.get(
        name
    )
    if found is None or found < _FIRST_REFUSAL:
        return None
    return STATUSES.get(found, HTTPStatus.BAD_REQUEST)


_FIRST_REFUSAL = 0x8000_0000
"""Results below are successes, and information."""
