"""Readers that wait, and cursors ([MS-MQDMPR] 3.1.7.1.1, .2, .17, 3.1.7.3.1, .4 to .7)."""

from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial

from rpcqm.adm.descriptor import Cursor, OpenQueueDescriptor, WaitingMessageReadOperation
from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.allowance import Allowance
from rpcqm.base.clock import Timers
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.qm import cursors
from rpcqm.qm.handles import new_handle
from rpcqm.store.store import Store

AT_ONCE = -1
"""The timeout of a read that shall not even wait for messages on their way to the disk."""


class WaitingReaders:
    """The readers that wait for messages, in the order in which they came (G6)."""

    def __init__(self, store: Store, timers: Timers) -> None:
        self._store = store
        self._timers = timers
        self.cursors: dict[int, Cursor] = {}

    # Cursors

    def open_cursor(self, descriptor: OpenQueueDescriptor) -> Cursor | None:
        """A cursor before the first message; None without a queue ([MS-MQDMPR] 3.1.7.1.1).

        Raises MQError(MQ_ERROR_INSUFFICIENT_RESOURCES) if the client has too many (G129).
        """
        if descriptor.queue_reference is None:
            return None
        if descriptor.cursor_allowance is not None:
            descriptor.cursor_allowance.take()
        cursor = Cursor(new_handle(self.cursors), descriptor)
        self.cursors[cursor.handle] = cursor
        descriptor.cursor_collection[cursor.handle] = cursor
        cursors.initialize(cursor)
        return cursor

    def close_cursor(self, cursor: Cursor) -> None:
        """Remove a cursor ([MS-MQDMPR] 3.1.7.1.2).

        A reader that waits with it gets MQ_ERROR_OPERATION_CANCELLED.
        """
        descriptor = cursor.open_queue_descriptor_reference
        self.cursors.pop(cursor.handle, None)
        if descriptor.cursor_collection.pop(cursor.handle, None) is None:
            return
        if descriptor.cursor_allowance is not None:
            descriptor.cursor_allowance.give_back()
        for operation in list(descriptor.waiting_message_read_operation_collection):
            if operation.cursor_reference is cursor:
                self.waiting_message_read_timer_stop(
                    operation, HResult.MQ_ERROR_OPERATION_CANCELLED
                )

    def charge_cursors(self, descriptor: OpenQueueDescriptor, allowance: Allowance) -> None:
        """Count the cursors of an open queue for the client that has it open from now on.

        Raises MQError(MQ_ERROR_INSUFFICIENT_RESOURCES) if that client has too many (G129).
        """
        count = len(descriptor.cursor_collection)
        allowance.take(count)
        if descriptor.cursor_allowance is not None:
            descriptor.cursor_allowance.give_back(count)
        descriptor.cursor_allowance = allowance

    # Waiting

    def wait_for_new_message(
        self,
        descriptor: OpenQueueDescriptor,
        timeout: int,
        destructive_read: bool,
        tag: Hashable | None,
        cursor: Cursor | None,
        take: Callable[[int], Completion[Message]],
    ) -> Completion[Message]:
        """Wait until a message arrives that matches ([MS-MQDMPR] 3.1.7.3.1).

        Raises MQ_ERROR_IO_TIMEOUT if the time (ms) is over, at once when it is zero (G4) and no
        message is on its way (G379); MQ_ERROR_INVALID_PARAMETER for a tag that somebody already
        waits under.
        """
        queue = descriptor.queue_reference
        if queue is None or (timeout <= 0 and not _is_arriving(queue, timeout, cursor)):
            _stop_cursor(cursor)
            raise MQError(HResult.MQ_ERROR_IO_TIMEOUT)
        if tag is not None and tag in queue.waiting_by_tag:
            _stop_cursor(cursor)
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "the request is waiting already")
        operation = WaitingMessageReadOperation(descriptor, destructive_read, tag, cursor, take)
        descriptor.waiting_message_read_operation_collection[operation] = None
        (queue.waiting_receives if destructive_read else queue.waiting_peeks)[operation] = None
        if tag is not None:
            queue.waiting_by_tag[tag] = operation
        if timeout:
            self.waiting_message_read_timer_start(operation, timeout)
        else:
            self._end_behind_arrivals(operation)
        return operation.outcome

    def _end_behind_arrivals(self, operation: WaitingMessageReadOperation) -> None:
        """End a wait once what is on its way has been offered (G379)."""
        with self._store.transaction("a read behind arrivals") as change:
            change.call_after(partial(self.waiting_message_read_timer_expired, operation))

    def waiting_message_read_timer_start(
        self, operation: WaitingMessageReadOperation, timeout: int
    ) -> None:
        """Bound the wait to `timeout` ms; INFINITE does not ([MS-MQDMPR] 3.1.7.3.4)."""
        if timeout != INFINITE:
            expired = partial(self.waiting_message_read_timer_expired, operation)
            operation.timer = self._timers.call_later(timeout, expired)

    def waiting_message_read_timer_expired(self, operation: WaitingMessageReadOperation) -> None:
        """End a wait whose time is over ([MS-MQDMPR] 3.1.6.3)."""
        self.waiting_message_read_timer_stop(operation, HResult.MQ_ERROR_IO_TIMEOUT)

    def waiting_message_read_timer_stop(
        self, operation: WaitingMessageReadOperation, status: HResult | NtStatus
    ) -> None:
        """End a wait without a message ([MS-MQDMPR] 3.1.7.3.5).

        Does nothing if the reader has been given a message: the first event wins (G61).
        """
        if self._remove(operation):
            _stop_cursor(operation.cursor_reference)
            operation.outcome.fail(MQError(status))

    def cancel_waiting_message_read_request(
        self,
        queue: Queue,
        tag: Hashable,
        status: HResult | NtStatus = HResult.MQ_ERROR_OPERATION_CANCELLED,
    ) -> None:
        """End the wait under `tag` with `status` ([MS-MQDMPR] 3.1.7.1.17).

        The tag is unique in the queue: (descriptor handle, request id) for RPC (G12).
        Raises STATUS_NOT_FOUND if no reader waits under it, or the reader has a message already.
        """
        operation = queue.waiting_by_tag.get(tag)
        if operation is None:
            raise MQError(NtStatus.STATUS_NOT_FOUND)
        self.waiting_message_read_timer_stop(operation, status)

    def cancel_wait(self, descriptor: OpenQueueDescriptor, tag: Hashable) -> None:
        """End a wait whose reader has gone, so that the next message is for somebody else.

        Does nothing if the read has ended meanwhile.
        """
        queue = descriptor.queue_reference
        if queue is not None:
            with suppress(MQError):
                self.cancel_waiting_message_read_request(queue, tag)

    def end_all_waits(self, queue: Queue, status: HResult) -> None:
        """End every wait on a queue that goes away (G14)."""
        for operation in [*queue.waiting_peeks, *queue.waiting_receives]:
            self.waiting_message_read_timer_stop(operation, status)

    def end_waits_of(self, descriptor: OpenQueueDescriptor, status: HResult) -> None:
        """End every wait of a descriptor that is closed."""
        for operation in list(descriptor.waiting_message_read_operation_collection):
            self.waiting_message_read_timer_stop(operation, status)

    def _remove(self, operation: WaitingMessageReadOperation) -> bool:
        """Take an operation out of all collections; False when it is out already."""
        descriptor = operation.descriptor
        waiting = descriptor.waiting_message_read_operation_collection
        if operation not in waiting:
            return False
        del waiting[operation]
        queue = descriptor.queue_reference
        if queue is not None:
            (queue.waiting_receives if operation.destructive_read else queue.waiting_peeks).pop(
                operation, None
            )
            if operation.tag is not None:
                queue.waiting_by_tag.pop(operation.tag, None)
        if operation.timer is not None:
            operation.timer.cancel()
        return True

    # Waking

    def offer(self, queue: Queue, key: int) -> None:
        """Give an available message to all who peek, then to the first who receives.

        Cursors are woken by messages behind them (G6, G62). What a receiver could not take is
        offered to the next one.
        """
        self._release_peekers(queue, key)
        while queue.waiting_receives:
            if queue.message_position_list.state(key) is not PositionState.AVAILABLE:
                return
            reader = next((op for op in queue.waiting_receives if _matches(op, key)), None)
            if reader is None or self.waiting_message_read_satisfied(reader, key):
                return

    def _release_peekers(self, queue: Queue, key: int) -> None:
        """Release Next Reader for every peeker at once ([MS-MQDMPR] 3.1.7.3.7, G6)."""
        if queue.waiting_peeks:
            for operation in [op for op in queue.waiting_peeks if _matches(op, key)]:
                self.waiting_message_read_satisfied(operation, key)

    def waiting_message_read_satisfied(
        self, operation: WaitingMessageReadOperation, key: int
    ) -> bool:
        """Hand a message to the reader that waits for it ([MS-MQDMPR] 3.1.7.3.6).

        Returns False if the reader could not take it; the reader has been told why.
        """
        if not self._remove(operation):
            return False
        if operation.cursor_reference is not None:
            cursors.message_available(operation.cursor_reference, key)
        try:
            taken = operation.take(key)
        except Exception as error:  # that reader learns it, and the next one is offered the message
            operation.outcome.fail(error)
            return False
        taken.add_done_callback(operation.outcome.follow)
        return True


def _matches(operation: WaitingMessageReadOperation, key: int) -> bool:
    cursor = operation.cursor_reference
    return cursor is None or cursor.key is None or key > cursor.key


def _is_arriving(queue: Queue, timeout: int, cursor: Cursor | None) -> bool:
    """Whether a read that does not wait may get a message whose commit is on its way."""
    return timeout == 0 and cursor is None and bool(queue.message_position_list.arriving())


def _stop_cursor(cursor: Cursor | None) -> None:
    if cursor is not None:
        cursors.wait_time_expired(cursor)
