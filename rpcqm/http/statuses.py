"""The status that a refusal of the queue manager has, wherever it comes from."""

from http import HTTPStatus

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
