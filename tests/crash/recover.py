"""The process that recovers what a crash has left, and says which state it has found.

Usage: python -m tests.crash.recover DIRECTORY
"""

import os
import sys
from pathlib import Path

from rpcqm.store.store import Store
from tests.crash.script import marker_of
from tests.crash.workload import SETTINGS


def main() -> None:
    root = Path(sys.argv[1])
    said = os.open(root / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    store = Store.open(root / "data", end_of_turn=print, settings=SETTINGS)
    os.write(said, f"found {marker_of(store)}\n".encode())
    store.close()


if __name__ == "__main__":
    main()
