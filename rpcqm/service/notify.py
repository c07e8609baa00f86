"""Telling a service manager how it goes: the protocol of sd_notify(3)."""

import contextlib
import os
import socket
import time

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"
STATUS = "STATUS="
"""A sentence follows, which `systemctl status` shows."""

_SIGNS_PER_INTERVAL = 3


def notify(state: str) -> None:
    """Send a state to the service manager that started us, if one did."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as client,
    ):
        client.connect(address)
        client.sendall(state.encode())


def reloading() -> str:
    """The state of a service that takes over its configuration from now on."""
    return f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}"


def watchdog_seconds() -> float | None:
    """How often this process has to give a sign of life; None where nobody watches it."""
    watched = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    interval = os.environ.get("WATCHDOG_USEC", "")
    if not watched or not interval.isdecimal() or int(interval) == 0:
        return None
    return int(interval) / 1_000_000 / _SIGNS_PER_INTERVAL
