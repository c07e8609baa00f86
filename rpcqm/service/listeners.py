"""Listening on the ports that were asked for, and saying clearly why one cannot be had."""

import errno
import itertools
from collections.abc import Awaitable, Callable, Iterable

from rpcqm.service.start_error import StartError

STEP = 11
"""From a port that is taken to the next one to try ([MS-MQRR] 3.1.4.1)."""
HIGHEST_PORT = 65535

Listen = Callable[[str, int], Awaitable[int]]


async def open_listener(
    listen: Listen,
    option: str,
    host: str,
    port: int | None,
    first: int,
    host_option: str = "--host",
) -> int | None:
    """The port that `listen` got, None for a door that is switched off.

    Without a port it is the first free one of `first`, `first` + 11 and so on; a port of 0 is
    any. `option` and `host_option` say how others are chosen. Raises StartError.
    """
    if port is not None and port < 0:
        return None
    candidates: Iterable[int] = (port,) if port is not None else _from(first)
    for candidate in candidates:
        try:
            return await listen(host, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or port is not None:
                text = _explained(error, option, host, candidate, host_option)
                raise StartError(text) from error
    raise StartError(f"No port from {first} on is free on {host}; choose one with {option}.")


def _from(first: int) -> Iterable[int]:
    return itertools.takewhile(lambda port: port <= HIGHEST_PORT, itertools.count(first, STEP))


def _explained(error: OSError, option: str, host: str, port: int, host_option: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} of {host} is in use by another program; choose another one with "
            f"{option}, or 0 for a free one."
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"Port {port} may only be opened by root; choose one from 1024 on with {option}, or "
            "give the process CAP_NET_BIND_SERVICE."
        )
    reason = (error.strerror or str(error)).split(" (while", 1)[0].rstrip(".")
    return f"Cannot listen on {host}, port {port}: {reason}; choose an address with {host_option}."
