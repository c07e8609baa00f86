"""Connections of a test from inside of a network namespace."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.network.namespace import Namespace

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def entered(namespace: Namespace) -> Iterator[None]:
    """Whatever this thread connects, and threads that it starts, is inside; takes root."""
    outside = Path("/proc/thread-self/ns/net")
    before = os.open(outside, os.O_RDONLY)
    try:
        _enter(namespace.network)
        yield
    finally:
        _enter_descriptor(before)
        os.close(before)


def _enter(path: Path) -> None:
    inside = os.open(path, os.O_RDONLY)
    try:
        _enter_descriptor(inside)
    finally:
        os.close(inside)


def _enter_descriptor(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
