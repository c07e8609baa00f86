"""Requests with several messages, and their answers (G691)."""

from collections.abc import Callable, Sequence

from rpcqm.base.completion import Completion, completed, start
from rpcqm.base.errors import DecodeError
from rpcqm.base.log import get_logger
from rpcqm.http.exchange import HttpRequest, HttpResponse
from rpcqm.srmp.bunch import MEDIA_TYPE, MOST, OFFER, is_bunch, split_bunch, write_statuses

Receive = Callable[[HttpRequest], Completion[int]]
"""Takes a request with one message; gives the status of its answer, and raises nothing."""

_OFFER = ((OFFER, str(MOST)),)
_KIND = ("Content-Type", MEDIA_TYPE)
_BAD_REQUEST, _FAILED, _UNAVAILABLE = 400, 500, 503
_LATER = (("Retry-After", "5"),)
"""Tells a sender that is not ours when to come again: its message was not taken."""

_log = get_logger("srmp")


def answer_to(request: HttpRequest, receive: Receive) -> Completion[HttpResponse]:
    """The answer to a request, once each of its messages is as durable as it asks for.

    The messages of a bunch are taken one behind the other in one turn, so that they share a commit.
    """
    headers = _OFFER if request.header(OFFER) is not None else ()
    if not is_bunch(request):
        return start(_alone(receive(request), headers))
    try:
        requests = split_bunch(request)
    except DecodeError as error:
        _log.info("an HTTP request was refused", peer=request.peer, reason=str(error))
        return completed(HttpResponse(_BAD_REQUEST))
    return start(_together([receive(each) for each in requests], headers))


async def _alone(taken: Completion[int], headers: tuple[tuple[str, str], ...]) -> HttpResponse:
    status = await taken
    return HttpResponse(status, headers=headers + (_LATER if status == _UNAVAILABLE else ()))


async def _together(
    taken: Sequence[Completion[int]], headers: tuple[tuple[str, str], ...]
) -> HttpResponse:
    statuses = [await _status(each) for each in taken]
    return HttpResponse(200, write_statuses(statuses), (_KIND, *headers))


async def _status(taken: Completion[int]) -> int:
    try:
        return await taken
    except Exception:  # a mistake of ours with one message; the others keep their own answers
        _log.exception("a message of a bunch failed")
        return _FAILED
