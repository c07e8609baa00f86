"""Numbers that callers keep: random, because DWORD handles are all that protects them (G43)."""

import secrets
from collections.abc import Container

_INVALID = 0xFFFF_FFFF
"""INVALID_HANDLE_VALUE, which is -1 as a long."""


def new_handle(taken: Container[int]) -> int:
    """A random 32-bit number that is not in `taken`, nor 0 or all ones, which mean none."""
    while True:
        handle = secrets.randbits(32)
        if 0 < handle < _INVALID and handle not in taken:
            return handle
