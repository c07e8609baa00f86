"""Queue managers that post to each other in a simulation, and hosts that answer as a test says."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlsplit

from rpcqm.adm.directory import DirectoryContents
from rpcqm.base.completion import Completion
from rpcqm.base.resolver import OPERATOR, Senders
from rpcqm.binary.connection.places import Peers
from rpcqm.http.exchange import HttpRequest, HttpResponse
from rpcqm.srmp.bunch import OFFER, is_bunch, offered
from rpcqm.srmp.connection.bunches import answer_to
from rpcqm.srmp.connection.network import Answer, MayConnect
from rpcqm.srmp.connection.protocol import SrmpProtocol
from rpcqm.srmp.elements import Envelope, SrmpRequest
from rpcqm.srmp.reading import read_request
from rpcqm.srmp.settings import SrmpSettings
from tests.support.binary.binary_network import Node, Simulation
from tests.support.queue_manager import MEMORY

PORT = 80
SETTINGS = SrmpSettings(http_port=PORT, receipts_to=frozenset({"alice", "bob"}))

Headers = tuple[tuple[str, str], ...]


class Answering(NamedTuple):
    """What a host answers to a request with several messages."""

    status: int
    content: bytes


@dataclass
class Host:
    """A host that is no queue manager: it gives `answers`, one after the other, then `usual`.

    None is no answer at all.
    """

    address: str
    usual: int | OSError | None = 200
    answers: list[int | OSError | None] = field(default_factory=list)
    requests: list[SrmpRequest] = field(default_factory=list)
    heads: list[tuple[str, Headers]] = field(default_factory=list)
    closed: int = 0
    """How often its idle connections were closed."""
    offers: int = 1
    to_bunches: Answering | None = None
    """What is answered to requests with several messages."""
    bunches: int = 0

    @property
    def envelopes(self) -> list[Envelope]:
        return [request.envelope for request in self.requests]

    @property
    def bodies(self) -> list[bytes | None]:
        return [request.body for request in self.requests]

    def answer(self, request: HttpRequest) -> Answer | OSError | None:
        if is_bunch(request):
            self.bunches += 1
            assert self.to_bunches is not None
            return Answer(self.to_bunches.status, self.address, 1, self.to_bunches.content)
        answer = self._answer_to_one(request)
        if not isinstance(answer, int):
            return answer
        asked = request.header(OFFER) is not None
        return Answer(answer, self.address, self.offers if asked else 1)

    def _answer_to_one(self, request: HttpRequest) -> int | OSError | None:
        self.requests.append(read_request(request))
        self.heads.append((request.target, request.headers))
        return self.answers.pop(0) if self.answers else self.usual


class HttpSimulation(Simulation):
    """A network that carries requests as well."""

    def __init__(self, directory: Path, seed: int = 0) -> None:
        super().__init__(directory, seed)
        self.hosts: dict[str, Host] = {}
        """By what stands between the slashes of a URL."""

    def node(
        self, name: str, peers: Peers | None = None, directory: DirectoryContents | None = None
    ) -> "HttpNode":
        node = HttpNode(self, name, peers or {}, directory)
        self.nodes[name] = node
        return node

    def host(self, place: str) -> Host:
        """A host that listens at a place."""
        return self.hosts.setdefault(place, Host(f"198.51.100.{len(self.hosts) + 1}"))

    def place_of(self, url: str, connect_to: str) -> str:
        return urlsplit(connect_to or url).netloc


class HttpNode(Node):
    """A queue manager that speaks both protocols."""

    http_settings = SETTINGS
    requests = 0
    """How many have come by HTTP."""

    def start(self) -> None:
        self._settings = replace(self._settings, srmp_http_support=True)
        super().start()

    def _make_exchange(self) -> None:
        super()._make_exchange()
        self.srmp = SrmpProtocol(self.engine, _Client(self), self.http_settings)
        if self.installed is not None:
            self.installed.install_srmp(self.srmp)

    def _listen(self) -> None:
        self.srmp.start()
        super()._listen()

    def adjust(self, settings: SrmpSettings) -> None:
        """Go on with other settings, after a restart as well."""
        self.http_settings = settings
        self.srmp.adjust(settings)


class _Client:
    """An SrmpNetwork for one life of a queue manager."""

    def __init__(self, node: HttpNode) -> None:
        self._node = node
        self._life = node.lives
        self._simulation = node.simulation
        assert isinstance(self._simulation, HttpSimulation)
        self._network: HttpSimulation = self._simulation

    def post(
        self,
        url: str,
        connect_to: str,
        headers: Headers,
        body: bytes,
        *,
        timeout: int,
        may_connect: MayConnect | None = None,
        senders: Senders = OPERATOR,
    ) -> Completion[Answer]:
        outcome: Completion[Answer] = Completion()
        place = self._network.place_of(url, connect_to)
        target = urlsplit(url)
        path = target.path + (f"?{target.query}" if target.query else "")
        request = HttpRequest("POST", path, headers, body, self._node.address, port=PORT)
        self._later(timeout, outcome, TimeoutError())
        self._network.later(
            self._network.delay(), partial(self._arrive, place, request, may_connect, outcome)
        )
        return outcome

    def close(self, url: str, connect_to: str) -> None:
        host = self._network.hosts.get(self._network.place_of(url, connect_to))
        if host is not None:
            host.closed += 1

    def _arrive(
        self,
        place: str,
        request: HttpRequest,
        may_connect: MayConnect | None,
        outcome: Completion[Answer],
    ) -> None:
        node = self._network.nodes.get(place.partition(":")[0].lower())
        host = self._network.hosts.get(place)
        address = host.address if host else node.address if node else ""
        if not address or (node is not None and not node.alive and host is None):
            self._later(0, outcome, ConnectionRefusedError(111, "refused"))
        elif may_connect is not None and not may_connect(address):
            self._later(0, outcome, PermissionError(13, "not there"))
        elif host is not None:
            self._answer(outcome, host.answer(request))
        elif self._network.random.random() < self._network.faults.cut:
            self._later(0, outcome, ConnectionResetError(104, "cut before"))
        elif isinstance(node, HttpNode):
            node.requests += 1
            received = answer_to(request, node.srmp.receiver.receive)
            received.add_done_callback(partial(self._received, address, outcome))

    def _received(
        self, address: str, outcome: Completion[Answer], told: Completion[HttpResponse]
    ) -> None:
        if self._network.random.random() < self._network.faults.cut:
            self._later(0, outcome, ConnectionResetError(104, "cut after"))
        else:
            response = HttpResponse(500) if told.error else told.result()
            offer = offered(dict(response.headers).get(OFFER))
            answer = Answer(response.status, address, offer, response.body)
            self._answer(outcome, answer)

    def _answer(self, outcome: Completion[Answer], answer: Answer | OSError | None) -> None:
        if isinstance(answer, OSError):
            self._later(0, outcome, answer)
        elif answer is not None:
            self._later(self._network.delay(), outcome, answer)

    def _later(
        self, milliseconds: int, outcome: Completion[Answer], result: Answer | OSError
    ) -> None:
        def arrive() -> None:
            if outcome.done or not (self._node.alive and self._node.runs(self._life)):
                return
            if isinstance(result, Answer):
                outcome.succeed(result)
            else:
                outcome.fail(result)

        self._network.later(milliseconds, arrive)


@contextmanager
def http_simulation(seed: int = 0) -> Iterator[HttpSimulation]:
    """A perfect network without anybody in it."""
    with TemporaryDirectory(dir=MEMORY) as name:
        simulation = HttpSimulation(Path(name), seed)
        yield simulation
        simulation.stop()
