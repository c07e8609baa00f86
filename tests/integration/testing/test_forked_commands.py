"""A command that is forked does what one does that is started from nothing."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager
from tests.support.cli.forked_commands import started_from_nothing

RPCQM = (sys.executable, "-m", "rpcqm")
WAYS = (contextlib.nullcontext, started_from_nothing)


def outcomes(words: Sequence[str], **settings: Any) -> list[tuple[int, bytes, bytes]]:
    made = []
    for way in WAYS:
        with way():
            done = subprocess.run([*RPCQM, *words], capture_output=True, check=False, **settings)
        made.append((done.returncode, done.stdout, done.stderr))
    return made


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (["--version"], {}),
        (["explain", "0xC00E0025"], {}),
        (["explain", "nothing"], {}),
        (["--help"], {"env": os.environ | {"COLUMNS": "60"}}),
        (["queue", "list"], {"env": os.environ | {"RPCQM_DATA_DIR": "/nowhere"}}),
        (["config", "check", "here.toml"], {"input": b""}),
    ],
)
def test_it_says_the_same(words: list[str], settings: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "here.toml").write_text("unknown = 1\n")
    forked, started = outcomes(words, cwd=tmp_path, **settings)
    assert forked == started
    assert any(forked[1:])


def test_it_makes_files_as_its_umask_says(tmp_path: Path) -> None:
    modes = []
    for way in WAYS:
        made = tmp_path / way.__name__
        with way():
            words = [*RPCQM, "capture", "dissector", "--output", str(made)]
            subprocess.run(words, check=True, umask=0o007)
        modes.append(made.stat().st_mode & 0o777)
    assert modes == [0o660, 0o660]


def command_line(process: "subprocess.Popen[Any]") -> str:
    return Path(f"/proc/{process.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def test_it_is_a_child_that_is_signalled_and_waited_for(tmp_path: Path) -> None:
    lines = []
    for way in WAYS:
        queue_manager = PrivateQueueManager(tmp_path / "data")
        with way():
            process = queue_manager.start().process
        assert process is not None
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert f"PPid:\t{os.getpid()}\n" in status
        lines.append(command_line(process))
        assert queue_manager.kill() == -signal.SIGKILL
    assert ["forked_commands" in line for line in lines] == [True, False]


def test_one_with_pythons_own_environment_is_started_from_nothing(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('from nothing', flush=True)\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*RPCQM, "--version"], env=environment, capture_output=True, check=True)
    assert done.stdout.startswith(b"from nothing\n")
