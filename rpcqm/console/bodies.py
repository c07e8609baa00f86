"""The body of a message as a page shows it: its value, its text, or its octets."""

import codecs
import json
from typing import NamedTuple

from rpcqm.base.text import hex_lines
from rpcqm.codec.bodies.described import LONGEST_DECODED, UNDECODED, UTF_16, described_body
from rpcqm.codec.bodies.guessed_text import guessed_text
from rpcqm.codec.bodies.kinds import BYTES, kind_of_type
from rpcqm.console.laid_out import laid_out

LONGEST_BODY = LONGEST_DECODED
"""Octets of a body that a page reads as XML, JSON or .NET, and characters that it shows.

Bound `console.longest_body` [bytes]: its beginning is shown as text or as octets.
"""
_HEX_ROW = 79
_MOST_CONTROLS = 10
"""One in so many characters of a text may be a control character."""
_LINES = "\t\n\r"


class ShownBody(NamedTuple):
    """`kind` is as what it was read; `cut` tells whether only its beginning is shown.

    `reason` says why it is not read as what it says, if it is not; `note` is what else there is to
    say about it, and the encoding of octets that look like text. `original` is the text as it was
    sent, where `text` has it in more lines; else "".
    """

    text: str
    kind: str
    cut: bool
    reason: str = ""
    note: str = ""
    original: str = ""


def shown_body(body: bytes, body_type: int, decode: bool = False) -> ShownBody:
    """A body for people; a long one is read as XML, JSON or .NET only if it is to `decode`."""
    if len(body) > LONGEST_BODY and not decode:
        kind = "text" if kind_of_type(body_type) == "text" else BYTES
        text = _beginning(body, body_type)
        return ShownBody(text if text is not None else _octets(body), kind, True)
    told = described_body(body, body_type)
    kind, note = str(told["value_type"]), str(told.get("value_note", ""))
    text = _readable(told)
    if text is None and not body_type and (guess := guessed_text(body)) is not None:
        text, note = guess.text, note or guess.encoding
    text = text if text is not None else _octets(body)
    cut, reason = len(text) > LONGEST_BODY, str(told.get("undecoded", ""))
    in_lines = None if cut else laid_out(text, LONGEST_BODY)
    if in_lines is not None:
        return ShownBody(in_lines, kind, cut, reason, note, text)
    return ShownBody(text[:LONGEST_BODY], kind, cut, reason, note)


def _readable(told: dict[str, object]) -> str | None:
    """Its text or its value; None for octets that are no text."""
    value, text = told["value"], told.get("body")
    if isinstance(value, str) and told["value_type"] in ("text", "xml"):
        return value
    if isinstance(text, str) and (told["value_type"] != BYTES or _is_text(text)):
        return text
    if told["value_type"] in (BYTES, UNDECODED):
        return None
    return _beginning_of_value(value)


def _beginning_of_value(value: object) -> str:
    """A value in lines, as far as a page shows them: blanks before them may be most of it."""
    parts, size = [], 0
    for part in json.JSONEncoder(ensure_ascii=False, indent=2).iterencode(value):
        parts.append(part)
        size += len(part)
        if size > LONGEST_BODY:
            break
    return "".join(parts)


def _beginning(body: bytes, body_type: int) -> str | None:
    """The text of a long body that is one; its last character may be cut."""
    decoder = codecs.getincrementaldecoder("utf-16-le" if body_type in UTF_16 else "utf-8")()
    try:
        text = decoder.decode(body[:LONGEST_BODY])
    except UnicodeDecodeError:
        return None
    return text if _is_text(text) else None


def _is_text(text: str) -> bool:
    controls = sum(not each.isprintable() and each not in _LINES for each in text)
    return bool(text) and "\0" not in text and controls * _MOST_CONTROLS <= len(text)


def _octets(body: bytes) -> str:
    """As `rpcqm peek --format hex` shows them."""
    return "\n".join(hex_lines(body[: LONGEST_BODY // _HEX_ROW * 16]))
