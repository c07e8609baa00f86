"""The order of sending ([MS-MQDMPR] 3.1.7.1.28, .29, .34, 3.1.7.3.9).

Of each outgoing queue only the next message is in the collection (G141): the others come behind it
anyway, because a queue has its own messages in the order of their priority.
"""

import heapq
import itertools
from collections.abc import Callable

from rpcqm.adm.message import MessagePosition
from rpcqm.adm.queue import DispatchEntry, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.gathering import Gathering
from rpcqm.base.log import get_logger

SendUserMessageWrapper = Callable[[object, MessagePosition], None]
"""Sends, and removes the message from the collection ([MS-MQQB] 3.1.7.16)."""

_PRIORITIES = 8

_log = get_logger("qm")


class SendDispatcher:
    """Lets the queue send whose next message has the highest priority.

    The protocols register themselves: `send_by_srmp` sends entries without data of a protocol,
    `send_by_binary` all others. Entries added within `gathering` are sent at its end, so that all
    of them are compared.
    """

    def __init__(self, queue_manager: QueueManager) -> None:
        self._collection = queue_manager.dispatch_collection
        self._heap: list[tuple[int, int, DispatchEntry]] = []
        self._added = itertools.count()
        self.gathering = Gathering(self._gathered)
        self._sending = False
        self.send_by_binary: SendUserMessageWrapper | None = None
        self.send_by_srmp: SendUserMessageWrapper | None = None

    def _gathered(self) -> None:
        if self._heap:
            self.dispatch_send_message()

    def add_message_to_dispatch_collection(self, data: object, position: MessagePosition) -> None:
        """Let a queue send when it is its turn ([MS-MQDMPR] 3.1.7.1.28).

        `position` is its next message, `data` belongs to the protocol.
        """
        queue = position.queue_reference
        priority = _priority(queue, position.lookup_identifier)
        present = self._collection.get(queue)
        if present is None or present.priority < priority:
            entry = self._collection[queue] = DispatchEntry(position, data, priority)
            heapq.heappush(self._heap, (-priority, next(self._added), entry))
        self.dispatch_send_message()

    def remove_message_from_dispatch_collection(self, position: MessagePosition) -> None:
        """Remove a message that was sent or is gone, and send the next ([MS-MQDMPR] 3.1.7.1.29)."""
        entry = self._collection.get(position.queue_reference)
        if entry is not None and entry.message_position_reference == position:
            del self._collection[position.queue_reference]
        self.dispatch_send_message()

    def remove_messages_from_dispatch_collection_by_queue(self, queue: Queue) -> None:
        """Remove all entries of a queue ([MS-MQDMPR] 3.1.7.1.34)."""
        self._collection.pop(queue, None)

    def is_outranked(self, queue: Queue) -> bool:
        """Whether a message of another queue has a higher priority than the next of this one."""
        first = self._first()
        if first is None:
            return False
        key = queue.message_position_list.first_available()
        return key is not None and first.priority > _priority(queue, key)

    def dispatch_send_message(self) -> None:
        """Send the message of the highest priority, unless one is being sent.

        Of equals the first that was added. Source: [MS-MQDMPR] 3.1.7.3.9.
        """
        if self._sending or self.gathering.depth:
            return
        self._sending = True
        try:
            while (entry := self._first()) is not None:
                send = self._sender(entry)
                if send is None:
                    break
                heapq.heappop(self._heap)
                entry.send_in_progress = True
                _send(send, entry)
        finally:
            self._sending = False

    def _sender(self, entry: DispatchEntry) -> SendUserMessageWrapper | None:
        return self.send_by_srmp if entry.protocol_data is None else self.send_by_binary

    def _first(self) -> DispatchEntry | None:
        """The entry to send first; entries of messages that were removed are forgotten."""
        while self._heap:
            entry = self._heap[0][2]
            if self._collection.get(entry.message_position_reference.queue_reference) is entry:
                return entry
            heapq.heappop(self._heap)
        return None


def _send(send: SendUserMessageWrapper, entry: DispatchEntry) -> None:
    """Send; a message that fails holds up no other queue."""
    position = entry.message_position_reference
    try:
        send(entry.protocol_data, position)
    except Exception:
        _log.exception("a message could not be sent", queue=repr(position.queue_reference))


def _priority(queue: Queue, key: int) -> int:
    """BasePriority of the queue and Priority of the message, which is behind its identifier."""
    return queue.base_priority + _PRIORITIES - 1 - (key >> 56)
