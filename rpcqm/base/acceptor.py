"""Accepts connections, and asks about each one before it costs more than its descriptor.

The servers of event loops accept all waiting connections at once and report them afterwards: a
connection that is going to be refused then holds a descriptor, and there may be as many of these as
the backlog is long.
"""

import asyncio
import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rpcqm.base.admission import Ticket
from rpcqm.base.log import get_logger
from rpcqm.base.outlet import guarded

BACKLOG = 1024
AT_ONCE = 64
"""Connections that are accepted before others get their turn."""
PAUSE_SECONDS = 1.0
"""Time for which nothing is accepted when the system has no descriptor left.

Bound `connections.pause_seconds` [seconds]: what waits to be accepted is looked at again.
"""

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

if TYPE_CHECKING:
    import ssl  # takes time to load, and few listeners need it

_log = get_logger("base")

Address = tuple[str, int]
Admit = Callable[[socket.socket, Address], Ticket | None]
"""Takes a socket and its peer's address; returns the ticket of a connection that may stay, or None,
and the socket is closed."""
Make = Callable[[Ticket], asyncio.Protocol]


def tcp_socket(host: str, port: int) -> socket.socket:
    """A bound TCP socket. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def keep_alive(listening: socket.socket, seconds: int) -> None:
    """Let the kernel notice clients that have vanished; accepted sockets inherit the option."""
    if seconds > 0:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, seconds)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, seconds // 4))
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


@dataclass(slots=True)
class Tls:
    """The protection of connections; replacing the context affects later connections only.

    `handshake_seconds` is None for the time that the event loop itself allows.
    """

    context: "ssl.SSLContext"
    handshake_seconds: float | None


class Acceptor:
    """Accepts on a bound socket, which it owns until it is closed."""

    def __init__(
        self, listening: socket.socket, admit: Admit, make: Make, tls: Tls | None = None
    ) -> None:
        self._listening = listening
        self._admit = admit
        self._make = make
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._connecting: set[asyncio.Task[object]] = set()
        self._pause: asyncio.TimerHandle | None = None
        listening.setblocking(False)
        listening.listen(BACKLOG)
        self._loop.add_reader(listening, self._accept_some)

    def close(self) -> None:
        """Accept no more. Open connections go on, except those with an unfinished TLS handshake."""
        if self._listening.fileno() < 0:
            return
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()
        for task in self._connecting if self._tls is not None else ():
            task.cancel()

    def _accept_some(self) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, address = self._listening.accept()
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._rest(error)
                return  # nobody waits, or the peer has gone again
            self._begin(accepted, address)

    def _rest(self, error: OSError) -> None:
        """Pause: a connection that cannot be accepted would wake the loop again and again."""
        _log.error("no connection can be accepted", reason=error.strerror)
        self._loop.remove_reader(self._listening)
        self._pause = self._loop.call_later(PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening, self._accept_some)

    def _begin(self, accepted: socket.socket, address: Address) -> None:
        try:
            ticket = self._admit(accepted, address)
        except OSError:
            ticket = None  # the peer has gone before its address could be asked for
        if ticket is None:
            accepted.close()
            return
        accepted.setblocking(False)
        make = guarded(partial(self._make, ticket))
        task = self._loop.create_task(
            self._loop.connect_accepted_socket(make, accepted, **self._protection())
        )
        self._connecting.add(task)
        peer = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "local"
        task.add_done_callback(partial(self._connected, accepted, ticket, peer))

    def _protection(self) -> dict[str, Any]:
        if self._tls is None:
            return {}
        seconds = self._tls.handshake_seconds
        return {"ssl": self._tls.context, "ssl_handshake_timeout": seconds}

    def _connected(
        self, accepted: socket.socket, ticket: Ticket, peer: str, task: "asyncio.Task[object]"
    ) -> None:
        self._connecting.discard(task)
        cancelled = task.cancelled()
        if not cancelled and task.exception() is None:
            return
        ticket.leave()
        accepted.close()
        if not cancelled:
            reason = str(task.exception()) or type(task.exception()).__name__
            _log.warning("a connection could not be taken over", peer=peer, reason=reason)
