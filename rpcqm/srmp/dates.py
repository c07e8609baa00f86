"""Dates of envelopes ([MC-MQSRM] 2.2.1.2): whole seconds since 1970, in UTC."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from rpcqm.base.errors import DecodeError

LAST_SECOND = 0xFFFF_FFFF
"""The fields of packets that hold these times have 32 bits: until 2106."""
NEVER = 0x7FFF_FFFF
"""The last second that Windows writes, in January 2038: it stands for never (G44)."""
_DATE = re.compile(
    r"([0-9]{4})(-?)([0-9]{2})\2([0-9]{2})T([0-9]{2})(:?)([0-9]{2})\6([0-9]{2})(?:\.[0-9]{1,9})?Z?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=256)
def parse_date(text: str) -> int:
    """Read `YYYYMMDDThhmmss`, with separators, a fraction and a `Z` as well (G203).

    DecodeError for another form, and before 1970 or behind 2106.
    """
    found = _DATE.fullmatch(text)
    if found is None:
        raise DecodeError(f"{text!r} is no date")
    year, month, day, hour, minute, second = map(int, found.group(1, 3, 4, 5, 7, 8))
    try:
        date = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise DecodeError(f"{text!r} is no date") from error
    seconds = (date - _EPOCH) // timedelta(seconds=1)
    if not 0 <= seconds <= LAST_SECOND:
        raise DecodeError(f"{text!r} is not between 1970 and 2106")
    return seconds


@lru_cache(maxsize=256)
def format_date(seconds: int) -> str:
    """`YYYYMMDDThhmmss`."""
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y%m%dT%H%M%S")
