"""Accounts of a cluster: the node that takes over lets the same people log on."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from rpcqm.base.completion import Completion
from rpcqm.base.errors import DecodeError
from rpcqm.binary.connection.new_sequences import begin_new_sequences
from rpcqm.service.accounts import PASSWORD_PREFIX, Accounts
from rpcqm.store.backup import mark_as_restored
from rpcqm.store.records import Family
from rpcqm.store.replication import GroupLog
from rpcqm.store.store import Store
from tests.support.clock import SimulatedClock
from tests.support.store.kept_log import KeptLog, begin_cluster, replay

T = TypeVar("T")
FIRST, SECOND, THIRD = bytes(range(16)), bytes(range(1, 17)), bytes(range(2, 18))


class Node:
    """The accounts of a directory, as they are while this node is active; None: outside of one."""

    def __init__(self, directory: Path, log: KeptLog | None, clock: SimulatedClock) -> None:
        self.turn: list[Callable[[], None]] = []
        self.log = log
        group_log: GroupLog | None = log
        self.store = Store.open(
            directory,
            end_of_turn=self.turn.append,
            clock=clock,
            log=group_log,
            begin_anew=begin_new_sequences,
        )
        self.accounts = Accounts(self.store, directory, clock=clock)

    def settle(self) -> None:
        while self.turn:
            self.turn.pop(0)()
            while self.log is not None and self.log.answer():
                pass

    def done(self, outcome: Completion[T]) -> None:
        """Nobody is answered before the log has it; then whoever waits is."""
        assert not outcome.done
        self.settle()
        outcome.result()

    def close(self) -> None:
        self.settle()
        self.store.close()

    def passwords(self) -> list[bytes]:
        return [key for key, _ in self.store.records(Family.META, PASSWORD_PREFIX)]


class Pair:
    """Two directories of one cluster; `fails_over` writes to the other one what the log has."""

    def __init__(self, directory: Path) -> None:
        self.directories = [directory / "a", directory / "b"]
        self.clock = SimulatedClock()
        self.log = begin_cluster(self.directories[0])
        begin_cluster(self.directories[1])
        self.log.take_over()
        self._replayed = [0, 0]
        self.active = 0

    def start(self) -> Node:
        self._replayed[self.active] = len(self.log.records)
        replayed = Node(self.directories[self.active], self.log, self.clock)
        replayed.settle()
        return replayed

    def fails_over(self, node: Node) -> Node:
        node.close()
        self._replayed[self.active] = len(self.log.records)
        self.active = 1 - self.active
        self.log.take_over()
        behind = self.log.records[self._replayed[self.active] :]
        replay(self.directories[self.active], behind)
        return self.start()


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def first_node(pair: Pair) -> Node:
    replay(pair.directories[0], pair.log.records)
    return pair.start()


def test_the_node_that_takes_over_has_the_passwords(pair: Pair) -> None:
    node = first_node(pair)
    node.done(node.accounts.add("Alice", FIRST))
    node.done(node.accounts.add("bob", FIRST))
    node.done(node.accounts.set_password("bob", SECOND))
    file = node.accounts.user_file.read_text()
    other = pair.fails_over(node)
    assert other.accounts.has_password("alice", FIRST)
    assert other.accounts.has_password("bob", SECOND)
    assert other.accounts.user_file.read_text() == file
    other.close()


def test_a_password_that_the_log_does_not_have_yet_is_not_the_password(pair: Pair) -> None:
    node = first_node(pair)
    node.done(node.accounts.add("alice", FIRST))
    outcome = node.accounts.set_password("alice", SECOND)
    assert node.accounts.has_password("alice", FIRST)
    node.done(outcome)
    assert node.accounts.has_password("alice", SECOND)
    node.close()


def test_a_node_that_comes_back_does_not_bring_its_old_file_along(pair: Pair) -> None:
    node = first_node(pair)
    node.done(node.accounts.add("alice", FIRST))
    node.done(node.accounts.add("bob", FIRST))
    other = pair.fails_over(node)
    other.done(other.accounts.set_password("alice", SECOND))
    other.done(other.accounts.remove("bob"))
    again = pair.fails_over(other)
    assert again.accounts.has_password("alice", SECOND)
    assert "bob" not in again.accounts.user_file.read_text()
    assert len(again.passwords()) == 1
    again.close()


def test_a_file_that_an_operator_has_changed_is_the_cluster_s(pair: Pair) -> None:
    node = first_node(pair)
    node.done(node.accounts.add("alice", FIRST))
    file = node.accounts.user_file
    file.write_text(file.read_text().replace(FIRST.hex().upper(), THIRD.hex().upper()))
    node.accounts.read_again()
    node.settle()
    other = pair.fails_over(node)
    assert other.accounts.has_password("alice", THIRD)
    other.close()


def test_accounts_from_before_the_cluster_are_on_all_its_nodes(tmp_path: Path) -> None:
    clock, before = SimulatedClock(), tmp_path / "a"
    alone = Node(before, None, clock)
    alone.accounts.add("alice", FIRST)
    alone.close()
    assert alone.accounts.user_file.exists()
    pair = Pair(tmp_path)
    node = first_node(pair)
    node.settle()
    assert len(node.passwords()) == 1
    other = pair.fails_over(node)
    assert other.accounts.has_password("alice", FIRST)
    other.close()


def test_data_restored_outside_of_the_cluster_keep_the_later_password(pair: Pair) -> None:
    node = first_node(pair)
    for name in ("alice", "bob"):
        node.done(node.accounts.add(name, FIRST))
    file = node.accounts.user_file
    old = file.read_text()
    pair.clock.advance(60_000)
    node.done(node.accounts.set_password("bob", SECOND))
    node.close()
    file.write_text(old)  # a standby's, in whose backup it is
    mark_as_restored(pair.directories[0])
    alone = Node(pair.directories[0], None, pair.clock)
    assert alone.accounts.has_password("alice", FIRST)
    assert alone.accounts.has_password("bob", SECOND)
    alone.settle()
    assert alone.passwords() == []
    pair.clock.advance(60_000)
    assert alone.accounts.set_password("alice", THIRD).done
    alone.close()
    later = Node(pair.directories[0], None, pair.clock)
    assert later.accounts.has_password("alice", THIRD)
    later.close()


def test_a_damaged_password_is_not_one(pair: Pair) -> None:
    node = first_node(pair)
    with node.store.transaction("damage") as change:
        change.put(Family.META, PASSWORD_PREFIX + b"alice", b"short")
    node.settle()
    with pytest.raises(DecodeError, match="password"):
        Accounts(node.store, pair.directories[0])
    node.close()
