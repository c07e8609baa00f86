"""`rpcqm triggers run`: rules at work, with real programs and a real queue manager."""

import itertools
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.triggers.running_service import Rules, RunningService, running_service
from tests.support.waiting import until

_numbers = itertools.count(1)
COPY = "import sys, pathlib; pathlib.Path(sys.argv[1]).open('ab').write(sys.stdin.buffer.read())"


@pytest.fixture(scope="module")
def queue_manager() -> Iterator[PrivateQueueManager]:
    with private_queue_manager() as queue_manager:
        yield queue_manager


@pytest.fixture(scope="module")
def service(
    queue_manager: PrivateQueueManager, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    with running_service(queue_manager, tmp_path_factory.mktemp("service") / "log") as service:
        yield service


@pytest.fixture
def rules(queue_manager: PrivateQueueManager, service: RunningService) -> Rules:
    return Rules(queue_manager)


@pytest.fixture(params=["plain", "transactional"])
def queue(request: pytest.FixtureRequest, queue_manager: PrivateQueueManager) -> str:
    name = f"q{next(_numbers)}"
    words = ["--transactional"] if request.param == "transactional" else []
    queue_manager.run("queue", "create", name, *words)
    return name


def send(queue_manager: PrivateQueueManager, queue: str, body: str, *words: str) -> None:
    shown = json.loads(queue_manager.run("queue", "show", queue, "--json").stdout)
    kind = ["--transactional"] if shown["transactional"] else []
    queue_manager.run("send", queue, "--body", body, *kind, *words)


def bodies(queue_manager: PrivateQueueManager, queue: str) -> list[str]:
    peeked = queue_manager.run("peek", queue, "--all", "--json", check=False).stdout
    return [json.loads(line)["body"] for line in peeked.splitlines()]


def test_a_program_is_run_for_each_message_which_leaves_its_queue(
    queue_manager: PrivateQueueManager, rules: Rules, queue: str, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    rules.add(queue, queue, "--run", sys.executable, "-c", COPY, str(path))
    for body in ("one\n", "two\n"):
        send(queue_manager, queue, body)
    rules.until(queue, done=2, running=0, failed=0, trouble="")
    assert path.read_text() == "one\ntwo\n"
    assert bodies(queue_manager, queue) == []


def test_what_fails_is_tried_again_and_put_aside_in_the_end(
    queue_manager: PrivateQueueManager, service: RunningService, rules: Rules, queue: str
) -> None:
    rules.add(
        *(queue, queue, "--poison-after", "2", "--run", sys.executable, "-c", "raise SystemExit(9)")
    )
    send(queue_manager, queue, "poison")
    told = rules.until(queue, failed=2, poisoned=1, done=0)
    assert "ended with exit status 9" in told["outcome"]
    assert bodies(queue_manager, queue) == []
    assert bodies(queue_manager, f"{queue};poison") == ["poison"]
    lines = [line for line in service.lines("a trigger has failed") if line["trigger"] == queue]
    assert [line["given_up"] for line in lines] == [False, True]


@pytest.mark.parametrize("target", ["dead-letter", "another queue"])
def test_poison_goes_where_the_rule_says(
    queue_manager: PrivateQueueManager, rules: Rules, queue: str, target: str
) -> None:
    if target == "another queue":
        queue_manager.run("queue", "create", target := f"{queue}-letters")
    words = ["--poison-after", "1", "--poison-queue", target]
    rules.add(queue, queue, *words, "--run", sys.executable, "-c", "raise SystemExit(9)")
    send(queue_manager, queue, f"poison of {queue}")
    rules.until(queue, poisoned=1)
    assert bodies(queue_manager, queue) == []
    places = [target] if target != "dead-letter" else ["DeadLetter$", "XactDeadLetter$"]
    found = [body for place in places for body in bodies(queue_manager, place)]
    assert f"poison of {queue}" in found


def test_a_rule_may_leave_messages_in_their_queue(
    queue_manager: PrivateQueueManager, rules: Rules, queue: str, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    words = ["--mode", "peek", "--json-path", "$[?@.total > 10]"]
    rules.add(queue, queue, *words, "--run", sys.executable, "-c", COPY, str(path))
    for total in (5, 50):
        send(queue_manager, queue, json.dumps([{"total": total}]))
    send(queue_manager, queue, "[]", "--priority", "7")
    rules.until(queue, done=1, running=0)
    assert json.loads(path.read_text()) == [{"total": 50}]
    assert len(bodies(queue_manager, queue)) == 3


def test_a_label_is_one_argument_and_never_an_option(
    queue_manager: PrivateQueueManager, rules: Rules, queue: str, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    text = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(repr(sys.argv[2:]))"
    rules.add(queue, queue, "--run", sys.executable, "-c", text, str(path), "--", "{label}")
    label = "-x; touch /tmp/no $(id)"
    send(queue_manager, queue, "x", f"--label={label}")
    rules.until(queue, done=1)
    assert path.read_text() == repr(["--", label])


def test_a_message_is_sent_on(queue_manager: PrivateQueueManager, rules: Rules, queue: str) -> None:
    for kind in ([], ["--transactional"]):
        target = f"{queue}-to{len(kind)}"
        queue_manager.run("queue", "create", target, *kind)
        rules.add(target, queue, "--send-to", target, "--label", target)
        send(queue_manager, queue, f"for {target}", "--label", target)
        rules.until(target, done=1)
        assert bodies(queue_manager, target) == [f"for {target}"]
    assert bodies(queue_manager, queue) == []


class Hook(BaseHTTPRequestHandler):
    """Notes requests, and answers what the path says."""

    seen: list[tuple[str, str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.headers["Rpcqm-Label"], self.headers["Content-Type"], body))
        self.send_response(int(self.path[1:]))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    seen: list[tuple[str, str, bytes]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OneHook", (Hook,), {"seen": seen}))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", seen
    server.shutdown()
    server.server_close()


def test_a_message_is_posted(
    queue_manager: PrivateQueueManager,
    rules: Rules,
    queue: str,
    hook: tuple[str, list[tuple[str, str, bytes]]],
) -> None:
    url, seen = hook
    rules.add(queue, queue, "--post", f"{url}/204")
    send(queue_manager, queue, "hello", "--label", "a\tb ü")
    rules.until(queue, done=1)
    assert seen == [("a%09b%20%C3%BC", "text/plain; charset=utf-8", b"hello")]


def test_a_server_that_refuses_is_a_failure_and_one_that_is_away_is_none(
    queue_manager: PrivateQueueManager,
    rules: Rules,
    queue: str,
    hook: tuple[str, list[tuple[str, str, bytes]]],
) -> None:
    url, _ = hook
    rules.add(queue, queue, "--label", "a", "--poison-after", "1", "--post", f"{url}/404")
    send(queue_manager, queue, "hello", "--label", "a")
    assert "answered 404" in rules.until(queue, poisoned=1)["outcome"]
    away = f"{queue}-away"
    rules.add(away, queue, "--label", "b", "--post", "http://127.0.0.1:1/")
    send(queue_manager, queue, "hello", "--label", "b")
    until(lambda: "cannot be reached" in rules.of(away)["trouble"])
    assert rules.of(away)["failed"] == 0
    queue_manager.run("trigger", "disable", away)
    assert bodies(queue_manager, queue) == ["hello"]


def test_a_queue_that_is_gone_is_told_and_waited_for(
    queue_manager: PrivateQueueManager, rules: Rules
) -> None:
    name = f"late{next(_numbers)}"
    rules.add(name, name, "--run", "/bin/true")
    until(lambda: "MQ_ERROR_QUEUE_NOT_FOUND" in rules.of(name)["trouble"])
    assert "does not work" in queue_manager.run("trigger", "list").stdout
    queue_manager.run("queue", "create", name)
    send(queue_manager, name, "x")
    rules.until(name, done=1, trouble="")


def test_a_second_service_waits_and_says_so(
    queue_manager: PrivateQueueManager, service: RunningService, rules: Rules, tmp_path: Path
) -> None:
    with running_service(queue_manager, tmp_path / "log") as second:
        until(lambda: second.lines("another service of triggers works; this one waits"))
        assert f"process {service.process.pid}" in rules.told()["service"]["told"]
        assert second.stop() == 0
    assert f"process {service.process.pid}" in rules.told()["service"]["told"]


def test_a_queue_manager_that_restarts_in_the_middle_loses_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "out"
    gate = tmp_path / "gate"
    text = f"""
import pathlib, sys, time
path = pathlib.Path({str(path)!r})
path.open("a").write(sys.argv[1] + "\\n")
while not pathlib.Path({str(gate)!r}).exists():
    time.sleep(0.02)
"""
    with private_queue_manager() as machine:
        rules = Rules(machine)
        machine.run("queue", "create", "orders", "--transactional")
        with running_service(machine, tmp_path / "log") as service:
            rules.add("slow", "orders", "--run", sys.executable, "-c", text, "{label}")
            for label in ("a", "b", "c"):
                send(machine, "orders", "x", "--label", label)
            until(path.exists)
            machine.restart()
            gate.touch()
            until(lambda: path.read_text().split()[-1] == "c")
            rules.until("slow", running=0)
            assert bodies(machine, "orders") == []
            assert service.process.poll() is None
            told = path.read_text().split()
            assert told in (["a", "b", "c"], ["a", "a", "b", "c"])


def test_a_service_that_is_killed_runs_again_what_was_under_way(tmp_path: Path) -> None:
    path = tmp_path / "out"
    text = f"""
import pathlib, sys, time
with pathlib.Path({str(path)!r}).open("a") as file:
    file.write(sys.argv[1] + "\\n")
if sys.argv[1] == "b" and pathlib.Path({str(path)!r}).read_text().count("b") == 1:
    time.sleep(1000)
"""
    with private_queue_manager() as machine:
        rules = Rules(machine)
        machine.run("queue", "create", "orders")
        words = ["--mode", "peek", "--run", sys.executable, "-c", text, "{label}"]
        rules.add("slow", "orders", *words)
        for label in ("a", "b", "c"):
            send(machine, "orders", "x", "--label", label)
        with running_service(machine, tmp_path / "log") as service:
            until(lambda: path.exists() and "b" in path.read_text())
            rules.until("slow", done=1)
            service.kill()
        with running_service(machine, tmp_path / "log2") as service:
            until(lambda: path.read_text().split()[-1] == "c")
            assert service.stop() == 0
        assert path.read_text().split() == ["a", "b", "b", "c"]
