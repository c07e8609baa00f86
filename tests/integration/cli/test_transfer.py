"""`rpcqm queue export` and `rpcqm queue import`."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rpcqm.client.connection import Connections
from rpcqm.testing import PrivateQueueManager

Command = Callable[..., Any]


def peeked(run: Command, queue: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("peek", queue, "--all", "--format", "json").lines]


def test_messages_come_back_as_they_were(
    run: Command, queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export does without a call for each message."""
    asked: list[str] = []
    call = Connections.call

    def counted(self: Connections, request: Any, *more: Any) -> Any:
        asked.append(request.operation.name)
        return call(self, request, *more)

    file = tmp_path / "orders.mq"
    run("send", queue, "--body", "two äpples", "--label", "fruit", "--priority", "5")
    run("send", queue, "--body", "x" * 100_000, "--express", "--count", "40")
    before = peeked(run, queue)
    with monkeypatch.context() as watched:
        watched.setattr(Connections, "call", counted)
        assert run("queue", "export", queue, str(file)).text == "Exported 41 messages.\n"
    assert {each for each in asked if "Bulk" not in each} == set()
    assert len(asked) < 20
    assert peeked(run, queue) == before
    other = f"{queue}-again"
    run("queue", "create", other)
    assert run("queue", "import", other, str(file)).text == "Imported 41 messages.\n"
    changed = ("lookup_id", "arrived")
    after = peeked(run, other)
    for message in (*before, *after):
        for key in changed:
            del message[key]
    assert after == before


def test_pipes_work(
    run: Command, attempt: Command, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("send", queue, "--body", "x", "--count", "3")
    outcome = attempt("queue", "export", queue, "-")
    assert (outcome.status, outcome.errors) == (0, "Exported 3 messages.\n")
    stdin = SimpleNamespace(buffer=io.BytesIO(outcome.output))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert run("queue", "import", queue, "-").text == "Imported 3 messages.\n"
    assert len(peeked(run, queue)) == 6


def test_other_files_are_refused_in_one_sentence(
    run: Command, refused: Command, queue: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"something else that is no export")
    outcome = refused("queue", "import", queue, str(file))
    assert outcome.errors == f"rpcqm: Cannot import {file}: the file holds no exported messages.\n"
    run("send", queue, "--body", "x", "--count", "3")
    run("queue", "export", queue, str(file))
    file.write_bytes(file.read_bytes()[:-50])
    assert "the file ends within message 3" in refused("queue", "import", queue, str(file)).errors
    assert "cannot be read" in refused("queue", "import", queue, str(tmp_path / "none")).errors
    assert "cannot be written" in refused("queue", "export", queue, str(tmp_path / "n/a")).errors


def test_an_export_that_fails_leaves_no_file(
    refused: Command, name: str, tmp_path: Path, queue_manager: PrivateQueueManager
) -> None:
    refused("queue", "export", name, str(tmp_path / "orders.mq"))
    assert list(tmp_path.iterdir()) == []


def test_in_a_directory_the_file_is_named_after_the_queue(run: Command, tmp_path: Path) -> None:
    queue = "Größe/5 100%"
    run("queue", "create", queue)
    run("send", queue, "--body", "x")
    file = tmp_path / "Gr%C3%B6%C3%9Fe%2F5%20100%25.mq"
    assert run("queue", "export", queue, str(tmp_path)).text == f"Exported 1 message to {file}.\n"
    assert [each.name for each in tmp_path.iterdir()] == [file.name]
    assert run("queue", "import", queue, str(file)).text == "Imported 1 message.\n"
    run("queue", "export", "DeadLetter$", str(tmp_path))
    assert (tmp_path / "DeadLetter$.mq").is_file()
