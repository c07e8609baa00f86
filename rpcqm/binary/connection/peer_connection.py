"""One connection to another queue manager: its session, and who uses it."""

import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import NamedTuple, Protocol, cast
from uuid import UUID

from rpcqm.base.completion import Completion
from rpcqm.base.gathering import Gathering
from rpcqm.base.open_connections import next_number
from rpcqm.base.resolver import OPERATOR, Senders
from rpcqm.binary.session import Session
from rpcqm.binary.session_host import SessionState
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.message import PacketMessage

BINARY_PORT = 1801


@dataclass(frozen=True, slots=True)
class NextHop:
    """Where to connect: NextHop of [MS-MQQB] 3.1.1.3.1.3; null when any queue manager will do."""

    address: str
    port: int = BINARY_PORT
    host_name: str = ""
    qm_guid: UUID = NULL_GUID


class PeerTransport(Protocol):
    """What carries the octets of a connection."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def pause(self, paused: bool) -> None:
        """Read nothing for the time being."""


class PeerNetwork(Protocol):
    """Resolves names and connects; both report through completions."""

    def resolve(self, host: str, senders: Senders = OPERATOR) -> Completion[tuple[str, ...]]:
        """The addresses of a host that senders have named, in their order.

        Fails with OSError if it has none.
        """

    def connect(self, hop: NextHop, connection: "PeerConnection") -> Completion[None]:
        """Connect; the connection is attached when the completion succeeds. OSError if not."""


class ConnectionUser(Protocol):
    """An object that waits for a connection, or uses it."""

    def connection_changed(self, connection: "PeerConnection", state: SessionState) -> None:
        """The session has another state."""

    def connection_closing(self, connection: "PeerConnection") -> None:
        """The session is over, its connection not yet."""

    def connection_closed(self, connection: "PeerConnection", reason: str) -> None:
        """The session is over; what it had in flight is not acknowledged."""

    def connection_window_moved(self, connection: "PeerConnection") -> None:
        """There is room for more."""


class MessageSender(Protocol):
    """An object whose messages are in flight."""

    def acknowledged(self, keys: list[int]) -> None:
        """The peer has these messages."""


class ConnectionOwner(Protocol):
    """What the connections of a queue manager have in common."""

    def new_session(self, connection: "PeerConnection", remote: UUID, direct: bool) -> Session: ...
    def message_received(
        self,
        connection: "PeerConnection",
        kind: PacketKind,
        message: PacketMessage,
        recoverable: int | None,
    ) -> None: ...
    def connection_opened(self, connection: "PeerConnection") -> None: ...
    def connection_ended(self, connection: "PeerConnection", reason: str) -> None: ...
    @property
    def gathering(self) -> Gathering: ...


class PeerConnection:
    """The host of a session; made before it is connected."""

    def __init__(
        self,
        owner: ConnectionOwner,
        *,
        initiator: bool,
        remote: UUID = NULL_GUID,
        direct: bool = True,
    ) -> None:
        self._owner = owner
        self._wire: PeerTransport | None = None
        self.initiator = initiator
        self.address = ""
        self.number = next_number()
        self.pinged = False
        self.opened = False
        """Whether its session has ever been open."""
        self.repeats = False
        """Whether it is one more attempt, after one that failed."""
        self.users: list[ConnectionUser] = []
        self.pending = 0
        self.heard: Callable[[], None] | None = None
        """Called when octets arrive next, if somebody wants to know that the peer lives."""
        self.session = owner.new_session(self, remote, direct)

    def attach(self, wire: PeerTransport, address: str) -> None:
        """The connection stands: begin the session, unless it is closed already."""
        if self.closed_already:
            wire.close()
            return
        self._wire = wire
        self.address = address
        if self.initiator:
            self.session.start_initiator(self.pinged)
        else:
            self.session.start_acceptor()

    @property
    def closed_already(self) -> bool:
        return bool(self.session.close_reason)

    def pause(self, paused: bool) -> None:
        """Read nothing more until what has arrived is on the disk."""
        if self._wire is not None:
            self._wire.pause(paused)

    # What the session wants

    def transmit(self, data: bytes) -> None:
        if self._wire is not None:
            self._wire.write(data)

    def state_changed(self, state: SessionState) -> None:
        self.opened |= state is SessionState.OPEN
        for user in list(self.users):
            user.connection_changed(self, state)
        if state is SessionState.OPEN:
            self._owner.connection_opened(self)

    def message_received(
        self, kind: PacketKind, message: PacketMessage, recoverable: int | None
    ) -> None:
        self._owner.message_received(self, kind, message, recoverable)

    def messages_acknowledged(self, tokens: list[object]) -> None:
        """Tell each sender which of its messages the peer has.

        A token is None if nobody waits for its message.
        """
        waiting = cast(list[Token], list(filter(None, tokens)))
        if not waiting:
            return
        senders, keys = zip(*waiting, strict=True)
        if senders.count(senders[0]) == len(senders):
            senders[0].acknowledged(list(keys))
            return
        by_sender: dict[int, tuple[MessageSender, list[int]]] = {}
        for sender, key in waiting:
            by_sender.setdefault(id(sender), (sender, []))[1].append(key)
        for sender, its_keys in by_sender.values():
            sender.acknowledged(its_keys)

    def window_moved(self) -> None:
        with self._owner.gathering:
            for user in list(self.users):
                user.connection_window_moved(self)

    def closed(self, reason: str) -> None:
        wire, self._wire = self._wire, None
        users, self.users = self.users, []
        for user in users:
            user.connection_closing(self)
        if wire is not None:
            wire.close()
        self._owner.connection_ended(self, reason)
        for user in users:
            user.connection_closed(self, reason)


Connections = dict[PeerConnection, int]
"""The connections of a queue manager, and since when they are there: milliseconds since 1970."""


class Token(NamedTuple):
    """A message that a session has in flight, and the sender that it is of."""

    sender: MessageSender
    key: int


def tokens_of(sender: MessageSender, keys: Iterable[int]) -> list[Token]:
    """The tokens of many messages."""
    return list(map(_new_token, zip(repeat(sender), keys)))


_new_token: Callable[[tuple[MessageSender, int]], Token] = partial(tuple.__new__, Token)


def plain(address: str) -> str:
    """An address without its scope; an IPv4 address that is mapped into IPv6 becomes IPv4."""
    text = address.partition("%")[0]
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)
