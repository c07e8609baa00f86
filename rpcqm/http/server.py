"""HTTP/1.1 as a server, within the bounds of the other listeners (G206, G207).

aiohttp parses and writes. Time, memory and the number of connections are bounded here.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from aiohttp import web
from aiohttp.http import HttpVersion, HttpVersion10, HttpVersion11
from aiohttp.web_protocol import RequestPayloadError

from rpcqm.base.acceptor import Acceptor, Tls, keep_alive, tcp_socket
from rpcqm.base.addresses import owner_of
from rpcqm.base.admission import Admission, Ticket
from rpcqm.base.clock import Clock
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics, stopwatch
from rpcqm.base.open_connections import ConnectionView
from rpcqm.base.outlet import SENTENCE, Guarded, Outlet, current
from rpcqm.base.served_connections import ServedConnections
from rpcqm.http.answer import Answer, HeadedAnswer, StreamedAnswer, head_of
from rpcqm.http.connection import HttpConnection
from rpcqm.http.exchange import HttpHandler, HttpRequest, HttpResponse, HttpStream, StreamCutError
from rpcqm.http.limits import HttpLimits

_NOT_SUCCESS = 300
_ANSWERS_REMEMBERED = 16
"""Headers of answers that are not put together again: most have their type alone."""

Explain = Callable[[int, str], HttpResponse]
"""Gives the body of an answer, and its type, of a status and a reason that may be said."""

_log = get_logger("http")


@dataclass(frozen=True, slots=True)
class Listening:
    """One port."""

    port: int
    secure: bool


class Refused(Exception):
    """A request that is answered with a status before anybody has seen its body."""

    def __init__(self, status: int, reason: str, *headers: tuple[str, str]) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers


class HttpServer:
    """Serves requests of some `methods` on any number of ports; all of them go to one handler.

    `allowed` are those of a path, as `Allow` names them, unless they are the same for all.
    `admission` says who may connect; listeners of other protocols share it. Every answer has
    `headers`, unless it has others of these names; `explain` says what is answered to requests that
    are refused here. With `cancels` a handler whose client has gone is cancelled. What is told at
    the targets `of_process` holds whatever other nodes of a cluster do.
    """

    def __init__(
        self,
        handler: HttpHandler,
        clock: Clock,
        admission: Admission,
        limits: HttpLimits | None = None,
        metrics: Metrics | None = None,
        *,
        methods: Sequence[str] = ("POST",),
        allowed: Callable[[str], str] | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        explain: Explain = lambda status, _: HttpResponse(status),
        cancels: bool = False,
        name: str = "messages",
        of_process: frozenset[str] = frozenset(),
    ) -> None:
        self.clock = clock
        self._headers = headers
        self._answered: dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = {}
        self._heads: dict[tuple[int, tuple[tuple[str, str], ...]], bytes] = {}
        self._explain = explain
        self._methods = methods
        self._allowed = allowed or (lambda path: ", ".join(methods))
        self.limits = limits or HttpLimits()
        self.metrics = metrics if metrics is not None else Metrics()
        self._handler = handler
        self._name = name
        self._of_process = of_process
        self._outlet = current()
        self._durations = self.metrics.histogram("http", name)
        self._manager = web.Server(self._handle, handler_cancellation=cancels)
        self.make_connection: Callable[..., HttpConnection] = HttpConnection
        self._acceptors: list[Acceptor] = []
        self._tls: Tls | None = None
        self.served: ServedConnections[HttpConnection] = ServedConnections(
            "http",
            clock,
            admission,
            self.metrics,
            overdue=self._overdue,
            most_held=lambda: self.limits.held_bytes_in_all,
        )
        self._streams: dict[HttpStream, None] = {}

    async def listen(self, host: str, port: int, context: ssl.SSLContext | None = None) -> int:
        """Listen, with TLS if there is a context, and return the port. Raises OSError."""
        return self.listen_on(tcp_socket(host, port), context)

    def listen_on(self, listening: socket.socket, context: ssl.SSLContext | None = None) -> int:
        """The same on a socket that is bound already."""
        bound = int(listening.getsockname()[1])
        keep_alive(listening, self.limits.keepalive_milliseconds // 1000)
        tls = None
        if context is not None:
            tls = self._tls = Tls(context, self._handshake_seconds())
        place = Listening(bound, secure=context is not None)
        self._acceptors.append(Acceptor(listening, self._admit, partial(self._make, place), tls))
        self.served.start_sweeping()
        return bound

    def adjust(self, limits: HttpLimits, context: ssl.SSLContext | None) -> None:
        """Go on with other limits, and with another certificate for new connections."""
        self.limits = limits
        if self._tls is not None and context is not None:
            self._tls.context = context
            self._tls.handshake_seconds = self._handshake_seconds()

    async def stop(self) -> None:
        """Stop listening, let the requests in flight be answered, and end every connection."""
        for acceptor in self._acceptors:
            acceptor.close()
        for stream in list(self._streams):
            stream.close()
        self._manager.pre_shutdown()
        await self._manager.shutdown(self.limits.stop_milliseconds / 1000)
        self.served.stop_sweeping()

    @property
    def connections(self) -> int:
        return len(self.served.open)

    @property
    def speaking(self) -> Iterable[HttpConnection]:
        """The connections by which a request has come."""
        return (each for each in self.served.open if each.requests)

    def open_connections(self) -> Iterator[ConnectionView]:
        """The connections that are there, as operators see them; who asks is proved anew."""
        for each in self.served.open:
            yield ConnectionView(each.number, f"http {self._name}", each.peer, (), each.since, 0)

    def end_connection(self, number: int) -> bool:
        """End a connection; False if none has that number."""
        ended = [each for each in self.served.open if each.number == number]
        for connection in ended:
            connection.abort()
        return bool(ended)

    # What connections call.

    def refusal(
        self,
        status: int,
        connection: HttpConnection,
        more: tuple[tuple[str, str], ...] = (),
        reason: str = "",
    ) -> Answer:
        """What is answered to a request that is refused; its connection ends."""
        answer = self._explain(status, reason)
        named = {name for name, _ in answer.headers}
        told = tuple(each for each in more if each[0] not in named)
        headers = answer.headers + told + self._headers
        return Answer(status, answer.body, headers, lingers=connection)

    # Requests.

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, HttpConnection)
        began = stopwatch()
        try:
            answer = await self._answer(request, connection)
            if not isinstance(answer, StreamedAnswer):
                self._durations.add(stopwatch() - began)
            return answer
        except Refused as error:
            connection.refused(error.reason, error.status)
            return self.refusal(error.status, connection, error.headers, error.reason)
        except (RequestPayloadError, web.PayloadAccessError) as error:
            connection.refused(str(error), 400)
            return self.refusal(400, connection)
        except ConnectionError:
            return Answer(400)  # nobody is there to read it; the connection has told why
        except Exception:  # a mistake of ours is answered, and the others are served
            _log.exception("a request failed", peer=connection.peer)
            return self.refusal(500, connection)

    async def _answer(
        self, request: web.BaseRequest, connection: HttpConnection
    ) -> Answer | HeadedAnswer | StreamedAnswer:
        if self._outlet is not None:
            self._ask_outlet(self._outlet, request, connection)
        length = self._check(request)
        if "Expect" in request.headers and request.version != HttpVersion10:
            await _continue(request)
        body = await self._body(request) if length != 0 else b""
        self.metrics.count("http.requests")
        host = connection.peer.rpartition(":")[0]
        place = connection.listening
        answer = await self._handler(
            HttpRequest(
                request.method,
                _octets_of(request.raw_path),
                tuple((n.decode("latin-1"), v.decode("latin-1")) for n, v in request.raw_headers),
                body,
                host,
                place.secure,
                place.port,
                connection.channel,
            )
        )
        connection.succeeded += answer.status < _NOT_SUCCESS
        if answer.often and request.keep_alive and request.version == HttpVersion11:
            return HeadedAnswer(self._head(answer), answer.body)
        if answer.stream is not None:
            return await self._send_stream(request, answer, answer.stream)
        return Answer(answer.status, answer.body, self._with_ours(answer.headers))

    def _ask_outlet(
        self, outlet: Outlet, request: web.BaseRequest, connection: HttpConnection
    ) -> None:
        """Refuse what cannot be answered now; raises Refused."""
        transport = connection.transport
        if isinstance(transport, Guarded):
            transport.passing = outlet.refusing or request.raw_path in self._of_process
        if outlet.refusing and request.raw_path not in self._of_process:
            raise Refused(503, SENTENCE, ("Retry-After", "1"))

    def _head(self, answer: HttpResponse) -> bytes:
        key = answer.status, answer.headers
        head = self._heads.get(key)
        if head is None:
            head = head_of(answer.status, self._with_ours(answer.headers))
            if len(self._heads) < _ANSWERS_REMEMBERED:
                self._heads[key] = head
        return head

    def _with_ours(self, headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        if not self._headers:
            return headers
        known = self._answered.get(headers)
        if known is None:
            names = {name for name, _ in headers}
            known = headers + tuple(each for each in self._headers if each[0] not in names)
            if len(headers) <= 1 and len(self._answered) < _ANSWERS_REMEMBERED:
                self._answered[headers] = known
        return known

    async def _send_stream(
        self, request: web.BaseRequest, answer: HttpResponse, stream: HttpStream
    ) -> StreamedAnswer:
        """Send what comes until it ends, the client has gone, or the server stops."""
        told = StreamedAnswer(answer.status, self._with_ours(answer.headers))
        self._streams[stream] = None
        try:
            await told.prepare(request)
            while (part := await stream.next()) is not None:
                await told.write(part)
            await told.write_eof()
        except StreamCutError as error:
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionAbortedError(str(error)) from error
        finally:
            del self._streams[stream]
            stream.close()
        return told

    def _check(self, request: web.BaseRequest) -> int | None:
        """The length of a body, None if it comes in chunks; raises Refused."""
        if request.version not in (HttpVersion10, HttpVersion11):
            raise Refused(505, "not HTTP/1.0 or HTTP/1.1")
        if request.method not in self._methods:
            allowed = self._allowed(_octets_of(request.raw_path).partition("?")[0])
            raise Refused(405, f"{request.method} is not served", ("Allow", allowed))
        headers = request.headers
        if headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refused(415, "the body is compressed")
        if any(each.lower() != "100-continue" for each in headers.getall("Expect", ())):
            raise Refused(417, "something else than 100-continue is expected")
        if "Transfer-Encoding" in headers:
            _check_coding(request.version, headers["Transfer-Encoding"].lower())
            return None
        length = request.content_length or 0
        if length > self.limits.body_bytes:
            most = self.limits.body_bytes
            raise Refused(413, f"the body has {length:,} octets, and {most:,} are taken at most")
        return length

    async def _body(self, request: web.BaseRequest) -> bytes:
        """All of it; raises Refused when it is too long."""
        parts, size = [], 0
        while part := await request.content.readany():
            parts.append(part)
            size += len(part)
            if size > self.limits.body_bytes:
                raise Refused(413, f"the body has more than {self.limits.body_bytes:,} octets")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    # Who may connect.

    def _admit(self, accepted: socket.socket, address: tuple[str, int]) -> Ticket | None:
        return self.served.admit(owner_of(address[0]), f"{address[0]}:{address[1]}")

    def _make(self, place: Listening, ticket: Ticket) -> HttpConnection:
        loop = asyncio.get_running_loop()
        return self.make_connection(self._manager, self, place, ticket, loop)

    def _handshake_seconds(self) -> float | None:
        milliseconds = self.limits.unfinished_milliseconds
        return milliseconds / 1000 if milliseconds else None

    # Deadlines.

    def _overdue(self, connection: HttpConnection, now: int) -> str:
        connection.note_what_is_taken(now)
        limits, owed_since = self.limits, connection.owed_since
        if owed_since is not None:
            if 0 < limits.unfinished_milliseconds <= now - owed_since:
                return "unfinished"
        elif connection.busy:
            connection.silent_since = now
        elif 0 < limits.idle_milliseconds <= now - connection.silent_since:
            return "idle"
        return "unread" if 0 < limits.unread_milliseconds <= now - connection.taken_since else ""


def _check_coding(version: HttpVersion, coding: str) -> None:
    """Let chunks through, which HTTP/1.1 alone has; raises Refused (RFC 9112 6.1, G480)."""
    if not coding or version != HttpVersion11:
        raise Refused(400, "the transfer is encoded in nothing, or in a request of HTTP/1.0")
    if coding != "chunked":
        raise Refused(501, "the transfer is encoded otherwise than in chunks")


async def _continue(request: web.BaseRequest) -> None:
    """Tell a client that waits for it that its body is wanted."""
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0  # the answer itself has not begun


def _octets_of(text: str) -> str:
    """The target with a character for each octet, as headers have it."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")
