"""A queue manager whose interfaces are served, for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.queue_manager import RunningQueueManager


@pytest.fixture
def qm(tmp_path: Path) -> Iterator[RunningQueueManager]:
    running = RunningQueueManager(tmp_path)
    yield running
    running.stop()
