"""A queue manager on a small disk that another program fills; it prints what happened as JSON.

Usage: python -m tests.crash.full_service DISK ELSEWHERE
"""

import json
import sys
from pathlib import Path
from typing import Any

from rpcqm.testing.private import PrivateQueueManager

CONFIGURATION = "[storage]\nreserve = 8\nballast = 24\nqueue_quota = 4294967295\n"
MESSAGES = 40


class OtherProgram:
    """Fills the disk to the last byte, whenever it is told to."""

    def __init__(self, directory: Path) -> None:
        self._file = (directory / "other").open("ab", buffering=0)

    def fill(self) -> None:
        size = 1 << 20
        while size:
            try:
                self._file.write(bytes(size))
            except OSError:
                size //= 2


def main() -> None:
    disk, data, seen = Path(sys.argv[1]), Path(sys.argv[2]) / "data", dict[str, Any]()
    (disk / "data").mkdir(mode=0o711)
    data.symlink_to(disk / "data")  # its log and its configuration are elsewhere
    running = PrivateQueueManager(data, configuration=CONFIGURATION)
    running.start()
    running.run("queue", "create", "orders")
    running.run("send", "orders", "--count", str(MESSAGES), "--body", "x" * 1_000)
    other = OtherProgram(disk)
    other.fill()
    received = running.run("receive", "orders", "--count", "20", "--format", "body", check=False)
    seen["received"] = received.stdout.count("x" * 1_000), received.stderr
    refused = running.run("send", "orders", "--body", "x", check=False)
    seen["refused"] = refused.returncode, refused.stderr
    seen["lives"] = running.process is not None and running.process.poll() is None
    running.stop()
    other.fill()
    running.start()
    received = running.run("receive", "orders", "--count", "20", "--format", "body", check=False)
    seen["received_again"] = received.stdout.count("x" * 1_000), received.stderr
    seen["log"] = running.log
    running.stop()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
