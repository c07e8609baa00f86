"""Runs a program for a message, with a time, an end of all its processes, and a bounded output.

A program is a process group of its own. The group is ended with the program, or when the time is
over, so that none of its processes goes on (G649).
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from rpcqm.base.programs import ending_of
from rpcqm.base.text import visible
from rpcqm.triggers.outcome import Outcome, done, failed, trouble

KEPT_OUTPUT = 4_096
"""Octets of a program's output that are shown; the rest is read and dropped.

A program may print without an end.

Bound `triggers.kept_output` [octets]: the rest of the output is left out.
"""
_READ = 65_536
_LAST_OUTPUT = 1.0
"""Seconds for reading the rest of a pipe, which other processes may hold open."""
_CANNOT_START = (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError)


@dataclass(frozen=True, slots=True)
class Order:
    """A program to run; `seconds` is its time."""

    words: Sequence[str]
    body: bytes
    seconds: float
    environment: Mapping[str, str]


async def run_program(order: Order) -> Outcome:
    """Run a program to its end; an exit status of 0 is success."""
    name = order.words[0]
    try:
        process = _started(order)
    except _CANNOT_START as error:
        return trouble(f"{name} cannot be run: {_reason(error)}")
    except OSError as error:
        return failed(f"{name} cannot be run: {_reason(error)}")
    with _Output(process) as output:
        status = await _status(process, order.seconds)
        await output.rest()
    return _outcome(order, status, bytes(output.kept))


def _started(order: Order) -> "subprocess.Popen[bytes]":
    """Start a program; its input is a file without a name, so that it need not read it."""
    with os.fdopen(os.memfd_create("body"), "w+b") as body:
        body.write(order.body)
        body.seek(0)
        return subprocess.Popen(
            order.words,
            stdin=body,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(order.environment),
            cwd="/",
            start_new_session=True,
        )


async def _status(process: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    """The exit status, None if the time was over; afterwards no process of its group is left.

    asyncio's own processes end with their pipes, which other processes may hold open.
    """
    in_time = True
    with _Exit(process.pid) as ended:
        try:
            async with asyncio.timeout(seconds):
                await ended.wait()
        except TimeoutError:
            in_time = False
        finally:  # the group is there as long as the program was not waited for
            status = await _killed(process, ended)
    return status if in_time else None


async def _killed(process: "subprocess.Popen[bytes]", ended: "_Exit") -> int:
    """The exit status of a program whose group is ended.

    A program that runs as another user, by the mode of its file, cannot be ended: it ends by
    itself.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await ended.wait()
    return process.wait()


class _Exit:
    """Waits for the end of a process without reaping it."""

    def __init__(self, pid: int) -> None:
        self._file = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()

    def __enter__(self) -> Self:
        self._loop.add_reader(self._file, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._file)
        os.close(self._file)

    def _note(self) -> None:
        self._loop.remove_reader(self._file)
        self._ended.set()

    async def wait(self) -> None:
        """Wait for the end."""
        await self._ended.wait()


class _Output:
    """The output of a program: all of it is read, its beginning is kept."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        self._pipe = process.stdout
        self._file = process.stdout.fileno()
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self.kept = bytearray()
        os.set_blocking(self._file, False)

    def __enter__(self) -> Self:
        self._loop.add_reader(self._file, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._file)
        self._pipe.close()

    def _read(self) -> None:
        try:
            part = os.read(self._file, _READ)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        self.kept += part[: KEPT_OUTPUT - len(self.kept)]
        if not part:
            self._loop.remove_reader(self._file)
            self._ended.set()

    async def rest(self) -> None:
        """Wait for the rest of the pipe."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_OUTPUT):
                await self._ended.wait()


def _outcome(order: Order, status: int | None, output: bytes) -> Outcome:
    said = visible(output.decode("utf-8", "replace").strip())
    name = order.words[0]
    after = f": {said}" if said else ""
    if status == 0:
        return done(f"{name} went well{after}")
    if status is None:
        return failed(f"{name} was ended after {order.seconds:g} s{after}")
    return failed(f"{name} {ending_of(status)}{after}")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
