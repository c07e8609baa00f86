"""The consequences of arrivals and removals: journals, dead letters, acknowledgements.

[MS-MQQB] 3.1.5.8.10, 3.1.7.2.1, 3.1.7.15 for administration acknowledgements, [MC-MQAC] 2.2.2.4 and
3.1.6.1.1 for journals and dead letters. All of it belongs to the commit that causes it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from rpcqm.adm.message import (
    FLAG_ADMINISTRATION_QUEUE,
    FLAG_APPLICATION_DEADLETTER,
    FLAG_NEGATIVE_JOURNALING,
    FLAG_POSITIVE_JOURNALING,
    FLAG_TRANSACTIONAL,
    KEPT_FLAGS,
    Message,
)
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import AcknowledgementsRequested, MessageClass
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK
from rpcqm.qm.access import AccessControl
from rpcqm.qm.acknowledgement_queues import (
    AcknowledgementQueues,
    unproven_source,
)
from rpcqm.qm.composing import Composer
from rpcqm.qm.message_counts import DEAD_LETTERS, why_dead
from rpcqm.qm.opening import Opening
from rpcqm.qm.outgoing_bounds import TooManyOutgoingQueuesError, source_of
from rpcqm.qm.positions import Positions
from rpcqm.qm.protocol_records import Changes, apply_changes
from rpcqm.qm.quotas import EnqueueRefusedError, Quotas
from rpcqm.qm.registry import QueueRegistry
from rpcqm.qm.sender_rights import SenderRights, is_source
from rpcqm.qm.settings import QueueManagerSettings
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

_log = get_logger("qm")

STRANGERS_DEAD_LETTERS = 256_000
"""What the dead-letter queue holds at most when a message from elsewhere joins it that could not be
delivered here.

Bound `strangers.dead_letters` [KB]: a refused message from elsewhere is not kept.
"""

_RECEIVED = MessageClass.MQMSG_CLASS_ACK_RECEIVE

ReceiptOf = Callable[
    [Message, MessageClass], tuple[MessageClass, FormatName | None, MessageIdentifier] | None
]

_DEAD_AT_DESTINATION = frozenset(
    {
        MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
        MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT,
        MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA,
        MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED,
        MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG,
        MessageClass.MQMSG_CLASS_NACK_Q_DELETED,
        MessageClass.MQMSG_CLASS_NACK_Q_PURGED,
        MessageClass.MQMSG_CLASS_NACK_RECEIVE_TIMEOUT,
    }
)
"""The reasons for which a destination or a router keeps a dead letter that is not transactional.

One of them is the deletion of its queue (G188, G583). Messages that their senders may not send, or
have not proved, are not kept.
"""

_INSECURE = frozenset(
    {
        MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q,
        MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION,
        MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE,
        MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED,
        MessageClass.MQMSG_CLASS_NACK_UNSUPPORTED_CRYPTO_PROVIDER,
    }
)
"""Classes that unauthenticated senders do not get unless SendInsecureNacks is set."""


class WantedAcknowledgement(NamedTuple):
    """An acknowledgement's class, its destination, and its subject if that is not the message."""

    message_class: MessageClass
    destination: FormatName | None
    correlation: MessageIdentifier | None = None


@dataclass(eq=False, repr=False)
class Acknowledgements:
    """Consequences of arrivals and removals, inside the commit that causes them."""

    _store: Store
    _queue_manager: QueueManager
    _settings: QueueManagerSettings
    _registry: QueueRegistry
    _quotas: Quotas
    _positions: Positions
    _access: AccessControl
    _opening: Opening
    _acknowledgement_queues: AcknowledgementQueues
    _composer: Composer
    _rights: SenderRights

    def __post_init__(self) -> None:
        self._positions.consequences = self
        self.receipt_of: ReceiptOf | None = None
        """The receipts that a message from HTTP asks for; the protocol that reads envelopes sets
        it."""

    # Arrivals

    def message_arrived(
        self, transaction: StoreTransaction, queue: Queue, message: Message, flags: int
    ) -> None:
        """Acknowledge a stored message, and journal it if it was sent here.

        A message in an outgoing queue has not arrived yet.
        """
        if isinstance(queue, OutgoingQueue):
            return
        if flags & FLAG_ADMINISTRATION_QUEUE:
            reached = MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE
            self.administration_acknowledgement(transaction, message, reached)
        if flags & FLAG_POSITIVE_JOURNALING and not flags & FLAG_TRANSACTIONAL:
            self._journal_copy(transaction, message)

    def _journal_copy(self, transaction: StoreTransaction, message: Message) -> None:
        """Positive source journaling of a message that is delivered here."""
        journal = self._queue_manager.system_journal_queue
        if journal is not None and is_source(self._queue_manager, message):
            self._insert_copy(transaction, message, journal)

    def _insert_copy(
        self,
        transaction: StoreTransaction,
        message: Message,
        target: Queue,
        reason: MessageClass | None = None,
    ) -> None:
        """Put a copy into a journal, or for a reason into a dead-letter queue, if there is room."""
        size = message.stored_size
        if not self._quotas.may_keep(target, size):
            return
        envelope = message.envelope
        flags = message.position_flags(envelope) & KEPT_FLAGS
        dead_letter_class = 0
        if reason is not None:
            dead_letter_class = int(reason)
            self._store.metrics.count(DEAD_LETTERS + why_dead(reason))
        self._positions.arrive(
            transaction,
            target,
            message,
            envelope,
            kept_flags=flags,
            dead_letter_class=dead_letter_class,
        )

    def is_usual_on_arrival(self, message: Message) -> bool:
        """Whether the arrival of messages like one makes no queue, and its acknowledgement is
        allowed: it goes to a machine that others have gone to before."""
        envelope = message.envelope
        if envelope.flags & FLAG_POSITIVE_JOURNALING and is_source(self._queue_manager, message):
            return False
        wanted = None
        if envelope.flags & FLAG_ADMINISTRATION_QUEUE:
            wanted = self._wanted(message, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)
        if wanted is None or wanted.destination is None:
            return True
        return self._opening.is_sent_elsewhere(wanted.destination)

    def acknowledgement_needs_no_new_queue(
        self, administration: FormatName | None, sender: Identity
    ) -> bool:
        """Whether an acknowledgement of a local sender's message makes no queue, and is allowed."""
        return administration is None or (
            self._opening.makes_no_queue(administration)
            and self._rights.may_name(administration, sender)
        )

    # Removals

    def message_removed(
        self,
        transaction: StoreTransaction,
        queue: Queue,
        key: int,
        reason: MessageClass,
        flags: int,
    ) -> None:
        """Acknowledge a removal, when the message asks for it ([MS-MQQB] 3.1.7.2.1).

        A transactional message that was sent here and goes to its queue's journal is copied to the
        source's, if it asks for that.
        """
        to_journal = reason == _RECEIVED and not queue.is_journal and queue.main.journaling
        if to_journal and self._is_journalled_at_source(queue, key, flags):
            self._journal_copy(transaction, self._positions.message_at(queue, key))
        if flags & FLAG_ADMINISTRATION_QUEUE:
            message = self._positions.message_at(queue, key)
            self.administration_acknowledgement(transaction, message, reason)

    def keeping_queue(
        self, queue: Queue, key: int, reason: MessageClass, flags: int, size: int
    ) -> Queue | None:
        """The queue for a removed message; None if it is not kept, or there is no room (G58)."""
        if queue.is_journal:
            return None
        if reason == _RECEIVED:
            target = self._journal(queue, key, flags)
        elif flags & FLAG_NEGATIVE_JOURNALING:
            target = self._deadletter(queue, key, reason, flags)
        else:
            return None
        if target is None or not self._quotas.may_keep(target, size):
            return None
        return target

    def queue_after_transfer(
        self, queue: Queue, key: int, reason: MessageClass | None, flags: int, size: int
    ) -> Queue | None:
        """The queue in which the source keeps a message after its destination's decision.

        `reason` is the class of the final acknowledgement, None when there is none to come. Source:
        [MS-MQQB] 3.1.5.7.
        """
        target: Queue | None = None
        if reason is None or reason == _RECEIVED:
            if flags & FLAG_POSITIVE_JOURNALING and self._is_from_here(queue, key):
                target = self._queue_manager.system_journal_queue
        elif flags & FLAG_NEGATIVE_JOURNALING:
            target = self._deadletter(queue, key, reason, flags)
        if target is None or not self._quotas.may_keep(target, size):
            return None
        return target

    def _is_from_here(self, queue: Queue, key: int) -> bool:
        return is_source(self._queue_manager, self._positions.message_at(queue, key))

    def _journal(self, queue: Queue, key: int, flags: int) -> Queue | None:
        """The target journal (G14); or, for a transactional message sent here, the source's."""
        main = queue.main
        if main.journaling:
            return main.journal_queue_reference
        if self._is_journalled_at_source(queue, key, flags):
            return self._queue_manager.system_journal_queue
        return None

    def _is_journalled_at_source(self, queue: Queue, key: int, flags: int) -> bool:
        """Whether a transactional message was sent here, and its source is to keep a copy."""
        wanted = FLAG_POSITIVE_JOURNALING | FLAG_TRANSACTIONAL
        return flags & wanted == wanted and self._is_from_here(queue, key)

    def _deadletter(self, queue: Queue, key: int, reason: MessageClass, flags: int) -> Queue | None:
        """The dead-letter queue for a message that asks for it.

        A transactional one is kept by its source only. Another one is kept where it could not
        leave, or where it expired or was purged ([MC-MQAC] 3.1.6.1.1, [MC-MQSRM] 3.1.7.3.2).
        """
        message: Message | None = None
        if flags & (FLAG_TRANSACTIONAL | FLAG_APPLICATION_DEADLETTER):
            message = self._positions.message_at(queue, key)
        return self._deadletter_of(message, bool(flags & FLAG_TRANSACTIONAL), queue, reason)

    def _deadletter_of(
        self, message: Message | None, transactional: bool, queue: Queue | None, reason: int
    ) -> Queue | None:
        """The dead-letter queue; `message` is given if it is transactional or names a queue of its
        application."""
        queue_manager = self._queue_manager
        if transactional:
            if message is None or not is_source(self._queue_manager, message):
                return None
            usual = queue_manager.system_transactional_deadletter_queue
        elif isinstance(queue, OutgoingQueue) or reason in _DEAD_AT_DESTINATION:
            usual = queue_manager.system_deadletter_queue
        else:
            return None
        chosen = None if message is None else self.application_deadletter(message)
        return chosen or usual

    def application_deadletter(self, message: Message) -> Queue | None:
        """The queue here that the application chose, if it can take the message.

        Its sender must still have the right to send there (G400). Source: [MS-MQDMPR] 3.1.1.12
        ApplicationDeadletterQueue, a path name.
        """
        if not message.application_deadletter_queue:
            return None
        try:
            queue = self._registry.find_kept_path(message.application_deadletter_queue)
        except MQError:
            return None
        if queue is None or queue.parent is not None:
            return None
        fits = queue.transactional == message.envelope.transactional
        return queue if fits and self._rights.may_write(message, queue) else None

    def message_lost(
        self,
        transaction: StoreTransaction,
        message: Message,
        reason: MessageClass,
        from_elsewhere: bool = False,
    ) -> None:
        """Acknowledge a message that never got into its queue, and keep a dead letter.

        Those of strangers are kept as long as there is room for others' as well (G188). The packet
        stays unchanged; the class is kept beside it (G189).
        """
        envelope = message.envelope
        flags = envelope.flags
        if flags & FLAG_ADMINISTRATION_QUEUE:
            self.administration_acknowledgement(transaction, message, reason)
        if not flags & FLAG_NEGATIVE_JOURNALING:
            return
        target = self._deadletter_of(message, envelope.transactional, None, reason)
        if target is None or (from_elsewhere and not self._has_room_for_strangers(target, message)):
            return
        self._insert_copy(transaction, message, target, reason)
        transaction.call_after(partial(self._positions.became_dead_letter, target, reason))

    def _has_room_for_strangers(self, target: Queue, message: Message) -> bool:
        size = message.stored_size
        try:
            self._quotas.admit(target, size)
        except EnqueueRefusedError:
            return False
        return self._quotas.has_room(target, STRANGERS_DEAD_LETTERS, size)

    def message_refused(
        self, message: Message, reason: MessageClass, changes: Changes | None = None
    ) -> Completion[None]:
        """Do the same in a commit of its own, for a message from elsewhere.

        `changes` of the records belong to it. A transactional message is kept by its source, even
        when that is here and the message has come back: it is still in its outgoing queue.
        """
        with self._store.transaction("refuse") as transaction:
            if not message.envelope.transactional:
                self.message_lost(transaction, message, reason, from_elsewhere=True)
            elif message.envelope.flags & FLAG_ADMINISTRATION_QUEUE:
                self.administration_acknowledgement(transaction, message, reason)
            apply_changes(transaction, changes)
            return transaction.committed

    # Administration acknowledgements

    def administration_acknowledgement(
        self, transaction: StoreTransaction, message: Message, reason: MessageClass
    ) -> None:
        """Send Administration Acknowledgment ([MS-MQQB] 3.1.7.15).

        Nothing is sent when the message did not ask for this class, when its packet cannot be
        read, or when the acknowledgement cannot be put into its queue. One for a queue elsewhere
        goes into an outgoing queue.
        """
        if reason in _INSECURE and not self._tells_insecurely(message):
            return
        try:
            wanted = self._wanted(message, reason)
            if wanted is None or wanted.destination is None:
                return
            destination = wanted.destination
            acknowledgement = self._composer.acknowledgement(
                message, wanted.message_class, destination, wanted.correlation
            )
            source = unproven_source(message)
            sender = self._rights.sender_of(message)
        except (DecodeError, MQError) as error:
            _log.warning("acknowledgement not sent", reason=reason.name, error=str(error))
            return
        self.send_if_possible(
            transaction, acknowledgement, destination, sender, source, origin=source_of(message)
        )

    def _tells_insecurely(self, message: Message) -> bool:
        """Whether the sender learns the reason; a local one learns others' reasons (G553)."""
        refused_elsewhere = isinstance(message.queue, OutgoingQueue) and not message.source_address
        return self._settings.send_insecure_nacks or refused_elsewhere

    def _wanted(self, message: Message, reason: MessageClass) -> WantedAcknowledgement | None:
        """The acknowledgement that a message asks for; one from HTTP has it in its envelope."""
        attributes = message.attributes
        if attributes.is_srmp and self.receipt_of is not None:
            found = self.receipt_of(message, reason)
            return None if found is None else WantedAcknowledgement(*found)
        if not attributes.acknowledgements_requested & _request_for(reason):
            return None
        return WantedAcknowledgement(reason, attributes.administration_queue_format_name)

    def send_if_possible(
        self,
        transaction: StoreTransaction,
        message: Message,
        destination: FormatName,
        sender: Identity,
        source: str = "",
        *,
        unbounded: bool = False,
        origin: str = "",
    ) -> None:
        """As `send_within` for a message that must not hinder its cause: it is dropped instead."""
        try:
            self.send_within(
                transaction,
                message,
                destination,
                sender,
                source,
                unbounded=unbounded,
                origin=origin,
            )
        except TooManyOutgoingQueuesError:
            return
        except MQError as error:
            reason = MessageClass(message.attributes.message_class)
            _log.warning("acknowledgement not sent", reason=reason.name, error=str(error))

    def send_within(
        self,
        transaction: StoreTransaction,
        message: Message,
        destination: FormatName,
        sender: Identity,
        source: str = "",
        *,
        unbounded: bool = False,
        origin: str = "",
    ) -> None:
        """Put a message of the queue manager's own into a queue, local or outgoing.

        `sender` is the account that has chosen the queue, and must have the right to write into a
        local one; `source` is the address of a stranger who asks for it, and a new queue counts for
        `origin`. An `unbounded` message has room whatever the quotas say, but for those of
        strangers.

        Nothing happens when the destination cannot be reached or is a local transactional queue;
        EnqueueRefusedError when it has no room, MQ_ERROR_ACCESS_DENIED, TooManyOutgoingQueuesError.
        """
        resolve = self._opening.resolve_for_sending
        target = resolve(destination, transaction, source, origin)
        if target is None:
            return
        if isinstance(target, OutgoingQueue):
            self._acknowledgement_queues.admit(target, len(message.packet))
        elif target.transactional:
            return
        else:
            right = MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE
            self._access.check_queue(target, sender, right)
        if not unbounded:
            self._quotas.admit(target, message.stored_size)
        self._positions.arrive(transaction, target, message, message.envelope, kept_flags=0)


def _request_for(reason: MessageClass) -> AcknowledgementsRequested:
    if reason == MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE:
        return AcknowledgementsRequested.ACK_POS_ARRIVAL
    if reason == _RECEIVED:
        return AcknowledgementsRequested.ACK_POS_RECEIVE
    if reason >= MessageClass.MQMSG_CLASS_NACK_Q_DELETED:
        return AcknowledgementsRequested.ACK_NEG_RECEIVE
    return AcknowledgementsRequested.ACK_NEG_ARRIVAL
