"""A fixed workload on a store, for tests of what it asks of the system."""

import sys
from pathlib import Path

from rpcqm.store.records import Family
from rpcqm.store.settings import StoreSettings
from rpcqm.store.store import Store

TURNS, MESSAGES = 50, 4


class Clock:
    def now(self) -> int:
        return 1_750_000_000_000

    def monotonic(self) -> int:
        return 0


def main(directory: Path) -> None:
    turns: list[object] = []
    settings = StoreSettings(reserve=0, ballast=0)
    store = Store.open(
        directory, end_of_turn=turns.append, clock=Clock(), settings=settings, free=lambda: 1 << 40
    )
    for turn in range(TURNS):
        for number in range(MESSAGES):
            identifier = turn * MESSAGES + number
            with store.transaction("insert") as txn:
                txn.insert(7, identifier, b"%06d" % identifier * 100, arrival=0)
        with store.transaction("record") as txn:
            txn.put(Family.STREAM, b"key %d" % (turn % 5), b"value")
        if turn % 2:
            with store.transaction("remove") as txn:
                txn.remove(7, turn * MESSAGES - 1)
        while turns:
            turns.pop(0)()  # type: ignore[operator]
    store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
