"""Whatever a crash leaves on the disk: every commit whole or absent, nothing acknowledged lost.

A seeded sample; `scripts/soak crash` tries every point.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.crash.disk_images import Loss
from tests.crash.power_loss import SESSIONS, Machine, Recording, memory_directory, record

SEED = 1
LENGTH = 360
SAMPLE = 40
RECOVERIES = 2


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    return record(tmp_path_factory.mktemp("recording"), SEED, LENGTH)


@pytest.fixture
def machine(recording: Recording) -> Iterator[Machine]:
    with memory_directory() as directory:
        yield Machine(recording.script, Path(directory))


def crash_points(recording: Recording) -> set[int]:
    """Numbers of events after which the machine crashes.

    Every acknowledgement is a commit boundary: the crash comes right before and right after some
    of them, and anywhere between.
    """
    count = len(recording.events)
    random = Random(SEED)
    said = [
        number
        for number, event in enumerate(recording.events)
        if event.kind == "w" and event.first.startswith(b"done")
    ]
    boundaries = {number + random.choice([-1, 0]) for number in random.sample(said, SAMPLE // 2)}
    return boundaries | set(random.sample(range(count), SAMPLE // 2)) | {count - 1}


@pytest.mark.parametrize("loss", Loss, ids=lambda loss: loss.name.lower())
def test_every_commit_is_whole_or_absent_after_a_crash(
    recording: Recording, machine: Machine, loss: Loss
) -> None:
    points, random, found = crash_points(recording), Random(SEED), set()
    for number, _ in machine.run(recording.events):
        if number in points:
            found.add(machine.crash(loss, random))
    assert machine.promises.done == LENGTH
    assert len(found) > SAMPLE // 4
    print(f"{machine.tried[loss]} crashes: {loss.value}")


def test_a_recovery_may_crash_too(recording: Recording, machine: Machine) -> None:
    """What a recovery has shown once stays, and it can be begun again at any time."""
    random, crashes = Random(SEED), 0
    points = set(random.sample(range(len(recording.events)), RECOVERIES))
    for number, _ in machine.run(recording.events):
        if number in points:
            recovering, events = machine.recover_recorded(Loss.SECTORS, random, recording.recorder)
            for at, _ in recovering.run(events):
                if at % 4 == 0:
                    recovering.crash(random.choice([*Loss]), random)
            assert recovering.promises.found is not None
            recovering.crash(Loss.ALL, random)
            crashes += sum(recovering.tried.values())
    assert crashes > 10 * RECOVERIES
    print(f"{crashes} crashes of {RECOVERIES} recoveries")


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
