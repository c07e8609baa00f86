"""Messages over HTTP as a service starts them: ports, certificates, settings."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path

from rpcqm.base.admission import Admission
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics
from rpcqm.base.resolver import OPERATOR, Resolver, Senders
from rpcqm.config import Configuration
from rpcqm.config.srmp_files import SrmpContexts, read_srmp_files
from rpcqm.http.client import HttpClient, Posted
from rpcqm.http.connection import HttpConnection
from rpcqm.http.server import HttpServer
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.names import plain_address
from rpcqm.qm.sessions import OPEN, SessionView
from rpcqm.service.http_limits import http_limits
from rpcqm.srmp.bunch import OFFER, offered
from rpcqm.srmp.connection.network import Answer, MayConnect
from rpcqm.srmp.connection.protocol import SrmpProtocol
from rpcqm.srmp.redirection import matches_any
from rpcqm.srmp.settings import SrmpSettings
from rpcqm.srmp.urls import request_pattern
from rpcqm.store.restored import RESTORED_NAME

HTTP_PORT = 80
"""Where Windows sends."""

Posting = Callable[[str, tuple[tuple[str, str], ...], bytes, Completion[Answer]], None]
"""Told of a post: its URL, headers and body, and what comes of it."""

_log = get_logger("srmp")


class SrmpDoor:
    """Listens, sends, and stops; the engine has been started.

    `ports` are those that listen, by endpoint.
    """

    def __init__(
        self,
        engine: QueueManagerEngine,
        clock: Clock,
        configuration: Configuration,
        contexts: SrmpContexts,
        admission: Admission,
        metrics: Metrics,
        resolver: Resolver | None = None,
    ) -> None:
        self._engine = engine
        self.ports: dict[str, int] = {}
        wanted = {"http": configuration.http_port, "https": configuration.https_port}
        resolve = None if resolver is None else resolver.addresses
        proxy_for = _proxy_for(configuration)
        self._network = _Network(HttpClient(clock, contexts.client, proxy_for, resolve))
        self.protocol = SrmpProtocol(engine, self._network, settings_of(configuration, wanted))
        limits = http_limits(configuration.limits)
        self._server = HttpServer(self.protocol.receive, clock, admission, limits, metrics)
        self._context = contexts.server
        engine.session_sources.append(self._sessions)
        engine.connection_sources.append(self._server)

    def _sessions(self) -> Iterator[SessionView]:
        """What administrators see of the connections that others have opened."""
        for each in self._server.speaking:
            yield SessionView(
                "https" if each.listening.secure else "http",
                plain_address(each.peer.rpartition(":")[0]),
                "",
                False,
                OPEN,
                (),
                0,
                each.succeeded,
                each.unanswered,
                0,
                each.since,
            )

    def watch(self, make_connection: Callable[..., HttpConnection], posted: Posting) -> None:
        """Tell somebody of all connections, and of all posts as they begin."""
        self._server.make_connection = make_connection
        self._network.posted = posted

    async def listen_http(self, host: str, port: int) -> int:
        """Accept requests without TLS, and return the port. Raises OSError."""
        bound = self.ports["http"] = await self._server.listen(host, port)
        self._engine.names.http_ports["HTTP"] = bound
        if bound != HTTP_PORT:
            _log.info("other queue managers expect the port to be 80", port=bound)
        return bound

    async def listen_https(self, host: str, port: int) -> int:
        """Accept requests with TLS, and return the port. Raises OSError."""
        bound = self.ports["https"] = await self._server.listen(host, port, self._context)
        self._engine.names.http_ports["HTTPS"] = bound
        return bound

    def start(self, configuration: Configuration) -> None:
        """Send what waits; the ports are known now."""
        self.protocol.adjust(settings_of(configuration, self.ports))
        restored = configuration.data_dir / RESTORED_NAME
        if restored.exists():
            forgotten = self.protocol.begin_new_streams()
            forgotten.add_done_callback(partial(self._start_restored, restored))
        else:
            self.protocol.start()

    def _start_restored(self, restored: Path, outcome: Completion[None]) -> None:
        """What could not be forgotten is tried by the next start; nothing is sent until then."""
        if outcome.error is not None:
            _log.error("nothing is sent by HTTP", reason=str(outcome.error))
            return
        restored.unlink(missing_ok=True)
        if not self.protocol.stopping:
            self.protocol.start()

    def adjust(self, configuration: Configuration, contexts: SrmpContexts) -> None:
        """Go on with other settings and certificates; connections stay."""
        self.protocol.adjust(settings_of(configuration, self.ports))
        self._server.adjust(http_limits(configuration.limits), contexts.server)
        self._network.client.adjust(contexts.client, _proxy_for(configuration))

    async def stop(self) -> None:
        """Answer what is in flight, and close all connections."""
        await self._server.stop()
        self.protocol.stop()
        await self._network.stop()


class _Network:
    """An `SrmpNetwork` of real connections."""

    def __init__(self, client: HttpClient) -> None:
        self.client = client
        self.posted: Posting = lambda url, headers, body, answered: None
        self._tasks: set[asyncio.Task[Posted]] = set()

    def post(
        self,
        url: str,
        connect_to: str,
        headers: tuple[tuple[str, str], ...],
        body: bytes,
        *,
        timeout: int,
        may_connect: MayConnect | None = None,
        senders: Senders = OPERATOR,
    ) -> Completion[Answer]:
        """POST, as `SrmpNetwork` says."""
        answered = self._run(
            self.client.post(
                url,
                connect_to,
                headers,
                body,
                seconds=timeout / 1000,
                may_connect=may_connect,
                senders=senders,
            )
        )
        self.posted(url, headers, body, answered)
        return answered

    def close(self, url: str, connect_to: str) -> None:
        """Close what is not used."""
        self.client.close(url, connect_to)

    async def stop(self) -> None:
        """Give up what is under way; nobody waits for it any more."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.client.stop()

    def _run(self, posting: Coroutine[object, None, Posted]) -> Completion[Answer]:
        answered: Completion[Answer] = Completion()
        task = asyncio.get_running_loop().create_task(posting)
        self._tasks.add(task)
        task.add_done_callback(partial(self._tell, answered))
        return answered

    def _tell(self, answered: Completion[Answer], task: "asyncio.Task[Posted]") -> None:
        self._tasks.discard(task)
        if task.cancelled():
            answered.fail(ConnectionAbortedError("the queue manager stops"))
        elif (error := task.exception()) is not None:
            answered.fail(error)
        else:
            status, address, headers, content = task.result()
            answered.succeed(Answer(status, address, offered(headers.get(OFFER)), content))


def open_door(
    engine: QueueManagerEngine,
    clock: Clock,
    configuration: Configuration,
    admission: Admission,
    metrics: Metrics,
    resolver: Resolver | None = None,
) -> SrmpDoor:
    """The door of a configuration; raises ConfigurationError."""
    contexts = read_srmp_files(configuration.srmp)
    return SrmpDoor(engine, clock, configuration, contexts, admission, metrics, resolver)


def settings_of(configuration: Configuration, ports: dict[str, int]) -> SrmpSettings:
    """What the protocol needs of a configuration."""
    section = configuration.srmp
    return SrmpSettings(
        http_port=ports.get("http", -1),
        https_port=ports.get("https", -1),
        retry=section.retry_milliseconds,
        receipt_coalescing=section.receipt_coalescing_milliseconds,
        stream_receipt_wait=section.stream_receipt_wait_milliseconds,
        transparent_store_and_forward=section.transparent_store_and_forward,
        default_stream_receipt_url=section.default_stream_receipt_url,
        inbound=section.inbound,
        outbound=section.outbound,
        outbound_exceptions=section.outbound_exceptions,
        stream_receipt=section.stream_receipt,
        receipts_to=frozenset(host.strip("[]").lower() for host in section.receipts_to),
        proxy=section.proxy,
    )


def _proxy_for(configuration: Configuration) -> Callable[[str], str]:
    section = configuration.srmp
    direct = tuple(map(request_pattern, section.outbound_exceptions))

    def proxy_for(url: str) -> str:
        return "" if matches_any(direct, url) else section.proxy

    return proxy_for
