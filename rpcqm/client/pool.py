"""Connections to one port of a server, all of one association group.

Calls share a connection where the server runs them concurrently; else, and when very many are in
flight, another connection joins the group, so that context handles are good on each of them.
"""

import asyncio
from collections.abc import Awaitable, Callable

from rpcqm.codec.interface import Interface
from rpcqm.rpc.client import Binding, RpcClient

CALLS = 256
"""Calls that one connection carries before another one is opened: rpcqm serves as many of one."""

MOST_LINES = 64
"""Connections at most, so that one client leaves a server room for others; calls beyond what
these carry share them, or wait."""

Connect = Callable[[int], Awaitable[RpcClient]]


class PooledConnection:
    """A connection, the interfaces that are bound on it, and the number of calls it carries."""

    __slots__ = ("bindings", "calls", "client")

    def __init__(self, client: RpcClient) -> None:
        self.client = client
        self.bindings: dict[str, Binding] = {}
        self.calls = 0

    @property
    def has_room(self) -> bool:
        return self.calls < (CALLS if self.client.multiplexed else 1)


class Pool:
    """The connections to one port; `connect` opens one in an association group (0 = a new one)."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._lines: list[PooledConnection] = []
        self._freed = asyncio.Event()

    @property
    def alive(self) -> bool:
        """Whether the association group has a connection."""
        self._lines = [line for line in self._lines if line.client.connected]
        return bool(self._lines)

    def take(self, name: str) -> PooledConnection | None:
        """A connection that is ready for a call of an interface; None if no connection is."""
        for line in self._lines:
            if line.has_room and line.client.connected and name in line.bindings:
                line.calls += 1
                return line
        return None

    async def prepare(self, name: str, interface: Interface) -> PooledConnection:
        """A connection for a call, old or new, with the interface bound under its `name`.

        Raises what connecting and binding raise.
        """
        while True:
            line = await self._find()
            if name not in line.bindings:
                line.bindings[name] = await line.client.bind(interface)
            if line.has_room or (len(self._lines) >= MOST_LINES and line.client.multiplexed):
                line.calls += 1
                return line

    async def _find(self) -> PooledConnection:
        while True:
            if self.alive:
                line = min(self._lines, key=lambda each: (not each.has_room, each.calls))
                if line.has_room:
                    return line
                if len(self._lines) >= MOST_LINES:
                    if line.client.multiplexed:
                        return line
                    self._freed.clear()
                    await self._freed.wait()
                    continue
            group = self._lines[0].client.group_id if self._lines else 0
            line = PooledConnection(await self._connect(group))
            self._lines.append(line)
            return line

    def release(self, line: PooledConnection) -> None:
        """Tell that a call over this connection has ended."""
        line.calls -= 1
        self._freed.set()

    async def close(self) -> None:
        """Close every connection."""
        lines, self._lines = self._lines, []
        for line in lines:
            line.client.close()
        for line in lines:
            await line.client.wait_closed()
