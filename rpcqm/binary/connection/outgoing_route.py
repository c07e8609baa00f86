"""The way of one outgoing queue to its next hop ([MS-MQQB] 3.1.5.2, 3.1.5.9, 3.1.6.1).

It is always in one of the states of `RouteState`: it looks for a connection, waits until it may
try one, or has one, of its own or of its peer.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Timers
from rpcqm.base.completion import Completion
from rpcqm.base.retry import RetryTimer
from rpcqm.binary.connection.attempts import ConnectionAttempts
from rpcqm.binary.connection.connection_history import PROGRESS, ConnectionHistory
from rpcqm.binary.connection.peer_connection import (
    ConnectionOwner,
    NextHop,
    PeerConnection,
    PeerNetwork,
)
from rpcqm.binary.connection.places import Places, is_direct_name
from rpcqm.binary.connection.session_reuse import SessionReuse
from rpcqm.binary.session_host import SessionState
from rpcqm.binary.settings import BinarySettings
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import ConnectionStatus
from rpcqm.qm.connection_failures import connect_failure
from rpcqm.qm.names import next_hop_text
from rpcqm.qm.outgoing import Outgoing

_STOPPED = frozenset({OutgoingQueueState.ON_HOLD, OutgoingQueueState.LOCKED})


class RouteState(enum.Enum):
    """How far an outgoing queue has come on its way to a session."""

    IDLE = "there is no connection, and nothing to connect for"
    LOOKING = "a connection, or addresses to connect to, are being looked for"
    IN_LINE = "others connect to its addresses, or these are not to be tried yet (G99)"
    RETRYING = "the Session Retry Connect Timer runs"
    CONNECTING = "a session of its own is being established"
    OPEN = "its own session is open"
    BORROWED = "it uses the session that its peer has opened"


@dataclass(eq=False, repr=False)
class Connecting:
    """The collaborators that the routes of all outgoing queues share."""

    owner: ConnectionOwner
    network: PeerNetwork
    places: Places
    attempts: ConnectionAttempts
    borrowing: SessionReuse
    queue_manager: QueueManager
    outgoing: Outgoing
    timers: Timers
    settings: Callable[[], BinarySettings]
    ping: Callable[[str], Completion[bool]] | None = None
    """Asks whether a queue manager answers at an address; None to connect at once."""
    stopping: bool = False


class RouteSender(Protocol):
    """The sender of a queue's messages, as far as its route uses it."""

    in_flight: dict[int, None]

    @property
    def has_messages(self) -> bool:
        """Whether any message waits or is in flight."""

    def wake(self) -> None:
        """Look for messages to send."""

    def pump(self) -> None:
        """Send as many messages as possible over the open connection."""

    def session_opened(self) -> None:
        """Note that a session is open, over which nothing has been sent yet."""

    def session_closed(self) -> None:
        """Note that the session is gone: messages in flight count as not arrived."""


class OutgoingRoute:
    """Finds, opens and gives up the connection of one outgoing queue."""

    def __init__(
        self, connecting: Connecting, queue: OutgoingQueue, name: FormatName, sender: RouteSender
    ) -> None:
        self._connecting, self._sender = connecting, sender
        self._attempts, self._queue_manager = connecting.attempts, connecting.queue_manager
        self.queue, self._name = queue, name
        self.state = RouteState.IDLE
        self.connection: PeerConnection | None = None
        """The connection; set in the last three states only."""
        self.hops: list[NextHop] = []
        self._next_hop = 0
        self._unresolved = 0
        """The number of attempts in a row that found no address."""
        self._repeats = False
        """Whether the last session could not be opened, or has broken."""
        self._retry = RetryTimer(
            connecting.timers, lambda: connecting.settings().session_retry_connect, self._expired
        )
        self._history = ConnectionHistory(connecting.outgoing, queue)

    @property
    def stopped(self) -> bool:
        """Whether nothing may be sent: on hold, locked, or the queue manager is offline."""
        return self.queue.state in _STOPPED or not self._queue_manager.connection_active

    # Looking for a connection

    def look_for_connection(self) -> None:
        """Open a session if there are messages, unless the route already waits."""
        if self.state is RouteState.IDLE and self._sender.has_messages:
            self._establish()

    def connection_available(self) -> None:
        """Use the connection that the queue's queue manager has made."""
        self._give_up_waiting()
        self._sender.wake()

    def try_now(self) -> None:
        """Connect now, whatever the delay."""
        self._give_up_waiting()
        self._unresolved = 0
        if not self.stopped and self.connection is None:
            self._attempts.hurry(self.hops)
        self._sender.wake()

    def _give_up_waiting(self) -> None:
        """Stop waiting for the next attempt and for other requesters' attempts."""
        if self.state is RouteState.RETRYING:
            self._retry.cancel()
            self.state = RouteState.IDLE
        elif self.state is RouteState.IN_LINE:
            self.state = RouteState.IDLE
            self._attempts.leave(self)

    def _establish(self) -> None:
        """[MS-MQQB] 3.1.5.2: an open connection to that queue manager is as good as our own."""
        self.state = RouteState.LOOKING
        found = self._connecting.borrowing.connection_to(self._name, self.queue)
        found.add_done_callback(self._looked_for)

    def _looked_for(self, outcome: Completion[PeerConnection | None]) -> None:
        """Resolve the place to connect to, unless the peer has a usable connection."""
        borrowed = outcome.result()
        if borrowed is None or not borrowed.session.is_open:
            hops = self._connecting.places.next_hops(self._name, self.queue.named_by)
            hops.add_done_callback(self._resolved)
            return
        self.state = RouteState.IDLE
        if self.stopped:
            return
        self.state = RouteState.BORROWED
        self.connection = borrowed
        borrowed.users.append(self)
        self.queue.next_hops = [next_hop_text(borrowed.address)]
        self.record(ConnectionStatus.ESTABLISHED)
        self._opened()

    def _resolved(self, outcome: Completion[list[NextHop]]) -> None:
        """[MS-MQQB] 3.1.5.2.1: messages without an address to go to need validation."""
        self.state = RouteState.IDLE
        if self.stopped:
            return
        self.hops = [] if outcome.error is not None else outcome.result()
        self.queue.next_hops = [next_hop_text(hop.address) for hop in self.hops]
        if self.hops:
            self._unresolved = 0
            self.look_again()
            return
        by_name = is_direct_name(self._name)
        no_data = ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE
        self.record(ConnectionStatus.DNS_FAILURE if by_name else no_data)
        if self._sender.has_messages:
            self._set_state(OutgoingQueueState.NEED_VALIDATION)
        self._unresolved += 1
        self._retry_later(self._unresolved)

    def look_again(self) -> None:
        """Connect to the first address that is due, else wait for one (G99)."""
        if self.state is RouteState.IN_LINE:
            self.state = RouteState.IDLE
        if self.state is not RouteState.IDLE or self.stopped or not self._sender.has_messages:
            return
        turn = self._attempts.begin(self.hops, self)
        if turn is None:
            self.state = RouteState.IN_LINE
        else:
            self._connect(turn)

    # Connecting

    def _connect(self, next_hop: int) -> None:
        self._next_hop = next_hop
        hop, connecting = self.hops[next_hop], self._connecting
        direct = is_direct_name(self._name)
        connection = PeerConnection(
            connecting.owner, initiator=True, remote=hop.qm_guid, direct=direct
        )
        connection.users.append(self)
        connection.repeats = self._repeats
        self.state, self.connection = RouteState.CONNECTING, connection
        self._set_state(OutgoingQueueState.WAITING)
        if connecting.ping is None or self._repeats:
            self._connect_to(hop, connection)
        else:
            asked = connecting.ping(hop.address)
            asked.add_done_callback(partial(self._pinged, hop, connection))

    def _pinged(self, hop: NextHop, connection: PeerConnection, outcome: Completion[bool]) -> None:
        """[MS-MQQB] 3.1.5.2.2."""
        if self.connection is not connection:
            return
        if not outcome.result():
            self.record(ConnectionStatus.PING_FAILURE)
            connection.session.close("the ping was not answered, or refused")
            return
        connection.pinged = True
        self._connect_to(hop, connection)

    def _connect_to(self, hop: NextHop, connection: PeerConnection) -> None:
        connected = self._connecting.network.connect(hop, connection)
        connected.add_done_callback(partial(self._connected, connection))

    def _connected(self, connection: PeerConnection, outcome: Completion[None]) -> None:
        if outcome.error is not None and self.connection is connection:
            self.record(*connect_failure(outcome.error))
            connection.session.close(f"cannot connect: {outcome.error}")

    def connection_changed(self, connection: PeerConnection, state: SessionState) -> None:
        """Follow the handshake ([MS-MQQB] 3.1.5.3.2, 3.1.5.4.2)."""
        status = PROGRESS.get(state)
        if status is not None:
            self.record(status)
        if state is SessionState.OPEN:
            self.state = RouteState.OPEN
            self._attempts.ended(self, True)
            self.queue.next_hops = [next_hop_text(self.hops[self._next_hop].address)]
            self._opened()

    def _opened(self) -> None:
        self._repeats = False
        self._sender.session_opened()
        self._set_state(OutgoingQueueState.CONNECTED)
        self._sender.pump()

    def connection_window_moved(self, connection: PeerConnection) -> None:
        self._sender.pump()

    def connection_closing(self, connection: PeerConnection) -> None:
        """[MS-MQQB] 3.1.5.9: only the queue's own session leaves a trace in its state."""
        if self.connection is connection and self.state is not RouteState.BORROWED:
            self._set_state(OutgoingQueueState.DISCONNECTING)

    def connection_closed(self, connection: PeerConnection, reason: str) -> None:
        """Give back the messages in flight, and try again while there are messages.

        The next address is tried at once, the first one after the Session Retry Connect Timer.
        Source: [MS-MQQB] 3.1.5.9, 3.1.6.1.
        """
        if self.connection is not connection:
            return
        given_up = self.stopped or self._connecting.stopping
        if not given_up:
            self._history.ended(connection, bool(self._sender.in_flight))
        self.state, self.connection = RouteState.IDLE, None
        self._sender.session_closed()
        self._set_state(OutgoingQueueState.DISCONNECTED)
        self._attempts.ended(self, None if given_up else False)
        if given_up:
            return
        if connection.opened or not self._connect_behind(self._next_hop + 1):
            self._retry_later()

    def _connect_behind(self, start: int) -> bool:
        """Try the next address that is due; False if there is no other."""
        turn = self._attempts.begin(self.hops[start:], self, wait=False)
        if turn is not None:
            self._connect(start + turn)
        return turn is not None

    def _retry_later(self, failures: int = 1) -> None:
        if self.state is RouteState.IDLE and self._sender.has_messages:
            self.state = RouteState.RETRYING
            self._retry.start(failures)

    def _expired(self) -> None:
        """[MS-MQQB] 3.1.6.1."""
        self.state = RouteState.IDLE
        self._repeats = True
        self._sender.wake()

    # Administrators

    def hold(self) -> None:
        """Put the queue on hold: messages in flight are acknowledged, no more are sent."""
        self._give_up_waiting()
        if self.connection is not None:
            self.connection.session.pause()

    def resume(self) -> None:
        """[MS-MQQB] 3.1.7.14."""
        if self.connection is not None and self.connection.session.is_open:
            self.connection.session.session_active = True
            self._set_state(OutgoingQueueState.CONNECTED)
        self.try_now()

    def disconnect(self, reason: str) -> None:
        """Close the queue's own session, or stop using that of its peer."""
        self._give_up_waiting()
        connection = self.connection
        if connection is None:
            return
        if self.state is RouteState.BORROWED:
            connection.users.remove(self)
            self.connection_closed(connection, reason)
        else:
            connection.session.close(reason)

    # Shown to administrators

    def record(self, status: ConnectionStatus, error: int | None = None) -> None:
        """Record an event of the way in the history of the queue's connections."""
        hops = self.hops[self._next_hop : self._next_hop + 1]
        place = hops[0].address if hops and self.state is not RouteState.BORROWED else ""
        self._history.record(status, self.connection, place, error)

    def _set_state(self, state: OutgoingQueueState) -> None:
        if self.queue.state not in _STOPPED and self.queue.state is not state:
            self._connecting.outgoing.set_state(self.queue, state)
