"""Libraries in C that are put before the system's own in a process under test."""

import subprocess
from pathlib import Path


def compile_library(name: str, place: Path) -> Path:
    """Compile tests/support/NAME.c, for LD_PRELOAD."""
    source, library = Path(__file__).with_name(f"{name}.c"), place / f"{name}.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library
