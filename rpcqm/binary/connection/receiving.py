"""Takes messages that arrive ([MS-MQQB] 3.1.5.6 to 3.1.5.8).

The session has counted them already. A message counts as taken when it is on the disk together with
the record that remembers it: the sequence of a transactional message, the history for any other.
"""

from collections.abc import Callable
from functools import partial

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion, failed
from rpcqm.base.errors import MQError
from rpcqm.base.log import get_logger
from rpcqm.binary.connection.arriving_acknowledgements import ArrivingAcknowledgements
from rpcqm.binary.connection.identities import identity_of, is_direct
from rpcqm.binary.connection.incoming_transfers import (
    Changes,
    IncomingTransfer,
    IncomingTransfers,
)
from rpcqm.binary.connection.message_security import MessageSecurity, forget_claimed_level
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.connection.recent_messages import ComparedMessages, identifier_of, in_sequence
from rpcqm.binary.connection.trace_reports import TraceReports
from rpcqm.binary.connection.transfer_acknowledgements import final_ack_body, stamp_in
from rpcqm.binary.sequence import IncomingSequence, Stamp
from rpcqm.binary.trace import is_traced
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.user import UserFlags
from rpcqm.qm.arrivals import Arrivals
from rpcqm.qm.forwarded import Forwarded, fingerprint
from rpcqm.qm.message_history import MessageIDHistory
from rpcqm.qm.message_trace import MessageTrace
from rpcqm.qm.protection import Protection, RejectedError
from rpcqm.qm.protocol_records import ProtocolRecords
from rpcqm.store.store import Store

_log = get_logger("binary")

_HOPS = UserFlags.RC.bits
MOST_PENDING = 512
"""Messages of one connection that are not on the disk yet.

Bound `binary.pending_messages` [messages]: nothing more is read from it until half of them are on
the disk.
"""


class Receiver:
    """Takes messages from all connections."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        queue_manager: QueueManager,
        records: ProtocolRecords,
        arrivals: Arrivals,
        protection: Protection,
        security: MessageSecurity,
        message_trace: MessageTrace,
        history: MessageIDHistory,
        recent: ComparedMessages,
        incoming_transfers: IncomingTransfers,
        acknowledged: ArrivingAcknowledgements,
        reports: TraceReports,
        forwarded: Forwarded,
    ) -> None:
        self._store, self._clock, self._queue_manager = store, clock, queue_manager
        self._records, self._arrivals, self._protection = records, arrivals, protection
        self._security, self._message_trace, self._history = security, message_trace, history
        self._recent, self._incoming_transfers = recent, incoming_transfers
        self._acknowledged, self._reports, self._forwarded = acknowledged, reports, forwarded

    def message_received(
        self,
        connection: PeerConnection,
        kind: PacketKind,
        attributes: PacketMessage,
        recoverable: int | None,
    ) -> None:
        """Decide about a message; `recoverable` is settled when the decision is durable."""
        if kind is PacketKind.USER_MESSAGE and self._is_withheld(attributes):
            connection.session.withhold()
            return
        message = Message.of(attributes)
        message.source_address = connection.address
        done = partial(self._settled, connection, recoverable)
        connection.pending += 1
        if connection.pending == MOST_PENDING:
            connection.pause(True)
        if kind is not PacketKind.USER_MESSAGE and self.is_here(message):
            acknowledged = self._acknowledged
            if kind is PacketKind.ORDER_ACK:
                acknowledged.order_ack(connection, message, done)
            else:
                acknowledged.final_ack(connection, message, done)
        elif message.envelope.transactional and self.is_here(message):
            self._take_in_sequence(connection, message, done)
        else:
            self._take(connection, message, done)

    def _is_withheld(self, attributes: PacketMessage) -> bool:
        """Whether a message is neither taken nor refused now: its sender keeps it (G632).

        It leaves no record, so that its sequence waits for it.
        """
        in_maintenance = self._queue_manager.maintenance is not None
        return in_maintenance and attributes.message_class == MessageClass.MQMSG_CLASS_NORMAL

    def is_here(self, message: Message) -> bool:
        """Whether this queue manager is the final destination (G21)."""
        address = message.attributes.destination_queue_manager_identifier
        return address in (NULL_GUID, self._queue_manager.identifier)

    def _settled(
        self,
        connection: PeerConnection,
        recoverable: int | None,
        outcome: Completion[None] | None = None,
    ) -> None:
        """Report to the session that a message is durable, or need not be."""
        connection.pending -= 1
        if connection.pending == MOST_PENDING // 2:
            connection.pause(False)
        if recoverable is not None and (outcome is None or outcome.error is None):
            connection.session.persisted(recoverable)

    # Messages

    def _take(
        self, connection: PeerConnection, message: Message, done: Callable[..., None]
    ) -> None:
        """Take a message that is in no sequence ending here, unless it has come before.

        A message for another machine may come back by a longer way, until its hops are too many
        (G76).
        """
        if message.envelope.transactional:
            self._forward_in_sequence(connection, message, done)
            return
        history = self._history
        identifier = identity_of(message)
        if not self.is_here(message):
            identifier += bytes((message.envelope.user_flags & _HOPS,))
        if identifier in history:
            self._recent.compare(connection, message, b"", identifier)
            history.refresh(identifier)
            self._records.write(history.take_stale()).add_done_callback(done)
            return
        changes: Changes = {}
        history.add(identifier, changes if message.envelope.recoverable else None)
        undo = partial(history.remove, identifier, changes)
        self._recent.note_one(b"", identifier, message.packet, connection.address)
        self._keep(connection, message, changes, done, undo, None)

    def _forward_in_sequence(
        self, connection: PeerConnection, message: Message, done: Callable[..., None]
    ) -> None:
        """Forward a transactional message as often as it comes (G112).

        Its destination finds repetitions. It is not stored again while the same message still waits
        here (G155).
        """
        printed = fingerprint(message)
        if printed in self._forwarded:
            done()
            return

        def settled(outcome: Completion[None]) -> None:
            if outcome.error is None:
                self._forwarded.add(printed, message)
            done(outcome)

        self._keep(connection, message, {}, settled, _nothing, None)

    def _take_in_sequence(
        self, connection: PeerConnection, message: Message, done: Callable[..., None]
    ) -> None:
        """Take a message exactly once and in order ([MS-MQQB] 3.1.5.8.6); others are dropped."""
        transfer = self._incoming_transfers.of(message)
        direct = is_direct(message)
        before = transfer.incoming.copy()
        stamp = stamp_in(message)
        accepted = transfer.incoming.accept(stamp)
        sequence = in_sequence(transfer.key, stamp.sequence.value)
        transfer.last_access_time = self._clock.now() // 1000
        transfer.arrived(connection, direct)
        if not accepted:
            self._recent.compare(connection, message, sequence, stamp.number)
            if not before.reject_count:
                _note_out_of_order(connection, message, stamp, before)
            self._keep_rejected(transfer).add_done_callback(done)
            return
        if stamp.sequence != before.sequence:  # a copy goes on in a sequence of its own
            self._recent.compare(connection, message, b"", identifier_of(message.packet))
        self._recent.note_one(sequence, stamp.number, message.packet, connection.address)
        changes: Changes = {transfer.rejected_key: None} if before.reject_count else {}

        def undo() -> None:
            before.durable = transfer.incoming.durable
            transfer.incoming = before
            self._incoming_transfers.take_back(changes)

        def settled(outcome: Completion[None]) -> None:
            if outcome.error is None:
                transfer.settled(stamp)
            done(outcome)

        self._keep(connection, message, changes, settled, undo, transfer)

    def _keep_rejected(self, transfer: IncomingTransfer) -> Completion[None]:
        """Store and show the number of rejected messages of a transfer that is in the store."""
        transfers = self._incoming_transfers
        if not transfer.queue_id or not transfers.is_kept(transfer):
            return self._records.write({})
        transfers.show(transfer)
        return self._records.write({transfer.rejected_key: transfer.encode_rejected()})

    def _keep(
        self,
        connection: PeerConnection,
        message: Message,
        changes: Changes,
        done: Callable[..., None],
        undo: Callable[[], None],
        transfer: IncomingTransfer | None,
    ) -> None:
        """Store a message: steps 3 to 10 of [MS-MQQB] 3.1.5.8.

        When the queue manager has no room at all, or fails in any other way, nothing has changed:
        the session closes and the peer sends again (G59).
        """
        try:
            stored = self._stored_or_refused(connection, message, changes, transfer, undo)
        except Exception as error:
            undo()
            done(failed(error))
            if not isinstance(error, MQError):
                raise
            connection.session.close(f"no room for a message: {error}")
            return
        stored.add_done_callback(done)

    def _stored_or_refused(
        self,
        connection: PeerConnection,
        message: Message,
        changes: Changes,
        transfer: IncomingTransfer | None,
        undo: Callable[[], None],
    ) -> Completion[None]:
        if self.is_here(message):
            forget_claimed_level(message)
        try:
            queue = self._arrivals.destination(message)
            if not isinstance(queue, OutgoingQueue):
                self._check_sender(queue, message)
            self._arrivals.check_expiry(message)
            if transfer is not None:
                self._note(transfer, queue, message.source_address, changes)
            stored = self._arrivals.store(queue, message, changes)
            if self._message_trace:
                self._message_trace.arrived(queue, message)
        except RejectedError as error:
            if transfer is None and error.sender_is_unproved:
                undo()
            return self._refuse(connection, message, error.reason, changes, transfer)
        if is_traced(message.packet):
            self._reports.send(message)
        return stored

    def _check_sender(self, queue: Queue, message: Message) -> None:
        """[MS-MQQB] 3.1.5.8.3: raise unless the sender, as far as it is proved, may write here."""
        checked = self._security.check(message)
        self._protection.check_arrived(queue, checked.authenticated, checked.encrypted)
        self._arrivals.check_access(queue, checked.identity)

    def _note(
        self, transfer: IncomingTransfer, queue: Queue, address: str, changes: Changes
    ) -> None:
        transfers = self._incoming_transfers
        transfer.queue_id = queue.queue_id
        transfers.fed.add(queue.queue_id)
        transfers.took(transfer, address, changes)
        transfers.show(transfer)

    def _refuse(
        self,
        connection: PeerConnection,
        message: Message,
        reason: MessageClass,
        changes: Changes,
        transfer: IncomingTransfer | None,
    ) -> Completion[None]:
        """Refuse a message, but count it as taken: acknowledged, it never comes again (G59)."""
        _log.info(
            "message refused",
            reason=reason.name,
            queue=str(message.attributes.destination_queue_format_name),
            sender=connection.address,
            id=str(message.attributes.identifier),
        )
        if transfer is not None:
            self._incoming_transfers.took(transfer, message.source_address, changes)
            self._incoming_transfers.show(transfer)
        refused = self._arrivals.reject(message, reason, changes)
        if message.envelope.transactional:
            self._tell_source(connection, message, reason)
        return refused

    def _tell_source(
        self, connection: PeerConnection, message: Message, reason: MessageClass
    ) -> None:
        """Acknowledge to the source that a transactional message goes no further."""
        own = self._queue_manager.identifier
        if message.attributes.identifier.queue_manager_guid == own:
            self._acknowledged.decided_here(final_ack_body(message), reason)
            return
        incoming = self._incoming_transfers.of(message)
        if not self.is_here(message):
            incoming.came_by(connection, is_direct(message))
        with self._store.transaction("final acknowledgement") as change:
            incoming.send_final_ack(change, message, reason)


def _nothing() -> None:
    """Undo nothing."""


def _note_out_of_order(
    connection: PeerConnection, message: Message, stamp: Stamp, before: IncomingSequence
) -> None:
    """Log the first message in a row that is not the next one of its sequence."""
    repeated = stamp.sequence == before.sequence and stamp.number <= before.number
    _log.info(
        "a message in sequence was dropped",
        peer=connection.address,
        queue_manager=str(message.attributes.source_machine_identifier),
        reason="it was taken before" if repeated else "messages before it are missing",
        sequence=stamp.sequence.value,
        number=stamp.number,
        last_sequence=before.sequence.value,
        last_number=before.number,
    )
