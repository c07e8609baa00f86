r"""How queues may be named: letters of every alphabet, and `FormatName:` as .NET writes it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rpcqm.client import mq
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.ports import ports_of
from tests.support.waiting import until

QUEUE = "Größe 5 - naïve 日本"
SHOUTED = "GRÖßE 5 - NAÏVE 日本"
THERE = rf"DIRECT=OS:b\private$\{QUEUE}"


@pytest.fixture(scope="module")
def ports() -> dict[str, int]:
    return ports_of(("a", "b"))


@contextmanager
def running(name: str, ports: dict[str, int], *options: str) -> Iterator[PrivateQueueManager]:
    peers = ", ".join(f"{each}=127.0.0.1:{port}" for each, port in ports.items())
    configuration = f'name = "{name}"\n[binary]\npeers = "{peers}"\n'
    port = ("--binary-port", str(ports[name]))
    with private_queue_manager((*port, *options), configuration) as machine:
        yield machine


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captured") / "a.pcapng"


@pytest.fixture(scope="module")
def b(ports: dict[str, int]) -> Iterator[PrivateQueueManager]:
    with running("b", ports) as machine:
        machine.run("queue", "create", QUEUE)
        yield machine


@pytest.fixture(scope="module")
def a(
    b: PrivateQueueManager, ports: dict[str, int], capture: Path
) -> Iterator[PrivateQueueManager]:
    with running("a", ports, "--capture", str(capture)) as machine:
        yield machine


def refusal(machine: PrivateQueueManager, *words: str) -> str:
    done = machine.run(*words, check=False)
    assert done.returncode == 1, done
    return done.stderr


def received(machine: PrivateQueueManager, queue: str) -> str:
    said = machine.run("receive", queue, "--timeout", "20000", "--format", "json")
    body: str = json.loads(said.stdout)["body"]
    return body


@pytest.mark.parametrize("prefix", ["FormatName:", "FORMATNAME:", "formatname:"])
def test_what_system_messaging_writes_before_format_names_is_understood(
    a: PrivateQueueManager, b: PrivateQueueManager, prefix: str
) -> None:
    a.run("send", prefix + THERE, "--body", prefix, "--response-queue", rf"{prefix}{THERE}")
    said = b.run("receive", f"{prefix}{THERE}", "--timeout", "20000", "--format", "json")
    message = json.loads(said.stdout)
    assert (message["body"], message["response_queue"]) == (prefix, THERE)
    assert json.loads(b.run("queue", "show", prefix + THERE, "--json").stdout)["messages"] == 0
    until(lambda: json.loads(a.run("trace", prefix + THERE, "--json").stdout)["messages"] == 0)


def test_a_list_of_format_names_has_the_prefix_once_or_before_each(
    a: PrivateQueueManager, b: PrivateQueueManager
) -> None:
    a.run("queue", "create", "copies")
    a.run("send", rf"FormatName:{THERE},DIRECT=OS:a\private$\copies", "--body", "1")
    a.run("send", rf"FormatName:{THERE},FormatName:DIRECT=OS:a\private$\copies", "--body", "2")
    assert [received(b, QUEUE) for _ in range(2)] == ["1", "2"]
    assert [received(a, "copies") for _ in range(2)] == ["1", "2"]


def test_the_client_understands_the_prefix(a: PrivateQueueManager, b: PrivateQueueManager) -> None:
    with mq.open(f"FormatName:{THERE}", b.target) as queue:
        queue.send("by the client")
        message = queue.receive_one(20)
    assert message is not None
    assert message.value == "by the client"


def test_a_name_of_every_alphabet_is_one_name_in_every_case_and_after_a_restart(
    a: PrivateQueueManager, b: PrivateQueueManager
) -> None:
    assert "MQ_ERROR_QUEUE_EXISTS" in refusal(b, "queue", "create", SHOUTED)
    a.run("send", rf"b\private$\{SHOUTED}", "--body", "first")
    a.run("send", THERE, "--body", "second")
    assert received(b, SHOUTED) == "first"
    assert json.loads(b.run("peek", QUEUE, "--timeout", "20000", "--format", "json").stdout)
    b.run("move", SHOUTED, f"{QUEUE};Später dran", "--all")
    b.restart()
    shown = json.loads(b.run("queue", "show", SHOUTED, "--json").stdout)
    assert (shown["path_name"], shown["subqueues"]) == (rf"b\private$\{QUEUE}", ["Später dran"])
    assert received(b, f"{SHOUTED};SPÄTER DRAN") == "second"
    (listed,) = json.loads(a.run("queue", "list", "--outgoing", "--json").stdout)
    assert listed["format_name"].casefold() == THERE.casefold()


def test_captures_find_such_a_name_in_every_case(a: PrivateQueueManager, capture: Path) -> None:
    a.run("send", THERE, "--body", "recorded")
    for wanted in (SHOUTED, rf"FormatName:DIRECT=OS:B\PRIVATE$\{SHOUTED}"):
        said = a.run("capture", "show", str(capture), "--queue", wanted).stdout
        assert QUEUE in said or SHOUTED in said


def test_names_that_end_with_a_dollar_sign_are_the_systems(b: PrivateQueueManager) -> None:
    error = refusal(b, "queue", "create", "mine$")
    assert "MQ_ERROR_ILLEGAL_QUEUE_PATHNAME" in error
    assert "no `$` at its end" in error


@pytest.mark.parametrize(
    "words",
    [
        ("peek", "{}"),
        ("receive", "{}", "--timeout", "0"),
        ("queue", "show", "{}"),
        ("queue", "set", "{}", "--label", "x"),
        ("queue", "acl", "show", "{}"),
        ("move", "{}", "{};late", "--all"),
        ("dead-letter", "list", "--queue", "{}"),
    ],
    ids=" ".join,
)
def test_a_command_says_on_which_computer_a_queue_is(
    a: PrivateQueueManager, words: tuple[str, ...]
) -> None:
    error = refusal(a, *(word.format(r"c\private$\orders") for word in words))
    assert error.endswith(": the queue is on c (MQ_ERROR_QUEUE_NOT_FOUND); use `--server c`.\n")


def test_a_queue_is_created_on_its_own_computer(a: PrivateQueueManager) -> None:
    error = refusal(a, "queue", "create", r"c\private$\orders")
    assert "the queue would be on c" in error
    assert "use `--server c`" in error


@pytest.mark.parametrize("computer", [".", "a", "A", "localhost", "127.0.0.1"])
def test_a_queue_that_is_missing_here_is_not_looked_for_elsewhere(
    a: PrivateQueueManager, computer: str
) -> None:
    error = refusal(a, "peek", rf"{computer}\private$\missing")
    assert "there is no such queue" in error
    assert "--server" not in error
