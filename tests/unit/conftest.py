"""A queue manager for every test that asks for one."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.queue_manager import MEMORY, RunningQueueManager


@pytest.fixture
def qm() -> Iterator[RunningQueueManager]:
    with TemporaryDirectory(prefix="rpcqm-qm-", dir=MEMORY) as directory:
        running = RunningQueueManager(Path(directory))
        yield running
        running.stop()
