"""Records of messages that are not to be sent before a time (G656)."""

from collections.abc import Callable, Iterator

from rpcqm.base.completion import Completion
from rpcqm.store.records import Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

RECORD_PREFIX = b"scheduled message:"


class HeldRecords:
    """Records by their identifiers; their contents belong to the scheduler of sends."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> Iterator[tuple[str, bytes]]:
        """Every identifier with its record."""
        for key, value in self._store.records(Family.META, RECORD_PREFIX):
            yield key.removeprefix(RECORD_PREFIX).decode("ascii", "replace"), value

    def get(self, identifier: str) -> bytes:
        """A record that is durable; empty if there is none."""
        return self._store.get(Family.META, _key(identifier)) or b""

    def put(
        self,
        identifier: str,
        record: bytes,
        undone: Callable[[], object],
        durable: Callable[[], object],
    ) -> None:
        """Write a record; one of the callbacks is called when it is durable, or was not written."""
        with self._store.transaction("hold a message back") as change:
            change.put(Family.META, _key(identifier), record)
            change.call_when_undone(undone)
            change.call_after(durable)

    def remove(self, identifier: str, undone: Callable[[], object]) -> Completion[None]:
        """Forget a record; done when durable."""
        with self._store.transaction("cancel a held message") as change:
            change.delete(Family.META, _key(identifier))
            change.call_when_undone(undone)
            return change.committed

    def removing(
        self, identifier: str, ends: Callable[[], object], undone: Callable[[], object]
    ) -> Callable[[StoreTransaction], None]:
        """A function that deletes a record in another commit, and calls `ends` then."""

        def remove(change: StoreTransaction) -> None:
            ends()
            change.delete(Family.META, _key(identifier))
            change.call_when_undone(undone)

        return remove


def _key(identifier: str) -> bytes:
    return RECORD_PREFIX + identifier.encode("ascii", "replace")
