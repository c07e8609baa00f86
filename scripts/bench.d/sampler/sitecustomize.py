"""Counts where the processor time of a Python process goes, from one signal to another.

Python imports it when it starts, because the benches put this directory into PYTHONPATH of the
servers that they start. SIGUSR1 begins; SIGUSR2 ends, and writes the functions with their samples
to a file in the directory BENCH_SAMPLES. Until then it costs nothing. With
BENCH_SAMPLE_ALL it begins at once, and ends with the process. What C does for a function
counts for that function, what the event loop does by itself for the one that runs the loop.
"""

import atexit
import os
import signal
from collections import Counter
from pathlib import Path
from types import FrameType

EVERY = 0.002
"""Seconds of processor time between two samples: some hundreds in a second are enough."""

_samples: Counter[str] = Counter()


def _take(_: int, frame: FrameType | None) -> None:
    if frame is not None:
        code = frame.f_code
        _samples[f"{'/'.join(code.co_filename.split('/')[-2:])} {code.co_qualname}"] += 1


def _begin(_: int, __: FrameType | None) -> None:
    _samples.clear()
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)


def _end(_: int, __: FrameType | None) -> None:
    signal.setitimer(signal.ITIMER_PROF, 0)
    path = Path(os.environ["BENCH_SAMPLES"], str(os.getpid()))
    lines = (f"{count} {name}\n" for name, count in _samples.most_common())
    path.with_suffix(".new").write_text("".join(lines), "utf-8")
    path.with_suffix(".new").rename(path)


if "BENCH_SAMPLE_ALL" in os.environ:
    signal.signal(signal.SIGPROF, _take)
    _begin(0, None)
    atexit.register(_end, 0, None)
elif "BENCH_SAMPLES" in os.environ:
    signal.signal(signal.SIGPROF, _take)
    signal.siginterrupt(signal.SIGPROF, False)
    signal.signal(signal.SIGUSR1, _begin)
    signal.signal(signal.SIGUSR2, _end)
