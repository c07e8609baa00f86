"""Queues to other queue managers, for administrators."""

from functools import partial

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.completion import Completion, completed
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import no_such_queue
from rpcqm.operations.management_orders import EOD_RESEND, PAUSE, RESUME, ManagementOrders
from rpcqm.qm.access import require_observer
from rpcqm.qm.engine import QueueManagerEngine


class OutgoingOperations:
    """Raises MQ_ERROR_ACCESS_DENIED for others than administrators."""

    def __init__(self, engine: QueueManagerEngine) -> None:
        self._outgoing = engine.outgoing
        self._orders = ManagementOrders(engine.management)

    def list(self, identity: Identity) -> list[OutgoingQueue]:
        """All outgoing queues, also those that are not active."""
        require_observer(identity)
        return self._outgoing.list()

    def find(self, identity: Identity, name: FormatName) -> OutgoingQueue:
        """The outgoing queue to a destination; MQ_ERROR_QUEUE_NOT_FOUND."""
        require_observer(identity)
        queue = self._outgoing.find(name)
        if queue is None:
            raise no_such_queue(name)
        return queue

    def pause(self, identity: Identity, name: FormatName) -> Completion[None]:
        """Stop the transfer out of a queue, over restarts too; done when durable."""
        return self._order(identity, name, PAUSE)

    def resume(self, identity: Identity, name: FormatName) -> Completion[None]:
        """Let the transfer go on; done when durable."""
        return self._order(identity, name, RESUME)

    def resend(self, identity: Identity, name: FormatName) -> Completion[None]:
        """Send again, now, what is not acknowledged."""
        return self._order(identity, name, EOD_RESEND)

    def _order(self, identity: Identity, name: FormatName, action: str) -> Completion[None]:
        begun = self._orders.of_queue(identity, name, action, partial(self.find, identity))
        return begun or completed(None)
