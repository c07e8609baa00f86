"""Files of Windows' Network Monitor, made by hand."""

import struct
from collections.abc import Sequence

from tests.support.capture.captures import TIME

START = (2023, 11, 2, 14, 22, 13, 20, 0)
"""Year, month, day of the week, day, hour, minute, second and millisecond of `TIME`, in UTC."""
_TO_1970 = 116_444_736_000_000_000


def frame(
    data: bytes, number: int, minor: int, network: int = 1, ticks: int | None = None
) -> bytes:
    """A frame a millisecond behind the one before; `ticks` are 100 ns since 1601."""
    own = ticks if ticks is not None else _TO_1970 + TIME // 100 + number * 10_000 + 1
    trailers = (b"", struct.pack("<H", network), struct.pack("<HI", network, 0))
    trailer = trailers[minor] if minor < 3 else trailers[2] + struct.pack("<QB", own, 0)
    return struct.pack("<qII", number * 1000, len(data), len(data)) + data + trailer


def netmon(
    frames: Sequence[bytes],
    minor: int = 0,
    places: Sequence[int] | None = None,
    hole: int = 0,
    network: int = 1,
    start: Sequence[int] = START,
) -> bytes:
    """A file with its table at the end; `places` stand in it instead of the right ones."""
    body, right = b"", []
    for each in frames:
        body += bytes(hole)
        right.append(128 + len(body))
        body += each
    table = struct.pack(f"<{len(places or right)}I", *(places or right))
    head = struct.pack(
        "<4sBBH8HII", b"GMBU", minor, 2, network, *start, 128 + len(body), len(table)
    )
    return head.ljust(128, b"\0") + body + table
