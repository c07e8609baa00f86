"""A separate process that asks a directory, and is ended when it does not answer in time."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from rpcqm.base.errors import DecodeError
from rpcqm.directory.frames import LENGTH, Result, decode_reply, encode_frame, frame_length
from rpcqm.directory.values import Entry

WORKER = (sys.executable, "-m", "rpcqm.directory.worker")
_KILL_SECONDS = 5.0
_KEPT = ("PATH", "LANG", "LC_ALL", "KRB5_CONFIG", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "HOME")


class DirectoryError(Exception):
    """An error of a directory, in one sentence; `code` is that of LDAP, if there is one."""

    def __init__(self, text: str, code: int = -1, step: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.step = step


class DirectoryProcess:
    """Starts with the first order; it is ended after a time-out.

    `timeout` is the number of seconds for which it may be silent.
    """

    def __init__(self, timeout: float, command: Sequence[str] = WORKER) -> None:
        self._timeout = timeout
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._busy = asyncio.Lock()
        self.started = 0

    async def order(self, order: str, **words: Any) -> Mapping[str, Any]:
        """Carry out an order that returns no objects; raises DirectoryError."""
        async for _ in self._carried_out({"order": order, **words}):
            raise await self._broken("objects for an order that finds none")
        return self._more

    async def search(
        self,
        base: str,
        attributes: Sequence[str],
        what: str = "(objectClass=*)",
        scope: str = "base",
        flags: int = 0,
    ) -> AsyncIterator[list[Entry]]:
        """Objects, some at a time; raises DirectoryError, also for a base that is not there."""
        asked = {"base": base, "attributes": list(attributes), "filter": what, "scope": scope}
        async for entries in self._carried_out({"order": "search", "flags": flags, **asked}):
            yield entries

    async def read(self, base: str, attributes: Sequence[str], flags: int = 0) -> Entry | None:
        """One object by its name, None if it is not there; raises DirectoryError."""
        found: list[Entry] = []
        try:
            async for entries in self.search(base, attributes, flags=flags):
                found += entries
        except DirectoryError as error:
            if error.code != 32:
                raise
        return found[0] if found else None

    async def _carried_out(self, order: Mapping[str, Any]) -> AsyncIterator[list[Entry]]:
        async with self._busy:
            finished = False
            try:
                await self._send(order)
                while isinstance(reply := await self._reply(str(order["order"])), list):
                    yield reply
                finished = True
            finally:
                if not finished:  # the rest of this answer would be taken for the next one's
                    self.kill()
            if reply.code:
                step = reply.step or str(order["order"])
                raise DirectoryError(reply.text or f"result {reply.code}", reply.code, step)
            self._more: Mapping[str, Any] = reply.more or {}

    async def _send(self, order: Mapping[str, Any]) -> None:
        if self._process is None or self._process.returncode is not None:
            await self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(encode_frame(order))
            await asyncio.wait_for(self._process.stdin.drain(), self._timeout)
        except (OSError, TimeoutError) as error:
            raise await self._broken("the process takes no order") from error

    async def _start(self) -> None:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # Channel bindings of RFC 5929, wherever the connection has TLS.
            env={**kept, "LDAPSASL_CBINDING": "tls-endpoint"},
        )
        self.started += 1

    async def _reply(self, what: str) -> list[Entry] | Result:
        assert self._process is not None
        assert self._process.stdout is not None
        source = self._process.stdout
        try:
            async with asyncio.timeout(self._timeout):
                length = frame_length(await source.readexactly(LENGTH))
                return decode_reply(await source.readexactly(length))
        except TimeoutError as error:
            text = f"the directory has not answered for {self._timeout:g} seconds"
            raise await self._broken(text, what) from error
        except asyncio.IncompleteReadError as error:
            raise await self._broken("the process that asks the directory ended", what) from error
        except DecodeError as error:
            text = f"the process that asks the directory sent {error}"
            raise await self._broken(text, what) from error

    async def _broken(self, text: str, step: str = "") -> DirectoryError:
        """End the process, and return the error."""
        await self.stop()
        return DirectoryError(text, -1, step)

    def kill(self) -> None:
        """End the process at once, without waiting."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def stop(self) -> None:
        """End the process, and wait until it is gone."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await asyncio.wait_for(process.wait(), _KILL_SECONDS)
