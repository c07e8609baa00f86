"""Records of the protocols that transfer messages: sequences, and messages seen before.

Records are theirs, in the store's family STREAM. A change of them can belong to the commit that
stores or removes the message it is about ([MS-MQQB] 3.1.1.5, G55, G58, G59).
"""

from collections.abc import Iterator, Mapping

from rpcqm.base.completion import Completion
from rpcqm.store.records import Family
from rpcqm.store.store import Store
from rpcqm.store.transaction import StoreTransaction

Changes = Mapping[bytes, bytes | None]
"""New records by key; None removes one."""


class ProtocolRecords:
    """Records of protocols, by keys of their own choice."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, key: bytes) -> bytes | None:
        """The durable record of a key, or None if the key has none."""
        return self._store.get(Family.STREAM, key)

    def records(self, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """All durable records whose keys have a prefix, in the order of the keys."""
        return self._store.records(Family.STREAM, prefix)

    def write(self, changes: Changes) -> Completion[None]:
        """Change all of the records or none of them; done when durable."""
        with self._store.transaction("streams") as change:
            apply_changes(change, changes)
            return change.committed


def apply_changes(change: StoreTransaction, changes: Changes | None) -> None:
    """Add changes of records to a commit."""
    change.change_many(Family.STREAM, changes or {})
