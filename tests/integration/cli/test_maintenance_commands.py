"""`rpcqm backup`, `rpcqm restore` and `rpcqm compact`."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rpcqm.testing import PrivateQueueManager, private_queue_manager

Command = Callable[..., Any]
CONFIGURATION = "[storage]\nreserve = 1\n"


def bodies(queue_manager: PrivateQueueManager, queue: str) -> list[str]:
    listed = queue_manager.run("peek", queue, "--all", "--format", "body").stdout
    return listed.split()


def test_a_queue_manager_comes_back_from_its_backup(tmp_path: Path) -> None:
    with private_queue_manager(configuration=CONFIGURATION) as first:
        first.run("queue", "create", "orders", "--label", "from the backup")
        first.run("user", "add", "alice", "--password-stdin", input="secret\n")
        for body in ("one ", "two "):
            first.run("send", "orders", "--body", body)
        made = first.run("backup", str(tmp_path / "copy"))
        assert made.stdout == f"{tmp_path / 'copy'} is a backup.\n"
        first.run("send", "orders", "--body", "three")
        name = first.ready.name
        restored = first.run("restore", str(tmp_path / "copy"), "--data-dir", str(tmp_path / "new"))
        assert re.match(rf"\S+ is {name} as of \S+, with about 2 messages.", restored.stdout)
        first.run("fsck", str(tmp_path / "new"))
        identifier = first.ready.id
    with private_queue_manager(configuration=CONFIGURATION, data_dir=tmp_path / "new") as second:
        assert second.ready.id == identifier
        assert bodies(second, "orders") == ["one", "two"]
        assert "alice" in second.run("user", "list").stdout
        assert "from the backup" in second.run("queue", "show", "orders").stdout


def test_a_relative_directory_is_that_of_the_command(
    run: Command, monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    run("backup", "copy")
    assert (tmp_path / "copy" / "messages").is_dir()


def test_a_directory_with_something_in_it_is_refused(refused: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    assert "is not empty" in refused("backup", str(tmp_path)).errors


def test_a_data_directory_that_is_in_use_is_not_restored_to(
    run: Command, refused: Command, queue_manager: PrivateQueueManager, tmp_path: Path
) -> None:
    run("backup", str(tmp_path / "copy"))
    outcome = refused("restore", str(tmp_path / "copy"))
    assert f"{queue_manager.data_dir} is not empty" in outcome.errors


def test_what_is_no_backup_is_refused(refused: Command, tmp_path: Path) -> None:
    outcome = refused("restore", str(tmp_path), "--data-dir", str(tmp_path / "new"))
    assert "no whole backup" in outcome.errors


def test_compaction_says_what_it_has_given_back(run: Command, queue: str, tmp_path: Path) -> None:
    body = tmp_path / "body"
    body.write_bytes(random.Random(1).randbytes(1 << 20))
    run("send", queue, "--file", str(body), "--count", "3")
    run("compact")
    run("purge", queue)
    assert re.match(r"The messages took .+ of disk space, and take .+\.", run("compact").text)
    later = [run("compact").text for _ in range(4)]
    assert any(re.match(r"There was nothing to give back; .+ take .+\.", text) for text in later)


def test_a_backup_needs_a_running_queue_manager(attempt: Command, tmp_path: Path) -> None:
    outcome = attempt("backup", str(tmp_path / "copy"), "--data-dir", str(tmp_path))
    assert outcome.status == 3
