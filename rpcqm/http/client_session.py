"""The connections of the client to one place, and a request and its answer over one of them.

aiohttp connects, through proxies and with TLS, keeps idle connections and parses answers. A request
is written here: aiohttp takes five times as long for it.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import aiohttp
from aiohttp import hdrs
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawResponseMessage
from aiohttp.streams import StreamReader
from yarl import URL

from rpcqm.base.outlet import SENTENCE, current
from rpcqm.base.resolver import OPERATOR, Addresses, Senders
from rpcqm.http.limits import FIELD_BYTES, HEADERS, LINE_BYTES

ANSWER_BYTES = 1 << 16
"""Body of an answer to what is sent from here, which is read away, so that its connection is kept.

Bound `http.answer_bytes` [octets]: the connection is closed, and the answer counts.
"""
KEPT_BYTES = 1 << 12
"""Octets of an answer's body that the caller gets."""
CONNECTIONS = 64
"""Connections to one place; more requests wait."""
KEPT_SECONDS = 300
"""Seconds for which an unused connection is kept: the Session Cleanup Timer of [MC-MQSRM] 3.1.2.4.
"""

_NO_TIMEOUT = aiohttp.ClientTimeout()
"""No time-out of aiohttp: the caller watches the time of each request."""
_INFORMATIONAL = range(100, 200)
_SWITCHING_PROTOCOLS = 101


class Place(NamedTuple):
    """The other end of connections."""

    scheme: str
    host: str
    port: int
    address: str
    proxy: str


class Reply(NamedTuple):
    """An answer: its status, its headers, and the first KEPT_BYTES octets of its body."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class _Pinned(AbstractResolver):
    """A resolver that gives the one chosen address for every name."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [_resolved(host, port, self._address)]

    async def close(self) -> None:
        """Do nothing: no resource is open."""


class _OfProxy(AbstractResolver):
    """Resolves the name of a proxy, which the operator has configured."""

    def __init__(self, find: Callable[[str, Senders], Awaitable[Addresses]]) -> None:
        self._find = find

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [_resolved(host, port, each) for each in await self._find(host, OPERATOR)]

    async def close(self) -> None:
        """Do nothing: no resource is open."""


def _resolved(host: str, port: int, address: str) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=address,
        port=port,
        family=socket.AF_INET6 if ":" in address else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST,
    )


class Session:
    """The connections to one place; `used` counts the requests under way."""

    def __init__(
        self,
        place: Place,
        tls: ssl.SSLContext,
        find: Callable[[str, Senders], Awaitable[Addresses]],
    ) -> None:
        self._connector = aiohttp.TCPConnector(
            resolver=_OfProxy(find) if place.proxy else _Pinned(place.address),
            use_dns_cache=False,
            ssl=tls,
            limit=CONNECTIONS,
            keepalive_timeout=KEPT_SECONDS,
        )
        self._to = aiohttp.ClientRequest(
            hdrs.METH_POST,
            URL.build(scheme=place.scheme, host=place.host, port=place.port),
            proxy=URL(place.proxy) if place.proxy else None,
            server_hostname=place.host if place.scheme == "https" else None,
            loop=asyncio.get_running_loop(),
        )
        self.used = 0
        self.unwanted = self.has_answered = False

    async def ask(self, head: str, body: bytes) -> Reply:
        """The answer to a request; `head` is that of the request, without its end.

        Raises aiohttp's errors.
        """
        connection = await self._connector.connect(self._to, [], _NO_TIMEOUT)
        authorization = self._to.headers.get(hdrs.PROXY_AUTHORIZATION)
        if authorization is not None:
            head += f"{hdrs.PROXY_AUTHORIZATION}: {authorization}\r\n"
        try:
            reply, kept = await _exchange(connection, f"{head}\r\n".encode() + body)
        except BaseException:
            _end(connection)
            raise
        if kept:
            connection.release()
        else:
            _end(connection)
        return reply

    async def close(self) -> None:
        """Close every connection."""
        await self._connector.close()


def _end(connection: Connection) -> None:
    """Close a connection at once, without waiting until its peer takes the rest of a request."""
    transport = connection.transport
    if transport is not None and transport.get_write_buffer_size():
        transport.abort()
    connection.close()


async def _exchange(connection: Connection, request: bytes) -> tuple[Reply, bool]:
    """An answer, and whether its connection can be used again.

    It can if the whole answer was read and the whole request was sent. Octets that came before the
    request are no answer to it.
    """
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or protocol.should_close:
        raise aiohttp.ServerDisconnectedError
    protocol.set_response_params(
        read_until_eof=True,
        auto_decompress=False,
        read_bufsize=ANSWER_BYTES,
        max_line_size=LINE_BYTES,
        max_field_size=FIELD_BYTES,
        max_headers=HEADERS,
    )
    outlet = current()
    if outlet is not None and not outlet.may_leave():
        raise aiohttp.ClientConnectionError(SENTENCE)
    transport.write(request)
    message, body = await _answer(protocol)
    left, content = ANSWER_BYTES, b""
    while left >= 0 and (part := await body.readany()):
        left -= len(part)
        content += part[: KEPT_BYTES - len(content)]
    reply = Reply(message.code, message.headers, content)
    return reply, left >= 0 and not transport.get_write_buffer_size()


async def _answer(protocol: ResponseHandler) -> tuple[RawResponseMessage, StreamReader]:
    """The head and the body of the final answer; informational answers before it are skipped."""
    try:
        message, content = await protocol.read()
        while message.code in _INFORMATIONAL and message.code != _SWITCHING_PROTOCOLS:
            message, content = await protocol.read()
    except HttpProcessingError as error:
        raise aiohttp.ClientPayloadError(error.message) from error
    return message, content
