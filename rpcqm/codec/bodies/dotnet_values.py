"""Objects of .NET's own classes that wrap one value, as that value (G444).

BinaryFormatter writes a value that is the whole body, or an element of an array, as an object with
the private members of its class: a TimeSpan has `_ticks`, a List has `_items` with room to grow.
"""

import datetime
import struct
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal

CLASS = "$class"
_UNIT = datetime.timedelta(microseconds=1)
_TICKS = (1 << 62) - 1
_UTC_KIND = 1
_HIGHEST_SCALE = 28
_WORD = (1 << 32) - 1
_LIST = "System.Collections.Generic.List`1[["


def value_of_object(members: Mapping[str, object]) -> object:
    """The value that an object wraps, or its members if its class wraps no value."""
    name = members.get(CLASS)
    if isinstance(name, str):
        make = _list if name.startswith(_LIST) else _MAKERS.get(name)
        if make is None and members.keys() == {CLASS, "m_value"}:
            return members["m_value"]  # a boxed System.Int32 and the like
        if make is not None:
            try:
                return make(members)
            except (KeyError, TypeError, ValueError, ArithmeticError, struct.error):
                pass  # a class of another version, or another class of that name
    return members


def date_of(data: int) -> datetime.datetime:
    """A DateTime by its 62 bits of ticks of 100 ns since the year 1, and its kind.

    UTC has a time zone; local times and those of no kind have none, because their zone is not
    given. Raises OverflowError.
    """
    moment = datetime.datetime(1, 1, 1) + _UNIT * ((data & _TICKS) // 10)
    return moment.replace(tzinfo=datetime.UTC) if data >> 62 & 3 == _UTC_KIND else moment


def duration_of(ticks: int) -> datetime.timedelta:
    """A TimeSpan by its ticks; the last digit is cut off, since microseconds are ten of them."""
    return _UNIT * (abs(ticks) // 10) * (-1 if ticks < 0 else 1)


def _date(members: Mapping[str, object]) -> object:
    data = members.get("dateData", members["ticks"])
    return date_of(_whole(data))


def _duration(members: Mapping[str, object]) -> object:
    return duration_of(_whole(members["_ticks"]))


def _moment(members: Mapping[str, object]) -> object:
    """A DateTimeOffset, converted to UTC."""
    moment, offset = members["DateTime"], _whole(members["OffsetMinutes"])
    if not isinstance(moment, datetime.datetime):
        raise TypeError(moment)
    zone = datetime.timezone(datetime.timedelta(minutes=offset))
    return moment.replace(tzinfo=datetime.UTC).astimezone(zone)


def _decimal(members: Mapping[str, object]) -> object:
    flags, high, low, middle = (_whole(members[each]) for each in ("flags", "hi", "lo", "mid"))
    number = (high & _WORD) << 64 | (middle & _WORD) << 32 | low & _WORD
    scale = flags >> 16 & 0xFF
    if scale > _HIGHEST_SCALE:
        raise ValueError(scale)
    return Decimal((int(flags < 0), tuple(map(int, str(number))), -scale))


def _guid(members: Mapping[str, object]) -> object:
    parts = (_whole(members[f"_{letter}"]) for letter in "abcdefghijk")
    return uuid.UUID(bytes_le=struct.pack("<ihh8B", *parts))


def _list(members: Mapping[str, object]) -> object:
    items, size = members["_items"], _whole(members["_size"])
    if not isinstance(items, list | bytes) or not 0 <= size <= len(items):
        raise ValueError(size)
    return items[:size]


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value


_MAKERS: dict[str, Callable[[Mapping[str, object]], object]] = {
    "System.DateTime": _date,
    "System.DateTimeOffset": _moment,
    "System.Decimal": _decimal,
    "System.Guid": _guid,
    "System.TimeSpan": _duration,
    "System.Collections.ArrayList": _list,
}
