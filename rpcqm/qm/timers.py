"""The Time To Be Received Timer ([MS-MQDMPR] 3.1.2.4), one for all messages.

The store knows which messages expire when; the timer here looks at the earliest. The Waiting
Message Read Timer (3.1.2.3) is one timer per reader, in `readers`.
"""

from collections.abc import Callable, Iterable
from itertools import groupby

from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import NEVER as NEVER_SECONDS
from rpcqm.adm.message import Envelope
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.qm.stored_messages import message_at
from rpcqm.store.records import NEVER
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

LOOK_AT_LEAST = 60_000
"""The wall clock can be set: the timer never sleeps longer than this, in milliseconds."""

BATCH = 1_000
BATCHES = 100
"""Messages removed in one commit, and commits made before others are served."""


class TimeToBeReceivedTimer:
    """Removes messages whose time is over."""

    def __init__(
        self, store: Store, clock: Clock, timers: Timers, queue_manager: QueueManager
    ) -> None:
        self._store = store
        self._clock = clock
        self._timers = timers
        self._queue_manager = queue_manager
        self.message_position_deleted: Callable[[StoreTransaction, Queue, int, MessageClass], None]
        """Removes a message; the positions set it."""
        self._timer: Timer | None = None
        self._armed_for = NEVER
        self._stopped = False

    def expiry_of(self, envelope: Envelope, queue: Queue) -> int:
        """When a message expires in a queue, milliseconds since 1970 or NEVER.

        Both times are counted from the sending, and from the arrival if the sender's clock is
        ahead (G136). In an outgoing queue the message must leave before its time-to-reach-queue
        is over as well.
        """
        seconds = envelope.time_to_be_received
        if isinstance(queue, OutgoingQueue):
            seconds = min(seconds, envelope.time_to_reach_queue)
        return expiry_at(envelope.sent_time, seconds, self._clock.now())

    def is_due(self, expiry: int) -> bool:
        """Whether a message with that expiry has expired."""
        return expiry != NEVER and expiry <= self._clock.now()

    def arm(self, expiry: int) -> None:
        """Look at the messages no later than at `expiry`."""
        if expiry < self._armed_for and not self._stopped:
            self._start(expiry)

    def _start(self, expiry: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = expiry
        delay = min(max(expiry - self._clock.now(), 0), LOOK_AT_LEAST)
        self._timer = self._timers.call_later(delay, self.look)

    def look(self) -> None:
        """Raise Time To Be Received Timer Expired for all that is due, and arm the timer again.

        What cannot be removed now, because its queue is being deleted, is left for later. After a
        failure, which is raised, the next look is a minute away.
        """
        self._timer = None
        self._armed_for = NEVER
        now = self._clock.now()
        following: int | None = now + LOOK_AT_LEAST
        try:
            for _ in range(BATCHES):
                if not self._expire(self._store.expire(now, BATCH)):
                    break
            following = self._store.next_expiry()
        finally:
            if following is not None:
                self.arm(max(following, now + 1))

    def _expire(self, due: list[tuple[int, int]]) -> int:
        """Remove the messages that are due, and return their number."""
        removed = 0
        for queue_id, group in groupby(sorted(due), key=lambda entry: entry[0]):
            queue = self._queue_manager.queue_collection.get(queue_id)
            if queue is not None:
                keys = [key for _, key in group]
                self.time_to_be_received_timer_expired(queue, keys)
                removed += len(keys)
        return removed

    def stop(self) -> None:
        """Stop the timer."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._armed_for = NEVER

    def time_to_be_received_timer_expired(self, queue: Queue, keys: Iterable[int]) -> None:
        """Remove expired messages that nobody holds ([MS-MQDMPR] 3.1.7.2.7, G13).

        A locked message waits for its release, one that is leaving is left alone (G61).
        """
        positions = queue.message_position_list
        deleted = self.message_position_deleted
        with self._store.transaction("time to be received") as transaction:
            for key in keys:
                if positions.state(key) is PositionState.AVAILABLE:
                    deleted(transaction, queue, key, self._reason(queue, key))

    def _reason(self, queue: Queue, key: int) -> MessageClass:
        """In an outgoing queue: which of the two times is over ([MS-MQQB] 3.1.7.1.2)."""
        if not isinstance(queue, OutgoingQueue):
            return MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT
        envelope = message_at(self._store, queue, key).envelope
        if envelope.time_to_reach_queue <= envelope.time_to_be_received:
            return MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
        return MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT_AT_SENDER


def expiry_at(sent_time: int, seconds: int, now: int) -> int:
    """When a message expires that has so many seconds from `sent_time` on, seconds since 1970.

    `now` and the result are milliseconds since 1970; NEVER if it does not.
    """
    return NEVER if seconds == NEVER_SECONDS else min(sent_time * 1000, now) + seconds * 1000
