"""What a transaction would change, looked at instead of done."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rocksdict import ColumnFamily as FamilyHandle

    from rpcqm.store.transaction import StoreTransaction


class Rehearsed(NamedTuple):
    """The records that a transaction writes and deletes, and whether that waits for a sync."""

    operations: "list[tuple[bytes, bytes | None, FamilyHandle]]"
    messages: int
    size: int
    sync: bool

    @classmethod
    def of(cls, transaction: "StoreTransaction") -> "Rehearsed":
        """What it has been told until now."""
        return cls(
            list(transaction.operations), transaction.messages, transaction.size, transaction.sync
        )

    @classmethod
    def joined(cls, several: "list[Rehearsed]") -> "Rehearsed":
        """What several do together."""
        return cls(
            [each for one in several for each in one.operations],
            sum(one.messages for one in several),
            sum(one.size for one in several),
            any(one.sync for one in several),
        )

    def as_written(self) -> list[tuple[bytes, bytes]]:
        """The records in the order of their keys: within one write no other order matters."""
        return sorted((key, value or b"") for key, value, _ in self.operations)
