"""Waiting until another process reads a queue."""

import asyncio

from rpcqm.base.errors import HResult, MQError
from rpcqm.client.names import format_name
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.target import LocalServer
from rpcqm.testing import PrivateQueueManager


def await_reader(queue_manager: PrivateQueueManager, queue: str) -> None:
    """Return when somebody has opened the queue: when one cannot have it for oneself alone."""
    asyncio.run(_await_reader(queue_manager, queue))


async def _await_reader(queue_manager: PrivateQueueManager, queue: str) -> None:
    async with QueueManagerClient(LocalServer(queue_manager.socket)) as client:
        for _ in range(20_000):
            try:
                async with client.open_reader(format_name(queue), exclusive=True):
                    pass
            except MQError as error:
                if error.status is HResult.MQ_ERROR_SHARING_VIOLATION:
                    return
                raise
    raise AssertionError("nobody opened the queue")
