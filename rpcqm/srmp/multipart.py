"""The parts of requests ([MC-MQSRM] 2.1.1, 4): an envelope and its attachments.

A part ends where its own Content-Length says, and no line break stands before the next delimiter,
as the lengths in the samples prove; one that stands there is accepted.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.http.exchange import HttpRequest

Headers = tuple[tuple[str, str], ...]

MAXIMUM_PART_HEADERS = 4_096
"""Size of the headers of a part of a request.

Bound `srmp.part_headers` [octets]: the request is answered by 400.
"""
MAXIMUM_PARTS = 3
"""An envelope, a body, an extension."""
_COMMON_HEADERS: Headers = (
    ("SOAPAction", '"MSMQMessage"'),
    ("Proxy-Accept", "NonInteractiveClient"),
)
_ENVELOPE_TYPE = "text/xml"
_MULTIPART_TYPE = "multipart/related"
_BOUNDARY = re.compile(r';\s*boundary\s*=\s*(?:"([^"\\]{1,70})"|([^\s";,]{1,70}))', re.IGNORECASE)
_LENGTH = re.compile("[0-9]{1,10}")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
_BOUNDARIES = 1 << 31
_HEADERS_REMEMBERED = 64
"""How many heads of parts are cached: those of one sender differ in lengths alone."""
_TRIES = 16
"""Attempts to find a free number: a message has no room to occupy so many."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a request; `body_offset` is the place of the body in `compound`."""

    envelope: bytes
    body: bytes | None
    extension: bytes | None
    is_multipart: bool
    compound: bytes
    body_offset: int


@dataclass(frozen=True, slots=True)
class _Part:
    headers: Mapping[str, str]
    start: int
    end: int

    @property
    def media_type(self) -> str:
        return _media_type(self.headers.get("content-type", ""))

    @property
    def attached(self) -> str:
        """`body` or `extension`: the beginning of the Content-Id."""
        name = self.headers.get("content-id", "").removeprefix("<").lower()
        return name.partition("@")[0]


# Reading


def split_request(request: HttpRequest) -> Parts:
    """The parts of a request; raises DecodeError."""
    if request.method != "POST":
        raise DecodeError(f"a request by {request.method!r}")
    if (encoding := _only_header(request, "Content-Encoding", "identity")).lower() != "identity":
        raise DecodeError(f"a request in the encoding {encoding!r}")
    content_type = _only_header(request, "Content-Type", "")
    head = _head(request)
    compound = head + request.body
    kind = _media_type(content_type)
    if kind == _ENVELOPE_TYPE:
        return Parts(request.body, None, None, False, compound, len(compound))
    if kind != _MULTIPART_TYPE:
        raise DecodeError(f"a request of the type {kind!r}")
    return _split_multipart(request.body, _boundary(content_type), compound, len(head))


def _only_header(request: HttpRequest, name: str, otherwise: str) -> str:
    value = request.header(name)
    if name.lower() in request.twice:
        raise DecodeError(f"two headers {name}")
    return otherwise if value is None else value.strip()


def _media_type(value: str) -> str:
    return value.partition(";")[0].strip().lower()


def _boundary(content_type: str) -> bytes:
    found = _BOUNDARY.findall(content_type)
    if len(found) != 1:
        raise DecodeError("a multipart request without its boundary")
    return "".join(found[0]).encode("utf-8", "surrogateescape")


def _head(request: HttpRequest) -> bytes:
    """The request's line and headers, unchanged."""
    lines = [f"{request.method} {request.target} HTTP/1.1"]
    lines += (f"{name}: {value}" for name, value in request.headers)
    return "\r\n".join((*lines, "", "")).encode("utf-8", "surrogateescape")


def _split_multipart(content: bytes, boundary: bytes, compound: bytes, offset: int) -> Parts:
    first, *others = _read_parts(content, b"--" + boundary)
    if first.media_type != _ENVELOPE_TYPE:
        raise DecodeError("the first part is no envelope")
    attached = [part.attached for part in others]
    if attached not in ([], ["body"], ["extension"], ["body", "extension"]):
        raise DecodeError("attachments are not one body and one extension, in this order")
    found = dict(zip(attached, others, strict=True))
    body, extension = (
        content[part.start : part.end] if (part := found.get(name)) else None
        for name in ("body", "extension")
    )
    place = found["body"].start if "body" in found else len(content)
    envelope = content[first.start : first.end]
    return Parts(envelope, body, extension, True, compound, offset + place)


def _read_parts(content: bytes, delimiter: bytes) -> list[_Part]:
    """At least one part, and at most one of each kind."""
    parts: list[_Part] = []
    position = _behind_delimiter(content, delimiter, 0)
    while not content.startswith(b"--", position):
        if len(parts) == MAXIMUM_PARTS:
            raise DecodeError("a request with more than three parts")
        parts.append(part := _read_part(content, position))
        position = _behind_delimiter(content, delimiter, part.end)
    if content[position:] not in (b"--", b"--\r\n") or not parts:
        raise DecodeError("the end of the parts is not that of the request", position)
    return parts


def _behind_delimiter(content: bytes, delimiter: bytes, position: int) -> int:
    if content.startswith(b"\r\n", position):
        position += 2
    if not content.startswith(delimiter, position):
        raise DecodeError("a part does not end where its Content-Length says", position)
    return position + len(delimiter)


def _read_part(content: bytes, position: int) -> _Part:
    """A part whose delimiter ends at `position`."""
    if not content.startswith(b"\r\n", position):
        raise DecodeError("a delimiter without the end of its line", position)
    end = content.find(b"\r\n\r\n", position, position + MAXIMUM_PART_HEADERS + 6)
    if end < 0:
        raise DecodeError("the headers of a part do not end", position)
    headers = _read_headers(content[position + 2 : end])
    length = headers.get("content-length", "")
    if _LENGTH.fullmatch(length) is None:
        raise DecodeError("a part without its Content-Length", position)
    start = end + 4
    if start + int(length) > len(content):
        raise DecodeError("a part that is longer than its request", start)
    return _Part(headers, start, start + int(length))


@lru_cache(maxsize=_HEADERS_REMEMBERED)
def _read_headers(octets: bytes) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for line in octets.decode("latin-1").split("\r\n"):
        found = _HEADER.fullmatch(line)
        if found is None or (name := found[1].lower()) in headers:
            raise DecodeError(f"{line!r} is no header of a part, or there twice")
        headers[name] = found[2]
    return headers


# Writing


def write_request(
    envelope: bytes,
    body: bytes | None,
    extension: bytes | None,
    guid: UUID,
    number: int | None = None,
) -> tuple[Headers, bytes]:
    """Headers and content of a request; Host and Content-Length are the client's to write.

    `guid` is that of the queue manager. `number` is the boundary's, at random if it is not given.
    """
    if body is None and extension is None:
        return (("Content-Type", _ENVELOPE_TYPE), *_COMMON_HEADERS), envelope
    if number is None:
        number = _free_number(body or b"", extension or b"")
    frame = _frame(number)
    content = [frame.delimiter, _envelope_headers(envelope), envelope]
    for name, part in (("body", body), ("extension", extension)):
        if part is not None:
            content += (frame.delimiter, _attachment_headers(name, guid, part), part)
    content.append(frame.end)
    return frame.headers, b"".join(content)


class _Frame(NamedTuple):
    """The octets around the parts of a request."""

    headers: Headers
    delimiter: bytes
    end: bytes


@lru_cache(maxsize=16)
def _frame(number: int) -> _Frame:
    """The frame for a number, cached for the usual one."""
    boundary = _boundary_name(number)
    kind = f'{_MULTIPART_TYPE}; boundary="{boundary}"; type={_ENVELOPE_TYPE}'
    headers = (("Content-Type", kind), *_COMMON_HEADERS)
    return _Frame(headers, f"--{boundary}\r\n".encode(), f"--{boundary}--\r\n".encode())


def _boundary_name(number: int) -> str:
    return f"MSMQ - SOAP boundary, {number}"


@cache
def _usual_number() -> int:
    """A number at random, until the process ends."""
    return secrets.randbelow(_BOUNDARIES)


def _free_number(*attachments: bytes) -> int:
    """A number whose delimiter is in no attachment, for receivers that look for it."""
    number = _usual_number()
    for _ in range(_TRIES):
        delimiter = f"--{_boundary_name(number)}".encode()
        if not any(delimiter in attachment for attachment in attachments):
            break
        number = secrets.randbelow(_BOUNDARIES)
    return number


def _envelope_headers(envelope: bytes) -> bytes:
    length = len(envelope)
    return f"Content-Type: text/xml; charset=UTF-8\r\nContent-Length: {length}\r\n\r\n".encode()


def _attachment_headers(name: str, guid: UUID, part: bytes) -> bytes:
    return (
        "Content-Type: application/octet-stream\r\n"
        f"Content-Length: {len(part)}\r\nContent-Id: {name}@{guid}\r\n\r\n"
    ).encode()
