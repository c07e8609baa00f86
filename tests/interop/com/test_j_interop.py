"""j-interop, a Java implementation of DCOM, uses the COM objects by name and by opnum."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rpcqm.base.hresult import HResult
from tests.support.accounts import PASSWORD
from tests.support.network.namespace import Namespace
from tests.support.served import ServedQueueManager
from tests.support.waiting import PATIENCE

PROGRAMS = ("java", "javac")
CONFIGURATION = 'name = "mailhost"\n[dcom]\nenabled = true\nminimum_level = "connect"\n'
"""j-interop activates at level CONNECT; its calls are sealed."""

PLACE = Path(__file__).parent / "java"
JARS = PLACE / "lib"

INFO = ("PathName", "PathNameDNS", "FormatName", "Label", "QueueGuid", "ServiceTypeGuid",
        "IsTransactional", "IsTransactional2", "PrivLevel", "Journal", "Quota", "BasePriority",
        "Authenticate", "JournalQuota", "IsWorldReadable", "IsWorldReadable2", "CreateTime",
        "ModifyTime", "MulticastAddress", "ADsPath")  # fmt: skip
QUEUE = ("Access", "ShareMode", "IsOpen", "IsOpen2", "Handle", "Handle2")
MESSAGE = ("Class", "PrivLevel", "AuthLevel", "IsAuthenticated", "Delivery", "Trace", "Priority",
           "Journal", "AppSpecific", "SourceMachineGuid", "BodyLength", "Body", "Id",
           "CorrelationId", "Ack", "Label", "MaxTimeToReachQueue", "MaxTimeToReceive",
           "HashAlgorithm", "EncryptAlgorithm", "SentTime", "ArrivedTime", "SenderId",
           "SenderIdType", "SenderVersion", "LookupId")  # fmt: skip


@pytest.fixture(scope="module")
def java(require: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs the client, compiled."""
    require(*PROGRAMS)
    if not JARS.exists():
        pytest.skip("j-interop is not installed (scripts/install-peers, with Maven)")
    classes = tmp_path_factory.mktemp("classes")
    path = f"{JARS}/*"
    javac = shutil.which("javac")
    assert javac is not None
    subprocess.run(
        [javac, "-nowarn", "-cp", path, "-d", str(classes), str(PLACE / "Com.java")],
        check=True,
        capture_output=True,
    )
    return ["java", "-cp", f"{path}:{classes}", "Com", "127.0.0.1", "MAILHOST", "alice"]


Run = Callable[..., dict[str, str]]


def shown(printed: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in printed.splitlines())


@pytest.fixture
def run(java: list[str], namespace: Namespace, server: ServedQueueManager) -> Run:
    """What a scenario of the client prints."""

    def run(scenario: str, *arguments: str) -> dict[str, str]:
        done = namespace.run([*java, scenario, *arguments], input=PASSWORD)
        assert done.returncode == 0, done.stdout + done.stderr + server.log
        return shown(done.stdout)

    return run


def test_java_creates_a_queue_and_sends_and_receives_by_names(
    run: Run, server: ServedQueueManager
) -> None:
    got = run("late", r".\private$\late")
    assert (got["peeked"], got["label"], got["body"]) == ("late", "late", "by its name")
    assert (got["id"], got["sent"]) == ("array of 20", "array of 20")
    assert (got["open"], got["closed"]) == ("1", "0")
    assert "made by Java" in server.command("queue", "show", "late")


def test_java_creates_a_queue_and_sends_and_receives_by_opnums(
    run: Run, server: ServedQueueManager
) -> None:
    got = run("early", r".\private$\early")
    assert got == {
        "format": r"DIRECT=OS:mailhost\private$\early",
        "label": "early",
        "body": "by its number",
    }
    assert "made by Java" in server.command("queue", "show", "early")


def test_java_reads_every_property_of_a_queue_and_of_a_message(
    run: Run, server: ServedQueueManager
) -> None:
    server.command("queue", "create", "seen", "--label", "from the command line")
    server.command("queue", "acl", "grant", "seen", "alice", "full")
    sent = server.command("send", "seen", "--label", "first", "--body", "text", "--priority", "5")
    names = [
        *(f"info.{name}" for name in INFO),
        *(f"queue.{name}" for name in QUEUE),
        *(f"message.{name}" for name in MESSAGE),
    ]
    got = run("properties", r".\private$\seen", *names)
    assert list(got) == names
    assert got["info.Label"] == "from the command line"
    assert got["info.IsTransactional"] == "0"
    assert got["queue.IsOpen"] == "1"
    assert (got["message.Label"], got["message.Priority"]) == ("first", "5")
    assert got["message.BodyLength"] == "8"
    assert got["message.SourceMachineGuid"].lower() in sent.lower()
    failed = {name for name, value in got.items() if value.startswith("error ")}
    assert failed <= {"info.ADsPath", "info.MulticastAddress", "info.PathNameDNS", "queue.Handle"}


def test_java_sends_and_receives_in_transactions(run: Run) -> None:
    assert run("transactions", r".\private$\certain") == {"received": "Commit", "again": "Commit"}


@contextmanager
def listening(java: list[str], namespace: Namespace) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        namespace.argv([*java, "event", r".\private$\watched"]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdin is not None
        process.stdin.write(PASSWORD)
        process.stdin.close()
        process.stdin = None
        yield process
    finally:
        process.kill()
        process.wait()


def test_java_hears_of_a_message_that_arrives(
    java: list[str], namespace: Namespace, server: ServedQueueManager
) -> None:
    server.command("queue", "create", "watched")
    with listening(java, namespace) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "waiting=true\n"
        server.command("send", "watched", "--body", "news")
        assert shown(client.communicate(timeout=PATIENCE)[0]) == {"heard": "Arrived 0"}


def test_java_learns_what_an_object_can_do(run: Run) -> None:
    got = run("types")
    assert (got["count"], got["name"], got["dispid"]) == ("1", "IMSMQQueueInfo4", "true")
    assert int(got["functions"]) >= 39


def test_java_is_told_what_is_wrong(run: Run) -> None:
    assert run("fault") == {"error": f"{HResult.MQ_ERROR_QUEUE_NOT_FOUND:08x}"}
