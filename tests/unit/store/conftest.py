"""A data directory and its turns for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.store.store import Store
from tests.support.store.stores import Turns


@pytest.fixture
def turns(tmp_path: Path) -> Turns:
    return Turns(tmp_path / "data")


@pytest.fixture
def store(turns: Turns) -> Iterator[Store]:
    """A new store; a test that reopens it closes what it opened."""
    store = turns.open()
    yield store
    store.close()
