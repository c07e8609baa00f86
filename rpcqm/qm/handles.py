"""Numbers that callers keep: random, because DWORD handles are all that protects them (G43)."""

import secrets
from collections.abc import Container


def new_handle(taken: Container[int]) -> int:
    """A random 32-bit number that is not zero and not in `taken`."""
    while True:
        handle = secrets.randbits(32)
        if handle and handle not in taken:
            return handle
