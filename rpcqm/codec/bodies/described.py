"""Messages for programs: the members of `receive --json`, and of `/api/v1`."""

import base64
import datetime
import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from rpcqm.base.errors import DecodeError
from rpcqm.base.text import iso_time
from rpcqm.codec.bodies.budget import SMALLEST_MEASURED, TOO_LONG, DecodeBudget
from rpcqm.codec.bodies.extensions import described_extension
from rpcqm.codec.bodies.formatters import decode_body
from rpcqm.codec.bodies.kinds import BYTES, DOTNET, TEXT, ReadBody, kind_of_type, read_body
from rpcqm.codec.bodies.value_texts import decimal_text, duration_text
from rpcqm.codec.packet.enums import (
    AcknowledgementsRequested,
    BodyType,
    DeliveryGuarantee,
    MessageClass,
    SenderIdentifierType,
)
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.trace_context import context_in
from rpcqm.codec.packet.types import NULL_IDENTIFIER, guid_text
from rpcqm.codec.security.identifier import Sid
from rpcqm.codec.types.mqvalues import (
    INFINITE,
    VT_BOOL,
    VT_BSTR,
    VT_CLSID,
    VT_I1,
    VT_LPSTR,
    VT_NULL,
)

LONGEST_DECODED = 256 * 1024
"""Octets of a body that is decoded for every program and page that looks at it.

Others wait while a body is decoded for every reader.

Bound `body.longest_decoded` [octets]: it is decoded by `/body?decode=true` and by pages on request,
in a thread of its own.
"""
UTF_16 = frozenset({BodyType.VT_BSTR, BodyType.VT_LPWSTR})
_NO_TEXT = frozenset({*range(VT_NULL, VT_BSTR), VT_BOOL, *range(VT_I1, VT_LPSTR), VT_CLSID})
"""Types of numbers, dates and the like: their octets may look like text, but are not."""
_LONGEST_SID = 68
"""Octets of the longest SID, one with 15 parts ([MS-DTYP] 2.4.2.2)."""
_CLASS_PREFIX = "MQMSG_CLASS_"
_DELIVERIES = tuple(each.name.lower() for each in sorted(DeliveryGuarantee))
UNDECODED = "undecoded"
_SHORT = 64 * 1024
"""Octets below which a body is given as octets, and as text, if its value is too long."""
ACKNOWLEDGEMENTS: Mapping[str, AcknowledgementsRequested] = {
    "arrival": AcknowledgementsRequested.ACK_POS_ARRIVAL,
    "receive": AcknowledgementsRequested.ACK_POS_RECEIVE,
    "no-arrival": AcknowledgementsRequested.ACK_NEG_ARRIVAL,
    "no-receive": AcknowledgementsRequested.ACK_NEG_RECEIVE,
}


@dataclass(frozen=True, slots=True)
class Place:
    """The queue manager's own values of a message. `arrival_time` is in seconds since 1970."""

    lookup_identifier: int
    arrival_time: float
    move_count: int
    abort_count: int


def described(
    message: PacketMessage,
    place: Place,
    body: Mapping[str, object],
    *,
    decode: bool = True,
    budget: DecodeBudget | None = None,
) -> dict[str, object]:
    """A message for programs; identifiers of 64 bits are texts, times ISO 8601 in UTC.

    `body` is the result of `described_body` or `described_octets`. The extension is decoded if
    `decode` says so; its values count as spent of `budget`, but have a budget of their own (G503).
    """
    told: dict[str, object] = {
        "lookup_id": str(place.lookup_identifier),
        "id": str(message.identifier),
        "label": message.label,
        "class": class_name(message.message_class),
        "priority": message.priority,
        "delivery": _DELIVERIES[message.delivery_guarantee],
        "transactional": message.transaction_identifier is not None,
        "sent": iso_time(message.sent_time),
        "arrived": iso_time(place.arrival_time),
        "ttbr": _seconds(message.time_to_be_received),
        "correlation_id": _identifier(message),
        "acknowledgements": _acknowledgements(message),
        "destination": _name(message.destination_queue_format_name),
        "admin_queue": _name(message.administration_queue_format_name),
        "response_queue": _name(message.response_queue_format_name),
        "source_machine": guid_text(message.source_machine_identifier),
        "sender": _sender(message),
        "application_tag": message.application_tag,
        "move_count": place.move_count,
        "abort_count": place.abort_count,
        "body_type": message.body_type,
        "body_size": message.body_size,
    }
    extension = message.extension
    if extension:
        own = DecodeBudget(len(extension))
        told |= described_extension(extension, LONGEST_DECODED if decode else 0, own)
        if budget is not None:
            budget.spent += own.spent
        if (context := context_in(extension)) is not None:
            told["traceparent"] = str(context)
    if message.is_srmp:
        told["soap_envelope"] = message.soap_envelope
    return {**told, **body}


def class_name(number: int) -> str:
    """The name of a class of messages, or its number if it has no name."""
    if isinstance(number, MessageClass):
        return number.name.removeprefix(_CLASS_PREFIX)
    return f"0x{number:04X}"


def described_body(
    body: bytes, body_type: int, longest: int | None = None, budget: DecodeBudget | None = None
) -> dict[str, object]:
    """The body for programs: its kind and value, its text if it is text, and its octets.

    A body of more than `longest` octets is not decoded, and one whose JSON would be too long is
    given as octets; `undecoded` has the reason, also for a body that does not fit its type (G395).
    `value_note` names the mistakes of a document that was read all the same (G440).
    """
    if longest is not None and len(body) > longest:
        return _octets_alone(body, f"it is longer than {longest:,} bytes")
    budget = budget or DecodeBudget(len(body))
    return described_value(body, body_type, read_body(body, body_type, budget), budget)


def described_value(
    body: bytes, body_type: int, read: ReadBody, budget: DecodeBudget
) -> dict[str, object]:
    """The same for a body that was read with a budget."""
    value, text = json_value(read.value), read.text
    if text is None:
        is_text = body_type and isinstance(read.value, str)
        text = str(read.value) if is_text else text_of(body, body_type)
    told = _told(read.kind, value, text, body)
    if _is_too_long(told, body, budget):
        return _shortened(body, body_type)
    if read.problem:
        told["undecoded"] = read.problem
    if read.note:
        told["value_note"] = read.note
    return told


def described_octets(body: bytes, body_type: int) -> dict[str, object]:
    """The same without decoding, except that text is recognised."""
    told = _told(BYTES, _base64(body), _plain_text(body, body_type), body)
    too_long = _is_too_long(told, body, DecodeBudget(len(body)))
    return _octets_alone(body, TOO_LONG) if too_long else told


def _plain_text(body: bytes, body_type: int) -> str | None:
    if kind_of_type(body_type) != TEXT:
        return text_of(body, body_type)
    try:
        return str(decode_body(body, body_type))
    except DecodeError:
        return None


def _shortened(body: bytes, body_type: int) -> dict[str, object]:
    """The members for a body whose value is too long: octets alone, unless it is short."""
    if len(body) >= _SHORT:
        return _octets_alone(body, TOO_LONG)
    return described_octets(body, body_type) | {"undecoded": TOO_LONG}


def _is_too_long(told: Mapping[str, object], body: bytes, budget: DecodeBudget) -> bool:
    """Whether its JSON has more octets than the budget; small bodies can only exceed it by
    references."""
    if len(body) < SMALLEST_MEASURED and told["value_type"] != DOTNET:
        return False
    return len(_encode(told).encode("utf-8", "replace")) > budget.octets


def _told(kind: str, value: object, text: str | None, body: bytes) -> dict[str, object]:
    told = {"value_type": kind, "value": value}
    if text is not None:
        told["body"] = text
    return told | {"body_base64": _base64(body)}


def _octets_alone(body: bytes, reason: str) -> dict[str, object]:
    return _told(UNDECODED, None, None, body) | {"undecoded": reason}


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def text_of(body: bytes, body_type: int) -> str | None:
    """The body as text: UTF-16 if its type says so, else UTF-8.

    None if the body is not text of that encoding, or has the type of a number or a date.
    """
    if body_type in _NO_TEXT:
        return None
    encoding = "utf-16-le" if body_type in UTF_16 else "utf-8"
    try:
        return body.decode(encoding).rstrip("\0")
    except UnicodeDecodeError:
        return None


def json_value(value: object) -> object:
    """A value in types of JSON: octets in Base64, dates as ISO 8601, exact numbers as text."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, list):
        return [each if type(each) in _PLAIN else json_value(each) for each in value]
    if isinstance(value, dict):
        return {
            str(name): each if type(each) in _PLAIN else json_value(each)
            for name, each in value.items()
        }
    return _one_value(value)


def _one_value(value: object) -> object:
    match value:
        case bytes():
            return _base64(value)
        case float() if not math.isfinite(value):
            return str(value)
        case datetime.datetime():
            return value.isoformat()
        case datetime.timedelta():
            return duration_text(value)
        case Decimal():
            return decimal_text(value)
        case UUID():
            return str(value)
    return value


_PLAIN = frozenset({str, int, bool, type(None)})
"""Types that JSON has; some floats it has not."""


def _base64(octets: bytes) -> str:
    return base64.b64encode(octets).decode()


def _seconds(value: int) -> int | None:
    return None if value == INFINITE else value


def _identifier(message: PacketMessage) -> str | None:
    identifier = message.correlation_identifier
    return None if identifier == NULL_IDENTIFIER else str(identifier)


def _acknowledgements(message: PacketMessage) -> list[str]:
    wanted = message.acknowledgements_requested
    if not wanted:
        return []
    return [name for name, flag in ACKNOWLEDGEMENTS.items() if wanted & flag]


def _name(name: object | None) -> str | None:
    return None if name is None else str(name)


def _sender(message: PacketMessage) -> str | None:
    if message.sender_identifier_type != SenderIdentifierType.SID:
        return None
    octets = message.sender_identifier
    if not octets:
        return None
    return (_remembered_sid if len(octets) <= _LONGEST_SID else _sid)(octets)


def _sid(octets: bytes) -> str:
    try:
        return str(Sid.decode(octets))
    except DecodeError:
        return octets.hex()


_remembered_sid = functools.lru_cache(256)(_sid)
