"""A queue manager that takes messages by HTTP, and peers that a test plays."""

import calendar
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.completion import Completion
from rpcqm.base.resolver import OPERATOR, Senders
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.http.exchange import HttpRequest
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.srmp.connection.network import Answer, MayConnect
from rpcqm.srmp.connection.protocol import SrmpProtocol
from rpcqm.srmp.elements import Envelope
from rpcqm.srmp.reading import read_request
from rpcqm.srmp.settings import SrmpSettings
from tests.support.queue_manager import SETTINGS, RunningQueueManager
from tests.support.srmp.srmp_text import Elements, Post, message, receipt

PORT = 8080
HOST = "workstation"
HERE = f"http://{HOST}:{PORT}/msmq/private$"
ORDERS = f"{HERE}/orders"
STREAM = f"{HERE}/stream"
PEER = "203.0.113.5"
RECEIPTS = f"http://{PEER}/msmq/private$/receipts"
ORDER_QUEUE = f"http://{PEER}/msmq/private$/order_queue$"
SENDER = "6a74a825-57b2-43e5-9d34-f1d8b2b8950a"
NOW = calendar.timegm(time.strptime("20260601T120000", "%Y%m%dT%H%M%S"))
"""What the clock says at the beginning."""

SRMP = SrmpSettings(http_port=PORT)
WITH_HTTP = replace(SETTINGS, srmp_http_support=True)


class Posted(NamedTuple):
    """A request that the queue manager has sent."""

    url: str
    request: HttpRequest

    @property
    def envelope(self) -> Envelope:
        return read_request(self.request).envelope


class Peers:
    """The network: whoever is posted to answers with `status`, from `addresses` of its host."""

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        self.refused: list[str] = []
        self.status = 200
        self.addresses: dict[str, str] = {}

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
        host = urlsplit(url).hostname or ""
        address = self.addresses.get(host, host)
        answer: Completion[Answer] = Completion()
        if may_connect is not None and not may_connect(address):
            self.refused.append(url)
            answer.fail(PermissionError(address))
            return answer
        target = "/" + url.split("/", 3)[3]
        self.posted.append(Posted(url, HttpRequest("POST", target, headers, body)))
        answer.succeed(Answer(self.status, address))
        return answer

    def close(self, url: str, connect_to: str) -> None:
        pass


class Door(RunningQueueManager):
    """A queue manager with an ordinary queue `orders` and a transactional `stream`."""

    def __init__(
        self,
        directory: Path,
        srmp: SrmpSettings = SRMP,
        settings: QueueManagerSettings = WITH_HTTP,
    ) -> None:
        self.srmp = srmp
        self.peers = Peers()
        super().__init__(directory, settings)
        self.clock._now = NOW * 1000
        for name in ("orders", "stream"):
            self.create(rf"private$\{name}", transactional=name == "stream")

    def _start(self) -> None:
        super()._start()
        self.protocol = SrmpProtocol(self.engine, self.peers, self.srmp)
        if self.installed is not None:
            self.installed.install_srmp(self.protocol)
        self.protocol.start()
        self.settle()

    def queue(self, name: str = "orders") -> Queue:
        return self.find(rf"private$\{name}")

    # What peers do

    def begin(self, post: Post, peer: str = PEER) -> Completion[int]:
        """Take a request, without ending the turn."""
        headers = tuple(post.headers.items())
        request = HttpRequest("POST", post.target, headers, post.body, peer, port=PORT)
        return self.protocol.receiver.receive(request)

    def post(self, post: Post, peer: str = PEER) -> int:
        """Take a request; the status that it is answered with."""
        return self.done(self.begin(post, peer))

    def send(self, to: str = ORDERS, body: bytes = b"content", **more: Any) -> int:  # type: ignore[override]
        """A message; `more` are those of `Elements`."""
        return self.post(message(to, body, Elements(**more)))

    def send_receipt(self, to: str, peer: str = PEER, **more: Any) -> int:
        return self.post(receipt(to, Elements(**more)), peer)

    # What has become of it

    def messages(self, name: str = "orders") -> list[PacketMessage]:
        queue = self.queue(name)
        keys = queue.message_position_list.page(None, 1_000)
        return [self.engine.positions.message_at(queue, key).attributes for key in keys]

    def contents(self, name: str = "orders") -> list[bytes]:
        return self.bodies(self.queue(name))

    @property
    def outgoing(self) -> list[OutgoingQueue]:
        return self.engine.outgoing.list()

    @property
    def receipts(self) -> list[Envelope]:
        """The receipts that have left, in order."""
        return [posted.envelope for posted in self.peers.posted]


def msmq(
    *more: str, number: int = 0, source: str = SENDER, priority: int = 3, expires: str = ""
) -> str:
    """The content of <Msmq>."""
    ttrq = f"<TTrq>{expires}</TTrq>" if expires else ""
    return (
        f"<Class>{number}</Class><Priority>{priority}</Priority>{''.join(more)}"
        f"<BodyType>0</BodyType><SourceQmGuid>{source}</SourceQmGuid>{ttrq}"
    )
