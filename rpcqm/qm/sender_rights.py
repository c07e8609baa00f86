"""What the sender of a message may have written elsewhere because the message names it (G400).

Acknowledgements, dead letters and reports are the queue manager's own messages, but the sender has
chosen where they go. They need the sender's right to send there: it is asked for when the message
is composed, with the scope of a token, and again by the sender's SID when they are written.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rpcqm.adm.enums import QueueType
from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.errors import DecodeError
from rpcqm.base.identity import ANONYMOUS, ANONYMOUS_LOGON, Identity, authenticated
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import SenderIdentifierType
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage
from rpcqm.codec.security.identifier import Sid, sid_bytes
from rpcqm.codec.types.mqvalues import QueueAccessType
from rpcqm.qm.access import AccessControl
from rpcqm.qm.registry import QueueRegistry
from rpcqm.qm.token_scopes import key_of_format_name

_SEND = QueueAccessType.SEND_ACCESS


@dataclass(eq=False, repr=False)
class SenderRights:
    """Asks for the rights of senders on what their messages name."""

    _queue_manager: QueueManager
    _registry: QueueRegistry
    _access: AccessControl

    def __post_init__(self) -> None:
        self.account_of: Callable[[str], Identity] = identity_of
        """Who has a SID now; whoever keeps accounts sets it."""
        self.signer_of: Callable[[str], Identity] = identity_of
        """Who signs with a certificate that the directory knows; Anonymous once it has ended."""

    def check(self, attributes: MessageAttributes, identity: Identity) -> None:
        """Raise MQ_ERROR_ACCESS_DENIED if a message names what its sender may not send to."""
        for name in _administration_of(attributes):
            self._check_name(name, identity)
        if attributes.application_deadletter_queue:
            queue = self._registry.find_by_path(attributes.application_deadletter_queue)
            if queue is not None:
                self._access.check_open(queue, identity, _SEND)

    def may_name(self, name: FormatName, identity: Identity) -> bool:
        """Whether `check` lets acknowledgements go to a queue; nothing is logged."""
        queue, elsewhere = self._place_of(name)
        if queue is not None:
            return self._access.may_open(queue, identity, _SEND)
        return not elsewhere or self._access.has_scope(identity, self._key(name))

    def may_write(self, message: Message, queue: Queue) -> bool:
        """Whether the sender of a message may still send to a queue that the message names."""
        return self._access.may_open(queue, self.sender_of(message), _SEND)

    def may_be_told(self, message: Message) -> bool:
        """Whether the sender of a message may send to where it wants acknowledgements."""
        sender = self.sender_of(message)
        return all(self.may_name(name, sender) for name in _administration_of(message.attributes))

    def sender_of(self, message: Message) -> Identity:
        """Who has sent a message, as far as that is known for sure; else Anonymous.

        Of one that was sent here its queue manager knows who the caller was. Who has signed one of
        elsewhere is its account (G113); what was signed of one that came by HTTP is not the queue
        that it names (G165). Who has made one that was imported is not known (G525).
        """
        if message.sender:
            return self.account_of(message.sender)
        if message.source_address or not is_source(self._queue_manager, message):
            attributes = message.attributes
            proved = attributes.authentication_level and not attributes.is_srmp
            return self._by_packet(message) if proved else ANONYMOUS
        return self._by_packet(message)

    def _by_packet(self, message: Message) -> Identity:
        attributes = message.attributes
        try:
            if attributes.sender_identifier_type != SenderIdentifierType.SID:
                return ANONYMOUS
            return self.account_of(str(Sid.decode(attributes.sender_identifier)))
        except DecodeError:
            return ANONYMOUS

    def _check_name(self, name: FormatName, identity: Identity) -> None:
        queue, elsewhere = self._place_of(name)
        if queue is not None:
            self._access.check_open(queue, identity, _SEND)
        elif elsewhere:
            self._access.check_scope(identity, self._key(name), str(name))

    def _place_of(self, name: FormatName) -> tuple[Queue | None, bool]:
        """The queue here that messages to a name come into, and whether they may go elsewhere.

        They do neither where the name is that of a queue which takes none.
        """
        queue = self._registry.find_by_format_name(name)
        if queue is None or isinstance(queue, OutgoingQueue):
            return None, True
        return (queue if takes_own_messages(queue) else None), False

    def _key(self, name: FormatName) -> str:
        return key_of_format_name(name, self._registry)


def takes_own_messages(queue: Queue) -> bool:
    """Whether the queue manager puts acknowledgements and the like into a queue here."""
    closed = queue.is_journal or queue.subqueue_name or queue.queue_type is QueueType.SYSTEM
    return not closed


def sender_beside(attributes: MessageAttributes, identity: Identity | None) -> str:
    """The SID that is kept beside a packet which does not name its sender; "" if none is needed."""
    names = next(_administration_of(attributes), None) or attributes.application_deadletter_queue
    if identity is None or not names:
        return ""
    by_sid = attributes.sender_identifier_type == SenderIdentifierType.SID
    named = by_sid and attributes.sender_identifier == sid_bytes(identity.sid)
    return "" if named else identity.sid


def is_source(queue_manager: QueueManager, message: Message) -> bool:
    """Whether a message was sent here first."""
    return message.envelope.source_machine == queue_manager.identifier.bytes_le


def identity_of(sid: str) -> Identity:
    """Who has a SID of which no account is known here."""
    return ANONYMOUS if sid == ANONYMOUS_LOGON else authenticated(sid, sid)


def _administration_of(attributes: MessageAttributes | PacketMessage) -> Iterator[FormatName]:
    """Where acknowledgements go, if any are asked for."""
    if not attributes.acknowledgements_requested:
        return
    if attributes.administration_queue_format_name is not None:
        yield attributes.administration_queue_format_name
    yield from attributes.administration_multi_queue_format_name
