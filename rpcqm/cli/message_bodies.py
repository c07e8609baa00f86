"""Bodies of messages as people and programs see them."""

import datetime
from collections.abc import Mapping

from rpcqm.base.text import visible
from rpcqm.client.message import ReceivedMessage
from rpcqm.codec.bodies.described import UNDECODED, UTF_16
from rpcqm.codec.bodies.kinds import BYTES, kind_and_value, kind_of_type


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
    if message.body_type:  # of others the value is not looked at
        _, value = kind_and_value(message.available_body, message.body_type)
        if isinstance(value, str):
            return value.encode()
    return message.available_body


def without_repetition(described: Mapping[str, object]) -> dict[str, object]:
    """A description of a message for people: its body once, as text or else as its value."""
    shown = dict(described)
    if "body" in shown:
        del shown["body_base64"]
        if shown["value_type"] in ("text", "xml", BYTES):
            del shown["value"]
    elif shown["value_type"] in (BYTES, UNDECODED):
        del shown["value"]
    else:
        del shown["body_base64"]
    return shown


def _text(message: ReceivedMessage, value: object) -> str | None:
    """The body as text, if it is text."""
    if message.body_type and isinstance(value, str):
        return value
    return message.text


def _one_line(message: ReceivedMessage, value: object) -> str:
    if message.withheld and message.body_type in UTF_16:
        return _line(message.available_body.decode("utf-16-le", "ignore"))
    text = _text(message, value)
    if text is not None and "\0" not in text:
        return _line(text)
    if value is None or isinstance(value, bytes | str):
        return message.available_body.hex(" ")
    return _line(value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value))


def _line(text: str) -> str:
    return visible(text.rstrip("\n").replace("\n", "↵"))
