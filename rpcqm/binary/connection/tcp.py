"""Connections over TCP ([MS-MQQB] 2.1.1): listening on port 1801, connecting, resolving names."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import TypeVar, cast

from rpcqm.base.acceptor import Acceptor, tcp_socket
from rpcqm.base.addresses import owner_of
from rpcqm.base.admission import Admission, Ticket
from rpcqm.base.clock import Clock, SystemClock
from rpcqm.base.completion import Completion
from rpcqm.base.log import get_logger
from rpcqm.base.loop_timers import timers_on_loop
from rpcqm.base.outlet import guarded
from rpcqm.base.resolver import OPERATOR, Addresses, Resolver, Senders
from rpcqm.binary.connection.peer_connection import NextHop, PeerConnection
from rpcqm.binary.connection.protocol import BinaryProtocol

T = TypeVar("T")

_log = get_logger("binary")

CONNECT_SECONDS = 20
BACK_OFF = 5_000
"""Milliseconds for which an address that sent bad packets may not connect again."""
VIOLATIONS = 3
"""Connections of one address that break the rules within a minute.

Bound `binary.violations` [connections]: the address is not let in for 5 seconds.
"""
VIOLATIONS_WITHIN = 60_000
"""Milliseconds within which such connections are counted."""
CONNECTIONS = 4096
UNSENT_BYTES = 64 << 20
"""What one connection has not taken of what was sent to it.

Bound `binary.unsent_bytes` [octets]: the connection is closed.
"""
HELD_BYTES = 256 << 20
"""Unfinished packets on all connections.

Bound `binary.held_bytes` [octets]: the connections that hold most are closed.
"""
FLUSH_SECONDS = 10
"""Seconds for which a closed connection may still take queued octets."""


class TcpTransport(asyncio.Protocol):
    """The TCP connection below a `PeerConnection`."""

    def __init__(self, connection: PeerConnection, network: "TcpNetwork", accepted: bool) -> None:
        self._connection = connection
        self._network = network
        self._accepted = accepted
        self.held = 0
        self.ticket: Ticket | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        host = self._transport.get_extra_info("peername")[0]
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._connection.closed_already or not self._network.admit(self, host, self._accepted):
            self._transport.abort()
            return
        self._connection.attach(self, host)

    def data_received(self, data: bytes) -> None:
        if self._connection.heard is not None:
            self._connection.heard()
        try:
            self._connection.session.receive_data(data)
        except Exception as error:
            _log.exception("session failed", peer=self._connection.address)
            self._connection.session.close(f"failure: {type(error).__name__}")
        held = self._connection.session.unfinished_bytes
        if held != self.held:
            self._network.hold(self, held)

    def connection_lost(self, exc: Exception | None) -> None:
        self._network.hold(self, 0)
        self._network.wires.discard(self)
        if self.ticket is not None:
            self.ticket.leave()
        self._connection.session.disconnected()

    def begin_refusing(self) -> bool:
        """What a peer has sent stays unacknowledged, and it knows that it does."""
        return False

    def give_up(self) -> None:
        """Close: there is no room for the packet that the peer has begun."""
        self._connection.session.close("too many unfinished packets")
        if self._transport is not None:
            self._transport.abort()

    # Called by the connection

    def write(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(data)
        if self._transport.get_write_buffer_size() > UNSENT_BYTES:
            self._transport.abort()

    def close(self) -> None:
        """Close without notice; a peer that broke the rules is kept out for a while."""
        if self._transport is not None:
            self._network.note_end(self._connection)
            self._transport.close()
            if self._transport.get_write_buffer_size():
                asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._transport.abort)

    def pause(self, paused: bool) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()


MakeWire = Callable[[PeerConnection, "TcpNetwork", bool], TcpTransport]
"""Makes the transport of a connection; the last argument says whether the peer connected."""


class TcpNetwork:
    """The `PeerNetwork` of a queue manager in an asyncio loop."""

    def __init__(
        self,
        clock: Clock,
        back_off: int = BACK_OFF,
        admission: Admission | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        self._clock = clock
        self._resolver = resolver
        self.back_off = back_off
        self._admission = admission or Admission(CONNECTIONS, CONNECTIONS)
        self._acceptors: list[Acceptor] = []
        self._tasks: set[asyncio.Task[object]] = set()
        self._kept_out: dict[str, int] = {}
        self._violations: dict[str, tuple[int, int]] = {}
        self.wires: set[TcpTransport] = set()
        self.held_bytes = 0
        self.make_wire: MakeWire = TcpTransport

    async def listen(self, protocol: BinaryProtocol, host: str, port: int) -> int:
        """Accept sessions, and return the port. Raises OSError if the port cannot be opened."""

        def make(ticket: Ticket) -> TcpTransport:
            wire = self.make_wire(protocol.accept(), self, True)
            wire.ticket = ticket
            return wire

        listening = tcp_socket(host, port)
        bound = int(listening.getsockname()[1])
        self._acceptors.append(Acceptor(listening, self._admit, make))
        return bound

    async def stop(self) -> None:
        """Accept no more connections, and wait until all are closed."""
        for acceptor in self._acceptors:
            acceptor.close()
        for task in list(self._tasks):
            task.cancel()
        for wire in list(self.wires):
            wire.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def refuses(self, host: str) -> bool:
        """Whether connections from an address are refused now."""
        return bool(self._admission.refusal(owner_of(host))) or self._keeps_out(host)

    def _admit(self, accepted: socket.socket, address: tuple[str, int]) -> Ticket | None:
        """Take a connection that a peer has made, unless there are too many."""
        owner = owner_of(address[0])
        reason = self._admission.refusal(owner)
        if not reason:
            return self._admission.let_in(owner)
        _log.warning("a connection was refused", peer=f"{address[0]}:{address[1]}", reason=reason)
        return None

    def admit(self, wire: TcpTransport, host: str, accepted: bool) -> bool:
        """Whether a connection may stay; one that we have opened is counted only."""
        if accepted and self._keeps_out(host):
            return False
        if wire.ticket is None:
            wire.ticket = self._admission.go_out()
        self.wires.add(wire)
        return True

    def _keeps_out(self, host: str) -> bool:
        """Whether an address has broken the rules too often of late (G77, G91)."""
        owner = owner_of(host)
        until = self._kept_out.get(owner)
        if until is not None and until <= self._clock.monotonic():
            del self._kept_out[owner]
            until = None
        return until is not None

    def hold(self, wire: TcpTransport, size: int) -> None:
        """Note how many octets of an unfinished packet a connection holds."""
        self.held_bytes += size - wire.held
        wire.held = size
        if self.held_bytes > HELD_BYTES:
            max(self.wires, key=lambda each: each.held).give_up()

    def note_end(self, connection: PeerConnection) -> None:
        """Keep out an address that breaks the rules again and again (G77).

        One slip may be that of a neighbour behind the same address.
        """
        if connection.initiator or not connection.session.violated:
            return
        now, owner = self._clock.monotonic(), owner_of(connection.address)
        count, since = self._violations.pop(owner, (0, now))
        count, since = (1, now) if now - since > VIOLATIONS_WITHIN else (count + 1, since)
        self._violations[owner] = (count, since)
        if count >= VIOLATIONS:
            self._kept_out[owner] = now + self.back_off
        for table in (self._violations, self._kept_out):
            if len(table) > CONNECTIONS:
                del table[next(iter(table))]

    # Outgoing

    def resolve(self, host: str, senders: Senders = OPERATOR) -> Completion[Addresses]:
        """The addresses of a host from the system's resolver; IPv4 ones first."""
        if self._resolver is None:
            loop = asyncio.get_running_loop()
            timers = timers_on_loop(SystemClock(), loop)
            self._resolver = Resolver(timers, loop.call_soon_threadsafe)
        return self._resolver.resolve(host, senders)

    def connect(self, hop: NextHop, connection: PeerConnection) -> Completion[None]:
        return self._start(self._connect(hop, connection))

    async def _connect(self, hop: NextHop, connection: PeerConnection) -> None:
        loop = asyncio.get_running_loop()
        connecting = loop.create_connection(
            guarded(lambda: self.make_wire(connection, self, False)), hop.address, hop.port
        )
        await asyncio.wait_for(connecting, CONNECT_SECONDS)

    def _start(self, coroutine: Coroutine[object, None, T]) -> Completion[T]:
        outcome: Completion[T] = Completion()
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)

        def done(finished: asyncio.Task[T]) -> None:
            self._tasks.discard(finished)
            if finished.cancelled():
                outcome.fail(OSError("the queue manager stops"))
                return
            error = finished.exception()
            if error is None:
                outcome.succeed(finished.result())
            else:
                outcome.fail(error)

        task.add_done_callback(done)
        return outcome
