"""What a start makes of what lies on the disk."""

from random import Random

import pytest
from rocksdict import WriteBatch

from rpcqm.adm.enums import PositionState
from rpcqm.store import recovery
from rpcqm.store.database import Database
from rpcqm.store.errors import StoreError
from rpcqm.store.index import QueueIndex
from rpcqm.store.records import NEVER, POSITION_KEY, Family, Moves
from rpcqm.store.settings import StoreSettings
from tests.support.store.store_state import after_restart, state_of
from tests.support.store.stores import Turns

QUEUES = (1, 2, 16, 0xFFFF_FFFF)
TRANSACTION = b"t" * 16


@pytest.fixture(params=[recovery.RUN, 7], ids=["run of thousands", "run of seven"])
def run_length(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many records are taken at once; runs must not matter."""
    length: int = request.param
    monkeypatch.setattr(recovery, "RUN", length)
    return length


@pytest.mark.usefixtures("run_length")
def test_thousands_of_messages_come_back_as_they_were(turns: Turns) -> None:
    random = Random(1)
    store = turns.open()
    for number in range(6_000):
        queue = random.choice(QUEUES)
        key = random.randrange(8) << 56 | random.choice([number, (1 << 56) - 1 - number])
        with store.transaction("insert") as txn:
            txn.insert(
                queue,
                key,
                random.randbytes(random.randrange(9)),
                arrival=random.randrange(1 << 64),
                expiry=random.choice([NEVER, random.randrange(1 << 64)]),
                flags=random.randrange(64),
            )
    turns.end()
    for queue in QUEUES:
        index = store.index(queue)
        with store.transaction("change") as txn:
            for key in index.page(None, 1_000)[:: random.randrange(2, 9)]:
                moves = Moves(random.randrange(3), random.randrange(1 << 32), random.randrange(9))
                txn.update_position(queue, key, moves=moves)
                if random.random() < 0.1:
                    txn.lock(queue, key, "reader")
                    txn.purge(queue, key)
    turns.end()
    before, expiry = state_of(store), store.next_expiry()
    store = turns.reopen(store)
    assert state_of(store) == after_restart(before)
    assert expiry is not None
    assert (store.next_expiry() or 0) >= expiry
    now = expiry + (1 << 62)
    expired = {(queue, key) for queue in QUEUES for key in _expired(store.index(queue), now)}
    assert set(store.expire(now, 10_000)) == expired
    store.close()


def _expired(index: QueueIndex, now: int) -> list[int]:
    return [
        key
        for key in index.page(None, 100_000)
        if (position := index.position(key)) is not None and position.expiry <= now
    ]


def test_an_open_transaction_is_dropped_with_its_messages(turns: Turns) -> None:
    store = turns.open()
    with store.transaction("stage") as txn:
        txn.stage_message(TRANSACTION, 1, b"staged", b"data")
        txn.stage(TRANSACTION, b"operation")
    turns.end()
    assert store.index(1).account.bytes == len(b"staged")
    store = turns.reopen(store)
    assert store.uncommitted == {}
    assert store.index(1).account.count == store.total.count == 0
    assert list(store.records(Family.STAGED)) == list(store.records(Family.BODY)) == []
    store.close()


@pytest.mark.conformance("MQDMPR-element-MessagePosition")
def test_a_purged_message_is_still_to_be_removed_after_a_restart(turns: Turns) -> None:
    store = turns.open()
    with store.transaction("insert") as txn:
        txn.insert(1, 5, b"packet", arrival=0, flags=3)
    turns.end()
    store.index(1).lock(5, "reader")
    with store.transaction("purge") as txn:
        txn.purge(1, 5)
    store = turns.reopen(store)
    assert store.index(1).state(5) is PositionState.PURGE_PENDING
    assert store.index(1).expected(5).flags == 3
    with store.transaction("remove") as txn:
        txn.remove(1, 5)
    turns.end()
    assert store.index(1).count == 0
    store.close()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (POSITION_KEY.pack(1, 2), b"short"),
        (b"short", bytes(48)),
        (POSITION_KEY.pack(1, 8 << 56), bytes(48)),
    ],
    ids=["value", "key", "priority"],
)
def test_a_damaged_position_stops_the_start_with_a_sentence(
    turns: Turns, key: bytes, value: bytes
) -> None:
    turns.open().close()
    database = Database(turns.directory, StoreSettings())
    batch = WriteBatch(raw_mode=True)
    batch.put(key, value, database.handles[Family.POSITION])
    database.write(batch, sync=True)
    database.close()
    with pytest.raises(StoreError, match=r"run rpcqm fsck|impossible identifier"):
        turns.open()
