"""The peers whose acknowledgements of our transactional messages count (G101, G112)."""

from uuid import UUID

from rpcqm.binary.connection.outgoing_transfer import OutgoingTransfer
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.connection.places import Places, is_direct_name
from rpcqm.codec.layout import NULL_GUID
from rpcqm.qm.directory import Directory


class AcknowledgementAuthors:
    """Tells destinations and their routers from others."""

    def __init__(self, directory: Directory, places: Places) -> None:
        self._directory, self._places = directory, places

    def is_destination(
        self, transfer: OutgoingTransfer, connection: PeerConnection, author: UUID
    ) -> bool:
        """Whether the destination made an acknowledgement that came over a connection (G101).

        Its author must be the queue manager that the messages go to. It must also come from an
        address of that one, unless it may have been routed here.
        """
        destination = self._directory.destination_queue_manager(transfer.name)
        if destination is not None and self._places.routing is not None:
            return author == destination
        expected = destination or transfer.peer.guid
        if connection.session.remote_qm_guid != author or expected not in (NULL_GUID, author):
            return False
        route = transfer.route
        places = {*transfer.peer.addresses, *(hop.address for hop in route.hops)} - {""}
        return connection is route.connection or not places or connection.address in places

    def is_router(self, transfer: OutgoingTransfer, author: UUID) -> bool:
        """Whether messages go by routing servers of the directory, and `author` is one of them."""
        if self._places.routing is None or is_direct_name(transfer.name):
            return False
        router = self._directory.queue_manager(author)
        return router is not None and router.routing_server
