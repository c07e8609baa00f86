"""Numbers for callers: random, because DWORD handles are protected by nothing else (G43)."""

import os
import struct
from collections.abc import Container, Iterator

_INVALID = 0xFFFF_FFFF
"""INVALID_HANDLE_VALUE, which is -1 as a long."""


_DRAWN_AT_ONCE = 256
"""Numbers drawn from the kernel at once, because each call takes microseconds."""


def _numbers() -> Iterator[int]:
    while True:
        yield from struct.unpack(f"<{_DRAWN_AT_ONCE}I", os.urandom(4 * _DRAWN_AT_ONCE))


_random = _numbers()


def new_handle(taken: Container[int]) -> int:
    """A random 32-bit number that is not in `taken`, nor 0 or all ones, which mean none."""
    while True:
        handle = next(_random)
        if 0 < handle < _INVALID and handle not in taken:
            return handle
