"""Which session of a peer that has connected may carry messages of ours (G117).

A peer that connects names its queue manager, without proof. So its session counts as our own only
if it comes from a place where that queue manager is known to be.
"""

from functools import partial
from uuid import UUID

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.completion import Completion, completed
from rpcqm.binary.connection.peer_connection import Connections, NextHop, PeerConnection, plain
from rpcqm.binary.connection.places import Places
from rpcqm.codec.names.format_name import FormatName, PrivateQueueFormatName
from rpcqm.codec.packet.internal import ORDER_QUEUE_IDENTIFIER
from rpcqm.qm.acknowledgement_queues import AcknowledgementQueues


class SessionReuse:
    """Finds open sessions for outgoing queues."""

    def __init__(
        self,
        connections: Connections,
        places: Places,
        acknowledgement_queues: AcknowledgementQueues,
    ) -> None:
        self._connections, self._places = connections, places
        self._acknowledgement_queues = acknowledgement_queues

    def connection_to(
        self, name: FormatName, queue: OutgoingQueue
    ) -> Completion[PeerConnection | None]:
        """An open connection to the queue manager of a private format name; None without one.

        It is the newest one: of two from the same peer the older one has probably been lost there.
        """
        value = name.value
        if not isinstance(value, PrivateQueueFormatName):
            return completed(None)
        owner = value.source_queue_manager
        if not any(claims(connection, owner) for connection in self._connections):
            return completed(None)
        places = self._places.places_of(owner)
        if not places:
            acknowledges = value.private_queue_identifier == ORDER_QUEUE_IDENTIFIER
            trusted = acknowledges or queue in self._acknowledgement_queues
            return completed(self._newest(owner, None) if trusted else None)
        outcome: Completion[PeerConnection | None] = Completion()
        resolved = self._places.resolved_all(places)
        resolved.add_done_callback(partial(self._resolved, owner, outcome))
        return outcome

    def _resolved(
        self,
        owner: UUID,
        outcome: Completion[PeerConnection | None],
        answer: Completion[list[NextHop]],
    ) -> None:
        outcome.succeed(self._newest(owner, {plain(hop.address) for hop in answer.result()}))

    def _newest(self, owner: UUID, places: set[str] | None) -> PeerConnection | None:
        """The newest open connection from one of the places whose peer claims to be `owner`."""
        for connection in reversed(self._connections):
            if claims(connection, owner) and (
                places is None or plain(connection.address) in places
            ):
                return connection
        return None


def claims(connection: PeerConnection, owner: UUID) -> bool:
    """Whether the peer of an open session claims to be a queue manager."""
    return connection.session.is_open and connection.session.remote_qm_guid == owner
