"""The face of the store, from its first use to a restart."""

from collections.abc import Callable
from pathlib import Path

from rpcqm.adm.enums import PositionState
from rpcqm.store.store import Store
from tests.support.clock import SimulatedClock


class Turns:
    """The ends of turns, run when the test says so."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []

    def end(self) -> None:
        while self.callbacks:
            self.callbacks.pop(0)()


def open_store(directory: Path, turns: Turns) -> Store:
    def fatal(error: BaseException) -> None:
        raise AssertionError("the write failed") from error

    return Store.open(
        directory, end_of_turn=turns.callbacks.append, clock=SimulatedClock(), fatal=fatal
    )


def test_a_message_is_visible_after_its_commit_and_after_a_restart(tmp_path: Path) -> None:
    turns = Turns()
    store = open_store(tmp_path, turns)
    told: list[str] = []
    with store.transaction("enqueue") as txn:
        key = store.counters.next_lookup_identifier(3)
        serial = txn.insert(7, key, b"packet", arrival=1, expiry=2)
        txn.call_after(lambda: told.append("enqueued"))
    assert store.index(7).first_available() is None
    assert not told
    turns.end()
    assert told == ["enqueued"]
    assert store.index(7).first_available() == key
    assert store.read_packet(serial) == b"packet"
    store.close()

    store = open_store(tmp_path, turns)
    assert store.index(7).state(key) is PositionState.AVAILABLE
    assert store.counters.serial.take() > serial
    with store.transaction("dequeue") as txn:
        txn.remove(7, key)
    assert store.index(7).state(key) is PositionState.LEAVING
    turns.end()
    assert store.index(7).state(key) is PositionState.DELETED
    store.close()

    store = open_store(tmp_path, turns)
    assert store.index(7).count == 0
    store.close()
