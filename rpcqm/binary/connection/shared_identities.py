"""Whether two of the queue managers that are connected have one identity (G492).

A queue manager may connect from several addresses, and from another one after its address has
changed. So two addresses alone show nothing. But each initiator says for how long its system has
run ([MS-MQQB] 2.2.3): two systems did not start at one moment. And both live if the older session
is heard from after the younger one has begun.
"""

from functools import partial

from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock
from rpcqm.binary.connection.peer_connection import Connections, PeerConnection, plain
from rpcqm.binary.connection.session_reuse import claims
from rpcqm.codec.layout import NULL_GUID
from rpcqm.qm.identity_conflicts import BOTH_ALIVE, IdentityConflicts

ONE_START = 10_000
"""Milliseconds by which the start of one system may seem to differ, as connections take time."""
DRIFT = 2_000
"""A millisecond more for so many that the older session has lasted: clocks do not run alike."""
HERE = "here"
_WRAP = 1 << 32
"""Milliseconds after which the time that a system has run begins anew."""


class SharedIdentities:
    """Looks at each session that opens."""

    def __init__(
        self,
        clock: Clock,
        queue_manager: QueueManager,
        connections: Connections,
        conflicts: IdentityConflicts,
    ) -> None:
        self._clock, self._queue_manager = clock, queue_manager
        self._connections, self._conflicts = connections, conflicts

    def opened(self, connection: PeerConnection) -> None:
        """Examine a session that has opened against the other sessions."""
        session = connection.session
        if session.remote_qm_guid == self._queue_manager.identifier:
            if not self._is_own(connection):
                self._note(connection, HERE)
            return
        if not _tells_start(connection):
            return
        for other in self._connections:
            if claims(other, session.remote_qm_guid) and self._is_another(other, connection):
                other.heard = partial(self._heard, other, connection)

    def _is_own(self, connection: PeerConnection) -> bool:
        """Whether the session connects this queue manager with itself."""
        stamp = connection.session.request_stamp
        return any(
            other.initiator is not connection.initiator and other.session.request_stamp == stamp
            for other in self._connections
        )

    def _is_another(self, other: PeerConnection, connection: PeerConnection) -> bool:
        """Whether the peer of an older session runs on another system, at another address."""
        if not _tells_start(other) or plain(other.address) == plain(connection.address):
            return False
        apart = (other.session.peer_started - connection.session.peer_started) % _WRAP
        lasted = self._clock.now() - self._connections[other]
        return min(apart, _WRAP - apart) > ONE_START + max(lasted, 0) // DRIFT

    def _heard(self, connection: PeerConnection, younger: PeerConnection) -> None:
        """Compare again: octets have come over the older session."""
        connection.heard = None
        if younger.session.is_open:
            self._note(connection, plain(younger.address))

    def _note(self, connection: PeerConnection, other: str) -> None:
        identity, address = connection.session.remote_qm_guid, plain(connection.address)
        self._conflicts.note(identity, address, other, BOTH_ALIVE)


def _tells_start(connection: PeerConnection) -> bool:
    """Whether the peer has an identity and has given the start of its system."""
    session = connection.session
    known = session.remote_qm_guid != NULL_GUID
    return known and not connection.initiator and session.request_stamp != 0
