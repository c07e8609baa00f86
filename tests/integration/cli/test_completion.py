"""Tab in bash, with the script that `rpcqm completion bash` prints."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rpcqm.testing import PrivateQueueManager

Command = Callable[..., Any]

PRESS_TAB = """
rpcqm() { "$PYTHON" -m rpcqm "$@"; }
eval "$(rpcqm completion bash)"
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
_python_argcomplete rpcqm
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(data_dir: Path, line: str) -> list[str]:
    """What bash offers at the end of a line."""
    environment = os.environ | {"RPCQM_DATA_DIR": str(data_dir), "PYTHON": sys.executable}
    command = ["bash", "-c", PRESS_TAB, "bash", line]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [word.strip() for word in done.stdout.splitlines()]


def test_tab_offers_queues_and_subqueues(
    run: Command, queue: str, queue_manager: PrivateQueueManager
) -> None:
    run("send", queue, "--body", "x")
    run("move", queue, f"{queue};late")
    told = offered(queue_manager.data_dir, f"rpcqm receive {queue}")
    assert told == [queue, rf"{queue}\;late"]
    assert offered(queue_manager.data_dir, f"rpcqm peek '{queue};") == [f"{queue};late"]
    assert queue in offered(queue_manager.data_dir, f"rpcqm move other {queue}")
    assert r"DeadLetter\$" in offered(queue_manager.data_dir, "rpcqm purge De")


def test_tab_offers_accounts_and_groups(queue_manager: PrivateQueueManager, queue: str) -> None:
    queue_manager.run("user", "add", "annabel", "--password-stdin", input="secret")
    assert offered(queue_manager.data_dir, "rpcqm user remove ann") == ["annabel"]
    told = offered(queue_manager.data_dir, f"rpcqm queue acl grant {queue} an")
    assert told == ["annabel", "anonymous"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rpcqm rec", ["receive"]),
        ("rpcqm queue cr", ["create"]),
        ("rpcqm queue set orders --priv", ["--privacy"]),
        ("rpcqm queue set orders --privacy o", ["optional"]),
        ("rpcqm completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_tab_offers_commands_options_and_values_without_a_queue_manager(
    tmp_path: Path, line: str, expected: list[str]
) -> None:
    assert [word for word in offered(tmp_path, line) if word not in ("-h", "--help")] == expected


def test_tab_offers_nothing_where_no_queue_manager_runs(tmp_path: Path) -> None:
    assert offered(tmp_path, "rpcqm receive orders") in ([], [""])


@pytest.mark.parametrize(
    ("shell", "sign"), [("zsh", "compdef"), ("fish", "complete --command rpcqm")]
)
def test_other_shells_have_a_script_too(run: Command, shell: str, sign: str) -> None:
    assert sign in run("completion", shell).text
