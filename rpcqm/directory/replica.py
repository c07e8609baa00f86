"""A replica of a directory in memory, kept up to date by a task.

Reading it never waits: it returns the last contents (`DirectorySource`).
"""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from rpcqm.adm.directory import KINDS, DirectoryContents, DirectoryUnavailableError
from rpcqm.base.errors import DecodeError
from rpcqm.base.log import get_logger
from rpcqm.directory.kept import NAME, Kept, read_kept, write_kept
from rpcqm.directory.process import WORKER, DirectoryError, DirectoryProcess
from rpcqm.directory.reading import DirectoryReader, Root, Settings
from rpcqm.directory.values import Entry

ROUNDS_UNTIL_OFFLINE = 3
NO_SUCH_OBJECT = 32
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds between attempts to connect ([MS-MQDMPR] 3.1.2.5), doubled each time."""
MISS_SECONDS = 5.0
"""Seconds between rounds that misses cause.

Bound `directory.miss_seconds` [seconds]: further misses wait for the next round.
"""

_log = get_logger("directory")


class LdapReplica:
    """The directory of a domain."""

    def __init__(
        self,
        settings: Settings,
        data_dir: Path,
        command: Sequence[str] = WORKER,
    ) -> None:
        self._settings = settings
        self._path = data_dir / NAME
        self._changed: Callable[[], None] = lambda: None
        self._process = DirectoryProcess(settings.timeout, command)
        self._reader = DirectoryReader(settings, self._process)
        self._contents: DirectoryContents | None = None
        self._task: asyncio.Task[None] | None = None
        self._early = asyncio.Event()
        self._early_at = 0.0
        self.connected = False
        self.read_at = 0.0
        self.round_seconds = 0.0
        self.rounds = 0
        self.failures = 0
        self.misses = 0
        self.last_error = ""

    # Reading without waiting

    def __call__(self) -> DirectoryContents:
        """The last contents; raises DirectoryUnavailableError if they are too old or missing."""
        if self._contents is None:
            raise DirectoryUnavailableError(self.last_error or "nothing was read of it yet")
        if self.age > self._settings.keep_for:
            raise DirectoryUnavailableError(f"what was read of it is {self.age:.0f} seconds old")
        return self._contents

    @property
    def age(self) -> float:
        """Seconds since the last round that succeeded."""
        return max(0.0, time.time() - self.read_at)

    @property
    def offline(self) -> bool:
        """Whether no round has succeeded for as long as three take (G756)."""
        return self.age > ROUNDS_UNTIL_OFFLINE * self._settings.round

    @property
    def server(self) -> str:
        """The controller of the last round."""
        return self._reader.server

    @property
    def processes(self) -> int:
        """The number of processes started."""
        return self._process.started

    @property
    def skipped(self) -> dict[str, str]:
        """The reasons for skipped objects, by their distinguished names."""
        return self._reader.objects.skipped

    @property
    def left_out(self) -> int:
        """The number of queues beyond `most_objects`."""
        return self._reader.objects.left_out

    def counts(self) -> dict[str, int]:
        """The number of objects of each kind."""
        contents = self._contents or DirectoryContents()
        return {name: sum(1 for _ in contents.of(kind)) for name, kind in KINDS.items()}

    def missed(self) -> None:
        """Let the next round come early after a look-up without result, but not often."""
        self.misses += 1
        now = time.monotonic()
        if self.connected and now - self._early_at >= MISS_SECONDS:
            self._early_at = now
            self._early.set()

    # Other questions

    @property
    def domain_base(self) -> str:
        """The distinguished name of the domain; raises DirectoryUnavailableError."""
        return self._root.domain

    @property
    def configuration_base(self) -> str:
        """The distinguished name of the configuration; raises DirectoryUnavailableError."""
        return self._root.configuration

    @property
    def _root(self) -> Root:
        root = self._reader.root
        if root is None or not self.connected:
            raise DirectoryUnavailableError(self.last_error or "nothing was read of it yet")
        return root

    async def search(
        self, base: str, attributes: Sequence[str], what: str, scope: str
    ) -> AsyncIterator[list[Entry]]:
        """Objects of the domain: none without the base. Raises DirectoryUnavailableError."""
        if not self.connected:
            raise DirectoryUnavailableError(self.last_error or "nothing was read of it yet")
        try:
            async for entries in self._process.search(base, attributes, what, scope):
                yield entries
        except DirectoryError as error:
            if error.code != NO_SUCH_OBJECT:
                raise DirectoryUnavailableError(str(error)) from error

    # The task

    def load(self) -> None:
        """Load the contents from the disk; a damaged file counts as missing."""
        try:
            kept = read_kept(self._path, self._settings.domain)
        except (OSError, DecodeError) as error:
            _log.warning("what was kept of the directory cannot be read", error=str(error))
            return
        if kept is not None:
            self._contents, self.read_at = kept.contents, kept.read_at

    def start(self, changed: Callable[[], None]) -> None:
        """Begin reading the directory; `changed` is called when a round brings changes."""
        self._changed = changed
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End the task and the process."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._process.stop()

    async def _run(self) -> None:
        wait = FIRST_WAIT
        while True:
            try:
                await self._connect()
                wait = FIRST_WAIT
                await self._follow()
            except DirectoryError as error:
                self._failed(error)
            await self._process.stop()
            await asyncio.sleep(wait * random.uniform(0.8, 1.2))
            wait = min(2 * wait, LONGEST_WAIT)

    def _failed(self, error: DirectoryError) -> None:
        text = f"{error.step}: {error}" if error.step else str(error)
        if text != self.last_error:
            _log.warning("the directory is not read", server=self.server, error=text)
        self.last_error, self.connected = text, False
        self.failures += 1
        self._reader.give_up()

    async def _connect(self) -> None:
        began = time.monotonic()
        await self._reader.connect()
        contents = await self._reader.read_all()
        self.connected, self.last_error = True, ""
        self._take(contents, began)
        await self._keep()
        _log.info("the directory is read", server=self.server, **self.counts())

    async def _follow(self) -> None:
        """Make rounds as long as the controller answers."""
        settings, reader = self._settings, self._reader
        whole_at = time.monotonic() + settings.full_round
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._early.wait(), settings.round)
            self._early.clear()
            began = time.monotonic()
            self._take(await reader.read_changes(), began)
            if time.monotonic() >= whole_at:
                self._take(await reader.read_identifiers(), began)
                whole_at = time.monotonic() + settings.full_round
                await self._keep()

    def _take(self, contents: DirectoryContents | None, began: float) -> None:
        """Use the contents of a round."""
        self.read_at, self.rounds = time.time(), self.rounds + 1
        self.round_seconds = time.monotonic() - began
        if contents is not None:
            self._contents = contents
            self._changed()

    async def _keep(self) -> None:
        """Write the contents to the disk, outside of the loop."""
        assert self._contents is not None
        kept = Kept(self._contents, self.read_at, self._settings.domain)
        try:
            await asyncio.to_thread(write_kept, self._path, kept)
        except OSError as error:
            _log.warning("what was read of the directory is not kept", error=str(error))
