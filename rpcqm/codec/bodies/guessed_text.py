"""Guesses the text in octets without a type, for people; programs get octets."""

from typing import NamedTuple

WINDOWS = "Windows-1252"
_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CONTROLS = frozenset(range(0x20)) - frozenset(b"\t\n\r")
_NO_LETTERS = frozenset(b"\x7f\x81\x8d\x8f\x90\x9d")
"""Octets without a printable character in that encoding."""


class GuessedText(NamedTuple):
    text: str
    encoding: str


def guessed_text(body: bytes) -> GuessedText | None:
    """A text in UTF-16 or in the encoding of most Windows programs, or None.

    UTF-16 has a byte order mark, or more Latin characters than others. A text of the other encoding
    has printable characters only, most of them of ASCII.
    """
    wide = _wide(body)
    if wide is not None:
        return GuessedText(wide, "UTF-16")
    present = set(body)
    if not body or present & _CONTROLS or present & _NO_LETTERS:
        return None
    plain = sum(body.count(octet) for octet in present if octet < 0x80)
    return GuessedText(body.decode("cp1252"), WINDOWS) if plain * 2 > len(body) else None


def _wide(body: bytes) -> str | None:
    if len(body) < 4 or len(body) % 2:
        return None
    marked = body.startswith(_MARKS)
    if not marked and body[1::2].count(0) * 2 <= len(body) // 2:
        return None
    try:
        text = body.decode("utf-16" if marked else "utf-16-le").rstrip("\0")
    except UnicodeDecodeError:
        return None
    return text if text and all(each.isprintable() or each in "\t\n\r" for each in text) else None
