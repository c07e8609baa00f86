"""Run tests in forked processes, each with at most one mutation.

The process that forks has imported what tests need but for the product itself, so that a child
imports the product as it is mutated, and soon.
"""

import contextlib
import gc
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from tests.mutations import hook
from tests.mutations.data import Mutation
from tests.mutations.idl import IDL, mutate_idl
from tests.mutations.names import ROOT
from tests.mutations.syntax import mutate, place_of
from tests.support.cli.forked_commands import START_FROM_NOTHING

PRELOADED = (
    "asyncio",
    "cryptography.x509",
    "hypothesis.strategies",
    "impacket.dcerpc.v5.rpcrt",
    "impacket.dcerpc.v5.ndr",
    "lark",
    "rocksdict",
    "spnego",
    "structlog",
    "uvloop",
)
# Without rewritten assertions: pytest would load the product too by a finder of its own.
OPTIONS = (
    "-q",
    "--assert=plain",
    "--no-header",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-W",
    "ignore",
)

TOOK_TOO_LONG = "took too long"


class Verdict:
    """A plugin of pytest that runs the named tests only, and keeps what came of each."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.outcomes = {test: Outcome() for test in tests}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self._of(item.nodeid)]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            for outcome in self.outcomes.values():
                outcome.broken.append(str(report.longrepr)[-400:])

    def cannot_load(self) -> None:
        """Note that pytest gave up before it collected, as it does when a conftest fails."""
        for outcome in self.outcomes.values():
            outcome.broken.append("a conftest cannot be loaded")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for outcome in self._of(report.nodeid):
            if report.failed:
                crash = getattr(report.longrepr, "reprcrash", None)
                outcome.failures.append(str(getattr(crash, "message", report.longrepr))[:400])
            elif report.when == "call" and report.passed:
                outcome.passed += 1

    def _of(self, node: str) -> list["Outcome"]:
        return [outcome for test, outcome in self.outcomes.items() if is_part(node, test)]


def is_part(node: str, test: str) -> bool:
    """Whether the node is the test, or the test with some parameters."""
    return node == test or node.startswith(f"{test}[")


@dataclass(slots=True)
class Outcome:
    """What came of a test: it passed, it failed, or it could not be run at all."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return self.passed > 0 and not self.failures and not self.broken


@dataclass(slots=True)
class Run:
    """Tests of one file that run in a child process."""

    process: int
    folder: Path
    deadline: float
    tests: Sequence[str]

    def ended(self) -> dict[str, Outcome] | None:
        """What came of each, None while they run; what takes too long is stopped: it failed."""
        if os.waitpid(self.process, os.WNOHANG)[0]:
            outcomes = self._read()
        elif time.monotonic() < self.deadline:
            return None
        else:
            os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            outcomes = {test: Outcome(failures=[TOOK_TOO_LONG]) for test in self.tests}
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        return outcomes

    def _read(self) -> dict[str, Outcome]:
        try:
            told = json.loads((self.folder / "outcomes").read_text("utf-8"))
        except FileNotFoundError:
            return {test: Outcome(failures=["the process of the test died"]) for test in self.tests}
        return {test: Outcome(**outcome) for test, outcome in told.items()}


def preload() -> None:
    """Import what every child needs."""
    for name in PRELOADED:
        importlib.import_module(name)
    importlib.import_module("_pytest.assertion.rewrite")
    loaded = [name for name in sys.modules if name == "rpcqm" or name.startswith("rpcqm.")]
    if loaded:
        raise RuntimeError(f"{loaded} must not be loaded before it is mutated")
    # A child that collected this garbage would copy the memory that it shares.
    gc.freeze()


def require_place(mutation: Mutation) -> str:
    """The qualified name of where the mutation applies; MutationError if it applies nowhere."""
    if not mutation.at.startswith("idl."):
        return str(place_of(mutation))
    mutate_idl(mutation)
    return mutation.at


def change_of(mutation: Mutation, folder: Path) -> dict[str, str]:
    """What the hook must do; the folder is for a changed copy of the IDL files."""
    if not mutation.at.startswith("idl."):
        mutated = mutate(mutation)
        return {"module": mutated.module, "path": str(mutated.path), "source": mutated.source}
    changed = mutate_idl(mutation)
    copy = folder / "idl"
    shutil.copytree(IDL, copy)
    (copy / f"{changed.name}.idl").write_text(changed.source, "utf-8")
    return {"module": "rpcqm.idl", "path": str(copy / "__init__.py")}


def start(tests: Sequence[str], mutation: Mutation | None, seconds: float) -> Run:
    """Run tests of one file in a child process; MutationError if the mutation does not apply."""
    folder = Path(tempfile.mkdtemp(prefix="mutation-"))
    try:
        change = change_of(mutation, folder) if mutation else None
    except Exception:
        shutil.rmtree(folder)
        raise
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        _child(tests, change, folder)
    return Run(process, folder, time.monotonic() + seconds, tests)


def _child(tests: Sequence[str], change: Mapping[str, str] | None, folder: Path) -> None:
    """Run the tests, tell the outcomes in the folder, and end the process."""
    try:
        os.setsid()
        output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        os.chdir(ROOT)
        os.environ |= {"RPCQM_CI": "1", START_FROM_NOTHING: "1"}
        if change:
            os.environ.update(hook.environment(folder, change))
            hook.install(change)
        verdict = Verdict(tests)
        words = [f"--basetemp={folder / 'tests'}", *(["-x"] if change else [])]
        status = pytest.main([*OPTIONS, *words, tests[0].split("::")[0]], plugins=[verdict])
        if status == pytest.ExitCode.USAGE_ERROR:
            verdict.cannot_load()
        told = {test: asdict(outcome) for test, outcome in verdict.outcomes.items()}
        (folder / "outcomes.new").write_text(json.dumps(told), "utf-8")
        (folder / "outcomes.new").rename(folder / "outcomes")
    finally:
        os._exit(0)
