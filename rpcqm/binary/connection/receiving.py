"""What happens to a message that has arrived ([MS-MQQB] 3.1.5.6 to 3.1.5.8).

Counting was the session's. A message is known to be taken when it is on the disk together with
what remembers that it was taken: the sequence of a transactional one, the history of another.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.completion import Completion, failed
from rpcqm.base.errors import MQError
from rpcqm.base.log import get_logger
from rpcqm.binary.connection.acknowledgement_authors import is_destination, is_router
from rpcqm.binary.connection.identities import identity_of, is_direct
from rpcqm.binary.connection.incoming_transfers import (
    Changes,
    IncomingTransfer,
    final_ack_body,
    stamp_in,
    transaction_header_of,
)
from rpcqm.binary.connection.message_security import forget_claimed_level
from rpcqm.binary.connection.outgoing_transfer import OutgoingTransfer
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.connection.recent_messages import Number, identifier_of, in_sequence
from rpcqm.binary.connection.session_reuse import plain
from rpcqm.binary.sequence import IncomingSequence, Stamp
from rpcqm.binary.trace import is_traced
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.internal import FinalAckBody, OrderAckBody
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.packet.user import UserFlags
from rpcqm.qm.forwarded import Forwarded, fingerprint
from rpcqm.qm.identity_conflicts import OTHER_CONTENT
from rpcqm.qm.protection import RejectedError
from rpcqm.qm.transfer import SentAs
from rpcqm.store.transaction import StoreTransaction

if TYPE_CHECKING:
    from rpcqm.binary.connection.protocol import BinaryProtocol

_log = get_logger("binary")

_JOURNALING = UserFlags.JN.bits | UserFlags.JP.bits
_HOPS = UserFlags.RC.bits
MOST_PENDING = 512
_TOLD_AGAIN = 60_000
_SENDER_UNPROVED = frozenset(
    {
        MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED,
        MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE,
        MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION,
    }
)
"""Refusals of which a forger must not make a duplicate of somebody's next message (G106)."""

_SAID_BY_ROUTERS = frozenset(
    {
        MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
        MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED,
        MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT,
        MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA,
    }
)
"""Why a message does not even reach its destination."""


class Receiver:
    """Takes messages from all connections."""

    def __init__(self, protocol: "BinaryProtocol") -> None:
        self._protocol = protocol
        self._queue_manager, self._clock = protocol.queue_manager, protocol.clock
        self._protocol_records, self._positions = protocol.protocol_records, protocol.positions
        self._sending, self._message_trace = protocol.sending, protocol.message_trace
        self._message_store = protocol.store
        self._arrivals = protocol.arrivals
        self._protection = protocol.protection
        self._forwarded = Forwarded()
        self._disbelieved = 0
        self._told: int | None = None

    def message_received(
        self,
        connection: PeerConnection,
        kind: PacketKind,
        attributes: PacketMessage,
        recoverable: int | None,
    ) -> None:
        """Decide about a message; `recoverable` is settled when that is durable."""
        message = Message.of(attributes)
        message.source_address = connection.address
        done = partial(self._settled, connection, recoverable)
        connection.pending += 1
        if connection.pending == MOST_PENDING:
            connection.pause(True)
        if kind is not PacketKind.USER_MESSAGE and self.is_here(message):
            self._acknowledgement(connection, kind, message, done)
        elif message.envelope.transactional and self.is_here(message):
            self._take_in_sequence(connection, message, done)
        else:
            self._take(connection, message, done)

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
        """Tell the session that a message is durable, or needs not be."""
        connection.pending -= 1
        if connection.pending == MOST_PENDING // 2:
            connection.pause(False)
        if recoverable is not None and (outcome is None or outcome.error is None):
            connection.session.persisted(recoverable)

    # Acknowledgements of our own transactional messages

    def _acknowledgement(
        self,
        connection: PeerConnection,
        kind: PacketKind,
        message: Message,
        done: Callable[..., None],
    ) -> None:
        if kind is PacketKind.ORDER_ACK:
            body = OrderAckBody.decode(message.attributes.body)
            transfer = self._protocol.transfer_of(body.tx_sequence_id)
            if transfer is not None and self._is_believed(transfer, connection, message):
                transfer.order_ack(body.tx_sequence_id, body.tx_sequence_number)
            done()
            return
        final = FinalAckBody.decode(message.attributes.body)
        reason = _class_of(message)
        transfer = self._transfer_of_final(final)
        arrived = self._sending.queue_awaiting(*_decided_about(final)) is not None
        of_routers = reason in _SAID_BY_ROUTERS and not arrived
        if transfer is not None and self._is_believed(transfer, connection, message, of_routers):
            self._decided(transfer, final, reason)
        written = self._protocol_records.write({})
        written.add_done_callback(done)

    def _transfer_of_final(self, final: FinalAckBody) -> OutgoingTransfer | None:
        """Where the message is that a final acknowledgement is about."""
        queue = self._sending.queue_awaiting(*_decided_about(final))
        if queue is not None:
            return self._protocol.transfer(queue)
        return self._protocol.transfer_of(final.tx_sequence_id)

    def _decided(
        self, transfer: OutgoingTransfer, final: FinalAckBody, reason: MessageClass
    ) -> None:
        identifier, sent_as = _decided_about(final)
        if self._sending.queue_awaiting(identifier, sent_as) is not None:
            self._sending.final_acknowledgement(identifier, reason, sent_as=sent_as)
        else:
            transfer.final_ack(final.tx_sequence_id, final.tx_sequence_number, reason)

    def _is_believed(
        self,
        transfer: OutgoingTransfer,
        connection: PeerConnection,
        message: Message,
        of_routers: bool = False,
    ) -> bool:
        """Whether an acknowledgement is the destination's; one log line a minute tells of others.

        Routers may say that a message has gone no further (G112), if it is not known that it has
        arrived: then they have had it once more (G160).
        """
        source = message.attributes.identifier.queue_manager_guid
        if is_destination(self._protocol, transfer, connection, source):
            return True
        if of_routers and is_router(self._protocol, transfer, source):
            return True
        self._disbelieved += 1
        now = self._clock.monotonic()
        if self._told is None or now - self._told >= _TOLD_AGAIN:
            self._told = now
            _log.warning(
                "acknowledgement of somebody else; binary.peers may name all addresses of a host",
                queue=str(transfer.name),
                peer=connection.address,
                count=self._disbelieved,
            )
        return False

    # Messages

    def _take(
        self, connection: PeerConnection, message: Message, done: Callable[..., None]
    ) -> None:
        """A message that is not in a sequence that ends here: duplicates are dropped.

        One that goes on to others may come back on a longer way, until its hops are too many (G76).
        """
        if message.envelope.transactional:
            self._forward_in_sequence(connection, message, done)
            return
        history = self._protocol.history
        identifier = identity_of(message)
        if not self.is_here(message):
            identifier += bytes((message.envelope.user_flags & _HOPS,))
        if identifier in history:
            self._compare(connection, message, b"", identifier)
            history.refresh(identifier)
            self._protocol_records.write(history.take_stale()).add_done_callback(done)
            return
        changes: Changes = {}
        history.add(identifier, changes if message.envelope.recoverable else None)
        undo = partial(history.remove, identifier, changes)
        self._protocol.recent.note_one(b"", identifier, message.packet, connection.address)
        self._store(connection, message, changes, done, undo, None)

    def _compare(
        self, connection: PeerConnection, message: Message, sequence: bytes, number: Number
    ) -> None:
        """Say so if a message is another one than the one that was taken under its name (G493)."""
        before = self._protocol.recent.differs(sequence, number, message.packet)
        if before is not None:
            source = message.attributes.identifier.queue_manager_guid
            places = plain(before), plain(connection.address)
            self._protocol.conflicts.note(source, *places, OTHER_CONTENT)

    def _forward_in_sequence(
        self, connection: PeerConnection, message: Message, done: Callable[..., None]
    ) -> None:
        """A transactional one goes on however often it comes: its destination tells (G112).

        Only while the same one waits here is it not stored again (G155).
        """
        printed = fingerprint(message)
        if printed in self._forwarded:
            done()
            return

        def settled(outcome: Completion[None]) -> None:
            if outcome.error is None:
                self._forwarded.add(printed, message)
            done(outcome)

        self._store(connection, message, {}, settled, _nothing, None)

    def _take_in_sequence(
        self, connection: PeerConnection, message: Message, done: Callable[..., None]
    ) -> None:
        """Exactly once and in order ([MS-MQQB] 3.1.5.8.6); what is not next is dropped."""
        transfer = self._protocol.incoming_transfers.of(message)
        direct = is_direct(message)
        before = transfer.incoming.copy()
        stamp = stamp_in(message)
        accepted = transfer.incoming.accept(stamp)
        sequence = in_sequence(transfer.key, stamp.sequence.value)
        transfer.last_access_time = self._clock.now() // 1000
        transfer.arrived(connection, direct)
        if not accepted:
            self._compare(connection, message, sequence, stamp.number)
            if not before.reject_count:
                _note_out_of_order(connection, message, stamp, before)
            self._keep_rejected(transfer).add_done_callback(done)
            return
        if stamp.sequence != before.sequence:  # a copy goes on in a sequence of its own
            self._compare(connection, message, b"", identifier_of(message.packet))
        self._protocol.recent.note_one(sequence, stamp.number, message.packet, connection.address)
        changes: Changes = {transfer.rejected_key: None} if before.reject_count else {}

        def undo() -> None:
            before.durable = transfer.incoming.durable
            transfer.incoming = before
            self._protocol.incoming_transfers.take_back(changes)

        def settled(outcome: Completion[None]) -> None:
            if outcome.error is None:
                transfer.settled(stamp)
            done(outcome)

        self._store(connection, message, changes, settled, undo, transfer)

    def _keep_rejected(self, transfer: IncomingTransfer) -> Completion[None]:
        """Keep and show how many messages were not accepted, of a transfer that is in the store."""
        transfers = self._protocol.incoming_transfers
        if not transfer.queue_id or not transfers.is_kept(transfer):
            return self._protocol_records.write({})
        transfers.show(transfer)
        return self._protocol_records.write({transfer.rejected_key: transfer.encode_rejected()})

    def _store(
        self,
        connection: PeerConnection,
        message: Message,
        changes: Changes,
        done: Callable[..., None],
        undo: Callable[[], None],
        transfer: IncomingTransfer | None,
    ) -> None:
        """Steps 3 to 10 of [MS-MQQB] 3.1.5.8.

        When the queue manager has no room at all, or fails in whatever way, nothing has changed:
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
            if transfer is None and error.reason in _SENDER_UNPROVED:
                undo()
            return self._refuse(connection, message, error.reason, changes, transfer)
        if is_traced(message.packet):
            self._protocol.trace(message)
        return stored

    def _check_sender(self, queue: Queue, message: Message) -> None:
        """[MS-MQQB] 3.1.5.8.3: who sent it, as far as that is proved, may write here."""
        checked = self._protocol.security.check(message)
        self._protection.check_arrived(queue, checked.authenticated, checked.encrypted)
        self._arrivals.check_access(queue, checked.identity)

    def _note(
        self, transfer: IncomingTransfer, queue: Queue, address: str, changes: Changes
    ) -> None:
        transfers = self._protocol.incoming_transfers
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
        """A refused message counts as taken: it is acknowledged, and never comes again (G59)."""
        _log.info(
            "message refused",
            reason=reason.name,
            queue=str(message.attributes.destination_queue_format_name),
            sender=connection.address,
            id=str(message.attributes.identifier),
        )
        if transfer is not None:
            self._protocol.incoming_transfers.took(transfer, message.source_address, changes)
            self._protocol.incoming_transfers.show(transfer)
        refused = self._arrivals.reject(message, reason, changes)
        if message.envelope.transactional:
            self._tell_source(connection, message, reason)
        return refused

    def _tell_source(
        self, connection: PeerConnection, message: Message, reason: MessageClass
    ) -> None:
        """A transactional message goes no further, be it for this machine or another one."""
        own = self._queue_manager.identifier
        if message.attributes.identifier.queue_manager_guid == own:
            final = final_ack_body(message)
            transfer = self._transfer_of_final(final)
            if transfer is not None:
                self._decided(transfer, final, reason)
            return
        incoming = self._protocol.incoming_transfers.of(message)
        if not self.is_here(message):
            incoming.came_by(connection, is_direct(message))
        with self._message_store.transaction("final acknowledgement") as change:
            incoming.send_final_ack(change, message, reason)

    # Removals

    def left_together(self, queue: OutgoingQueue, keys: Sequence[int]) -> None:
        """Messages have left an outgoing queue, as `removed` hears of each."""
        self._forwarded.removed_many(queue, keys)

    def removed(
        self, change: StoreTransaction, queue: Queue, key: int, reason: MessageClass
    ) -> None:
        """A message has left its queue: tell its source if that wants to know.

        Source: [MS-MQQB] 3.1.7.2.2.
        """
        if isinstance(queue, OutgoingQueue):
            self._forwarded.removed(queue, key)
            return
        if queue.main.queue_id not in self._protocol.incoming_transfers.fed or queue.is_journal:
            return
        message = self._positions.message_at(queue, key)
        envelope = message.envelope
        own = self._queue_manager.identifier.bytes_le
        if not envelope.transactional or envelope.source_machine == own:
            return
        if message.attributes.is_srmp:
            return
        header = transaction_header_of(message)
        if envelope.user_flags & _JOURNALING or header.flags.FA:
            self._protocol.incoming_transfers.of(message).send_final_ack(change, message, reason)


def _decided_about(final: FinalAckBody) -> tuple[MessageIdentifier, SentAs]:
    """What tells the message of a final acknowledgement from all others, and from its copies."""
    identifier = MessageIdentifier(final.source_guid, final.message_id)
    return identifier, SentAs(final.tx_sequence_id.value, final.tx_sequence_number)


def _nothing() -> None:
    """There is nothing to undo."""


def _class_of(message: Message) -> MessageClass:
    """The class of a final acknowledgement; a number that has no name is a rejection (G551)."""
    try:
        return MessageClass(message.attributes.message_class)
    except ValueError:
        return MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED


def _note_out_of_order(
    connection: PeerConnection, message: Message, stamp: Stamp, before: IncomingSequence
) -> None:
    """One line for the first message in a row that is not the next one of its sequence."""
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
