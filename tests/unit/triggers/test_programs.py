"""Programs for messages: whatever they do, there is one sentence, and nothing of them stays."""

import asyncio
import os
import select
import signal
import sys
from pathlib import Path

import pytest

from rpcqm.triggers.outcome import Outcome, Result
from rpcqm.triggers.programs import KEPT_OUTPUT, Order, run_program

LONG = 30.0


def run(*words: str, body: bytes = b"", seconds: float = LONG) -> Outcome:
    environment = {"PATH": "/usr/bin:/bin"}
    return asyncio.run(run_program(Order(words, body, seconds, environment)))


def python(text: str, body: bytes = b"", seconds: float = LONG) -> Outcome:
    return run(sys.executable, "-c", text, body=body, seconds=seconds)


def test_a_program_gets_the_body_and_says_what_it_says() -> None:
    outcome = run("/bin/cat", body=b"forty-two\n")
    assert outcome == Outcome(Result.DONE, "/bin/cat went well: forty-two")


def test_a_program_that_does_not_read_its_input_is_no_failure() -> None:
    assert run("/bin/true", body=bytes(1 << 20)).result is Result.DONE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise SystemExit(3)", "ended with exit status 3"),
        ("import os; os.kill(os.getpid(), 11)", "was ended by SIGSEGV"),
    ],
)
def test_another_end_is_a_failure(text: str, said: str) -> None:
    outcome = python(text)
    assert outcome.result is Result.FAILED
    assert said in outcome.told


@pytest.mark.parametrize("path", ["/no/such/program", "/etc/hostname/x", "/etc"])
def test_a_program_that_is_not_there_is_trouble_for_all_messages(path: str) -> None:
    outcome = run(path)
    assert outcome.result is Result.TROUBLE
    assert outcome.told.startswith(f"{path} cannot be run: ")
    assert "\n" not in outcome.told


def test_a_file_that_is_no_program_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\x7fnothing")
    path.chmod(0o755)
    assert run(str(path)).result is Result.FAILED


def test_arguments_that_are_too_long_are_a_failure() -> None:
    assert run("/bin/true", *["x" * 100_000] * 40).result is Result.FAILED


def test_a_program_that_hangs_is_ended_with_all_that_it_has_begun(tmp_path: Path) -> None:
    path = tmp_path / "child"
    text = f"""
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if (pid := os.fork()):
    pathlib.Path({str(path)!r}).write_text(str(pid))
time.sleep(1000)
"""
    outcome = python(text, seconds=2.0)
    assert outcome.result is Result.FAILED
    assert "was ended after 2 s" in outcome.told
    assert has_ended(int(path.read_text()))


def test_what_a_program_leaves_behind_is_ended_with_it(tmp_path: Path) -> None:
    path = tmp_path / "child"
    text = f"""
import os, pathlib, time
if (pid := os.fork()):
    pathlib.Path({str(path)!r}).write_text(str(pid))
else:
    time.sleep(1000)
"""
    assert python(text).result is Result.DONE
    assert has_ended(int(path.read_text()))


def test_an_output_that_somebody_else_holds_open_is_not_waited_for(tmp_path: Path) -> None:
    """A child that has left the group keeps the pipe open."""
    path = tmp_path / "child"
    text = f"""
import os, pathlib, time
if (pid := os.fork()):
    pathlib.Path({str(path)!r}).write_text(str(pid))
else:
    os.setsid()
    time.sleep(1000)
"""
    try:
        assert python(text).result is Result.DONE
    finally:
        os.kill(int(path.read_text()), 9)


@pytest.mark.bound("triggers.kept_output")
def test_an_endless_output_is_cut_and_ended() -> None:
    outcome = run("/usr/bin/yes", seconds=0.5)
    assert outcome.result is Result.FAILED
    assert KEPT_OUTPUT <= len(outcome.told) < 2 * KEPT_OUTPUT + 100


def test_what_a_program_prints_moves_no_cursor() -> None:
    assert python("print('\\x1b[2J\\u202eabc')").told.endswith(r": \x1b[2J\u202eabc")


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or about to be."""
    try:
        file = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([file], [], [], 5.0)[0])
    finally:
        os.close(file)


def test_a_program_that_may_not_be_ended_holds_up_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that has become another user's, by its file's mode, cannot be sent a signal."""
    end, served = os.killpg, list[bool]()

    def serve(group: int) -> None:
        try:
            end(group, signal.SIGKILL)
        except ProcessLookupError:
            served.append(False)  # the loop has waited for it
        else:
            served.append(True)

    def refuse(group: int, number: int) -> None:
        asyncio.get_running_loop().call_soon(serve, group)
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "killpg", refuse)
    outcome = run("/bin/sleep", "3", seconds=0.01)
    assert (outcome.result, served) == (Result.FAILED, [True])
