"""Texts of values: durations in ISO 8601 (G441), and decimal numbers without an exponent."""

import datetime
import re
from decimal import Decimal

_DURATION = re.compile(
    r"(-?)P(?=.)(?:(\d{1,10})D)?"
    r"(?:T(?=.)(?:(\d{1,15})H)?(?:(\d{1,15})M)?(?:(\d{1,15})(?:\.(\d{1,64}))?S)?)?",
    re.ASCII,
)
_SECOND = 1_000_000
_PARTS = (("D", 86_400 * _SECOND), ("H", 3_600 * _SECOND), ("M", 60 * _SECOND))


def duration_text(value: datetime.timedelta) -> str:
    """`P2D`, `-PT1S`, `PT0.5S`: as XML and .NET's XmlConvert write durations; `PT0S` is zero."""
    left = abs(value) // datetime.timedelta(microseconds=1)
    counts = []
    for _, size in _PARTS:
        count, left = divmod(left, size)
        counts.append(count)
    marks = [mark for mark, _ in _PARTS]
    days, hours, minutes = (
        f"{n}{mark}" if n else "" for n, mark in zip(counts, marks, strict=True)
    )
    seconds, fraction = divmod(left, _SECOND)
    decimals = f".{fraction:06}".rstrip("0") if fraction else ""
    time = hours + minutes + (f"{seconds}{decimals}S" if left else "")
    sign = "-" if value < datetime.timedelta() else ""
    return f"{sign}P{days}T{time or '0S'}" if time or not days else f"{sign}P{days}"


def parse_duration(text: str) -> datetime.timedelta:
    """The duration in such a text; digits of a fraction beyond microseconds are cut off.

    Raises ValueError for another text, and for years or months, which are of no fixed length;
    OverflowError for one that is too long.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text} is no duration")
    sign, days, hours, minutes, seconds, fraction = found.groups(default="")
    made = datetime.timedelta(
        days=int(days or 0),
        hours=int(hours or 0),
        minutes=int(minutes or 0),
        seconds=int(seconds or 0),
        microseconds=int(f"{fraction:0<6.6}"),
    )
    return -made if sign else made


def decimal_text(value: Decimal) -> str:
    """`0.0000001` and `1000`, with the zeros that a number has behind its point.

    The text is as long as the number: callers bound numbers of others.
    """
    if not value.is_finite():
        return str(value)
    return f"{value:f}" if value or value.as_tuple().exponent in range(-64, 1) else "0"
