"""The fields of a message as programs give them: read as they are meant, or refused by name.

Every refusal is a TypeError or a ValueError with one sentence that begins with the name of the
field, before anything is sent.
"""

import dataclasses
import datetime
import difflib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from rpcqm.base.errors import MQError
from rpcqm.base.text import cut, wide_length
from rpcqm.client.names import HERE, format_name
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.bodies.formatters import encode_body
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.base import MAXIMUM_PACKET_SIZE
from rpcqm.codec.packet.enums import AcknowledgementsRequested, PrivacyLevel
from rpcqm.codec.packet.properties import MAXIMUM_LABEL_LENGTH
from rpcqm.codec.packet.types import NULL_IDENTIFIER, MessageIdentifier
from rpcqm.codec.types.mqvalues import INFINITE

LEAST_HEADERS = 128
"""Bytes that the headers of a message take at least; a server may refuse for a few more."""
HIGHEST_PRIORITY = 7
MAXIMUM_NUMBER = 0xFFFF_FFFF

Flag = TypeVar("Flag", AcknowledgementsRequested, PrivacyLevel)
Converter = Callable[[str, object, str], object]
"""Takes the name of a field, what it was given, and the host that short names of queues mean."""


def message_of(body: object, given: Mapping[str, object], host: str = HERE) -> OutgoingMessage:
    """A message with a body of any type that `encode_body` takes, and further fields.

    `body` may be an OutgoingMessage instead, without further fields. Raises TypeError or ValueError
    for what a message cannot have.
    """
    if isinstance(body, OutgoingMessage):
        if given:
            raise TypeError("an OutgoingMessage has its fields already")
        fields = {name: getattr(body, name) for name in _CONVERTERS}
        message = dataclasses.replace(body, **_converted(fields, host))
    else:
        octets, body_type = encode_body(body)
        message = OutgoingMessage(octets, **{"body_type": body_type, **_converted(given, host)})
    check_size(message)
    return message


def message_identifier(text: str) -> MessageIdentifier:
    r"""Read `{GUID}\7`, its braces optional, or the 40 hexadecimal digits of an identifier.

    Raises ValueError if the text is neither.
    """
    return MessageIdentifier.read(text)


def _converted(given: Mapping[str, object], host: str) -> dict[str, Any]:
    for name in given:
        if name not in _CONVERTERS:
            close = difflib.get_close_matches(name, _CONVERTERS, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(_CONVERTERS)}"
            raise TypeError(f"{name} is no field of a message; {hint}")
    return {name: _CONVERTERS[name](name, value, host) for name, value in given.items()}


def check_size(message: OutgoingMessage) -> None:
    """Raise ValueError for more than a message with its headers may have."""
    size = len(message.body) + len(message.sent_extension)
    if size + LEAST_HEADERS > MAXIMUM_PACKET_SIZE:
        name = "body and extension have" if message.sent_extension else "body has"
        raise ValueError(
            f"{name} {size:,} bytes; a message with its headers has at most {MAXIMUM_PACKET_SIZE:,}"
        )


def _wrong_type(name: str, value: object, wanted: str) -> TypeError:
    return TypeError(f"{name} takes {wanted}, not a {type(value).__name__}")


def _whole(name: str, value: object, highest: int, wanted: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong_type(name, value, wanted)
    if not 0 <= value <= highest:
        raise ValueError(f"{name} takes {wanted}, not {value}")
    return value


def _number(highest: int) -> Converter:
    wanted = f"a whole number from 0 to {highest}"
    return lambda name, value, _: _whole(name, value, highest, wanted)


def _seconds(name: str, value: object, _: str) -> int:
    wanted = f"whole seconds from 0 to {INFINITE - 1}, a timedelta, or None for ever"
    if value is None:
        return INFINITE
    number = value.total_seconds() if isinstance(value, datetime.timedelta) else value
    if isinstance(number, float):
        if not number.is_integer():
            raise ValueError(f"{name} takes {wanted}, not {number} seconds")
        number = int(number)
    return _whole(name, number, INFINITE, wanted)


def _label(name: str, value: object, _: str) -> str:
    if not isinstance(value, str):
        raise _wrong_type(name, value, "text")
    if (length := wide_length(value)) > MAXIMUM_LABEL_LENGTH:
        raise ValueError(
            f"{name} has {length} characters; a message has room for {MAXIMUM_LABEL_LENGTH}"
        )
    return value


def _yes_or_no(name: str, value: object, _: str) -> bool:
    if not isinstance(value, int):
        raise _wrong_type(name, value, "True or False")
    return bool(value)


def _octets(name: str, value: object, _: str) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong_type(name, value, "bytes")
    return bytes(value)


def _queue(name: str, value: object, host: str) -> FormatName | None:
    if value is None or isinstance(value, FormatName):
        return value
    if not isinstance(value, str):
        raise _wrong_type(name, value, "the name of a queue")
    try:
        return format_name(value, host)
    except MQError as error:
        raise ValueError(f"{name} is `{cut(value)}`, which names no queue: {error}") from error


def _identifier(name: str, value: object, _: str) -> MessageIdentifier:
    if value is None:
        return NULL_IDENTIFIER
    if isinstance(value, MessageIdentifier):
        return value
    if not isinstance(value, str | bytes):
        raise _wrong_type(name, value, r"a message identifier, {GUID}\1 or 20 bytes")
    try:
        return message_identifier(value if isinstance(value, str) else value.hex())
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _unique_identifier(name: str, value: object, _: str) -> UUID | None:
    if value is not None and not isinstance(value, UUID):
        raise _wrong_type(name, value, "a UUID")
    return value


def _one_of(kind: type[Flag]) -> Converter:
    def convert(name: str, value: object, _: str) -> Flag:
        if not isinstance(value, int):
            raise _wrong_type(name, value, kind.__name__)
        try:
            return kind(value)
        except ValueError:
            raise ValueError(f"{name} takes {kind.__name__}, not {value}") from None

    return convert


_CONVERTERS: dict[str, Converter] = {
    "label": _label,
    "priority": _number(HIGHEST_PRIORITY),
    "recoverable": _yes_or_no,
    "body_type": _number(MAXIMUM_NUMBER),
    "time_to_be_received": _seconds,
    "time_to_reach_queue": _seconds,
    "acknowledgements": _one_of(AcknowledgementsRequested),
    "administration_queue": _queue,
    "response_queue": _queue,
    "correlation_identifier": _identifier,
    "application_tag": _number(MAXIMUM_NUMBER),
    "extension": _octets,
    "connector_type": _unique_identifier,
    "dead_letter": _yes_or_no,
    "dead_letter_queue": _queue,
    "journal": _yes_or_no,
    "privacy": _one_of(PrivacyLevel),
}
"""Every field of OutgoingMessage but the body."""
