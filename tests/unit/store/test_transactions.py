"""Every change: as a whole or not at all, the same in memory and after a restart."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from rpcqm.adm.enums import PositionState
from rpcqm.adm.queue import Queue
from rpcqm.adm.records import encode_queue
from rpcqm.store.errors import PositionStateError, StoreStoppedError
from rpcqm.store.fsck import check
from rpcqm.store.index import QueueIndex
from rpcqm.store.records import NEVER, QUEUE_ID, Family, Moves
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction
from tests.support.store.store_state import after_restart, state_of
from tests.support.store.stores import Turns

A, B = 1, 2
PLAIN, LOCKED, EXPRESS, LOCKED_EXPRESS, LARGE, MOVED = range(1, 7)
OPEN, OTHER = b"open transaction", b"another transact"
SPARE = 99


def populate(store: Store, turns: Turns) -> None:
    """Messages of every kind, a queue, and two open transactions."""
    store.counters.lookup_identifier.take()
    queue = Queue(queue_id=store.counters.queue_id.take())
    with store.transaction("populate") as txn:
        txn.insert(A, PLAIN, b"plain", arrival=10, expiry=100, flags=3)
        txn.insert(A, LOCKED, b"locked", arrival=11)
        txn.insert(A, EXPRESS, b"express", arrival=12, durable=False)
        txn.insert(A, LOCKED_EXPRESS, b"locked express", arrival=13, durable=False)
        txn.insert(A, LARGE, b"large" * 5000, arrival=14)
        txn.insert(B, MOVED, b"moved", arrival=15)
        txn.put(Family.QUEUE, QUEUE_ID.pack(queue.queue_id), encode_queue(queue))
        txn.stage_message(OPEN, A, b"staged", b"to A")
        txn.stage(OPEN, b"an operation")
        txn.stage_message(OTHER, B, b"staged too", b"to B")
        txn.stage(OTHER, b"an operation")
    turns.end()
    with store.transaction("count a move") as txn:
        txn.update_position(B, MOVED, moves=Moves(1, 2, 3))
    turns.end()
    store.index(A).lock(LOCKED, "reader")
    store.index(A).lock(LOCKED_EXPRESS, "reader")


def insert_three_priorities(txn: StoreTransaction) -> None:
    for high_byte in (7, 0, 3):
        txn.insert(A, high_byte << 56 | SPARE, b"new", arrival=1, expiry=5, flags=0x3F)


def insert_and_remove(txn: StoreTransaction, durable: bool) -> None:
    txn.insert(A, SPARE, b"new", arrival=1, durable=durable)
    txn.remove(A, SPARE)


def move_there_and_on(txn: StoreTransaction) -> None:
    txn.rehome(A, PLAIN, B, PLAIN, moves=Moves(0, 1, 50))
    txn.rehome(B, PLAIN, SPARE, PLAIN, arrival=60, expiry=NEVER, flags=1)


def commit_staged(txn: StoreTransaction) -> None:
    txn.insert_staged(OPEN, 1, SPARE, arrival=20, expiry=30, flags=1)
    txn.unstage(OPEN)


def commit_with_another_packet(txn: StoreTransaction) -> None:
    txn.insert_staged(OTHER, 1, SPARE, arrival=20, packet=b"patched packet")
    txn.unstage(OTHER)


def change_records(txn: StoreTransaction) -> None:
    txn.change_many(Family.QUEUE, {QUEUE_ID.pack(16): None, b"other": b"record"})
    txn.change_many(Family.STREAM, {})


def delete_a_queue(txn: StoreTransaction) -> None:
    for key in (PLAIN, LOCKED, EXPRESS, LOCKED_EXPRESS, LARGE):
        txn.remove(A, key)
    txn.delete(Family.QUEUE, QUEUE_ID.pack(16))
    txn.drop_index(A)


CASES: dict[str, Callable[[StoreTransaction], object]] = {
    "insert": insert_three_priorities,
    "insert express": lambda txn: txn.insert(A, SPARE, b"new", arrival=1, durable=False),
    "insert and remove": lambda txn: insert_and_remove(txn, durable=True),
    "insert and remove express": lambda txn: insert_and_remove(txn, durable=False),
    "remove": lambda txn: txn.remove(A, PLAIN),
    "remove large": lambda txn: txn.remove(A, LARGE),
    "remove locked": lambda txn: txn.remove(A, LOCKED),
    "remove express": lambda txn: txn.remove(A, EXPRESS),
    "remove moved": lambda txn: txn.remove(B, MOVED),
    "rehome": lambda txn: txn.rehome(A, PLAIN, B, SPARE),
    "rehome locked": lambda txn: txn.rehome(A, LOCKED, B, LOCKED, moves=Moves(0, 1, 50)),
    "rehome express": lambda txn: txn.rehome(A, EXPRESS, B, EXPRESS, flags=2),
    "rehome moved": lambda txn: txn.rehome(B, MOVED, A, MOVED),
    "rehome twice": move_there_and_on,
    "update position": lambda txn: txn.update_position(A, LOCKED, flags=9, moves=Moves(1, 0, 0)),
    "update flags": lambda txn: txn.update_position(B, MOVED, flags=9),
    "update express": lambda txn: txn.update_position(A, EXPRESS, flags=9, moves=Moves(1, 0, 0)),
    "purge": lambda txn: txn.purge(A, LOCKED),
    "purge express": lambda txn: txn.purge(A, LOCKED_EXPRESS),
    "lock": lambda txn: txn.lock(A, PLAIN, "another"),
    "put": lambda txn: txn.put(Family.STREAM, b"stream", b"7"),
    "delete": lambda txn: txn.delete(Family.QUEUE, QUEUE_ID.pack(16)),
    "change many": change_records,
    "insert many": lambda txn: txn.insert_many(A, range(90, 99), [b"new"] * 9, arrival=1),
    "remove many": lambda txn: txn.remove_many(A, [PLAIN, LOCKED, EXPRESS, LARGE]),
    "stage": lambda txn: txn.stage(b"a new one" + bytes(7), b"data"),
    "stage message": lambda txn: txn.stage_message(OPEN, A, b"more", b"data"),
    "unstage": lambda txn: txn.unstage(OPEN),
    "unstage nothing": lambda txn: txn.unstage(b"nothing" + bytes(9)),
    "commit staged": commit_staged,
    "commit with another packet": commit_with_another_packet,
    "delete a queue": delete_a_queue,
}


@dataclass
class Fixture:
    turns: Turns
    store: Store


@pytest.fixture
def populated(turns: Turns) -> Fixture:
    store = turns.open()
    populate(store, turns)
    return Fixture(turns, store)


def fail_after(store: Store, change: Callable[[StoreTransaction], object]) -> None:
    with store.transaction("fails") as txn:
        change(txn)
        raise ZeroDivisionError


@pytest.mark.parametrize("change", CASES.values(), ids=CASES)
def test_a_failed_block_leaves_no_trace(
    populated: Fixture, change: Callable[[StoreTransaction], object]
) -> None:
    store, turns = populated.store, populated.turns
    before = state_of(store)
    with pytest.raises(ZeroDivisionError):
        fail_after(store, change)
    assert state_of(store) == before
    turns.end()
    assert state_of(store) == before
    store = turns.reopen(store)
    assert state_of(store) == after_restart(before)
    store.close()


@pytest.mark.parametrize("change", CASES.values(), ids=CASES)
def test_memory_and_disk_agree_after_a_commit(
    populated: Fixture, change: Callable[[StoreTransaction], object]
) -> None:
    store, turns = populated.store, populated.turns
    with store.transaction("succeeds") as txn:
        change(txn)
    turns.end()
    after = state_of(store)
    assert not any(queue["pending"] for queue in after["queues"].values())
    store = turns.reopen(store)
    assert state_of(store) == after_restart(after)
    store.close()


@pytest.mark.parametrize(
    "name", [name for name in CASES if name not in ("lock", "unstage nothing")]
)
def test_a_commit_changes_something(populated: Fixture, name: str) -> None:
    store, turns = populated.store, populated.turns
    before = state_of(store)
    with store.transaction(name) as txn:
        CASES[name](txn)
    turns.end()
    assert (state_of(store) != before) == ("insert and remove" not in name)
    store.close()


def test_a_removed_message_is_leaving_until_its_commit(populated: Fixture) -> None:
    store, turns = populated.store, populated.turns
    index = store.index(A)
    charged = index.account.bytes
    with store.transaction("remove") as txn:
        txn.remove(A, PLAIN)
        assert index.state(PLAIN) is PositionState.LEAVING
    assert index.state(PLAIN) is PositionState.LEAVING
    assert index.account.bytes == charged
    turns.end()
    assert index.state(PLAIN) is PositionState.DELETED
    assert index.account.bytes == charged - len(b"plain")
    store.close()


def test_a_message_is_charged_before_it_is_visible(store: Store, turns: Turns) -> None:
    with store.transaction("insert") as txn:
        txn.insert(A, 1, b"12345", arrival=0)
    assert store.index(A).count == 0
    assert (store.index(A).account.count, store.index(A).account.bytes) == (1, 5)
    assert (store.total.count, store.total.bytes) == (1, 5)
    turns.end()
    assert (store.index(A).account.count, store.index(A).account.bytes) == (1, 5)


def test_a_message_that_is_removed_before_its_commit_is_never_available(
    store: Store, turns: Turns
) -> None:
    seen: list[PositionState] = []

    def look(index: QueueIndex) -> None:
        seen.append(index.state(1))
        assert index.first_available() is None

    with store.transaction("insert") as txn:
        txn.insert(A, 1, b"packet", arrival=0)
        txn.call_after(lambda: look(store.index(A)))
    with store.transaction("delete the queue") as txn:
        txn.remove(A, 1)
        txn.drop_index(A)
        txn.call_after(lambda: look(store.index(A)))
    turns.end()
    assert seen == [PositionState.LEAVING, PositionState.DELETED]


def test_a_deleted_queue_must_be_empty(populated: Fixture) -> None:
    store = populated.store
    with pytest.raises(PositionStateError), store.transaction("delete") as txn:
        txn.drop_index(A)
    assert store.index(A).state(PLAIN) is PositionState.AVAILABLE
    store.close()


def test_a_second_removal_is_refused(populated: Fixture) -> None:
    store, turns = populated.store, populated.turns
    with store.transaction("first") as txn:
        txn.remove(A, PLAIN)
    changes: list[Callable[[StoreTransaction], object]] = [
        lambda txn: txn.remove(A, PLAIN),
        lambda txn: txn.rehome(A, PLAIN, B, PLAIN),
        lambda txn: txn.update_position(A, PLAIN, flags=1),
        lambda txn: txn.purge(A, PLAIN),
    ]
    for change in changes:
        with pytest.raises(PositionStateError), store.transaction("second") as txn:
            change(txn)
    turns.end()
    assert not turns.fatal
    store.close()


def test_a_staged_message_is_inserted_once(populated: Fixture) -> None:
    store = populated.store
    with store.transaction("twice") as txn:
        txn.insert_staged(OPEN, 1, SPARE, arrival=1)
        for number in (1, 2):
            with pytest.raises(ValueError, match="no message"):
                txn.insert_staged(OPEN, number, SPARE + 1, arrival=1)
        txn.unstage(OPEN)
    store.close()


def test_blocks_do_not_nest(store: Store) -> None:
    with (
        store.transaction("outer"),
        pytest.raises(RuntimeError, match="inner began inside outer"),
        store.transaction("inner"),
    ):
        pass
    with store.transaction("next"):
        pass


def test_a_closed_store_takes_nothing(turns: Turns) -> None:
    store = turns.open()
    store.close()
    with pytest.raises(StoreStoppedError), store.transaction("late"):
        pass


def test_completions_and_callbacks_come_in_order_after_the_commit(
    store: Store, turns: Turns
) -> None:
    told: list[str] = []
    for name in ("first", "second"):
        with store.transaction(name) as txn:
            txn.insert(A, len(told) + ord(name[0]), b"x", arrival=0)
            txn.call_after(partial(told.append, name))
            txn.committed.add_done_callback(lambda _: told.append("done"))
    assert told == []
    turns.end()
    assert told == ["first", "done", "second", "done"]
    assert txn.committed.done


def test_a_caller_can_take_back_its_own_changes(store: Store) -> None:
    told: list[str] = []
    with pytest.raises(ZeroDivisionError):
        fail_after(store, lambda txn: txn.call_when_undone(lambda: told.append("undone")))
    with store.transaction("succeeds") as txn:
        txn.call_when_undone(lambda: told.append("never"))
    assert told == ["undone"]


REFUSED: dict[str, Callable[[StoreTransaction], object]] = {
    "insert where one is": lambda txn: txn.insert(A, PLAIN, b"new", arrival=1),
    "insert express where one is": lambda txn: txn.insert(A, PLAIN, b"", arrival=1, durable=False),
    "remove nothing": lambda txn: txn.remove(A, SPARE),
    "rehome nothing": lambda txn: txn.rehome(A, SPARE, B, SPARE),
    "rehome to where one is": lambda txn: txn.rehome(A, PLAIN, B, MOVED),
    "update nothing": lambda txn: txn.update_position(A, SPARE, flags=1),
    "purge what is not locked": lambda txn: txn.purge(A, PLAIN),
    "insert staged where one is": lambda txn: txn.insert_staged(OPEN, 1, PLAIN, arrival=1),
    "insert staged with a packet": lambda txn: txn.insert_staged(
        OPEN, 1, PLAIN, arrival=1, packet=b"another"
    ),
    "drop what is not empty": lambda txn: txn.drop_index(A),
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_a_refused_change_leaves_the_rest_of_the_block_alone(
    populated: Fixture, change: Callable[[StoreTransaction], object]
) -> None:
    store, turns = populated.store, populated.turns
    with store.transaction("goes on") as txn:
        with pytest.raises(PositionStateError):
            change(txn)
        txn.put(Family.STREAM, b"stream", b"7")
    expected = state_of(store)
    turns.end()
    expected["records"][Family.STREAM][b"stream"] = b"7"
    expected["express"] = state_of(store)["express"]
    assert state_of(store) == expected
    store = turns.reopen(store)
    assert state_of(store) == after_restart(expected)
    store.close()
    assert check(turns.directory) == []


def test_a_transaction_is_named_by_sixteen_bytes(store: Store) -> None:
    with store.transaction("stage") as txn:
        for name in (b"short", b"seventeen bytes !"):
            with pytest.raises(ValueError, match="16 bytes"):
                txn.stage(name, b"data")
    assert not store.uncommitted


def test_records_that_are_changed_together_are_those_changed_one_by_one(store: Store) -> None:
    with store.transaction("one by one") as single:
        single.put(Family.STREAM, b"a", b"value")
        single.delete(Family.STREAM, b"b")
        single.put(Family.STREAM, b"c", b"")
    with store.transaction("together") as many:
        many.change_many(Family.STREAM, {b"a": b"value", b"b": None, b"c": b""})
    assert many.operations == single.operations
    assert (many.size, many.sync, many.messages) == (single.size, single.sync, single.messages)
    with store.transaction("nothing") as none:
        none.change_many(Family.STREAM, {})
    assert not none.sync
