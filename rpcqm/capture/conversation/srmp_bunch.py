"""Requests with several messages in captures: each message as if it had come alone (G691)."""

from collections.abc import Iterator, Sequence
from http import HTTPStatus

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.http import HttpMessage
from rpcqm.http.exchange import HttpRequest
from rpcqm.srmp.bunch import is_bunch, read_statuses, split_bunch
from rpcqm.srmp.multipart import Headers

_OK = 200

Exchanged = tuple[HttpMessage, HttpMessage | None]


def apart(asked: HttpMessage, answer: HttpMessage | None) -> Iterator[Exchanged]:
    """Each message of a request with its answer; the request itself where it is no bunch."""
    method, target, _ = asked.first
    request = HttpRequest(method, target, asked.headers, bytes(asked.body))
    if not asked.whole or not is_bunch(request):
        yield asked, answer
        return
    try:
        requests = split_bunch(request)
    except DecodeError:
        yield asked, answer
        return
    statuses = _statuses(answer, len(requests))
    for each, status in zip(requests, statuses, strict=True):
        told = answer if status is None or answer is None else _answer(answer, status)
        yield _message(asked, asked.first, each.headers, each.body), told


def _statuses(answer: HttpMessage | None, count: int) -> Sequence[int | None]:
    """What is answered to each; None where the whole has one answer, or none was captured."""
    if answer is None or answer.status != _OK or not answer.whole:
        return [None] * count
    try:
        return read_statuses(bytes(answer.body), count)
    except DecodeError:
        return [None] * count


def _answer(answer: HttpMessage, status: int) -> HttpMessage:
    known = HTTPStatus._value2member_map_.get(status)
    phrase = known.phrase if isinstance(known, HTTPStatus) else ""
    first = (answer.first[0], str(status), phrase)
    return _message(answer, first, (("Content-Length", "0"),), b"")


def _message(
    whole: HttpMessage, first: tuple[str, str, str], headers: Headers, body: bytes
) -> HttpMessage:
    lines = (" ".join(first), *(f"{name}: {value}" for name, value in headers))
    head = "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n"
    return HttpMessage(
        first,
        headers,
        head,
        whole.began,
        whole.offset,
        ended=whole.ended,
        size=len(head) + len(b"\r\n") + len(body),
        body=bytearray(body),
        note=whole.note,
    )
