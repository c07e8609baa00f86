"""A message that is sent anew, in the place of another one or beside it: what it keeps (G613)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rpcqm.adm.message import Message
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import (
    AcknowledgementsRequested,
    DeliveryGuarantee,
    EncryptionAlgorithm,
    PrivacyLevel,
)
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.types.mqvalues import INFINITE
from rpcqm.operations import drafts
from rpcqm.qm.program_work import Sending
from rpcqm.qm.sender_rights import SenderRights

FOR_EVER = "forever"
"""A time without an end, where None leaves it as it was."""
_INVALID = HResult.MQ_ERROR_INVALID_PARAMETER
Values = dict[str, object]


@dataclass(frozen=True, slots=True)
class Edits:
    """What is changed of a message that is sent anew: attributes, and whether it is transactional.

    The latter counts where the message goes elsewhere; None leaves it as it was.
    """

    attributes: Mapping[str, object] = field(default_factory=dict)
    transactional: bool | None = None


UNCHANGED = Edits()


def edits_of(given: Mapping[str, object]) -> Edits:
    """The changes that members of JSON ask for, named as the properties of a message are.

    None leaves a property as it was, an empty name of a queue or of an identifier takes it away,
    and the time `forever` has no end. Raises MQError for what no message can have.
    """
    attributes: Values = {}
    transactional: bool | None = None
    for name, value in given.items():
        if value is None:
            continue
        if name == "transactional":
            transactional = _is(name, value)
        elif name in _MEMBERS:
            attributes |= _MEMBERS[name](name, value)
        else:
            raise MQError(_INVALID, f"{name} is no property that can be changed")
    body, extension = attributes.get("body", b""), attributes.get("extension", b"")
    assert isinstance(body, bytes)
    assert isinstance(extension, bytes)
    drafts.check_size(body, extension)
    return Edits(attributes, transactional)


def sent_again(
    rights: SenderRights,
    message: Message,
    to: FormatName | None,
    edits: Edits = UNCHANGED,
    *,
    leaves: bool = True,
) -> Sending:
    """What is sent anew: to another queue, or to where the message was for.

    A copy, which does not `leave`, asks for no acknowledgement, since the message does. Nor does
    one whose sender may not send to where acknowledgements go: whoever sends it again lends its
    sender no right (G400). What is newly asked for is the caller's.
    Raises MQError(MQ_ERROR_INVALID_PARAMETER) if neither queue is known.
    """
    sending = _changed(message, to, edits)
    if not _asks_for_acknowledgements(edits) and (not leaves or not rights.may_be_told(message)):
        sending.attributes.acknowledgements_requested = AcknowledgementsRequested.NONE
        sending.attributes.administration_queue_format_name = None
    return sending


def _changed(message: Message, to: FormatName | None, edits: Edits) -> Sending:
    old = message.attributes
    target = to or old.destination_queue_format_name
    if target is None:
        raise MQError(_INVALID, "the message does not say which queue it was for")
    new = MessageAttributes(
        body=old.body,
        label=old.label,
        priority=old.priority,
        delivery_guarantee=old.delivery_guarantee,
        body_type=old.body_type,
        time_to_reach_queue=old.time_to_reach_queue,
        time_to_be_received=old.time_to_be_received,
        acknowledgements_requested=old.acknowledgements_requested,
        administration_queue_format_name=old.administration_queue_format_name,
        response_queue_format_name=old.response_queue_format_name,
        correlation_identifier=old.correlation_identifier,
        application_tag=old.application_tag,
        extension=old.extension,
        negative_journaling_requested=old.negative_journaling_requested,
        positive_journaling_requested=old.positive_journaling_requested,
        privacy_level=old.privacy_level,
        encryption_algorithm=old.encryption_algorithm,
        tracing_requested=old.tracing_requested,
    )
    for name, value in edits.attributes.items():
        setattr(new, name, value)
    transactional = message.envelope.transactional
    if edits.transactional is not None:
        transactional = edits.transactional
    return Sending(target, new, transactional)


def _asks_for_acknowledgements(edits: Edits) -> bool:
    """Whether whoever changes a message says which acknowledgements it asks for, or where."""
    own = {"acknowledgements_requested", "administration_queue_format_name"}
    return not own.isdisjoint(edits.attributes)


# Members, and the attributes that they are


def _is(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise MQError(_INVALID, f"{name} takes true or false")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise MQError(_INVALID, f"{name} takes a text")
    return value


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise MQError(_INVALID, f"{name} takes a whole number")
    return value


def _label(name: str, value: object) -> Values:
    return {"label": drafts.checked_label(_text(name, value))}


def _octets(attribute: str) -> Callable[[str, object], Values]:
    def read(name: str, value: object) -> Values:
        return {attribute: drafts.octets(_text(name, value), name)}

    return read


def _number(attribute: str, highest: int) -> Callable[[str, object], Values]:
    def read(name: str, value: object) -> Values:
        return {attribute: drafts.number(name, _whole(name, value), highest)}

    return read


def _time(attribute: str) -> Callable[[str, object], Values]:
    def read(name: str, value: object) -> Values:
        if value == FOR_EVER:
            return {attribute: INFINITE}
        return {attribute: drafts.seconds(name, _whole(name, value))}

    return read


def _queue(attribute: str) -> Callable[[str, object], Values]:
    def read(name: str, value: object) -> Values:
        return {attribute: drafts.queue(_text(name, value) or None)}

    return read


def _correlation(name: str, value: object) -> Values:
    return {"correlation_identifier": drafts.identifier(_text(name, value) or None)}


def _acknowledgements(name: str, value: object) -> Values:
    if not isinstance(value, list | tuple):
        raise MQError(_INVALID, f"{name} takes a list")
    wanted = tuple(_text(name, each) for each in value)
    return {"acknowledgements_requested": drafts.acknowledgements(wanted)}


def _flag(
    attribute: str, yes: object = True, no: object = False
) -> Callable[[str, object], Values]:
    def read(name: str, value: object) -> Values:
        return {attribute: yes if _is(name, value) else no}

    return read


def _encrypt(name: str, value: object) -> Values:
    wanted = _is(name, value)
    return {
        "privacy_level": PrivacyLevel.ADVANCED if wanted else PrivacyLevel.NONE,
        "encryption_algorithm": EncryptionAlgorithm.AES256 if wanted else EncryptionAlgorithm.RC4,
    }


_MEMBERS: Mapping[str, Callable[[str, object], Values]] = {
    "label": _label,
    "body_base64": _octets("body"),
    "body_type": _number("body_type", drafts.LARGEST_NUMBER),
    "priority": _number("priority", drafts.HIGHEST_PRIORITY),
    "ttbr": _time("time_to_be_received"),
    "ttrq": _time("time_to_reach_queue"),
    "admin_queue": _queue("administration_queue_format_name"),
    "acknowledgements": _acknowledgements,
    "response_queue": _queue("response_queue_format_name"),
    "correlation_id": _correlation,
    "application_tag": _number("application_tag", drafts.LARGEST_NUMBER),
    "extension_base64": _octets("extension"),
    "recoverable": _flag(
        "delivery_guarantee", DeliveryGuarantee.RECOVERABLE, DeliveryGuarantee.EXPRESS
    ),
    "journal": _flag("positive_journaling_requested"),
    "dead_letter": _flag("negative_journaling_requested"),
    "encrypt": _encrypt,
}
