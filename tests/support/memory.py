"""How much memory a test's process has."""

import gc
import resource
from pathlib import Path


def resident() -> int:
    """Octets that the process has in memory now, after what is garbage has gone."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize()
