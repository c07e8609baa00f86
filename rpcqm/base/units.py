"""Durations and sizes with units: `5s`, `200ms`, `5MB`."""

import re

DURATIONS = {
    "ms": 1,
    "s": 1000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
"""Milliseconds of a unit."""
SIZES = {
    "B": 1,
    **dict.fromkeys(("KB", "KiB"), 1 << 10),
    **dict.fromkeys(("MB", "MiB"), 1 << 20),
    **dict.fromkeys(("GB", "GiB"), 1 << 30),
    **dict.fromkeys(("TB", "TiB"), 1 << 40),
}
"""Octets of a unit: as everywhere in MSMQ a KB is 1,024 octets, and KiB says the same."""
_NAMES = {"ms": "milliseconds", "s": "seconds", "d": "days"}
LONGEST = 40
"""Characters of an amount that is read."""
_AMOUNT = re.compile(r"(\d{1,20})(?:\.(\d{1,9}))? ?([A-Za-z]{1,3})", re.ASCII)


def amount(text: str, unit: str) -> int:
    """An amount with a unit, in whole ones of `unit`, which is one of DURATIONS or SIZES.

    Raises ValueError with a clause that says what is wrong.
    """
    units = DURATIONS if unit in DURATIONS else SIZES
    folded = {name.lower(): value for name, value in units.items()}
    found = _AMOUNT.fullmatch(text) if len(text) <= LONGEST else None
    if found is None or found[3].lower() not in folded:
        raise ValueError(f"is no number with a unit; units are {', '.join(units)}")
    fraction = found[2] or ""
    total = int(found[1] + fraction) * folded[found[3].lower()]
    whole, rest = divmod(total, int("1" + "0" * len(fraction)) * units[unit])
    if rest:
        raise ValueError(f"is not a whole number of {_NAMES.get(unit, unit)}")
    return whole


def duration_text(seconds: float) -> str:
    """A duration for people, in its two largest units."""
    left = max(int(seconds), 0)
    parts: list[str] = []
    for name in ("d", "h", "min", "s"):
        count, left = divmod(left, DURATIONS[name] // 1000)
        if count or (name == "s" and not parts):
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def whole_duration(seconds: int) -> str:
    """A duration in the largest unit of which it is a whole number, as `amount` reads it: `30d`."""
    for name in ("d", "h", "min"):
        if seconds % (DURATIONS[name] // 1000) == 0:
            return f"{seconds * 1000 // DURATIONS[name]}{name}"
    return f"{seconds}s"
