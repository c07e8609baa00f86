"""The asyncio edge of the runtime: listening addresses, connections, and their ends."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from rpcqm.base.acceptor import Acceptor, keep_alive, tcp_socket
from rpcqm.base.addresses import owner_of
from rpcqm.base.admission import Admission, Caller, Ticket
from rpcqm.base.clock import Clock, SystemClock
from rpcqm.base.errors import FaultStatus
from rpcqm.base.gathering import Gathering
from rpcqm.base.identity import ANONYMOUS, Identity
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics
from rpcqm.base.open_connections import ConnectionView
from rpcqm.base.served_connections import ServedConnections
from rpcqm.rpc.association_group import AssociationGroups
from rpcqm.rpc.connection import Connection
from rpcqm.rpc.endpoints import BoundEndpoint, Statistics
from rpcqm.rpc.guarded_dispatch import dispatcher
from rpcqm.rpc.interface_registry import (
    NCACN_IP_TCP,
    NCALRPC,
    InterfacePolicy,
    InterfaceSet,
    RegisteredInterface,
    ServedInterface,
    register,
    time_calls,
)
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.local_peer import identity_of_uid, peer_uid
from rpcqm.rpc.management import MGMT, ManagementInterface
from rpcqm.rpc.negotiation import Endpoint
from rpcqm.rpc.security.context import (
    NONE,
    PKT_PRIVACY,
    SecurityContext,
    SecurityProvider,
    unauthenticated,
)

TURNS_ALONE = 16
"""Requests, each alone in its turn, that are answered at once before a turn is waited for again."""

_log = get_logger("rpc")


class RpcServer:
    """A server of RPC interfaces over TCP and Unix sockets.

    `providers` are the security providers by authentication type. `local_identity` gives the
    identity of a Unix user. `admission` admits connections; listeners of other protocols may share
    it. Interfaces are registered before the server listens. Output of connections within
    `gathering` is written at its end, else at the end of the turn of the loop.
    """

    def __init__(
        self,
        *,
        providers: Mapping[int, SecurityProvider] | None = None,
        limits: Limits | None = None,
        clock: Clock | None = None,
        metrics: Metrics | None = None,
        local_identity: Callable[[int], Identity] = identity_of_uid,
        admission: Admission | None = None,
    ) -> None:
        self.providers: Mapping[int, SecurityProvider] = providers or {}
        self.limits = limits or Limits()
        self.clock: Clock = clock or SystemClock()
        self.metrics = metrics if metrics is not None else Metrics()
        self.dispatcher = dispatcher(self.metrics, self.limits)
        self.groups = AssociationGroups(self.limits)
        self.endpoints: list[BoundEndpoint] = []
        self._listening: list[Endpoint] = []
        self.interfaces: list[RegisteredInterface] = []
        self._management = register(
            MGMT, ManagementInterface(self), InterfacePolicy(of_process=True)
        )
        self._local_identity = local_identity
        self.admission = admission or Admission(
            self.limits.connections, self.limits.connections_per_address
        )
        self._listeners: list[Acceptor] = []
        self.served: ServedConnections[Connection] = ServedConnections(
            "rpc",
            self.clock,
            self.admission,
            self.metrics,
            overdue=self._overdue,
            most_held=lambda: self.limits.held_bytes_in_all,
        )
        self._to_flush: list[Connection] = []
        self._heard = self._alone = 0
        self.gathering = Gathering(self._flush)
        self._to_settle: list[Connection] = []
        self._packets_in = self._packets_out = 0
        self._stopping = False
        self.make_connection: Callable[[RpcServer, Endpoint], Connection] = Connection
        self._empty = asyncio.Event()

    def register(
        self, interface: ServedInterface, handlers: object, policy: InterfacePolicy | None = None
    ) -> RegisteredInterface:
        """Serve an interface: `handlers` has a method for each operation, named as in the IDL."""
        registered = register(interface, handlers, policy or InterfacePolicy())
        self.interfaces.append(registered)
        time_calls(registered, self.metrics, "rpc")
        return registered

    async def listen_tcp(
        self,
        host: str,
        port: int,
        interfaces: Iterable[RegisteredInterface] | None = None,
        *,
        advertised: bool = True,
        for_objects: bool = False,
    ) -> BoundEndpoint:
        """Listen on a TCP port, a free one for 0.

        Serves all registered interfaces unless some are given, and always the management
        interface. The endpoint mapper names it if `advertised`; `for_objects` lets clients of COM
        objects bind several times on a connection. Raises OSError.
        """
        listening = tcp_socket(host, port)
        return await self.listen_socket(
            listening, interfaces, advertised=advertised, for_objects=for_objects
        )

    async def listen_socket(
        self,
        listening: socket.socket,
        interfaces: Iterable[RegisteredInterface] | None = None,
        *,
        advertised: bool = True,
        for_objects: bool = False,
        secondary_address: str = "",
    ) -> BoundEndpoint:
        """Listen on a TCP socket that is bound already; see `listen_tcp`.

        `secondary_address` is what binds are answered with, the port if empty.
        """
        host, port = listening.getsockname()[:2]
        keep_alive(listening, self.limits.keepalive_milliseconds // 1000)
        address = (secondary_address or str(port)).encode()
        endpoint = self._endpoint(NCACN_IP_TCP, address, interfaces)
        endpoint.for_objects = for_objects
        listener = Acceptor(listening, self._admit_address, partial(self._make, endpoint))
        return self._listens(listener, endpoint, host, port, advertised)

    async def listen_unix(
        self, path: Path, interfaces: Iterable[RegisteredInterface] | None = None
    ) -> BoundEndpoint:
        """Listen on a Unix socket that everybody may connect to. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):  # a stop that was clean has removed it
            path.unlink()
        endpoint = self._endpoint(NCALRPC, os.fsencode(path), interfaces)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        path.chmod(0o666)  # the kernel says which user connects, and calls are checked by that
        listener = Acceptor(listening, self._admit_user, partial(self._make, endpoint))
        return self._listens(listener, endpoint, str(path), 0, True)

    def adjust(self, limits: Limits, providers: Mapping[int, SecurityProvider]) -> None:
        """Replace the limits and the security providers.

        Bounds of a connection and of a client's handles hold for those that come afterwards.
        """
        self.limits, self.providers = limits, providers
        self.admission.limit(limits.connections, limits.connections_per_address)
        self.dispatcher.limit(limits)
        self.groups.limit(limits)
        for endpoint in self._listening:
            endpoint.limits, endpoint.providers = limits, providers

    async def stop(self) -> None:
        """Stop listening, let the calls in flight be answered, and end every connection.

        Calls without an answer after `stop_milliseconds` are cut off.
        """
        self._stopping = True
        for listener in self._listeners:
            listener.close()
        for connection in list(self.served.open):
            connection.stop()
        if self.served.open:
            self._empty.clear()
            with contextlib.suppress(TimeoutError):  # calls without an answer by then are cut off
                await asyncio.wait_for(self._empty.wait(), self.limits.stop_milliseconds / 1000)
        for connection in list(self.served.open):
            connection.abort()
        await asyncio.sleep(0)
        self.served.stop_sweeping()
        for endpoint in self.endpoints:
            if endpoint.transport == NCALRPC:
                Path(endpoint.address).unlink(missing_ok=True)
        self.endpoints.clear()

    def end_handles(self, sid: str) -> None:
        """Run down the context handles of an account, after carrying out its deferred calls."""
        self.dispatcher.before_close()
        self.groups.end_handles(sid)

    def end_associations(self, sid: str) -> None:
        """End the connections over which an account calls, whoever else uses them.

        They take nothing more from now on. Calls in flight end with the turn of the loop: by then
        the call that has caused the end is answered.
        """
        ended = [
            each
            for each in self.served.open
            if each.association.negotiated.security.has_caller(sid)
        ]
        for connection in ended:
            connection.association.take_no_more()
            # not between the answer and the end: a client that calls again would not see the close
            _log.info("a connection ends with the account of its caller", peer=connection.peer)
        if ended:
            asyncio.get_running_loop().call_soon(self._end_calls, ended)

    @staticmethod
    def _end_calls(connections: Iterable[Connection]) -> None:
        for connection in connections:
            connection.end_calls(FaultStatus.RPC_S_ACCESS_DENIED)

    def open_connections(self) -> list[ConnectionView]:
        """The connections that are there, as operators see them."""
        return [connection.view() for connection in self.served.open]

    def end_connection(self, number: int) -> bool:
        """End a connection; what it has in flight is answered with a fault, at the turn's end."""
        ended = [each for each in self.served.open if each.number == number]
        for connection in ended:
            connection.association.take_no_more()
        if ended:
            asyncio.get_running_loop().call_soon(self._end_calls, ended)
        return bool(ended)

    def statistics(self) -> Statistics:
        """Calls and PDUs since the server was made."""
        associations = [connection.association for connection in self.served.open]
        return Statistics(
            self.dispatcher.calls,
            0,
            self._packets_in + sum(each.pdus_in for each in associations),
            self._packets_out + sum(each.pdus_out for each in associations),
        )

    @property
    def connections(self) -> int:
        return len(self.served.open)

    # What connections call.

    def identify(
        self, endpoint: Endpoint, transport: asyncio.Transport
    ) -> tuple[str, str, SecurityContext]:
        """Text of a peer for logs, its machine or user, and the security of its plain calls."""
        if endpoint.transport == NCALRPC:
            uid = peer_uid(transport.get_extra_info("socket"))
            identity = self._local_identity(uid)
            return f"local {identity.name}", f"uid {uid}", unauthenticated(identity, PKT_PRIVACY)
        host, port = transport.get_extra_info("peername")[:2]
        return f"{host}:{port}", str(host), unauthenticated(ANONYMOUS, NONE)

    def keep(self, connection: Connection) -> bool:
        """Keep a new connection, unless the server stops."""
        if self._stopping:
            return False
        self.served.keep(connection)
        return True

    def forget(self, connection: Connection) -> None:
        association = connection.association
        if connection.ticket is not None:
            connection.ticket.leave()
        if connection in self.served.open:
            self.served.open.discard(connection)
            self._packets_in += association.pdus_in
            self._packets_out += association.pdus_out
        if not self.served.open:
            self._empty.set()

    def flush_soon(self, connection: Connection) -> None:
        """Write the output of a connection soon, together with that of others.

        Clients that are woken together ask together, and waking takes longer than asking. A
        connection that is alone need not wait for others; whether it still is alone is examined now
        and then.
        """
        if self._alone:
            self._alone -= 1
            connection.flush()
        else:
            self._heard += 1
            self.flush_later(connection)

    def flush_later(self, connection: Connection) -> None:
        """Write what a connection has to send at the end of this turn of the loop."""
        if not self._to_flush and not self.gathering.depth:
            asyncio.get_running_loop().call_soon(self._flush)
        self._to_flush.append(connection)

    def settle_later(self, connection: Connection) -> None:
        """Look in the next turn whether a connection's replies have gone out."""
        if not self._to_settle:
            asyncio.get_running_loop().call_soon(self._settle)
        self._to_settle.append(connection)

    def _flush(self) -> None:
        connections, self._to_flush = self._to_flush, []
        if self._heard == 1:
            self._alone = TURNS_ALONE
        self._heard = 0
        for connection in connections:
            connection.flush()

    def _settle(self) -> None:
        connections, self._to_settle = self._to_settle, []
        for connection in connections:
            connection.settle()

    # Who may connect.

    def _admit_address(self, accepted: socket.socket, address: tuple[str, int]) -> Ticket | None:
        return self.served.admit(owner_of(address[0]), f"{address[0]}:{address[1]}")

    def _admit_user(self, accepted: socket.socket, address: object) -> Ticket | None:
        uid = peer_uid(accepted)
        caller = Caller.ADMINISTRATOR if uid in (0, os.geteuid()) else Caller.USER
        return self.served.admit(f"uid {uid}", f"uid {uid}", caller)

    def _make(self, endpoint: Endpoint, ticket: Ticket) -> Connection:
        connection = self.make_connection(self, endpoint)
        connection.ticket = ticket
        return connection

    def _endpoint(
        self, transport: str, address: bytes, interfaces: Iterable[RegisteredInterface] | None
    ) -> Endpoint:
        offered = [*(self.interfaces if interfaces is None else interfaces), self._management]
        endpoint = Endpoint(
            transport,
            address,
            InterfaceSet(each for each in offered if transport in each.policy.transports),
            self.groups,
            self.providers,
            self.limits,
        )
        self._listening.append(endpoint)
        return endpoint

    def _listens(
        self,
        listener: Acceptor,
        endpoint: Endpoint,
        address: str,
        port: int,
        advertised: bool,
    ) -> BoundEndpoint:
        self._listeners.append(listener)
        offered = endpoint.interfaces
        assert isinstance(offered, InterfaceSet)
        bound = BoundEndpoint(endpoint.transport, address, port, offered, advertised)
        self.endpoints.append(bound)
        self.served.start_sweeping()
        return bound

    # Deadlines.

    def _overdue(self, connection: Connection, now: int) -> str:
        connection.settle()
        association, limits = connection.association, self.limits
        owed = association.unfinished
        if owed is None or owed != connection.owed:
            connection.owed, connection.owed_since = owed, now
        elif 0 < limits.unfinished_milliseconds <= now - connection.owed_since:
            return "unfinished"
        if connection.takes_what_is_sent():
            connection.taken_since = now
        elif 0 < limits.unread_milliseconds <= now - connection.taken_since:
            return "unread"
        if connection.active or not association.idle:
            connection.active, connection.silent_since = False, now
        elif 0 < limits.idle_milliseconds <= now - connection.silent_since:
            return "idle"
        elif 0 < limits.unauthenticated_milliseconds <= now - connection.silent_since:
            return "" if association.authenticated else "idle without authentication"
        return ""
