"""Express messages: in memory, then in a file that nobody finds again."""

import os
from pathlib import Path

import pytest

from rpcqm.base.errors import HResult, MQError
from rpcqm.store.express import SPILL_NAME, ExpressBodies
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store
from tests.support.store.stores import Turns

Q = 16


@pytest.fixture
def bodies(tmp_path: Path) -> ExpressBodies:
    return ExpressBodies(tmp_path, budget=100)


def test_bodies_beyond_the_budget_spill_and_are_read_back(bodies: ExpressBodies) -> None:
    packets = {serial: bytes([serial]) * 40 for serial in range(1, 10)}
    for serial, packet in packets.items():
        bodies.put(serial, packet)
    assert (bodies.memory, bodies.spilled) == (80, 7)
    assert {serial: bodies.get(serial) for serial in packets} == packets


def test_memory_is_used_again_when_bodies_are_gone(bodies: ExpressBodies) -> None:
    for serial in range(4):
        bodies.put(serial, b"x" * 50)
    bodies.discard(0)
    bodies.put(9, b"y" * 50)
    assert (bodies.memory, bodies.spilled) == (100, 2)
    assert bodies.get(9) == b"y" * 50


def test_the_file_starts_anew_when_the_last_body_in_it_is_gone(bodies: ExpressBodies) -> None:
    bodies.put(0, b"x" * 100)
    for serial in (1, 2):
        bodies.put(serial, b"z" * 50)
    for serial in (1, 2):
        bodies.discard(serial)
    bodies.put(3, b"w" * 70)
    assert bodies.get(3) == b"w" * 70
    assert bodies._file is not None
    assert os.fstat(bodies._file.fileno()).st_size == 70


def test_a_missing_body_is_an_error(bodies: ExpressBodies) -> None:
    with pytest.raises(KeyError):
        bodies.get(1)
    bodies.discard(1)


def test_a_spill_file_of_an_earlier_run_is_deleted(tmp_path: Path, bodies: ExpressBodies) -> None:
    left = tmp_path / SPILL_NAME
    left.write_bytes(b"left behind")
    ExpressBodies(tmp_path, budget=0)
    assert not left.exists()


def test_nothing_of_the_spill_file_is_left_in_the_directory(
    tmp_path: Path, bodies: ExpressBodies
) -> None:
    bodies.put(1, bytes(500))
    assert bodies.spilled == 1
    assert list(tmp_path.iterdir()) == []


def test_express_messages_are_gone_after_a_restart(turns: Turns) -> None:
    store = turns.open(settings=StoreSettings(reserve=0, express_memory=10))
    for key, durable in ((1, True), (2, False), (3, False)):
        with store.transaction("insert") as txn:
            serial = txn.insert(Q, key, b"8 bytes.", arrival=0, durable=durable)
    turns.end()
    assert store.read_packet(serial) == b"8 bytes."
    assert (store.express.memory, store.express.spilled) == (8, 1)
    store = turns.reopen(store)
    assert list(store.index(Q).keys()) == [1]
    assert store.index(Q).account.bytes == 8
    store.close()


def test_a_spilled_express_message_needs_disk_space(turns: Turns) -> None:
    room = [1_000]
    settings = StoreSettings(reserve=500, express_memory=100, space_check_bytes=50)
    store = turns.open(settings=settings, free=lambda: room[0])
    room[0] = 400

    def insert(key: int) -> None:
        with store.transaction("insert") as txn:
            txn.insert(Q, key, bytes(80), arrival=0, durable=False)

    insert(1)
    with pytest.raises(MQError) as refusal:
        insert(2)
    assert refusal.value.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    turns.end()
    assert list(store.index(Q).keys()) == [1]
    assert store.index(Q).account.count == 1
    store.close()


def test_a_spill_file_that_cannot_grow_refuses_the_message(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(serial: int, packet: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.express, "put", full)
    with pytest.raises(MQError) as refusal, store.transaction("insert") as txn:
        txn.insert(Q, 1, b"packet", arrival=0, durable=False)
    assert refusal.value.status is HResult.MQ_ERROR_INSUFFICIENT_RESOURCES
    assert store.index(Q).account.count == 0
