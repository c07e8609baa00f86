"""Changes of queues that somebody orders, over whatever door: each is told by one audit line."""

from collections.abc import Callable, Mapping
from functools import partial

from rpcqm.adm.queue import Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.base.identity import Identity
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.operations.audit import note, note_look, ordered, refusals, start_ordered
from rpcqm.qm.access import RECEIVING, require_administrator
from rpcqm.qm.queues import QueueEvents


class QueueOrders:
    """The events of queues of the same names, which check the rights of who orders (G311)."""

    def __init__(self, queues: QueueEvents) -> None:
        self._queues = queues

    def create(self, identity: Identity, queue: Queue) -> Completion[Queue]:
        """Create a queue; done when durable. Only administrators publish one (G531).

        Raises MQError as `QueueEvents.create_queue` does.
        """
        with ordered(identity, "create queue", queue.pathname):
            if PathName.parse(queue.pathname).kind is QueueKind.PUBLIC:
                require_administrator(identity)
            return self._queues.create_queue(queue, identity=identity)

    def delete(self, identity: Identity, queue: Queue) -> Completion[None]:
        """Delete a queue with all that is in it; done when durable."""
        with ordered(identity, "delete queue", queue.pathname, messages=queue.message_count):
            return self._queues.delete_queue(queue, identity=identity)

    def set_properties(
        self, identity: Identity, queue: Queue, changes: Mapping[str, object]
    ) -> Completion[None]:
        """Change attributes of a queue, all or none; done when durable."""
        with ordered(identity, "set properties", queue.full_name, properties=sorted(changes)):
            return self._queues.set_properties(queue, changes, identity=identity)

    def set_security(
        self, identity: Identity, queue: Queue, parts: int, descriptor: bytes
    ) -> Completion[None]:
        """Replace `parts` of a queue's descriptor; done when durable."""
        with ordered(identity, "set permissions", queue.pathname):
            return self._queues.set_security(queue, parts, descriptor, identity=identity)

    def purge(
        self,
        identity: Identity,
        queue: Queue,
        opened: QueueAccessType,
        denied: HResult | NtStatus = HResult.MQ_ERROR_ACCESS_DENIED,
    ) -> Completion[int]:
        """Remove all messages of a queue; `denied` unless it was opened for receiving.

        To purge an empty queue changes nothing and costs no commit (G324).
        """
        name, empty = queue.full_name, not queue.message_count
        with refusals(identity, "purge", name):
            if opened not in RECEIVING:
                raise MQError(denied, "not opened for receiving")
            purged = self._queues.purge_queue(queue)
        tell = note_look if empty and not queue.message_position_list.arriving() else note
        return start_ordered(_told(purged, partial(tell, identity, "purge", name)))


async def _told(purged: Completion[int], tell: Callable[..., None]) -> int:
    """Tell how many messages an order has removed, once that is durable (G580)."""
    messages = await purged
    tell(messages=messages)
    return messages
