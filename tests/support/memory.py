"""How much memory a test's process has, and processor time any process has had."""

import gc
import resource
import time
from pathlib import Path


def resident() -> int:
    """Octets that the process has in memory now, after what is garbage has gone."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize()


def processor_seconds(pid: int) -> float:
    """Seconds that the processors have spent on a process, however much else they do.

    The clock of another process is named by its number (clock_getcpuclockid).
    """
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e9
