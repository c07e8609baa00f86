"""The programs of docs/http-clients.md send, receive with leases and answer requests."""

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.api.programs import Program
from tests.support.cli.documents import ROOT

TEXT = (ROOT / "docs" / "http-clients.md").read_text("utf-8")
PROGRAMS = dict(re.findall(r"(?ms)^```([a-z-]+)\n(.*?)^```", TEXT))
VECTORS = ROOT / "tests" / "vectors" / "http-clients"
WHERE = "localhost:15680"
SECONDS = 300
Run = Callable[[Path, str], list[str]]


def _written(name: str, *command: str) -> tuple[str, Run]:
    def run(directory: Path, program: str) -> list[str]:
        (directory / name).write_text(program, "utf-8")
        return [*command, str(directory / name)]

    return command[0], run


_MONO = 'mcs -r:System.Net.Http,System.Runtime.Serialization -out:"$0.exe" "$0" && mono "$0.exe"'
RUNS = {
    "sh-program": _written("orders.sh", "bash", "-e"),
    "csharp-framework": _written("Orders.cs", "sh", "-c", _MONO),
    "java": _written("Orders.java", "java"),
    "javascript": _written("orders.mjs", "node"),
    "go": _written("orders.go", "go", "run"),
}
NEEDED = {"sh-program": ("curl", "jq"), "csharp-framework": ("mcs", "mono")}
"""Programs that some need beside what runs them."""
REPLAYED = {"csharp": "csharp", "powershell": "powershell"}


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateQueueManager]:
    with private_queue_manager(("--console-port", "0")) as served:
        words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
        served.run(*words, input="secret\n")
        boss = Program(served.endpoint("console"), "boss")
        for name in ("orders", "answers"):
            assert boss.ask("POST", "/queues", {"name": name}).status == 201
        boss.close()
        yield served


def left(running: PrivateQueueManager) -> list[object]:
    """How many messages are in both queues; everything was completed if there is none."""
    boss = Program(running.endpoint("console"), "boss")
    counts = [
        boss.ask("GET", f"/queues/{name}").value["messages"] for name in ("orders", "answers")
    ]
    boss.close()
    return counts


def test_every_program_is_run_or_replayed() -> None:
    assert PROGRAMS.keys() == RUNS.keys() | REPLAYED.keys()


@pytest.mark.parametrize("language", RUNS)
def test_a_program_answers_a_request(
    running: PrivateQueueManager, language: str, tmp_path: Path
) -> None:
    tool, run = RUNS[language]
    needed = (tool, *NEEDED.get(language, ()))
    missing = [each for each in needed if shutil.which(each) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed (scripts/install-peers)")
    address = f"127.0.0.1:{running.endpoint('console')[1]}"
    command = run(tmp_path, PROGRAMS[language].replace(WHERE, address))
    cache = {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "NO_PROXY": "*"}
    environment = {**os.environ, **cache, "no_proxy": "*"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout.endswith("sold\n")
    assert left(running) == [0, 0]


def exchanged(address: tuple[str, int], octets: bytes) -> tuple[int, bytes]:
    """The status and the body of the answer to a request's octets."""
    with socket.create_connection(address, timeout=SECONDS) as connection:
        connection.sendall(octets)
        reader = connection.makefile("rb")
        status = int(reader.readline().split()[1])
        length = 0
        while (line := reader.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return status, reader.read(length)


def filled(octets: bytes, message: dict[str, object]) -> bytes:
    """A request with what the message before gave it."""
    head, _, body = octets.partition(b"\r\n\r\n")
    for mark, member in (("lease", "lease"), ("id", "id"), ("queue", "response_queue")):
        text = str(message.get(member) or "")
        head = head.replace(b"{%s}" % mark.encode(), text.encode())
        body = body.replace(b"{%s}" % mark.encode(), json.dumps(text)[1:-1].encode())
    return head.replace(b"{length}", str(len(body)).encode()) + b"\r\n\r\n" + body


@pytest.mark.parametrize("language", REPLAYED)
def test_the_requests_of_a_program_answer_a_request(
    running: PrivateQueueManager, language: str
) -> None:
    message: dict[str, object] = {}
    statuses, answer = [], b""
    for path in sorted(VECTORS.glob(f"{language}-*.http")):
        status, told = exchanged(running.endpoint("console"), filled(path.read_bytes(), message))
        statuses.append(status)
        if b'"messages"' in told:
            answer, (message,) = told, json.loads(told)["messages"]
    assert statuses == [201, 200, 201, 200, 204]
    assert json.loads(answer)["messages"][0]["body"] == "sold"
    assert left(running) == [0, 0]


@pytest.mark.parametrize("language", REPLAYED)
def test_the_requests_are_those_of_the_program(language: str) -> None:
    program = PROGRAMS[language]
    defaults = {"host", "content-length", "user-agent", "accept-encoding"}
    asked = re.findall(r"(queues/[\w/?=&]+|transactions|leases/)", program)
    sent = []
    for path in sorted(VECTORS.glob(f"{language}-*.http")):
        head, _, body = path.read_bytes().decode().partition("\r\n\r\n")
        line, *headers = head.split("\r\n")
        method, target, _ = line.split()
        assert method.lower() in program.lower()
        sent.append(target.removeprefix("/api/v1/").partition("{")[0])
        assert parse_qs(urlsplit(target).query) in ({}, {"wait": ["5"], "lease": ["30"]})
        for name, _, value in (each.partition(": ") for each in headers):
            if name.startswith("Rpcqm-"):
                assert (name in program, value in program) == (True, True)
            elif name == "Content-Type":
                known = value in program or language == "csharp"
                assert known
            elif name.lower() not in defaults:
                assert name in program
        for member in re.findall(r'"(\w+)":', body):
            assert re.search(rf"\b{member} =", program), member
    assert sent == asked
