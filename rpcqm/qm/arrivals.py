"""Messages that other queue managers send here ([MS-MQQB] 3.1.5.8).

The steps of the core, in the order in which a protocol takes them: `destination`, `check_access`,
`check_expiry`, and `store` or `reject`. A protocol checks signatures, decrypts and keeps sequences
between them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID
from weakref import WeakValueDictionary

from rpcqm.adm.directory_object import NULL_GUID
from rpcqm.adm.enums import EnqueueStatus, QueueType
from rpcqm.adm.message import NEVER, Message
from rpcqm.adm.queue import IncomingTransactionalTransferInfo, OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.addresses import owner_of
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion
from rpcqm.base.errors import MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.patch import set_hop_count
from rpcqm.codec.packet.user import MAXIMUM_HOP_COUNT, UserFlags
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK
from rpcqm.qm.access import AccessControl
from rpcqm.qm.acknowledgements import Acknowledgements
from rpcqm.qm.directory import Directory
from rpcqm.qm.machine import is_internal
from rpcqm.qm.messages import MessageEvents
from rpcqm.qm.outgoing import Outgoing
from rpcqm.qm.outgoing_bounds import TooManyOutgoingQueuesError, source_of
from rpcqm.qm.protection import RejectedError
from rpcqm.qm.protocol_records import Changes
from rpcqm.qm.quotas import EnqueueRefusedError
from rpcqm.qm.registry import QueueRegistry
from rpcqm.qm.standing_orders import Admission

_HOP_COUNT = UserFlags.RC.bits


Decrypt = Callable[[bytes, bytes, int, int], bytes]
"""Decrypts a body with its key's SIMPLEBLOB, level and algorithm; DecodeError."""


@dataclass(eq=False, repr=False)
class Arrivals:
    """The receiving side's way into queues."""

    _clock: Clock
    _queue_manager: QueueManager
    _registry: QueueRegistry
    _outgoing: Outgoing
    _directory: Directory
    _access: AccessControl
    _acknowledgements: Acknowledgements
    _messages: MessageEvents
    _admission: Admission

    def __post_init__(self) -> None:
        self.decrypt: Decrypt | None = None
        """Decrypts bodies for this queue manager; a protocol with a key sets it."""
        self._infos: WeakValueDictionary[
            tuple[int, UUID, str], IncomingTransactionalTransferInfo
        ] = WeakValueDictionary()
        """The entries of queues' collections; searching those would take long."""

    def destination(self, message: Message) -> Queue:
        """The destination of a message: a local queue, or an outgoing one if it is to be forwarded.

        An address of zero is this queue manager (G21). Only a routing server forwards, which counts
        a hop in the packet. Raises RejectedError: BAD_DST_Q, NOT_TRANSACTIONAL_Q,
        NOT_TRANSACTIONAL_MSG, HOP_COUNT_EXCEEDED, ACCESS_DENIED, Q_EXCEED_QUOTA for a name too many
        of one neighbour.

        Source: [MS-MQQB] 3.1.5.8.2, .5.
        """
        address = message.attributes.destination_queue_manager_identifier
        if address not in (NULL_GUID, self._queue_manager.identifier):
            return self._forwarding_queue(message)
        name = message.attributes.destination_queue_format_name
        if name is None:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q)
        return self.queue_here(name, message.envelope.transactional)

    def queue_here(self, name: FormatName, transactional: bool) -> Queue:
        """The local queue of a name, whatever its host, if it takes such messages.

        Raises RejectedError as `destination`.
        """
        queue = self._registry.find_addressed_here(name)
        if queue is None or queue.parent is not None:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q)
        if queue.queue_type is QueueType.SYSTEM:
            # Nobody has rights to order_queue$ and notify_queue$ ([MS-MQDMPR] 3.1.3). Journals
            # and dead-letter queues are not in QueueCollection (G98).
            denied = MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED
            unknown = MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q
            raise RejectedError(denied if is_internal(queue) else unknown)
        if transactional and not queue.transactional:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q)
        if queue.transactional and not transactional:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG)
        return queue

    def _forwarding_queue(self, message: Message) -> Queue:
        """The queue of a message for another machine; only routing servers pass them on (G67)."""
        name = message.attributes.destination_queue_format_name
        if name is None or not self._queue_manager.routing_server:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q)
        hops = (message.envelope.user_flags & _HOP_COUNT) + 1
        if hops > MAXIMUM_HOP_COUNT:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED)
        queue = self._outgoing.find(name) or self._new_forwarding_queue(name, message)
        packet = bytearray(message.packet)
        set_hop_count(packet, hops)
        message.packet = bytes(packet)
        return queue

    def _new_forwarding_queue(self, name: FormatName, message: Message) -> Queue:
        """A queue for a neighbour's forwarded messages, which has a bounded number (G426)."""
        base_priority = self._directory.base_priority(name)
        origin = owner_of(source_of(message))
        try:
            return self._outgoing.create(name, base_priority=base_priority, origin=origin)
        except TooManyOutgoingQueuesError:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA) from None

    def check_access(self, queue: Queue, identity: Identity) -> None:
        """Raise RejectedError(ACCESS_DENIED) unless the sender may write ([MS-MQQB] 3.1.5.8.3)."""
        if queue.queue_type is QueueType.PUBLIC:
            self._directory.take_over_security(queue)
        try:
            self._access.check_queue(queue, identity, MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE)
        except MQError:
            raise RejectedError(MessageClass.MQMSG_CLASS_NACK_ACCESS_DENIED) from None

    def may_write_without_audit(self, queue: Queue, identity: Identity) -> bool:
        """Whether a sender may write into a queue without a line for each message in the log."""
        if queue.queue_manager is None or queue.trail or isinstance(queue, OutgoingQueue):
            return False
        if queue.queue_type is QueueType.PUBLIC:
            self._directory.take_over_security(queue)
        return self._access.allows_without_audit(
            queue, identity, MQQUEUEACCESSMASK.MQSEC_WRITE_MESSAGE
        )

    def check_expiry(self, message: Message) -> None:
        """Raise RejectedError(REACH_QUEUE_TIMEOUT) if the message came too late (G28)."""
        envelope = message.envelope
        age = self._clock.now() // 1000 - envelope.sent_time
        for seconds in (envelope.time_to_reach_queue, envelope.time_to_be_received):
            if seconds != NEVER and age > seconds:
                raise RejectedError(MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT)

    def store(
        self, queue: Queue, message: Message, changes: Changes | None = None
    ) -> Completion[None]:
        """Put a message into its queue, and acknowledge that ([MS-MQQB] 3.1.5.8.8, .10).

        `changes` of the records belong to the same commit. Raises RejectedError: Q_EXCEED_QUOTA.
        Raises MQError if the queue manager's quota or its disk is full: the session ends, and
        nothing has changed (G59). Raises MaintenanceError unless it is an acknowledgement.
        """
        self._admission.check_arrived(message.attributes.message_class)
        try:
            return self._messages.enqueue_message(queue, message, changes=changes)
        except EnqueueRefusedError as error:
            if error.reason is EnqueueStatus.QUEUE_QUOTA_EXCEEDED:
                reason = MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA
            elif error.reason is EnqueueStatus.TIMED_OUT_IN_TRANSIT:
                reason = MessageClass.MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT
            else:
                raise
            raise RejectedError(reason) from None

    def reject(
        self,
        message: Message,
        reason: MessageClass,
        changes: Changes | None = None,
        because: MessageClass | None = None,
    ) -> Completion[None]:
        """Refuse a message: acknowledge that and keep a dead letter, if the message asks for it.

        Where its sender must not learn the reason, `because` is the true one.
        """
        because = because or reason
        if because is not MessageClass.MQMSG_CLASS_NACK_Q_EXCEED_QUOTA:  # the queue has logged it
            self._messages.watch_rejected(message, because)
        return self._acknowledgements.message_refused(message, reason, changes)

    def transfer_info(
        self, queue: Queue, format_name: str, sender: UUID
    ) -> IncomingTransactionalTransferInfo:
        """The record of one sender's transfer to one name of a queue; made if it is new.

        Source: [MS-MQQB] 3.1.5.8.8, with the key of G55.
        """
        key = (queue.queue_id, sender, format_name)
        info = self._infos.get(key)
        if info is None:
            info = self._infos[key] = IncomingTransactionalTransferInfo(queue, format_name, sender)
            queue.incoming_transactional_transfer_info_collection.append(info)
        return info

    def forget_transfer_info(self, queue_id: int, format_name: str, sender: UUID) -> None:
        """Show that transfer no more, even if its queue has gone."""
        info = self._infos.pop((queue_id, sender, format_name), None)
        if info is not None:
            info.queue_reference.incoming_transactional_transfer_info_collection.remove(info)
