"""Programs with little memory and processor time, lest an attack takes those of the machine."""

import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
MEMORY = 1 << 30
SECONDS = 20


def run_bounded(
    program: str,
    *words: str,
    environment: Mapping[str, str] | None = None,
    memory: int = MEMORY,
    seconds: int = SECONDS,
) -> subprocess.CompletedProcess[str]:
    """A Python program to its end; one that takes more than it may fails or is killed."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    return subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=ROOT,
        env=environment,
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
