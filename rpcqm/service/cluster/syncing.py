"""Syncs a node's unsynced writes once a second.

Nothing depends on it, because the log has all of them: it bounds the records that a start has to
read again. A failing disk ends the process all the same, so that another node takes over.
"""

import asyncio
from collections.abc import Callable

from rpcqm.store.database import Database

SECONDS = 1.0


class Syncing:
    """Syncs a database in a thread, if the place of the log has changed, until it is stopped."""

    def __init__(
        self,
        database: Database,
        place: Callable[[], int],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.synced = 0
        """The number of the last record that is durable here."""
        self._database = database
        self._place = place
        self._failed = failed
        self._thread: asyncio.Task[None] | None = None
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(SECONDS)
            await self.sync()

    async def sync(self) -> None:
        """Sync now, if there are changes."""
        place = self._place()
        if place == self.synced:
            return
        loop = asyncio.get_running_loop()
        self._thread = loop.create_task(asyncio.to_thread(self._database.sync))
        try:
            await asyncio.shield(self._thread)
        except Exception as error:
            self._failed(error)
            return
        self.synced = place

    async def stop(self) -> None:
        """Stop; nothing uses the database afterwards."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._thread is not None:
            await asyncio.gather(self._thread, return_exceptions=True)
