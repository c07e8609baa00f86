"""Outgoing queues that exist only because strangers want acknowledgements (G100).

The sender of a message names the queue for its acknowledgements, on any host. Senders without a
proved identity can make only a bounded number of such queues to unknown hosts: otherwise a few
messages would make this queue manager connect to as many hosts as they name.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from rpcqm.adm.directory import equals
from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.addresses import owner_of
from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.log import get_logger
from rpcqm.codec.names.format_name import FormatName
from rpcqm.qm.directory import Directory
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.outgoing_bounds import TooManyOutgoingQueuesError, source_of
from rpcqm.qm.protocol_records import ProtocolRecords
from rpcqm.qm.registry import QueueRegistry
from rpcqm.store.records import QUEUE_ID, Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

QUEUES_AT_MOST = 1024
"""Outgoing queues for acknowledgements to strangers.

Bound `strangers.queues` [queues]: the acknowledgement is dropped.
"""
QUEUES_OF_ONE_SOURCE = 64
"""The same for messages from one address.

Bound `strangers.queues_of_one_source` [queues]: the acknowledgement is dropped.
"""
BYTES_AT_MOST = 64 << 20
"""What waits in all of these queues together.

Bound `strangers.bytes` [octets]: the acknowledgement is dropped.
"""

_log = get_logger("qm")
_PREFIX = b"stranger:"
_LOOK_MILLISECONDS = 60_000
_EMPTY_MILLISECONDS = 600_000
"""How often empty queues are looked for, and how long one is kept: an active sender needs it again.
"""


class TooManyAcknowledgementQueuesError(TooManyOutgoingQueuesError):
    """An acknowledgement was dropped; it is counted and logged already."""


@dataclass(eq=False, repr=False)
class AcknowledgementQueues:
    """The outgoing queues that were made for strangers, each with its source."""

    _store: Store
    _clock: Clock
    _timers: Timers
    _queue_manager: QueueManager
    _registry: QueueRegistry
    _records: ProtocolRecords
    _outgoing: Outgoing
    _directory: Directory

    def __post_init__(self) -> None:
        self.is_known: Callable[[FormatName], bool] = lambda name: False
        """Whether the sending protocol can place a name by its settings."""
        self.may_name: Callable[[FormatName, str, OutgoingQueue | None], bool] = lambda *_: True
        """Whether a message from a source may name a URL, whose queue may be there already."""
        self.refused = 0
        """Acknowledgements that were dropped because there are too many queues."""
        self._sources: dict[OutgoingQueue, str] = {}
        self._count: Counter[str] = Counter()
        self._empty_since: dict[OutgoingQueue, int] = {}
        self._bytes = BYTES_AT_MOST
        self._timer: Timer | None = None
        self._told: int | None = None

    def __len__(self) -> int:
        return len(self._sources)

    def __contains__(self, queue: OutgoingQueue) -> bool:
        """Whether a queue was made for acknowledgements only, and nobody here sends to it."""
        return queue in self._sources

    def start(self) -> None:
        """Find the queues from before a restart again."""
        lost = []
        for key, source in self._records.records(_PREFIX):
            queue_id = QUEUE_ID.unpack_from(key, len(_PREFIX))[0]
            queue = self._queue_manager.queue_collection.get(queue_id)
            if isinstance(queue, OutgoingQueue):
                self._add(queue, source.decode("utf-8", "replace"))
            elif queue_id not in self._queue_manager.unusable_queues:
                lost.append(key)
        if lost:
            self._records.write(dict.fromkeys(lost))

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def source_of(self, queue: OutgoingQueue) -> str | None:
        """The stranger's address for which a queue was made; None if somebody here sends to it."""
        return self._sources.get(queue)

    def check_url(self, name: FormatName, source: str, queue: OutgoingQueue | None) -> None:
        """Refuse a URL that a message from `source` may not name.

        Raises TooManyAcknowledgementQueuesError. Messages sent here name queues that their senders
        may open (G217).
        """
        sent_here = source == str(self._queue_manager.identifier)
        if name.is_http and not sent_here and not self.may_name(name, source, queue):
            event = "a message names a URL that srmp.receipts_to does not list"
            self._refuse(source, event, host=name.direct_name.host)

    def create(self, name: FormatName, change: StoreTransaction, source: str) -> OutgoingQueue:
        """The outgoing queue to a destination that a message from `source` has named.

        Raises TooManyAcknowledgementQueuesError if strangers have too many, and
        TooManyOutgoingQueuesError.
        """
        base_priority = self._directory.base_priority(name)
        if self._is_known(name):
            return self._outgoing.create(name, change, base_priority, source)
        of_source = self._count[owner_of(source)]
        if len(self._sources) >= QUEUES_AT_MOST or of_source >= QUEUES_OF_ONE_SOURCE:
            self._refuse(source, "too many outgoing queues for acknowledgements to strangers")
        queue = self._outgoing.create(name, change, base_priority, source)
        change.put(Family.STREAM, _key(queue), source.encode())
        self._add(queue, source)
        return queue

    def admit(self, queue: OutgoingQueue, size: int) -> None:
        """Let an acknowledgement of `size` bytes into a queue.

        Raises TooManyAcknowledgementQueuesError if too many bytes wait. The waiting bytes are
        summed up at first, and again when as many as may wait have gone in since.
        """
        source = self._sources.get(queue)
        if source is None:
            return
        self._bytes += size
        if self._bytes <= BYTES_AT_MOST:
            return
        index = self._store.index
        self._bytes = size + sum(index(each.queue_id).account.bytes for each in self._sources)
        if self._bytes > BYTES_AT_MOST:
            self._bytes -= size
            self._refuse(source, "too much waits in outgoing queues to strangers")

    def _refuse(self, source: str, event: str, **more: str) -> None:
        """Refuse an acknowledgement; it is logged at most once a minute."""
        self.refused += 1
        now = self._clock.monotonic()
        if self._told is None or now - self._told >= _LOOK_MILLISECONDS:
            self._told = now
            _log.warning(event, source=source, dropped=self.refused, **more)
        raise TooManyAcknowledgementQueuesError

    def _is_known(self, name: FormatName) -> bool:
        if name.is_http:
            return False
        return self.is_known(name) or self._is_in_directory(name)

    def _is_in_directory(self, name: FormatName) -> bool:
        directory = self._directory
        if not directory.is_there:
            return False
        if not isinstance(name.value, str):
            owner = directory.destination_queue_manager(name)
            return owner is not None and directory.queue_manager(owner) is not None
        host = name.direct_name.host
        return any(
            directory.read_directory(QueueManager, [equals(attribute, host)])[1] is not None
            for attribute in ("computer_name", "qualified_computer_name")
        )

    def adopt(self, queue: OutgoingQueue) -> None:
        """Take a queue out of these, because somebody here sends to it, too."""
        if queue in self._sources:
            self._remove(queue)
            self._records.write({_key(queue): None})

    def _add(self, queue: OutgoingQueue, source: str) -> None:
        self._sources[queue] = source
        self._count[owner_of(source)] += 1
        if self._timer is None:
            self._look_later()

    def _remove(self, queue: OutgoingQueue) -> None:
        owner = owner_of(self._sources.pop(queue))
        self._empty_since.pop(queue, None)
        self._count[owner] -= 1
        if not self._count[owner]:
            del self._count[owner]

    def _look_later(self) -> None:
        self._timer = self._timers.call_later(_LOOK_MILLISECONDS, self._look)

    def _look(self) -> None:
        """Drop the queues that have been empty for ten minutes."""
        self._timer = None
        gone: dict[bytes, bytes | None] = {}
        for queue in list(self._sources):
            if self._is_over(queue):
                self._registry.drop_if_unused(queue)
            if queue.queue_manager is None:
                self._remove(queue)
                gone[_key(queue)] = None
        if gone:
            self._records.write(gone)
        if self._sources:
            self._look_later()

    def _is_over(self, queue: OutgoingQueue) -> bool:
        now = self._clock.monotonic()
        if queue.message_count:
            self._empty_since.pop(queue, None)
            return False
        return now - self._empty_since.setdefault(queue, now) >= _EMPTY_MILLISECONDS


def unproven_source(message: Message) -> str:
    """The source of a message without a proved sender; "" if its signature was good.

    It is an address, or the queue manager in the message if no address was kept. Signatures over
    HTTP cover attachments only, not the requested acknowledgements (G165).
    """
    attributes = message.attributes
    if attributes.authentication_level and not attributes.is_srmp:
        return ""
    return source_of(message)


def _key(queue: Queue) -> bytes:
    return _PREFIX + QUEUE_ID.pack(queue.queue_id)
