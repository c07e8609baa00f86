"""The doors of a standby: its health on the console's port, and orders at the local socket."""

import os
from http import HTTPStatus
from uuid import UUID

from rpcqm.api.routes import METHODS
from rpcqm.base.clock import Clock
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics
from rpcqm.base.text import visible
from rpcqm.client.ready import ENDPOINT_FILE, ReadyFile
from rpcqm.codec.interface import load
from rpcqm.config import Configuration
from rpcqm.config.console_files import read_console_files
from rpcqm.http.exchange import HttpRequest, HttpResponse
from rpcqm.http.origins import is_loopback
from rpcqm.interfaces import cluster
from rpcqm.interfaces.cluster import ClusterInterface
from rpcqm.operations.cluster import Cluster, ClusterOperations
from rpcqm.operations.cluster_metrics import cluster_series
from rpcqm.operations.exposition import Writer
from rpcqm.rpc.server import RpcServer
from rpcqm.service.connection_limits import admission_of, rpc_limits
from rpcqm.service.console import CONSOLE_PORT
from rpcqm.service.http_limits import http_limits
from rpcqm.service.listeners import open_listener
from rpcqm.service.local_socket import LocalSocket
from rpcqm.service.start_error import StartError

_TEXT = "text/plain; charset=utf-8"
_log = get_logger("service")


class StandbyDoors:
    """Open until this node is primary; `close` may be called again."""

    def __init__(self, configuration: Configuration, node: Cluster, clock: Clock) -> None:
        from rpcqm.http.server import HttpServer  # takes time to load

        self._configuration = configuration
        self._node = node
        self._metrics = Metrics()
        admission = admission_of(configuration.limits)
        self._rpc = RpcServer(
            limits=rpc_limits(configuration.limits),
            clock=clock,
            metrics=self._metrics,
            admission=admission,
        )
        self._local = LocalSocket(configuration.data_dir)
        self._http = HttpServer(
            self._answer,
            clock,
            admission,
            http_limits(configuration.limits),
            self._metrics,
            methods=METHODS,  # a sender gets the standby's refusal, not one of its method
            name="console",
        )
        self._open = False

    async def open(self) -> None:
        """Listen; StartError if that fails."""
        self._open = True
        if self._configuration.ready_file is not None:  # left by a primary that began anew
            self._configuration.ready_file.unlink(missing_ok=True)
        interface = self._rpc.register(
            load("rpcqm_cluster"), ClusterInterface(ClusterOperations(self._node)), cluster.POLICY
        )
        try:
            await self._rpc.listen_unix(self._local.path, [interface])
        except OSError as error:
            raise StartError(f"Cannot listen on {self._local.path}: {error.strerror}.") from error
        section = self._configuration.console
        context = read_console_files(section)

        async def listen(host: str, port: int) -> int:
            return await self._http.listen(host, port, context)

        port = await open_listener(
            listen,
            "--console-port",
            section.host,
            self._configuration.console_port,
            CONSOLE_PORT,
            "`console.host`",
        )
        endpoints = {} if port is None else {"console": (section.host, port)}
        ready = ReadyFile(
            os.getpid(), self._configuration.name, UUID(int=0), self._local.path, endpoints
        )
        ready.write(self._configuration.data_dir / ENDPOINT_FILE)
        _log.info("standby", node=self._node.status().node, console=port)

    async def close(self) -> None:
        """Answer the requests in flight, and listen no more."""
        if self._open:
            self._open = False
            (self._configuration.data_dir / ENDPOINT_FILE).unlink(missing_ok=True)
            await self._http.stop()
            await self._rpc.stop()
            self._local.remove()

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        path = request.target.partition("?")[0] if request.method == "GET" else ""
        if path == "/healthz":
            return _text(HTTPStatus.OK, "ok")
        if path == "/metrics" and self._configuration.metrics.enabled:
            return self._told(request)
        why = self._node.status().why or "it is a standby"
        return _text(HTTPStatus.SERVICE_UNAVAILABLE, visible(why), (("Retry-After", "1"),))

    def _told(self, request: HttpRequest) -> HttpResponse:
        """Metrics of the node, for this machine only: nobody can log on at a standby."""
        if not is_loopback(request.peer):
            return _text(HTTPStatus.FORBIDDEN, "a standby tells its metrics to this machine only")
        return HttpResponse(200, node_metrics(self._node).encode(), (("Content-Type", _TEXT),))


def _text(status: int, text: str, headers: tuple[tuple[str, str], ...] = ()) -> HttpResponse:
    return HttpResponse(status, f"{text}\n".encode(), (("Content-Type", _TEXT), *headers))


def node_metrics(node: Cluster) -> str:
    """The metrics of a standby for Prometheus."""
    return "".join(cluster_series(Writer(), node.status()))
