"""What an engine has going on ends with it."""

import asyncio
from contextlib import suppress

from rpcqm.replica.tasks import EngineTasks


def test_a_task_that_misses_its_first_cancellation_ends_all_the_same() -> None:
    """As one does whose wait ends at the same moment."""

    async def stubborn() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async def run() -> None:
        tasks = EngineTasks()
        begun = tasks.begin(stubborn())
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await tasks.end()
        assert begun.cancelled()

    asyncio.run(run())
