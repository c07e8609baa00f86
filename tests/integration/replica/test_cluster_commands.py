"""`rpcqm cluster` against nodes of a real server of the log: what operators see and order."""

import json
import re
import secrets
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.console.browser import Browser
from tests.support.replica.nats_servers import NatsServer
from tests.support.replica.node import RPCQM, NodeProcess
from tests.support.waiting import PATIENCE, until

Servers = Callable[[int], list[NatsServer]]
Pair = tuple[NodeProcess, NodeProcess]


@pytest.fixture(scope="module")
def nodes(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Whichever of the two is active, the other one is its standby."""
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


def roles(nodes: Pair) -> Pair:
    primary, standby = nodes if nodes[0].is_active else reversed(nodes)
    standby.until_standby()
    return primary, standby


def refused(node: NodeProcess, *words: str) -> str:
    """The sentence with which a command fails."""
    command = [*RPCQM, *words, "--data-dir", str(node.data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1, done.stdout
    assert done.stderr.count("\n") == 1
    return done.stderr


def with_password(node: NodeProcess, *words: str) -> None:
    """Run a command of `rpcqm user`."""
    command = [*RPCQM, "user", *words, "--password-stdin", "--data-dir", str(node.data)]
    subprocess.run(command, input="secret\n", text=True, check=True, timeout=PATIENCE)


def members(node: NodeProcess) -> dict[str, dict[str, Any]]:
    told = json.loads(node.run("cluster", "status", "--json"))
    return {each["node"]: each for each in told["members"]}


def joined(node: NodeProcess, backup: Path) -> None:
    node.data.parent.mkdir(exist_ok=True)
    said = node.run("cluster", "join", str(backup))
    assert "has the cluster's log up to record" in said


def bodies_of(node: NodeProcess) -> str:
    return node.run("peek", "orders", "--all", "--timeout", "0", "--format", "json")


def test_both_nodes_tell_who_is_active_and_how_far_the_others_are(nodes: Pair) -> None:
    primary, standby = roles(nodes)
    until(lambda: members(primary).keys() == {"a", "b"})
    until(lambda: members(standby)[primary.name]["role"] == "primary")
    lines = standby.run("cluster", "status").splitlines()
    assert lines[0] == f"This node: {standby.name}, standby"
    assert lines[1].startswith(f"Active: {primary.name} for ")
    assert lines[2].startswith("Log: log-")
    assert [line.split()[:2] for line in lines[4:]] == [
        [name, "primary" if name == primary.name else "standby"] for name in ("a", "b")
    ]
    told = members(primary)
    assert told["a"]["files"] == told["b"]["files"]
    assert not told[standby.name]["lost"]


def test_doctor_looks_at_the_log_and_at_the_nodes(nodes: Pair, servers: Servers) -> None:
    primary, standby = roles(nodes)
    until(lambda: members(primary)[standby.name]["role"] == "standby")

    def found() -> list[str]:
        command = [*RPCQM, "doctor", "--json", "--config", str(primary.directory / "rpcqm.toml")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        told = [each for each in json.loads(done.stdout) if each["subject"] == "cluster"]
        return [f"{each['level']}: {each['text']}" for each in told]

    one, answers, nodes_found = found()
    assert one.startswith("warning: The log is one server on this machine")
    assert answers.startswith("ok: 1 of 1 servers of the log answer, and ")
    assert nodes_found == f"ok: {primary.name} is active, and every other node is up to date."


def test_top_and_the_console_show_who_is_active_and_how_far_the_others_are(nodes: Pair) -> None:
    primary, standby = roles(nodes)
    until(lambda: members(primary)[standby.name]["role"] == "standby")
    picture = primary.run("top", "--once")
    assert f"Cluster: {primary.name} for " in picture
    assert f"{standby.name} up to date" in picture
    with_password(primary, "add", "boss", "--group", "administrators")
    home = re.findall(r'"pages": "([^"]+)"', primary.output)[-1]
    browser = Browser(primary.endpoint("console"), home)
    words = browser.log_on("boss").words
    assert f"{primary.name} is active, since the takeover number " in words
    assert f"{standby.name} standby" in words


def test_orders_go_to_the_node_that_can_carry_them_out(nodes: Pair) -> None:
    primary, standby = roles(nodes)
    assert f"ask the one that is, which is `{primary.name}`" in refused(
        standby, "cluster", "switch-over"
    )
    assert "active already" in refused(primary, "cluster", "promote")
    assert "is this node" in refused(primary, "cluster", "switch-over", "--to", primary.name)


def test_accounts_and_passwords_are_at_the_node_that_takes_over(nodes: Pair) -> None:
    primary, standby = roles(nodes)
    with_password(primary, "add", "alice")
    with_password(primary, "password", "alice")
    accounts = set((primary.data / "accounts").read_text().splitlines())
    assert any(line.startswith("alice:") for line in accounts)
    primary.forget()
    primary.run("cluster", "switch-over", "--to", standby.name)
    standby.until_active()
    assert set((standby.data / "accounts").read_text().splitlines()) == accounts
    primary.until_standby()
    primary.run("cluster", "promote")
    primary.until_active()
    standby.forget()
    standby.until_standby()


def test_whichever_node_is_back_first_goes_on_with_everything(nodes: Pair) -> None:
    primary, standby = roles(nodes)
    primary.run("send", "orders", "--body", "before both were killed")
    primary.kill()
    standby.kill()
    standby.spawn()
    standby.until_active()
    assert "before both were killed" in bodies_of(standby)
    primary.spawn()


def test_a_node_joins_by_the_backup_of_a_standby_and_is_removed(
    nodes: Pair, servers: Servers, tmp_path: Path
) -> None:
    primary, standby = roles(nodes)
    primary.run("send", "orders", "--body", "before the backup")
    until(lambda: standby.status()["place"] >= primary.status()["place"] - 1)
    backup = tmp_path / "backup"
    assert "is a backup" in standby.run("backup", str(backup))
    assert "--with-secrets" in refused(standby, "backup", str(tmp_path / "s"), "--with-secrets")
    primary.run("send", "orders", "--body", "after it")
    third = NodeProcess(tmp_path / "c", servers(1)[0].url, primary.status()["log"], "c")
    try:
        joined(third, backup)
        assert not (third.data / "restored").exists()
        assert "not empty" in refused(third, "cluster", "join", str(backup))
        third.spawn()
        third.until_standby()
        until(lambda: "c" in members(primary))
        third.kill()
        primary.kill()
        standby.kill()
        third.spawn()  # nobody else is left, and what came after the backup is in the log
        third.until_active()
        assert "after it" in bodies_of(third)
    finally:
        third.kill()
    for each in nodes:
        each.spawn()
    until(lambda: any(each.is_active for each in nodes))
    primary, standby = roles(nodes)
    assert "after it" in bodies_of(primary)
    assert "waits for `c` no more" in primary.run("cluster", "remove", "c")
    assert "c" not in members(primary)
    assert "There is no node `c`" in refused(primary, "cluster", "remove", "c")


def test_one_nodes_data_go_on_alone_or_in_a_new_log_if_the_loss_is_accepted(
    nodes: Pair, servers: Servers, tmp_path: Path
) -> None:
    primary, _ = roles(nodes)
    primary.run("send", "orders", "--body", "kept")
    primary.run("backup", str(tmp_path / "backup"))
    url, log = servers(1)[0].url, primary.status()["log"]
    left = NodeProcess(tmp_path / "left", url, log, "left")
    joined(left, tmp_path / "backup")
    said = refused(left, "cluster", "adopt")
    assert "has the old log up to record" in said
    assert "--accept-loss" in said
    assert "begins a new log" in left.run("cluster", "adopt", "--accept-loss")
    try:
        left.spawn()
        assert left.wait() == 1
        assert "goes on from other data" in left.output
        left.configure(f'log = ["{url}"]\nname = "log-{secrets.token_hex(4)}"\nnode = "left"\n')
        left.spawn()
        left.until_active()
        assert "kept" in bodies_of(left)
        left.signal(signal.SIGTERM)
        assert left.wait() == 0
        left.run("cluster", "adopt", "--accept-loss")
        left.configure("")
        left.spawn()
        left.until_active()
        assert "in no cluster" in refused(left, "cluster", "status")
    finally:
        left.kill()
