"""Repeated packets of one read, taken together ([MS-MQQB] 3.1.5.8).

`Receiver` defines what is done with a message, and does it with each unrecognised, unusual or
refused one. Here a packet is recognised by its shape; for the first one of a shape in a read the
common conditions are checked; then all messages of the read are stored in one commit, with the
records that they were taken. A batch that cannot be taken as a whole has changed nothing, and its
packets go the careful way one by one.
"""

from collections.abc import Collection
from contextlib import nullcontext
from functools import partial
from itertools import islice
from typing import Any

from rpcqm.adm.message import Message
from rpcqm.adm.queue import Queue
from rpcqm.base.log import get_logger
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.connection.protocol import BinaryProtocol
from rpcqm.binary.connection.receiving import MOST_PENDING
from rpcqm.binary.connection.recent_messages import Number, TakenRun
from rpcqm.codec.packet.base import BASE_HEADER_SIZE
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.fields import PACKET_SIZE
from rpcqm.fast.arrival_runs import ArrivalRuns
from rpcqm.fast.doors.session_arrival import ArrivalObserver, Batch, Place
from rpcqm.fast.doors.session_shapes import KnownShapes, Shape, is_usual_arrival
from rpcqm.fast.formats.packet_form import Alike, Values
from rpcqm.fast.turn import Turn
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.protocol_records import apply_changes
from rpcqm.store.transaction import StoreTransaction

FEWEST = 2
"""The smallest batch: one packet alone costs as many checks as the careful path."""
MOST_MISSED = 1024
"""Packets in a row that are not tried with any shape, because as many before had none.

Bound `binary.packets_not_looked_at` [packets]: the next packet is looked at again.
"""

_log = get_logger("binary")


class ArrivalBatches:
    """Takes recognised packets of the reads of all connections."""

    def __init__(
        self, engine: QueueManagerEngine, protocol: BinaryProtocol, turn: Turn, runs: ArrivalRuns
    ) -> None:
        self._protocol, self._turn, self._runs = protocol, turn, runs
        self._arrived = ArrivedTogether(engine, protocol)
        self._store, self._clock = engine.store, engine.clock
        self._history = protocol.history
        self.shapes = KnownShapes(is_usual_arrival)
        self.shadow: ArrivalObserver | None = None
        if turn.shadow is not None:
            self.shadow = turn.shadow.of_arrivals(engine, protocol)
        self.taken = 0
        """Messages that were taken together with others."""

    def of(self, connection: PeerConnection) -> "Arriving":
        """The callable that takes the packets of a connection."""
        return Arriving(self, connection)

    @property
    def is_on(self) -> bool:
        """Whether packets may be taken together now."""
        return self._turn.is_on and not self._protocol.stopping

    def new_batch(self, connection: PeerConnection) -> Batch:
        """A batch for the packets that come over a connection now."""
        return Batch(connection, self._clock.now())

    def gather(self, batch: Batch, data: bytes, start: int) -> int:
        """Fill a batch; returns the place of the first packet that is not in it."""
        find, add, end = self.shapes.find, self._add, start
        while (found := find(data, end)) is not None:
            shape, values = found
            count = 0 if batch.mixed else self._add_alike(batch, shape, values.size, data, end)
            if not count and not add(batch, shape, values, data, end):
                break
            end += (count or 1) * values.size
            if batch.is_full:
                break
        return end

    # Filling a batch

    def _add(self, batch: Batch, shape: Shape, values: Values, data: bytes, start: int) -> bool:
        """Add a packet to a batch; False if the batch has to end before it."""
        packet = data[start : start + values.size]
        place = self._place(batch, shape, packet)
        if place is None or values.sent_time < batch.now // 1000 - shape.shortest:
            return False
        number: Number
        if place.sequence is not None:
            remembered_as, number = place.sequence.remembered_as, values.number
            if not place.sequence.accept(values):
                return False
        else:
            identity = shape.identity(values.message_id)
            if identity in batch.identities or identity in self._history:
                return False
            batch.identities[identity] = shape.recoverable
            remembered_as, number = b"", identity
        batch.taken.append(TakenRun(remembered_as, (number,), (packet,), values.size))
        batch.append(place.run, shape, values, packet)
        return True

    def _add_alike(self, batch: Batch, shape: Shape, size: int, data: bytes, start: int) -> int:
        """Add a packet and the next ones that are like it, as `_add` does with each; returns how
        many.

        It returns 0, and nothing has happened, where not all of them can be taken, or it is alone.
        Short runs end this for the batch: each look covers all packets behind it.
        """
        room = min(batch.room_for(size), (len(data) - start) // size)
        alike = shape.form.alike(data, start, size, room)
        batch.mixed = True
        if alike is None or min(alike.sent_times) < batch.now // 1000 - shape.shortest:
            return 0
        end = start + alike.length * size
        places = map(slice, range(start, end, size), range(start + size, end + size, size))
        packets = list(map(data.__getitem__, places))
        place = self._place(batch, shape, packets[0])
        if place is None or not self._are_new(batch, shape, place, alike):
            return 0
        batch.taken.append(_taken(batch, place, alike, packets, size))
        batch.extend(place.run, shape, alike, size, packets)
        batch.mixed = alike.length * 4 < room
        return alike.length

    def _are_new(self, batch: Batch, shape: Shape, place: Place, alike: Alike) -> bool:
        """Whether all of them are next in their sequence, or none has come before."""
        if place.sequence is not None:
            return place.sequence.accept_many(alike)
        identities = dict.fromkeys(shape.identities(alike.message_ids), shape.recoverable)
        if (
            len(identities) < alike.length
            or not batch.identities.keys().isdisjoint(identities)
            or not self._history.knows_none(identities)
        ):
            return False
        batch.identities.update(identities)
        return True

    def _place(self, batch: Batch, shape: Shape, packet: bytes) -> Place | None:
        try:
            return batch.places[shape]
        except KeyError:
            found = batch.places[shape] = self._place_of(batch, shape, packet)
            return found

    def _place_of(self, batch: Batch, shape: Shape, packet: bytes) -> Place | None:
        """The present destination of a shape's messages, from the first one; None if unusual."""
        message = Message(packet)
        try:
            queue = self._arrived.usual_destination(message)
        except Exception as error:  # the careful path reports it for each of them
            _log.debug("not taken together", error=str(error))
            return None
        run = None if queue is None else batch.run_for(queue, shape.recoverable)
        if queue is None or run is None:
            return None
        if not shape.transactional:
            return Place(queue, run, None)
        transfer = self._protocol.incoming_transfers.of(message)
        return Place(queue, run, batch.sequence_for(transfer, queue, shape.is_direct))

    # Carrying out

    def carry_out(
        self, connection: PeerConnection, batch: Batch, data: bytes, start: int, end: int
    ) -> bool:
        """Store a batch as a whole, and count its messages; False if nothing has happened."""
        shadow = self.shadow
        careful = None if shadow is None else shadow.rehearse(connection, batch, data[start:end])
        if not self._store_all(connection, batch, shadow, careful):
            return False
        self.taken += batch.count
        for run in batch.taken:
            self._protocol.recent.note(run, connection.address)
        self._store.metrics.count("templates.arrived", batch.count)
        return True

    def _store_all(
        self, connection: PeerConnection, batch: Batch, shadow: ArrivalObserver | None, careful: Any
    ) -> bool:
        first = connection.session.recoverable_message_received_count + 1
        settled = partial(self._settled, connection, batch, first)
        try:
            with self._store.transaction("messages that have arrived") as change:
                change.return_numbers_on_rollback()
                self._insert(change, batch)
                self._remember(change, connection, batch)
                if shadow is not None:
                    shadow.compare_commit(careful, batch, change)
                change.call_after(settled)
        except Exception as error:  # whatever it is, the careful path reports it to each
            _log.debug("not taken together", peer=connection.address, error=str(error))
            self._forget(batch)
            return False
        with (
            nullcontext()
            if shadow is None
            else shadow.comparing_session(careful, connection, batch)
        ):
            self._arrived.begin(connection, batch.count, batch.told)
            connection.session.count_messages(batch.count, batch.recoverable, direct=batch.direct)
        return True

    def _insert(self, change: StoreTransaction, batch: Batch) -> None:
        if batch.each:
            self._runs.insert_each(change, batch.in_order())
            return
        for run in batch.runs.values():
            self._runs.insert(change, run)

    def _remember(self, change: StoreTransaction, connection: PeerConnection, batch: Batch) -> None:
        """Add the records that the messages were taken to their commit."""
        changes = batch.changes
        transfers, now = self._protocol.incoming_transfers, self._clock.now() // 1000
        for sequence in batch.moved:
            changes.update(sequence.advance(connection, now))
            transfers.took(sequence.transfer, connection.address, changes)
            transfers.fed.add(sequence.queue_id)
            transfers.show(sequence.transfer)
        self._history.add_many(batch.identities, changes)
        apply_changes(change, changes)

    def _forget(self, batch: Batch) -> None:
        self._history.remove_many(batch.identities)
        for sequence in batch.moved:
            sequence.go_back()
        self._protocol.incoming_transfers.take_back(batch.changes)

    def _settled(self, connection: PeerConnection, batch: Batch, first: int) -> None:
        for sequence in batch.moved:
            sequence.transfer.settled(sequence.last)
        numbers = range(first, first + batch.recoverable)
        self._arrived.end(connection, batch.count, numbers)


class Arriving:
    """Takes the packets of one connection; the first of them may have come before."""

    __slots__ = ("_batches", "_connection", "_similar", "missed")

    def __init__(self, batches: ArrivalBatches, connection: PeerConnection) -> None:
        self._batches, self._connection = batches, connection
        self.missed = 0
        """The number of packets in a row that could not be taken together."""
        self._similar = b""
        """The comparable part of the last packet of unknown shape."""

    def __call__(self, data: bytes, start: int) -> tuple[int, int]:
        """Take packets from `start` on together.

        Returns the place of the first one that was not taken, and how many packets from there on
        have to go the careful way.
        """
        if len(data) - start < FEWEST * _size_at(data, start) or not self._batches.is_on:
            return start, 1
        shadow = self._batches.shadow
        with nullcontext() if shadow is None else shadow.at_one_time():
            return self._take(data, start)

    def _take(self, data: bytes, start: int) -> tuple[int, int]:
        connection, batches = self._connection, self._batches
        batch = batches.new_batch(connection)
        end = batches.gather(batch, data, start)
        if batch.count < FEWEST:
            return start, self._miss(data, end)
        if not batches.carry_out(connection, batch, data, start, end):
            self.missed = min(self.missed + batch.count, MOST_MISSED)
            return start, self.missed
        self.missed = 0
        return end, 0

    def _miss(self, data: bytes, start: int) -> int:
        """How many packets go the careful way, because of the one that begins there."""
        size, shapes = _size_at(data, start), self._batches.shapes
        if start + size > len(data):  # an incomplete packet cannot be judged
            return 1
        if shapes.find(data, start) is None:
            packet = data[start : start + size]
            self._similar = shapes.unknown(packet, self.missed, self._similar)
            if not self._similar:
                self.missed = 0
        self.missed = min(self.missed + 1, MOST_MISSED)
        return self.missed


class ArrivedTogether:
    """The effects of `Receiver` on each message that arrives, for many at once."""

    def __init__(self, engine: QueueManagerEngine, protocol: BinaryProtocol) -> None:
        self._receiver, self._arrivals = protocol.receiver, engine.arrivals
        self._security, self._protection = protocol.security, engine.protection
        self._acknowledgements = engine.acknowledgements
        self._message_trace = engine.message_trace

    def usual_destination(self, message: Message) -> Queue | None:
        """The queue for a message and others like it, if their arrival has no other effects.

        None where more has to be done. Raises the refusal of the message.
        """
        if not self._receiver.is_here(message):
            return None
        packet, queue = message.packet, self._arrivals.destination(message)
        checked = self._security.check(message)
        self._protection.check_arrived(queue, checked.authenticated, checked.encrypted)
        usual = self._arrivals.may_write_without_audit(queue, checked.identity)
        usual = usual and self._acknowledgements.is_usual_on_arrival(message)
        return queue if usual and message.packet is packet else None

    def begin(
        self,
        connection: PeerConnection,
        count: int,
        told: Collection[tuple[Queue, MessageClass, bytes]],
    ) -> None:
        """Note that messages have come that are not durable yet; `told` are their reports of
        others."""
        if told and self._message_trace:
            self._message_trace.arrived_together(told)
        before, connection.pending = connection.pending, connection.pending + count
        if before < MOST_PENDING <= connection.pending:
            connection.pause(True)

    def end(self, connection: PeerConnection, count: int, numbers: range) -> None:
        """Note that they are as durable as promised; `numbers` are those of recoverable ones."""
        before, connection.pending = connection.pending, connection.pending - count
        if before > MOST_PENDING // 2 >= connection.pending:
            connection.pause(False)
        connection.session.persisted_many(numbers)


def _taken(batch: Batch, place: Place, alike: Alike, packets: list[bytes], size: int) -> TakenRun:
    """Neighbours that a batch has accepted, in the form in which they are remembered."""
    octets = alike.length * size
    if place.sequence is not None:
        return TakenRun(place.sequence.remembered_as, alike.numbers, packets, octets)
    last = list(islice(reversed(batch.identities), alike.length))
    return TakenRun(b"", last[::-1], packets, octets)


def _size_at(data: bytes, start: int) -> int:
    """The size of the packet that begins there; for other octets more than there are."""
    if len(data) - start < BASE_HEADER_SIZE:
        return len(data)
    return int.from_bytes(data[start + PACKET_SIZE.start : start + PACKET_SIZE.stop], "little")
