"""The RPC connections of one client: found, opened and bound when a call first needs them."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from typing import TypeVar

from rpcqm.base.errors import DecodeError, FaultStatus, HResult, MQError, NtStatus, RpcFault
from rpcqm.client.pool import Line, Pool
from rpcqm.client.target import (
    HandleLostError,
    LocalServer,
    OutcomeUnknownError,
    RemoteServer,
    ServerUnreachableError,
    Target,
)
from rpcqm.codec.interface import Interface, Request, Value, load
from rpcqm.rpc.client import Binding, RpcClient
from rpcqm.rpc.security.context import NONE, PKT_PRIVACY, AuthenticationError

CONNECT_TIMEOUT = 30.0
"""Seconds after which a server that does not answer counts as absent."""

OPEN_TIMEOUT = 300.0
"""Seconds that opening and enlisting may take ([MS-MQRR] 3.1.2.1, [MS-MQQP] 3.2.4.1)."""

FIRST_DELAY, LONGEST_DELAY = 0.05, 2.0
"""Seconds between attempts to reach a server that is lost."""

NO_PORT = -1

_HARMLESS = frozenset({"harmless", "repeatable"})
"""Marks in the IDL: calls of which nothing is left when the connection is lost."""

_NUMBER = re.compile(r"\[Errno (\d+)\]")

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound=Value)
Kind = type[Request[Value]]
"""What is called: the class of the requests of an operation."""


class _LostError(ServerUnreachableError):
    """A connection broke, and what was called can be called again."""


class Connections:
    """What a client calls through: pools of connections to the ports of one server.

    A server that is lost is looked for again, for `patience` seconds, by every call that does
    not depend on what was open before and has not been sent, or may be sent twice.
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
        request: Request[ResponseT],
        limit: float | None = None,
        accepted: Container[int] = (),
    ) -> ResponseT:
        """Make one call and return its response; it is given up after `limit` seconds.

        Failures in `accepted` are for the caller to look at. Raises MQError for any other
        refusal, returned or thrown, RpcFault for any other fault, DecodeError for an answer that
        cannot be read, ServerUnreachableError when there is no server; of that HandleLostError
        when what the call uses was closed with the connection, OutcomeUnknownError when nobody
        can tell whether it was done.
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
        """A connection for many calls of one operation; raises as `call` when it is lost."""
        pool, line = await self._line(kind)
        try:
            yield line.bindings[kind.interface_name]
        except OSError as error:
            raise self._lost(kind, sent=True) from error
        finally:
            pool.release(line)

    async def redirect(self, interface_name: str, port: int) -> None:
        """Call an interface at another port from now on; a local server has no ports."""
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

    async def _call(self, request: Request[ResponseT]) -> ResponseT:
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
                    lost = error  # once at once: the server may have closed an idle connection
                    continue
                if loop.time() + delay > give_up:
                    raise (lost or error) from error
                await asyncio.sleep(delay)
                delay = min(2 * delay, LONGEST_DELAY)

    async def _attempt(self, request: Request[ResponseT]) -> ResponseT:
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

    async def _line(self, kind: Kind) -> tuple[Pool, Line]:
        """A connection with the interface bound; calls that wait for it stay in order."""
        name = kind.interface_name
        pool = self._pools.get(self._ports.get(name, NO_PORT))
        line = pool.take(name) if pool is not None and not self._queued else None
        if pool is not None and line is not None:
            return pool, line
        self._queued += 1
        try:
            async with self._preparing:
                return await self._prepared(kind)
        finally:
            self._queued -= 1

    async def _prepared(self, kind: Kind) -> tuple[Pool, Line]:
        name = kind.interface_name
        pool = await self._pool_for(name)
        if not pool.alive and _uses_handles(kind):
            raise HandleLostError(f"The connection to {self._target} was lost.")
        try:
            line = pool.take(name)
            if line is None:
                line = await self._reached(lambda: pool.prepare(name, load(name)))
        except ServerUnreachableError:
            self._ports.pop(name, None)  # it may come back at another port
            raise
        return pool, line

    async def _pool_for(self, name: str) -> Pool:
        target, port = self._target, self._ports.get(name)
        if port is None:
            port = 0
            if isinstance(target, RemoteServer):
                port = await self._port_of(target, load(name))
            self._ports[name] = port
        if port not in self._pools:
            self._pools[port] = Pool(lambda group: _connect(target, port, group))
        return self._pools[port]

    async def _port_of(self, target: RemoteServer, interface: Interface) -> int:
        # Only now, because the endpoint mapper's interface takes time to load.
        from rpcqm.rpc.endpoint_mapper import resolve

        return await self._reached(
            lambda: resolve(target.host, target.endpoint_mapper_port, interface)
        )

    async def _reached(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The outcome of an attempt; ServerUnreachableError where nobody is."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
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
    """Whether a call needs what was opened before, which ends with its connection."""
    if "by_number" in kind.operation.attributes:
        return True
    handles = load(kind.interface_name).operation(kind.operation.name).context_handles
    return any("in" in handle.direction for handle in handles)


async def _connect(target: Target, port: int, group: int) -> RpcClient:
    if isinstance(target, LocalServer):
        return await RpcClient.connect_unix(target.socket, group_id=group)
    level = NONE if target.credentials is None else PKT_PRIVACY
    return await RpcClient.connect_tcp(
        target.host, port, credentials=target.credentials, level=level, group_id=group
    )


def _reason(error: OSError) -> str:
    """What the system says, as part of a sentence."""
    text = error.strerror or str(error) or type(error).__name__
    if (number := _error_number(error)) is not None:
        text = os.strerror(number)  # asyncio's own words hold Python's form of the address
    return text[:1].lower() + text[1:].rstrip(".")


def _error_number(error: OSError) -> int | None:
    """The system's number; of several failed addresses, that of the first."""
    if error.errno is not None:
        return error.errno if error.errno > 0 else None
    match = _NUMBER.search(str(error))
    return int(match[1]) if match else None


def require_value(value: T | None) -> T:
    """What a response must bring; DecodeError for a null pointer in its place."""
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
            continue
    raise MQError(HResult.MQ_ERROR, f"with the code 0x{result:08X}")
