"""What answers at a port of HTTP whose server cannot be loaded: 503, whatever is asked."""

import asyncio
import socket
from typing import TYPE_CHECKING, cast

from rpcqm.base.acceptor import Acceptor, Tls
from rpcqm.base.addresses import owner_of
from rpcqm.base.admission import Admission, Ticket

if TYPE_CHECKING:
    import ssl

HEAD_BYTES = 1 << 14
"""Octets of a request that are read where the console cannot be loaded.

Bound `console.head_without_server` [bytes]: the connection is answered 503 before its request has
ended.
"""
HEAD_SECONDS = 5.0
ANSWER = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'\r\n"
    b"Cache-Control: no-store\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
)
SENTENCE = b"What answers here could not be loaded; the log says why.\n"


class Unavailable:
    """Answers every request on a bound socket, which is its own, until it is closed."""

    def __init__(
        self, listening: socket.socket, admission: Admission, context: "ssl.SSLContext | None"
    ) -> None:
        self._admission = admission
        tls = None if context is None else Tls(context, HEAD_SECONDS)
        self._acceptor = Acceptor(listening, self._admit, _Refusing, tls)

    def _admit(self, accepted: socket.socket, address: tuple[str, int]) -> Ticket | None:
        owner = owner_of(address[0])
        return None if self._admission.refusal(owner) else self._admission.let_in(owner)

    def close(self) -> None:
        """Listen no more."""
        self._acceptor.close()


class _Refusing(asyncio.Protocol):
    """One connection: the head of a request is read, because closing at once loses the answer."""

    def __init__(self, ticket: Ticket) -> None:
        self._ticket = ticket
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(HEAD_SECONDS, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        self._head += data
        if b"\r\n\r\n" in self._head or len(self._head) >= HEAD_BYTES:
            self._transport.pause_reading()
            self._transport.write(ANSWER % (len(SENTENCE), SENTENCE))
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._deadline.cancel()
        self._ticket.leave()
