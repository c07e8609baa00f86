"""Durations and sizes with units."""

import pytest

from rpcqm.base.units import LONGEST, amount, duration_text, whole_duration


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("200ms", "ms", 200),
        ("5s", "ms", 5000),
        ("1.5s", "ms", 1500),
        ("2 h", "s", 7200),
        ("3MIN", "s", 180),
        ("1d", "s", 86_400),
        ("48h", "d", 2),
        ("5MB", "KB", 5120),
        ("5MiB", "KB", 5120),
        ("1024B", "KB", 1),
        ("0.5gb", "MiB", 512),
        ("1TB", "B", 1 << 40),
    ],
)
def test_an_amount_is_told_in_the_unit_that_is_asked_for(
    text: str, unit: str, expected: int
) -> None:
    assert amount(text, unit) == expected


@pytest.mark.parametrize(
    ("text", "unit", "why"),
    [
        ("5", "s", "units are ms, s, min, h, d"),
        ("5x", "s", "units are ms, s, min, h, d"),
        ("-5s", "s", "no number"),
        ("s", "s", "no number"),
        ("\u0665s", "s", "no number"),
        ("5s", "KB", "units are B, KB"),
        ("1500ms", "s", "not a whole number of seconds"),
        ("1B", "KB", "not a whole number of KB"),
        ("0" * LONGEST + "5s", "s", "no number"),
    ],
)
def test_what_is_no_whole_amount_is_refused(text: str, unit: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        amount(text, unit)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (-3, "0 s"),
        (59.9, "59 s"),
        (600, "10 min"),
        (90_061, "1 d 1 h"),
        (61, "1 min 1 s"),
    ],
)
def test_a_duration_is_told_in_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(1, "1s"), (59, "59s"), (60, "1min"), (90, "90s"), (5_400, "90min"), (2_592_000, "30d")],
)
def test_a_duration_is_written_as_it_is_read(seconds: int, written: str) -> None:
    assert whole_duration(seconds) == written
    assert amount(written, "s") == seconds
