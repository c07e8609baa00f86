"""Messages in runs: the same as one by one, whatever happens."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rpcqm.base.errors import MQError
from rpcqm.store.errors import PositionStateError
from rpcqm.store.fsck import check
from rpcqm.store.records import NEVER, Family
from rpcqm.store.run_changes import are_held
from rpcqm.store.runs import cut
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction
from tests.support.store.store_state import state_of
from tests.support.store.stores import Turns
from tests.unit.store.queue_model import small_chunks
from tests.unit.store.twin import A, B, Half, NewMessage, Twin, any_number_in_columns

SOME_QUEUE = st.sampled_from([A, A, B])
MESSAGES = st.lists(
    st.tuples(
        st.sampled_from([3, 3, 3, 0, 7]),
        st.integers(0, 40),
        st.one_of(st.just(NEVER), st.integers(0, 60)),
        st.sampled_from([1, 1, 0x3F]),
    ),
    max_size=12,
)
PLACES = st.sets(st.integers(0, 40), max_size=12)
MOSTLY = st.sampled_from([True, True, True, False])
SELDOM = st.sampled_from([False, False, False, True])


class RunMachine(RuleBasedStateMachine):
    """Changes of two stores, one by one and in runs, in any order."""

    thread = False

    @initialize()
    def begin(self) -> None:
        small_chunks.start()
        any_number_in_columns.start()
        self._directory = TemporaryDirectory()
        self.twin = Twin(Path(self._directory.name), self.thread)
        self.kept: list[int] = []
        self._bodies = count()

    def teardown(self) -> None:
        try:
            self.twin.check_disk()
            self.twin.close()
            for half in ("single", "runs"):
                assert check(Path(self._directory.name) / half) == []
        finally:
            self._directory.cleanup()
            any_number_in_columns.stop()
            small_chunks.stop()

    def _new(self, messages: Sequence[tuple[int, int, int, int]]) -> list[NewMessage]:
        keys = self.twin.new_keys([priority for priority, *_ in messages])
        return [
            NewMessage(key, b"%d" % next(self._bodies) + bytes(size), expiry, flags)
            for key, (_, size, expiry, flags) in zip(keys, messages, strict=True)
        ]

    def _insert(self, queue: int, new: list[NewMessage], durable: bool, fails: bool) -> None:
        self.twin.change(lambda half, txn: half.insert(txn, queue, new, durable), fails)

    @rule(queue=SOME_QUEUE, messages=MESSAGES, durable=MOSTLY, fails=SELDOM)
    def insert(
        self, queue: int, messages: list[tuple[int, int, int, int]], durable: bool, fails: bool
    ) -> None:
        self._insert(queue, self._new(messages), durable, fails)

    @rule(messages=MESSAGES)
    def take_identifiers_for_later(self, messages: list[tuple[int, int, int, int]]) -> None:
        self.kept += self.twin.new_keys([priority for priority, *_ in messages])

    @rule(queue=SOME_QUEUE, size=st.integers(0, 9), durable=MOSTLY, data=st.data())
    def insert_where_others_are_behind(
        self, queue: int, size: int, durable: bool, data: st.DataObject
    ) -> None:
        self.insert_kept(queue, data.draw(st.permutations(self.kept)), size, durable)

    def insert_kept(self, queue: int, kept: list[int], size: int = 5, durable: bool = True) -> None:
        """Insert messages with half of the identifiers that were taken for later."""
        new = [NewMessage(key, bytes(size), NEVER, 1) for key in kept[: len(kept) // 2]]
        self.kept = kept[len(kept) // 2 :]
        self._insert(queue, new, durable, fails=False)

    @rule(queue=SOME_QUEUE, messages=MESSAGES, place=st.integers(0, 40), durable=MOSTLY)
    def insert_what_is_there(
        self, queue: int, messages: list[tuple[int, int, int, int]], place: int, durable: bool
    ) -> None:
        there = self.twin.single.keys(queue)
        new = self._new(messages)
        if there and new:
            new.append(new[0]._replace(key=there[place % len(there)]))
            self._insert(queue, new, durable, fails=False)

    @rule(queue=SOME_QUEUE, messages=MESSAGES, durable=MOSTLY, fails=SELDOM, places=PLACES)
    def insert_and_remove_some(
        self,
        queue: int,
        messages: list[tuple[int, int, int, int]],
        durable: bool,
        fails: bool,
        places: set[int],
    ) -> None:
        new = self._new(messages)
        keys = [each.key for at, each in enumerate(new) if at in places]

        def change(half: Half, txn: StoreTransaction) -> None:
            half.insert(txn, queue, new, durable)
            half.remove(txn, queue, keys)

        self.twin.change(change, fails)

    @rule(queue=SOME_QUEUE, messages=MESSAGES)
    def insert_in_a_block_that_cannot_be_written(
        self, queue: int, messages: list[tuple[int, int, int, int]]
    ) -> None:
        new = self._new(messages)

        def change(half: Half, txn: StoreTransaction) -> None:
            half.insert(txn, queue, new, durable=True)
            txn.operations.append((b"key", "no octets", half.store.handles[Family.QUEUE]))  # type: ignore[arg-type]

        self.twin.change(change)

    @rule(queue=SOME_QUEUE, places=PLACES, fails=SELDOM)
    def remove(self, queue: int, places: set[int], fails: bool) -> None:
        there = self.twin.single.keys(queue)
        keys = [there[place] for place in sorted(places) if place < len(there)]
        self.twin.change(lambda half, txn: half.remove(txn, queue, keys), fails)

    @rule(queue=SOME_QUEUE, first=st.integers(0, 20), length=st.integers(0, 20), fails=SELDOM)
    def remove_neighbours(self, queue: int, first: int, length: int, fails: bool) -> None:
        keys = self.twin.single.keys(queue)[first : first + length]
        self.twin.change(lambda half, txn: half.remove(txn, queue, keys), fails)

    @rule(queue=SOME_QUEUE, places=PLACES, other=st.integers(0, 1 << 60), at=st.integers(0, 12))
    def remove_what_is_not_there(self, queue: int, places: set[int], other: int, at: int) -> None:
        there = self.twin.single.keys(queue)
        keys = [there[place] for place in sorted(places) if place < len(there)]
        keys.insert(at, keys[0] if keys and other % 2 else other)
        self.twin.change(lambda half, txn: half.remove(txn, queue, keys))

    @rule(queue=SOME_QUEUE, places=PLACES)
    def lock(self, queue: int, places: set[int]) -> None:
        there = self.twin.single.keys(queue)
        keys = [there[place] for place in sorted(places) if place < len(there)]
        self.twin.all(lambda half: half.lock(queue, keys))

    @rule(queue=SOME_QUEUE, first=st.integers(0, 20), length=st.integers(0, 20))
    def lock_neighbours(self, queue: int, first: int, length: int) -> None:
        keys = self.twin.single.keys(queue)[first : first + length]
        self.twin.all(lambda half: half.lock(queue, keys))

    @rule(queue=SOME_QUEUE, places=PLACES)
    def unlock(self, queue: int, places: set[int]) -> None:
        there = self.twin.single.keys(queue)
        keys = [there[place] for place in sorted(places) if place < len(there)]
        self.twin.all(lambda half: half.unlock(queue, keys))

    @rule(queue=SOME_QUEUE, place=st.integers(0, 40), fails=SELDOM)
    def purge_a_locked_one(self, queue: int, place: int, fails: bool) -> None:
        there = self.twin.single.keys(queue)
        if there:
            key = there[place % len(there)]
            self.twin.change(lambda half, txn: txn.purge(queue, key), fails)

    @rule(place=st.integers(0, 40), fails=SELDOM)
    def move_one(self, place: int, fails: bool) -> None:
        there = self.twin.single.keys(A)
        if there:
            key = there[place % len(there)]
            self.twin.change(lambda half, txn: txn.rehome(A, key, B, key), fails)

    @rule(fails=SELDOM)
    def delete_the_queue(self, fails: bool) -> None:
        def change(half: Half, txn: StoreTransaction) -> None:
            half.remove(txn, B, half.keys(B))
            txn.drop_index(B)

        self.twin.change(change, fails)
        self.twin.all(Half.settle)

    @rule()
    def delete_a_queue_that_is_not_empty(self) -> None:
        self.twin.change(lambda half, txn: txn.drop_index(A), fails=True)

    @rule()
    def end_turn(self) -> None:
        self.twin.all(Half.end_turn)

    @rule()
    def write(self) -> None:
        self.twin.all(Half.write)

    @rule()
    def settle(self) -> None:
        self.twin.all(Half.settle)

    @rule()
    def restart(self) -> None:
        self.twin.check_disk()

    @rule(now=st.integers(0, 70))
    def what_is_due_is_equal(self, now: int) -> None:
        self.twin.check(now)

    @invariant()
    def everything_is_equal(self) -> None:
        self.twin.check()


class ThreadRunMachine(RunMachine):
    """The same with a thread that writes, while changes go on."""

    thread = True


TestRuns = RunMachine.TestCase
TestRunsWithThread = ThreadRunMachine.TestCase
TestRuns.settings = TestRunsWithThread.settings = settings(
    max_examples=10, stateful_step_count=25, deadline=None
)


def random_messages(random: Random) -> list[tuple[int, int, int, int]]:
    return [
        (
            random.choice([3, 3, 3, 0]),
            random.randrange(20),
            random.choice([NEVER, random.randrange(60)]),
            1,
        )
        for _ in range(random.randrange(1, 16))
    ]


def random_step(machine: RunMachine, random: Random) -> Callable[[], object]:
    """One of the changes of the machine."""
    queue, durable, fails = random.choice([A, A, B]), random.random() < 0.7, random.random() < 0.1
    messages = random_messages(random)
    places = set(random.sample(range(40), random.randrange(12)))
    first, length = random.randrange(20), random.randrange(24)
    runs: list[Callable[[], object]] = [
        partial(machine.insert, queue, messages, durable, fails),
        partial(machine.insert_and_remove_some, queue, messages, durable, fails, places),
        partial(machine.remove_neighbours, queue, first, length, fails),
        partial(machine.lock_neighbours, queue, first, length),
        machine.settle,
    ]
    others: list[Callable[[], object]] = [
        partial(machine.take_identifiers_for_later, messages),
        partial(machine.insert_kept, queue, random.sample(machine.kept, len(machine.kept))),
        partial(machine.insert_what_is_there, queue, messages, first, durable),
        partial(machine.remove, queue, places, fails),
        partial(machine.lock, queue, places),
        partial(machine.unlock, queue, places),
        partial(machine.purge_a_locked_one, queue, first, fails),
        partial(machine.move_one, first, fails),
        partial(machine.end_turn),
        partial(machine.write),
    ]
    return random.choice(random.choice([runs, others]))


@pytest.mark.parametrize("machine", [RunMachine, ThreadRunMachine], ids=["loop", "thread"])
def test_a_long_history_in_runs_is_that_of_its_messages(machine: type[RunMachine]) -> None:
    random = Random(5)
    pair = machine()
    pair.begin()
    try:
        for number in range(500):
            random_step(pair, random)()
            pair.twin.check()
            if number % 100 == 99:
                pair.twin.check(now=random.randrange(70))
                pair.restart()
    finally:
        pair.teardown()


def insert(
    txn: StoreTransaction, keys: Sequence[int], durable: bool = True, consequence: bool = False
) -> None:
    packets = [bytes([key % 256]) * 10 for key in keys]
    txn.insert_many(A, keys, packets, arrival=1, durable=durable, consequence=consequence)


def refused_run(store: Store, keys: Sequence[int], **options: bool) -> type[Exception] | None:
    """What a run raises in a block that goes on and is committed."""
    with store.transaction("goes on") as txn:
        try:
            insert(txn, keys, **options)
        except (PositionStateError, MQError) as error:
            return type(error)
    return None


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "express"])
@pytest.mark.parametrize("length", [2, 20])
@pytest.mark.parametrize("keys", ["there", "pending", "twice", "impossible"])
def test_a_run_of_which_one_is_refused_does_nothing(
    store: Store, turns: Turns, keys: str, length: int, durable: bool
) -> None:
    with store.transaction("there") as txn:
        insert(txn, [1])
    turns.end()
    with store.transaction("pending") as txn:
        insert(txn, range(2, 12))
    before = state_of(store)
    bad = {"there": 1, "pending": 5, "twice": 100, "impossible": 8 << 56}[keys]
    assert refused_run(store, [*range(100, 99 + length), bad], durable=durable)
    assert state_of(store) == before
    turns.end()
    assert list(store.index(A).keys()) == list(range(1, 12))


@pytest.mark.parametrize("length", [2, 20])
def test_a_full_disk_refuses_a_run_as_a_whole(turns: Turns, length: int) -> None:
    store = turns.open(settings=StoreSettings(reserve=100), free=lambda: 100 + 10 * length - 1)
    before = state_of(store)
    assert refused_run(store, range(1, length + 1)) is MQError
    assert state_of(store) == before
    assert refused_run(store, range(1, length)) is None
    assert refused_run(store, range(100, 100 + length), consequence=True) is None
    turns.end()
    assert store.index(A).count == 2 * length - 1
    store.close()


def test_express_bodies_that_find_no_room_in_the_file_leave_none_of_the_run(turns: Turns) -> None:
    free = [180]
    settings = StoreSettings(reserve=100, express_memory=50)
    store = turns.open(settings=settings, free=lambda: free[0])
    assert refused_run(store, range(1, 20), durable=False) is MQError
    assert (store.express.memory, store.express.spilled) == (0, 0)
    assert store.index(A).account.count == 0
    free[0] = 1_000
    assert refused_run(store, range(1, 9), durable=False) is None
    assert (store.express.memory, store.express.spilled) == (50, 3)
    store.close()


@pytest.mark.parametrize("length", [3, 20])
def test_columns_of_different_lengths_are_refused(store: Store, length: int) -> None:
    packets = [b"packet"] * length
    keys = range(1, length + 1)
    with store.transaction("refused") as txn:
        for expiries, flags in ([5], 1), (None, [1]), ([5] * (length + 1), 1):
            with pytest.raises(ValueError, match=r"a run needs|zip\(\)"):
                txn.insert_many(A, keys, packets, arrival=1, expiries=expiries, flags=flags)
        with pytest.raises(ValueError, match=r"a run needs|zip\(\)"):
            txn.insert_many(A, range(1, length), packets, arrival=1)
    assert store.index(A).account.count == 0


def test_the_counters_of_a_run_are_on_the_disk_before_it_is_seen(turns: Turns) -> None:
    store = turns.open()
    store.counters.serial.take()
    store.counters.serial.take_many((1 << 16) - 3)
    with store.transaction("run") as txn:
        insert(txn, range(1, 200_000, 1000))
    turns.end()
    last = store.index(A).expected(199_001).serial
    assert last == (1 << 16) - 1 + 199
    store = turns.reopen(store)
    assert store.counters.serial.take() > last
    store.close()


def refused_removal(store: Store, keys: Sequence[int]) -> bool:
    """Whether a removal is refused in a block that goes on and is committed."""
    with store.transaction("goes on") as txn:
        try:
            txn.remove_many(A, keys)
        except PositionStateError:
            return True
    return False


@pytest.mark.parametrize("bad", ["nowhere", "twice", "leaving", "twice pending"])
def test_a_removal_of_which_one_is_refused_does_nothing(
    store: Store, turns: Turns, bad: str
) -> None:
    with store.transaction("there") as txn:
        insert(txn, range(10))
        insert(txn, range(10, 15), durable=False)
    turns.end()
    store.index(A).lock_many([2, 3], "reader")
    with store.transaction("pending") as txn:
        insert(txn, range(20, 30))
        txn.remove(A, 9)
    before = state_of(store)
    others = {"nowhere": [99], "twice": [3], "leaving": [8, 9], "twice pending": [22]}
    assert refused_removal(store, [*range(8), *range(10, 15), 20, 21, 22, *others[bad]])
    assert state_of(store) == before
    turns.end()
    assert list(store.index(A).keys()) == [*range(9), *range(10, 15), *range(20, 30)]


def test_messages_with_a_flag_that_is_not_wanted_are_not_removed(
    store: Store, turns: Turns
) -> None:
    with store.transaction("there") as txn:
        insert(txn, range(10))
        txn.insert(A, 10, b"flagged", arrival=0, flags=4)
    turns.end()
    before = state_of(store)
    for keys in (range(11), [10]):
        with store.transaction("goes on") as txn, pytest.raises(PositionStateError):
            txn.remove_many(A, keys, unwanted=4)
    assert state_of(store) == before
    with store.transaction("other flags") as txn:
        txn.remove_many(A, range(11), unwanted=3)
    turns.end()
    assert list(store.index(A).keys()) == []


def test_a_run_is_locked_as_a_whole_or_not_at_all(store: Store, turns: Turns) -> None:
    with store.transaction("there") as txn:
        insert(txn, range(20))
    turns.end()
    index = store.index(A)
    assert index.lock_many(range(5, 10), "a reader")
    assert not index.lock_many(range(10), "another")
    assert not index.lock_many([0, 99], "another")
    assert [index.owner(key) for key in (4, 5, 9, 10)] == [None, "a reader", "a reader", None]
    assert index.available == 15
    index.unlock_many(range(5, 10))
    assert index.available == 20
    assert index.owner(5) is None


def test_messages_are_held_by_those_who_have_locked_them_and_by_nobody_else(
    store: Store, turns: Turns
) -> None:
    with store.transaction("there") as txn:
        txn.insert_many(A, range(4), [b"packet"] * 4, arrival=1, flags=[1, 1, 1, 5])
    turns.end()
    index = store.index(A)
    index.lock_many([0, 1, 3], "reader")
    assert are_held(index, {}, 4)
    assert are_held(index, {1: "reader", 0: "reader"}, 4)
    assert not are_held(index, {0: "reader", 1: "another"}, 4)
    assert not are_held(index, {0: "reader", 2: None}, 4)
    assert not are_held(index, {3: "reader"}, 4)
    assert are_held(index, {3: "reader"}, 2)
    assert not are_held(index, {0: "reader", 99: "reader"}, 4)
    with store.transaction("purge") as txn:
        txn.purge(A, 1)
    assert not are_held(index, {1: "reader"}, 4)
    store.index(A).leave(0)
    assert not are_held(index, {0: "reader"}, 4)


@pytest.mark.parametrize("odd", [None, 0, 1, 2, 3])
def test_messages_are_held_side_by_side_as_each_of_them_is(
    store: Store, turns: Turns, odd: int | None
) -> None:
    flags = [5 if key == odd else 1 for key in range(4)]
    with store.transaction("there") as txn:
        txn.insert_many(A, range(4), [b"packet"] * 4, arrival=1, flags=flags)
    turns.end()
    index = store.index(A)
    owners = dict.fromkeys(range(4), "reader")
    index.lock_many([0, 1, 2, 3], "reader")
    assert are_held(index, owners, 2)
    assert are_held(index, owners, 4) == (odd is None)
    if odd is not None:
        assert not are_held(index, {**owners, odd: "another"}, 2)
        index.leave(odd)
        assert index.owner(odd) == "reader"
        assert not are_held(index, owners, 2)


def runs_of(sizes: list[int], **bounds: int) -> Iterator[list[int]]:
    return (sizes[run] for run in cut(sizes, StoreSettings(**bounds)))


def test_messages_are_cut_into_runs_that_one_write_holds() -> None:
    assert list(runs_of([4, 4, 4, 9, 1, 1], group_bytes=8)) == [[4, 4], [4], [9], [1, 1]]
    assert list(runs_of([1] * 5, group_records=4)) == [[1, 1], [1, 1], [1]]
    assert list(runs_of([1] * 2, group_records=1)) == [[1], [1]]
    assert list(runs_of([])) == []
