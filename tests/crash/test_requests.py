"""Requests and sessions over crashes, by templates and without: what was answered is there, once.

A seeded sample of the power losses, and a kill before and after each step of a commit.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from rpcqm.store.fsck import check
from tests.crash.disk_images import Disk, Event, Loss, read_events
from tests.crash.power_loss import ROOT, memory_directory, run_recorded
from tests.crash.requests import (
    PEER_SENDER,
    QUEUES,
    name_in,
    packet_of,
)
from tests.crash.server_load import Ledger
from tests.support.binary.binary_network import Node, Simulation
from tests.support.binary.binary_peer import ScriptedPeer
from tests.support.preloading import compile_library

SEED = 1
TURNS = 40
SAMPLE = 20
"""Crashes of each setting; each takes another kind of what is not synced."""
STEPS = [
    f"{when}-{step}" for step in ("write", "apply", "callbacks") for when in ("before", "after")
]
OCCURRENCE = 30
"""Templates have taken over by then."""
EVENTS = [[b"begun"], [b"done"], [b"ending"], [b"ended"]]
WAYS = [
    pytest.param([], id="templates"),
    pytest.param(["--careful"], id="careful", marks=pytest.mark.soak),
]


@dataclass
class Promises:
    """What a process has said."""

    ledger: Ledger = field(default_factory=Ledger)
    begun: list[str] = field(default_factory=list)

    def hear(self, line: str) -> None:
        event, name = line.split()
        ledger = self.ledger
        match event:
            case "begun":
                self.begun.append(name)
                ledger.sending.add(name)
            case "done":
                ledger.sending.discard(name)
                if name not in ledger.gone:
                    ledger.there.add(name)
            case "ending":
                ledger.delivered(name)
                ledger.ending.add(name)
            case "ended":
                ledger.ended(name)

    def from_peer(self) -> list[tuple[int, int]]:
        """What the peer sends again: sender and number, in order."""
        names = [tuple(map(int, name.split(":"))) for name in self.begun]
        return [(sender, number) for sender, number in names if sender >= PEER_SENDER]


def verify(directory: Path, promises: Promises) -> int:
    """Start again, compare, and hear the peer once more; how many messages were found."""
    if not (directory / "bob-0" / "messages" / "CURRENT").exists():
        assert not promises.ledger.there
        return 0
    simulation = Simulation(directory)
    bob = simulation.node("bob")
    try:
        found = contents(bob)
        deepcopy(promises.ledger).compare(*found, [])
        if promises.begun:
            hear_again(bob, promises, {*found[0], *found[1]})
    finally:
        simulation.stop()
    assert check(directory / "bob-0") == []
    return len(found[0]) + len(found[1])


def contents(bob: Node) -> tuple[list[str], list[str]]:
    orders, stream = (
        [name_in(body) for body in bob.bodies(name)] if has_queue(bob, name) else []
        for name in QUEUES
    )
    return orders, stream


def has_queue(bob: Node, name: str) -> bool:
    return bob.engine.registry.find_by_path(f".\\private$\\{name}") is not None


def hear_again(bob: Node, promises: Promises, found: set[str]) -> None:
    """What the peer has sent is there once, unless it has been received."""
    peer = ScriptedPeer(bob)
    packets = [(packet_of(sender, number), True) for sender, number in promises.from_peer()]
    for packet in packets:
        peer.feed(peer.counting([packet]))
    bob.settle()
    ledger = promises.ledger
    of_peer = {f"{sender}:{number}" for sender, number in promises.from_peer()}
    received = ledger.gone | (ledger.ending - found)
    again = [name for names in contents(bob) for name in names]
    assert len(again) == len(set(again)), "a message is there twice"
    assert of_peer & set(again) == of_peer - received


@dataclass(frozen=True)
class Recorded:
    """What one process wrote and synced, and what its templates have done."""

    events: list[Event]
    templated: dict[str, int]
    careful: bool


@pytest.fixture(scope="module", params=WAYS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    place = tmp_path_factory.mktemp("recording")
    recorder, root, log = compile_library("write_recorder", place), place / "root", place / "log"
    root.mkdir()
    arguments = [str(root), str(SEED), str(TURNS), *request.param]
    run_recorded(recorder, root, log, "tests.crash.requests", *arguments)
    counted = json.loads((place / "counted").read_text())
    return Recorded(list(read_events(log)), counted, bool(request.param))


@pytest.fixture
def images() -> Iterator[Path]:
    with memory_directory() as directory:
        yield Path(directory)


def test_what_was_answered_is_there_once_after_a_loss_of_power(
    recorded: Recorded, images: Path
) -> None:
    random = Random(SEED)
    points = set(random.sample(range(len(recorded.events)), SAMPLE))
    disk, promises, found = Disk(), Promises(), set[int]()
    for number, event in enumerate(recorded.events):
        disk.apply(event)
        if event.kind == "w" and event.first.split()[:1] in EVENTS:
            promises.hear(event.first.decode())
        if number in points:
            image = images / "image"
            image.mkdir()
            disk.image(image, random.choice([*Loss]), random)
            found.add(verify(image, promises))
            shutil.rmtree(image)
    assert promises.ledger.gone
    assert len(found) > SAMPLE // 4


def test_templates_have_done_most_of_it(recorded: Recorded) -> None:
    """Or nothing, where they are off: so that the tests here are about what they say."""
    lines = [event.first for event in recorded.events if event.kind == "w"]
    begun, ended = (
        sum(line.startswith(event) for line in lines) for event in (b"begun ", b"ended ")
    )
    done = recorded.templated
    if recorded.careful:
        assert done == {}
    else:
        assert done["sent"] + done["arrived"] > begun * 0.9
        assert min(done["read"], done["ended"]) > ended * 0.8


@pytest.mark.parametrize(
    ("step", "way"),
    [*((step, []) for step in STEPS), *((step, ["--careful"]) for step in STEPS[:2])],
)
def test_killed_at_any_step_what_was_answered_is_there_once(
    tmp_path: Path, step: str, way: list[str]
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    command = [sys.executable, "-m", "tests.crash.requests", str(root), str(SEED), str(TURNS)]
    died = subprocess.run([*command, *way, "--die", f"{step}:{OCCURRENCE}"], cwd=ROOT)
    assert died.returncode == -9
    assert not (tmp_path / "counted").exists()
    promises = Promises()
    for line in (root / "acknowledged").read_text().splitlines():
        promises.hear(line)
    assert promises.ledger.there
    verify(root, promises)
