"""Finds a message by its identifier in all queues.

Queues are ordered by lookup identifier and packets by serial, and an index of identifiers would
cost every message that comes. So the packets are read through once, in slices between which others
are served: a few seconds for a million messages.
"""

import contextlib
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Timers
from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.bodies.described import class_name
from rpcqm.codec.packet.fields import MESSAGE_ID, SOURCE_QUEUE_MANAGER
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.packet.user import UserFlags
from rpcqm.qm.machine import is_deadletter
from rpcqm.qm.stored_messages import message_at
from rpcqm.store.errors import StoreError
from rpcqm.store.store import Store
from rpcqm.store.uncommitted import UncommittedOperation

SLICE = 2_000
SLICE_BYTES = 8 << 20
"""Packets, and octets of them, that are examined before others are served."""

_HOPS = UserFlags.RC.bits

PAUSE = 1
"""Milliseconds between two slices, in which others are served."""


class LocationState(enum.IntEnum):
    """The state of a message in its queue; the numbers are those of rpcqm_admin."""

    WAITING = 1
    BEING_READ = 2
    LEAVING = 3
    IN_TRANSACTION = 4


_WHEREABOUTS = {
    PositionState.AVAILABLE: LocationState.WAITING,
    PositionState.LOCKED: LocationState.BEING_READ,
    PositionState.PURGE_PENDING: LocationState.BEING_READ,
    PositionState.LEAVING: LocationState.LEAVING,
}


@dataclass(frozen=True, slots=True)
class MessageOrigin:
    """The message's own information about its way: `sent` is milliseconds since 1970.

    `hops` counts the routing servers on its way ([MS-MQMQ] 2.2.19.2, RC), `destination` is the
    format name of its queue, `dead` the reason of a dead letter.
    """

    sent: int
    hops: int
    destination: str
    dead: str = ""


@dataclass(frozen=True, slots=True)
class MessageLocation:
    """The place of a message; `queue` is a path name, of an outgoing queue the format name.

    `arrived` is milliseconds since 1970. A message sent in an open transaction has neither this nor
    a lookup identifier.
    """

    queue: str
    whereabouts: LocationState
    label: str
    lookup_identifier: int = 0
    arrived: int = 0
    origin: MessageOrigin | None = field(default=None, compare=False)


def find_message(
    store: Store, timers: Timers, queue_manager: QueueManager, identifier: MessageIdentifier
) -> Completion[list[MessageLocation]]:
    """Every place of a message and its copies: queues, journals, dead letters, outgoing queues.

    The completion fails with StoreStoppedError when the queue manager stops meanwhile.
    """
    return start(_find(store, timers, queue_manager.queue_collection, identifier))


async def _find(
    store: Store, timers: Timers, queues: Mapping[int, Queue], identifier: MessageIdentifier
) -> list[MessageLocation]:
    matches = _Matches(identifier)
    first = 0
    while (after := _look_on_disk(store, first, matches)) is not None:
        first = after
        await _pause(timers)
    express = store.express.serials()
    for at in range(0, len(express), SLICE):
        _look_in_memory(store, express[at : at + SLICE], matches)
        await _pause(timers)
    return [place for serial in matches.serials for place in _places(store, queues, serial)]


class _Matches:
    """Serials of the packets that have the identifier."""

    def __init__(self, identifier: MessageIdentifier) -> None:
        self._source = identifier.queue_manager_guid.bytes_le
        self._number = identifier.ordinal.to_bytes(4, "little")
        self.serials: list[int] = []

    def look(self, serial: int, packet: bytes) -> None:
        if packet[MESSAGE_ID] == self._number and packet[SOURCE_QUEUE_MANAGER] == self._source:
            self.serials.append(serial)


def _look_on_disk(store: Store, first: int, matches: _Matches) -> int | None:
    """Examine a slice of the packets; returns the serial to go on with, None at the end."""
    read = 0
    for number, (serial, packet) in enumerate(store.packets(first), 1):
        matches.look(serial, packet)
        read += len(packet)
        if number == SLICE or read >= SLICE_BYTES:
            return serial + 1
    return None


def _look_in_memory(store: Store, serials: list[int], matches: _Matches) -> None:
    for serial in serials:
        with contextlib.suppress(KeyError):  # it has been received meanwhile
            matches.look(serial, store.express.get(serial))


def _pause(timers: Timers) -> Completion[None]:
    over: Completion[None] = Completion()
    timers.call_later(PAUSE, lambda: over.succeed(None))
    return over


def _places(store: Store, queues: Mapping[int, Queue], serial: int) -> Iterator[MessageLocation]:
    for queue in list(queues.values()):
        for key in store.index(queue.queue_id).keys_of(serial):
            with contextlib.suppress(DecodeError, MQError, StoreError):  # it has gone meanwhile
                yield _place(store, queue, key)
    for transaction in store.uncommitted.values():
        for operation in transaction.operations.values():
            if operation.serial == serial:
                yield _place_in_transaction(store, queues, operation, serial)


def _place(store: Store, queue: Queue, key: int) -> MessageLocation:
    message = message_at(store, queue, key)
    state = queue.message_position_list.state(key)
    label, arrived = message.attributes.label, message.arrival_time
    return MessageLocation(
        _name(queue), _WHEREABOUTS[state], label, key, arrived, _origin(message, queue)
    )


def _origin(message: Message, queue: Queue) -> MessageOrigin:
    told = message.attributes
    destination = told.destination_queue_format_name
    return MessageOrigin(
        told.sent_time * 1000,
        message.envelope.user_flags & _HOPS,
        "" if destination is None else str(destination),
        class_name(told.message_class) if told.message_class and is_deadletter(queue) else "",
    )


def _place_in_transaction(
    store: Store, queues: Mapping[int, Queue], operation: UncommittedOperation, serial: int
) -> MessageLocation:
    flags = int.from_bytes(operation.data, "little")
    message = Message.restored(store.read_packet(serial), flags)
    queue = queues[operation.queue_id]
    label = message.attributes.label
    return MessageLocation(
        _name(queue), LocationState.IN_TRANSACTION, label, origin=_origin(message, queue)
    )


def _name(queue: Queue) -> str:
    if isinstance(queue, OutgoingQueue):
        return queue.destination_format_name
    return queue.pathname
