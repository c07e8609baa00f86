"""Parsed IDL files, cached beside the bytecode.

Building the parser's tables and parsing cost each new process several times as much as reading the
result. A copy is named by a digest of the text and of all code that made it, so a stale one is
never read; nothing is cached in a directory that cannot be written.
"""

import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def kept(directory: Path, name: str, sources: list[bytes], make: Callable[[], T]) -> T:
    """The object made from `sources`, from `directory`/__pycache__, or made and cached there."""
    digest = hashlib.sha256(sys.version.encode())
    for source in sources:
        digest.update(hashlib.sha256(source).digest())
    path = directory / "__pycache__" / f"{name}.{digest.hexdigest()[:24]}.tree"
    # a damaged copy can make pickle raise nearly anything; the object is made anew
    with suppress(Exception):
        made: T = pickle.loads(path.read_bytes())
        return made
    made = make()
    with suppress(OSError):  # without a copy the next process parses again
        _write(path, pickle.dumps(made))
    return made


def _write(path: Path, data: bytes) -> None:
    """Write the file whole or not at all, and delete copies of older sources."""
    path.parent.mkdir(exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
    for old in path.parent.glob(f"{path.name.split('.')[0]}.*.tree"):
        if old != path:
            old.unlink(missing_ok=True)
