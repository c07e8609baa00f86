"""Bodies of messages as people and programs see them."""

import datetime
from collections.abc import Mapping

from rpcqm.base.text import visible
from rpcqm.client.message import ReceivedMessage
from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.codec.bodies.described import UNDECODED, UTF_16, json_value
from rpcqm.codec.bodies.guessed_text import GuessedText, guessed_text
from rpcqm.codec.bodies.kinds import BYTES, ReadBody, kind_and_value, kind_of_type, read_body


def kind_and_text(message: ReceivedMessage) -> tuple[str, str]:
    """The kind of the body by the words of `rpcqm send --type`, and the body on one line.

    The line is its value, or hexadecimal if that is neither text nor a number. What there is to say
    about it comes first, in parentheses, also the encoding of octets that look like text.
    """
    body = message.available_body
    read = read_body(body, message.body_type, DecodeBudget(len(body)))
    if message.withheld:  # a part of a body has no value that tells more
        return kind_of_type(message.body_type), _one_line(message, read) + "…"
    guess = _guess(message, read)
    if guess is not None:
        return read.kind, f"({guess.encoding}) {_line(guess.text)}"
    said = read.problem or read.note
    note = f"({visible(said)}) " if said else ""
    return read.kind, note + _one_line(message, read)


def _guess(message: ReceivedMessage, read: ReadBody) -> GuessedText | None:
    """What octets without a type may be as text, if they are not UTF-8."""
    if message.body_type or read.kind != BYTES or read.problem:
        return None
    text = message.text
    return guessed_text(message.available_body) if text is None or "\0" in text else None


def octets_of(message: ReceivedMessage) -> bytes:
    """What `--format body` writes: text in UTF-8, of other bodies their octets."""
    if message.body_type:  # of others the value is not looked at
        _, value = kind_and_value(message.available_body, message.body_type)
        if isinstance(value, str):
            return value.encode()
    return message.available_body


def without_repetition(described: Mapping[str, object]) -> dict[str, object]:
    """A description of a message for people: its body once, as text or else as its value.

    Of an extension only what says most is told: headers, else text, else octets.
    """
    shown = dict(described)
    if "extension" in shown:
        del shown["extension_base64"]
    if "headers" in shown:
        del shown["extension"]
    if "body" in shown:
        del shown["body_base64"]
        if shown["value_type"] in ("text", "xml", BYTES):
            del shown["value"]
    elif shown["value_type"] in (BYTES, UNDECODED):
        del shown["value"]
    else:
        del shown["body_base64"]
    return shown


def _text(message: ReceivedMessage, read: ReadBody) -> str | None:
    """The body as text, if it is text."""
    if read.text is not None:
        return read.text
    if message.body_type and isinstance(read.value, str):
        return read.value
    return message.text


def _one_line(message: ReceivedMessage, read: ReadBody) -> str:
    if message.withheld and message.body_type in UTF_16:
        return _line(message.available_body.decode("utf-16-le", "ignore"))
    text = _text(message, read)
    if text is not None and "\0" not in text:
        return _line(text)
    value = read.value
    if value is None or isinstance(value, bytes | str):
        return message.available_body.hex(" ")
    if isinstance(value, datetime.datetime):
        return _line(value.isoformat(" "))
    told = json_value(value)
    return _line(told if isinstance(told, str) else str(value))


def _line(text: str) -> str:
    return visible(text.rstrip("\n").replace("\n", "↵"))
