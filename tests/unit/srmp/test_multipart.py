"""Requests in parts, and those whose parts are wrong ([MC-MQSRM] 2.1.1)."""

from dataclasses import replace
from uuid import UUID

import pytest

from rpcqm.base.errors import DecodeError
from rpcqm.http.exchange import HttpRequest
from rpcqm.srmp.multipart import MAXIMUM_PART_HEADERS, write_request
from rpcqm.srmp.reading import read_request
from tests.support.srmp.srmp_samples import (
    BOUNDARY,
    minimal,
    msmq,
    multipart,
    part,
    posted,
)

ENVELOPE = part("text/xml; charset=UTF-8", minimal())
BODY = part("application/octet-stream", b"body", "body@ff3af301-3196-497a-a918-72147c871a13")
EXTENSION = part("application/octet-stream", b"more", "extension@ff3af301")
DELIMITER = b"--" + BOUNDARY


def with_header(request: HttpRequest, name: str, value: str) -> HttpRequest:
    kept = tuple(each for each in request.headers if each[0].lower() != name.lower())
    return replace(request, headers=(*kept, (name, value)))


@pytest.mark.parametrize("body", [None, b"", b"body", DELIMITER + b"--\r\n" * 3, bytes(1 << 20)])
@pytest.mark.parametrize("extension", [None, b"", b"\r\n\r\n" + DELIMITER])
def test_attachments_are_read_as_they_were_sent(
    body: bytes | None, extension: bytes | None
) -> None:
    read = read_request(posted(minimal(), body, extension))
    assert (read.body, read.extension) == (body, extension)
    if body is not None:
        assert read.compound[read.body_offset :].startswith(body)
    assert read.compound.startswith(b"POST /msmq/private$/q HTTP/1.1\r\nContent-Type: ")


def test_a_boundary_is_in_no_attachment() -> None:
    _, content = write_request(minimal(), b"x", b"", UUID(int=1))
    boundary = content[: content.index(b"\r\n")]
    assert boundary.startswith(b"--MSMQ - SOAP boundary, ")
    assert content.count(boundary) == 4


def test_a_line_break_before_a_delimiter_is_accepted() -> None:
    read = read_request(multipart(ENVELOPE + b"\r\n", BODY + b"\r\n"))
    assert read.body == b"body"
    assert read_request(multipart(ENVELOPE, BODY, end=b"--")).body == b"body"


def test_a_request_of_one_part_alone_is_a_message_without_body() -> None:
    read = read_request(posted(minimal()))
    assert (read.body, read.extension) == (None, None)
    assert read.body_offset == len(read.compound)
    assert read_request(with_header(posted(minimal()), "content-type", "TEXT/XML; a=b"))


@pytest.mark.parametrize(
    "content_type",
    [
        'Multipart/Related; type=text/xml; BOUNDARY="MSMQ - SOAP boundary, 1"',
        'multipart/related;boundary="MSMQ - SOAP boundary, 1"',
    ],
)
def test_parameters_come_in_any_order_and_case(content_type: str) -> None:
    request = multipart(ENVELOPE, BODY)
    assert read_request(with_header(request, "Content-Type", content_type)).body == b"body"


def test_names_of_headers_are_of_any_case_and_an_identifier_may_have_brackets() -> None:
    changed = BODY.replace(b"Content-Id: body@", b"CONTENT-ID:<Body@")
    assert read_request(multipart(ENVELOPE, changed)).body == b"body"


@pytest.mark.conformance("MQSRM-rule-3.1.5.1.2")
@pytest.mark.parametrize(
    "parts",
    [
        (),
        (ENVELOPE,),
        (BODY,),
        (BODY, ENVELOPE),
        (ENVELOPE, EXTENSION, BODY),
        (ENVELOPE, BODY, BODY),
        (ENVELOPE, ENVELOPE),
        (ENVELOPE, ENVELOPE, BODY),
        (ENVELOPE, BODY, EXTENSION, BODY),
        (ENVELOPE, part("application/octet-stream", b"body")),
        (ENVELOPE, part("application/octet-stream", b"body", "picture@ff3af301")),
        (part("text/plain", minimal()), BODY),
        (part("text/xml", minimal(), length=10), BODY),
        (part("text/xml", minimal(), length=1 << 40), BODY),
        (ENVELOPE, part("application/octet-stream", b"body", "body@1", length=3)),
        (ENVELOPE, part("application/octet-stream", b"body", "body@1", length=5)),
        (ENVELOPE, part("application/octet-stream", b"body", "body@1", length=-1)),
        (ENVELOPE, BODY.replace(b"Content-Length: 4\r\n", b"")),
        (ENVELOPE, BODY.replace(b"Content-Length: 4", b"Content-Length: 4\r\nContent-Length: 4")),
        (ENVELOPE, BODY.replace(b"Content-Length: 4", b"Content-Length: +4")),
        (ENVELOPE, BODY.replace(b"Content-Length: 4", b"Content-Length : 4")),
        (ENVELOPE, BODY.replace(b"\r\n", b"\n")),
        (ENVELOPE, BODY + b"\n"),
        (ENVELOPE, BODY + b"\r\n\r\n"),
    ],
)
def test_parts_that_are_missing_doubled_disordered_or_of_another_length_are_malformed(
    parts: tuple[bytes, ...],
) -> None:
    with pytest.raises(DecodeError):
        read_request(multipart(*parts))


@pytest.mark.parametrize("end", [b"", b"-", b"\r\n", b"--\r\n\r\n", b"--more", b"-- \r\n"])
def test_the_end_of_the_parts_is_the_end_of_the_request(end: bytes) -> None:
    with pytest.raises(DecodeError):
        read_request(multipart(ENVELOPE, BODY, end=end))


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/soap+xml",
        "multipart/mixed; boundary=x",
        "multipart/related",
        "multipart/related; boundary=",
        'multipart/related; boundary=""',
        "multipart/related; boundary=other",
        'multipart/related; boundary="MSMQ - SOAP boundary, 1"; boundary=other',
        "multipart/related; boundary=MSMQ - SOAP boundary, 1",
        f'multipart/related; boundary="{"x" * 71}"',
    ],
)
def test_a_request_of_another_type_or_boundary_is_malformed(content_type: str) -> None:
    with pytest.raises(DecodeError):
        read_request(with_header(multipart(ENVELOPE, BODY), "Content-Type", content_type))


def test_what_is_said_of_a_request_is_said_once() -> None:
    request = multipart(ENVELOPE, BODY)
    doubled = replace(request, headers=request.headers * 2)
    with pytest.raises(DecodeError, match="two headers"):
        read_request(doubled)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "identity, gzip"])
def test_a_compressed_request_is_not_looked_at(encoding: str) -> None:
    request = multipart(ENVELOPE, BODY)
    assert read_request(with_header(request, "Content-Encoding", "identity")).body == b"body"
    with pytest.raises(DecodeError, match="encoding"):
        read_request(with_header(request, "Content-Encoding", encoding))


def test_only_what_is_posted_is_a_message() -> None:
    with pytest.raises(DecodeError, match="GET"):
        read_request(replace(posted(minimal()), method="GET"))


def test_a_receipt_has_no_attachment() -> None:
    receipt = (
        "<deliveryReceipt><receivedAt>20070719T032454</receivedAt>"
        "<id>uuid:1@00000000-0000-0000-0000-000000000000</id></deliveryReceipt>"
    )
    envelope = minimal(receipt + msmq(message_class=2))
    assert read_request(posted(envelope)).body is None
    assert read_request(multipart(part("text/xml", envelope))).body is None
    with pytest.raises(DecodeError, match="a receipt with an attachment"):
        read_request(posted(envelope, b"body"))


@pytest.mark.bound("srmp.part_headers")
@pytest.mark.parametrize(("more", "is_read"), [(0, True), (1, False)])
def test_the_headers_of_a_part_are_bounded(more: int, is_read: bool) -> None:
    size = MAXIMUM_PART_HEADERS + more - BODY.index(b"\r\n\r\n")
    filling = b"X-Filling: " + b"x" * (size - len(b"X-Filling: \r\n")) + b"\r\n"
    request = multipart(ENVELOPE, filling + BODY)
    if is_read:
        assert read_request(request).body == b"body"
    else:
        with pytest.raises(DecodeError, match="headers of a part"):
            read_request(request)
