"""A server of HTTP on loopback inside the test's process, whose time a test moves."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import uvloop

from rpcqm.base.admission import Admission
from rpcqm.http.connection import HttpConnection
from rpcqm.http.exchange import HttpRequest, HttpResponse
from rpcqm.http.limits import HttpLimits
from rpcqm.http.server import HttpServer
from tests.support.clock import SimulatedClock
from tests.support.loop_thread import LoopThread
from tests.support.waiting import PATIENCE


class RunningHttpServer(LoopThread):
    """`requests` are those that have come; answers wait while `answering` is not set."""

    server: HttpServer
    answering: asyncio.Event

    def __init__(self, limits: HttpLimits, admission: Admission) -> None:
        super().__init__(uvloop.new_event_loop())
        self.clock = SimulatedClock()
        self.requests: list[HttpRequest] = []
        self.response = HttpResponse(200)
        self.failure: Exception | None = None
        self.port = self.secure_port = 0
        self.do(lambda: self._make(limits, admission))

    def _make(self, limits: HttpLimits, admission: Admission) -> None:
        self.answering = asyncio.Event()
        self.answering.set()
        self.server = HttpServer(self._handle, self.clock, admission, limits)

    async def _handle(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        if self.failure is not None:
            raise self.failure
        await self.answering.wait()
        return self.response

    def sweep_after(self, milliseconds: int) -> int:
        """Let time pass and look for what is overdue; how many connections are left then."""

        def sweep() -> None:
            self.clock.advance(milliseconds)
            self.server.served.sweep()

        self.do(sweep)
        self.run(asyncio.sleep(0))
        return self.do(lambda: self.server.connections)

    def only(self) -> HttpConnection:
        """The one connection that there is; for the loop."""
        (connection,) = self.server.served.open
        return connection

    def held(self) -> int:
        """What is kept for all connections."""
        return sum(each.held for each in self.server.served.open)

    @property
    def taken_in(self) -> int:
        """Connections so far."""
        return self.server.metrics.snapshot().get("http.connections", 0)

    def connect(self) -> socket.socket:
        """A connection that the server has taken in."""
        before = self.taken_in
        plain = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        self.until(lambda: self.taken_in > before)
        return plain


@contextmanager
def serving_http(
    limits: HttpLimits | None = None,
    admission: Admission | None = None,
    context: ssl.SSLContext | None = None,
) -> Iterator[RunningHttpServer]:
    """Serve on one port, and on another with TLS if there is a context."""
    running = RunningHttpServer(limits or HttpLimits(), admission or Admission(1000, 1000))
    try:
        running.port = running.run(running.server.listen("127.0.0.1", 0))
        if context is not None:
            running.secure_port = running.run(running.server.listen("127.0.0.1", 0, context))
        yield running
    finally:
        running.do(running.answering.set)
        running.run(running.server.stop())
        running.end()


def until_closed(plain: socket.socket) -> bytes:
    """Everything that comes before the other side closes."""
    answer = b""
    try:
        while part := plain.recv(1 << 16):
            answer += part
    except ConnectionResetError:
        answer += b"(reset)"
    return answer


def answers(plain: socket.socket, count: int) -> list[bytes]:
    """The status lines of so many answers without bodies."""
    came = b""
    while came.count(b"\r\n\r\n") < count:
        part = plain.recv(1 << 16)
        if not part:
            break
        came += part
    return [each.split(b"\r\n")[0] for each in came.split(b"\r\n\r\n") if each]
