"""Which session of a peer that has connected may carry messages of ours (G117).

Whoever connects says which queue manager it is, and nothing proves that. So a session is as good
as one of our own only if it comes from where that queue manager is known to be.
"""

import ipaddress
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.completion import Completion, completed
from rpcqm.binary.connection.peer_connection import NextHop, PeerConnection
from rpcqm.codec.names.format_name import FormatName, PrivateQueueFormatName
from rpcqm.codec.packet.internal import ORDER_QUEUE_IDENTIFIER
from rpcqm.qm.acknowledgement_queues import AcknowledgementQueues

if TYPE_CHECKING:
    from rpcqm.binary.connection.protocol import BinaryProtocol


class SessionReuse:
    """Finds open sessions for outgoing queues."""

    def __init__(
        self, protocol: "BinaryProtocol", acknowledgement_queues: AcknowledgementQueues
    ) -> None:
        self._protocol = protocol
        self._acknowledgement_queues = acknowledgement_queues

    def connection_to(
        self, name: FormatName, queue: OutgoingQueue
    ) -> Completion[PeerConnection | None]:
        """An open connection to the queue manager of a private format name; None without one.

        The newest one: of two from the same peer the older one has probably been lost there.
        """
        value = name.value
        if not isinstance(value, PrivateQueueFormatName):
            return completed(None)
        owner = value.source_queue_manager
        if not any(claims(connection, owner) for connection in self._protocol.connections):
            return completed(None)
        places = self._protocol.places_of(owner)
        if not places:
            acknowledges = value.private_queue_identifier == ORDER_QUEUE_IDENTIFIER
            trusted = acknowledges or queue in self._acknowledgement_queues
            return completed(self._newest(owner, None) if trusted else None)
        outcome: Completion[PeerConnection | None] = Completion()
        resolved = self._protocol.resolved_all(places)
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
        for connection in reversed(self._protocol.connections):
            if claims(connection, owner) and (
                places is None or plain(connection.address) in places
            ):
                return connection
        return None


def claims(connection: PeerConnection, owner: UUID) -> bool:
    """Whether the peer of an open session says that it is a queue manager."""
    return connection.session.is_open and connection.session.remote_qm_guid == owner


def plain(address: str) -> str:
    """An address without its scope; an IPv4 address that is mapped into IPv6 becomes IPv4."""
    text = address.partition("%")[0]
    try:
        parsed = ipaddress.ip_address(text)
    except ValueError:
        return text
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)
