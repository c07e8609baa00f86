"""What Prometheus reads of a node of a cluster."""

import re
from dataclasses import replace
from pathlib import Path

from rpcqm.operations import metric_families
from rpcqm.operations.cluster import ClusterMember, ClusterRole, ClusterStatus
from rpcqm.operations.cluster_metrics import CURRENT, cluster_series
from rpcqm.operations.exposition import Writer
from rpcqm.operations.metrics import MetricsSettings
from rpcqm.operations.operations import Operations
from tests.support.queue_manager import RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR

STANDBY = ClusterMember("b", "standby", 90, 80, 10, 4_000, 2_000, 0, "0.1.0", "digest", 5, False)
PRIMARY = replace(STANDBY, node="a", role="primary", place=100, lag=0, lag_milliseconds=0)
STATUS = ClusterStatus(
    role=ClusterRole.PRIMARY,
    node="a",
    instance="00",
    log="rpcqm",
    incarnation="ff",
    epoch=3,
    place=100,
    log_end=102,
    log_first=11,
    log_bytes=1_000,
    active="a",
    since=0,
    last_takeover=5_000,
    silence=250,
    doubt="",
    doubted=300,
    may_answer=True,
    why="",
    appends=7,
    log_maximum=10_000,
    members=(PRIMARY, STANDBY),
)


def told(status: ClusterStatus) -> list[str]:
    return "".join(cluster_series(Writer(), status)).splitlines()


def test_a_node_tells_its_role_its_place_and_the_log() -> None:
    assert {
        "rpcqm_cluster_epoch 3",
        "rpcqm_cluster_last_takeover_timestamp_seconds 5.0",
        "rpcqm_cluster_place 100",
        "rpcqm_cluster_lag_records 2",
        "rpcqm_cluster_silence_seconds 0.25",
        "rpcqm_cluster_doubt_seconds 0",
        "rpcqm_cluster_may_answer 1",
        "rpcqm_cluster_appends_total 7",
        "rpcqm_cluster_standbys 1",
        "rpcqm_cluster_log_records 92",
        "rpcqm_cluster_log_bytes 1000",
        "rpcqm_cluster_log_maximum_bytes 10000",
        'rpcqm_cluster_role{role="primary"} 1',
        'rpcqm_cluster_role{role="standby"} 0',
        'rpcqm_cluster_member_lag_records{node="b"} 10',
        'rpcqm_cluster_member_lag_seconds{node="b"} 4.0',
        'rpcqm_cluster_member_age_seconds{node="b"} 2.0',
    } <= set(told(STATUS))


def test_who_is_silent_or_too_far_behind_is_no_standby() -> None:
    for standby in (replace(STANDBY, age=CURRENT), replace(STANDBY, lost=True)):
        assert "rpcqm_cluster_standbys 0" in told(replace(STATUS, members=(PRIMARY, standby)))


def test_a_doubt_has_its_time() -> None:
    assert "rpcqm_cluster_doubt_seconds 0.3" in told(replace(STATUS, doubt="no answer"))


def test_only_a_queue_manager_in_a_cluster_tells_of_one(
    qm: RunningQueueManager, operations: Operations
) -> None:
    def lines() -> str:
        settings = MetricsSettings()
        pieces = qm.done(operations.metrics.told(ADMINISTRATOR, Writer(), settings))
        return "".join(pieces)

    assert "cluster" not in lines()
    operations.metrics.cluster = lambda: STATUS
    assert "rpcqm_cluster_epoch 3" in lines()
    assert "rpcqm_cluster_append_duration_seconds_count 0" in lines()


def test_the_page_has_the_names_of_nodes_of_a_cluster() -> None:
    page = (Path(__file__).parents[3] / "docs/metrics.md").read_text("utf-8")
    rows = set(re.findall(r"(?m)^\| `(rpcqm_cluster_\w+?)(?:_total)?` \| (\w+) \|", page))
    assert rows == {(each.name, each.kind) for each in metric_families.OF_CLUSTERS}
