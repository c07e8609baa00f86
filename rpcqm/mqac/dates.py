"""Times in the form of automation."""

from rpcqm.codec.automation.values import Variant
from rpcqm.codec.types.mqvalues import VARENUM

_DAYS_TO_1970 = 25_569
_SECONDS_OF_DAY = 86_400


def date_variant(seconds: int) -> Variant:
    """A time in seconds since 1970 as a VT_DATE: days since 1899-12-30, UTC."""
    return Variant(VARENUM.VT_DATE, _DAYS_TO_1970 + seconds / _SECONDS_OF_DAY)


def seconds_of(days: float) -> int:
    """A DATE in seconds since 1970."""
    return round((days - _DAYS_TO_1970) * _SECONDS_OF_DAY)
