"""`rpcqm` with a probe of its event loop: how long the longest turn is, by processor time.

From SIGRTMIN to SIGRTMIN + 1 something is called in each turn of the loop. What the loop's thread
has computed between two calls is a turn: nobody else is served meanwhile. Other programs on the
machine do not count, unlike in times by the clock. The longest turns are written to a file in the
directory BENCH_TURNS, in nanoseconds.
"""

import asyncio
import heapq
import os
import signal
import sys
import time
from pathlib import Path

LONGEST = 10
"""How many are told."""


class Probe:
    """Measures between two signals."""

    def __init__(self) -> None:
        self._on = False
        self._before = 0
        self._longest: list[int] = []

    def begin(self, *_: object) -> None:
        self._on, self._longest = True, [0] * LONGEST
        self._before = time.thread_time_ns()
        asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        now = time.thread_time_ns()
        heapq.heappushpop(self._longest, now - self._before)
        if self._on:
            self._before = now
            asyncio.get_running_loop().call_soon(self._turn)

    def end(self, *_: object) -> None:
        self._on = False
        path = Path(os.environ["BENCH_TURNS"], str(os.getpid()))
        told = " ".join(str(each) for each in sorted(self._longest, reverse=True))
        path.with_suffix(".new").write_text(told, "ascii")
        path.with_suffix(".new").rename(path)


if __name__ == "__main__":
    from rpcqm.cli.main import main

    probe = Probe()
    signal.signal(signal.SIGRTMIN, probe.begin)
    signal.signal(signal.SIGRTMIN + 1, probe.end)
    sys.exit(main())
