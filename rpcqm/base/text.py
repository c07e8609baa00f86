"""Makes texts of strangers safe to show: they move no cursor and hide no other text.

Characters that Unicode does not count as printable are dangerous: control characters of both sets,
separators of lines, marks of the direction of writing, and characters without a width.
"""

import functools
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime

SHOWN_CHARACTERS = 256
"""Characters of each text in a line of the log or in an error.

Bound `log.characters` [characters]: the text is cut, and its length is told.
"""


def cut(text: str) -> str:
    """The beginning of a long text, with its length; a short text unchanged."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}… ({len(text):,} characters)"


def visible(text: str, keep: str = "") -> str:
    """The text with an escape for each character that is not printable, but for those of `keep`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def hex_lines(data: bytes) -> Iterator[str]:
    """Offset, sixteen bytes, and the same as text."""
    for offset in range(0, len(data), 16):
        row = data[offset : offset + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{offset:08x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  |{text}|"


def wide_length(text: str) -> int:
    """How many UTF-16 characters a text takes, without a null character."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def number_of_64_bits(digits: str) -> int | None:
    """The number that decimal digits write, None for another text and for a greater number."""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        return None
    number = int(digits)
    return number if number < 1 << 64 else None


def whole(text: str) -> str:
    """The text with a mark for each half of a surrogate pair, which no text in UTF-8 can have."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def folded(text: str) -> str:
    """The form in which names of queues are compared everywhere (G182).

    Each character is folded by itself (simple case folding of Unicode), so that lengths stay the
    same: "Größe" is "GRÖßE", but not "GRÖSSE".
    """
    return text.lower() if text.isascii() else "".join(map(_folded_character, text))


@functools.lru_cache(maxsize=1024)
def _folded_character(character: str) -> str:
    for form in (character.casefold(), character.lower()):
        if len(form) == 1:
            return form
    return character


def json_text(value: object, indent: int | None = None) -> str:
    """A value in JSON, with escapes for what is not printable and nothing else."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.isprintable():
        return text
    strange = {ord(c): json_escapes(c) for c in set(text) if not c.isprintable() and c != "\n"}
    return text.translate(strange)


def json_escapes(text: str) -> str:
    r"""Each character as JSON escapes it: `\u` and a unit of UTF-16, two for some characters."""
    units = text.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


EARLIEST, LATEST = -2_208_988_800, 253_402_214_400
"""The first and the last day that are written, in seconds since 1970: 1900-01-01, 9999-12-31."""


def within_calendar(seconds: float) -> float:
    """The nearest moment that a calendar can write."""
    return min(max(seconds, EARLIEST), LATEST)


def iso_time(seconds: float) -> str | None:
    """A moment for programs: ISO 8601 in UTC; None for 0."""
    if not seconds:
        return None
    seconds = within_calendar(seconds)
    fraction, whole = math.modf(seconds)
    microseconds = round(fraction * 1_000_000)
    if not 0 <= microseconds < 1_000_000:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    return f"{_second(whole)}.{microseconds:06}Z" if microseconds else f"{_second(whole)}Z"


@functools.lru_cache(maxsize=64)
def _second(seconds: float) -> str:
    """A whole second as text; cached, because moments listed together often share it."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()
