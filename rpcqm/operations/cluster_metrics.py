"""The metrics of a node of a cluster, for a primary and for a standby."""

from collections.abc import Iterator

from rpcqm.operations import metric_families as families
from rpcqm.operations.cluster import ClusterRole, ClusterStatus
from rpcqm.operations.exposition import Writer, labels

CURRENT = 30_000
"""Milliseconds without a record, after which a node is not counted as a standby."""


def cluster_series(writer: Writer, status: ClusterStatus) -> Iterator[str]:
    """The families of a cluster."""
    values = _values(status)
    for family in families.CLUSTER:
        yield from writer.series(family, ("",), (values[family.name],))
    roles = [labels(families.CLUSTER_ROLE, role.value) for role in ClusterRole]
    yield from writer.series(
        families.CLUSTER_ROLE, roles, [int(role is status.role) for role in ClusterRole]
    )
    for family, told in (
        (families.MEMBER_LAG, [each.lag for each in status.members]),
        (families.MEMBER_LAG_SECONDS, [each.lag_milliseconds / 1000 for each in status.members]),
        (families.MEMBER_AGE, [each.age / 1000 for each in status.members]),
    ):
        places = [labels(family, each.node) for each in status.members]
        yield from writer.series(family, places, told)


def _values(status: ClusterStatus) -> dict[str, float]:
    standbys = [
        each
        for each in status.members
        if each.role == ClusterRole.STANDBY and each.age < CURRENT and not each.lost
    ]
    return {
        "rpcqm_cluster_epoch": status.epoch,
        "rpcqm_cluster_last_takeover_timestamp_seconds": status.last_takeover / 1000,
        "rpcqm_cluster_place": status.place,
        "rpcqm_cluster_lag_records": status.lag,
        "rpcqm_cluster_silence_seconds": status.silence / 1000,
        "rpcqm_cluster_doubt_seconds": status.doubted / 1000 if status.doubt else 0,
        "rpcqm_cluster_may_answer": int(status.may_answer),
        "rpcqm_cluster_appends": status.appends,
        "rpcqm_cluster_standbys": len(standbys),
        "rpcqm_cluster_log_records": max(0, status.log_end - status.log_first + 1),
        "rpcqm_cluster_log_bytes": status.log_bytes,
        "rpcqm_cluster_log_maximum_bytes": status.log_maximum,
    }
