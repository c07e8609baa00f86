"""The binary protocol as the service starts it."""

from typing import NamedTuple, Protocol
from uuid import UUID

from rpcqm.adm.enums import OperatingSystemType
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.addresses import reachable
from rpcqm.base.admission import Admission
from rpcqm.base.clock import Clock
from rpcqm.base.log import get_logger
from rpcqm.base.resolver import Resolver
from rpcqm.binary.connection.peer_connection import BINARY_PORT, NextHop
from rpcqm.binary.connection.places import Peers
from rpcqm.binary.connection.protocol import BinaryProtocol, session_settings
from rpcqm.binary.connection.tcp import MakeWire, TcpNetwork
from rpcqm.binary.connection.udp import PingListener
from rpcqm.binary.own_keys import OwnKeys, published
from rpcqm.binary.ping import PING_PORT, PingRate, PingRequests, answer_ping
from rpcqm.codec.layout import NULL_GUID
from rpcqm.qm.engine import QueueManagerEngine

_log = get_logger("binary")

_SERVERS = frozenset({OperatingSystemType.WIN_SERVER, OperatingSystemType.WIN_ENT})


class ListenerSettings(Protocol):
    """The settings that the binary protocol needs."""

    @property
    def peers(self) -> str: ...
    @property
    def signing_key(self) -> str: ...
    @property
    def signing_certificate(self) -> str: ...
    @property
    def encryption_key(self) -> str: ...
    @property
    def unsigned_senders(self) -> str: ...
    @property
    def ping(self) -> bool: ...
    @property
    def retry_milliseconds(self) -> int: ...
    @property
    def back_off_milliseconds(self) -> int: ...


class ListenerFiles(NamedTuple):
    """The files that the settings name: peers and our own keys."""

    peers: Peers
    keys: OwnKeys


def read_files(settings: ListenerSettings) -> ListenerFiles:
    """Read the files of settings. Raises ValueError or OSError."""
    keys = OwnKeys.load(settings.signing_key, settings.signing_certificate, settings.encryption_key)
    return ListenerFiles(parse_peers(settings.peers), keys)


def _tell_of(keys: OwnKeys, own: QueueManager) -> None:
    """Put our own public keys into the lists of LocalQueueManager ([MS-MQDMPR] 3.1.1.1)."""
    if keys.encryption_key is not None:
        own.public_encryption_key_list = published(keys.encryption_key)
    if keys.signing_key is not None:
        own.public_signing_key_list = published(keys.signing_key)


class BinaryListener:
    """Listens, sends, and stops; the engine has been started.

    Raises ValueError or OSError if peers or keys cannot be read.
    """

    def __init__(
        self,
        engine: QueueManagerEngine,
        clock: Clock,
        settings: ListenerSettings,
        admission: Admission | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        self._engine = engine
        self._network = TcpNetwork(clock, settings.back_off_milliseconds, admission, resolver)
        peers, keys = read_files(settings)
        times = session_settings(engine.queue_manager, settings.retry_milliseconds)
        self.protocol = BinaryProtocol(engine, self._network, times, peers, keys)
        self.protocol.security.unsigned_senders = settings.unsigned_senders
        _tell_of(keys, engine.queue_manager)
        self.pings = self._ping_listener() if settings.ping else None

    def watch(self, make_wire: MakeWire) -> None:
        """Make connections by `make_wire` from now on, so that they can be recorded."""
        self._network.make_wire = make_wire

    def adjust(self, settings: ListenerSettings, files: ListenerFiles) -> None:
        """Use other peers, keys and times from now on; sessions stay."""
        protocol = self.protocol
        protocol.settings = session_settings(
            self._engine.queue_manager, settings.retry_milliseconds
        )
        protocol.places.peers = files.peers
        protocol.security.use_keys(files.keys)
        _tell_of(files.keys, self._engine.queue_manager)
        protocol.security.unsigned_senders = settings.unsigned_senders
        self._network.back_off = settings.back_off_milliseconds
        protocol.directory_changed()

    def _ping_listener(self) -> PingListener:
        queue_manager = self._engine.queue_manager
        requests = PingRequests(
            queue_manager.identifier,
            self._engine.timers,
            self.protocol.settings,
            is_server=lambda: queue_manager.operating_system_type in _SERVERS,
        )
        return PingListener(requests, self._answer, PingRate(self._engine.clock))

    def _answer(self, question: bytes, host: str) -> bytes | None:
        queue_manager = self._engine.queue_manager
        serves = queue_manager.connection_active and not queue_manager.hardened_security
        refused = not serves or self._network.refuses(host)
        return answer_ping(question, queue_manager.identifier, refused=refused)

    async def listen(self, host: str, port: int) -> int:
        """Accept sessions, and return the port. Raises OSError if the port cannot be opened."""
        bound = await self._network.listen(self.protocol, host, port)
        self.protocol.places.own_place = NextHop(reachable(host), bound, host)
        if bound != BINARY_PORT:
            _log.info("other queue managers expect the port to be 1801", port=bound)
        if self.pings is not None:
            await self._listen_for_pings(self.pings, host)
            self.protocol.connecting.ping = self.pings.ping
        return bound

    async def _listen_for_pings(self, pings: PingListener, host: str) -> None:
        """Answer pings, if the port is free: messages can be sent without."""
        try:
            await pings.listen(host)
        except OSError as error:
            _log.warning("pings are not answered", host=host, port=PING_PORT, reason=error.strerror)

    def start(self) -> None:
        """Send the waiting messages."""
        self.protocol.start()

    async def stop(self) -> None:
        """Close all sessions."""
        self.protocol.stop()
        if self.pings is not None:
            self.pings.close()
        await self._network.stop()


def parse_peers(text: str) -> Peers:
    """Peers from NAME=HOST[:PORT], separated by commas; ValueError for anything else."""
    peers: Peers = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, place = entry.partition("=")
        if not name or not place:
            raise ValueError(f"{entry!r} is not NAME=HOST[:PORT]")
        host, port = _place(place)
        guid = _guid(name)
        key = name.lower() if guid is None else str(guid)
        hop = NextHop(host, port, name if guid is None else "", guid or NULL_GUID)
        peers.setdefault(key, []).append(hop)
    return peers


def _place(text: str) -> tuple[str, int]:
    """HOST, HOST:PORT, [IPV6] or [IPV6]:PORT."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    if port and not port.isdecimal():
        raise ValueError(f"{port!r} is not a port")
    return host, int(port) if port else BINARY_PORT


def _guid(text: str) -> UUID | None:
    try:
        return UUID(text.strip("{}"))
    except ValueError:
        return None
