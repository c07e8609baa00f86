"""What becomes of copied and moved data directories; `rpcqm identity` (G490, G491)."""

import json
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rpcqm.store.directory_mark import MARK_NAME
from rpcqm.testing import PrivateQueueManager
from rpcqm.testing.private import StartFailedError
from tests.integration.cli.test_older_data import OLDER

ELSEWHERE = "DIRECT=OS:other\\private$\\orders"
CONFIGURATION = '[binary]\npeers = "other=127.0.0.1:1"\n'


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def original(tmp_path: Path, stack: ExitStack) -> PrivateQueueManager:
    """One with a message, and one that waits for another queue manager; it runs."""
    made = machine(tmp_path / "original", stack).start()
    made.run("queue", "create", "orders")
    made.run("send", "orders", "--body", "apples")
    made.run("send", ELSEWHERE, "--body", "pears")
    return made


@pytest.fixture
def copy(original: PrivateQueueManager, tmp_path: Path, stack: ExitStack) -> PrivateQueueManager:
    """A copy of it, as `cp -a` makes it; nothing runs on it, and the original does again."""
    original.stop()
    shutil.copytree(original.data_dir, tmp_path / "copy")
    original.start()
    return machine(tmp_path / "copy", stack)


def machine(data_dir: Path, stack: ExitStack) -> PrivateQueueManager:
    made = PrivateQueueManager(data_dir, configuration=CONFIGURATION)
    stack.callback(made.stop)
    return made


def refusal(copied: PrivateQueueManager) -> str:
    """The sentence with which it does not start."""
    with pytest.raises(StartFailedError) as refused:
        copied.start()
    text = str(refused.value)
    assert text.startswith("exit status 1: ")
    assert "Traceback" not in text
    return text.splitlines()[-1].rpartition("rpcqm: ")[2]


def identity(running: PrivateQueueManager) -> str:
    return str(json.loads(running.ready_path.read_text())["id"])


def bodies(running: PrivateQueueManager, queue: str) -> list[str]:
    printed = running.run("peek", queue, "--all", "--json").stdout
    return [str(json.loads(line)["body"]) for line in printed.splitlines()]


def states(running: PrivateQueueManager) -> list[str]:
    """The states of queues to other queue managers."""
    printed = running.run("queue", "list", "--outgoing", "--json").stdout
    return [str(queue["state"]) for queue in json.loads(printed)]


def test_a_copy_does_not_start_until_somebody_has_said_what_it_is(
    original: PrivateQueueManager, copy: PrivateQueueManager
) -> None:
    said = refusal(copy)
    assert f"The data directory {copy.data_dir} was copied" in said
    for order in ("moved", "restored", "new"):
        assert order in said
    assert refusal(copy) == said
    doctor = copy.run("doctor", check=False)
    assert doctor.returncode == 1
    assert f"{copy.data_dir} was copied" in doctor.stdout
    owner = identity(original)
    original.stop()
    copy.run("identity", "moved")
    assert identity(copy.start()) == owner
    assert bodies(copy, "orders") == ["apples"]
    assert identity(copy.restart()) == owner
    copy.stop()
    assert identity(original.start()) == owner


def test_a_volume_that_moves_as_a_whole_starts_without_a_question(
    original: PrivateQueueManager, tmp_path: Path, stack: ExitStack
) -> None:
    owner = identity(original)
    original.stop()
    original.data_dir.rename(tmp_path / "elsewhere")
    moved = machine(tmp_path / "elsewhere", stack)
    for _ in range(2):
        assert identity(moved.start()) == owner
        assert bodies(moved, "orders") == ["apples"]
        doctor = json.loads(moved.run("doctor", "--json", check=False).stdout)
        levels = [each["level"] for each in doctor if each["subject"] == "identity"]
        assert levels == ["ok"]
        moved.kill()


def test_a_copy_becomes_another_queue_manager_beside_the_original(
    original: PrivateQueueManager, copy: PrivateQueueManager
) -> None:
    said = copy.run("identity", "new").stdout
    assert said == (
        f"{copy.data_dir} becomes another queue manager at its next start, and what waits for "
        "others is paused.\n"
    )
    owner = identity(copy.start())
    assert owner != identity(original)
    assert "the queue manager has another identity" in copy.log
    assert states(copy) == ["ONHOLD"]
    assert states(original) != ["ONHOLD"]
    sent = copy.run("send", "orders", "--body", "plums").stdout
    assert sent.startswith(f"{{{owner}}}\\")
    copy.run("network", "resume", ELSEWHERE)
    assert identity(copy.restart()) == owner
    assert states(copy) != ["ONHOLD"]
    assert bodies(copy, "orders") == ["apples", "plums"]
    assert copy.log.count("the queue manager has another identity") == 1
    assert bodies(original, "orders") == ["apples"]


def test_an_order_to_become_another_one_survives_a_crash_and_holds_once(
    original: PrivateQueueManager, copy: PrivateQueueManager
) -> None:
    copy.run("identity", "new")
    first = identity(copy.start())
    copy.kill()
    assert identity(copy.start()) == first != identity(original)
    copy.stop()
    copy.run("identity", "new")
    assert identity(copy.start()) not in (first, identity(original))


def test_data_from_an_earlier_time_begin_new_numbers(
    original: PrivateQueueManager, copy: PrivateQueueManager
) -> None:
    sent = original.run("send", "orders", "--body", "later").stdout
    owner = identity(original)
    original.stop()
    copy.run("identity", "restored")
    assert identity(copy.start()) == owner
    assert "restored from a backup: numbers begin anew" in copy.log
    again = copy.run("send", "orders", "--body", "again").stdout
    assert int(again.rpartition("\\")[2]) - int(sent.rpartition("\\")[2]) > 1 << 27


def test_a_restored_backup_and_an_export_ask_nothing(
    original: PrivateQueueManager, tmp_path: Path, stack: ExitStack
) -> None:
    original.run("backup", str(tmp_path / "backup"))
    assert not (tmp_path / "backup" / MARK_NAME).exists()
    original.run("queue", "export", "orders", str(tmp_path / "orders.mq"))
    original.stop()
    restored = machine(tmp_path / "restored", stack)
    restored.run("restore", str(tmp_path / "backup"))
    assert bodies(restored.start(), "orders") == ["apples"]
    restored.run("queue", "import", "orders", str(tmp_path / "orders.mq"))
    assert bodies(restored.restart(), "orders") == ["apples", "apples"]


def test_data_of_a_version_without_marks_is_marked_at_the_first_start(
    tmp_path: Path, stack: ExitStack
) -> None:
    with tarfile.open(OLDER) as archive:
        archive.extractall(tmp_path, filter="data")
    older = machine(tmp_path / "data", stack)
    assert not (older.data_dir / MARK_NAME).exists()
    owner = identity(older.start())
    older.stop()
    assert (older.data_dir / MARK_NAME).stat().st_mode & 0o777 == 0o600
    shutil.copytree(older.data_dir, tmp_path / "copy")
    assert "was copied" in refusal(machine(tmp_path / "copy", stack))
    assert identity(older.start()) == owner


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"file_system": 1, "inode": "x"}', "\0"])
def test_a_damaged_mark_is_one_sentence_and_an_order_mends_it(
    tmp_path: Path, stack: ExitStack, content: str
) -> None:
    damaged = machine(tmp_path / "damaged", stack).start()
    owner = identity(damaged)
    damaged.stop()
    (damaged.data_dir / MARK_NAME).write_text(content)
    said = refusal(damaged)
    assert f"{damaged.data_dir / MARK_NAME} is damaged; say what it is" in said
    assert "is damaged" in damaged.run("doctor", check=False).stdout
    damaged.run("identity", "moved")
    assert identity(damaged.start()) == owner


@pytest.mark.parametrize("order", ["moved", "restored", "new"])
def test_an_order_needs_data_on_which_nothing_runs(
    original: PrivateQueueManager, tmp_path: Path, order: str
) -> None:
    before = (original.data_dir / MARK_NAME).read_bytes()
    refused = original.run("identity", order, check=False)
    assert refused.returncode == 1
    assert "Another process has" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert (original.data_dir / MARK_NAME).read_bytes() == before
    assert not (original.data_dir / "restored").exists()
    nothing = original.run("identity", order, "--data-dir", str(tmp_path / "none"), check=False)
    assert nothing.returncode == 1
    assert nothing.stderr == f"rpcqm: {tmp_path / 'none'} has no data of a queue manager.\n"
