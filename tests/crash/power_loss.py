"""Recording a process that writes, crashing its machine anywhere, and looking at what is left."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from rpcqm.store.fsck import check
from rpcqm.store.store import Store
from tests.crash.disk_images import Disk, Event, Loss, read_events
from tests.crash.script import EXPRESS_QUEUE, Script, marker_of, model_of
from tests.crash.workload import SETTINGS
from tests.support.preloading import compile_library

ROOT = Path(__file__).parents[2]

SESSIONS = (
    ["--turns", "30", "--end", "kill"],
    ["--turns", "25", "--end", "close", "--thread"],
    ["--turns", "25", "--end", "kill", "--thread"],
    ["--end", "close"],
)
"""Lives of the process: each recovers from how the one before it ended."""


@dataclass(frozen=True)
class Recording:
    """What the processes of one script wrote and synced."""

    events: list[Event]
    script: Script
    recorder: Path


def run_recorded(recorder: Path, root: Path, log: Path, *command: str) -> None:
    """Run a module of these tests; its events under `root` are added to `log`."""
    environment = {
        **os.environ,
        "LD_PRELOAD": str(recorder),
        "RECORDER_DIRECTORY": str(root),
        "RECORDER_LOG": str(log),
    }
    subprocess.run(
        [sys.executable, "-m", *command], env=environment, cwd=ROOT, stdout=subprocess.DEVNULL
    )


def record(place: Path, seed: int, length: int) -> Recording:
    """Every write and sync of several processes that perform one script."""
    recorder, root = compile_library("write_recorder", place), place / "root"
    root.mkdir()
    for options in SESSIONS:
        arguments = [str(root), str(seed), str(length), *options]
        run_recorded(recorder, root, place / "log", "tests.crash.workload", *arguments)
    return Recording(list(read_events(place / "log")), Script(seed, length), recorder)


def memory_directory() -> "TemporaryDirectory[str]":
    """Where images are made and recovered: in memory where that is possible, for speed."""
    memory = Path("/dev/shm")
    return TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None)


@dataclass
class Promises:
    """What the processes had said when the machine crashed."""

    begun: int = 0
    done: int = 0
    found: int | None = None
    """Which state a recovery has shown to the world."""

    def listen(self, event: Event) -> None:
        """Hear what a process says, if it does."""
        words = event.first.split() if event.kind == "w" and len(event.first) < 20 else []
        match words:
            case [b"begun", number]:
                self.begun = int(number)
            case [b"done", number]:
                assert int(number) == self.done + 1, "changes are acknowledged in order"
                self.done = int(number)
            case [b"found", number]:
                self.found = int(number)


@dataclass
class Machine:
    """A machine that runs a recording, event by event, and may crash at any time."""

    script: Script
    images: Path
    disk: Disk = field(default_factory=Disk)
    promises: Promises = field(default_factory=Promises)
    tried: dict[Loss, int] = field(default_factory=lambda: dict.fromkeys(Loss, 0))
    """How many crashes were tried, by what they took."""

    def run(self, events: list[Event]) -> Iterator[tuple[int, Event]]:
        """Let the events happen; each is given, with its number, when it has."""
        for number, event in enumerate(events):
            self.disk.apply(event)
            self.promises.listen(event)
            yield number, event

    def crash(self, loss: Loss, random: Random, lost: int | None = None) -> int:
        """Crash, recover, compare; how many changes were found. The machine itself goes on."""
        image = self.images / "image"
        image.mkdir()
        self.disk.image(image, loss, random, lost)
        self.tried[loss] += 1
        found = verify(image, self.script, self.promises)
        shutil.rmtree(image)
        return found

    def recover_recorded(
        self, loss: Loss, random: Random, recorder: Path
    ) -> tuple["Machine", list[Event]]:
        """Crash, and recover in a process that is recorded: a machine that does the same."""
        root = self.images / "root"
        root.mkdir()
        self.disk.image(root, loss, random)
        machine = Machine(self.script, self.images, Disk.of(root), copy(self.promises))
        log = self.images / "log"
        run_recorded(recorder, root, log, "tests.crash.recover", str(root))
        events = list(read_events(log))
        shutil.rmtree(root)
        log.unlink()
        return machine, events


def verify(directory: Path, script: Script, promises: Promises) -> int:
    """Recover, and compare with the script; how many changes were found."""
    if not (directory / "data" / "messages" / "CURRENT").exists():
        assert promises.done == 0, "an acknowledged change is lost"
        assert not promises.found, "a change that was shown is lost"
        return 0
    store = Store.open(directory / "data", end_of_turn=print, settings=SETTINGS)
    try:
        found = marker_of(store)
        assert promises.done <= found <= promises.begun
        assert promises.found in (None, found), "what a recovery has shown has changed"
        compare(store, script, found)
    finally:
        store.close()
    assert check(directory / "data") == []
    return found


def compare(store: Store, script: Script, found: int) -> None:
    """What a store holds is what the script has made after so many changes."""
    state = script.states[found]
    assert model_of(store) == state
    assert store.index(EXPRESS_QUEUE).account.count == 0
    messages = sum(len(queue) for queue in state.queues.values())
    assert not store.uncommitted
    assert store.total.count == messages
