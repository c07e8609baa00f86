"""Rules of the index that need an example of their own."""

import pytest

from rpcqm.adm.enums import PositionState
from rpcqm.store.errors import PositionStateError
from rpcqm.store.expiry import ExpiryHeap
from rpcqm.store.index import QueueIndex
from rpcqm.store.queue_usage import QueueUsage
from rpcqm.store.records import NEVER, PositionRecord


@pytest.fixture
def heap() -> ExpiryHeap:
    return ExpiryHeap()


@pytest.fixture
def index(heap: ExpiryHeap) -> QueueIndex:
    return QueueIndex(7, heap, QueueUsage())


def insert(index: QueueIndex, key: int, expiry: int = NEVER, size: int = 10) -> None:
    index.expect(key, PositionRecord(key, size, 0, expiry, 0))
    index.publish(key)


def remove(index: QueueIndex, key: int) -> None:
    index.leave(key)
    index.discard(key)


def key_of(priority: int, number: int) -> int:
    return (7 - priority) << 56 | number


def test_a_higher_priority_comes_first_whatever_its_arrival(index: QueueIndex) -> None:
    arrivals = [(3, 1), (0, 2), (7, 3), (3, 4), (7, 5)]
    for priority, number in arrivals:
        insert(index, key_of(priority, number))
    ordered = [key_of(*message) for message in [(7, 3), (7, 5), (3, 1), (3, 4), (0, 2)]]
    assert index.page(None, 10) == ordered
    assert index.first_available() == ordered[0]


def test_locked_messages_are_passed_over_in_any_number(index: QueueIndex) -> None:
    for number in range(5_000):
        insert(index, key_of(3, number))
        if number < 4_999:
            owner = object()
            index.lock(key_of(3, number), owner)
            assert index.owner(key_of(3, number)) is owner
    assert index.first_available() == key_of(3, 4_999)
    assert index.previous(key_of(3, 4_999)) is None
    assert index.previous(key_of(3, 4_999), available=False) == key_of(3, 4_998)


def test_a_lane_that_ran_empty_takes_a_later_expiry(heap: ExpiryHeap, index: QueueIndex) -> None:
    insert(index, key_of(3, 1), expiry=10)
    remove(index, key_of(3, 1))
    assert heap.next_expiry() is None
    insert(index, key_of(3, 2), expiry=20)
    assert heap.next_expiry() == 20
    assert heap.take_due(20, 10) == [(7, key_of(3, 2))]


def test_an_expired_message_that_was_locked_expires_on_release(
    heap: ExpiryHeap, index: QueueIndex
) -> None:
    insert(index, 1, expiry=10)
    index.lock(1, "reader")
    assert heap.take_due(50, 10) == []
    assert heap.next_expiry() is None
    index.unlock(1)
    assert heap.take_due(50, 10) == [(7, 1)]


def test_the_limit_of_expiry_leaves_the_rest_for_the_next_call(
    heap: ExpiryHeap, index: QueueIndex
) -> None:
    for number in range(3_000):
        insert(index, number, expiry=10)
    named = heap.take_due(10, 100)
    assert 100 <= len(named) < 3_000
    for _, key in named:
        remove(index, key)
    assert not {key for _, key in heap.take_due(10, 100)} & {key for _, key in named}


def test_a_leaving_message_is_nobody_elses(index: QueueIndex) -> None:
    insert(index, 1)
    index.leave(1)
    assert not index.lock(1, "reader")
    assert not index.unlock(1)
    with pytest.raises(PositionStateError):
        index.purge(1)
    with pytest.raises(PositionStateError):
        index.leave(1)
    assert index.state(1) is PositionState.LEAVING


def test_a_purge_pending_message_stays_with_its_owner(index: QueueIndex) -> None:
    insert(index, 1)
    index.lock(1, "reader")
    index.purge(1)
    assert not index.unlock(1)
    assert index.owner(1) == "reader"
    assert index.first_available() is None


def test_an_identifier_is_taken_once(index: QueueIndex) -> None:
    insert(index, 1)
    index.expect(2, PositionRecord(2, 1, 0, NEVER, 0))
    for key in (1, 2, 8 << 56):
        with pytest.raises(PositionStateError):
            index.expect(key, PositionRecord(9, 1, 0, NEVER, 0))


def test_what_is_not_there_cannot_leave(index: QueueIndex) -> None:
    with pytest.raises(PositionStateError):
        index.leave(1)


def test_a_subqueue_charges_its_parent(index: QueueIndex) -> None:
    total = QueueUsage()
    subqueue = QueueIndex(8, ExpiryHeap(), total)
    insert(subqueue, 1, size=100)
    insert(index, 2, size=10)
    subqueue.charge_to(index.account)
    insert(subqueue, 3, size=1)
    assert (index.account.count, index.account.bytes) == (3, 111)
    assert (index.count, index.bytes) == (1, 10)
    assert (total.count, total.bytes) == (2, 101)


def test_a_dropped_queue_is_empty_and_takes_nothing(index: QueueIndex) -> None:
    insert(index, 1)
    index.expect(2, PositionRecord(2, 1, 0, NEVER, 0))
    index.leave(1)
    with pytest.raises(PositionStateError):
        index.drop()
    index.leave(2)
    index.drop()
    with pytest.raises(PositionStateError):
        index.expect(3, PositionRecord(3, 1, 0, NEVER, 0))
    index.undrop()
    index.expect(3, PositionRecord(3, 1, 0, NEVER, 0))


def test_entries_take_few_bytes_after_most_were_removed(index: QueueIndex) -> None:
    for number in range(20_000):
        insert(index, number)
    for number in range(20_000):
        if number % 10:
            remove(index, number)
    chunks = index._priorities[0].chunks
    assert sum(len(chunk.keys) for chunk in chunks) <= 2 * index.count + 64 * len(chunks)
    assert len(chunks) <= 20


def test_what_has_come_and_gone_is_counted_and_the_oldest_told(index: QueueIndex) -> None:
    assert (index.entered, index.left, index.oldest()) == (0, 0, 0)
    for key, arrival in ((1, 300), (2, 400), (1 << 56 | 3, 200)):
        index.expect(key, PositionRecord(key, 10, arrival, NEVER, 0))
        index.publish(key)
    assert (index.entered, index.left, index.oldest()) == (3, 0, 200)
    remove(index, 1 << 56 | 3)
    assert (index.entered, index.left, index.oldest()) == (3, 1, 300)
