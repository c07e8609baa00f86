"""What `rpcqm serve --capture` records of messages over HTTP, without TLS.

Connections of others are written as they go on. Of what the queue manager posts itself each post is
a connection of its own, from an address that stands for it, because the client keeps its own.
"""

import asyncio
import time
from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import urlsplit

from rpcqm.base.completion import Completion
from rpcqm.capture.file.writing import WrittenConnection
from rpcqm.http.connection import HttpConnection
from rpcqm.service.recording.rpc import Recorder
from rpcqm.service.srmp import SrmpDoor
from rpcqm.srmp.connection.network import Answer

OWN_ADDRESSES = ("127.200.0.3", "::7fc8:3")
"""What stands for this queue manager when it posts, for both kinds of addresses."""
_PROXY = "127.200.0.4"
"""What stands for the other end where a proxy alone knows it."""
_PORTS = range(1024, 65024)
_DEFAULT_PORTS = {"http": 80, "https": 443}


def record(door: SrmpDoor, recorder: Recorder) -> None:
    """Record every connection of a door, and every post."""
    door.watch(partial(_RecordedConnection, recorder), Posts(recorder).post)


class _Copying:
    """A transport whose octets go to a capture as well; everything else is the transport's."""

    def __init__(self, transport: asyncio.Transport, written_to: WrittenConnection) -> None:
        self._transport = transport
        self._written_to = written_to

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._written_to.server_sent(time.time_ns(), bytes(data))
        self._transport.write(data)

    def writelines(self, parts: Iterable[bytes]) -> None:
        self.write(b"".join(parts))


class _RecordedConnection(HttpConnection):
    """A connection whose octets go to a capture as well."""

    __slots__ = ("_recorder", "_written_to")

    def __init__(self, recorder: Recorder, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._recorder = recorder
        self._written_to: WrittenConnection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        written_to = self._written_to = self._recorder.written(transport)
        copying = _Copying(cast(asyncio.Transport, transport), written_to)
        super().connection_made(cast(asyncio.BaseTransport, copying))

    def data_received(self, data: bytes) -> None:
        if data and self._written_to is not None:
            self._written_to.client_sent(time.time_ns(), data)
        super().data_received(data)

    def connection_lost(self, error: BaseException | None) -> None:
        super().connection_lost(error)
        if self._written_to is not None:
            self._written_to.close(time.time_ns())
            self._written_to = None


class Posts:
    """Writes each post that was answered."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._number = -1

    def post(
        self,
        url: str,
        headers: tuple[tuple[str, str], ...],
        body: bytes,
        answered: Completion[Answer],
    ) -> None:
        """A post begins; it is written when its answer is there."""
        octets = _request(url, headers, body)
        answered.add_done_callback(partial(self._write, url, octets, time.time_ns()))

    def _write(self, url: str, octets: bytes, began: int, answered: Completion[Answer]) -> None:
        if answered.error is not None:
            return
        answer = answered.result()
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 80)
        server = answer.address or _PROXY, port
        self._number = (self._number + 1) % len(_PORTS)
        client = OWN_ADDRESSES[":" in server[0]], _PORTS[self._number]
        written = self._recorder.writer.connection(began, client, server)
        written.client_sent(began, octets)
        now = time.time_ns()
        written.server_sent(now, _answer(answer))
        written.close(now)


def _request(url: str, headers: tuple[tuple[str, str], ...], body: bytes) -> bytes:
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"POST {target} HTTP/1.1", f"Host: {parts.netloc}"]
    lines += [f"{name}: {text}" for name, text in headers]
    if not any(name.lower() == "content-length" for name, _ in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


def _answer(answer: Answer) -> bytes:
    known = HTTPStatus._value2member_map_.get(answer.status)
    phrase = known.phrase if isinstance(known, HTTPStatus) else ""
    length = len(answer.content)
    head = f"HTTP/1.1 {answer.status} {phrase}\r\nContent-Length: {length}\r\n\r\n"
    return head.encode() + answer.content
