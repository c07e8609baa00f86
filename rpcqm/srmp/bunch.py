"""Several messages in one request, as our queue managers post them to each other (G691).

Each message has the headers and the content that it would have alone. A receiver that takes such
requests says so in the answer to a request that asks for that, so that no other receiver gets one.
The answer to a bunch has one status for each message, in their order.
"""

import re
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache

from rpcqm.base.errors import DecodeError
from rpcqm.http.exchange import HttpRequest
from rpcqm.srmp.multipart import Headers

MEDIA_TYPE = "application/vnd.rpcqm.messages"
OFFER = "Rpcqm-Messages"
"""A header: the sender asks by it whether bunches are taken; the answer has the largest size."""
MOST = 64
"""Messages of one request.

Bound `srmp.bunch` [messages]: the request is answered with 400, and none of them is taken.
"""
OCTETS = 1 << 18
"""Octets of messages that leave in one request; many proxies allow four times that."""

HEADERS: Headers = (("Content-Type", MEDIA_TYPE), ("SOAPAction", '"MSMQMessage"'))
_SIZES = struct.Struct("<II")
_STATUS = struct.Struct("<H")
_LONGEST_HEAD = 1 << 12
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The syntax of a header's name: with a space behind it, Host would be another header."""
_LOWEST_STATUS, _HIGHEST_STATUS = 100, 599


def write_bunch(requests: Sequence[tuple[Headers, bytes]]) -> tuple[Headers, bytes]:
    """The headers and the content of the request that holds these."""
    content: list[bytes] = []
    for headers, body in requests:
        head = _head(headers)
        content += (_SIZES.pack(len(head), len(body)), head, body)
    return HEADERS, b"".join(content)


@lru_cache(maxsize=64)
def _head(headers: Headers) -> bytes:
    return "\r\n".join(f"{name}: {value}" for name, value in headers).encode("latin-1")


def is_bunch(request: HttpRequest) -> bool:
    """Whether a request says that it holds several messages."""
    return (request.header("Content-Type") or "").strip().lower() == MEDIA_TYPE


def split_bunch(request: HttpRequest) -> list[HttpRequest]:
    """The requests that a bunch holds, as if each had come alone; raises DecodeError."""
    found = list(_split(request))
    if not found:
        raise DecodeError("a bunch without a message")
    return found


def _split(request: HttpRequest) -> Iterator[HttpRequest]:
    content, at, count = request.body, 0, 0
    host = request.header("Host")
    around = () if host is None else (("Host", host),)
    while at < len(content):
        count += 1
        if count > MOST:
            raise DecodeError(f"a bunch of more than {MOST} messages", at)
        if at + _SIZES.size > len(content):
            raise DecodeError("a bunch ends within the sizes of a message", at)
        head_size, size = _SIZES.unpack_from(content, at)
        start = at + _SIZES.size
        at = start + head_size + size
        if head_size > _LONGEST_HEAD or at > len(content):
            raise DecodeError("a message that is longer than its bunch", start)
        body = content[start + head_size : at]
        own = _headers_of(content[start : start + head_size])
        headers = (*around, *own, ("Content-Length", str(size)))
        yield HttpRequest(
            request.method,
            request.target,
            headers,
            body,
            request.peer,
            request.secure,
            request.port,
            request.channel,
        )


@lru_cache(maxsize=64)
def _headers_of(head: bytes) -> Headers:
    headers = []
    for line in head.decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(":")
        if not colon or _NAME.fullmatch(name) is None or not line.isprintable():
            raise DecodeError(f"{line!r} is no header of a message")
        if name.lower() in ("host", "content-length"):
            raise DecodeError(f"the header {name} of a message in a bunch")
        headers.append((name, value.strip()))
    return tuple(headers)


def write_statuses(statuses: Sequence[int]) -> bytes:
    """The content of the answer to a bunch."""
    return b"".join(map(_STATUS.pack, statuses))


def read_statuses(content: bytes, count: int) -> list[int]:
    """The statuses of `count` messages; raises DecodeError, also for a number that is no status of
    HTTP."""
    if len(content) != count * _STATUS.size:
        raise DecodeError(f"an answer of {len(content)} octets to {count} messages")
    statuses = [status for (status,) in _STATUS.iter_unpack(content)]
    if not all(_LOWEST_STATUS <= status <= _HIGHEST_STATUS for status in statuses):
        raise DecodeError("an answer to messages by what is no status")
    return statuses


def offered(value: str | None) -> int:
    """The largest bunch that a header offers; 1 if its value is unusable."""
    if value is None or not (value.isascii() and value.isdecimal()) or len(value) > len("1000000"):
        return 1
    return min(max(int(value), 1), MOST)
