"""The fields that the sending queue manager puts into a message."""

from collections.abc import Callable
from dataclasses import dataclass

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.directory_object import NULL_GUID
from rpcqm.adm.message import NEVER, Message
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.transaction import Transaction
from rpcqm.base.clock import Clock
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import (
    DeliveryGuarantee,
    MessageAuthenticationLevel,
    SenderIdentifierType,
)
from rpcqm.codec.packet.message import (
    MessageAttributes,
    PacketMessage,
    build_user_message,
    read_attributes,
)
from rpcqm.codec.packet.patch import set_authentication_level, with_transaction_marks
from rpcqm.codec.packet.transaction import TransactionFlags
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.codec.types.mqvalues import INFINITE, FormatNameType
from rpcqm.qm.directory import Directory
from rpcqm.qm.sender_rights import SenderRights, sender_beside
from rpcqm.store.store import Store

_ORDINAL_MASK = 0xFFFF_FFFF
"""The Uniquifier of an identifier has 32 bits; the counter goes on beyond them."""
_LAST_TRANSACTION = TransactionFlags.ID.mask


@dataclass(eq=False, repr=False)
class Composer:
    """Makes packets of applications' attributes."""

    _store: Store
    _clock: Clock
    _queue_manager: QueueManager
    _directory: Directory
    _rights: SenderRights

    def new_identifier(self) -> MessageIdentifier:
        """An identifier that no other message has."""
        ordinal = self._store.next_message_ordinal() & _ORDINAL_MASK
        return MessageIdentifier(self._queue_manager.identifier, ordinal)

    def _number_of(self, transaction: Transaction) -> int:
        """The number of a transaction in its messages ([MS-MQMQ] 2.2.20.5).

        The field has 20 bits, so that numbers come again after a million transactions (G171).
        """
        if not transaction.number:
            taken = self._store.counters.transaction.take()
            transaction.number = (taken - 1) % _LAST_TRANSACTION + 1
        return transaction.number

    def compose(
        self,
        descriptor: OpenQueueDescriptor,
        attributes: MessageAttributes,
        identity: Identity | None,
        transaction: Transaction | None = None,
        sign: Callable[[MessageAttributes], None] | None = None,
        *,
        names_sender: bool = False,
    ) -> Message:
        """A message to an open queue, with the values that the queue manager assigns.

        These are identifier, sending time, source, destination, sender and transaction, set in
        `attributes`; then `sign` adds a signature. A transactional message is recoverable. With
        `names_sender` the given sender stays.

        Raises MQError as `build_user_message` and `sign` raise, and ACCESS_DENIED for a queue named
        in it that the caller may not send to (G400).
        """
        name = descriptor.format_name
        message = attributes
        names_more = message.acknowledgements_requested or message.application_deadletter_queue
        if names_more and identity is not None:
            self._rights.check(message, identity)
        message.identifier = self.new_identifier()
        message.sent_time = self._clock.now() // 1000
        message.destination_queue_format_name = name
        self._set_destination_queue_manager(message, name)
        if descriptor.multiple or isinstance(descriptor.queue_reference, OutgoingQueue):
            self._name_own_queues(message)
            self._limit_transfer(message)
        if descriptor.multiple:
            message.destination_multi_queue_format_name = descriptor.format_names
        if transaction is not None:
            message.transaction_identifier = self._number_of(transaction)
            message.delivery_guarantee = DeliveryGuarantee.RECOVERABLE
        by_sid = message.sender_identifier_type == SenderIdentifierType.SID
        if identity is not None and by_sid and not names_sender:
            message.sender_identifier = sid_bytes(identity.sid)
        if sign is not None:
            sign(message)
        allow_peek = message.allow_peek_when_locked
        composed = Message(build_user_message(message), allow_peek_when_locked=allow_peek)
        composed.application_deadletter_queue = message.application_deadletter_queue
        if names_more:
            composed.sender = sender_beside(message, identity)
        return composed

    def _limit_transfer(self, message: MessageAttributes) -> None:
        """Give a message without a limit Enterprise.DefaultTimeToLive (G137)."""
        enterprise = self._queue_manager.enterprise_reference
        if (
            message.time_to_reach_queue == NEVER
            and enterprise is not None
            and "default_time_to_live" not in enterprise.unsaid
        ):
            message.time_to_reach_queue = enterprise.default_time_to_live

    def _name_own_queues(self, message: MessageAttributes) -> None:
        """Name own queues for answers as other machines do: `.` would be theirs (G74)."""
        for name in ("administration_queue_format_name", "response_queue_format_name"):
            own: FormatName | None = getattr(message, name)
            if own is not None:
                setattr(message, name, self._named_for_others(own))
        for name in (
            "administration_multi_queue_format_name",
            "response_multi_queue_format_name",
        ):
            several: tuple[FormatName, ...] = getattr(message, name)
            if several:
                setattr(message, name, tuple(map(self._named_for_others, several)))

    def _named_for_others(self, name: FormatName) -> FormatName:
        if not isinstance(name.value, str) or not _is_relative(name):
            return name
        return FormatName.direct(name.value.replace(".", self._queue_manager.computer_name, 1))

    def _set_destination_queue_manager(self, message: MessageAttributes, name: FormatName) -> None:
        if name.type is FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC:
            identifier = self._directory.destination_queue_manager(name)
            if identifier is not None:
                message.destination_queue_manager_identifier = identifier

    def readdressed(
        self, message: Message, single: OpenQueueDescriptor, several: OpenQueueDescriptor
    ) -> Message:
        """A copy of a message for one of several destinations ([MS-MQDMPR] 3.1.7.1.27).

        A local copy keeps the sign of its signature; one for HTTP has a signature of its own.
        """
        attributes = read_attributes(message.packet)
        attributes.destination_queue_format_name = single.format_name
        attributes.destination_multi_queue_format_name = several.format_names
        attributes.destination_queue_manager_identifier = NULL_GUID
        self._set_destination_queue_manager(attributes, single.format_name)
        level: int = MessageAuthenticationLevel.NONE
        if single.format_name.is_http and message.xml_signature:
            attributes.signature, level = message.xml_signature, MessageAuthenticationLevel.XMLSIG
            attributes.multiple_destination_signature = b""
        elif not isinstance(single.queue_reference, OutgoingQueue):
            level = attributes.authentication_level
        packet = bytearray(build_user_message(attributes))
        if level:
            set_authentication_level(packet, level)
        copy = Message(bytes(packet), allow_peek_when_locked=message.allow_peek_when_locked)
        copy.application_deadletter_queue = message.application_deadletter_queue
        copy.sender = message.sender
        return copy

    def mark_in_transaction(self, message: Message, first: bool, last: bool) -> bool:
        """Set FirstInTransaction and LastInTransaction in a packet; returns whether that changed
        it."""
        packet = with_transaction_marks(message.attributes, first, last)
        changed = packet is not message.packet
        message.packet = packet
        return changed

    def acknowledgement(
        self,
        message: Message,
        message_class: int,
        destination: FormatName,
        correlation: MessageIdentifier | None = None,
    ) -> Message:
        """The administration acknowledgement of a message ([MS-MQQB] 3.1.7.15).

        A receipt by HTTP has the label of its message and no body ([MC-MQSRM] 2.2.4.1, 2.2.2).
        """
        original = message.attributes
        about = original.destination_queue_format_name
        if about is not None and not _is_relative(destination):
            about = self._named_for_others(about)
        attributes = MessageAttributes(
            destination_queue_format_name=destination,
            identifier=self.new_identifier(),
            message_class=message_class,
            delivery_guarantee=original.delivery_guarantee,
            sent_time=self._clock.now() // 1000,
            time_to_reach_queue=INFINITE,
            correlation_identifier=correlation or original.identifier,
            response_queue_format_name=about,
            sender_identifier_type=SenderIdentifierType.NONE,
        )
        if original.is_srmp or destination.is_http:
            attributes.label = original.label
        if message_class >= 0x8000 and not _was_private(original) and not destination.is_http:
            attributes.body = original.body
            attributes.body_type = original.body_type
        self._set_destination_queue_manager(attributes, destination)
        return Message(build_user_message(attributes))


def _is_relative(name: FormatName) -> bool:
    """Whether a name means the machine of its reader: `DIRECT=OS:.\\…`."""
    return isinstance(name.value, str) and name.direct_name.host == "."


def _was_private(original: PacketMessage) -> bool:
    """Whether the body was private or encrypted on its way, and must not go back in clear."""
    header = original.security_header
    return bool(original.privacy_level or (header is not None and header.flags.EB))
