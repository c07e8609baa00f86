"""`rpcqm send` with the body on standard input, as a shell would call it."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager

Command = Callable[..., Any]

BODIES = {
    "every octet": bytes(range(256)) * 3,
    "nothing": b"",
    "lines of Windows": b"one\r\ntwo\r\n\x1a",
    "no UTF-8": b"\xff\xfe\xc3",
    "more than a pipe holds": os.urandom(300_000),
}
FORMS = (("-",), ("--file", "-"))
ANY_FORM = ((), *FORMS)


def sent(
    queue_manager: PrivateQueueManager, *words: str, **how: Any
) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "rpcqm", "send", *words]
    command += ["--data-dir", str(queue_manager.data_dir)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False, **how)


@pytest.mark.parametrize("form", ANY_FORM, ids=" ".join)
@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_the_body_is_what_comes_until_the_end(
    run: Command, queue: str, queue_manager: PrivateQueueManager, form: tuple[str, ...], body: bytes
) -> None:
    outcome = sent(queue_manager, queue, *form, input=body)
    assert (outcome.returncode, outcome.stderr) == (0, b"")
    assert run("receive", queue, "--format", "body").output == body


def test_a_file_with_that_name_is_named_with_its_directory(
    run: Command, queue: str, queue_manager: PrivateQueueManager, tmp_path: Path
) -> None:
    (tmp_path / "-").write_bytes(b"of the file")
    outcome = sent(queue_manager, queue, "--file", "./-", input=b"of the pipe", cwd=tmp_path)
    assert outcome.returncode == 0
    assert run("receive", queue, "--format", "body").output == b"of the file"


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_standard_input_that_is_closed_is_told(
    queue: str, queue_manager: PrivateQueueManager, form: tuple[str, ...]
) -> None:
    outcome = sent(queue_manager, queue, *form, preexec_fn=lambda: os.close(0))
    assert outcome.returncode == 1
    assert outcome.stderr == b"rpcqm: Standard input cannot be read: it is closed.\n"


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_the_password_and_the_body_do_not_both_come_by_it(
    queue: str, queue_manager: PrivateQueueManager, form: tuple[str, ...]
) -> None:
    words = ("--server", "127.0.0.1", "--user", "alice", "--password-stdin")
    command = [sys.executable, "-m", "rpcqm", "send", queue, *form, *words]
    outcome = subprocess.run(command, capture_output=True, timeout=60, check=False, input=b"x")
    assert outcome.returncode == 2
    assert b"Standard input cannot hold the password and the body" in outcome.stderr


def body(run: Command, queue: str) -> bytes:
    found = run("receive", queue, "--format", "body").output
    assert isinstance(found, bytes)
    return found


def test_a_redirected_file_is_read_like_a_pipe(
    run: Command, queue: str, queue_manager: PrivateQueueManager, tmp_path: Path
) -> None:
    (tmp_path / "order").write_bytes(b"of the file")
    with (tmp_path / "order").open("rb") as file:
        assert sent(queue_manager, queue, "--count", "2", stdin=file).returncode == 0
    assert [body(run, queue), body(run, queue)] == [b"of the file"] * 2


def test_a_pipe_is_left_alone_where_the_body_is_given(
    run: Command, queue: str, queue_manager: PrivateQueueManager, tmp_path: Path
) -> None:
    (tmp_path / "order").write_bytes(b"of the file")
    for given in (("--body", ""), ("--body", "text"), ("--file", str(tmp_path / "order"))):
        reading, writing = os.pipe()
        try:  # nobody writes, and nothing ends: a reader would wait for ever
            outcome = sent(queue_manager, queue, *given, stdin=reading)
        finally:
            os.close(reading)
            os.close(writing)
        assert (outcome.returncode, outcome.stderr) == (0, b"")
    assert [body(run, queue) for _ in range(3)] == [b"", b"text", b"of the file"]


@pytest.mark.parametrize(
    "how", [{"stdin": subprocess.DEVNULL}, {"preexec_fn": lambda: os.close(0)}]
)
def test_where_nothing_can_be_read_the_message_has_no_body(
    run: Command, queue: str, queue_manager: PrivateQueueManager, how: dict[str, Any]
) -> None:
    outcome = sent(queue_manager, queue, "--label", "ping", **how)
    assert (outcome.returncode, outcome.stderr) == (0, b"")
    assert body(run, queue) == b""


def test_a_terminal_is_not_read_and_told(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    master, terminal = pty.openpty()
    try:
        outcome = sent(queue_manager, queue, stdin=terminal)
        quiet = sent(queue_manager, queue, "--body", "", stdin=terminal)
    finally:
        os.close(terminal)
        os.close(master)
    assert outcome.returncode == 0
    assert outcome.stderr.startswith(b"rpcqm: The message is sent without a body; --body TEXT")
    assert (quiet.returncode, quiet.stderr) == (0, b"")
    assert [body(run, queue), body(run, queue)] == [b"", b""]
