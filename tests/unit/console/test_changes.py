"""What pages are told that follow what happens."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from rpcqm.console.changes import (
    ALIVE,
    CHANGED,
    LISTENERS_OF_SESSION,
    MOST_LISTENERS,
    Changes,
)
from rpcqm.console.sessions import Place, Session
from tests.support.rpc.callers import ALICE


def session(name: bytes = b"1") -> Session:
    return Session(name, ALICE, b"", Place("h", 1, secure=False), "", 0)


class Pulse:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.value = self.asked = 0
        self.alive = True
        self.changes = Changes(self.take, lambda _: self.alive)

    def take(self) -> object:
        self.asked += 1
        return self.value


def run(work: Callable[[Pulse], Awaitable[None]]) -> Pulse:
    pulse = Pulse()

    async def go() -> None:
        await work(pulse)

    asyncio.run(go())
    return pulse


def test_a_page_is_told_of_a_change_and_of_nothing_else() -> None:
    async def work(pulse: Pulse) -> None:
        told = pulse.changes.listen(session())
        assert told is not None
        assert await told.next() == ALIVE
        waiting = asyncio.ensure_future(told.next())
        pulse.changes.look()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        pulse.value = 1
        pulse.changes.look()
        assert await waiting == CHANGED
        told.close()
        assert pulse.changes.listeners == 0

    run(work)


def test_who_is_logged_on_no_more_is_told_nothing() -> None:
    async def work(pulse: Pulse) -> None:
        told = pulse.changes.listen(session())
        assert told is not None
        await told.next()
        pulse.alive, pulse.value = False, 1
        pulse.changes.look()
        assert await told.next() is None

    run(work)


def test_nobody_asks_whether_something_has_changed_while_nobody_listens() -> None:
    async def work(pulse: Pulse) -> None:
        assert pulse.asked == 0
        told = pulse.changes.listen(session())
        assert told is not None
        told.close()
        pulse.changes._look_and_go_on()
        assert pulse.asked == 1
        assert pulse.changes._timer is None

    run(work)


@pytest.mark.bound("console.listeners", "console.listeners_of_session")
def test_pages_that_follow_are_bounded() -> None:
    async def work(pulse: Pulse) -> None:
        one = session()
        for _ in range(LISTENERS_OF_SESSION):
            assert pulse.changes.listen(one) is not None
        assert pulse.changes.listen(one) is None
        for number in range(MOST_LISTENERS - LISTENERS_OF_SESSION):
            assert pulse.changes.listen(session(b"%d" % number)) is not None
        assert pulse.changes.listen(session(b"one more")) is None

    run(work)
