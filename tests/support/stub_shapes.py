"""What shapes tell of values."""

import uuid


def as_told(value: object) -> set[object]:
    """What a shape may tell of a value: arrays and strings of characters as octets, UUIDs too."""
    if isinstance(value, str):
        return {(value + end).encode("utf-16-le", "surrogatepass") for end in ("", "\0")}
    return {value.bytes_le} if isinstance(value, uuid.UUID) else {value}
