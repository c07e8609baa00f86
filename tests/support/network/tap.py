"""Somebody on the line: a port that leads to another one, and records what passes."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rpcqm.capture.file.writing import Address, CaptureWriter, WrittenConnection


class _Tap:
    def __init__(self, port: int, writer: CaptureWriter) -> None:
        self._port = port
        self._writer = writer

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, answers = await asyncio.open_connection("127.0.0.1", self._port)
        client: Address = writer.get_extra_info("peername")
        written = self._writer.connection(time.time_ns(), client, ("127.0.0.1", self._port))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_on(reader, answers, written, True))
                group.create_task(_pass_on(theirs, writer, written, False))
        finally:
            written.close(time.time_ns())


async def _pass_on(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    written: WrittenConnection,
    from_client: bool,
) -> None:
    with suppress(ConnectionError):
        while octets := await reader.read(1 << 16):
            (written.client_sent if from_client else written.server_sent)(time.time_ns(), octets)
            writer.write(octets)
            await writer.drain()
    writer.close()


@contextmanager
def tapped(port: int, path: Path) -> Iterator[int]:
    """A port of 127.0.0.1 that leads to `port`; what passes is in a capture at `path`."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    with path.open("wb") as file:
        tap = _Tap(port, CaptureWriter(file))
        begun = asyncio.start_server(tap.connected, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(begun, loop).result(10)
        yield server.sockets[0].getsockname()[1]
        asyncio.run_coroutine_threadsafe(_ended(server), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def _ended(server: asyncio.Server) -> None:
    """Its clients have closed their connections: wait until all that they sent has passed."""
    server.close()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if others:
        await asyncio.wait(others, timeout=10)
