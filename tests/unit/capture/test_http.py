"""Octets of a connection are cut into HTTP requests and answers, in whatever pieces they come."""

from collections.abc import Iterable

import pytest

from rpcqm.capture.conversation.http import (
    MAXIMUM_BODY,
    MAXIMUM_HEAD,
    MAXIMUM_PENDING,
    HttpConversation,
    HttpMessage,
    begins_http,
)

POST = b"POST /msmq/private$/q HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


def post(body: bytes, *lines: bytes, target: bytes = b"/q") -> bytes:
    head = [b"POST %b HTTP/1.1" % target, *(lines or (b"Content-Length: %d" % len(body),))]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def answer(status: int, *lines: bytes) -> bytes:
    head = [b"HTTP/1.1 %d Reason" % status, *(lines or (b"Content-Length: 0",))]
    return b"\r\n".join(head) + b"\r\n\r\n"


class Heard:
    """A conversation, and what it has told."""

    def __init__(self) -> None:
        self.pairs: list[tuple[HttpMessage, HttpMessage | None]] = []
        self.problems: list[str] = []
        self.made = HttpConversation(
            lambda request: request.first[1] != "/unwanted",
            lambda request, answer: self.pairs.append((request, answer)),
            lambda offset, reason: self.problems.append(reason),
        )
        self._clock = 0

    def client(self, data: bytes, size: int = 1 << 20) -> "Heard":
        return self._feed(True, data, size)

    def server(self, data: bytes, size: int = 1 << 20) -> "Heard":
        return self._feed(False, data, size)

    def _feed(self, client: bool, data: bytes, size: int) -> "Heard":
        stream = self.made.from_client if client else self.made.from_server
        for at in range(0, len(data), size):
            self._clock += 1
            stream.take(data[at : at + size], self._clock, at)
        return self

    def gap(self, client: bool, count: int) -> "Heard":
        stream = self.made.from_client if client else self.made.from_server
        self._clock += 1
        stream.gap(count, self._clock, 0)
        return self

    def finish(self) -> "Heard":
        self.made.finish()
        return self

    @property
    def told(self) -> list[tuple[bytes, int | None]]:
        return [(bytes(one.body), other.status if other else None) for one, other in self.pairs]

    @property
    def notes(self) -> list[str]:
        return [request.note for request, _ in self.pairs]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
def test_a_request_and_its_answer_are_found_in_pieces_of_any_size(size: int) -> None:
    heard = Heard().client(POST, size).server(OK, size)
    assert heard.told == [(b"hello", 200)]
    (request, response) = heard.pairs[0]
    assert response is not None
    assert request.first == ("POST", "/msmq/private$/q", "HTTP/1.1")
    assert request.headers == (("Host", "h"), ("Content-Length", "5"))
    assert (request.size, response.size) == (len(POST), len(OK))
    assert request.whole
    assert request.began <= request.ended < response.began <= response.ended
    assert not heard.problems


@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_pipelined_requests_get_the_answers_in_their_order(size: int) -> None:
    asked = b"".join(post(b"%d" % number) for number in range(5))
    told = b"".join(answer(status) for status in (200, 400, 200, 503, 201))
    heard = Heard().client(asked, size).server(told, size)
    assert heard.told == [(b"0", 200), (b"1", 400), (b"2", 200), (b"3", 503), (b"4", 201)]


@pytest.mark.parametrize("size", [1, 4, 1 << 20])
def test_chunks_are_put_together_and_their_trailers_passed_over(size: int) -> None:
    chunks = b"3;why=so\r\nabc\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
    heard = Heard().client(post(chunks, b"Transfer-Encoding: chunked") + POST, size)
    heard.server(answer(200, b"Transfer-Encoding: gzip, chunked") + b"0\r\n\r\n" + OK, size)
    assert heard.told == [(b"abc0123456789", 200), (b"hello", 200)]


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_an_interim_answer_is_not_the_answer(size: int) -> None:
    heard = Heard().client(POST, size).server(answer(100, b"X: y") + answer(200), size)
    assert heard.told == [(b"hello", 200)]


def test_answers_without_a_body_have_none_whatever_their_headers_say() -> None:
    heard = Heard().client(b"HEAD / HTTP/1.1\r\n\r\n" + post(b"a") + post(b"b"))
    told = (answer(200, b"Content-Length: 99"), answer(304, b"Content-Length: 7"), answer(204))
    heard.server(b"".join(told))
    assert heard.told == [(b"", 200), (b"a", 304), (b"b", 204)]


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    heard = Heard().client(POST).server(answer(400, b"X: y") + b"because")
    assert not heard.pairs
    heard.finish()
    response = heard.pairs[0][1]
    assert response is not None
    assert (bytes(response.body), response.whole) == (b"because", True)


def test_an_answer_that_comes_before_the_end_of_its_request_is_its_answer() -> None:
    heard = Heard().client(post(b"x", b"Content-Length: 1000")).server(answer(413))
    assert not heard.pairs
    heard.finish()
    assert heard.told == [(b"x", 413)]
    assert heard.notes == ["the connection ended within it"]


def test_the_body_of_a_request_that_is_not_wanted_is_not_kept() -> None:
    unwanted = post(b"secret", target=b"/unwanted")
    heard = Heard().client(unwanted + POST).server(OK + OK)
    assert heard.told == [(b"hello", 200)]


# Octets that were not captured.


def test_a_gap_within_a_body_costs_that_body_alone() -> None:
    head, body = post(b"0123456789")[:-10], b"0123456789"
    heard = Heard().client(head + body[:3]).gap(True, 4).client(body[7:]).server(OK)
    heard.client(POST).server(OK)
    assert [status for _, status in heard.told] == [200, 200]
    assert [request.whole for request, _ in heard.pairs] == [False, True]
    assert heard.notes[0] == "4 octets of its body were not captured"


def test_a_gap_to_the_end_of_a_body_ends_it() -> None:
    heard = Heard().client(post(b"0123456789")[:-6]).gap(True, 6).server(OK).client(POST).server(OK)
    assert [status for _, status in heard.told] == [200, 200]


def test_a_gap_within_a_chunk_costs_that_body_alone() -> None:
    chunks = post(b"a\r\n012", b"Transfer-Encoding: chunked")
    heard = Heard().client(chunks).gap(True, 7).client(b"\r\n0\r\n\r\n" + POST).server(OK + OK)
    assert [request.whole for request, _ in heard.pairs] == [False, True]


def test_behind_a_gap_the_next_request_is_found() -> None:
    heard = Heard().client(POST[:20]).gap(True, 30).client(b"of a body" + POST).server(OK)
    assert heard.told == [(b"hello", 200)]
    assert len(heard.problems) == 1


def test_an_answer_that_was_not_captured_is_not_that_of_the_next_request() -> None:
    heard = Heard().client(POST).gap(False, len(OK)).client(post(b"next")).server(answer(503))
    assert heard.told == [(b"hello", None), (b"next", 503)]
    assert heard.notes == ["its answer was not captured", ""]


def test_an_answer_whose_request_was_not_captured_belongs_to_no_other() -> None:
    heard = Heard().gap(True, len(POST)).server(answer(500)).client(POST).server(OK)
    assert heard.told == [(b"hello", 200)]
    assert heard.problems[-1] == "an answer whose request was not captured"


def test_behind_a_gap_pipelined_requests_have_no_answers_rather_than_wrong_ones() -> None:
    heard = Heard().client(post(b"1") + post(b"2") + post(b"3")).gap(False, 100)
    heard.server(answer(400)).client(POST).server(OK).finish()
    assert heard.told == [(b"1", None), (b"2", None), (b"3", None), (b"hello", None)]


def test_requests_that_are_cut_by_the_end_are_told_without_answers() -> None:
    heard = Heard().client(POST + POST[:-2]).finish()
    assert [status for _, status in heard.told] == [None, None]
    assert heard.notes == ["its answer was not captured", "the connection ended within it"]


# What senders write who wish us ill.


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ((b"Content-Length: 5", b"Content-Length: 6"), "contradict"),
        ((b"Content-Length: 5, 6",), "contradict"),
        ((b"Content-Length: -5",), "no number"),
        ((b"Content-Length: 5x",), "no number"),
        ((b"Content-Length: " + b"9" * 5000,), "no number"),
        ((b"Transfer-Encoding: gzip",), "does not tell its end"),
        ((b"Transfer-Encoding: chunked, gzip",), "does not tell its end"),
    ],
)
def test_a_request_whose_end_is_not_clear_is_told_and_the_next_one_found(
    lines: tuple[bytes, ...], why: str
) -> None:
    heard = Heard().client(post(b"hello", *lines) + POST).server(answer(400) + OK).finish()
    assert why in heard.notes[0]
    assert not heard.pairs[0][0].whole
    assert bytes(heard.pairs[1][0].body) == b"hello"


def test_chunks_count_before_a_content_length_and_it_is_told() -> None:
    lines = b"Content-Length: 3", b"Transfer-Encoding: chunked"
    heard = Heard().client(post(b"5\r\nhello\r\n0\r\n\r\n", *lines) + POST).server(OK + OK)
    assert heard.told == [(b"hello", 200), (b"hello", 200)]
    assert "both" in heard.notes[0]


@pytest.mark.parametrize(
    "octets",
    [
        b"\0" * 100_000,
        b"POST / HTTP/1.1\r\n" + b"X: y\r\n" * 50_000,
        b"POST /" + b"x" * 200_000,
        b"POST / HTTP/1.1\r\n" + CHUNKED + b"f" * 5000,
        b"POST / HTTP/1.1\r\n" + CHUNKED + b"no\r\n",
        b"POST / HTTP/1.1\r\n" + CHUNKED + b"1\r\nabc",
        b"POST / HTTP/1.1\r\n" + CHUNKED + b"0\r\n" + b"X: y\r\n" * 50_000,
        b"POST / HTTP/1.1\r\n" + CHUNKED + b"0\r\n" + b"x" * 100_000,
        b"\r\n" * 100_000,
        b"POST / HTTP/9\r\n\r\n" * 100,
    ],
    ids=lambda octets: repr(octets[:30]),
)
@pytest.mark.parametrize("size", [1, 1448, 1 << 20])
def test_octets_that_are_no_http_are_passed_over_and_little_is_held(
    octets: bytes, size: int
) -> None:
    heard = Heard().client(octets, max(size, len(octets) // 5000))
    assert len(heard.made.from_client._buffer) <= MAXIMUM_HEAD
    heard.client(b"\r\n\r\n", size).server(answer(400)).client(POST, size).server(OK).finish()
    assert heard.told[-1] == (b"hello", 200)


def test_a_body_at_the_bound_is_kept_and_one_beyond_is_not() -> None:
    heard = Heard().client(post(bytes(MAXIMUM_BODY)) + post(bytes(MAXIMUM_BODY + 1)) + POST)
    heard.server(OK * 3)
    assert [len(request.body) for request, _ in heard.pairs] == [MAXIMUM_BODY, 0, 5]
    assert [request.whole for request, _ in heard.pairs] == [True, False, True]


@pytest.mark.parametrize(("size", "found"), [(MAXIMUM_HEAD, 2), (MAXIMUM_HEAD + 1, 1)])
def test_a_head_at_the_bound_is_read_and_one_beyond_is_not(size: int, found: int) -> None:
    begin = b"POST / HTTP/1.1\r\nX: "
    heard = Heard().client(begin + b"y" * (size - len(begin)) + b"\r\n\r\n")
    heard.client(POST).finish()
    assert len(heard.pairs) == found


def test_requests_without_answers_are_held_up_to_their_bound() -> None:
    heard = Heard().client(POST * MAXIMUM_PENDING)
    assert not heard.pairs
    heard.client(POST)
    assert len(heard.pairs) == MAXIMUM_PENDING + 1
    assert {status for _, status in heard.told} == {None}


def test_another_protocol_behind_http_is_not_read() -> None:
    heard = Heard().client(POST).server(answer(101, b"Upgrade: other"))
    heard.client(POST).server(b"\0\1\2" + OK).gap(True, 5).finish()
    assert heard.told == [(b"hello", 101)]


def parts() -> Iterable[bytes]:
    yield from (POST, OK, b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.1 404 No\r\n\r\n", b"PUT * HTTP/1.1")


@pytest.mark.parametrize("data", [*parts()])
def test_what_begins_http_is_known_by_its_first_word(data: bytes) -> None:
    assert begins_http(data)
    assert not begins_http(b"\x05" + data)
