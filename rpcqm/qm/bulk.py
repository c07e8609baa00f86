"""Many messages of an open queue at once: listing and removing them (G700)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.enums import MessageSeekAction, PositionState
from rpcqm.adm.message import CONSEQUENCES, Message
from rpcqm.adm.queue import OutgoingQueue, Queue, StoredPosition
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.qm.access import READING, RECEIVING
from rpcqm.qm.message_search import seek_available_message_position_with_id
from rpcqm.qm.messages import MessageEvents
from rpcqm.qm.positions import Positions, only_leaves, purge_reason
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction


@dataclass(frozen=True, slots=True)
class Removal:
    """The messages that a removal has left out, with the reasons, and the end of the rest."""

    refused: Sequence[tuple[int, MQError]]
    durable: Completion[None]


@dataclass(eq=False, repr=False)
class BulkEvents:
    """Reads by lookup identifier ([MS-MQDMPR] 3.1.7.1.13) of many messages in one event."""

    _store: Store
    _positions: Positions
    _messages: MessageEvents

    # Listing

    def visible(
        self, descriptor: OpenQueueDescriptor, after: int, limit: int
    ) -> tuple[list[int], bool]:
        """The lookup identifiers of messages that a peek finds, in order, and whether more follow.

        `after` is 0 before the first. Raises MQError as peeking does.
        """
        queue = self._messages.opened(descriptor, READING)
        positions = queue.message_position_list
        keys = positions.page(after or None, limit + 1)
        if queue.peekable_when_locked:
            keys = self._with_peekable(queue, keys, after, limit)
        return keys[:limit], len(keys) > limit

    def _with_peekable(self, queue: Queue, keys: list[int], after: int, limit: int) -> list[int]:
        """The same with messages that a transaction has locked and lets peeks see, in order."""
        locked = PositionState.LOCKED
        positions = queue.message_position_list
        end = keys[-1] if len(keys) > limit else None
        more = [
            key
            for key in queue.peekable_when_locked
            if key > after and (end is None or key < end) and positions.state(key) is locked
        ]
        return sorted([*keys, *more])

    def message(self, descriptor: OpenQueueDescriptor, key: int) -> Message:
        """A message by its lookup identifier; raises MQError as a peek does."""
        found = self._messages.read_message_by_lookup_identifier(
            descriptor, key, True, MessageSeekAction.SEEK_CURRENT
        )
        return found.result()

    def sizes(self, descriptor: OpenQueueDescriptor, keys: Iterable[int]) -> list[int]:
        """The octets of messages, 0 for one that is not there; raises MQError as peeking does."""
        queue = self._messages.opened(descriptor, READING)
        positions = map(queue.message_position_list.position, keys)
        return [0 if position is None else position.size for position in positions]

    def count(self, descriptor: OpenQueueDescriptor) -> int:
        """How many messages can be received; raises MQError as peeking does."""
        return self._messages.opened(descriptor, READING).message_position_list.available

    # Removal

    def remove(self, descriptor: OpenQueueDescriptor, keys: Iterable[int]) -> Removal:
        """Receive messages without their contents, in one commit.

        Each has the consequences that receiving it has. Raises MQError as receiving does where none
        can be removed.
        """
        queue = self._messages.opened(descriptor, RECEIVING)
        refused: list[tuple[int, MQError]] = []
        durable: Completion[None] = Completion()
        with self._store.transaction("remove in bulk") as change:
            taken = list(self._available(queue, keys, refused))
            self._remove(change, queue, taken)
            change.call_after(partial(durable.succeed, None))
        return Removal(refused, durable)

    def _available(
        self, queue: Queue, keys: Iterable[int], refused: list[tuple[int, MQError]]
    ) -> Iterator[int]:
        seen: set[int] = set()
        for key in keys:
            try:
                seek_available_message_position_with_id(
                    queue, key, False, MessageSeekAction.SEEK_CURRENT
                )
                if key in seen:
                    raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)
            except MQError as error:
                refused.append((key, error))
            else:
                seen.add(key)
                yield key

    def _remove(self, change: StoreTransaction, queue: Queue, keys: Sequence[int]) -> None:
        """Remove messages; those without consequences are removed as one."""
        reason = MessageClass.MQMSG_CLASS_ACK_RECEIVE
        if isinstance(queue, OutgoingQueue):
            reason = purge_reason(queue)
        index = queue.message_position_list
        alone = [key for key in keys if self._follows(queue, index.position(key))]
        apart = frozenset(alone)
        together = [key for key in keys if key not in apart]
        if together:
            self._positions.read_many(change, queue, together)
        for key in alone:
            if self._positions.watch is not None:
                message = self._positions.message_at(queue, key)
                self._messages.watch_received(queue, message, settles=False)
            self._positions.message_position_deleted(change, queue, key, reason)

    def _follows(self, queue: Queue, position: StoredPosition | None) -> bool:
        """Whether a removal has consequences: a copy, an acknowledgement, a line of the trail."""
        if not only_leaves(queue) or self._positions.watch is not None:
            return True
        return position is None or bool(position.flags & CONSEQUENCES)
