"""Time, memory and connections of those who speak HTTP are bounded as at the other doors."""

import socket
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rpcqm.base.admission import Admission
from rpcqm.http.limits import STEP, HttpLimits
from rpcqm.http.tls import server_context
from tests.support.certificates import write_tls_files
from tests.support.http.http_server import RunningHttpServer, answers, serving_http, until_closed


def holds(running: RunningHttpServer, octets: int) -> bool:
    return running.held() == octets


HEAD = b"POST /msmq/q HTTP/1.1\r\nHost: h\r\n"
SHORT = HEAD + b"Content-Length: 3\r\n\r\nabc"


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(HEAD[:3], id="half a line"),
        pytest.param(HEAD, id="half a head"),
        pytest.param(SHORT[:-1], id="half a body"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", id="no last chunk"),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n3;" + b"x" * 50_000,
            id="an endless chunk line",
        ),
    ],
)
def test_a_request_that_is_never_finished_is_cut_off(octets: bytes) -> None:
    with (
        serving_http(HttpLimits(unfinished_milliseconds=10_000)) as running,
        capture_logs() as logs,
    ):
        with running.connect() as plain:
            plain.sendall(octets)
            running.until(lambda: running.only().owed_since is not None)
            assert running.sweep_after(9_000) == 1
            assert running.sweep_after(12_000) == 0
            until_closed(plain)
        assert [line["reason"] for line in logs] == ["unfinished"]
        assert len(running.requests) == octets.startswith(SHORT)


def test_one_octet_at_a_time_does_not_help() -> None:
    limits = HttpLimits(unfinished_milliseconds=10_000)
    with serving_http(limits) as running, running.connect() as plain:
        for number in range(10):
            assert running.sweep_after(999 if number else 0) == 1
            plain.sendall(SHORT[number : number + 1])
            running.until(partial(holds, running, number + 1))
        assert running.sweep_after(1_100) == 0


def test_a_slow_client_may_go_on_as_long_as_its_body_does() -> None:
    limits = HttpLimits(unfinished_milliseconds=10_000)
    with serving_http(limits) as running, running.connect() as plain:
        plain.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % (3 * STEP))
        for number in range(1, 3):
            plain.sendall(bytes(STEP))
            running.until(partial(holds, running, number * STEP))
            assert running.sweep_after(9_000) == 1
        plain.sendall(bytes(STEP))
        assert answers(plain, 1) == [b"HTTP/1.1 200 OK"]


def test_a_body_that_comes_in_drops_is_cut_off() -> None:
    limits = HttpLimits(unfinished_milliseconds=10_000)
    with serving_http(limits) as running, running.connect() as plain:
        plain.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % (3 * STEP))
        for number in range(1, 11):
            plain.sendall(b".")
            running.until(partial(holds, running, number))
            assert running.sweep_after(999) == 1
        assert running.sweep_after(11) == 0


def test_a_connection_between_requests_may_be_idle_for_so_long_only() -> None:
    with serving_http(HttpLimits(idle_milliseconds=5_000)) as running:
        fresh, used, busy = running.connect(), running.connect(), running.connect()
        used.sendall(SHORT)
        assert answers(used, 1) == [b"HTTP/1.1 200 OK"]
        running.do(running.answering.clear)
        busy.sendall(SHORT)
        running.until(lambda: len(running.requests) == 2)
        assert running.sweep_after(4_900) == 3
        assert running.sweep_after(200) == 1
        assert until_closed(fresh) == until_closed(used) == b""
        assert running.sweep_after(100_000) == 1
        running.do(running.answering.set)
        assert answers(busy, 1) == [b"HTTP/1.1 200 OK"]
        for each in (fresh, used, busy):
            each.close()


def test_one_that_does_not_read_its_answers_is_ended() -> None:
    limits = HttpLimits(unread_milliseconds=5_000, idle_milliseconds=0)
    with serving_http(limits) as running, running.connect() as plain:
        running.response = running.response.__class__(200, bytes(8 << 20))
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.sendall(SHORT * 3)
        running.until(lambda: running.only().unsent > 0)
        assert running.sweep_after(1) == 1
        assert running.sweep_after(4_900) == 1
        assert running.sweep_after(200) == 0


def test_beyond_what_is_held_in_all_those_with_most_are_given_up() -> None:
    with serving_http(HttpLimits(held_bytes_in_all=200_000)) as running, capture_logs() as logs:
        little, much = running.connect(), running.connect()
        little.sendall(HEAD + b"Content-Length: 400000\r\n\r\n" + bytes(70_000))
        much.sendall(HEAD + b"Content-Length: 400000\r\n\r\n" + bytes(120_000))
        running.until(lambda: running.held() == 190_000)
        assert running.sweep_after(1) == 2
        much.sendall(bytes(20_000))
        running.until(lambda: running.held() == 210_000)
        assert running.sweep_after(1) == 1
        until_closed(much)
        assert [line["event"] for line in logs] == ["a connection was given up"]
        little.sendall(bytes(330_000))
        assert answers(little, 1) == [b"HTTP/1.1 200 OK"]
        for each in (little, much):
            each.close()


def test_heads_and_what_waits_behind_a_request_are_held_as_well() -> None:
    with serving_http() as running, running.connect() as plain:
        running.do(running.answering.clear)
        plain.sendall(SHORT)
        running.until(lambda: len(running.requests) == 1)
        waiting = HEAD + b"Content-Length: 1000\r\n\r\n" + bytes(1000)
        plain.sendall(waiting * 3)
        running.until(lambda: running.held() == 3003)
        plain.sendall(HEAD)
        running.until(lambda: running.held() == 3003 + len(HEAD))
        running.do(running.answering.set)
        assert answers(plain, 4) == [b"HTTP/1.1 200 OK"] * 4
        running.until(lambda: running.held() == len(HEAD))


@pytest.mark.parametrize(
    ("admission", "reason"),
    [
        (Admission(2, 10), "too many connections"),
        (Admission(10, 2), "too many connections of one address"),
    ],
)
def test_connections_are_counted_with_those_of_the_other_doors(
    admission: Admission, reason: str
) -> None:
    with serving_http(admission=admission) as running:
        elsewhere = admission.let_in("127.0.0.1")
        with running.connect(), capture_logs() as logs:
            refused = socket.create_connection(("127.0.0.1", running.port), 20)
            assert until_closed(refused) in (b"", b"(reset)")
            running.until(lambda: bool(logs))
            refused.close()
        assert [(line["event"], line["reason"]) for line in logs] == [
            ("a connection was refused", reason)
        ]
        elsewhere.leave()
        running.until(lambda: admission.count == 0)
        with running.connect(), running.connect():
            assert admission.count == 2
        running.until(lambda: admission.count == 0)


def test_a_request_in_flight_is_answered_when_the_server_stops() -> None:
    with serving_http() as running:
        idle, busy = running.connect(), running.connect()
        running.do(running.answering.clear)
        busy.sendall(SHORT)
        running.until(lambda: len(running.requests) == 1)
        stopping = running.do(lambda: running.loop.create_task(running.server.stop()))
        running.until(lambda: running.server.connections == 1)
        assert until_closed(idle) == b""
        running.do(running.answering.set)
        assert until_closed(busy).startswith(b"HTTP/1.1 200 OK")
        running.until(stopping.done)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", running.port), 20)
        for each in (idle, busy):
            each.close()


def test_one_that_is_never_answered_is_cut_off_when_the_server_stops() -> None:
    with serving_http(HttpLimits(stop_milliseconds=50)) as running, running.connect() as busy:
        running.do(running.answering.clear)
        busy.sendall(SHORT)
        running.until(lambda: len(running.requests) == 1)
        running.run(running.server.stop())
        assert until_closed(busy) in (b"", b"(reset)")


def test_a_mistake_of_ours_is_answered_and_the_others_go_on() -> None:
    with serving_http() as running, running.connect() as plain:
        running.failure = ZeroDivisionError("a mistake")
        with capture_logs() as logs:
            plain.sendall(SHORT)
            assert until_closed(plain).startswith(b"HTTP/1.1 500 ")
        assert [line["event"] for line in logs] == ["a request failed"]
        running.failure = None
        with running.connect() as other:
            other.sendall(SHORT)
            assert answers(other, 1) == [b"HTTP/1.1 200 OK"]


CLIENT_HELLO = bytes.fromhex("160301020001000102030303")
"""The beginning of one of 512 octets."""


@pytest.mark.parametrize("octets", [b"", CLIENT_HELLO], ids=["nothing", "half a hello"])
def test_a_handshake_that_is_never_finished_is_cut_off(octets: bytes, tmp_path: Path) -> None:
    admission = Admission(10, 10)
    context = server_context(*write_tls_files(tmp_path))
    limits = HttpLimits(unfinished_milliseconds=200)
    with serving_http(limits, admission, context) as running, capture_logs() as logs:
        with socket.create_connection(("127.0.0.1", running.secure_port), 20) as stalled:
            stalled.sendall(octets)
            running.until(lambda: admission.count == 1)
            with running.connect() as other:
                other.sendall(SHORT)
                assert answers(other, 1) == [b"HTTP/1.1 200 OK"]
            assert until_closed(stalled) in (b"", b"(reset)")
        running.until(lambda: admission.count == 0)
        running.until(lambda: bool(logs))
        assert [line["event"] for line in logs] == ["a connection could not be taken over"]
