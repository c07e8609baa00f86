"""What an operator can see of the store."""

from dataclasses import dataclass

from rpcqm.store.group_commit import WriteMode


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """A snapshot; sizes are bytes, `sync_median` is microseconds.

    `background_errors` are those of RocksDB's own threads since the start.
    """

    messages: int
    bytes: int
    mode: WriteMode
    sync_median: int
    free: int
    refusing: bool
    background_errors: int
    express_memory: int
    express_spilled: int
