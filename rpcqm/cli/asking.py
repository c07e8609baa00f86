"""What a command asks of the queue manager that runs here, when it can do without the answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from rpcqm.base.errors import DecodeError, MQError, RpcFault
from rpcqm.cli.checks import TIMEOUT
from rpcqm.client.ready import ReadyFile

if TYPE_CHECKING:
    from rpcqm.client.queue_manager import QueueManagerClient

T = TypeVar("T")


class NotAnsweredError(Exception):
    """A queue manager has not answered; the text is the reason."""


def answer_of(running: ReadyFile, question: "Callable[[QueueManagerClient], Awaitable[T]]") -> T:
    """The answer to a question that is asked over the local socket. Raises NotAnsweredError."""
    try:
        return asyncio.run(asyncio.wait_for(_asked(running, question), TIMEOUT))
    except (MQError, RpcFault, DecodeError, OSError, TimeoutError) as error:
        raise NotAnsweredError(str(error) or type(error).__name__) from error


async def _asked(running: ReadyFile, question: "Callable[[QueueManagerClient], Awaitable[T]]") -> T:
    # Only now, because the interfaces take time to load.
    from rpcqm.client.queue_manager import QueueManagerClient
    from rpcqm.client.target import LocalServer

    async with QueueManagerClient(LocalServer(running.socket)) as client:
        return await question(client)


def attention_of(running: ReadyFile) -> list[dict[str, Any]]:
    """What needs attention: a code and a text each. Raises NotAnsweredError."""
    return answer_of(running, _attention)


async def _attention(client: "QueueManagerClient") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.maintenance.overview())["attention"]
    return found
