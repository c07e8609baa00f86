"""The way of one outgoing queue to its next hop ([MS-MQQB] 3.1.5.2, 3.1.5.9, 3.1.6.1, 3.1.7.1).

A message that is in flight is locked; what a session has not acknowledged when it ends is given
back and sent again by the next one. Transactional messages of our own carry a stamp that is
durable before they leave, and stay until their order is acknowledged.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import compress, repeat
from typing import TYPE_CHECKING

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.adm.message import (
    FLAG_NEGATIVE_JOURNALING,
    FLAG_POSITIVE_JOURNALING,
    Message,
    MessagePosition,
)
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.completion import Completion
from rpcqm.base.each import run_all
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.log import get_logger
from rpcqm.base.retry import RetryTimer
from rpcqm.binary.connection.connection_history import PROGRESS, ConnectionHistory
from rpcqm.binary.connection.message_security import CouldNotEncryptError
from rpcqm.binary.connection.peer_connection import NextHop, PeerConnection, Token
from rpcqm.binary.connection.remembered_peer import (
    kept_peer,
    peer_key,
)
from rpcqm.binary.connection.sequence_numbers import SequenceRecords
from rpcqm.binary.connection.together import NewRecords, StampedWindow
from rpcqm.binary.sequence import OutgoingSequence, Stamp
from rpcqm.binary.session_host import SessionState
from rpcqm.binary.trace import is_traced
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.patch import set_sequence
from rpcqm.codec.packet.types import TxSequenceID
from rpcqm.codec.types.mqvalues import ConnectionStatus
from rpcqm.qm.connection_failures import connect_failure
from rpcqm.qm.names import next_hop_text
from rpcqm.qm.protocol_records import Changes
from rpcqm.qm.transfer import SentAs, cannot_reach_queue, is_stamped_here
from rpcqm.store.transaction import StoreTransaction

if TYPE_CHECKING:
    from rpcqm.binary.connection.protocol import BinaryProtocol

_log = get_logger("binary")

_STOPPED = frozenset({OutgoingQueueState.ON_HOLD, OutgoingQueueState.LOCKED})
_STAMPS_SOON = 100
"""Milliseconds in which stamps that are being written become durable."""

_JOURNALING = FLAG_NEGATIVE_JOURNALING | FLAG_POSITIVE_JOURNALING


class OutgoingTransfer:
    """Sends the messages of one outgoing queue, over connections of its own or of its peer."""

    def __init__(self, protocol: "BinaryProtocol", queue: OutgoingQueue) -> None:
        self._protocol = protocol
        self._clock, self._timers = protocol.clock, protocol.timers
        self._queue_manager, self._outgoing = protocol.queue_manager, protocol.outgoing
        self._transfer, self._dispatcher = protocol.sending, protocol.dispatcher
        self._records, self._message_trace = protocol.protocol_records, protocol.message_trace
        self.queue = queue
        self.name = FormatName.parse(queue.destination_format_name)
        self.connection: PeerConnection | None = None
        self.hops: list[NextHop] = []
        self._next_hop = 0
        self._busy = False
        self._waiting = False
        self._unresolved = 0
        self._borrowed = False
        self._retrying = False
        self._retry = RetryTimer(
            protocol.timers, lambda: protocol.settings.session_retry_connect, self._retry_expired
        )
        self._kept = SequenceRecords(protocol.protocol_records, queue)
        self._pumping = False
        self._history = ConnectionHistory(protocol.outgoing, queue)
        self.in_flight: dict[int, None] = {}
        self._stamping = 0
        self._stamping_connection: PeerConnection | None = None
        self.peer = kept_peer(self._records, queue)
        self._arrived: list[int] = []
        """What a restart has found that was to be removed, because it has arrived in order."""
        self.sequence: OutgoingSequence | None = self._restored_sequence()

    @property
    def stopped(self) -> bool:
        """Whether nothing may be sent: on hold, locked, or the queue manager is offline."""
        return self.queue.state in _STOPPED or not self._queue_manager.connection_active

    @property
    def has_messages(self) -> bool:
        return self.queue.message_position_list.available > 0 or bool(self.in_flight)

    # Establishing a session

    def wake(self) -> None:
        """There is something to send ([MS-MQQB] 3.1.7.12)."""
        if self.stopped or self._busy or self._pumping:
            return
        if self.connection is not None:
            self.pump()
        elif not self._retry.runs and not self._waiting and self.has_messages:
            self._establish()

    def connection_available(self) -> None:
        """The queue manager that the queue leads to has connected: use its connection."""
        self._give_up_waiting()
        self.wake()

    def try_now(self) -> None:
        """Connect now, however often that has failed."""
        self._give_up_waiting()
        self._unresolved = 0
        if not self.stopped and self.connection is None:
            self._protocol.attempts.hurry(self.hops)
        self.wake()

    def _give_up_waiting(self) -> None:
        """Wait neither for the next attempt nor for somebody else's."""
        self._retry.cancel()
        if self._waiting:
            self._waiting = False
            self._protocol.attempts.leave(self)

    def _establish(self) -> None:
        """[MS-MQQB] 3.1.5.2: an open connection to that queue manager is as good as our own."""
        self._retry.cancel()
        self._busy = True
        found = self._protocol.borrowing.connection_to(self.name, self.queue)
        found.add_done_callback(self._looked_for)

    def _looked_for(self, outcome: Completion[PeerConnection | None]) -> None:
        """Without a connection of the peer that can be used, find out where to connect."""
        borrowed = outcome.result()
        if borrowed is None or not borrowed.session.is_open:
            hops = self._protocol.next_hops(self.name, self.queue.named_by)
            hops.add_done_callback(self._resolved)
            return
        self._busy = False
        if self.stopped:
            return
        self._borrowed = True
        self.connection = borrowed
        borrowed.users.append(self)
        self.queue.next_hops = [next_hop_text(borrowed.address)]
        self._record(ConnectionStatus.ESTABLISHED)
        self._opened()

    def _resolved(self, outcome: Completion[list[NextHop]]) -> None:
        """[MS-MQQB] 3.1.5.2.1: what waits and has no address to go to needs validation."""
        self._busy = False
        if self.stopped:
            return
        self.hops = [] if outcome.error is not None else outcome.result()
        self.queue.next_hops = [next_hop_text(hop.address) for hop in self.hops]
        if not self.hops:
            by_name = self._protocol.is_direct(self.name)
            no_data = ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE
            self._record(ConnectionStatus.DNS_FAILURE if by_name else no_data)
            if self.has_messages:
                self._set_state(OutgoingQueueState.NEED_VALIDATION)
            self._unresolved += 1
            self._retry_later(self._unresolved)
            return
        self._unresolved = 0
        self.look_again()

    def look_again(self) -> None:
        """Connect to the first address whose turn it is; else wait for that of one (G99)."""
        self._waiting = False
        if self.stopped or self.connection is not None or not self.has_messages:
            return
        turn = self._protocol.attempts.begin(self.hops, self)
        if turn is None:
            self._waiting = True
        else:
            self._connect(turn)

    def _connect(self, next_hop: int) -> None:
        self._next_hop = next_hop
        hop = self.hops[next_hop]
        direct = self._protocol.is_direct(self.name)
        connection = PeerConnection(
            self._protocol, initiator=True, remote=hop.qm_guid, direct=direct
        )
        connection.users.append(self)
        connection.repeats = self._retrying
        self.connection = connection
        self._borrowed = False
        self._set_state(OutgoingQueueState.WAITING)
        if self._protocol.ping is None or self._retrying:
            self._connect_to(hop, connection)
        else:
            asked = self._protocol.ping(hop.address)
            asked.add_done_callback(partial(self._pinged, hop, connection))

    def _pinged(self, hop: NextHop, connection: PeerConnection, outcome: Completion[bool]) -> None:
        """[MS-MQQB] 3.1.5.2.2."""
        if self.connection is not connection:
            return
        if not outcome.result():
            self._record(ConnectionStatus.PING_FAILURE)
            connection.session.close("the ping was not answered, or refused")
            return
        connection.pinged = True
        self._connect_to(hop, connection)

    def _connect_to(self, hop: NextHop, connection: PeerConnection) -> None:
        connected = self._protocol.network.connect(hop, connection)
        connected.add_done_callback(partial(self._connected, connection))

    def _connected(self, connection: PeerConnection, outcome: Completion[None]) -> None:
        if outcome.error is not None and self.connection is connection:
            self._record(*connect_failure(outcome.error))
            connection.session.close(f"cannot connect: {outcome.error}")

    def connection_changed(self, connection: PeerConnection, state: SessionState) -> None:
        """The handshake goes on ([MS-MQQB] 3.1.5.3.2, 3.1.5.4.2)."""
        status = PROGRESS.get(state)
        if status is not None:
            self._record(status)
        if state is SessionState.OPEN:
            self._protocol.attempts.ended(self, True)
            self.queue.next_hops = [next_hop_text(self.hops[self._next_hop].address)]
            self._opened()

    def _opened(self) -> None:
        self._retrying = False
        self._remember_peer()
        if self.sequence is not None:
            self.sequence.session_opened()
        self._set_state(OutgoingQueueState.CONNECTED)
        self.pump()

    def connection_closing(self, connection: PeerConnection) -> None:
        """[MS-MQQB] 3.1.5.9: only a session of its own leaves its trace in the queue's state."""
        if self.connection is connection and not self._borrowed:
            self._set_state(OutgoingQueueState.DISCONNECTING)

    def connection_closed(self, connection: PeerConnection, reason: str) -> None:
        """Give back what was in flight, and try again while there are messages.

        The next address is tried at once, the first one after the Session Retry Connect Timer.
        Source: [MS-MQQB] 3.1.5.9, 3.1.6.1.
        """
        if self.connection is not connection:
            return
        was_open = self._borrowed or connection.opened
        given_up = self.stopped or self._protocol.stopping
        if not given_up:
            self._history.ended(connection, bool(self.in_flight))
        self.connection = None
        if self.sequence is not None:
            self.sequence.session_closed()
        self._give_back(self.in_flight)
        self._set_state(OutgoingQueueState.DISCONNECTED)
        self._protocol.attempts.ended(self, None if given_up else False)
        if given_up:
            return
        if was_open or not self._connect_behind(self._next_hop + 1):
            self._retry_later()

    def _connect_behind(self, start: int) -> bool:
        """Try the next address; False when none is left whose turn it is."""
        turn = self._protocol.attempts.begin(self.hops[start:], self, wait=False)
        if turn is not None:
            self._connect(start + turn)
        return turn is not None

    def _give_back(self, keys: Iterable[int]) -> None:
        """What is in flight of these can be sent again."""
        with self._not_pumping():
            for key in list(keys):
                if self.in_flight.pop(key, self) is None:
                    self._transfer.release(self.queue, key)

    def _retry_later(self, failures: int = 1) -> None:
        if self.has_messages:
            self._retry.start(failures)

    def _retry_expired(self) -> None:
        """[MS-MQQB] 3.1.6.1."""
        self._retrying = True
        self.wake()

    # Administrators

    def hold(self) -> None:
        """The queue is on hold: what is in flight is acknowledged, nothing follows."""
        self._give_up_waiting()
        if self.connection is not None:
            self.connection.session.pause()

    def resume(self) -> None:
        """[MS-MQQB] 3.1.7.14."""
        if self.connection is not None and self.connection.session.is_open:
            self.connection.session.session_active = True
            self._set_state(OutgoingQueueState.CONNECTED)
        self.try_now()

    def resend_now(self) -> None:
        """Send what is not acknowledged again, over a new session if there is none."""
        if self.connection is None or not self.connection.session.is_open:
            self.try_now()
        elif self.sequence is not None:
            self.sequence.ladder.resend_now()

    def disconnect(self, reason: str) -> None:
        """Close the queue's own session, or stop using that of its peer."""
        self._give_up_waiting()
        connection = self.connection
        if connection is None:
            return
        if self._borrowed:
            connection.users.remove(self)
            self.connection_closed(connection, reason)
        else:
            connection.session.close(reason)

    def stop(self) -> None:
        """The queue manager stops."""
        self.disconnect("the queue manager stops")
        if self.sequence is not None:
            self.sequence.ladder.stop()

    # Sending

    def connection_window_moved(self, connection: PeerConnection) -> None:
        self.pump()

    def pump(self) -> None:
        """Have messages sent when it is their turn ([MS-MQQB] 3.1.7.12, 3.1.5.5.1)."""
        key = self.queue.message_position_list.first_available() if self._can_send() else None
        if key is not None:
            position = MessagePosition(self.queue, key)
            self._dispatcher.add_message_to_dispatch_collection(self, position)

    def _can_send(self) -> bool:
        if self._pumping or self.connection is None or self.stopped:
            return False
        return not self._stamping or self._stamping_connection is self.connection

    def send(self) -> bool:
        """Send what the window lets out ([MS-MQQB] 3.1.7.1); False when another queue is first."""
        connection = self.connection
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
        """Send what needs no stamp; number what needs one, and keep it in the window."""
        send_together = self._protocol.send_together
        while (room := connection.session.room - self._stamping - len(window)) > 0:
            if self._dispatcher.is_outranked(self.queue):
                return False
            if send_together is not None and send_together.fill(self, connection, window, room):
                continue
            message = self._transfer.lock_next(self.queue, self)
            if message is None:
                break
            self.in_flight[message.lookup_identifier] = None
            if is_stamped_here(message, self._queue_manager.identifier):
                if not self._expired(message):
                    self.number(message.lookup_identifier, window.changes)
                    window.alone.append(message)
            elif (packet := self._packet_of(message)) is not None:
                connection.session.send(packet, Token(self, message.lookup_identifier))
                self._note_sent(message, connection)
        return True

    @contextmanager
    def _not_pumping(self) -> Iterator[None]:
        """Nothing is sent meanwhile; it goes on afterwards whatever has happened."""
        self._pumping = True
        try:
            yield
        finally:
            self._pumping = False

    def _expired(self, message: Message) -> bool:
        """[MS-MQQB] 3.1.7.1.2; whether the time to reach the queue is over."""
        over = cannot_reach_queue(message, self._clock.now() // 1000)
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
            return self._protocol.outgoing_packet(self.name, message)
        except CouldNotEncryptError as error:
            _log.warning("not encrypted", queue=str(self.name), reason=str(error))
            self._record(ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE)
            self._fail(message, MessageClass.MQMSG_CLASS_NACK_COULD_NOT_ENCRYPT)
            return None

    def _note_sent(self, message: Message, connection: PeerConnection) -> None:
        """[MS-MQQB] 3.1.7.1.7."""
        self._message_trace.sent(self.queue, message, connection.address)
        if is_traced(message.packet):
            self._protocol.trace(message, connection.address)

    def _fail(self, message: Message, reason: MessageClass) -> None:
        """It will never be sent."""
        self.in_flight.pop(message.lookup_identifier, None)
        self._transfer.failed(self.queue, message.lookup_identifier, reason)

    def number(self, key: int, changes: NewRecords) -> None:
        """Give a message the next number of the sequence, with the changes that keep it."""
        sequence = self.sequence
        if sequence is None:
            sequence = self.sequence = self._new_sequence(self._protocol.next_sequence())
            changes[peer_key(self.queue)] = self.peer.encode()
        if sequence.number_of(key) is None:
            if sequence.drained:
                self._protocol.forget_sequence(sequence.identifier)
                sequence.restart(self._protocol.sequence_after(sequence.next_stamp.sequence))
            self._protocol.remember_sequence(sequence.identifier, self)
            stamp = sequence.assign(key)
            changes.update(self._kept.numbered(key, stamp.number, sequence.encode()))

    def _send_stamped(self, connection: PeerConnection, window: StampedWindow) -> None:
        """The stamps are durable before the first byte leaves (G55)."""
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
        if self.connection is not connection or outcome.error is not None:
            self.pump()
        elif self.stopped:
            self._give_back(message.lookup_identifier for message in window)
        else:
            self._transmit_stamped(connection, window)

    def _transmit_stamped(self, connection: PeerConnection, window: StampedWindow) -> None:
        """Send in the order of the numbers; what is gone by now leaves a gap."""
        packets: list[bytes] = []
        send_together = self._protocol.send_together
        if send_together is not None and window.together:
            packets = send_together.stamped(self, connection, window.together)
        alone = (self.stamped_packet(message, connection) for message in window.alone)
        packets += [packet for packet in alone if packet is not None]
        if packets:
            connection.session.send_many(packets, [None] * len(packets))
        assert self.sequence is not None
        self.sequence.ladder.wait()

    def stamp_in_flight(self, key: int) -> Stamp | None:
        """The stamp of a message; None if it is gone by now."""
        sequence = self.sequence
        if sequence is None or key not in self.in_flight or sequence.number_of(key) is None:
            return None
        return sequence.stamp_of(key)

    def stamped_packet(self, message: Message, connection: PeerConnection) -> bytes | None:
        """The packet of a message with its stamp; None if it does not leave after all."""
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
        assert self.connection is not None
        guid = self.connection.session.remote_qm_guid
        addresses = {self.connection.address, *(hop.address for hop in self.hops)}
        peer = self.peer.now(guid, addresses, complete=bool(self.hops))
        if peer != self.peer:
            self.peer = peer
            if self.sequence is not None:
                self._records.write({peer_key(self.queue): peer.encode()})

    def acknowledged(self, keys: list[int]) -> None:
        """The next hop has them ([MS-MQQB] 3.1.5.5.2 to .4)."""
        found = list(map(self.in_flight.pop, keys, repeat(self)))
        held = keys if self not in found else [*compress(keys, (each is None for each in found))]
        self._message_trace.acknowledged_together(self.queue, held, "by the next hop")
        send_together = self._protocol.send_together
        if send_together is None or not send_together.delivered(self.queue, held):
            for key in held:
                self._delivered(key, None)

    def _delivered(self, key: int, changes: Changes | None) -> None:
        """An administrator may have removed the message meanwhile."""
        try:
            self._transfer.delivered(self.queue, key, changes)
        except MQError as error:
            if error.status is not HResult.MQ_ERROR_MESSAGE_NOT_FOUND:
                raise

    def order_ack(self, identifier: TxSequenceID, number: int) -> None:
        """Everything up to a number has arrived in order ([MS-MQQB] 3.1.5.6)."""
        sequence = self.sequence
        if sequence is None:
            return
        keys = sequence.order_ack(identifier, number)
        send_together = self._protocol.send_together
        if send_together is None or not send_together.arrived_in_order(
            self, keys, self._kept.without_all(keys, sequence.encode())
        ):
            for key in keys:
                self._arrived_in_order(key, sequence)
        self.pump()

    def changes_without(self, key: int) -> Changes:
        """The changes of records by which a message has no number any more."""
        assert self.sequence is not None
        return self._kept.without(key, self.sequence.encode())

    def finish_acknowledgement(self) -> None:
        """Remove what has arrived in order, if the queue manager ended before all of it was."""
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
        """The destination has decided about a message that is still being sent."""
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
            self._timers.call_later(_STAMPS_SOON, self.resend)
            return
        self._give_back(self.sequence.keys)
        self.wake()

    def removed(self, change: StoreTransaction, key: int) -> None:
        """A message has left the queue some other way, for example because it expired."""
        self.in_flight.pop(key, None)
        if self.sequence is not None and self.sequence.number_of(key) is not None:
            self.sequence.forget(key)
            self._kept.forget(change, key)

    def left_together(self, change: StoreTransaction, keys: Sequence[int]) -> None:
        """`removed` of each."""
        if self.sequence is None:
            run_all(map(self.in_flight.pop, keys, repeat(None)))
            return
        for key in keys:
            self.removed(change, key)

    # Sequences over restarts

    def _new_sequence(self, identifier: TxSequenceID) -> OutgoingSequence:
        table = self._protocol.settings.resend_timer_table
        return OutgoingSequence(identifier, self._clock, self._timers, self.resend, table)

    def _restored_sequence(self) -> OutgoingSequence | None:
        data = self._kept.sequence()
        if data is None:
            return None
        sequence = self._new_sequence(TxSequenceID())
        self._arrived = sequence.restore(data, self._kept.numbers())
        self._protocol.remember_sequence(sequence.identifier, self)
        return sequence

    # What administrators see

    def _record(self, status: ConnectionStatus, error: int | None = None) -> None:
        hops = self.hops[self._next_hop : self._next_hop + 1]
        place = hops[0].address if hops and not self._borrowed else ""
        self._history.record(status, self.connection, place, error)

    def _set_state(self, state: OutgoingQueueState) -> None:
        if self.queue.state not in _STOPPED and self.queue.state is not state:
            self._outgoing.set_state(self.queue, state)
