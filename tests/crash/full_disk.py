"""The process that meets a full disk; it prints what happened as JSON.

Usage: python -m tests.crash.full_disk DIRECTORY RESERVE
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rpcqm.base.errors import MQError
from rpcqm.store.settings import KIB, StoreSettings
from rpcqm.store.store import Store
from tests.support.clock import SimulatedClock

QUEUE = 1
BODY = bytes(10_000)


class Process:
    """One store on a small disk."""

    def __init__(self, directory: Path, reserve: int) -> None:
        self._ends: list[Callable[[], None]] = []
        self._clock = SimulatedClock()
        self._directory = directory
        self.acknowledged = 0
        self.store = Store.open(
            directory / "data",
            end_of_turn=self._ends.append,
            clock=self._clock,
            settings=StoreSettings(reserve=reserve, memtable=512 * KIB),
        )

    def _end_turn(self) -> None:
        self._clock.advance(100)
        while self._ends:
            self._ends.pop(0)()

    def insert(self) -> bool:
        """Store one message; False when it was refused."""
        try:
            with self.store.transaction("insert") as txn:
                key = self.store.counters.next_lookup_identifier(3)
                txn.insert(QUEUE, key, BODY, arrival=0)
                txn.call_after(self._acknowledge)
        except MQError:
            return False
        self._end_turn()
        return True

    def _acknowledge(self) -> None:
        self.acknowledged += 1
        (self._directory.parent / "acknowledged").write_text(str(self.acknowledged))

    def fill(self) -> int:
        """Store messages until one is refused; how many there are."""
        while self.insert():
            pass
        return self.store.index(QUEUE).count

    def fill_to(self, count: int) -> int:
        """Store so many messages while space is given back behind the scenes; how many there are.

        A process that is refused may try again, for half a minute at most.
        """
        refusals = 0
        while self.store.index(QUEUE).count < count and refusals < 3_000:
            if not self.insert():
                refusals += 1
                self._end_turn()
                time.sleep(0.01)
        return self.store.index(QUEUE).count

    def remove_all(self) -> None:
        while (key := self.store.index(QUEUE).first_available()) is not None:
            with self.store.transaction("remove") as txn:
                txn.remove(QUEUE, key)
            self._end_turn()


def main() -> None:
    process = Process(Path(sys.argv[1]), int(sys.argv[2]))
    seen: dict[str, Any] = {"first": process.fill(), "free": process.store.space.free}
    process.remove_all()
    seen["emptied"] = process.store.index(QUEUE).count
    seen["second"] = process.fill_to(seen["first"] // 2)
    seen["errors"] = process.store._database.background_errors()
    process.store.close()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
