"""What goes on with other queue managers: sessions, sequences, transactions, and the ways there."""

from rpcqm.api.asked import Asked, Reply
from rpcqm.base.told import told
from rpcqm.operations.network_shapes import (
    described_incoming,
    described_transaction,
    described_transfer,
)


async def list_sessions(asked: Asked) -> Reply:
    """The sessions with other queue managers that are there now, or are being opened."""
    sessions = asked.operations.sessions.all(asked.identity)
    return Reply(200, {"sessions": [told(each) for each in sessions]})


async def show_transfer(asked: Asked) -> Reply:
    """What has become of what a queue sends elsewhere, and its latest connections."""
    operations, identity = asked.operations, asked.identity
    queue = operations.outgoing.find(identity, asked.queue)
    return Reply(200, described_transfer(queue, operations.sessions.transfer(identity, queue)))


async def list_incoming_sequences(asked: Asked) -> Reply:
    """Who sends transactional messages to which queue here, and how far that has come."""
    sequences = asked.operations.sessions.incoming(asked.identity)
    return Reply(200, {"sequences": [described_incoming(each) for each in sequences]})


async def list_transactions(asked: Asked) -> Reply:
    """The transactions that are open here, the oldest first, and who holds them."""
    operations, identity = asked.operations, asked.identity
    found = operations.sessions.transactions(identity)
    names = operations.accounts.names(identity)
    return Reply(200, {"transactions": [described_transaction(each, names) for each in found]})


async def show_routing(asked: Asked) -> Reply:
    """Sites, queue managers and the ways between them, as the directory says: a graph."""
    return Reply(200, told(asked.operations.routing.graph(asked.identity)))
