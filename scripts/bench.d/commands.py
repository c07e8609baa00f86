#!/usr/bin/env python3
"""What a command of one call takes: the processor time of its whole process, with its start.

The note has that of `python -c pass`, which is the same machine's least for any of them.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from figures import Figure, attempt, figure
from harness import few
from served import RPCQM, serving

ROUNDS = 15
QUEUE = "orders"
COMMANDS = {
    "rpcqm --help": ("--help",),
    "rpcqm queue list": ("queue", "list"),
    "rpcqm send": ("send", QUEUE, "--body", "hello"),
    "rpcqm peek": ("peek", QUEUE),
}
BARE = (sys.executable, "-c", "pass")


def spent() -> float:
    """Processor time of the processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cost(argv: Sequence[str], environment: Mapping[str, str]) -> float:
    """Processor time of a process: the median of some."""
    taken = []
    for _ in range(max(few(ROUNDS), 2)):
        before = spent()
        subprocess.run(argv, env=environment, stdout=subprocess.DEVNULL, check=True)
        taken.append(spent() - before)
    return statistics.median(taken)


def name_of(command: str) -> str:
    """Of the row of a command."""
    return f"`{command}` from its start to its end"


def measured(command: str, environment: Mapping[str, str]) -> Figure:
    """The figure of one command."""
    bare = cost(BARE, environment)
    taken = cost((*RPCQM, *COMMANDS[command]), environment)
    return figure(name_of(command), taken, f"`python -c pass`: {1000 * bare:.0f} ms")


def run() -> Iterator[Figure]:
    """The figures for scripts/bench."""
    with tempfile.TemporaryDirectory() as root, serving(Path(root)) as served:
        served.command("queue", "create", QUEUE)
        served.command("send", QUEUE, "--body", "hello")
        environment = {**os.environ, "RPCQM_DATA_DIR": str(served.data)}
        # Installed packages have their bytecode; without it each run would compile them.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for command in COMMANDS:
            yield from attempt(name_of(command), partial(measured, command, environment))
