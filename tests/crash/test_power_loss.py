"""Whatever a crash leaves on the disk: every commit whole or absent, nothing acknowledged lost."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from rpcqm.store.fsck import check
from rpcqm.store.store import Store
from tests.crash.disk_images import Disk, Event, Loss, read_events
from tests.crash.script import EXPRESS_QUEUE, Script, marker_of, model_of
from tests.crash.workload import SETTINGS

FULL = bool(os.environ.get("RPCQM_CRASH_FULL"))
"""Every event of the recording instead of a seeded sample; takes a quarter of an hour."""

SEED = int(os.environ.get("RPCQM_CRASH_SEED", "1"))
LENGTH = 360
SAMPLE = 160
ROOT = Path(__file__).parents[2]
RECORDER = ROOT / "tests" / "support" / "write_recorder.c"

SESSIONS = (
    ["--turns", "30", "--end", "kill"],
    ["--turns", "25", "--end", "close", "--thread"],
    ["--turns", "25", "--end", "kill", "--thread"],
    ["--end", "close"],
)
"""Lives of the process: each recovers from how the one before it ended."""


@dataclass(frozen=True)
class Recording:
    events: list[Event]
    script: Script


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Every write and sync of several processes that perform one script."""
    place = tmp_path_factory.mktemp("recording")
    recorder = place / "recorder.so"
    compiler = ["cc", "-O2", "-shared", "-fPIC", "-o", str(recorder), str(RECORDER), "-ldl"]
    subprocess.run(compiler, check=True)
    (place / "root").mkdir()
    environment = {
        **os.environ,
        "LD_PRELOAD": str(recorder),
        "RECORDER_DIRECTORY": str(place / "root"),
        "RECORDER_LOG": str(place / "log"),
    }
    for options in SESSIONS:
        command = [sys.executable, "-m", "tests.crash.workload", str(place / "root")]
        command += [str(SEED), str(LENGTH), *options]
        subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)
    return Recording(list(read_events(place / "log")), Script(SEED, LENGTH))


@pytest.fixture
def images(tmp_path: Path) -> Iterator[Path]:
    """Where images are made and recovered: in memory where that is possible, for speed."""
    memory = Path("/dev/shm")
    base = memory if os.access(memory, os.W_OK) else tmp_path
    with TemporaryDirectory(dir=base) as directory:
        yield Path(directory)


class Promises:
    """What the process had said when it crashed."""

    def __init__(self) -> None:
        self.begun = 0
        self.done = 0

    def listen(self, event: Event) -> None:
        words = event.first.split()
        if event.kind == "w" and len(words) == 2 and words[0] in (b"begun", b"done"):
            number = int(words[1])
            if words[0] == b"begun":
                self.begun = number
            else:
                assert number == self.done + 1, "changes are acknowledged in order"
                self.done = number


def crash_points(recording: Recording) -> set[int]:
    """Numbers of events after which the machine crashes.

    Every acknowledgement is a commit boundary: the crash comes right before and right after some
    of them, and anywhere between.
    """
    count = len(recording.events)
    if FULL:
        return set(range(count))
    random = Random(SEED)
    said = [
        number
        for number, event in enumerate(recording.events)
        if event.kind == "w" and event.first.startswith(b"done")
    ]
    boundaries = {number + random.choice([-1, 0]) for number in random.sample(said, SAMPLE // 2)}
    return boundaries | set(random.sample(range(count), SAMPLE // 2)) | {count - 1}


def verify(directory: Path, script: Script, promises: Promises) -> int:
    """Recover, and compare with the script; how many changes were found."""
    database = directory / "data" / "messages"
    if not (database / "CURRENT").exists():
        assert promises.done == 0, "an acknowledged change is lost"
        return 0
    store = Store.open(directory / "data", end_of_turn=print, settings=SETTINGS)
    try:
        found = marker_of(store)
        assert promises.done <= found <= promises.begun
        assert model_of(store) == script.states[found]
        assert store.index(EXPRESS_QUEUE).account.count == 0
        messages = [message for queue in script.states[found].queues.values() for message in queue]
        staged = sum(len(operations) for _, operations in script.states[found].staged.values())
        assert store.total.count == len(messages) + staged
    finally:
        store.close()
    assert check(directory / "data") == []
    return found


@pytest.mark.parametrize("loss", Loss, ids=lambda loss: loss.name.lower())
def test_every_commit_is_whole_or_absent_after_a_crash(
    recording: Recording, images: Path, loss: Loss
) -> None:
    points = crash_points(recording)
    disk, promises, random = Disk(), Promises(), Random(SEED)
    found = set()
    for number, event in enumerate(recording.events):
        disk.apply(event)
        promises.listen(event)
        if number in points:
            image = images / str(number)
            image.mkdir()
            disk.image(image, loss, random)
            found.add(verify(image, recording.script, promises))
            shutil.rmtree(image)
    assert promises.done == LENGTH
    assert found >= {0, LENGTH} if FULL else len(found) > SAMPLE // 4


def test_the_recording_covers_what_matters(recording: Recording) -> None:
    """Several logs, some of them used again; tables, large bodies, removals of files."""
    opened = {event.first for event in recording.events if event.kind == "o"}
    logs = [name for name in opened if name.endswith(b".log")]
    renamed = [event for event in recording.events if event.kind == "r"]
    assert len(logs) > 5
    assert any(event.first.endswith(b".log") for event in renamed)
    assert any(name.endswith(b".sst") for name in opened)
    assert any(name.endswith(b".blob") for name in opened)
    assert sum(event.kind == "S" for event in recording.events) == len(SESSIONS)
    assert any(event.kind == "u" for event in recording.events)
