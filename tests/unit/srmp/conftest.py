"""A queue manager that takes messages by HTTP."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.queue_manager import MEMORY
from tests.support.srmp.srmp_door import Door


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


@pytest.fixture
def door(directory: Path) -> Iterator[Door]:
    door = Door(directory)
    yield door
    door.stop()
