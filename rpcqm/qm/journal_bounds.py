"""Bounds the age and the number of copies in queues' journals (G657).

A quota keeps the oldest copies: a copy for a full journal is dropped. These bounds keep the latest
ones: the oldest copies go first, as in a rotated log.
"""

from functools import partial

from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.records import encode_queue
from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK
from rpcqm.qm.access import AccessControl
from rpcqm.qm.positions import Positions
from rpcqm.qm.registry import QueueRegistry
from rpcqm.store.records import QUEUE_ID, Family
from rpcqm.store.store import Store

LOOK = 60_000
"""Milliseconds between looks for copies that are too old."""
AT_ONCE = 1_024
"""Copies that one commit removes; others come between."""
PERIOD = 3_600_000
"""Milliseconds between two lines of the log about one journal."""
COUNTED = "copies.removed"
"""The metric that counts removed copies."""
_NUMBER = (1 << SEQUENTIAL_BITS) - 1
_PRIORITIES = 8

_log = get_logger("qm")


class JournalBounds:
    """Keeps the bounds of journals, and removes copies beyond them."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        timers: Timers,
        registry: QueueRegistry,
        access: AccessControl,
        positions: Positions,
    ) -> None:
        self._store = store
        self._clock = clock
        self._timers = timers
        self._registry = registry
        self._access = access
        self._positions = positions
        self._grown: dict[int, Queue] = {}
        self._next: Timer | None = None
        self._timer: Timer | None = None
        self._told: dict[int, tuple[int, int]] = {}
        """By journal: the time of its last line in the log, and the number of copies lost since."""
        positions.journal_grew = self._journal_grew

    def start(self) -> None:
        """Look at all journals, now and from time to time."""
        for queue in self._registry.all():
            if queue.journal_max_messages and queue.journal_queue_reference is not None:
                self._journal_grew(queue.journal_queue_reference)
        self._look()

    def stop(self) -> None:
        """Remove nothing more."""
        for timer in (self._next, self._timer):
            if timer is not None:
                timer.cancel()
        self._next = self._timer = None

    def set(
        self, queue: Queue, max_age: int, max_messages: int, identity: Identity | None = None
    ) -> Completion[None]:
        """Bound the journal of a queue: seconds and messages, 0 for no bound; done when durable.

        Copies beyond them go soon. Raises MQ_ERROR_ACCESS_DENIED.
        """
        main = queue.main
        if main.queue_type is QueueType.SYSTEM or isinstance(main, OutgoingQueue):
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "not a queue of an application")
        self._access.check_queue(main, identity, MQQUEUEACCESSMASK.MQSEC_SET_QUEUE_PROPERTIES)
        before = main.journal_max_age, main.journal_max_messages
        main.journal_max_age, main.journal_max_messages = max_age, max_messages
        try:
            with self._store.transaction("bound a journal") as change:
                change.put(Family.QUEUE, QUEUE_ID.pack(main.queue_id), encode_queue(main))
                change.call_after(partial(self._bounded, main))
                return change.committed
        except BaseException:
            main.journal_max_age, main.journal_max_messages = before
            raise

    def _bounded(self, main: Queue) -> None:
        if main.journal_queue_reference is not None:
            self._journal_grew(main.journal_queue_reference)

    # Removing

    def _journal_grew(self, journal: Queue) -> None:
        """Look at a journal at the end of this turn."""
        self._grown[journal.queue_id] = journal
        if self._next is None:
            self._next = self._timers.call_later(0, self._look_at_grown)

    def _look_at_grown(self) -> None:
        self._next = None
        grown, self._grown = self._grown, {}
        for journal in grown.values():
            self._shorten(journal)

    def _look(self) -> None:
        for queue in self._registry.all():
            if queue.journal_max_age and queue.journal_queue_reference is not None:
                self._shorten(queue.journal_queue_reference)
        self._forget_deleted()
        self._timer = self._timers.call_later(LOOK, self._look)

    def _forget_deleted(self) -> None:
        """Forget the counts of journals whose queues are deleted."""
        kept = self._told.items()
        self._told = {key: told for key, told in kept if self._registry.find_by_id(key) is not None}

    def _shorten(self, journal: Queue) -> None:
        """Remove the oldest copies beyond the bounds; the rest in the next turn."""
        if journal.queue_manager is None or journal.parent is None:
            return
        keys = self._surplus(journal, journal.parent)
        if not keys:
            return
        with self._store.transaction("shorten a journal") as change:
            for key in keys:
                self._positions.copy_removed(change, journal, key)
        self._store.metrics.count(COUNTED, len(keys))
        self._tell(journal, len(keys))
        if len(keys) == AT_ONCE:
            self._journal_grew(journal)

    def _surplus(self, journal: Queue, main: Queue) -> list[int]:
        """The oldest copies that are too many or too old, except locked ones."""
        positions = journal.message_position_list
        too_many = (
            positions.available - main.journal_max_messages if main.journal_max_messages else 0
        )
        born_before = self._clock.now() - main.journal_max_age * 1000 if main.journal_max_age else 0
        if too_many <= 0 and (not born_before or positions.oldest() >= born_before):
            return []
        found = []
        for at, key in enumerate(self._oldest(journal)):
            position = positions.position(key)
            too_old = position is not None and position.arrival < born_before
            if at >= too_many and not too_old:
                break
            found.append(key)
        return found

    def _oldest(self, journal: Queue) -> list[int]:
        """Copies in the order of their arrival, over all priorities."""
        positions = journal.message_position_list
        keys: list[int] = []
        for priority in range(_PRIORITIES):
            after = (priority << SEQUENTIAL_BITS) - 1 if priority else None
            keys += [key for key in positions.page(after, AT_ONCE) if _priority(key) == priority]
        return sorted(keys, key=lambda key: key & _NUMBER)[:AT_ONCE]

    def _tell(self, journal: Queue, removed: int) -> None:
        """Log at most one line an hour for a journal, with the number of copies since the last."""
        now = self._clock.now()
        last, untold = self._told.pop(journal.queue_id, (0, 0))
        untold += removed
        if not last or now - last >= PERIOD:
            _log.info(
                "old copies are removed from a journal", queue=journal.pathname, copies=untold
            )
            last, untold = now, 0
        self._told[journal.queue_id] = last, untold


def _priority(key: int) -> int:
    return key >> SEQUENTIAL_BITS
