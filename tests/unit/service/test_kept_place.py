"""A node claims to have what its database goes on from after a restart, and no more."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from rpcqm.service.cluster.kept_place import SIGNS_OF_LIFE, KeptPlace
from rpcqm.store.database import Database
from rpcqm.store.migration import enter_cluster, place_of_database
from rpcqm.store.replication import Place
from rpcqm.store.settings import StoreSettings
from tests.support.store.kept_log import INCARNATION

BEGINNING = Place.beginning(INCARNATION)


@dataclass
class Node:
    database: Database
    end: Place = BEGINNING
    is_between: bool = True

    def number(self) -> int:
        return KeptPlace(self.database, lambda: self.end, lambda: self.is_between).number()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    database = Database(tmp_path / "data", StoreSettings())
    enter_cluster(database, BEGINNING)
    yield Node(database)
    database.close()


def test_signs_of_life_are_not_claimed_until_their_place_is_written(node: Node) -> None:
    node.end = replace(BEGINNING, number=SIGNS_OF_LIFE - 1, epoch=1)
    assert node.number() == 0
    node.end = replace(BEGINNING, number=SIGNS_OF_LIFE, epoch=1)
    assert node.number() == SIGNS_OF_LIFE
    assert place_of_database(node.database) == node.end


def test_the_place_is_not_written_before_the_rows(node: Node) -> None:
    """The log may have a part of a write, or a whole one that is not written here yet."""
    node.end, node.is_between = replace(BEGINNING, number=1_000, epoch=1), False
    assert node.number() == 0
    assert place_of_database(node.database) == BEGINNING
