"""What a command loads before it does anything: what it takes to start, without measuring time."""

import json
import os
import subprocess
import sys

import pytest

from rpcqm.cli.main import build_parser, outline
from rpcqm.testing import PrivateQueueManager

_RUN = """\
import gc, json, sys
sys.argv = ["rpcqm", *sys.argv[1:]]
before = gc.get_stats()[0]["collections"]
from rpcqm.__main__ import run
try:
    status = run()
except SystemExit as stop:
    status = stop.code
collections = gc.get_stats()[0]["collections"] - before
told = [status, sorted(sys.modules), collections, gc.get_freeze_count()]
print(json.dumps(told), file=sys.stderr)
"""
OURS = "rpcqm"
OF_ENVIRONMENTS = ("__editable__", "__main__", "_distutils_hack", "sitecustomize")
"""Beginnings of modules that an environment loads, whatever is run in it."""
ROOMS = frozenset(("base", "cli", "client", "codec", "config", "idl", "rpc", "srmp"))
"""What a command is made of; of `srmp` the configuration has one enumeration."""
NOT_AT_ONCE = frozenset(("importlib.metadata", "unittest", "email", "http", "multiprocessing"))
"""Parts of Python that take long to load."""
MOST = 145
"""Modules of ours, of eight hundred."""
FEW = 3
"""Collections: those before the first line of ours. With Python's thresholds there are dozens."""
OF_EXTRAS = frozenset(("numpy", "opentelemetry", "pandas", "pyarrow", "pyspark", "requests"))
"""Packages of the extras for Spark and traces; that for Kerberos is loaded by pyspnego, if it is
there, with what every server needs of that."""
_SERVER = """\
import sys
import rpcqm.cli.serve, rpcqm.fast.install, rpcqm.service.run
import rpcqm.service.queue_manager_service
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""
COMMANDS = ("peek QUEUE", "queue list", "send QUEUE --body x", "status", "user list")


def loaded(queue_manager: PrivateQueueManager, *words: str) -> tuple[set[str], int, int]:
    """The modules of a command's process, and its collections and frozen objects at the end."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *words],
        env=os.environ | {"RPCQM_DATA_DIR": str(queue_manager.data_dir)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    status, modules, collections, frozen = json.loads(done.stderr.splitlines()[-1])
    assert status in (0, 4), done.stderr
    return set(modules), collections, frozen


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_little_and_no_package_but_ours(
    queue_manager: PrivateQueueManager, queue: str, command: str
) -> None:
    words = command.replace("QUEUE", queue).split()
    modules, collections, frozen = loaded(queue_manager, *words)
    ours = {name for name in modules if name.split(".")[0] == OURS}
    foreign = {
        name
        for name in modules - ours
        if name.split(".")[0] not in {"tests", *sys.stdlib_module_names}
        and not name.startswith(OF_ENVIRONMENTS)
    }
    assert foreign == set()
    assert {name.split(".")[1] for name in ours if "." in name} - {"__main__"} <= ROOMS
    assert modules & NOT_AT_ONCE == set()
    assert len(ours) <= MOST
    assert collections <= FEW, "cycles are looked for in what was loaded"
    assert frozen > 0, "and once more at the end"


def test_the_list_of_commands_is_told_without_loading_one(
    queue_manager: PrivateQueueManager,
) -> None:
    for words in (["--help"], ["help"]):
        modules, _, _ = loaded(queue_manager, *words)
        assert modules.isdisjoint({"asyncio", "rpcqm.cli.send", "rpcqm.cli.queue", "rpcqm.config"})


def test_the_list_of_commands_says_what_each_one_says_itself() -> None:
    assert outline().format_help() == build_parser().format_help()


def test_a_queue_manager_loads_no_package_of_an_extra() -> None:
    done = subprocess.run([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, check=True)
    loaded = set(done.stdout.decode().split())
    assert {"rpcqm", "rocksdict"} <= loaded
    assert loaded & OF_EXTRAS == set()
