"""Changes of the queue manager by programs."""

import asyncio
from types import SimpleNamespace
from typing import cast

from rpcqm.api.administration import change_machine
from rpcqm.api.asked import Asked
from rpcqm.base.completion import Completion
from tests.support.rpc.callers import ADMINISTRATOR


async def _is_answered(durable: bool) -> bool:
    ordered: Completion[None] = Completion()
    machine = SimpleNamespace(connect=lambda *order: ordered, state=lambda identity: None)
    operations = SimpleNamespace(machine=machine)
    content = SimpleNamespace(connected=False, maintenance=None, reason="")
    asked = SimpleNamespace(operations=operations, identity=ADMINISTRATOR, content=content)
    answer = asyncio.ensure_future(change_machine(cast(Asked, asked)))
    for _ in range(10):
        await asyncio.sleep(0)
    if durable:
        ordered.succeed(None)
        await answer
    return answer.done() or not answer.cancel()


def test_that_the_network_is_left_is_answered_once_it_is_durable() -> None:
    assert not asyncio.run(_is_answered(False))
    assert asyncio.run(_is_answered(True))
