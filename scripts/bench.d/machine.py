"""What machine the figures are from; it has no name here."""

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides how fast it is."""

    processors: str
    kernel: str
    file_system: str
    python: str


def this_machine(directory: Path) -> Machine:
    """This one; the file system is that of a directory."""
    return Machine(
        f"{len(os.sched_getaffinity(0))} of {_model()}",
        f"{platform.system()} {platform.release()} ({platform.machine()})",
        file_system_of(directory, Path("/proc/self/mounts").read_text("utf-8")),
        platform.python_version(),
    )


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def file_system_of(directory: Path, mounts: str) -> str:
    """The kind of file system that a directory is on: of its mount point that is the longest."""
    kinds = {Path(line.split()[1]): line.split()[2] for line in mounts.splitlines()}
    above = [each for each in (directory, *directory.parents) if each in kinds]
    return kinds[above[0]] if above else "unknown"


def busy(seconds: float = 1.0) -> float:
    """The share of the processors' time that is used while this process only waits."""
    before = _ticks()
    time.sleep(seconds)
    idle, everything = (now - then for now, then in zip(_ticks(), before, strict=True))
    return 1 - idle / everything if everything else 0.0


def _ticks() -> tuple[int, int]:
    """Idle ticks, waiting for the disk included, and all."""
    ticks = [
        int(each) for each in Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:9]
    ]
    return ticks[3] + ticks[4], sum(ticks)
