"""Models of sessions, sequences, transactions and routes."""

from dataclasses import dataclass

from rpcqm.api.derived import list_of, model_of
from rpcqm.api.models import OutgoingQueue
from rpcqm.operations import routing
from rpcqm.operations.sessions import SessionView

Session = model_of(
    SessionView,
    "Session",
    """A session with another queue manager; numbers of messages are those of this session.

    `protocol` is binary, http or https. `waiting` are the messages in its `queues`.
    """,
)
Sessions = list_of(Session, "Sessions", "sessions", "All of them.")


@dataclass(frozen=True)
class ConnectionEvent:
    """What has happened to a connection."""

    status: str
    time: str | None
    addresses: list[str]


@dataclass(frozen=True)
class Transfer(OutgoingQueue):
    """A queue to elsewhere with its connections; sequences are 0 without transactions."""

    last_acknowledged: int
    last_acknowledged_time: str | None
    next_sequence: int
    unacknowledged: int
    unread: int
    resend_count: int
    resend_time: str | None
    connections: list[ConnectionEvent]


@dataclass(frozen=True)
class IncomingSequence:
    """How far the transactional messages of one sender for one queue have come."""

    queue: str
    format_name: str
    sender: str
    sequence: str
    number: int
    last_arrival: str | None
    refused: int


@dataclass(frozen=True)
class IncomingSequences:
    """All that are known."""

    sequences: list[IncomingSequence]


@dataclass(frozen=True)
class Transaction:
    """A transaction that is open; `owner` is an account, null for the queue manager itself."""

    id: str
    begun: str | None
    owner: str | None
    prepared: bool
    operations: int
    queues: list[str]


@dataclass(frozen=True)
class Transactions:
    """All that are open, the oldest first."""

    transactions: list[Transaction]


model_of(routing.SiteNode, "SiteNode", "A site of the directory.")
model_of(routing.MachineNode, "MachineNode", "A queue manager of the directory.")
model_of(
    routing.LinkEdge,
    "Link",
    "What it costs to go from one site to another, and through whom.",
)
Routing = model_of(routing.RoutingGraph, "Routing", "The graph; empty without a directory.")
