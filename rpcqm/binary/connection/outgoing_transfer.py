"""The messages of one outgoing queue on their way ([MS-MQQB] 3.1.5.5 to 3.1.5.7, 3.1.7.1).

A message in flight is locked; messages that a session has not acknowledged when it ends are given
back and sent again by the next one. Transactional messages of our own carry a stamp that is durable
before they leave, and stay until their order is acknowledged.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import compress, repeat

from rpcqm.adm.message import (
    FLAG_NEGATIVE_JOURNALING,
    FLAG_POSITIVE_JOURNALING,
    Message,
    MessagePosition,
)
from rpcqm.adm.queue import OutgoingQueue, OutgoingTransferInfo
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock, Timers
from rpcqm.base.completion import Completion
from rpcqm.base.each import run_all
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.log import get_logger
from rpcqm.binary.connection.message_security import CouldNotEncryptError, MessageSecurity
from rpcqm.binary.connection.outgoing_route import Connecting, OutgoingRoute
from rpcqm.binary.connection.outgoing_sequences import OutgoingSequences
from rpcqm.binary.connection.peer_connection import PeerConnection, Token
from rpcqm.binary.connection.remembered_peer import kept_peer, peer_key
from rpcqm.binary.connection.sequence_numbers import SequenceRecords
from rpcqm.binary.connection.together import NewRecords, SendsTogether, StampedWindow
from rpcqm.binary.connection.trace_reports import TraceReports
from rpcqm.binary.sequence import OutgoingSequence, Stamp
from rpcqm.binary.settings import BinarySettings
from rpcqm.binary.trace import is_traced
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.patch import set_sequence
from rpcqm.codec.packet.types import TxSequenceID
from rpcqm.codec.types.mqvalues import ConnectionStatus
from rpcqm.qm.dispatcher import SendDispatcher
from rpcqm.qm.message_trace import MessageTrace
from rpcqm.qm.protocol_records import Changes, ProtocolRecords
from rpcqm.qm.transfer import SentAs, Transfer, cannot_reach_queue, is_stamped_here
from rpcqm.store.transaction import StoreTransaction

_log = get_logger("binary")

_STAMPS_SOON = 100
"""Milliseconds in which stamps that are being written usually become durable."""

_JOURNALING = FLAG_NEGATIVE_JOURNALING | FLAG_POSITIVE_JOURNALING


@dataclass(eq=False, repr=False)
class Sending:
    """The collaborators that the transfers of all outgoing queues share."""

    clock: Clock
    timers: Timers
    queue_manager: QueueManager
    dispatcher: SendDispatcher
    transfer: Transfer
    records: ProtocolRecords
    message_trace: MessageTrace
    security: MessageSecurity
    reports: TraceReports
    sequences: "OutgoingSequences[OutgoingTransfer]"
    settings: Callable[[], BinarySettings]
    together: SendsTogether | None = None
    """Sends and removes several messages in one step; None to handle each alone."""


class OutgoingTransfer:
    """Sends the messages of one outgoing queue by its route."""

    def __init__(self, sending: Sending, connecting: Connecting, queue: OutgoingQueue) -> None:
        self._sending = sending
        self._transfer, self._dispatcher = sending.transfer, sending.dispatcher
        self._records, self._message_trace = sending.records, sending.message_trace
        self._sequences = sending.sequences
        self.queue = queue
        self.name = FormatName.parse(queue.destination_format_name)
        self.route = OutgoingRoute(connecting, queue, self.name, self)
        self._kept = SequenceRecords(sending.records, queue)
        self._pumping = False
        self.in_flight: dict[int, None] = {}
        self._stamping = 0
        """The number of messages whose stamps are being written, to leave over
        `_stamping_connection`."""
        self._stamping_connection: PeerConnection | None = None
        self.peer = kept_peer(self._records, queue)
        self._arrived: list[int] = []
        """Messages found at a restart that have arrived in order and are still to be removed."""
        self.sequence: OutgoingSequence | None = self._restored_sequence()

    @property
    def has_messages(self) -> bool:
        return self.queue.message_position_list.available > 0 or bool(self.in_flight)

    # The session

    def wake(self) -> None:
        """Look for messages to send ([MS-MQQB] 3.1.7.12)."""
        route = self.route
        if self._pumping or route.stopped:
            return
        if route.connection is not None:
            self.pump()
        else:
            route.look_for_connection()

    def session_opened(self) -> None:
        """Send messages whose order is not acknowledged again over the new session."""
        self._remember_peer()
        if self.sequence is not None:
            self.sequence.session_opened()

    def session_closed(self) -> None:
        """Give back the messages in flight ([MS-MQQB] 3.1.5.9)."""
        if self.sequence is not None:
            self.sequence.session_closed()
        self._give_back(self.in_flight)

    def _give_back(self, keys: Iterable[int]) -> None:
        """Let those of these messages that are in flight be sent again."""
        with self._not_pumping():
            for key in list(keys):
                if self.in_flight.pop(key, self) is None:
                    self._transfer.release(self.queue, key)

    def resend_now(self) -> None:
        """Send unacknowledged messages again, over a new session if there is none."""
        connection = self.route.connection
        if connection is None or not connection.session.is_open:
            self.route.try_now()
        elif self.sequence is not None:
            self.sequence.ladder.resend_now()

    def show(self, info: OutgoingTransferInfo) -> None:
        """Fill in the progress of its sequence for administrators."""
        if self.sequence is not None:
            self.sequence.show(info)

    def stop(self) -> None:
        """Stop the timers, at the queue manager's end."""
        self.route.disconnect("the queue manager stops")
        if self.sequence is not None:
            self.sequence.ladder.stop()

    # Sending

    def pump(self) -> None:
        """Have messages sent in their turn ([MS-MQQB] 3.1.7.12, 3.1.5.5.1)."""
        key = self.queue.message_position_list.first_available() if self._can_send() else None
        if key is not None:
            position = MessagePosition(self.queue, key)
            self._dispatcher.add_message_to_dispatch_collection(self, position)

    def _can_send(self) -> bool:
        connection = self.route.connection
        if self._pumping or connection is None or self.route.stopped:
            return False
        return not self._stamping or self._stamping_connection is connection

    def send(self) -> bool:
        """Send as many messages as the window allows ([MS-MQQB] 3.1.7.1).

        Returns False when another queue comes first.
        """
        connection = self.route.connection
        if connection is None or not self._can_send():
            return True
        window = StampedWindow()
        try:
            with self._not_pumping():
                return self._fill_window(connection, window)
        except Exception:
            connection.session.close("a message could not be sent")
            raise
        finally:
            if len(window):
                self._send_stamped(connection, window)

    def _fill_window(self, connection: PeerConnection, window: StampedWindow) -> bool:
        """Send messages that need no stamp; number the others, and keep them in the window."""
        together = self._sending.together
        while (room := connection.session.room - self._stamping - len(window)) > 0:
            if self._dispatcher.is_outranked(self.queue):
                return False
            if together is not None and together.fill(self, connection, window, room):
                continue
            message = self._transfer.lock_next(self.queue, self)
            if message is None:
                break
            self.in_flight[message.lookup_identifier] = None
            if is_stamped_here(message, self._sending.queue_manager.identifier):
                if not self._expired(message):
                    self.number(message.lookup_identifier, window.changes)
                    window.alone.append(message)
            elif (packet := self._packet_of(message)) is not None:
                connection.session.send(packet, Token(self, message.lookup_identifier))
                self._note_sent(message, connection)
        return True

    @contextmanager
    def _not_pumping(self) -> Iterator[None]:
        """Defer sending within the block, and catch up at its end, also after a failure."""
        self._pumping = True
        try:
            yield
        finally:
            self._pumping = False

    def _expired(self, message: Message) -> bool:
        """[MS-MQQB] 3.1.7.1.2; whether the time to reach the queue is over."""
        over = cannot_reach_queue(message, self._sending.clock.now() // 1000)
        if over:
            self._fail(message, MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT)
        return over

    def _packet_of(self, message: Message) -> bytes | None:
        """The packet to send; None when the message has expired, or cannot be encrypted.

        Source: [MS-MQQB] 3.1.7.1.5.1 (G552).
        """
        if self._expired(message):
            return None
        try:
            return self._sending.security.outgoing_packet(self.name, message)
        except CouldNotEncryptError as error:
            _log.warning("not encrypted", queue=str(self.name), reason=str(error))
            self.route.record(ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE)
            self._fail(message, MessageClass.MQMSG_CLASS_NACK_COULD_NOT_ENCRYPT)
            return None

    def _note_sent(self, message: Message, connection: PeerConnection) -> None:
        """Count a sent message ([MS-MQQB] 3.1.7.1.7)."""
        self._message_trace.sent(self.queue, message, connection.address)
        if is_traced(message.packet):
            self._sending.reports.send(message, connection.address)

    def _fail(self, message: Message, reason: MessageClass) -> None:
        """Remove a message that can never be sent."""
        self.in_flight.pop(message.lookup_identifier, None)
        self._transfer.failed(self.queue, message.lookup_identifier, reason)

    def number(self, key: int, changes: NewRecords) -> None:
        """Give a message the next number of the sequence, and add the records to `changes`."""
        sequence = self.sequence
        if sequence is None:
            sequence = self.sequence = self._new_sequence(self._sequences.first())
            changes[peer_key(self.queue)] = self.peer.encode()
        if sequence.number_of(key) is None:
            if sequence.drained:
                self._sequences.forget(sequence.identifier)
                sequence.restart(self._sequences.free(sequence.next_stamp.sequence))
            self._sequences.remember(sequence.identifier, self)
            stamp = sequence.assign(key)
            changes.update(self._kept.numbered(key, stamp.number, sequence.encode()))

    def _send_stamped(self, connection: PeerConnection, window: StampedWindow) -> None:
        """Write the stamps; no octet leaves before they are durable (G55)."""
        if not window.changes:
            self._transmit_stamped(connection, window)
            return
        self._stamping += len(window)
        self._stamping_connection = connection
        written = self._records.write(window.changes)
        written.add_done_callback(partial(self._stamps_written, connection, window))

    def _stamps_written(
        self, connection: PeerConnection, window: StampedWindow, outcome: Completion[None]
    ) -> None:
        self._stamping -= len(window)
        if self.route.connection is not connection or outcome.error is not None:
            self.pump()
        elif self.route.stopped:
            self._give_back(message.lookup_identifier for message in window)
        else:
            self._transmit_stamped(connection, window)

    def _transmit_stamped(self, connection: PeerConnection, window: StampedWindow) -> None:
        """Send in the order of the numbers; a removed message leaves a gap."""
        packets: list[bytes] = []
        together = self._sending.together
        if together is not None and window.together:
            packets = together.stamped(self, connection, window.together)
        alone = (self.stamped_packet(message, connection) for message in window.alone)
        packets += [packet for packet in alone if packet is not None]
        if packets:
            connection.session.send_many(packets, [None] * len(packets))
        assert self.sequence is not None
        self.sequence.ladder.wait()

    def stamp_in_flight(self, key: int) -> Stamp | None:
        """The stamp of a message; None if it was removed meanwhile."""
        sequence = self.sequence
        if sequence is None or key not in self.in_flight or sequence.number_of(key) is None:
            return None
        return sequence.stamp_of(key)

    def stamped_packet(self, message: Message, connection: PeerConnection) -> bytes | None:
        """The packet of a message with its stamp; None if it is not sent after all."""
        stamp = self.stamp_in_flight(message.lookup_identifier)
        plain = None if stamp is None else self._packet_of(message)
        if stamp is None or plain is None:
            return None
        packet = bytearray(plain)
        set_sequence(packet, stamp.sequence, stamp.number, stamp.previous)
        self._note_sent(message, connection)
        return bytes(packet)

    # Acknowledgements

    def _remember_peer(self) -> None:
        """Remember the peer, for acknowledgements that come after a restart."""
        connection, hops = self.route.connection, self.route.hops
        assert connection is not None
        addresses = {connection.address, *(hop.address for hop in hops)}
        guid = connection.session.remote_qm_guid
        peer = self.peer.now(guid, addresses, complete=bool(hops))
        if peer != self.peer:
            self.peer = peer
            if self.sequence is not None:
                self._records.write({peer_key(self.queue): peer.encode()})

    def acknowledged(self, keys: list[int]) -> None:
        """Note that the next hop has these messages ([MS-MQQB] 3.1.5.5.2 to .4)."""
        found = list(map(self.in_flight.pop, keys, repeat(self)))
        held = keys if self not in found else [*compress(keys, (each is None for each in found))]
        self._message_trace.acknowledged_together(self.queue, held, "by the next hop")
        together = self._sending.together
        if together is None or not together.delivered(self.queue, held):
            for key in held:
                self._delivered(key, None)

    def _delivered(self, key: int, changes: Changes | None) -> None:
        """Remove a delivered message; an administrator may have removed it meanwhile."""
        try:
            self._transfer.delivered(self.queue, key, changes)
        except MQError as error:
            if error.status is not HResult.MQ_ERROR_MESSAGE_NOT_FOUND:
                raise

    def order_ack(self, identifier: TxSequenceID, number: int) -> None:
        """Remove all messages up to a number: they have arrived in order ([MS-MQQB] 3.1.5.6)."""
        sequence = self.sequence
        if sequence is None:
            return
        keys = sequence.order_ack(identifier, number)
        together = self._sending.together
        if together is None or not together.arrived_in_order(
            self, keys, self._kept.without_all(keys, sequence.encode())
        ):
            for key in keys:
                self._arrived_in_order(key, sequence)
        self.pump()

    def changes_without(self, key: int) -> Changes:
        """The changes of records that delete a message's number."""
        assert self.sequence is not None
        return self._kept.without(key, self.sequence.encode())

    def finish_acknowledgement(self) -> None:
        """Remove messages that have arrived in order; the queue manager ended in the middle of
        that."""
        arrived, self._arrived = self._arrived, []
        for key in arrived:
            assert self.sequence is not None
            self._arrived_in_order(key, self.sequence)

    def _arrived_in_order(self, key: int, sequence: OutgoingSequence) -> None:
        held = self.in_flight.pop(key, self) is None
        position = self.queue.message_position_list.position(key)
        if position is None:
            return
        self._message_trace.acknowledged(self.queue, key, "in order")
        changes = self._kept.without(key, sequence.encode())
        if position.flags & _JOURNALING:
            if not held and not self.queue.message_position_list.lock(key, self):
                return
            sent_as = SentAs(sequence.identifier.value, self._kept.number(key))
            self._transfer.await_final_acknowledgement(self.queue, key, changes, sent_as)
        else:
            self._delivered(key, changes)

    def final_ack(self, identifier: TxSequenceID, number: int, reason: MessageClass) -> None:
        """Take the destination's decision about a message."""
        sequence = self.sequence
        if sequence is None or sequence.identifier != identifier:
            return
        for key in sequence.keys:
            if sequence.number_of(key) == number:
                sequence.forget(key)
                self.in_flight.pop(key, None)
                changes = self._kept.without(key, sequence.encode())
                self._transfer.finished(self.queue, key, reason, changes)
                break

    def resend(self) -> None:
        """Send every unacknowledged transactional message again ([MS-MQQB] 3.1.6.5)."""
        if self.sequence is None:
            return
        if self._stamping:
            self._sending.timers.call_later(_STAMPS_SOON, self.resend)
            return
        self._give_back(self.sequence.keys)
        self.wake()

    def removed(self, change: StoreTransaction, key: int) -> None:
        """Note that a message has left the queue in another way, for example by expiry."""
        self.in_flight.pop(key, None)
        if self.sequence is not None and self.sequence.number_of(key) is not None:
            self.sequence.forget(key)
            self._kept.forget(change, key)

    def left_together(self, change: StoreTransaction, keys: Sequence[int]) -> None:
        """Note the same for several messages."""
        if self.sequence is None:
            run_all(map(self.in_flight.pop, keys, repeat(None)))
            return
        for key in keys:
            self.removed(change, key)

    # Sequences over restarts

    def _new_sequence(self, identifier: TxSequenceID) -> OutgoingSequence:
        sending = self._sending
        table = sending.settings().resend_timer_table
        return OutgoingSequence(identifier, sending.clock, sending.timers, self.resend, table)

    def _restored_sequence(self) -> OutgoingSequence | None:
        data = self._kept.sequence()
        if data is None:
            return None
        sequence = self._new_sequence(TxSequenceID())
        self._arrived = sequence.restore(data, self._kept.numbers())
        self._sequences.remember(sequence.identifier, self)
        return sequence
