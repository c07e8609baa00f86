"""Work with other queue managers: sessions, sequences, transactions, and routes."""

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
    """The transfer of a queue's messages to elsewhere, and its latest connections."""
    operations, identity = asked.operations, asked.identity
    queue = operations.outgoing.find(identity, asked.queue)
    return Reply(200, described_transfer(queue, operations.sessions.transfer(identity, queue)))


async def list_incoming_sequences(asked: Asked) -> Reply:
    """The senders of transactional messages to queues here, with their progress."""
    sequences = asked.operations.sessions.incoming(asked.identity)
    return Reply(200, {"sequences": [described_incoming(each) for each in sequences]})


async def list_transactions(asked: Asked) -> Reply:
    """The open transactions, the oldest first, with their owners."""
    operations, identity = asked.operations, asked.identity
    found = operations.sessions.transactions(identity)
    names = operations.accounts.names(identity)
    return Reply(200, {"transactions": [described_transaction(each, names) for each in found]})


async def show_routing(asked: Asked) -> Reply:
    """Sites, queue managers and links of the directory: a graph."""
    return Reply(200, told(asked.operations.routing.graph(asked.identity)))
