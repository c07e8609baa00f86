"""The URLs by which others reach local queues over HTTP ([MC-MQSRM] 3.1.7.2.4)."""

from dataclasses import dataclass

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.qm.registry import QueueRegistry
from rpcqm.srmp.elements import MSMQ_PREFIX
from rpcqm.srmp.settings import SrmpSettings
from rpcqm.srmp.urls import queue_url, to_uri

_ORDER_QUEUE = "private$\\order_queue$"


@dataclass(eq=False, repr=False)
class OwnUrls:
    """URLs of local queues; they have the port of our listener, unless it is the usual one."""

    _queue_manager: QueueManager
    _registry: QueueRegistry

    def of(self, settings: SrmpSettings, name: FormatName) -> str:
        """A name for others: a local queue gets a URL, whatever form its name has (G220)."""
        queue = self._registry.find_by_format_name(name)
        uri = to_uri(name)
        if queue is None or isinstance(queue, OutgoingQueue) or not uri.startswith(MSMQ_PREFIX):
            return uri
        path = PathName.parse(queue.pathname)
        return self._url(settings, f"{path.kind.value}{path.queue}")

    def order_queue(self, settings: SrmpSettings, uri: str) -> str:
        """The URL for receipts of a stream, with the stream's own scheme if that is open here."""
        return self._url(settings, _ORDER_QUEUE, secure=uri.startswith("https:"))

    def _url(self, settings: SrmpSettings, queue: str, *, secure: bool = False) -> str:
        host = self._queue_manager.computer_name
        if settings.https_port >= 0 and (secure or settings.http_port < 0):
            return queue_url("https", host, settings.https_port, queue)
        return queue_url("http", host, settings.http_port, queue)
