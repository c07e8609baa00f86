"""HTTP/1.1 as a client: one POST after the other over kept connections (G208).

Names are resolved here, so that a connection goes only to an address that was allowed.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import aiohttp
from aiohttp import hdrs
from yarl import URL

from rpcqm.base.clock import Clock
from rpcqm.base.resolver import OPERATOR, Addresses, Senders, is_address, look_up
from rpcqm.http.client_session import Place, Reply, Session

RESOLVED_MILLISECONDS = 30_000
"""How long the addresses of a name are remembered."""
PLACES = 1024
"""Places to which connections are kept, and names whose addresses are remembered.

Bound `http.places` [places]: places whose connections are not in use are forgotten.
"""

MayConnect = Callable[[str], bool]
Resolve = Callable[[str, Senders], Awaitable[Addresses]]
"""The addresses of a name that senders have given; raises OSError."""


class Posted(NamedTuple):
    """An answer, the address that it came from, and the first octets of its body."""

    status: int
    address: str
    headers: Mapping[str, str]
    content: bytes


class _Target(NamedTuple):
    """The place that a URL leads to, and the beginning of a request.

    `start` is the request line and Host; `start_for_proxy` is the same for a proxy that takes the
    request itself.
    """

    scheme: str
    host: str
    port: int
    start: str
    start_for_proxy: str


@lru_cache(maxsize=PLACES)
def _target(url: str, connect_to: str) -> _Target:
    """The target of a URL; raises ValueError for another or too long a text."""
    asked = URL(url, encoded=True)
    near = URL(connect_to, encoded=True) if connect_to else asked
    path, origin = asked.raw_path_qs or "/", str(near.origin())
    host = asked.host_port_subcomponent or ""
    if not (path + host).isprintable() or " " in path:
        raise ValueError(f"{url!r} is no URL")
    start, end = f"{hdrs.METH_POST} ", f"{path} HTTP/1.1\r\n{hdrs.HOST}: {host}\r\n"
    return _Target(near.scheme, near.host or "", near.port or 0, start + end, start + origin + end)


class HttpClient:
    """Posts; `proxy_for` gives the proxy for a URL, "" for a direct connection."""

    def __init__(
        self,
        clock: Clock,
        tls: ssl.SSLContext,
        proxy_for: Callable[[str], str],
        resolve: Resolve | None = None,
    ) -> None:
        self._clock = clock
        self._addresses_of: Resolve = resolve or _looked_up
        self._tls = tls
        self._proxy_for = proxy_for
        self._sessions: dict[Place, Session] = {}
        self._resolved: dict[str, tuple[int, Addresses]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def adjust(self, tls: ssl.SSLContext, proxy_for: Callable[[str], str]) -> None:
        """Trust other authorities and use another proxy, for new connections."""
        self._tls, self._proxy_for = tls, proxy_for
        for place in list(self._sessions):
            self._forget(place)

    async def post(
        self,
        url: str,
        connect_to: str,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        *,
        seconds: float,
        may_connect: MayConnect | None = None,
        senders: Senders = OPERATOR,
    ) -> Posted:
        """POST to a URL, over a connection to the place of another if `connect_to` is one.

        `senders` have named the host; a place to connect to is the operator's choice. Raises
        OSError: TimeoutError after `seconds`, PermissionError when no address may be connected to.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._post(url, connect_to, headers, body, may_connect, senders)
        except aiohttp.ClientConnectorError as error:
            raise error.os_error from error
        except OSError:
            raise
        except (aiohttp.ClientError, ValueError) as error:
            raise ConnectionError(str(error) or type(error).__name__) from error

    async def _post(
        self,
        url: str,
        connect_to: str,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        may_connect: MayConnect | None,
        senders: Senders,
    ) -> Posted:
        target = _target(url, connect_to)
        proxy = "" if connect_to else self._proxy_for(url)
        head = _head(target, headers, body, proxy)
        failure: OSError | None = None
        senders = OPERATOR if connect_to else senders
        for address in await self._addresses(target, may_connect, proxy, senders):
            place = Place(target.scheme, target.host, target.port, address, proxy)
            try:
                reply = await self._ask(place, head, body)
            except aiohttp.ClientConnectorError as error:
                failure = error
                self._resolved.pop(place.host, None)
            else:
                return Posted(reply.status, address, reply.headers, reply.content)
        raise failure or OSError(f"{target.host} has no address")

    async def _ask(self, place: Place, head: str, body: bytes) -> Reply:
        """Ask, and ask once more if a kept connection was closed at its next use.

        The first request may have arrived; receivers recognise a message that comes twice.
        """
        session = self._session(place)
        try:
            return await self._ask_once(session, place, head, body)
        except aiohttp.ServerDisconnectedError:
            self._forget(place, session)
            if not session.has_answered:
                raise
        return await self._ask_once(self._session(place), place, head, body)

    async def _ask_once(self, session: Session, place: Place, head: str, body: bytes) -> Reply:
        session.used += 1
        try:
            reply = await session.ask(head, body)
            session.has_answered = True
            return reply
        finally:
            session.used -= 1
            if session.unwanted:
                self._forget(place, session)

    def _session(self, place: Place) -> Session:
        session = self._sessions.get(place)
        if session is None:
            if len(self._sessions) >= PLACES:
                for each in [p for p, known in self._sessions.items() if not known.used]:
                    self._forget(each)
            session = self._sessions[place] = Session(place, self._tls, self._addresses_of)
        return session

    async def _addresses(
        self, near: _Target, may_connect: MayConnect | None, proxy: str, senders: Senders
    ) -> Sequence[str]:
        """The addresses to connect to; raises OSError, PermissionError if every one is forbidden.

        A proxy resolves the name again, so its own rules decide which hosts it may reach.
        """
        if proxy and may_connect is None:
            return ("",)
        found = await self._resolve(near.host, senders)
        allowed = [each for each in found if may_connect is None or may_connect(each)]
        if found and not allowed:
            raise PermissionError(f"{near.host} is at {', '.join(found)}, which is not allowed")
        return ("",) if proxy else allowed

    async def _resolve(self, host: str, senders: Senders) -> Addresses:
        if is_address(host):
            return (host,)
        now = self._clock.monotonic()
        until, known = self._resolved.get(host, (0, ()))
        if now < until:
            return known
        addresses = await self._addresses_of(host, senders)
        if len(self._resolved) >= PLACES:
            self._resolved.clear()
        self._resolved[host] = now + RESOLVED_MILLISECONDS, addresses
        return addresses

    def close(self, url: str, connect_to: str) -> None:
        """Close the connections to that place that nobody uses at the moment."""
        try:
            near = _target(url, connect_to)
        except ValueError:  # a malformed URL has no connections
            return
        for place in list(self._sessions):
            if (place.scheme, place.host, place.port) == (near.scheme, near.host, near.port):
                self._forget(place)

    def _forget(self, place: Place, session: Session | None = None) -> None:
        """Close idle connections now, busy ones when their requests end."""
        known = self._sessions.get(place)
        if session is None or session is known:
            session = self._sessions.pop(place, None)
        if session is None:
            return
        session.unwanted = True
        if not session.used:
            task = asyncio.get_running_loop().create_task(session.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def stop(self) -> None:
        """Close every connection."""
        for place in list(self._sessions):
            await self._sessions.pop(place).close()
        if self._closing:
            await asyncio.wait(self._closing)


def _head(target: _Target, headers: Sequence[tuple[str, str]], body: bytes, proxy: str) -> str:
    """The head of a request, without its end; raises ValueError for a malformed header."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers])
    if lines.count("\r") + lines.count("\n") != 2 * len(headers):
        raise ValueError("a header of several lines")
    relayed = proxy and target.scheme == "http"
    start = target.start_for_proxy if relayed else target.start
    return f"{start}{lines}{hdrs.CONTENT_LENGTH}: {len(body)}\r\n"


async def _looked_up(host: str, senders: Senders) -> Addresses:
    return await look_up(host)
