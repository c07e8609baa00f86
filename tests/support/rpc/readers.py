"""Waiting until another process reads a queue."""

import asyncio

from rpcqm.codec.interface import load
from rpcqm.codec.types.mgmt import rpc_mgmt_inq_statsRequest
from rpcqm.rpc.client import Binding, RpcClient
from rpcqm.testing import PrivateQueueManager

ATTEMPTS = 100_000


class CallCounter:
    """How many calls a queue manager has got, apart from those that ask for it."""

    def __init__(self, queue_manager: PrivateQueueManager) -> None:
        self._queue_manager = queue_manager
        self._seen = asyncio.run(self._count())

    def await_calls(self, number: int) -> None:
        """Return when so many more calls have begun."""
        asyncio.run(self._await(number))

    async def _count(self) -> int:
        async with await RpcClient.connect_unix(self._queue_manager.socket) as client:
            return await _calls(await client.bind(load("mgmt")))

    async def _await(self, number: int) -> None:
        async with await RpcClient.connect_unix(self._queue_manager.socket) as client:
            binding = await client.bind(load("mgmt"))
            for asked in range(1, ATTEMPTS):
                if await _calls(binding) - asked >= self._seen + number:
                    return
        raise AssertionError(f"{number} calls did not come")


async def _calls(binding: Binding) -> int:
    response = await binding.call("rpc_mgmt_inq_stats", rpc_mgmt_inq_statsRequest(count=1))
    (calls,) = response.statistics
    assert isinstance(calls, int)
    return calls
