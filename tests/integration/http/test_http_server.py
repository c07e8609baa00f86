"""What a request over HTTP may look like, and what is refused with which status."""

import http.client
import re
import socket
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from rpcqm.http.exchange import HttpResponse
from rpcqm.http.limits import FIELD_BYTES, HEADERS, LINE_BYTES, HttpLimits
from tests.support.http.http_server import RunningHttpServer, answers, serving_http, until_closed

HEAD = b"POST /msmq/q HTTP/1.1\r\nHost: h\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LENGTH = b"Content-Length: 3\r\n"


@pytest.fixture(scope="module")
def running() -> Iterator[RunningHttpServer]:
    with serving_http(HttpLimits(body_bytes=100_000)) as server:
        yield server


@pytest.fixture(autouse=True)
def _forget(running: RunningHttpServer) -> None:
    running.requests.clear()
    running.response = HttpResponse(200)


def refusal(running: RunningHttpServer, octets: bytes) -> tuple[bytes, list[str]]:
    """The status of an answer that ends the connection, and the reasons in the log."""
    with capture_logs() as logs, running.connect() as plain:
        plain.sendall(octets)
        answer = until_closed(plain)
        running.until(lambda: running.server.connections == 0)
    assert answer.startswith(b"HTTP/1.1 ")
    assert answer.endswith(b"\r\n\r\n")
    assert b"server" not in answer.lower()
    assert all(line["event"] == "a request was refused" for line in logs)
    return answer[9:12], [str(line["reason"]) for line in logs]


MALFORMED = {
    "two lengths": HEAD + LENGTH + b"Content-Length: 4\r\n\r\nabcd",
    "the same length twice": HEAD + LENGTH + LENGTH + b"\r\nabc",
    "a list of lengths": HEAD + b"Content-Length: 3, 3\r\n\r\nabc",
    "a length with a sign": HEAD + b"Content-Length: +3\r\n\r\nabc",
    "a negative length": HEAD + b"Content-Length: -3\r\n\r\nabc",
    "a length beyond 64 bits": HEAD + b"Content-Length: 99999999999999999999999\r\n\r\nabc",
    "a length and chunks": HEAD + LENGTH + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and a length": HEAD + b"Transfer-Encoding: chunked\r\n" + LENGTH + b"\r\n0\r\n\r\n",
    "chunks twice": HEAD + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n0\r\n\r\n",
    "an unknown coding": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "no coding": HEAD + b"Transfer-Encoding: identity\r\n\r\nabc",
    "chunks that are not last": HEAD + b"Transfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n",
    "an empty coding": HEAD + b"Transfer-Encoding: \r\n" + LENGTH + b"\r\nabc",
    "chunks in HTTP/1.0": CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n",
    "HTTP/1.2": HEAD.replace(b"1.1", b"1.2") + LENGTH + b"\r\nabc",
    "a blank before a chunk extension": CHUNKED + b"3 ;a=b\r\nabc\r\n0\r\n\r\n",
    "a blank in front of its name": CHUNKED + b"3; a=b\r\nabc\r\n0\r\n\r\n",
    "a blank before a colon": HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a tab that is none": HEAD + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "a size that is no number": CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n",
    "a size that is too small": CHUNKED + b"3\r\nabcd\r\n0\r\n\r\n",
    "a size beyond 64 bits": CHUNKED + b"fffffffffffffffff\r\nabc",
    "a header that goes on": HEAD + b"A: x\r\n y\r\n\r\n",
    "a zero in a header": HEAD + b"A: x\x00y\r\n\r\n",
    "no host": b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "two hosts": HEAD + b"Host: other\r\n\r\n",
    "line feeds alone": b"POST / HTTP/1.1\nHost: h\n\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "octets in the target": b"POST /\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n",
    "the beginning of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a target that is too long": b"POST /" + b"a" * LINE_BYTES + b" HTTP/1.1\r\nHost: h\r\n\r\n",
    "a header that is too long": HEAD + b"A: " + b"x" * (FIELD_BYTES + 1) + b"\r\n\r\n",
    "too many headers": HEAD + b"A: x\r\n" * HEADERS + b"\r\n",
    "a flood after a mistake": b"PRI * HTTP/2.0\r\n\r\n" + b"x" * 1_000_000,
}


@pytest.mark.parametrize("octets", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_request_is_answered_once_told_once_and_ended(
    running: RunningHttpServer, octets: bytes
) -> None:
    status, reasons = refusal(running, octets)
    assert status == b"400"
    assert len(reasons) == 1
    assert running.requests == []


REFUSED = {
    "GET": (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"405"),
    "PUT": (HEAD.replace(b"POST", b"PUT") + LENGTH + b"\r\nabc", b"405"),
    "CONNECT": (b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", b"405"),
    "gzip": (HEAD + b"Content-Encoding: gzip\r\n" + LENGTH + b"\r\nabc", b"415"),
    "deflate, then none": (
        HEAD + b"Content-Encoding: deflate, identity\r\n" + LENGTH + b"\r\nabc",
        b"415",
    ),
    "chunks of gzip": (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", b"501"),
    "chunks of an unknown coding": (
        HEAD + b"Transfer-Encoding: foo, chunked\r\n\r\n0\r\n\r\n",
        b"501",
    ),
    "another expectation": (HEAD + b"Expect: gold\r\n" + LENGTH + b"\r\nabc", b"417"),
    "a second expectation": (
        HEAD
        + b"Expect: 100-continue\r\nExpect: gold\r\nConnection: close\r\n"
        + LENGTH
        + b"\r\nabc",
        b"417",
    ),
    "HTTP/2.0": (b"POST / HTTP/2.0\r\nHost: h\r\n" + LENGTH + b"\r\nabc", b"505"),
    "HTTP/0.9": (b"POST /\r\n\r\n", b"505"),
}


@pytest.mark.parametrize(("octets", "expected"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_served_has_its_own_status(
    running: RunningHttpServer, octets: bytes, expected: bytes
) -> None:
    status, reasons = refusal(running, octets)
    assert status == expected
    assert len(reasons) == 1
    assert running.requests == []


def test_nothing_is_told_of_the_program(running: RunningHttpServer) -> None:
    with running.connect() as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        answer = until_closed(plain)
    names = {line.split(b":")[0] for line in answer.split(b"\r\n")[1:-2]}
    assert names == {b"Allow", b"Content-Length", b"Date", b"Connection"}


def test_names_of_headers_and_the_target_are_as_they_were_written(
    running: RunningHttpServer,
) -> None:
    with running.connect() as plain:
        plain.sendall(
            b"POST /msmq/private%24/a%2Fb/../c?x=%C3%A9#y HTTP/1.1\r\nhOST: h\r\n"
            b'SOAPAction: "MSMQMessage"\r\nX: \xe9\r\nx: two\r\ncontent-LENGTH: 1\r\n\r\n.'
        )
        assert answers(plain, 1) == [b"HTTP/1.1 200 OK"]
    (request,) = running.requests
    assert request.method == "POST"
    assert request.target == "/msmq/private%24/a%2Fb/../c?x=%C3%A9#y"
    assert request.headers == (
        ("hOST", "h"),
        ("SOAPAction", '"MSMQMessage"'),
        ("X", "\xe9"),
        ("x", "two"),
        ("content-LENGTH", "1"),
    )
    assert request.body == b"."
    assert (request.peer, request.port, request.secure) == ("127.0.0.1", running.port, False)


@pytest.mark.parametrize("octet_by_octet", [False, True])
def test_requests_may_follow_each_other_before_their_answers(
    running: RunningHttpServer, octet_by_octet: bool
) -> None:
    octets = b"".join(HEAD + b"Content-Length: 1\r\n\r\n%d" % number for number in range(9))
    with running.connect() as plain:
        for part in (
            [octets[at : at + 1] for at in range(len(octets))] if octet_by_octet else [octets]
        ):
            plain.sendall(part)
        assert answers(plain, 9) == [b"HTTP/1.1 200 OK"] * 9
    assert [request.body for request in running.requests] == [b"%d" % n for n in range(9)]


def test_more_requests_than_may_wait_are_answered_all_the_same(running: RunningHttpServer) -> None:
    count = 500
    with running.connect() as plain:
        plain.sendall((HEAD + b"Content-Length: 100\r\n\r\n" + bytes(100)) * count)
        assert len(answers(plain, count)) == count
    assert len(running.requests) == count


def test_a_connection_is_kept_between_requests(running: RunningHttpServer) -> None:
    caller = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    before = running.taken_in
    for body in (b"one", b"two", bytes(100_000)):
        caller.request("POST", "/msmq/q", body)
        assert caller.getresponse().read() == b""
    caller.close()
    assert [len(request.body) for request in running.requests] == [3, 3, 100_000]
    assert running.taken_in == before + 1


def test_one_that_wants_to_end_the_connection_can(running: RunningHttpServer) -> None:
    with running.connect() as plain:
        plain.sendall(HEAD + b"Connection: close\r\n" + LENGTH + b"\r\nabc")
        assert until_closed(plain).startswith(b"HTTP/1.1 200")
    with running.connect() as plain:
        plain.sendall(b"POST / HTTP/1.0\r\n" + LENGTH + b"\r\nabc")
        assert until_closed(plain).startswith(b"HTTP/1.1 200")


def test_a_client_that_asks_whether_its_body_is_wanted_is_told(running: RunningHttpServer) -> None:
    with running.connect() as plain:
        plain.sendall(HEAD + b"Expect: 100-continue\r\n" + LENGTH + b"\r\n")
        assert plain.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        plain.sendall(b"abc")
        assert answers(plain, 1) == [b"HTTP/1.1 200 OK"]
    too_long = HEAD + b"Expect: 100-continue\r\nContent-Length: 100001\r\n\r\n"
    assert refusal(running, too_long)[0] == b"413"


def test_a_client_of_http_1_0_is_not_told_that_its_body_is_wanted(
    running: RunningHttpServer,
) -> None:
    with running.connect() as plain:
        head = HEAD.replace(b"1.1", b"1.0") + b"Expect: 100-continue\r\n"
        plain.sendall(head + LENGTH + b"\r\nabc")
        assert until_closed(plain).startswith(b"HTTP/1.1 200")
    (request,) = running.requests
    assert request.body == b"abc"


@pytest.mark.parametrize("extension", [b"a=b", b'a="b c"'])
def test_a_chunk_extension_means_nothing(running: RunningHttpServer, extension: bytes) -> None:
    with running.connect() as plain:
        plain.sendall(CHUNKED + b"3;" + extension + b"\r\nabc\r\n0\r\n\r\n")
        assert answers(plain, 1) == [b"HTTP/1.1 200 OK"]
    assert running.requests[0].body == b"abc"


@pytest.mark.bound("http.line_bytes", "http.field_bytes", "http.headers")
def test_a_head_has_bounds(running: RunningHttpServer) -> None:
    line = b"POST /" + b"a" * (LINE_BYTES - 1) + b" HTTP/1.1\r\nHost: h\r\n"
    field = b"A: " + b"x" * FIELD_BYTES + b"\r\n"
    more = b"A: x\r\n" * (HEADERS - 2)
    with running.connect() as plain:
        plain.sendall(line + field + more + b"\r\n")
        assert answers(plain, 1) == [b"HTTP/1.1 200 OK"]
    for head in (
        line.replace(b"/a", b"/aa") + b"\r\n",
        line + field.replace(b"x", b"xx", 1) + b"\r\n",
        line + field + more + b"B: y\r\n\r\n",
    ):
        assert refusal(running, head)[0] == b"400"


@pytest.mark.parametrize("size", [100_000, 100_001])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_has_a_bound(running: RunningHttpServer, size: int, chunked: bool) -> None:
    head = CHUNKED if chunked else HEAD + b"Content-Length: %d\r\n\r\n" % size
    parts = [b"%x\r\n" % 1000 + bytes(1000) + b"\r\n"] * (size // 1000)
    parts += [b"1\r\n.\r\n"] * (size % 1000) + [b"0\r\n\r\n"]
    octets = head + (b"".join(parts) if chunked else bytes(size))
    if size > 100_000:
        assert refusal(running, octets)[0] == b"413"
        assert running.requests == []
        return
    with running.connect() as plain:
        plain.sendall(octets)
        assert answers(plain, 1) == [b"HTTP/1.1 200 OK"]
    assert [len(request.body) for request in running.requests] == [size]


def test_the_answer_of_a_handler_is_sent_whole(running: RunningHttpServer) -> None:
    running.response = HttpResponse(400, b"why", (("X-Reason", "none"),))
    caller = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    caller.request("POST", "/msmq/q", b"x")
    answer = caller.getresponse()
    assert (answer.status, answer.getheader("X-Reason"), answer.read()) == (400, "none", b"why")
    caller.close()


def test_a_request_that_its_sender_does_not_finish_is_told_once(running: RunningHttpServer) -> None:
    with capture_logs() as logs:
        with running.connect() as plain:
            plain.sendall(HEAD + LENGTH + b"\r\nab")
        running.until(lambda: running.server.connections == 0)
    assert [line["reason"] for line in logs] == ["the connection ended before the request"]
    assert running.requests == []


@pytest.mark.parametrize(("status", "body"), [(200, b"x" * 100), (201, b'{"id":1}'), (204, b"")])
@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n", b"Connection: keep-alive\r\n"])
@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
def test_an_answer_that_comes_often_has_the_octets_of_others(
    running: RunningHttpServer, status: int, body: bytes, more: bytes, version: bytes
) -> None:
    headers = (("Content-Type", "text/plain"), ("X-Other", "a, b")) if body else ()
    request = b"POST /q HTTP/%b\r\nHost: h\r\n%bContent-Length: 0\r\n\r\n" % (version, more)
    told = []
    for often in (False, True, True):
        running.response = HttpResponse(status, body, headers, None, often)
        with running.connect() as plain:
            plain.sendall(request)
            told.append(_without_date(_whole(plain, len(body))))
    assert told[0] == told[1] == told[2]
    assert told[0].endswith(body)


def _whole(plain: socket.socket, length: int) -> bytes:
    """An answer with a body of that length."""
    came = b""
    while len((parts := came.partition(b"\r\n\r\n"))[2]) < length or not parts[1]:
        part = plain.recv(1 << 16)
        assert part
        came += part
    return came


def _without_date(answer: bytes) -> bytes:
    assert answer.count(b"\r\nDate: ") == 1
    return re.sub(rb"\r\nDate: [^\r]{29}\r\n", b"\r\n", answer)
