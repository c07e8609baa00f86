"""Events for programs, where the one that listens may not do so any more."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from rpcqm.api.events import EventStream
from rpcqm.api.problems import bad_request
from rpcqm.base.identity import Identity
from rpcqm.operations.events import Subscription
from rpcqm.operations.trail import Event, EventKind

ALICE = Identity("alice", "S-1-5-21-1-2-3-1000")
EVENT = Event(1, 0, next(iter(EventKind)), "orders", {})
DAY = 86_400.0


class _Listener:
    """What has one event to give each time."""

    over = False

    def __init__(self) -> None:
        self.identity = ALICE

    async def take(self, seconds: float) -> list[Event]:
        return [EVENT]


def _refused() -> Identity:
    raise bad_request("the token has expired")


async def _second_answer(again: Callable[[], Identity]) -> bytes | None:
    stream = EventStream(cast(Subscription, _Listener()), again, DAY)
    await stream.next()
    return await stream.next()


@pytest.mark.parametrize(
    "again", [_refused, lambda: replace(ALICE, sid="S-1-5-21-1-2-3-1001")], ids=["end", "another"]
)
def test_an_event_is_not_given_to_a_caller_who_could_not_log_on_now(
    again: Callable[[], Identity],
) -> None:
    assert b"orders" in (asyncio.run(_second_answer(lambda: ALICE)) or b"")
    assert asyncio.run(_second_answer(again)) is None
