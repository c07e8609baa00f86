"""Sessions with other queue managers, and what waits for its end, for administrators."""

from collections.abc import Iterator
from dataclasses import dataclass

from rpcqm.adm.queue import IncomingTransactionalTransferInfo, OutgoingQueue, OutgoingTransferInfo
from rpcqm.adm.transaction import Transaction
from rpcqm.base.identity import Identity
from rpcqm.qm.access import require_observer
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.sessions import SessionView as SessionView


@dataclass(frozen=True, slots=True)
class IncomingSequence:
    """Transactional messages of one sender for one queue here."""

    queue: str
    info: IncomingTransactionalTransferInfo


class SessionOperations:
    """Raises MQ_ERROR_ACCESS_DENIED for others than administrators."""

    def __init__(self, engine: QueueManagerEngine) -> None:
        self._engine = engine

    def all(self, identity: Identity) -> list[SessionView]:
        """The sessions that are there, or are being opened."""
        require_observer(identity)
        return [view for source in self._engine.session_sources for view in source()]

    def pulse(self) -> tuple[object, ...]:
        """A value that is another one after sessions or open transactions have changed."""
        open_ones = self._engine.queue_manager.transaction_collection.values()
        return (
            [view for source in self._engine.session_sources for view in source()],
            [
                (each.identifier, each.prepared, len(each.transactional_operation_collection))
                for each in open_ones
            ],
        )

    def transfer(self, identity: Identity, queue: OutgoingQueue) -> OutgoingTransferInfo:
        """What has become of the transactional messages that a queue has sent."""
        require_observer(identity)
        return self._engine.outgoing.shown_transfer(queue)

    def incoming(self, identity: Identity) -> list[IncomingSequence]:
        """Who sends transactional messages to which queue here, and how far it has come."""
        require_observer(identity)
        return list(self._incoming())

    def _incoming(self) -> Iterator[IncomingSequence]:
        for queue in self._engine.queue_manager.queue_collection.values():
            for info in queue.incoming_transactional_transfer_info_collection:
                yield IncomingSequence(queue.pathname, info)

    def transactions(self, identity: Identity) -> list[Transaction]:
        """The transactions that have neither been committed nor aborted, the oldest first."""
        require_observer(identity)
        open_ones = self._engine.queue_manager.transaction_collection.values()
        return sorted(open_ones, key=lambda transaction: transaction.begun)

    def now(self) -> int:
        """Milliseconds since 1970."""
        return self._engine.clock.now()
