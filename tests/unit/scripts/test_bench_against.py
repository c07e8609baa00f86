"""scripts/bench --against: whose code runs, and what pairs of processor times say."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.project.git_repositories import Repository

BENCHES = Path(__file__).parents[3] / "scripts" / "bench.d"


@pytest.fixture
def against(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHES)
    return import_module("against")


def around(middle: float, spread: float, count: int) -> list[float]:
    """Ratios that lie evenly on both sides of one."""
    return [middle + spread * (2 * number / (count - 1) - 1) for number in range(count)]


@dataclass
class Pairs:
    """Ratios that were made up: of each commit with itself, and of both."""

    middle: float
    spread: float = 0.01
    own_spreads: Sequence[float] = (0.01, 0.01)
    own_middle: float = 1.0
    taken: list[tuple[str, int]] = field(default_factory=list)

    def own(self, pairs: int) -> tuple[list[float], list[float]]:
        spread = self.own_spreads[sum(what == "own" for what, _ in self.taken)]
        self.taken.append(("own", pairs))
        made = around(self.own_middle, spread, pairs)
        return made, list(made)

    def both(self, pairs: int) -> list[float]:
        self.taken.append(("both", pairs))
        return around(self.middle, self.spread, pairs)


@pytest.mark.parametrize(
    ("pairs", "verdict", "taken"),
    [
        (Pairs(1.0), "not slower", [("own", 15), ("both", 15)]),
        (Pairs(0.9), "not slower", [("own", 15), ("both", 15)]),
        (Pairs(1.06), "slower", [("own", 15), ("both", 15)]),
        # What a commit shows against itself is no difference between two.
        (Pairs(1.02, own_middle=1.02), "not slower", [("own", 15), ("both", 15)]),
        (Pairs(1.02, own_middle=0.98), "not slower", [("own", 15), ("both", 15)]),
        # 45 pairs where 15 are too wide, of both comparisons.
        (
            Pairs(1.06, own_spreads=(0.08, 0.001)),
            "slower",
            [("own", 15), ("own", 30), ("both", 45)],
        ),
        (Pairs(1.0, own_spreads=(0.2, 0.2)), "not measurable", [("own", 15), ("own", 30)]),
        (Pairs(1.0, spread=0.3), "not measurable", [("own", 15), ("both", 15), ("both", 30)]),
        # However wide: all of it is on one side.
        (Pairs(1.6, spread=0.3), "slower", [("own", 15), ("both", 15), ("both", 30)]),
        (Pairs(0.6, spread=0.3), "not slower", [("own", 15), ("both", 15), ("both", 30)]),
    ],
)
def test_what_pairs_say_of_a_row(
    against: Any, pairs: Pairs, verdict: str, taken: list[tuple[str, int]]
) -> None:
    judged = against.judged("durable-send-16", pairs)
    assert judged.verdict == verdict
    assert pairs.taken == taken
    assert f"; {verdict} (with itself: " in judged.text or verdict == "not measurable"


@pytest.mark.parametrize(("middle", "status"), [(1.0, 0), (1.2, 1)])
def test_a_slower_row_makes_the_exit_not_zero_and_all_rows_are_told(
    against: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    middle: float,
    status: int,
) -> None:
    loads = {"durable-send-1": None, "durable-send-16": None, "api-send": None}
    servers = {None: lambda *_: Pairs(middle)}
    monkeypatch.setattr(against, "LOADS", loads)
    monkeypatch.setattr(against, "Servers", lambda load, *_: servers[load]())
    monkeypatch.setattr(against, "ROOT", tmp_path)
    monkeypatch.setattr(against, "BUILD", tmp_path / "build")
    commit = minimal(tmp_path).commit()
    assert against.main(commit, ["durable"]) == status
    told = capsys.readouterr().out.splitlines()[-2:]
    said = "slower" if status else "not slower"
    for line, row in zip(told, ("durable-send-1", "durable-send-16"), strict=True):
        assert line.startswith(f"{row}: {middle:.3f} (")
        assert f"; {said} (with itself: 1.000" in line


def test_a_row_that_fails_says_why(
    against: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(environment: object, place: Path) -> object:
        raise RuntimeError("no server")

    here = import_module("checkouts").Checkout("here", tmp_path)
    monkeypatch.setattr(against, "LOADS", {"fails": fails})
    monkeypatch.setattr(against, "BUILD", tmp_path)
    assert against.compared("fails", here, here) == ("fails: failed: no server", False)


def minimal(root: Path) -> Repository:
    """A repository with what is asked for its origin."""
    repository = Repository(root)
    for path in ("rpcqm/__init__.py", "rpcqm/service/__init__.py", "rpcqm/store/__init__.py"):
        repository.write(path, "")
    repository.write("rpcqm/store/store.py", "")
    repository.write("rpcqm/codec/__init__.py", "")
    repository.write("rpcqm/codec/interface.py", "")
    repository.write("idl/__init__.py", "")
    repository.write("idl/one.idl", "of the first commit")
    return repository


ASK = """
import importlib.resources as resources, rpcqm
print(rpcqm.__file__)
print((resources.files("rpcqm.idl") / "one.idl").read_text())
"""


def test_rpcqm_and_its_idl_are_those_of_the_other_commit_wherever_python_starts(
    against: Any, tmp_path: Path
) -> None:
    checkouts, repository = import_module("checkouts"), minimal(tmp_path)
    first = repository.commit()
    repository.write("idl/one.idl", "of the second commit")
    repository.commit()
    with checkouts.checked_out(tmp_path, first, tmp_path / "build") as checkout:
        argv = [sys.executable, "-c", ASK]
        asked = {"env": checkout.environment, "cwd": tmp_path, "text": True}
        package, idl = subprocess.check_output(argv, **asked).splitlines()
        assert Path(package).is_relative_to(checkout.root)
        assert idl == "of the first commit"
        tree = checkout.root
    assert not tree.exists()
    assert repository.git("worktree", "list").count("\n") == 0


def test_what_would_come_from_elsewhere_is_refused(against: Any, tmp_path: Path) -> None:
    checkouts, repository = import_module("checkouts"), minimal(tmp_path)
    (tmp_path / "idl" / "__init__.py").unlink()
    (tmp_path / "idl" / "one.idl").unlink()
    commit = repository.commit()
    refused = pytest.raises(RuntimeError, match=r"rpcqm\.idl of .* comes from elsewhere")
    with refused, checkouts.checked_out(tmp_path, commit, tmp_path / "build"):
        pass
    assert repository.git("worktree", "list").count("\n") == 0


def test_what_is_checked_out_counts_with_its_changes(against: Any, tmp_path: Path) -> None:
    checkouts, repository = import_module("checkouts"), minimal(tmp_path)
    commit = repository.commit()
    assert checkouts.present(tmp_path) == commit
    repository.write("rpcqm/store/store.py", "faster = True")
    with checkouts.checked_out(tmp_path, checkouts.present(tmp_path), tmp_path / "b") as checkout:
        assert (checkout.root / "rpcqm/store/store.py").read_text("utf-8") == "faster = True"
    repository.write("rpcqm/new.py", "")
    with pytest.raises(RuntimeError, match=r"git does not know rpcqm/new\.py: `git add` it first"):
        checkouts.present(tmp_path)


def test_processor_time_is_that_of_all_threads_of_another_process(against: Any) -> None:
    busy = (
        "import threading, time\n"
        "def spend():\n    end = time.thread_time() + 0.1\n"
        "    while time.thread_time() < end: pass\n"
        "threads = [threading.Thread(target=spend) for _ in range(2)]\n"
        "[each.start() for each in threads]; [each.join() for each in threads]\n"
        "print(flush=True); input()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", busy], **pipes) as process:  # type: ignore[call-overload]
        process.stdout.readline()
        spent = import_module("harness").computed(process.pid)
        process.communicate(b"\n")
    assert 0.2 <= spent < 60
    assert import_module("harness").computed(os.getpid()) <= time.process_time()
