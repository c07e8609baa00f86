"""A batch: packets of one read that are taken together (`arrival_batches`)."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import repeat
from operator import add, gt, le
from typing import Any, NamedTuple, Protocol

from rpcqm.adm.message import NEVER as FOREVER
from rpcqm.adm.queue import Queue
from rpcqm.binary.connection.incoming_transfers import Changes, IncomingTransfer
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.connection.recent_messages import TakenRun, in_sequence
from rpcqm.binary.sequence import Stamp
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.fast.arrival_runs import ArrivalRun
from rpcqm.fast.doors.session_shapes import Shape
from rpcqm.fast.formats.packet_form import Alike, Values
from rpcqm.qm.timers import expiry_at
from rpcqm.store.records import NEVER
from rpcqm.store.transaction import StoreTransaction

MOST_MESSAGES = 1024
"""Messages of one read that are taken in one commit.

Bound `binary.messages_taken_together` [messages]: the others are taken in another commit.
"""
MOST_BYTES = 4 << 20
"""Octets of packets of one read that are taken in one commit.

One write stays short, and takes little memory.

Bound `binary.octets_taken_together` [octets]: the others are taken in another commit.
"""


class ArrivingSequence:
    """The progress of one incoming sequence with a batch."""

    __slots__ = (
        "before",
        "direct",
        "last",
        "moved",
        "queue_id",
        "remembered_as",
        "transfer",
        "value",
    )

    def __init__(self, transfer: IncomingTransfer, queue: Queue, direct: bool) -> None:
        self.transfer, self.queue_id, self.direct = transfer, queue.queue_id, direct
        self.before = transfer.incoming.copy()
        self.moved = False
        self.value = self.before.sequence.value
        self.remembered_as = in_sequence(transfer.key, self.value)
        self.last = Stamp(self.before.sequence, self.before.number, 0)

    def accept(self, values: Values) -> bool:
        """Whether a message is the next one of its sequence; only then it counts."""
        number = self.last.number
        if values.sequence != self.value or values.number <= number or values.previous > number:
            return False
        self.last = Stamp(self.last.sequence, values.number, values.previous)
        self.moved = True
        return True

    def accept_many(self, alike: Alike) -> bool:
        """The same for consecutive messages; only all of them count."""
        numbers = alike.numbers
        before = (self.last.number, *numbers[:-1])
        if (
            alike.sequences.count(self.value) < alike.length
            or not all(map(gt, numbers, before))
            or not all(map(le, alike.previous, before))
        ):
            return False
        self.last = Stamp(self.last.sequence, numbers[-1], alike.previous[-1])
        self.moved = True
        return True

    def advance(self, connection: PeerConnection, now: int) -> Changes:
        """Advance the sequence at `now` (seconds); returns the records that become durable with it.

        Messages that are not accepted come the careful way, and so does one that begins a sequence.
        """
        transfer, incoming = self.transfer, self.transfer.incoming
        changes: Changes = {transfer.rejected_key: None} if incoming.reject_count else {}
        incoming.number, incoming.reject_count = self.last.number, 0
        transfer.last_access_time = now
        transfer.arrived(connection, self.direct)
        transfer.queue_id = self.queue_id
        return changes

    def go_back(self) -> None:
        """Undo: the messages could not be taken."""
        self.transfer.incoming = self.before


class Place(NamedTuple):
    """The destination of the messages of a shape."""

    queue: Queue
    run: ArrivalRun
    sequence: ArrivingSequence | None


class Batch:
    """The packets of a read so far; nothing has been done with them yet."""

    def __init__(self, connection: PeerConnection, now: int) -> None:
        self.now = now
        """The time of arrival in milliseconds since 1970."""
        self.beside = connection.address.encode()
        self.count = self.recoverable = self.size = 0
        self.direct = self.each = self.mixed = False
        """Whether any has a direct destination; whether an arrival has consequences; whether
        neighbours differed, so that no more runs are sought."""
        self.told: list[tuple[Queue, MessageClass, bytes]] = []
        """Reports about other messages: their queues, their classes, and the other messages."""
        self.places: dict[Shape, Place | None] = {}
        self.runs: dict[int, ArrivalRun] = {}
        self.order: list[ArrivalRun] = []
        """The run of each message, in the order of their arrival."""
        self.sequences: dict[bytes, ArrivingSequence] = {}
        self.changes: Changes = {}
        """The records that prevent duplicates, written in the commit of the messages."""
        self.taken: list[TakenRun] = []
        """All of its messages, as they are remembered for comparison with later ones."""
        self.identities: dict[bytes, bool] = {}
        """Identities of messages that are in no sequence, and whether they are recoverable."""

    def run_for(self, queue: Queue, durable: bool) -> ArrivalRun | None:
        """The run of a queue; None where the batch has one of another kind already."""
        run = self.runs.get(queue.queue_id)
        if run is None:
            run = self.runs[queue.queue_id] = ArrivalRun(queue, durable)
        return run if run.durable is durable else None

    def sequence_for(
        self, transfer: IncomingTransfer, queue: Queue, direct: bool
    ) -> ArrivingSequence:
        sequence = self.sequences.get(transfer.key)
        if sequence is None:
            sequence = self.sequences[transfer.key] = ArrivingSequence(transfer, queue, direct)
        return sequence

    @property
    def moved(self) -> list[ArrivingSequence]:
        """The sequences of which any message has been accepted."""
        return [each for each in self.sequences.values() if each.moved]

    def append(self, run: ArrivalRun, shape: Shape, values: Values, packet: bytes) -> None:
        """Add a message to the batch."""
        expiry = NEVER
        if shape.time_to_be_received != FOREVER:
            expiry = expiry_at(values.sent_time, shape.time_to_be_received, self.now)
        self.order.append(run)
        self.each |= shape.asks
        if shape.tells is not None:
            self.told.append((run.queue, shape.tells, packet[shape.about]))
        run.stored.append(packet + self.beside)
        run.priorities.append(shape.priority)
        run.flags.append(shape.flags)
        run.expiries.append(expiry)
        self.count += 1
        self.recoverable += shape.recoverable
        self.size += values.size
        self.direct |= shape.is_direct

    def extend(
        self, run: ArrivalRun, shape: Shape, alike: Alike, size: int, packets: list[bytes]
    ) -> None:
        """Add neighbours of one size to the batch, as `append` does with each."""
        count, until, now, beside = alike.length, shape.time_to_be_received, self.now, self.beside
        self.order += [run] * count
        self.each |= shape.asks
        if shape.tells is not None:
            self.told += [(run.queue, shape.tells, packet[shape.about]) for packet in packets]
        run.stored += map(add, packets, repeat(beside))
        run.priorities += [shape.priority] * count
        run.flags += [shape.flags] * count
        run.expiries += (
            [NEVER] * count
            if until == FOREVER
            else [expiry_at(sent, until, now) for sent in alike.sent_times]
        )
        self.count += count
        self.recoverable += count * shape.recoverable
        self.size += count * size
        self.direct |= shape.is_direct

    def room_for(self, size: int) -> int:
        """How many packets of a size fit into the batch."""
        return min(MOST_MESSAGES - self.count, -((self.size - MOST_BYTES) // size))

    def in_order(self) -> Iterator[tuple[Queue, bytes]]:
        """The queue and the stored octets of each message, in the order of arrival."""
        following = {queue_id: iter(run.stored) for queue_id, run in self.runs.items()}
        for run in self.order:
            yield run.queue, next(following[run.queue.queue_id])

    @property
    def is_full(self) -> bool:
        return self.count >= MOST_MESSAGES or self.size >= MOST_BYTES


class ArrivalObserver(Protocol):
    """Compares a batch with the careful path for each of its packets."""

    def at_one_time(self) -> AbstractContextManager[None]:
        """Stop the clock within the block."""

    def rehearse(self, connection: PeerConnection, batch: Batch, octets: bytes) -> Any:
        """Take the packets of a batch one by one and undo it; returns the record for comparing."""

    def compare_commit(self, careful: Any, batch: Batch, change: StoreTransaction) -> None:
        """Compare the commit of a batch."""

    def comparing_session(
        self, careful: Any, connection: PeerConnection, batch: Batch
    ) -> AbstractContextManager[None]:
        """Compare the session's counts and output within the block."""
