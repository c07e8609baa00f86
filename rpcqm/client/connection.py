"""The RPC connections of one client: found, opened and bound when a call first needs them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from rpcqm.base.errors import FaultStatus, HResult, MQError, NtStatus, RpcFault
from rpcqm.client.target import LocalServer, RemoteServer, ServerUnreachableError, Target
from rpcqm.codec.interface import Interface, load
from rpcqm.rpc.client import Binding, RpcClient
from rpcqm.rpc.security import NONE, PKT_PRIVACY, AuthenticationError

CONNECT_TIMEOUT = 30.0
"""Seconds after which a server that does not answer counts as absent."""

T = TypeVar("T")


class Connections:
    """What a client calls through; one connection to each port of the server."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._clients: dict[int, RpcClient] = {}
        self._bindings: dict[str, asyncio.Task[Binding]] = {}
        self._opening = asyncio.Lock()

    async def call(self, interface_name: str, operation: str, request: object) -> Any:
        """Make one call and return its response.

        Raises MQError for a refusal, whether it is returned or thrown, RpcFault for any other
        fault, DecodeError for an answer that cannot be read, ServerUnreachableError when there
        is no server, or no longer.
        """
        binding = await self._binding(interface_name)
        try:
            response = await binding.call(operation, request)
        except RpcFault as fault:
            if isinstance(fault.status, HResult | NtStatus):
                raise MQError(fault.status) from fault
            raise
        except OSError as error:
            raise ServerUnreachableError(f"The connection to {self._target} was lost.") from error
        require_success(getattr(response, "result", HResult.MQ_OK))
        return response

    async def close(self) -> None:
        """Close every connection."""
        for task in self._bindings.values():
            task.cancel()
        await asyncio.gather(*self._bindings.values(), return_exceptions=True)
        clients = list(self._clients.values())
        self._clients.clear()
        self._bindings.clear()
        for client in clients:
            client.close()
        for client in clients:
            await client.wait_closed()

    async def _binding(self, interface_name: str) -> Binding:
        """The interface, bound once; calls that wait for that go on in the order they came."""
        task = self._bindings.get(interface_name)
        if task is None:
            task = asyncio.ensure_future(self._bind(load(interface_name)))
            self._bindings[interface_name] = task
        try:
            return await asyncio.shield(task)
        finally:
            failed = task.done() and (task.cancelled() or task.exception() is not None)
            if failed and self._bindings.get(interface_name) is task:
                del self._bindings[interface_name]

    async def _bind(self, interface: Interface) -> Binding:
        async with self._opening:
            client = await self._client_for(interface)
            return await self._reached(lambda: client.bind(interface))

    async def _client_for(self, interface: Interface) -> RpcClient:
        target = self._target
        if isinstance(target, LocalServer):
            port = 0
        else:
            port = await self._port_of(target, interface)
        if port not in self._clients:
            self._clients[port] = await self._reached(lambda: _connect(target, port))
        return self._clients[port]

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


async def _connect(target: Target, port: int) -> RpcClient:
    if isinstance(target, LocalServer):
        return await RpcClient.connect_unix(target.socket)
    level = NONE if target.credentials is None else PKT_PRIVACY
    return await RpcClient.connect_tcp(
        target.host, port, credentials=target.credentials, level=level
    )


def _reason(error: OSError) -> str:
    """What the system says, as part of a sentence."""
    text = error.strerror or str(error) or type(error).__name__
    return text[:1].lower() + text[1:].rstrip(".")


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
