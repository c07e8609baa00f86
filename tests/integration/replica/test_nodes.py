"""Two nodes as `rpcqm serve` runs them, over one real server of the log."""

import json
import secrets
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rpcqm.codec.types.rpcqm_cluster import R_PromoteRequest, R_SwitchOverRequest
from tests.support.replica.nats_servers import NatsServer
from tests.support.replica.node import NodeProcess
from tests.support.waiting import PATIENCE, until

Servers = Callable[[int], list[NatsServer]]


@pytest.fixture(scope="module")
def nodes(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[NodeProcess, NodeProcess]]:
    """The first one is primary, the second one its standby, before the first test."""
    log = f"log-{secrets.token_hex(4)}"
    place, url = tmp_path_factory.mktemp("nodes"), servers(1)[0].url
    pair = NodeProcess(place / "a", url, log, "a"), NodeProcess(place / "b", url, log, "b")
    try:
        pair[0].spawn()
        pair[0].until_active()
        pair[1].spawn()
        pair[1].until_standby()
        pair[0].run("queue", "create", "orders")
        yield pair
    finally:
        for each in pair:
            each.kill()


def roles(nodes: tuple[NodeProcess, NodeProcess]) -> tuple[NodeProcess, NodeProcess]:
    """The primary and the standby; whoever does not run begins."""
    for each in nodes:
        if each.process is None:
            each.spawn()
    primary, standby = nodes if nodes[0].is_active else reversed(nodes)
    standby.until_standby()
    return primary, standby


def get(node: NodeProcess, path: str, body: bytes | None = None) -> tuple[int, str]:
    """What is answered to a GET, or with a body to a POST."""
    host, port = node.endpoint("console")
    try:
        url = f"http://{host}:{port}{path}"
        with urllib.request.urlopen(url, body, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def bodies(node: NodeProcess) -> list[str]:
    told = node.run("peek", "orders", "--all", "--timeout", "0", "--format", "json")
    return [json.loads(each)["body"] for each in told.splitlines()]


def identity(node: NodeProcess) -> str:
    return str(json.loads((node.data / "rpcqm.json").read_text())["id"])


def test_a_standby_serves_what_a_killed_primary_has_acknowledged(
    nodes: tuple[NodeProcess, NodeProcess],
) -> None:
    primary, standby = roles(nodes)
    before = identity(primary)
    primary.run("send", "orders", "--body", "kept")
    epoch = primary.status()["epoch"]
    primary.kill()
    standby.until_active()
    assert "kept" in bodies(standby)
    assert identity(standby) == before
    assert standby.status()["epoch"] == epoch + 1
    assert standby.status()["active"] == standby.name


def test_a_primary_that_stood_still_answers_nobody_and_is_a_standby(
    nodes: tuple[NodeProcess, NodeProcess],
) -> None:
    primary, standby = roles(nodes)
    assert primary.process is not None
    pid = primary.process.pid
    primary.signal(signal.SIGSTOP)
    standby.until_active()
    standby.run("send", "orders", "--body", "by the second")
    primary.signal(signal.SIGCONT)
    primary.until_standby()
    assert primary.process.pid == pid
    assert not primary.is_active
    assert primary.status()["active"] == standby.name
    until(lambda: primary.status()["place"] >= standby.status()["place"] - 1)


def test_a_switch_over_is_not_waited_for(nodes: tuple[NodeProcess, NodeProcess]) -> None:
    primary, standby = roles(nodes)
    primary.run("send", "orders", "--body", "before the switch")
    primary.forget()
    assert primary.order(R_SwitchOverRequest(pwszNode=standby.name)).result == 0
    standby.until_active()
    assert "before the switch" in bodies(standby)
    primary.until_standby()
    assert not primary.is_active


def test_a_standby_is_promoted_by_an_order(nodes: tuple[NodeProcess, NodeProcess]) -> None:
    primary, standby = roles(nodes)
    primary.forget()
    assert standby.order(R_PromoteRequest()).result == 0
    standby.until_active()
    primary.until_standby()


def test_a_standby_is_alive_but_not_ready(nodes: tuple[NodeProcess, NodeProcess]) -> None:
    primary, standby = roles(nodes)
    assert get(standby, "/healthz") == (200, "ok\n")
    assert get(standby, "/readyz") == (503, "it is a standby\n")
    assert get(standby, "/console")[0] == 503
    assert get(standby, "/api/v1/queues/orders/messages", b"an order")[0] == 503
    assert 'rpcqm_cluster_role{role="standby"} 1' in get(standby, "/metrics")[1]
    assert get(primary, "/readyz") == (200, "ok\n")


def test_a_replicated_directory_is_refused_without_the_log(
    nodes: tuple[NodeProcess, NodeProcess],
) -> None:
    _, standby = roles(nodes)
    standby.signal(signal.SIGTERM)
    assert standby.wait() == 0
    configuration = (standby.directory / "rpcqm.toml").read_text()
    standby.configure("")
    standby.spawn()
    assert standby.wait() == 1
    assert "must not go on without the cluster's log" in standby.output
    (standby.directory / "rpcqm.toml").write_text(configuration)


def test_a_node_of_another_log_is_refused(
    nodes: tuple[NodeProcess, NodeProcess], servers: Servers, tmp_path: Path
) -> None:
    """Its place is beyond the end of a log that is empty, and its records are others."""
    roles(nodes)
    node = NodeProcess(tmp_path / "c", servers(1)[0].url, f"log-{secrets.token_hex(4)}", "c")
    try:
        node.spawn()
        node.until_active()
        node.signal(signal.SIGTERM)
        assert node.wait() == 0
        node.configure(
            f'log = ["{servers(1)[0].url}"]\nname = "log-{secrets.token_hex(4)}"\nnode = "c"\n'
        )
        node.spawn()
        assert node.wait() == 1
        assert "the log was lost, or is another one." in node.output
    finally:
        node.kill()
