"""The directory as a graph of sites, queue managers and links."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rpcqm.base.errors import MQError
from rpcqm.base.told import told
from rpcqm.config.directory import DirectoryFile
from rpcqm.operations.routing import RoutingOperations
from tests.support.qm.directories import WORKSTATION, write_directory
from tests.support.queue_manager import SETTINGS, RunningQueueManager
from tests.support.rpc.callers import ADMINISTRATOR, ALICE


@pytest.fixture
def routed(tmp_path: Path) -> Iterator[RunningQueueManager]:
    (tmp_path / "data").mkdir()
    settings = replace(SETTINGS, directory=DirectoryFile(write_directory(tmp_path)))
    running = RunningQueueManager(tmp_path / "data", settings)
    yield running
    running.stop()


def test_sites_queue_managers_and_links_are_a_graph(routed: RunningQueueManager) -> None:
    graph: Any = told(RoutingOperations(routed.engine).graph(ADMINISTRATOR))
    sites = {each["name"]: each for each in graph["sites"]}
    assert {name: each["here"] for name, each in sites.items()} == {"Berlin": True, "Paris": False}
    machines = {each["name"]: each for each in graph["queue_managers"]}
    assert machines["WORKSTATION"]["id"] == str(WORKSTATION)
    assert machines["WORKSTATION"]["out_servers"] == [machines["ROUTER"]["id"]]
    (link,) = graph["links"]
    assert (link["site1"], link["site2"], link["cost"]) == (
        sites["Berlin"]["id"],
        sites["Paris"]["id"],
        10,
    )
    assert link["gates"] == [machines["ROUTER"]["id"]]


def test_only_administrators_see_it_and_without_a_directory_it_is_empty(
    qm: RunningQueueManager,
) -> None:
    routing = RoutingOperations(qm.engine)
    with pytest.raises(MQError):
        routing.graph(ALICE)
    assert routing.graph(ADMINISTRATOR).sites == ()


@pytest.mark.bound("routing.nodes")
def test_so_much_of_a_directory_is_shown(
    routed: RunningQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    routing = RoutingOperations(routed.engine)
    monkeypatch.setattr("rpcqm.operations.routing.MOST_NODES", 2)
    assert len(routing.graph(ADMINISTRATOR).queue_managers) == 2
