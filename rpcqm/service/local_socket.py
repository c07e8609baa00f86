"""Where local callers connect."""

import os
import shutil
import tempfile
from pathlib import Path

NAME = "rpcqm.sock"
LONGEST = 107
"""Bytes that the address of a Unix socket has room for."""


class LocalSocket:
    """A place for the socket: what a service manager gives, else the data directory.

    A path that is too long is replaced by one in a temporary directory, which `remove` deletes.
    """

    def __init__(self, data_dir: Path) -> None:
        runtime = os.environ.get("RUNTIME_DIRECTORY", "").split(":")[0]
        self.path = (Path(runtime) if runtime else data_dir.absolute()) / NAME
        self._temporary: Path | None = None
        if len(os.fsencode(self.path)) > LONGEST:
            self._temporary = Path(tempfile.mkdtemp(prefix="rpcqm-"))
            self._temporary.chmod(0o711)  # everybody may connect, nobody else may look around
            self.path = self._temporary / NAME

    def remove(self) -> None:
        """Delete what was made for it."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
