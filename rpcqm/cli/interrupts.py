"""Ctrl-C before a command does anything.

Python raises KeyboardInterrupt between two instructions, whatever they belong to; in the locks of
the import system it is ignored and lost. So Ctrl-C ends the process while modules are loaded.
"""

import os
import signal
from types import FrameType

INTERRUPTED = 130
"""The exit status; `ExitStatus` is not loaded yet."""


def end_at_once() -> None:
    """Let Ctrl-C end the process from now on, unless it is set to be ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """Undo `end_at_once`, before the command opens anything that it must close at its end."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
