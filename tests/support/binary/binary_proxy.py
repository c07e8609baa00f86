"""A network between two queue managers that fails, as a proxy on loopback, for packets or HTTP.

What goes wrong is decided by a seed, packet by packet: a packet is delayed, cut in the middle or
damaged where its reader can see it; a connection ends for one side while its last bytes reach the
other after the next one is made; and what was said over an earlier connection is said again over
one of its own, while another is open.
"""

import asyncio
import random
import re
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from rpcqm.base.errors import DecodeError
from rpcqm.codec.packet.base import BASE_HEADER_SIZE, frame_size

Place = tuple[str, int]

Frame = Callable[[bytearray], int]
"""How many octets the first packet of what has come has; 0 while it is not there wholly."""

_CHUNK = 1 << 16
_EARLIER = 8
_REMEMBERED = 1 << 16
_VISIBLE = (0, 4, 5, 6, 7)
"""Octets of a packet, version and signature, whose damage cannot stay unseen."""


def binary_frame(data: bytearray) -> int:
    """Frames packets of [MS-MQQB]; other octets are passed on unchanged."""
    size = len(data)
    if size < BASE_HEADER_SIZE:
        return 0
    with suppress(DecodeError):
        return wanted if size >= (wanted := frame_size(data)) else 0
    return size


def http_frame(data: bytearray) -> int:
    """Frames requests and answers of HTTP that tell their length."""
    head, end, _ = data.partition(b"\r\n\r\n")
    if not end:
        return 0
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    size = len(head) + len(end) + (int(length[1]) if length else 0)
    return size if len(data) >= size else 0


@dataclass(frozen=True)
class ProxyFaults:
    """How likely what is, for each packet, and `replay` for each connection; times in seconds."""

    cut: float = 0.0
    corrupt: float = 0.0
    linger: float = 0.0
    replay: float = 0.0
    delay: float = 0.0
    late: float = 0.0


class _Direction:
    """What flows one way over one connection."""

    def __init__(
        self, proxy: "FaultyProxy", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writer = writer
        self._buffer = bytearray()
        self.said = bytearray()

    async def run(self, back: asyncio.StreamWriter) -> None:
        """Pass packets on until the connection ends; `back` leads to the one who writes them."""
        with suppress(OSError):
            while data := await self._reader.read(_CHUNK):
                self._buffer += data
                if not await self._pass_all_on(back):
                    break
        self._writer.close()

    async def _pass_all_on(self, back: asyncio.StreamWriter) -> bool:
        """Pass on what is complete; whether the connection is still there."""
        while packet := self._next_packet():
            if len(self.said) < _REMEMBERED:
                self.said += packet
            if not await self._pass_on(packet, back):
                return False
        return True

    def _next_packet(self) -> bytes:
        """A whole packet, or whatever there is when it is none."""
        size = self._proxy.frame(self._buffer)
        packet = bytes(self._buffer[:size])
        del self._buffer[:size]
        return packet

    async def _pass_on(self, packet: bytes, back: asyncio.StreamWriter) -> bool:
        proxy = self._proxy
        fault = proxy.choose()
        if proxy.faults.delay:
            await asyncio.sleep(proxy.random.uniform(0, proxy.faults.delay))
        if fault == "linger":
            back.transport.abort()
            await asyncio.sleep(proxy.random.uniform(0, proxy.faults.late))
        elif fault == "corrupt":
            damaged = bytearray(packet)
            damaged[proxy.random.choice(_VISIBLE)] ^= 1 << proxy.random.randrange(8)
            packet = bytes(damaged)
        elif fault == "cut":
            packet = packet[: proxy.random.randrange(len(packet))]
            back.transport.abort()
        self._writer.write(packet)
        await self._writer.drain()
        return fault not in ("linger", "cut")


class FaultyProxy:
    """Listens on a free port of loopback while its block runs, in a thread of its own.

    `target` may be set later; `faults` may be changed at any time. `happened` counts what has.
    """

    def __init__(
        self,
        seed: int,
        faults: ProxyFaults,
        target: Place = ("127.0.0.1", 0),
        frame: Frame = binary_frame,
    ) -> None:
        self.target = target
        self.faults = faults
        self.frame = frame
        self.random = random.Random(seed)
        self.happened: Counter[str] = Counter()
        self.port = 0
        self._earlier: deque[bytes] = deque(maxlen=_EARLIER)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        starting = asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result()
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)

    def choose(self) -> str:
        """What goes wrong with the next packet, if anything."""
        roll = self.random.random()
        for fault in ("cut", "corrupt", "linger"):
            roll -= getattr(self.faults, fault)
            if roll < 0:
                self.happened[fault] += 1
                return fault
        return ""

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, and perhaps the shadow of an earlier one."""
        if self._earlier and self.random.random() < self.faults.replay:
            self.happened["replay"] += 1
            await self._replay(self.random.choice(self._earlier))
        try:
            there, beyond = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, beyond}
        self._writers |= pair
        forth, back = _Direction(self, reader, beyond), _Direction(self, there, writer)
        await asyncio.gather(forth.run(writer), back.run(beyond))
        self._writers -= pair
        self._earlier.append(bytes(forth.said))

    async def _replay(self, said: bytes) -> None:
        """Say it again over a connection that stays open for a while; answers are not heard."""
        with suppress(OSError):
            _, writer = await asyncio.open_connection(*self.target)
            writer.write(said)
            self._loop.call_later(self.random.uniform(0, self.faults.late), writer.close)
            self._writers.add(writer)
