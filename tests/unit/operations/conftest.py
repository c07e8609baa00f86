"""What operators and programs do, for every test."""

from pathlib import Path

import pytest

from rpcqm.operations.operations import Operations
from tests.support.qm.operators import operations_of
from tests.support.queue_manager import RunningQueueManager


@pytest.fixture
def operations(qm: RunningQueueManager, tmp_path: Path) -> Operations:
    return operations_of(qm, tmp_path)
