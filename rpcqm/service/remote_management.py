"""Questions and orders of administrators here to other queue managers ([MS-MQMR] 3.2)."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from rpcqm.base.completion import Completion
from rpcqm.client.connection import Connections
from rpcqm.client.management import ManagementClient
from rpcqm.client.target import Target
from rpcqm.codec.names.format_name import FormatName
from rpcqm.service.remote_queues import RemoteQueues

T = TypeVar("T")


class LoopRemoteManagement:
    """Logs on at a machine for each call; `target_of` tells where it is, and as whom."""

    def __init__(self, queues: RemoteQueues, target_of: Callable[[str], Target]) -> None:
        self._queues = queues
        self._target_of = target_of

    def told(self, machine: str, name: FormatName | None, identifier: int) -> Completion[object]:
        return self._queues.run(
            self._with(machine, lambda client: client.property_of(name, identifier))
        )

    def ordered(self, machine: str, name: FormatName | None, action: str) -> Completion[None]:
        return self._queues.run(self._with(machine, lambda client: client.order(action, name)))

    async def _with(self, machine: str, call: Callable[[ManagementClient], Awaitable[T]]) -> T:
        connections = Connections(self._target_of(machine))
        try:
            return await call(ManagementClient(connections))
        finally:
            await connections.close()
