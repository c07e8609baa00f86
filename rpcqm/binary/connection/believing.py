"""Whose acknowledgements of our transactional messages count (G101, G112)."""

from typing import TYPE_CHECKING
from uuid import UUID

from rpcqm.binary.connection.line import Line
from rpcqm.codec.layout import NULL_GUID

if TYPE_CHECKING:
    from rpcqm.binary.connection.exchange import Exchange
    from rpcqm.binary.connection.link import Link


def is_destination(exchange: "Exchange", link: "Link", line: Line, author: UUID) -> bool:
    """Whether an acknowledgement that came over a line is the destination's (G101).

    Who made it must be who is sent to. It must also come from where that one is, unless it may
    have been routed here.
    """
    destination = exchange.engine.directory.destination_queue_manager(link.name)
    if destination is not None and exchange.routing is not None:
        return author == destination
    expected = destination or link.peer.guid
    if line.session.remote_qm_guid != author or expected not in (NULL_GUID, author):
        return False
    places = {*link.peer.addresses, *(hop.address for hop in link.hops)} - {""}
    return line is link.line or not places or line.address in places


def is_router(exchange: "Exchange", link: "Link", author: UUID) -> bool:
    """Whether messages go by routing servers of the directory, and `author` is one."""
    if exchange.routing is None or exchange.is_direct(link.name):
        return False
    router = exchange.engine.directory.queue_manager(author)
    return router is not None and router.routing_server
