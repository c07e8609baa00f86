"""Messages as programs describe them, before they are composed."""

import base64
import binascii
from dataclasses import dataclass, fields
from operator import attrgetter

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import wide_length
from rpcqm.codec.bodies.described import ACKNOWLEDGEMENTS
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.written import format_name
from rpcqm.codec.packet.base import DEFAULT_PRIORITY, MAXIMUM_PACKET_SIZE, PacketTooLargeError
from rpcqm.codec.packet.enums import (
    AcknowledgementsRequested,
    DeliveryGuarantee,
    EncryptionAlgorithm,
    PrivacyLevel,
)
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.packet.properties import MAXIMUM_LABEL_LENGTH
from rpcqm.codec.packet.trace_context import extension_of, parse_traceparent
from rpcqm.codec.packet.types import NULL_IDENTIFIER, MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE

HIGHEST_PRIORITY = 7
LARGEST_NUMBER = 0xFFFF_FFFF
_UNUSED = EncryptionAlgorithm.RC4
_INVALID = HResult.MQ_ERROR_INVALID_PARAMETER


@dataclass(slots=True)  # not frozen, which takes longer to make: each message has one
class Draft:
    """What a program says of a message; times are seconds, None is for ever.

    Queues are named as commands name them. `transactional` counts for queues elsewhere: one here
    says itself what it takes. `traceparent` is the extension if there is no other; what is no
    context of a trace is left out. The `dead_letter_queue` is of this queue manager.
    """

    body: bytes = b""
    label: str = ""
    priority: int = DEFAULT_PRIORITY
    body_type: int = 0
    recoverable: bool = True
    transactional: bool = False
    ttbr: int | None = None
    ttrq: int | None = None
    correlation_id: str | None = None
    response_queue: str | None = None
    admin_queue: str | None = None
    acknowledgements: tuple[str, ...] = ()
    application_tag: int = 0
    extension_base64: str | None = None
    journal: bool = False
    dead_letter: bool = False
    dead_letter_queue: str | None = None
    encrypt: bool = False
    traceparent: str = ""


def attributes_of(draft: Draft) -> MessageAttributes:
    """The attributes of a draft; raises MQError for what a message cannot have."""
    if _beside_body(draft) != _PLAIN:
        return _read(draft)
    check_size(draft.body)
    attributes = _PLAIN_ATTRIBUTES.copy()
    attributes.body = draft.body
    return attributes


def _read(draft: Draft) -> MessageAttributes:
    """The same for a draft with properties."""
    label = checked_label(draft.label)
    extension = octets(draft.extension_base64) or _context(draft.traceparent)
    check_size(draft.body, extension)
    return MessageAttributes(
        body=draft.body,
        label=label,
        priority=number("priority", draft.priority, HIGHEST_PRIORITY),
        body_type=number("body_type", draft.body_type, LARGEST_NUMBER),
        delivery_guarantee=(
            DeliveryGuarantee.RECOVERABLE if draft.recoverable else DeliveryGuarantee.EXPRESS
        ),
        time_to_be_received=seconds("ttbr", draft.ttbr),
        time_to_reach_queue=seconds("ttrq", draft.ttrq),
        correlation_identifier=identifier(draft.correlation_id),
        response_queue_format_name=queue(draft.response_queue),
        administration_queue_format_name=queue(draft.admin_queue),
        acknowledgements_requested=acknowledgements(draft.acknowledgements),
        application_tag=number("application_tag", draft.application_tag, LARGEST_NUMBER),
        extension=extension,
        positive_journaling_requested=draft.journal,
        negative_journaling_requested=draft.dead_letter or draft.dead_letter_queue is not None,
        privacy_level=PrivacyLevel.ADVANCED if draft.encrypt else PrivacyLevel.NONE,
        encryption_algorithm=EncryptionAlgorithm.AES256 if draft.encrypt else _UNUSED,
    )


def check_size(body: bytes, extension: bytes = b"") -> None:
    """Raise MQError(MQ_ERROR_INSUFFICIENT_RESOURCES) for more than any packet may have."""
    if len(body) + len(extension) > MAXIMUM_PACKET_SIZE:
        raise PacketTooLargeError(len(body) + len(extension))


def checked_label(label: str) -> str:
    """The label; raises MQError(MQ_ERROR_LABEL_TOO_LONG)."""
    if wide_length(label) > MAXIMUM_LABEL_LENGTH:
        raise MQError(HResult.MQ_ERROR_LABEL_TOO_LONG, f"{wide_length(label)} characters")
    return label


def message_identifier(text: str) -> MessageIdentifier:
    r"""Read `{GUID}\7` or the 40 hexadecimal digits of one; MQ_ERROR_INVALID_PARAMETER."""
    try:
        return MessageIdentifier.read(text)
    except ValueError as error:
        raise MQError(_INVALID, str(error)) from None


def number(name: str, value: int, highest: int) -> int:
    """A number up to `highest`; raises MQError."""
    if not 0 <= value <= highest:
        raise MQError(_INVALID, f"{name} takes a whole number from 0 to {highest}")
    return value


def seconds(name: str, value: int | None) -> int:
    """A time in seconds, INFINITE for None; raises MQError for a number that is too great."""
    return INFINITE if value is None else number(name, value, INFINITE - 1)


def identifier(text: str | None) -> MessageIdentifier:
    """A message identifier, or the null one; raises MQError."""
    return NULL_IDENTIFIER if text is None else message_identifier(text)


def queue(text: str | None) -> FormatName | None:
    """The format name of a queue that a message names; raises MQError."""
    return None if text is None else format_name(text)


def acknowledgements(names: tuple[str, ...]) -> AcknowledgementsRequested:
    """The acknowledgements that are asked for by their names; raises MQError."""
    wanted = AcknowledgementsRequested.NONE
    for name in names:
        if name not in ACKNOWLEDGEMENTS:
            raise MQError(_INVALID, f"acknowledgements are {', '.join(ACKNOWLEDGEMENTS)}")
        wanted |= ACKNOWLEDGEMENTS[name]
    return wanted


def _context(text: str) -> bytes:
    context = parse_traceparent(text)
    return b"" if context is None else extension_of(context)


def octets(text: str | None, name: str = "extension_base64") -> bytes:
    """What a member has in Base64; raises MQError."""
    try:
        return base64.b64decode(text or "", validate=True)
    except (binascii.Error, ValueError):
        raise MQError(_INVALID, f"{name} is no Base64") from None


_beside_body = attrgetter(*(each.name for each in fields(Draft)[1:]))
_PLAIN, _PLAIN_ATTRIBUTES = _beside_body(Draft()), _read(Draft())
"""What most messages have beside their bodies; it is read once."""
