"""Calls that are given up after 300 seconds ([MS-MQRR] 3.1.2.1, [MS-MQQP] 3.2.4.1)."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from rpcqm.client.connection import Connections
from rpcqm.client.dependent import DependentQueue
from rpcqm.client.qm2qm_session import open_remote_queue
from rpcqm.client.remote_queue import RemoteQueue
from rpcqm.client.remote_read import MoveTarget, RemoteReadSession
from rpcqm.client.target import OutcomeUnknownError, RemoteServer
from rpcqm.codec.interface import OperationRequest
from rpcqm.codec.names.format_name import FormatName

NAME = FormatName.parse(r"DIRECT=OS:mail\private$\orders")
CLIENT = UUID(int=1)
FIVE_MINUTES = 300.0


class HastySelector(selectors.DefaultSelector):
    """Does not wait: time jumps instead."""

    skipped = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.skipped += timeout or 0.0
        return super().select(0)


class HastyLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._hasty = HastySelector()
        super().__init__(self._hasty)

    def time(self) -> float:
        return super().time() + self._hasty.skipped


class Silent(Connections):
    """Connections to a server that answers only what is in `answers`."""

    def __init__(self, **answers: object) -> None:
        super().__init__(RemoteServer("mail"))
        self.answers = answers

    async def _call(self, request: OperationRequest[Any]) -> Any:
        if request.operation.name in self.answers:
            return self.answers[request.operation.name]
        return await asyncio.get_running_loop().create_future()


async def open_reading() -> None:
    await RemoteReadSession(Silent(), NAME).open(1, False)


async def open_moving() -> None:
    await MoveTarget(Silent(), NAME).__aenter__()


async def open_remotely() -> None:
    await open_remote_queue(Silent(), NAME, 1, 0, CLIENT)


async def open_dependent() -> None:
    await DependentQueue(Silent(), NAME, lambda _: Silent()).__aenter__()


async def ask_for_the_port() -> None:
    await RemoteQueue(Silent(), 1, 1).open(1, CLIENT, False)


async def take_over() -> None:
    connections = Silent(RemoteQMGetQMQMServerPort=SimpleNamespace(result=2105))
    await RemoteQueue(connections, 1, 1).open(1, CLIENT, False)


def seconds_until_given_up(attempt: Callable[[], Awaitable[None]]) -> float:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(OutcomeUnknownError, match="did not answer"):
            await attempt()
        return loop.time() - began

    with asyncio.Runner(loop_factory=HastyLoop) as runner:
        return runner.run(main())


@pytest.mark.parametrize(
    "attempt",
    [
        pytest.param(open_reading, marks=pytest.mark.conformance("MQRR-timer-rpc_call_timeout")),
        pytest.param(open_moving, marks=pytest.mark.conformance("MQRR-timer-rpc_call_timeout")),
        pytest.param(take_over, marks=pytest.mark.conformance("MQQP-client-3.2.4.1")),
        ask_for_the_port,
        open_remotely,
        open_dependent,
    ],
    ids=lambda attempt: attempt.__name__,
)
def test_an_opening_that_is_not_answered_is_given_up_after_five_minutes(
    attempt: Callable[[], Awaitable[None]],
) -> None:
    assert FIVE_MINUTES <= seconds_until_given_up(attempt) < FIVE_MINUTES + 1
