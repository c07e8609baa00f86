"""Moments as programs are told them."""

from datetime import UTC, datetime

import pytest

from rpcqm.base.text import iso_time, number_of_64_bits
from rpcqm.cli.output import time_text
from rpcqm.console.rendering import clock, instant, moment

MOMENTS = (1, 1.5, 1_700_000_000, 1_700_000_000.123, 1_795_000_000.9999996, 4e9 + 0.001, -1.25)


@pytest.mark.parametrize("seconds", MOMENTS)
def test_a_moment_is_told_as_the_calendar_has_it(seconds: float) -> None:
    told = datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    assert iso_time(seconds) == told == iso_time(seconds)


def test_no_moment_is_told_as_none() -> None:
    assert iso_time(0) is None


@pytest.mark.parametrize(
    ("seconds", "year"), [(2.0**63, "9999"), (1e300, "9999"), (-1e300, "1900")], ids=str
)
def test_a_moment_that_no_calendar_has_is_written(seconds: float, year: str) -> None:
    assert (iso_time(seconds) or "").startswith(year)
    assert moment(seconds * 1000).startswith(year)
    assert instant(int(seconds * 1000)).startswith(year)
    assert clock(seconds * 1000).endswith("UTC")
    assert time_text(seconds).startswith(year)


@pytest.mark.parametrize("number", [0, 7, (1 << 64) - 1])
def test_a_number_of_64_bits_is_read(number: int) -> None:
    assert number_of_64_bits(str(number)) == number


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", " 1", "1 ", "1_0", "٣", "1.0", str(1 << 64), "0" * 21]
)
def test_another_text_is_no_number_of_64_bits(text: str) -> None:
    assert number_of_64_bits(text) is None
