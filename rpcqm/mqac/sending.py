"""Sending a message ([MC-MQAC] 3.17.4.1.48 Send)."""

from typing import TYPE_CHECKING

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.codec.automation.values import Variant
from rpcqm.codec.bodies.xml_documents import parse_strictly
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.enums import MessageAuthenticationLevel, MessageClass, SenderIdentifierType
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.security.identifier import sid_bytes
from rpcqm.dcom.com_object import ComCall
from rpcqm.mqac.arguments import instance
from rpcqm.mqac.named_queues import SendingTarget
from rpcqm.mqac.signing import Signer, mark_signed
from rpcqm.mqac.transaction import TransactionScope, transaction_scope
from rpcqm.qm.privacy import body_in_clear, check_privacy

if TYPE_CHECKING:
    from rpcqm.mqac.machine import Machine
    from rpcqm.mqac.message import MSMQMessage

_OF_CONNECTORS = frozenset(
    {
        "message_class",
        "sender_identifier",
        "symmetric_key",
        "signature",
        "authentication_provider_name",
    }
)
"""Attributes that an application may set only with a ConnectorTypeGuid."""

_NOT_YET = (
    ("destination_queue_format_name", None),
    ("destination_multi_queue_format_name", ()),
    ("destination_queue_manager_identifier", NULL_GUID),
    ("authentication_level", MessageAuthenticationLevel.NONE),
    ("transaction_identifier", None),
    ("transactional_message_sequence_identifier", None),
    ("transaction_sequence_number", 0),
    ("transaction_previous_sequence_number", 0),
    ("final_ack_required", False),
    ("first_in_transaction", False),
    ("last_in_transaction", False),
    ("connector_queue_manager_identifier", None),
    ("tracing_queue_identifier", None),
    ("multiple_destination_signature", b""),
    ("soap_header", ""),
    ("soap_body", ""),
    ("soap_envelope", ""),
    ("soap_compound_message", b""),
)
"""Attributes of a message before it is sent."""

_SHOWN = (
    "identifier",
    "message_class",
    "sent_time",
    "destination_queue_format_name",
    "destination_multi_queue_format_name",
    "sender_identifier",
    "sender_certificate",
    "signature",
    "multiple_destination_signature",
    "authentication_level",
    "hash_algorithm",
)
"""Attributes that the object shows after Send."""


def send(
    machine: "Machine",
    call: ComCall,
    message: "MSMQMessage",
    destination: object,
    argument: Variant | None,
) -> Completion[None]:
    """Send a message; it succeeds when the message is as durable as it asks for.

    Raises MQError: E_INVALIDARG, MISSING_CONNECTOR_TYPE, INSUFFICIENT_PROPERTIES,
    MQ_ERROR_INVALID_HANDLE for a destination that is not open, and those of the transaction, of
    signing and of the queues.
    """
    target = instance(destination, SendingTarget)
    if target is None:
        raise MQError(HResult.E_INVALIDARG, "no destination")
    _check(message)
    descriptor = target.open_queue_descriptor
    if descriptor is None:
        raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, "the destination is not open")
    scope = transaction_scope(machine.transactions, call.identity, argument)
    return start(_enqueue(machine, call, message, descriptor, scope))


async def _enqueue(
    machine: "Machine",
    call: ComCall,
    message: "MSMQMessage",
    descriptor: OpenQueueDescriptor,
    scope: TransactionScope,
) -> None:
    try:
        attributes = _completed(machine, call, message, descriptor)
        signer = Signer.of(machine.protection, message.requested_authentication_level)
        composed = machine.composer.compose(
            descriptor, attributes, call.identity, scope.transaction, signer, names_sender=True
        )
        if attributes.signature or attributes.multiple_destination_signature:
            mark_signed(machine.protection, descriptor, composed, signer)
        for name in _SHOWN:
            setattr(message.attributes, name, getattr(attributes, name))
        await machine.messages.enqueue_message_to_an_open_queue(
            descriptor, composed, scope.transaction
        )
    except Exception:  # the transaction of a single message must not outlive its call
        scope.undo()
        raise
    await scope.finish()


def _check(message: "MSMQMessage") -> None:
    """Refuse attributes of connectors, and an incomplete provider."""
    attributes = message.attributes
    if attributes.connector_type_identifier is None and message.chosen & _OF_CONNECTORS:
        raise MQError(HResult.MQ_ERROR_MISSING_CONNECTOR_TYPE)
    has_type = bool(attributes.authentication_provider_type)
    if has_type != bool(attributes.authentication_provider_name):
        raise MQError(HResult.MQ_ERROR_INSUFFICIENT_PROPERTIES, "type and name of the provider")


def _completed(
    machine: "Machine", call: ComCall, message: "MSMQMessage", descriptor: OpenQueueDescriptor
) -> MessageAttributes:
    """A copy of the represented message with the attributes that Send sets."""
    attributes = _as_given(message)
    if attributes.connector_type_identifier is None:
        attributes.message_class = MessageClass.MQMSG_CLASS_NORMAL
    _set_sender(machine, call, message, attributes)
    _set_privacy(machine, attributes, descriptor)
    _set_responses(attributes, descriptor)
    attributes.time_to_reach_queue = min(  # (G288)
        attributes.time_to_reach_queue, attributes.time_to_be_received
    )
    attributes.soap_body = _elements(message.soap_body)
    attributes.soap_header = _elements(message.soap_header)
    attributes.application_deadletter_queue = descriptor.application_deadletter_queue
    return attributes


def _elements(text: str) -> str:
    """Elements for an envelope; raises MQ_ERROR_BAD_XML_FORMAT if they would break it."""
    if text:
        try:
            parse_strictly(f"<se:Body {_NAMESPACE}>{text}</se:Body>".encode())
        except (DecodeError, UnicodeEncodeError) as error:
            raise MQError(HResult.MQ_ERROR_BAD_XML_FORMAT, str(error)) from error
    return text


_NAMESPACE = 'xmlns:se="http://schemas.xmlsoap.org/soap/envelope/"'
"""The prefix that elements may use, with the declaration of our envelopes."""


def _as_given(message: "MSMQMessage") -> MessageAttributes:
    """The message without the attributes from an earlier Send, or from its way here (G282)."""
    attributes, chosen = message.attributes, message.chosen
    given = attributes.copy()
    for name, value in _NOT_YET:
        setattr(given, name, value)
    for name in ("sender_identifier", "sender_certificate", "signature", "symmetric_key"):
        if name not in chosen:
            setattr(given, name, b"")
    if not given.signature:  # a provider belongs to the signature
        given.authentication_provider_type, given.authentication_provider_name = 0, ""
    return given


def _set_sender(
    machine: "Machine", call: ComCall, message: "MSMQMessage", attributes: MessageAttributes
) -> None:
    """Set the caller as sender; administrators may name another one, for a connector (G280).

    The certificate from AttachCurrentSecurityContext counts for the same caller.
    """
    caller = sid_bytes(call.identity.sid)
    named = attributes.sender_identifier
    if named and named != caller and not call.identity.is_administrator:
        raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "another sender")
    if attributes.sender_identifier_type == SenderIdentifierType.NONE:
        attributes.sender_identifier = b""
    elif not named:
        attributes.sender_identifier = caller
    if not attributes.sender_certificate:
        if message.sender_identifier_cache == caller and message.sender_certificate_cache:
            attributes.sender_certificate = message.sender_certificate_cache
        else:
            attributes.sender_certificate = machine.protection.internal_certificate(named or caller)


def _set_privacy(
    machine: "Machine", attributes: MessageAttributes, descriptor: OpenQueueDescriptor
) -> None:
    """Decrypt a body that the application has encrypted for a local queue."""
    check_privacy(descriptor, bool(attributes.privacy_level or attributes.symmetric_key))
    key = attributes.symmetric_key
    if (
        key
        and not descriptor.multiple
        and not isinstance(descriptor.queue_reference, OutgoingQueue)
    ):
        attributes.body = body_in_clear(attributes, key, machine.arrivals.decrypt)
        attributes.symmetric_key = b""


def _set_responses(attributes: MessageAttributes, descriptor: OpenQueueDescriptor) -> None:
    """Put several response or administration queues into a header of lists."""
    several = (
        attributes.response_multi_queue_format_name
        or attributes.administration_multi_queue_format_name
    )
    if several and not descriptor.multiple:
        attributes.destination_multi_queue_format_name = (descriptor.format_name,)
