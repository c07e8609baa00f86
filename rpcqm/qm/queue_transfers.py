"""The common part of protocols that send from outgoing queues: a transfer for each queue."""

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.adm.queue import OutgoingQueue, OutgoingTransferInfo
from rpcqm.qm.dispatcher import SendDispatcher
from rpcqm.qm.outgoing import Outgoing

_TIDY_AT_LEAST = 64


class QueueTransfer(Protocol):
    """Sends the messages of one queue."""

    def wake(self) -> None:
        """Look for messages to send."""

    def resend_now(self) -> None:
        """Send unacknowledged messages again."""

    def show(self, info: OutgoingTransferInfo) -> None:
        """Fill in the statistics for administrators."""

    def stop(self) -> None:
        """Send nothing more."""


T = TypeVar("T", bound=QueueTransfer)


class QueueTransfers(Generic[T]):
    """Creates each transfer at its first use, and passes the events of its queue to it.

    `carries` says from which queues the protocol sends.
    """

    def __init__(
        self,
        outgoing: Outgoing,
        dispatcher: SendDispatcher,
        make: Callable[[OutgoingQueue], T],
        carries: Callable[[OutgoingQueue], bool],
    ) -> None:
        self._outgoing, self._dispatcher = outgoing, dispatcher
        self._make, self._carries = make, carries
        self._by_queue: dict[OutgoingQueue, T] = {}
        self._tidy_at = _TIDY_AT_LEAST
        self._stopping = False

    def __len__(self) -> int:
        return len(self._by_queue)

    def __iter__(self) -> Iterator[T]:
        """The present transfers; others may be created meanwhile."""
        return iter(list(self._by_queue.values()))

    def of(self, queue: OutgoingQueue) -> T:
        """The transfer of a queue, created at its first use."""
        transfer = self._by_queue.get(queue)
        if transfer is None:
            if len(self._by_queue) >= self._tidy_at:
                self._tidy()
            transfer = self._by_queue[queue] = self._make(queue)
        return transfer

    def _tidy(self) -> None:
        gone = [queue for queue in self._by_queue if queue.deleted]
        self._forget({queue: self._by_queue.pop(queue) for queue in gone})
        self._tidy_at = max(_TIDY_AT_LEAST, 2 * len(self._by_queue))

    def _forget(self, gone: Mapping[OutgoingQueue, T]) -> None:
        """End the transfers of queues that are deleted."""
        raise NotImplementedError

    def start(self) -> None:
        """Subscribe to the events of queues."""
        self._outgoing.state_hooks.append(self._state_changed)
        self._outgoing.resend_hooks.append(self._resend)
        self._outgoing.transfer_hooks.append(self._show_transfer)

    def stop(self) -> None:
        """Send nothing more."""
        self._stopping = True
        for transfer in self:
            transfer.stop()

    def message_position_available(self, queue: OutgoingQueue, key: int) -> None:
        """[MS-MQQB] 3.1.7.12, [MC-MQSRM] 3.1.7.7; an inactive queue may connect (G49)."""
        if not self._stopping and self._carries(queue):
            self.of(queue).wake()

    def _state_changed(self, queue: OutgoingQueue) -> None:
        """[MS-MQQB] 3.1.7.13, 3.1.7.14, [MC-MQSRM] 3.1.7.4, 3.1.7.5."""
        if not self._carries(queue):
            return
        if queue.state is OutgoingQueueState.ON_HOLD:
            self._dispatcher.remove_messages_from_dispatch_collection_by_queue(queue)
            self._hold(queue)
        elif queue.state is OutgoingQueueState.INACTIVE:
            self._resume(queue)

    def _hold(self, queue: OutgoingQueue) -> None:
        raise NotImplementedError

    def _resume(self, queue: OutgoingQueue) -> None:
        raise NotImplementedError

    def _resend(self, queue: OutgoingQueue) -> None:
        transfer = self._by_queue.get(queue)
        if transfer is not None:
            transfer.resend_now()

    def _show_transfer(self, info: OutgoingTransferInfo) -> None:
        transfer = self._by_queue.get(info.outgoing_queue_reference)
        if transfer is not None:
            transfer.show(info)
