"""What `rpcqm doctor` finds of the nodes of a cluster."""

from collections.abc import Mapping
from typing import Any

import pytest

from rpcqm.cli import cluster_checks
from rpcqm.cli.checks import CheckedMachine, Level
from rpcqm.client.ready import ReadyFile
from rpcqm.config import Configuration

MIB = 1 << 20
OWN = {
    "node": "a",
    "role": "primary",
    "age": 0,
    "lag_milliseconds": 0,
    "ahead": 0,
    "version": "0.1.0",
    "files": "x",
    "free": 1 << 40,
    "lost": False,
}
OTHER = {**OWN, "node": "b", "role": "standby"}
TOLD: dict[str, Any] = {
    "node": "a",
    "active": "a",
    "doubt": "",
    "doubted": 0,
    "log_bytes": 10,
    "log_maximum": 100,
    "members": [OWN, OTHER],
}


def findings(told: Mapping[str, Any]) -> list[tuple[Level, str]]:
    found = cluster_checks._node_findings(told, 100 * MIB)
    return [(each.level, each.text) for each in found]


def test_a_cluster_that_is_well_has_nothing_to_find() -> None:
    assert findings(TOLD) == []


@pytest.mark.parametrize(
    ("changes", "level", "words"),
    [
        ({"lost": True}, Level.PROBLEM, "Node b is too far behind, and has to join anew."),
        ({"age": 31_000}, Level.PROBLEM, "Node b has told nothing for 31 s."),
        ({"lag_milliseconds": 61_000}, Level.WARNING, "Node b is 1 min 1 s behind."),
        ({"ahead": 6_000}, Level.PROBLEM, "is 6 s ahead of the one here, at least."),
        ({"ahead": -6_000}, Level.PROBLEM, "is 6 s behind the one here, at least."),
        ({"version": "0.2.0"}, Level.WARNING, "Node b runs version 0.2.0"),
        ({"files": "y"}, Level.PROBLEM, "other keys, certificates or keytabs than this one."),
        ({"free": 99 * MIB}, Level.PROBLEM, "less than storage.reserve."),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_what_a_node_lacks_is_one_sentence(
    changes: dict[str, Any], level: Level, words: str
) -> None:
    ((found, text),) = findings({**TOLD, "members": [OWN, {**OTHER, **changes}]})
    assert found is level
    assert words in text


def test_what_is_within_the_bounds_is_well() -> None:
    near = {"age": 30_000, "lag_milliseconds": 60_000, "ahead": 5_000, "free": 100 * MIB}
    assert findings({**TOLD, "members": [OWN, {**OTHER, **near}]}) == []


def test_no_standby_a_doubt_and_a_full_log_are_problems() -> None:
    told = {**TOLD, "members": [OWN], "doubt": "no answer", "doubted": 7_000, "log_bytes": 81}
    texts = [text for level, text in findings(told) if level is Level.PROBLEM]
    assert "A write is in doubt for 7 s: no answer." in texts
    assert any(text.startswith("The log has 81 B") for text in texts)
    assert any(text.startswith("No other node") for text in texts)


def test_a_queue_manager_of_no_cluster_is_not_asked() -> None:
    running: ReadyFile | None = None
    patient = CheckedMachine(Configuration(), running)
    assert [list(check(patient)) for check in cluster_checks.CLUSTER_CHECKS] == [[], []]
