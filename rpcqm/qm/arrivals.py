"""Messages that other queue managers send here ([MS-MQQB] 3.1.5.8).

The steps that concern the core, in the order in which a protocol takes them. A protocol checks
signatures, decrypts and keeps sequences between them; `accept` is all of them for a protocol
that needs nothing between.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from rpcqm.adm.directory_object import NULL_GUID
from rpcqm.adm.enums import EnqueueStatus, QueuePrivacyLevel, QueueType
from rpcqm.adm.message import NEVER, Message
from rpcqm.adm.queue import IncomingTransactionalTransferInfo, OutgoingQueue, Queue
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.patch import set_hop_count
from rpcqm.codec.packet.user import MAXIMUM_HOP_COUNT
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK
from rpcqm.qm.quotas import EnqueueRefusedError
from rpcqm.qm.streams import Changes

if TYPE_CHECKING:
    from rpcqm.qm.engine import QueueManagerEngine

_HOP_COUNT = 0x1F


Decrypt = Callable[[bytes, bytes, int, int], bytes]
"""The clear body of an encrypted one, its key's SIMPLEBLOB, level and algorithm; DecodeError."""


class RejectedError(Exception):
    """A message is not taken; `reason` is the class of its negative acknowledgement."""

    def __init__(self, reason: MessageClass) -> None:
        super().__init__(reason.name)
        self.reason = reason


class Arrivals:
    """The receiving side's way into queues."""

    def __init__(self, engine: "QueueManagerEngine") -> None:
        self._engine = engine
        self.verify: Callable[[Message], bool] | None = None
        """Whether the signature of a message is good; a protocol that can tell sets it."""
        self.decrypt: Decrypt | None = None
        """Decrypts what was encrypted for this queue manager; a protocol with a key sets it."""

    def destination(self, message: Message) -> Queue:
        """Where a message goes: a queue here, or an outgoing queue when it is to be forwarded.

        An address of zero is this queue manager (G21). Only a routing server forwards, which
        counts a hop in the packet. RejectedError: BAD_DST_Q, NOT_TRANSACTIONAL_Q,
        NOT_TRANSACTIONAL_MSG, HOP_COUNT_EXCEEDED, ACCESS_DENIED. Source: [MS-MQQB] 3.1.5.8.2, .5.
        """
        address = message.attributes.destination_queue_manager_identifier
        if address not in (NULL_GUID, self._engine.queue_manager.identifier):
            return self._forwarding_queue(message)
        name = message.attributes.destination_queue_format_name
        queue = None if name is None else self._engine.queues.find_addressed_here(name)
        if queue is None or queue.parent is not None:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q)
        if queue.queue_type is QueueType.SYSTEM:
            raise RejectedError(self._refusal_of_system_queue(queue))
        transactional = message.envelope.transactional
        if transactional and not queue.transactional:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q)
        if queue.transactional and not transactional:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG)
        return queue

    def _refusal_of_system_queue(self, queue: Queue) -> MessageClass:
        """Why nobody sends to the queue manager's own queues (G98).

        Journals and dead-letter queues are not in QueueCollection; order_queue$ and notify_queue$
        are, but nobody has rights there ([MS-MQDMPR] 3.1.3).
        """
        if self._engine.initialization.is_internal(queue):
            return MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED
        return MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q

    def _forwarding_queue(self, message: Message) -> Queue:
        """Where a message for another machine waits; only routing servers pass them on (G67)."""
        name = message.attributes.destination_queue_format_name
        if name is None or not self._engine.queue_manager.routing_server:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q)
        hops = (message.envelope.user_flags & _HOP_COUNT) + 1
        if hops > MAXIMUM_HOP_COUNT:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED)
        packet = bytearray(message.packet)
        set_hop_count(packet, hops)
        message.packet = bytes(packet)
        return self._engine.outgoing.find(name) or self._engine.outgoing.create(name)

    def check_protection(self, queue: Queue, authenticated: bool, encrypted: bool) -> None:
        """What the queue demands of signatures and encryption (G28).

        RejectedError: BAD_SIGNATURE for an unsigned message to a queue that wants signed ones,
        BAD_ENCRYPTION for a clear one where bodies must be encrypted, or the other way round.
        """
        if queue.authentication and not authenticated:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_BAD_SIGNATURE)
        wanted = queue.privacy_level
        if (wanted is QueuePrivacyLevel.BODY and not encrypted) or (
            wanted is QueuePrivacyLevel.NONE and encrypted
        ):
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_BAD_ENCRYPTION)

    def check_sent(self, queue: Queue, message: Message) -> None:
        """What the queue demands of a message that is sent here; its sender is told at once.

        MQError: MESSAGE_NOT_AUTHENTICATED for an unsigned message to a queue that wants signed
        ones, FAIL_VERIFY_SIGNATURE_EX for a signature that is not good, INSUFFICIENT_PROPERTIES
        and ILLEGAL_PROPERTY_VALUE for a body that is to be private, or must not (G72).
        """
        if queue.authentication and not (self.verify and self.verify(message)):
            if message.attributes.signature:
                raise MQError(HResult.MQ_ERROR_FAIL_VERIFY_SIGNATURE_EX)
            raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_AUTHENTICATED)
        private = bool(message.attributes.privacy_level)
        if queue.privacy_level is QueuePrivacyLevel.BODY and not private:
            raise MQError(
                HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES, "the queue wants private bodies"
            )
        if queue.privacy_level is QueuePrivacyLevel.NONE and private:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, "the queue wants clear bodies")

    def check_access(self, queue: Queue, identity: Identity) -> None:
        """Whether the sender may write; RejectedError: ACCESS_DENIED ([MS-MQQB] 3.1.5.8.3)."""
        if queue.queue_type is QueueType.PUBLIC:
            self._engine.directory.take_over_security(queue)
        try:
            self._engine.access.check_queue(queue, identity, MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE)
        except MQError:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED) from None

    def check_expiry(self, message: Message) -> None:
        """Whether its time is over; RejectedError: REACH_QUEUE_TIMEOUT (G28)."""
        envelope = message.envelope
        age = self._engine.clock.now() // 1000 - envelope.sent_time
        for seconds in (envelope.time_to_reach_queue, envelope.time_to_be_received):
            if seconds != NEVER and age > seconds:
                raise RejectedError(MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT)

    def store(
        self, queue: Queue, message: Message, changes: Changes | None = None
    ) -> Completion[None]:
        """Put it into its queue, with the acknowledgement of that ([MS-MQQB] 3.1.5.8.8, .10).

        `changes` of the streams belong to the same commit. RejectedError: Q_EXCEED_QUOTA.
        MQError when the queue manager's quota or its disk is full: the session ends, and nothing
        has changed (G59).
        """
        try:
            return self._engine.messages.enqueue_message(queue, message, changes=changes)
        except EnqueueRefusedError as error:
            if error.reason is EnqueueStatus.QUEUE_QUOTA_EXCEEDED:
                reason = MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA
            elif error.reason is EnqueueStatus.TIMED_OUT_IN_TRANSIT:
                reason = MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
            else:
                raise
            raise RejectedError(reason) from None

    def reject(
        self, message: Message, reason: MessageClass, changes: Changes | None = None
    ) -> Completion[None]:
        """Acknowledge a refusal and keep a dead letter, as far as the message asks for it."""
        return self._engine.acknowledgements.message_refused(message, reason, changes)

    def accept(
        self,
        message: Message,
        identity: Identity,
        changes: Changes | None = None,
        *,
        authenticated: bool = False,
        encrypted: bool = False,
    ) -> Completion[MessageClass | None]:
        """Take a message, or reject it; None when it is stored, else why it is not.

        MQError when the queue manager has no room at all: then nothing has changed (G59).
        """
        try:
            stored = self._store_checked(message, identity, changes, authenticated, encrypted)
            reason = None
        except RejectedError as error:
            reason = error.reason
            stored = self.reject(message, reason, changes)
        outcome: Completion[MessageClass | None] = Completion()
        stored.add_done_callback(partial(_pass_on, outcome, reason))
        return outcome

    def _store_checked(
        self,
        message: Message,
        identity: Identity,
        changes: Changes | None,
        authenticated: bool,
        encrypted: bool,
    ) -> Completion[None]:
        queue = self.destination(message)
        if not isinstance(queue, OutgoingQueue):
            self.check_protection(queue, authenticated, encrypted)
            self.check_access(queue, identity)
        self.check_expiry(message)
        return self.store(queue, message, changes)

    def transfer_info(
        self, queue: Queue, format_name: str, sender: UUID
    ) -> IncomingTransactionalTransferInfo:
        """What is known of one sender's stream for one name of a queue; made when it is new.

        Source: [MS-MQQB] 3.1.5.8.8, with the key of G55.
        """
        collection = queue.incoming_transactional_transfer_info_collection
        for info in collection:
            if info.sender_identifier == sender and info.format_name == format_name:
                return info
        info = IncomingTransactionalTransferInfo(queue, format_name, sender)
        collection.append(info)
        return info


def _pass_on(
    outcome: Completion[MessageClass | None],
    reason: MessageClass | None,
    stored: Completion[None],
) -> None:
    if stored.error is not None:
        outcome.fail(stored.error)
    else:
        outcome.succeed(reason)
