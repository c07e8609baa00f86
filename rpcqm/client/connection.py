"""The RPC connections of one client: found, opened and bound when a call first needs them."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from typing import TypeVar

from rpcqm.base.errors import DecodeError, FaultStatus, HResult, MQError, NtStatus, RpcFault
from rpcqm.client.pool import Pool, PooledConnection
from rpcqm.client.target import (
    HandleLostError,
    LocalServer,
    OutcomeUnknownError,
    RemoteServer,
    ServerUnreachableError,
    Target,
)
from rpcqm.codec.interface import Interface, OperationRequest, Value, load
from rpcqm.rpc.client import Binding, RpcClient
from rpcqm.rpc.security.context import NONE, PKT_PRIVACY, AuthenticationError

CONNECT_TIMEOUT = 30.0
"""Seconds after which a server that does not answer counts as absent."""

NODE_TIMEOUT = 5.0
"""The same where another node may answer instead."""

OPEN_TIMEOUT = 300.0
"""Seconds that opening and enlisting may take ([MS-MQRR] 3.1.2.1, [MS-MQQP] 3.2.4.1)."""

FIRST_DELAY, LONGEST_DELAY = 0.05, 2.0
"""Seconds between attempts to reach a lost server: a restart is noticed soon, an outage is not
asked about often."""

NO_PORT = -1
"""The key of no pool, for an interface whose port is not known yet."""

END_OF_QUEUE = frozenset({HResult.MQ_ERROR_IO_TIMEOUT, HResult.MQ_ERROR_MESSAGE_NOT_FOUND})
"""The answers to a read that found no message."""

_HARMLESS = frozenset({"harmless", "repeatable"})
"""Marks in the IDL of calls that leave nothing behind when the connection is lost."""

_BESIDE = {"rpcqm_bulk": "remoteread"}
"""Interfaces of which no endpoint mapper tells, and those at whose port they are served."""

_NUMBER = re.compile(r"\[Errno (\d+)\]")

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound=Value)
Kind = type[OperationRequest[Value]]
"""The class of the requests of one operation."""


class _LostError(ServerUnreachableError):
    """A connection broke during a call that can be repeated."""


class Connections:
    """Pools of connections to the ports of one server, through which a client calls.

    If the connection is lost, a call tries for `patience` seconds to reach the server again,
    provided that it needs nothing that was open before, and was not sent or may be sent twice.
    """

    def __init__(self, target: Target, patience: float = 0.0) -> None:
        self._target = target
        self._patience = patience
        self._pools: dict[int, Pool] = {}
        self._ports: dict[str, int] = {}
        self._preparing = asyncio.Lock()
        self._queued = 0

    @property
    def target(self) -> Target:
        return self._target

    async def call(
        self,
        request: OperationRequest[ResponseT],
        limit: float | None = None,
        accepted: Container[int] = (),
    ) -> ResponseT:
        """Make one call and return its response; the wait for it ends after `limit` seconds.

        A response whose result is in `accepted` is returned as well. Raises MQError for any other
        refusal, RpcFault for any other fault, DecodeError if the answer cannot be read,
        ServerUnreachableError if no server answers, its subclass HandleLostError if the handle
        that the call uses was closed with the connection, and its subclass OutcomeUnknownError if
        the call was sent and may have been done.
        """
        try:
            async with asyncio.timeout(limit):
                response = await self._call(request)
        except TimeoutError as error:
            text = f"{self._target} did not answer {request.operation.name}."
            raise OutcomeUnknownError(text) from error
        except RpcFault as fault:
            if isinstance(fault.status, HResult | NtStatus):
                raise MQError(fault.status) from fault
            if fault.status is FaultStatus.nca_s_fault_context_mismatch:
                text = f"What was open at {self._target} has been closed with its connection."
                raise HandleLostError(text) from fault
            raise
        result = getattr(response, "result", HResult.MQ_OK)
        if result not in accepted:
            require_success(result)
        return response

    @contextlib.asynccontextmanager
    async def borrowed(self, kind: Kind) -> AsyncIterator[Binding]:
        """A connection for many calls of one operation; raises what `call` raises if it is lost."""
        pool, line = await self._line(kind)
        try:
            yield line.bindings[kind.interface_name]
        except OSError as error:
            raise self._lost(kind, sent=True) from error
        finally:
            pool.release(line)

    async def redirect(self, interface_name: str, port: int) -> None:
        """Call an interface at another port from now on; does nothing for a local server."""
        if isinstance(self._target, RemoteServer):
            self._ports[interface_name] = port

    async def close(self) -> None:
        """Close every connection."""
        pools = list(self._pools.values())
        self._pools.clear()
        self._ports.clear()
        for pool in pools:
            await pool.close()

    # Trying, and trying again

    async def _call(self, request: OperationRequest[ResponseT]) -> ResponseT:
        loop = asyncio.get_running_loop()
        give_up, delay = loop.time() + self._patience, FIRST_DELAY
        lost: _LostError | None = None
        while True:
            try:
                return await self._attempt(request)
            except (HandleLostError, OutcomeUnknownError):
                raise
            except ServerUnreachableError as error:
                if isinstance(error, _LostError) and lost is None:
                    lost = error  # the server may have closed an idle connection: try at once
                    continue
                if loop.time() + delay > give_up:
                    raise (lost or error) from error
                await asyncio.sleep(delay)
                delay = min(2 * delay, LONGEST_DELAY)

    async def _attempt(self, request: OperationRequest[ResponseT]) -> ResponseT:
        pool, line = await self._line(type(request))
        sent = False
        try:
            call = line.bindings[request.interface_name].send(request)
            sent = True
            return await call.response()
        except OSError as error:
            raise self._lost(type(request), sent) from error
        finally:
            pool.release(line)

    def _lost(self, kind: Kind, sent: bool) -> ServerUnreachableError:
        """What the end of a connection means for a call."""
        text = f"The connection to {self._target} was lost."
        if sent and _HARMLESS.isdisjoint(kind.operation.attributes):
            return OutcomeUnknownError(text)
        return HandleLostError(text) if _uses_handles(kind) else _LostError(text)

    # Connections

    async def _line(self, kind: Kind) -> tuple[Pool, PooledConnection]:
        """A connection with the interface bound; calls that wait for it stay in order."""
        name = kind.interface_name
        pool = self._pools.get(self._ports.get(name, NO_PORT))
        line = pool.take(name) if pool is not None and not self._queued else None
        if pool is not None and line is not None:
            return pool, line
        self._queued += 1
        try:
            async with self._preparing:
                return await self._prepared_at_one(kind)
        finally:
            self._queued -= 1

    async def _prepared_at_one(self, kind: Kind) -> tuple[Pool, PooledConnection]:
        """A connection to the server, or to the one of its nodes that answers."""
        others = len(self._target.others) if isinstance(self._target, RemoteServer) else 0
        for _ in range(others):
            try:
                return await self._prepared(kind)
            except HandleLostError:
                raise
            except ServerUnreachableError:
                if any(pool.alive for pool in self._pools.values()):
                    raise
                await self._turn()
        return await self._prepared(kind)

    async def _turn(self) -> None:
        """Ask the next node from now on."""
        await self.close()
        assert isinstance(self._target, RemoteServer)
        self._target = self._target.following

    async def _prepared(self, kind: Kind) -> tuple[Pool, PooledConnection]:
        name = kind.interface_name
        pool = await self._pool_for(name)
        if not pool.alive and _uses_handles(kind):
            raise HandleLostError(f"The connection to {self._target} was lost.")
        try:
            line = pool.take(name)
            if line is None:
                line = await self._reached(lambda: pool.prepare(name, load(name)))
        except ServerUnreachableError:
            self._ports.pop(name, None)  # a restarted server may listen at another port
            raise
        return pool, line

    async def _pool_for(self, name: str) -> Pool:
        target, port = self._target, self._ports.get(name)
        if port is None:
            port = 0
            if isinstance(target, RemoteServer):
                port = await self._port_of(target, load(_BESIDE.get(name, name)))
            self._ports[name] = port
        if port not in self._pools:
            self._pools[port] = Pool(lambda group: _connect(target, port, group))
        return self._pools[port]

    async def _port_of(self, target: RemoteServer, interface: Interface) -> int:
        # Only now, because the endpoint mapper's interface takes time to load.
        from rpcqm.rpc.endpoint_mapper import resolve

        return await self._reached(
            lambda: resolve(target.host, target.endpoint_mapper_port, interface, target.find)
        )

    @property
    def _connect_timeout(self) -> float:
        alone = isinstance(self._target, LocalServer) or not self._target.others
        return CONNECT_TIMEOUT if alone else NODE_TIMEOUT

    async def _reached(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The outcome of an attempt; raises ServerUnreachableError if nothing answers."""
        try:
            async with asyncio.timeout(self._connect_timeout):
                return await attempt()
        except AuthenticationError as error:
            raise RpcFault(FaultStatus.RPC_S_SEC_PKG_ERROR, str(error)) from error
        except TimeoutError as error:
            raise ServerUnreachableError(f"{self._target} does not answer.") from error
        except OSError as error:
            raise ServerUnreachableError(
                f"No queue manager can be reached at {self._target}: {_reason(error)}."
            ) from error


def _uses_handles(kind: Kind) -> bool:
    """Whether a call uses a handle that was opened before, which ends with its connection."""
    if "by_number" in kind.operation.attributes:
        return True
    handles = load(kind.interface_name).operation(kind.operation.name).context_handles
    return any("in" in handle.direction for handle in handles)


async def _connect(target: Target, port: int, group: int) -> RpcClient:
    if isinstance(target, LocalServer):
        return await RpcClient.connect_unix(target.socket, group_id=group)
    level = NONE if target.credentials is None else PKT_PRIVACY
    return await RpcClient.connect_tcp(
        target.host,
        port,
        credentials=target.credentials,
        level=level,
        group_id=group,
        find=target.find,
    )


def _reason(error: OSError) -> str:
    """The system's words for an error, as part of a sentence."""
    text = error.strerror or str(error) or type(error).__name__
    if (number := _error_number(error)) is not None:
        text = os.strerror(number)  # asyncio's own words hold Python's form of the address
    return text[:1].lower() + text[1:].rstrip(".")


def _error_number(error: OSError) -> int | None:
    """The system's number of an error; if several addresses failed, that of the first."""
    if error.errno is not None:
        return error.errno if error.errno > 0 else None
    match = _NUMBER.search(str(error))
    return int(match[1]) if match else None


def require_value(value: T | None) -> T:
    """The value behind a pointer of a response; raises DecodeError if the pointer is null."""
    if value is None:
        raise DecodeError("the answer lacks what was asked for")
    return value


def require_success(result: int) -> None:
    """Raise MQError for a return value that means failure."""
    if result < 0x80000000:
        return
    for statuses in (HResult, NtStatus):
        try:
            raise MQError(statuses(result))
        except ValueError:
            continue  # this list lacks the number: the other may have it
    raise MQError(HResult.MQ_ERROR, f"with the code 0x{result:08X}")
