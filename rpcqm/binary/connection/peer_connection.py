"""One connection to another queue manager: its session, and the users of it."""

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
    """A place to connect to: NextHop of [MS-MQQB] 3.1.1.3.1.3; null fits any queue manager."""

    address: str
    port: int = BINARY_PORT
    host_name: str = ""
    qm_guid: UUID = NULL_GUID


class PeerTransport(Protocol):
    """The transport of a connection's octets."""

    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...
    def pause(self, paused: bool) -> None:
        """Stop or resume reading."""


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
        """Take the session's new state."""

    def connection_closing(self, connection: "PeerConnection") -> None:
        """Take note that the session is over; the connection is still there."""

    def connection_closed(self, connection: "PeerConnection", reason: str) -> None:
        """Take note that the session is over; its messages in flight are not acknowledged."""

    def connection_window_moved(self, connection: "PeerConnection") -> None:
        """Send more: the window has moved."""


class MessageSender(Protocol):
    """An object whose messages are in flight."""

    def acknowledged(self, keys: list[int]) -> None:
        """Take note that the peer has these messages."""


class ConnectionOwner(Protocol):
    """The collaborators that the connections of a queue manager share."""

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
    """The host of a session; it is created before it is connected."""

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
        """Whether it is one more attempt, after a failed one."""
        self.users: list[ConnectionUser] = []
        self.pending = 0
        self.heard: Callable[[], None] | None = None
        """Called once when octets arrive next, as proof that the peer lives."""
        self.session = owner.new_session(self, remote, direct)

    def attach(self, wire: PeerTransport, address: str) -> None:
        """Begin the session over a connected transport, unless this is closed already."""
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
        """Stop reading until the messages that have arrived are on the disk."""
        if self._wire is not None:
            self._wire.pause(paused)

    # Called by the session

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
        """Report to each sender which of its messages the peer has.

        A token is None for a message that has no sender any more.
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
"""The connections of a queue manager, with the times of their beginnings in milliseconds since
1970."""


class Token(NamedTuple):
    """A message that a session has in flight, and its sender."""

    sender: MessageSender
    key: int


def tokens_of(sender: MessageSender, keys: Iterable[int]) -> list[Token]:
    """The tokens of several messages of one sender."""
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
