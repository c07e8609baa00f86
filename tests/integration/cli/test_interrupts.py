"""Ctrl-C ends a command whenever it comes, and takes no message."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager
from tests.support.cli.forked_commands import started_from_nothing

Command = Callable[..., Any]

SOON = 20
"""Seconds: a command that an interrupt has reached ends within them, on a busy machine as well."""
QUIETLY = (130, b"", b"")
EVEN_BEFORE_PYTHON_HAS_STARTED = (-signal.SIGINT, b"", b"")
WHILE_PYTHON_STARTS = (1, -signal.SIGINT)
"""With Python's own traceback: while it looks for its site, and while it looks for our module."""
SWALLOWED = b"Exception ignored in: "
"""Python ignores what is raised in its callbacks: somebody presses Ctrl-C again."""
PROGRAM = """
import os, signal, sys, weakref

class Something: pass

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            something = Something()
            reference = weakref.ref(something, lambda _: os.kill(os.getpid(), signal.SIGINT))
            del something

sys.meta_path.insert(0, Finder())
from rpcqm.__main__ import run
sys.exit(run())
"""
"""A command that is interrupted while a module is looked for, where Python ignores exceptions."""


def receiving(queue_manager: PrivateQueueManager, queue: str) -> list[str]:
    data = str(queue_manager.data_dir)
    return ["receive", queue, "--format", "body", "--timeout", "infinite", "--data-dir", data]


def outcome(process: "subprocess.Popen[bytes]") -> tuple[int, bytes, bytes]:
    try:
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, output, errors


def outcome_of_an_early_interrupt(process: "subprocess.Popen[bytes]") -> tuple[int, bytes, bytes]:
    """Of one interrupt; where Python itself swallowed it, of one more."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(SOON)
    process.send_signal(signal.SIGINT)
    return outcome(process)


def python(*words: str) -> "subprocess.Popen[bytes]":
    with started_from_nothing():
        return subprocess.Popen(
            [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )


@pytest.mark.parametrize(
    "module",
    [
        "rpcqm.cli.main",
        "rpcqm.cli.parser",
        "rpcqm.cli.receive",
        "rpcqm.client.queue_manager",
        "rpcqm.client.remote_read",
        "rpcqm.cli.messages",
    ],
)
def test_no_interrupt_is_lost_while_a_command_is_loaded(
    queue_manager: PrivateQueueManager, queue: str, module: str
) -> None:
    words = receiving(queue_manager, queue)
    assert outcome(python("-c", PROGRAM.format(module=module), *words)) == QUIETLY


def test_an_early_interrupt_ends_the_command_and_takes_nothing(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    """After 0, 10, 20 … 400 ms: what comes before the first line of ours is up to Python."""
    words = receiving(queue_manager, queue)
    ended = []
    for milliseconds in range(0, 410, 10):
        process = python("-m", "rpcqm", *words)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(milliseconds / 1000)
        process.send_signal(signal.SIGINT)
        ended.append(outcome_of_an_early_interrupt(process))
    for status, output, errors in ended:
        if errors.startswith(SWALLOWED):
            assert (status, output) == (QUIETLY[0], b"")
            assert b"/rpcqm/" not in errors
        elif b"KeyboardInterrupt" in errors:
            assert (status in WHILE_PYTHON_STARTS, output) == (True, b"")
            assert b"/rpcqm/cli/main.py" not in errors
        else:
            assert (status, output, errors) in (QUIETLY, EVEN_BEFORE_PYTHON_HAS_STARTED)
    run("send", queue, "--body", "for somebody else")
    assert run("receive", queue, "--format", "body").output == b"for somebody else"


def test_an_interrupted_move_over_the_network_says_how_many_messages_it_has_moved(
    run: Command, queue: str, queue_manager: PrivateQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There each is a commit of its own; here tests/unit/cli/test_message_orders.py has groups."""
    run("send", queue, "--body", "x", "--count", "3000")
    added = ("user", "add", "mover", "--group", "administrators", "--password-stdin")
    queue_manager.run(*added, input="secret\n")
    monkeypatch.setenv("RPCQM_PASSWORD", "secret")
    host, port = queue_manager.endpoint("epm")
    there = ("--server", f"{host}:{port}", "--user", "mover")
    process = python("-m", "rpcqm", "move", queue, f"{queue};late", "--all", *there)
    while moved(run, queue) == 0:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    status, output, errors = outcome(process)
    assert (status, output) == (130, b"")
    count = moved(run, queue)
    assert errors.decode() == f"Interrupted; moved {count:,} message{'s' * (count != 1)}.\n"
    assert 0 < count < 3000


def moved(run: Command, queue: str) -> int:
    return 3000 - int(json.loads(run("queue", "show", queue, "--json").output)["messages"])
