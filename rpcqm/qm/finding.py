"""Finding a message by its identifier, in whatever queue it is.

Queues are ordered by lookup identifier and packets by serial, and an index of identifiers would
cost every message that comes. So the packets are read through once, in slices between which
others are served: a few seconds for a million messages.
"""

import contextlib
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.store.errors import StoreError
from rpcqm.store.staged import StagedOperation

if TYPE_CHECKING:
    from rpcqm.qm.engine import QueueManagerEngine

SLICE = 2_000
SLICE_BYTES = 8 << 20
"""Packets, and bytes of them, that are looked at before others are served."""

PAUSE = 1
"""Milliseconds for them."""

_SOURCE, _NUMBER = slice(16, 32), slice(56, 60)
"""SourceQueueManager and MessageID in BaseHeader and UserHeader ([MS-MQMQ] 2.2.20.1, .2)."""


class Whereabouts(enum.IntEnum):
    """How a message is in its queue; the numbers are those of rpcqm_admin."""

    WAITING = 1
    BEING_READ = 2
    LEAVING = 3
    IN_TRANSACTION = 4


_WHEREABOUTS = {
    PositionState.AVAILABLE: Whereabouts.WAITING,
    PositionState.LOCKED: Whereabouts.BEING_READ,
    PositionState.PURGE_PENDING: Whereabouts.BEING_READ,
    PositionState.LEAVING: Whereabouts.LEAVING,
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message is; `queue` is a path name, of an outgoing queue the format name.

    `arrived` is milliseconds since 1970. Sent in a transaction that is still open, it has neither
    this nor a lookup identifier.
    """

    queue: str
    whereabouts: Whereabouts
    label: str
    lookup_identifier: int = 0
    arrived: int = 0


def find_message(
    engine: "QueueManagerEngine", identifier: MessageIdentifier
) -> Completion[list[Place]]:
    """Every place of a message and its copies: queues, journals, dead letters, outgoing queues.

    The completion fails with StoreStoppedError when the queue manager stops meanwhile.
    """
    return start(_find(engine, identifier))


async def _find(engine: "QueueManagerEngine", identifier: MessageIdentifier) -> list[Place]:
    matches = _Matches(identifier)
    first = 0
    while (after := _look_on_disk(engine, first, matches)) is not None:
        first = after
        await _pause(engine)
    express = engine.store.express.serials()
    for at in range(0, len(express), SLICE):
        _look_in_memory(engine, express[at : at + SLICE], matches)
        await _pause(engine)
    return [place for serial in matches.serials for place in _places(engine, serial)]


class _Matches:
    """Serials of the packets that have the identifier."""

    def __init__(self, identifier: MessageIdentifier) -> None:
        self._source = identifier.queue_manager_guid.bytes_le
        self._number = identifier.ordinal.to_bytes(4, "little")
        self.serials: list[int] = []

    def look(self, serial: int, packet: bytes) -> None:
        if packet[_NUMBER] == self._number and packet[_SOURCE] == self._source:
            self.serials.append(serial)


def _look_on_disk(engine: "QueueManagerEngine", first: int, matches: _Matches) -> int | None:
    """Look at a slice; the serial to go on with, None at the end."""
    read = 0
    for number, (serial, packet) in enumerate(engine.store.packets(first), 1):
        matches.look(serial, packet)
        read += len(packet)
        if number == SLICE or read >= SLICE_BYTES:
            return serial + 1
    return None


def _look_in_memory(engine: "QueueManagerEngine", serials: list[int], matches: _Matches) -> None:
    for serial in serials:
        with contextlib.suppress(KeyError):  # it has been received meanwhile
            matches.look(serial, engine.store.express.get(serial))


def _pause(engine: "QueueManagerEngine") -> Completion[None]:
    over: Completion[None] = Completion()
    engine.timers.call_later(PAUSE, lambda: over.succeed(None))
    return over


def _places(engine: "QueueManagerEngine", serial: int) -> Iterator[Place]:
    for queue in list(engine.queues.by_id.values()):
        for key in engine.store.index(queue.queue_id).keys_of(serial):
            with contextlib.suppress(DecodeError, MQError, StoreError):
                yield _place(engine, queue, key)
    for transaction in engine.store.staged.values():
        for operation in transaction.operations.values():
            if operation.serial == serial:
                yield _place_in_transaction(engine, operation, serial)


def _place(engine: "QueueManagerEngine", queue: Queue, key: int) -> Place:
    message = engine.positions.message_at(queue, key)
    state = queue.message_position_list.state(key)
    return Place(
        _name(queue), _WHEREABOUTS[state], message.attributes.label, key, message.arrival_time
    )


def _place_in_transaction(
    engine: "QueueManagerEngine", operation: StagedOperation, serial: int
) -> Place:
    flags = int.from_bytes(operation.data, "little")
    message = Message.restored(engine.store.read_packet(serial), flags)
    queue = engine.queues.by_id[operation.queue_id]
    return Place(_name(queue), Whereabouts.IN_TRANSACTION, message.attributes.label)


def _name(queue: Queue) -> str:
    if isinstance(queue, OutgoingQueue):
        return queue.destination_format_name
    return queue.pathname
