"""Bodies of messages as people and programs see them."""

import base64
import datetime
import math
from collections.abc import Mapping
from decimal import Decimal
from uuid import UUID

from rpcqm.base.text import visible
from rpcqm.client.message import ReceivedMessage
from rpcqm.codec.bodies.kinds import BYTES, kind_and_value, kind_of_type
from rpcqm.codec.packet.enums import BodyType, MessageClass

_UTF_16 = frozenset({BodyType.VT_BSTR, BodyType.VT_LPWSTR})
_CLASS_PREFIX = "MQMSG_CLASS_"


def class_name(number: int) -> str:
    """The name of a class of messages, or its number if the class is unknown."""
    if isinstance(number, MessageClass):
        return number.name.removeprefix(_CLASS_PREFIX)
    return f"0x{number:04X}"


def kind_and_text(message: ReceivedMessage) -> tuple[str, str]:
    """The kind of the body by the words of `rpcqm send --type`, and the body on one line.

    The line is its value, or hexadecimal if that is neither text nor a number.
    """
    kind, value = kind_and_value(message.available_body, message.body_type)
    if message.withheld:  # a part of a body has no value that tells more
        return kind_of_type(message.body_type), _one_line(message, value) + "…"
    return kind, _one_line(message, value)


def octets_of(message: ReceivedMessage) -> bytes:
    """What `--format body` writes: text in UTF-8, of other bodies their octets."""
    _, value = kind_and_value(message.available_body, message.body_type)
    if message.body_type and isinstance(value, str):
        return value.encode()
    return message.available_body


def body_json(message: ReceivedMessage) -> dict[str, object]:
    """The body for programs: its kind and value, its text if it is text, and its octets."""
    kind, value = kind_and_value(message.available_body, message.body_type)
    text = _text(message, value)
    described: dict[str, object] = {"value_type": kind, "value": json_value(value)}
    if text is not None:
        described["body"] = text
    return described | {"body_base64": _base64(message.available_body)}


def without_repetition(described: Mapping[str, object]) -> dict[str, object]:
    """A description of a message for people: its body once, as text or else as its value."""
    shown = dict(described)
    if "body" in shown:
        del shown["body_base64"]
        if shown["value_type"] in ("text", "xml", BYTES):
            del shown["value"]
    elif shown["value_type"] == BYTES:
        del shown["value"]
    else:
        del shown["body_base64"]
    return shown


def json_value(value: object) -> object:
    """A value in what JSON has: octets in Base64, dates as ISO 8601, exact numbers as text."""
    match value:
        case bytes():
            return _base64(value)
        case float() if not math.isfinite(value):
            return str(value)
        case datetime.datetime():
            return value.isoformat()
        case Decimal() | UUID() | datetime.timedelta():
            return str(value)
        case list():
            return [json_value(each) for each in value]
        case dict():
            return {str(name): json_value(each) for name, each in value.items()}
    return value


def _base64(octets: bytes) -> str:
    return base64.b64encode(octets).decode()


def _text(message: ReceivedMessage, value: object) -> str | None:
    """The body as text, if it is text."""
    if message.body_type and isinstance(value, str):
        return value
    return message.text


def _one_line(message: ReceivedMessage, value: object) -> str:
    if message.withheld and message.body_type in _UTF_16:
        return _line(message.available_body.decode("utf-16-le", "ignore"))
    text = _text(message, value)
    if text is not None and "\0" not in text:
        return _line(text)
    if value is None or isinstance(value, bytes | str):
        return message.available_body.hex(" ")
    return _line(value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value))


def _line(text: str) -> str:
    return visible(text.rstrip("\n").replace("\n", "↵"))
