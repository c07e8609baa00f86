"""Debian's Prometheus scrapes a queue manager, evaluates the alerts, and answers the dashboard."""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.accounts import PASSWORD
from tests.support.cli.documents import ROOT
from tests.support.dcom import clsids
from tests.support.dcom.dcom_client import ENABLED, DcomClient
from tests.support.ports import reserved_port
from tests.support.waiting import PATIENCE

RULES = ROOT / "packaging" / "prometheus" / "rpcqm.rules.yml"
DASHBOARD = ROOT / "packaging" / "grafana" / "rpcqm.json"
ELSEWHERE = r"DIRECT=OS:nowhere.invalid\private$\orders"
CONFIGURATION = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: rpcqm
    authorization: {{credentials_file: {token}}}
    static_configs: [{{targets: ["{target}"]}}]
"""


class Prometheus:
    """A server on loopback, asked by its own interface."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"

    def ask(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self._base}{path}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def values(self, query: str) -> list[Any]:
        found: list[Any] = self.ask("/api/v1/query", query=query)["result"]
        return [each for each in found if each["value"][1] != "NaN"]

    def wait_for(self, ask: Callable[[], object]) -> None:
        """Until what is asked is true, for a minute at most."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if ask():
                    return
            except (urllib.error.URLError, ConnectionError):
                pass  # it is starting
            assert time.monotonic() < end, "Prometheus does not say so"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0"), ENABLED) as queue_manager:
        queue_manager.run("user", "add", "alice", "--password-stdin", input=f"{PASSWORD}\n")
        words = ("--group", "administrators", "--password-stdin")
        queue_manager.run("user", "add", "monitor", *words, input="secret\n")
        queue_manager.run("queue", "create", "orders")
        queue_manager.run("send", "orders", "--body", "a", "--count", "3")
        queue_manager.run("send", "orders", "--body", "x", "--ttbr", "0", "--dead-letter")
        queue_manager.run("send", ELSEWHERE, "--body", "x")
        yield queue_manager


@pytest.fixture(scope="module")
def prometheus(
    require: Callable[..., None],
    running: PrivateQueueManager,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Prometheus]:
    require("prometheus")
    directory = tmp_path_factory.mktemp("prometheus")
    words = ("--account", "monitor", "--rights", "peek")
    token = directory / "token"
    token.write_text(running.run("token", "create", "prometheus", *words).stdout.strip())
    host, console = running.endpoint("console")
    configuration = directory / "prometheus.yml"
    configuration.write_text(
        CONFIGURATION.format(rules=RULES, token=token, target=f"{host}:{console}")
    )
    port = reserved_port()
    process = started(directory, configuration, port)
    try:
        yield Prometheus(port)
    finally:
        process.terminate()
        process.wait(30)


def started(directory: Path, configuration: Path, port: int) -> "subprocess.Popen[bytes]":
    program = shutil.which("prometheus")
    assert program is not None
    return subprocess.Popen(
        [
            program,
            f"--config.file={configuration}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def queries() -> list[tuple[str, str]]:
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    return [(each["title"], target["expr"]) for each in panels for target in each["targets"]]


def test_the_rules_are_right(require: Callable[..., None]) -> None:
    require("promtool")
    subprocess.run(["promtool", "check", "rules", str(RULES)], check=True, capture_output=True)
    cases = RULES.with_name("rpcqm.rules.test.yml")
    subprocess.run(["promtool", "test", "rules", str(cases)], check=True, capture_output=True)


def test_it_scrapes_what_is_there(prometheus: Prometheus) -> None:
    prometheus.wait_for(lambda: prometheus.values('up{job="rpcqm"} == 1'))
    prometheus.wait_for(lambda: prometheus.values('rpcqm_queue_messages{queue="orders"} == 3'))


def test_it_evaluates_every_rule(prometheus: Prometheus) -> None:
    def evaluated() -> bool:
        (group,) = prometheus.ask("/api/v1/rules")["groups"]
        health = {rule["health"] for rule in group["rules"]}
        states = {rule["name"]: rule["state"] for rule in group["rules"]}
        return health == {"ok"} and states["RpcqmDeadLettersUnread"] == "pending"

    prometheus.wait_for(evaluated)


def test_every_query_of_the_dashboard_has_data(
    prometheus: Prometheus, running: PrivateQueueManager
) -> None:
    """Rates need two scrapes, and quantiles a call between them."""
    assert len(queries()) > 20
    left = queries()
    health = "http://{}:{}/healthz".format(*running.endpoint("console"))

    def answered() -> bool:
        running.run("send", "orders", "--body", "a")
        urllib.request.urlopen(health, timeout=10).close()
        com.create(clsids.MSMQ_MESSAGE, "IMSMQMessage4")
        left[:] = [
            (title, query)
            for title, query in left
            if not prometheus.values(query.replace("$instance", ".*"))
        ]
        return not left

    try:
        with DcomClient(running.endpoint("epm")) as com:
            prometheus.wait_for(answered)
    except AssertionError:
        pytest.fail(f"without data: {left}")
