"""The operator's settings of the store; the defaults suit a machine of a few gigabytes."""

from dataclasses import dataclass

KIB = 1 << 10
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Bounds and thresholds of the store.

    Sizes are bytes; `slow_sync` is microseconds; intervals are milliseconds.
    """

    reserve: int = 256 * MIB
    """Free space below which new messages are refused; removals go on."""

    ballast: int = 0
    """The file that is given up when the disk is full, so that messages can be removed; 0: none."""

    space_check_interval: int = 1_000
    space_check_bytes: int = 16 * MIB
    """Free space is looked up after so much time, or after so much was written."""

    tidy_interval: int = 10_000
    """The interval for reclaiming disk space while messages are refused."""

    group_bytes: int = 8 * MIB
    group_records: int = 8_192
    """One synced write holds no more than this, unless a single commit does."""

    slow_sync: int = 1_000
    """Moving median of a sync above which writes go to a thread; below half of it they return."""

    sync_window: int = 15
    """How many syncs the median is taken over."""

    express_memory: int = 256 * MIB
    """Bodies of express messages beyond this spill to an unsynced file."""

    memtable: int = 32 * MIB
    """RocksDB's write buffer of one column family."""

    block_cache: int = 16 * MIB
    large_body: int = 4 * KIB
    """Bodies from this size on go to blob files, which compaction does not rewrite."""

    recovery_readahead: int = 1 * MIB
