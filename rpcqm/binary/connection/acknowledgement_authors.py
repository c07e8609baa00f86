"""Whose acknowledgements of our transactional messages count (G101, G112)."""

from typing import TYPE_CHECKING
from uuid import UUID

from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.codec.layout import NULL_GUID

if TYPE_CHECKING:
    from rpcqm.binary.connection.outgoing_transfer import OutgoingTransfer
    from rpcqm.binary.connection.protocol import BinaryProtocol


def is_destination(
    protocol: "BinaryProtocol",
    transfer: "OutgoingTransfer",
    connection: PeerConnection,
    author: UUID,
) -> bool:
    """Whether the destination made an acknowledgement that came over a connection (G101).

    Who made it must be who is sent to. It must also come from where that one is, unless it may
    have been routed here.
    """
    destination = protocol.directory.destination_queue_manager(transfer.name)
    if destination is not None and protocol.routing is not None:
        return author == destination
    expected = destination or transfer.peer.guid
    if connection.session.remote_qm_guid != author or expected not in (NULL_GUID, author):
        return False
    places = {*transfer.peer.addresses, *(hop.address for hop in transfer.hops)} - {""}
    return connection is transfer.connection or not places or connection.address in places


def is_router(protocol: "BinaryProtocol", transfer: "OutgoingTransfer", author: UUID) -> bool:
    """Whether messages go by routing servers of the directory, and `author` is one."""
    if protocol.routing is None or protocol.is_direct(transfer.name):
        return False
    router = protocol.directory.queue_manager(author)
    return router is not None and router.routing_server
