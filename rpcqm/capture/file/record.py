"""What all formats of captures have in common: records, and what is plausible."""

Record = tuple[int, int, bytes, int, int]
"""Nanoseconds since 1970, link type, captured octets, original length, offset in the file."""

MAXIMUM_RECORD = 1 << 24
"""Longer records are damage: no link layer has frames of 16 MiB."""
