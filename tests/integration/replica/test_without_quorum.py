"""A primary whose log does not answer: what it says then, and what it does not say."""

import json
import secrets
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.replica.nats_servers import NatsServer, nats_servers
from tests.support.replica.node import RPCQM, NodeProcess
from tests.support.waiting import PATIENCE, until

BOUNDS = "lease_milliseconds = 1000\nrefuse_after_milliseconds = 4000\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NodeProcess, NatsServer]]:
    place = tmp_path_factory.mktemp("quorum")
    with nats_servers(place / "nats", 1) as (server,):
        log = f"log-{secrets.token_hex(4)}"
        node = NodeProcess(place / "node", server.url, log, "alone", BOUNDS)
        try:
            node.spawn()
            node.until_active()
            node.run("queue", "create", "orders")
            yield node, server
        finally:
            server.signal(signal.SIGCONT)
            node.kill()


@contextmanager
def standing_still(server: NatsServer) -> Iterator[None]:
    server.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.signal(signal.SIGCONT)


def begun(node: NodeProcess, *arguments: str) -> "subprocess.Popen[str]":
    command = [*RPCQM, *arguments, "--data-dir", str(node.data)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def get(node: NodeProcess, path: str) -> tuple[int, str | None]:
    """The status, and when to ask again."""
    host, port = node.endpoint("console")
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.headers["Retry-After"]
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Retry-After"]


def bodies(node: NodeProcess) -> list[str]:
    told = node.run("peek", "orders", "--all", "--timeout", "0", "--format", "json")
    return [json.loads(each)["body"] for each in told.splitlines()]


def test_requests_are_refused_until_the_log_answers_again(
    served: tuple[NodeProcess, NatsServer],
) -> None:
    node, server = served
    with standing_still(server):
        until(lambda: "do not answer" in node.status()["why"])
        sent = begun(node, "send", "orders", "--body", "refused")
        assert sent.wait(PATIENCE) == 1
        assert "MQ_ERROR_SERVICE_NOT_AVAILABLE" in sent.communicate()[1]
        read = begun(node, "peek", "orders", "--timeout", "0")
        assert read.wait(PATIENCE) == 1
        assert "MQ_ERROR_SERVICE_NOT_AVAILABLE" in read.communicate()[1]
        status, again = get(node, "/api/v1/queues")
        assert (status, again is not None) == (503, True)
        assert get(node, "/readyz")[0] == 503
        assert get(node, "/healthz")[0] == 200
        assert node.status()["may_answer"] is False
    until(lambda: get(node, "/readyz")[0] == 200)
    node.run("send", "orders", "--body", "taken")
    assert "taken" in bodies(node)
    assert "refused" not in bodies(node)


def test_a_write_in_doubt_is_not_told_to_be_refused(
    served: tuple[NodeProcess, NatsServer],
) -> None:
    """Its record is on its way: the message is there when the log answers again."""
    node, server = served
    with standing_still(server):
        sent = begun(node, "send", "orders", "--body", "in doubt")
        assert sent.wait(PATIENCE) != 0
        told = sent.communicate()[1]
        assert "MQ_ERROR_SERVICE_NOT_AVAILABLE" not in told
    until(lambda: get(node, "/readyz")[0] == 200)
    assert bodies(node).count("in doubt") == 1


def test_what_is_read_without_a_lease_is_not_told(
    served: tuple[NodeProcess, NatsServer],
) -> None:
    """The peek runs, its answer is held back, and the connection is cut before that is certain."""
    node, server = served
    node.run("send", "orders", "--body", "readable")
    with standing_still(server):
        until(lambda: not node.status()["may_answer"])
        read = begun(node, "peek", "orders", "--timeout", "0")
        assert read.wait(PATIENCE) != 0
        assert "readable" not in read.communicate()[0]
    until(lambda: get(node, "/readyz")[0] == 200)
