"""When a server writes what its connections have to send."""

import asyncio
from typing import Any, cast

from rpcqm.rpc.connection import Connection
from rpcqm.rpc.server import TURNS_ALONE, RpcServer


class Flushed:
    """Stands for a connection, and counts how often it was to write."""

    def __init__(self) -> None:
        self.times = 0

    def flush(self) -> None:
        self.times += 1

    @property
    def connection(self) -> Connection:
        return cast(Connection, cast(Any, self))


def test_what_is_gathered_is_written_at_its_end_and_not_in_another_turn() -> None:
    async def gather() -> list[int]:
        server, each = RpcServer(), Flushed()
        with server.gathering:
            server.flush_later(each.connection)
            before = each.times
        after = each.times
        await asyncio.sleep(0)
        return [before, after, each.times]

    assert asyncio.run(gather()) == [0, 1, 1]


def test_what_is_not_gathered_is_written_at_the_end_of_the_turn() -> None:
    async def leave() -> list[int]:
        server, each = RpcServer(), Flushed()
        with server.gathering:
            pass
        server.flush_later(each.connection)
        before = each.times
        await asyncio.sleep(0)
        return [before, each.times]

    assert asyncio.run(leave()) == [0, 1]


def test_what_a_failure_interrupts_is_written_all_the_same() -> None:
    server, each = RpcServer(), Flushed()
    try:
        with server.gathering:
            server.flush_later(each.connection)
            raise KeyError
    except KeyError:
        assert each.times == 1


def test_what_several_are_sent_in_a_turn_is_written_together_at_its_end() -> None:
    async def turns() -> list[list[int]]:
        server, ours = RpcServer(), [Flushed(), Flushed()]
        seen = []
        for _ in range(2):
            for each in ours:
                server.flush_soon(each.connection)
            seen.append([each.times for each in ours])
            await asyncio.sleep(0)
            seen.append([each.times for each in ours])
        return seen

    assert asyncio.run(turns()) == [[0, 0], [1, 1], [1, 1], [2, 2]]


def test_one_that_is_alone_is_written_at_once_until_others_are_looked_for_again() -> None:
    async def turns() -> list[bool]:
        server, each = RpcServer(), Flushed()
        at_once = []
        for _ in range(TURNS_ALONE + 2):
            before = each.times
            server.flush_soon(each.connection)
            at_once.append(each.times > before)
            await asyncio.sleep(0)
        return at_once

    assert asyncio.run(turns()) == [False, *[True] * TURNS_ALONE, False]
