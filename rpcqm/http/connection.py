"""One connection of a server: aiohttp's protocol with the bounds that it lacks."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.base_protocol import PAUSE_RESUME_READING_ERRORS
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from rpcqm.base.admission import Ticket
from rpcqm.base.log import get_logger
from rpcqm.base.open_connections import next_number
from rpcqm.http.limits import FIELD_BYTES, HEADERS, LINE_BYTES, STEP
from rpcqm.http.tls import ServerContext

if TYPE_CHECKING:
    from rpcqm.http.server import HttpServer, Listening

_log = get_logger("http")

_SLICE = 1 << 14
"""Octets that are parsed at once; so many of the next head may come uncounted."""
_NEVER = 1e8
"""Seconds until aiohttp's own timer for idle connections: ours looks at all of them together."""
_LINGER_SECONDS = 1.0
"""Seconds for which octets behind a refusal are read away: an immediate close would lose the
answer."""


class HttpConnection(web.RequestHandler):
    """Counts held octets and the time since when something is owed; the server ends it."""

    __slots__ = (
        "_body",
        "_body_steps",
        "_gone",
        "_head",
        "_lingering",
        "_server",
        "_taken",
        "listening",
        "number",
        "owed_since",
        "peer",
        "silent_since",
        "since",
        "succeeded",
        "taken_since",
        "ticket",
    )

    def __init__(
        self,
        manager: web.Server,
        server: "HttpServer",
        listening: "Listening",
        ticket: Ticket,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(
            manager,
            loop=loop,
            keepalive_timeout=_NEVER,
            tcp_keepalive=False,  # the listening socket has keep-alive already
            access_log=None,  # type: ignore[arg-type]  # aiohttp asks whether there is one
            max_line_size=LINE_BYTES,
            max_field_size=FIELD_BYTES,
            max_headers=HEADERS,
            lingering_time=0.0,
            read_bufsize=STEP,
            auto_decompress=False,
        )
        self._server = server
        self.listening = listening
        self.ticket = ticket
        self.peer = ""
        self._body: StreamReader = EMPTY_PAYLOAD
        self._body_steps = self._head = 0
        self._lingering = False
        self._gone: asyncio.Future[None] | None = None
        self._taken = 0
        self.succeeded = 0
        """Requests that were answered with success."""
        self.number = next_number()
        self.since = server.clock.now()
        """In milliseconds since 1970."""
        self.owed_since: int | None = None
        self.silent_since = self.taken_since = server.clock.monotonic()

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        host, port = transport.get_extra_info("peername")[:2]
        self.peer = f"{host}:{port}"
        super().connection_made(transport)
        self._server.served.keep(self)

    def connection_lost(self, error: BaseException | None) -> None:
        self.ticket.leave()
        self._server.served.open.discard(self)
        if self.owed_since is not None and not self._lingering:
            self.refused("the connection ended before the request")
        super().connection_lost(error)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self._lingering:
            return
        if len(data) <= _SLICE:  # empty data, too, by which aiohttp goes on after a pause
            self._feed(data)
            return
        for at in range(0, len(data), _SLICE):
            self._feed(data[at : at + _SLICE])

    def _feed(self, data: bytes) -> None:
        requests, was_whole = self._request_count, self._body.is_eof()
        super().data_received(data)
        if self._request_count != requests:
            self._body = self._messages[-1][1]
            self._head = self._body_steps = 0
            self.owed_since = None
        elif was_whole:
            self._head += len(data)
        self._note_what_is_owed()

    def _note_what_is_owed(self) -> None:
        """The clock runs from the first octet of a request, and again for each STEP of its body."""
        now = self._server.clock.monotonic()
        self.silent_since = now
        if self._body.is_eof() and not self._head:
            self.owed_since = None
            return
        steps = self._body.total_bytes // STEP
        if self.owed_since is None or steps != self._body_steps:
            self._body_steps, self.owed_since = steps, now

    # Asked by the server

    @property
    def busy(self) -> bool:
        """Whether a request is being answered or waits for its turn."""
        return self._request_in_progress or bool(self._messages)

    @property
    def requests(self) -> int:
        """The number of requests whose heads have come."""
        return self._request_count

    @property
    def unanswered(self) -> int:
        """The number of requests that are being answered or wait for their turn."""
        return int(self._request_in_progress) + len(self._messages)

    @property
    def channel(self) -> ServerContext | None:
        """The TLS channel of this connection, unchanged by a reload of the certificate."""
        context = self.transport.get_extra_info("sslcontext") if self.transport else None
        return context if isinstance(context, ServerContext) else None

    @property
    def unsent(self) -> int:
        """Octets of answers that the client has not taken."""
        return self.transport.get_write_buffer_size() if self.transport is not None else 0

    @property
    def held(self) -> int:
        """Octets that are kept for the client."""
        queued = sum(body.total_bytes for _, body in self._messages) if self._messages else 0
        request = self._current_request
        handled = request.content.total_bytes if request is not None else 0
        return self._head + queued + handled + self.unsent

    def note_what_is_taken(self, now: int) -> None:
        """Note whether the client has taken some of the answers since the last look."""
        unsent = self.unsent
        if unsent == 0 or unsent < self._taken:
            self.taken_since = now
        self._taken = unsent

    def abort(self) -> None:
        """End at once."""
        self._lingering = True
        if self.transport is not None:
            self.transport.abort()

    def begin_refusing(self) -> bool:
        """Whether a request is on its way whose outcome nobody has been told."""
        return self.busy

    # Refusals.

    def refused(self, reason: str, status: int = 0) -> None:
        """Log a refusal in one line; without a status the peer got no answer."""
        self._server.metrics.count("http.refusals")
        _log.info("a request was refused", peer=self.peer, reason=reason, status=status)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a malformed request and close the connection."""
        self.refused(_one_line(message or str(exc) or type(exc).__name__), status)
        self.owed_since = None
        return self._server.refusal(status, self)

    async def linger(self) -> None:
        """Read away what still comes, until the client has closed its side."""
        self._lingering = True
        self.owed_since = None
        transport = self.transport
        if transport is None:
            return
        self._gone = self._loop.create_future()
        with contextlib.suppress(*PAUSE_RESUME_READING_ERRORS):  # reading was not paused
            transport.resume_reading()
        if transport.can_write_eof():
            transport.write_eof()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._gone, _LINGER_SECONDS)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log a mistake of ours; only this connection ends."""
        _log.error("a connection failed", peer=self.peer, exc_info=kw.get("exc_info"))

    def _process_keepalive(self) -> None:
        """Do nothing: the server looks for idle connections itself."""


def _one_line(text: str) -> str:
    return text.partition("\n")[0].rstrip(":")
