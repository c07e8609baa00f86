"""The index agrees with a naive model of a queue after any history."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rpcqm.store.records import NEVER, Moves
from tests.unit.store.queue_model import (
    AVAILABLE,
    LEAVING,
    LOCKED,
    PURGE_PENDING,
    QueuePair,
    small_chunks,
)

KEYS = st.builds(
    lambda number, low: number << 56 | low, st.sampled_from([0, 4]), st.integers(0, 12)
)
EXPIRIES = st.one_of(st.just(NEVER), st.integers(0, 50))
MOVES = st.builds(Moves, st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))


class IndexMachine(RuleBasedStateMachine):
    """Everything that transactions may do to an index, in any order."""

    @initialize()
    def begin(self) -> None:
        small_chunks.start()
        self.pair = QueuePair()

    def teardown(self) -> None:
        small_chunks.stop()

    @rule(keys=st.lists(KEYS, max_size=12), expiry=EXPIRIES)
    def insert(self, keys: list[int], expiry: int) -> None:
        for key in keys:
            self.pair.expect(key, expiry)
            self.pair.publish(key)

    @rule(key=KEYS, expiry=EXPIRIES, size=st.integers(0, 9))
    def expect(self, key: int, expiry: int, size: int) -> None:
        self.pair.expect(key, expiry, size)

    @rule(key=KEYS)
    def publish(self, key: int) -> None:
        self.pair.publish(key)

    @rule(key=KEYS)
    def withdraw(self, key: int) -> None:
        self.pair.withdraw(key)

    @rule(keys=st.sets(KEYS, max_size=12))
    def leave(self, keys: set[int]) -> None:
        for key in keys:
            self.pair.leave(key)

    @rule(key=KEYS)
    def come_back(self, key: int) -> None:
        self.pair.come_back(key)

    @rule(keys=st.sets(KEYS, max_size=12))
    def discard(self, keys: set[int]) -> None:
        for key in keys:
            self.pair.discard(key)

    @rule(keys=st.sets(KEYS, max_size=12), owner=st.integers())
    def lock(self, keys: set[int], owner: int) -> None:
        for key in keys:
            self.pair.lock(key, owner)

    @rule(keys=st.sets(KEYS, max_size=12))
    def unlock(self, keys: set[int]) -> None:
        for key in keys:
            self.pair.unlock(key)

    @rule(key=KEYS, undone=st.booleans())
    def purge(self, key: int, undone: bool) -> None:
        self.pair.purge(key, undone)

    @rule(key=KEYS, flags=st.integers(0, 9), moves=MOVES)
    def amend(self, key: int, flags: int, moves: Moves) -> None:
        self.pair.amend(key, flags, moves)

    @rule(key=st.one_of(KEYS, st.sampled_from([0, 8 << 56, NEVER])))
    def neighbours_agree(self, key: int) -> None:
        self.pair.check_neighbours(key)

    @rule(now=st.integers(0, 60))
    def expired_messages_are_named(self, now: int) -> None:
        self.pair.check_expired(now)

    @invariant()
    def everything_agrees(self) -> None:
        self.pair.check()
        self.pair.check_entries()


TestIndex = IndexMachine.TestCase
TestIndex.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def random_key(random: Random) -> int:
    return random.choice([1, 4, 5]) << 56 | random.randrange(80)


def insert_a_run(pair: QueuePair, random: Random) -> None:
    for _ in range(random.randrange(1, 30)):
        key = random_key(random)
        pair.expect(key, random.choice([NEVER, random.randrange(100)]))
        pair.publish(key)


def expect_one(pair: QueuePair, random: Random) -> None:
    key = random_key(random)
    pair.expect(key, random.randrange(100))
    if random.random() < 0.3:
        pair.leave(key)


def settle_one(pair: QueuePair, random: Random) -> None:
    settle = random.choice([pair.withdraw, pair.publish, pair.come_back])
    settle(random.choice([*pair.expected, random_key(random)]))


def lock_a_run(pair: QueuePair, random: Random) -> None:
    for key in pair.among(AVAILABLE)[random.randrange(20) :][: random.randrange(30)]:
        pair.lock(key, random)


def unlock_a_run(pair: QueuePair, random: Random) -> None:
    for key in pair.among(LOCKED, PURGE_PENDING)[: random.randrange(30)]:
        pair.unlock(key)


def purge_some(pair: QueuePair, random: Random) -> None:
    locked = pair.among(LOCKED)
    for key in random.sample(locked, len(locked) // 4):
        pair.purge(key, random.random() < 0.5)


def leave_a_run(pair: QueuePair, random: Random) -> None:
    keys = pair.among(AVAILABLE, LOCKED, PURGE_PENDING)
    for key in keys[random.randrange(9) :][: random.randrange(30)]:
        pair.leave(key)


def finish_a_run(pair: QueuePair, random: Random) -> None:
    for key in pair.among(LEAVING)[random.randrange(9) :][: random.randrange(30)]:
        random.choice([pair.come_back, pair.discard, pair.discard, pair.discard])(key)


def amend_one(pair: QueuePair, random: Random) -> None:
    pair.amend(random_key(random), random.randrange(9), Moves(random.randrange(2), 0, 0))


STEPS = (
    insert_a_run,
    insert_a_run,
    expect_one,
    settle_one,
    lock_a_run,
    unlock_a_run,
    purge_some,
    leave_a_run,
    finish_a_run,
    amend_one,
)


@pytest.fixture
def _small_chunks() -> Iterator[None]:
    with small_chunks:
        yield


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("seed", range(6))
def test_a_long_history_leaves_index_and_model_in_agreement(seed: int) -> None:
    random = Random(seed)
    pair = QueuePair()
    for step in range(1_000):
        random.choice(STEPS)(pair, random)
        pair.check()
        pair.check_neighbours(random_key(random))
        pair.check_expired(random.randrange(110))
        if step % 20 == 0:
            pair.check_entries()
