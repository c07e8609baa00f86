"""What is posted, where to, and what is done when it is not answered."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rpcqm.base.resolver import Senders
from rpcqm.http.client import PLACES, RESOLVED_MILLISECONDS, HttpClient, Posted
from rpcqm.http.client_session import ANSWER_BYTES, Place
from rpcqm.http.exchange import HttpResponse
from rpcqm.http.tls import client_context, server_context
from tests.support.certificates import write_tls_files
from tests.support.clock import SimulatedClock
from tests.support.http.http_server import RunningHttpServer, serving_http
from tests.support.rpc.listeners import listening

HEADERS = (
    ("Content-Type", "multipart/related; boundary=x"),
    ("SOAPAction", '"MSMQMessage"'),
    ("Proxy-Accept", "NonInteractiveClient"),
)
MORE_THAN_IS_SENT_UNREAD = 32 << 20
"""Octets that the kernel does not hold for somebody who does not read."""
MANY_ANSWERS = 1 << 16
"""So that a listener reads on to the end."""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_tls_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def running(files: tuple[Path, Path]) -> Iterator[RunningHttpServer]:
    with serving_http(context=server_context(*files)) as server:
        yield server


Post = Callable[..., Posted]


@pytest.fixture
def client(running: RunningHttpServer, files: tuple[Path, Path]) -> Iterator[HttpClient]:
    running.requests.clear()
    running.response = HttpResponse(200)
    client = running.do(partial(HttpClient, SimulatedClock(), client_context(files[0]), _no_proxy))
    yield client
    running.run(client.stop())


@pytest.fixture
def post(running: RunningHttpServer, client: HttpClient) -> Post:
    def post(
        url: str, connect_to: str = "", body: bytes = b"body", seconds: float = 20, **options: Any
    ) -> Posted:
        posting = client.post(url, connect_to, HEADERS, body, seconds=seconds, **options)
        return running.run(posting)

    return post


def _place(number: int) -> Place:
    return Place("http", f"host{number}", 80, "192.0.2.1", "")


def _no_proxy(url: str) -> str:
    return ""


def test_the_request_is_as_it_was_given(running: RunningHttpServer, post: Post) -> None:
    url = f"http://127.0.0.1:{running.port}/msmq/private%24/a%2Fb/../%C3%A9?x=1"
    posted = post(url)
    assert (posted.status, posted.address, posted.content) == (200, "127.0.0.1", b"")
    (request,) = running.requests
    assert request.method == "POST"
    assert request.target == "/msmq/private%24/a%2Fb/../%C3%A9?x=1"
    assert request.headers == (
        ("Host", f"127.0.0.1:{running.port}"),
        *HEADERS,
        ("Content-Length", "4"),
    )
    assert request.body == b"body"


@pytest.mark.parametrize("status", [200, 204, 301, 302, 307, 400, 401, 404, 413, 500, 503])
def test_the_status_is_told_and_no_redirect_is_followed(
    running: RunningHttpServer, post: Post, status: int
) -> None:
    url = f"http://127.0.0.1:{running.port}/q"
    running.response = HttpResponse(status, b"", (("Location", url), ("Set-Cookie", "a=b")))
    assert post(url).status == status
    assert post(url).status == status
    assert len(running.requests) == 2
    assert all(request.header("Cookie") is None for request in running.requests)


def test_connections_are_kept(running: RunningHttpServer, post: Post, client: HttpClient) -> None:
    url = f"http://localhost:{running.port}/"
    before = running.taken_in
    for _ in range(5):
        post(url)
    assert running.taken_in == before + 1
    running.do(partial(client.close, url, ""))
    running.until(lambda: running.server.connections == 0)
    post(url)
    assert running.taken_in == before + 2


def test_what_is_kept_may_have_been_closed_meanwhile(
    running: RunningHttpServer, post: Post
) -> None:
    with listening() as other:
        other.say(OK)
        assert post(other.url).status == 200
        other.say(b"", OK)
        assert post(other.url).status == 200
    assert other.connections == 2


def test_a_connection_that_is_closed_at_once_is_no_answer(post: Post) -> None:
    with listening() as other:
        other.say(b"")
        with pytest.raises(OSError, match="disconnected"):
            post(other.url)
    assert other.connections == 1


def test_what_nobody_has_asked_for_is_no_answer(
    running: RunningHttpServer, client: HttpClient, post: Post
) -> None:
    with listening() as other:
        other.say(OK, OK)
        assert post(other.url).status == 200
        other.speak(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        running.until(lambda: _has_heard_something(client))
        assert post(other.url).status == 200
    assert other.connections == 2


def _has_heard_something(client: HttpClient) -> bool:
    """Whether a kept connection holds what was not asked for."""
    (session,) = client._sessions.values()
    (kept,) = session._connector._conns.values()
    return any(protocol.should_close for protocol, _ in kept)


def test_a_connection_whose_request_was_not_taken_wholly_is_closed(post: Post) -> None:
    """Who has answered before the end of a request takes the rest of it for the next one."""
    with listening() as other:
        other.reading.clear()
        other.say(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", OK)
        assert post(other.url, body=bytes(MORE_THAN_IS_SENT_UNREAD)).status == 413
        assert post(other.url, seconds=5).status == 200
    assert other.connections == 2


def test_what_nobody_takes_of_a_request_is_kept_no_longer_than_its_connection(
    running: RunningHttpServer, post: Post
) -> None:
    with listening() as other:
        other.reading.clear()
        other.say(b"HTTP/1.1 200 OK\r\n", *[b"x"] * MANY_ANSWERS)
        with pytest.raises(TimeoutError):
            post(other.url, body=bytes(MORE_THAN_IS_SENT_UNREAD), seconds=0.5)
        other.reading.set()
        running.until(lambda: other.ended == 1)
    assert len(other.heard) < MORE_THAN_IS_SENT_UNREAD


@pytest.mark.parametrize(
    ("path", "header"), [("q HTTP/1.1\r\nA: b", "x"), ("q", "x\r\nA: b"), ("q", "x\nA: b")]
)
def test_nothing_that_is_posted_has_more_lines_than_its_head(
    running: RunningHttpServer, client: HttpClient, path: str, header: str
) -> None:
    url = f"http://127.0.0.1:{running.port}/{path}"
    with pytest.raises(ConnectionError):
        running.run(client.post(url, "", [("Content-Type", header)], b"", seconds=20))
    assert not running.requests


def test_tls_is_checked_against_the_authorities_that_are_named(
    running: RunningHttpServer, post: Post, client: HttpClient
) -> None:
    url = f"https://localhost:{running.secure_port}/"
    assert post(url).status == 200
    assert running.requests[-1].secure
    with pytest.raises(OSError, match="certificate"):
        post(f"https://127.0.0.1:{running.secure_port}/")
    running.do(partial(client.adjust, client_context(), _no_proxy))
    with pytest.raises(OSError, match="certificate"):
        post(url)


@pytest.mark.conformance("MQSRM-event-establish_transport_connection")
def test_only_the_connection_goes_elsewhere_where_there_is_a_redirection(
    running: RunningHttpServer, post: Post
) -> None:
    assert post("http://far.example:81/msmq/q", f"http://127.0.0.1:{running.port}/x").status == 200
    (request,) = running.requests
    assert (request.target, request.header("Host")) == ("/msmq/q", "far.example:81")
    secure = f"https://localhost:{running.secure_port}/"
    assert post("http://far.example/msmq/q", secure).status == 200
    assert running.requests[-1].secure


def test_an_address_is_asked_about_after_its_name_is_resolved(
    running: RunningHttpServer, post: Post
) -> None:
    asked: list[str] = []

    def may_connect(address: str) -> bool:
        asked.append(address)
        return False

    url = f"http://localhost:{running.port}/"
    assert post(url).status == 200
    for name in ("localhost", "127.0.0.1", "[::1]"):
        with pytest.raises(PermissionError, match="not allowed"):
            post(f"http://{name}:{running.port}/", may_connect=may_connect)
    assert {"127.0.0.1", "::1"} >= set(asked) >= {"127.0.0.1"}
    assert len(running.requests) == 1
    assert post(url, may_connect=lambda address: address == "127.0.0.1").status == 200


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(
    running: RunningHttpServer, files: tuple[Path, Path]
) -> None:
    """A server of names that changes its mind cannot lead a request to another address."""
    answers = iter([("192.0.2.1", "127.0.0.1"), ("127.0.0.1",)])
    clock, tls, asked = SimulatedClock(), client_context(files[0]), []

    async def resolve(host: str, senders: Senders) -> tuple[str, ...]:
        return next(answers)

    def may_connect(address: str) -> bool:
        asked.append(address)
        return address == "127.0.0.1"

    client = running.do(lambda: HttpClient(clock, tls, _no_proxy, resolve))
    url = f"http://changing.example:{running.port}/"
    posting = partial(client.post, url, "", HEADERS, b"", seconds=20)
    for _ in range(2):
        assert running.run(posting(may_connect=may_connect)).address == "127.0.0.1"
    assert asked == ["192.0.2.1", "127.0.0.1"] * 2
    clock.advance(RESOLVED_MILLISECONDS)
    with pytest.raises(PermissionError, match=r"changing\.example is at 127\.0\.0\.1"):
        running.run(posting(may_connect=lambda address: address == "192.0.2.1"))
    assert next(answers, None) is None
    running.run(client.stop())


def test_what_is_not_answered_in_time_is_closed(running: RunningHttpServer, post: Post) -> None:
    running.do(running.answering.clear)
    with pytest.raises(TimeoutError):
        post(f"http://127.0.0.1:{running.port}/", seconds=0.05)
    running.until(lambda: running.server.connections == 0)
    running.do(running.answering.set)


@pytest.mark.parametrize("host", ["xn--", "xn--a"])
def test_a_host_that_cannot_be_is_an_error_of_the_system_and_has_nothing_to_close(
    running: RunningHttpServer, post: Post, client: HttpClient, host: str
) -> None:
    post(f"http://127.0.0.1:{running.port}/")
    with pytest.raises(ConnectionError):
        post(f"http://{host}/")
    running.do(partial(client.close, f"http://{host}/", ""))


def test_what_nobody_serves_is_an_error_of_the_system(post: Post) -> None:
    with listening() as other:
        url = other.url
    with pytest.raises(ConnectionRefusedError):
        post(url)
    with pytest.raises(OSError, match=r"not known|resolution"):
        post("http://nowhere.invalid/")


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: x\r\n" * 1000 + b"\r\n",
    ],
)
def test_what_is_no_answer_is_an_error_of_the_system(post: Post, answer: bytes) -> None:
    with listening() as other:
        other.say(answer)
        with pytest.raises(ConnectionError):
            post(other.url)


@pytest.mark.bound("http.answer_bytes")
@pytest.mark.parametrize("size", [ANSWER_BYTES, ANSWER_BYTES + 1])
def test_the_body_of_an_answer_is_read_away_up_to_a_bound(
    running: RunningHttpServer, post: Post, size: int
) -> None:
    running.response = HttpResponse(200, bytes(size))
    before = running.taken_in
    for _ in range(2):
        assert post(f"http://127.0.0.1:{running.port}/").status == 200
    assert running.taken_in - before == (1 if size <= ANSWER_BYTES else 2)


def test_a_proxy_is_asked_for_the_whole_url(
    running: RunningHttpServer, post: Post, client: HttpClient, files: tuple[Path, Path]
) -> None:
    with listening() as proxy:
        tls = client_context(files[0])
        running.do(partial(client.adjust, tls, lambda url: proxy.url if "far" in url else ""))
        proxy.say(OK)
        assert post("http://far.example:81/msmq/q")[:2] == (200, "")
        assert proxy.heard.startswith(b"POST http://far.example:81/msmq/q HTTP/1.1\r\nHost: far")
        assert post(f"http://127.0.0.1:{running.port}/").status == 200
        proxy.say(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        with pytest.raises(ConnectionError, match="403"):
            post("https://far.example/msmq/q")
        assert b"CONNECT far.example:443 HTTP/1.1" in proxy.heard


def test_a_proxy_is_told_who_asks_if_its_url_says_that(
    running: RunningHttpServer, post: Post, client: HttpClient, files: tuple[Path, Path]
) -> None:
    with listening() as proxy:
        url = proxy.url.replace("//", "//user:secret@")
        running.do(partial(client.adjust, client_context(files[0]), lambda _: url))
        for count in (1, 2):
            proxy.say(OK)
            assert post("http://far.example/msmq/q").status == 200
            assert proxy.heard.count(b"Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=") == count


@pytest.mark.bound("http.places")
def test_places_that_are_not_in_use_are_forgotten_beyond_a_bound(
    running: RunningHttpServer, client: HttpClient, post: Post
) -> None:
    def fill() -> None:
        for number in range(PLACES - 1):
            client._session(_place(number))

    before = running.taken_in
    post(f"http://127.0.0.1:{running.port}/")
    running.do(fill)
    post(f"http://127.0.0.1:{running.port}/")
    assert running.taken_in == before + 1
    running.do(lambda: client._session(_place(PLACES)))
    post(f"http://127.0.0.1:{running.port}/")
    assert running.taken_in == before + 2
