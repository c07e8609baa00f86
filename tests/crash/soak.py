"""Crash the store everywhere, for as long as there is time, and look at what is left."""

import argparse
import re
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from rpcqm.base.log import configure
from tests.crash.disk_images import File, Loss
from tests.crash.power_loss import Machine, Recording, memory_directory, record
from tests.crash.server_load import loaded_queue_manager
from tests.support.soak.soak_record import Goal, Part, Record, main_of, options, run_parts

LENGTH = 360
KEPT = Path("var/soak/failed")
SUBSETS = 64
"""Random choices of what survives, for each sync."""

RECOVERIES = 20
"""How many recoveries of one recording are crashed themselves, at every event."""


class OutOfTimeError(Exception):
    """The minutes are over."""


class PowerLoss:
    """The crashes of one recording at the events that are a part's: every `parts`th from one on."""

    def __init__(
        self, recording: Recording, seed: int, directory: Path, bounds: "Bounds", first: int = 0
    ) -> None:
        self.recording = recording
        self._share = bounds.share
        self._first, self._parts = first, bounds.shards
        self._is_own = False
        self._seen: dict[File, int] = {}
        self.events = 0
        self.syncs = 0
        self.recoveries = 0
        self.tried: Counter[str] = Counter()
        self._random = Random(seed)
        self._machine = Machine(recording.script, directory)
        self._deadline = bounds.deadline
        count = len(recording.events)
        self._recovered = set(self._random.sample(range(count), round(RECOVERIES * bounds.share)))

    def run(self) -> None:
        """Crash at every event; AssertionError, StoreError … where a promise was broken."""
        for number, event in self._machine.run(self.recording.events):
            self._is_own = number % self._parts == self._first
            self.events += self._is_own
            self._crash(self._machine, Loss.NOTHING)
            self._crash(self._machine, Loss.ALL)
            self._crash(self._machine, Loss.TAIL)
            if event.kind == "b":
                self.syncs += self._is_own
                self._crash_at_sync(event.descriptor)
            if self._is_own and number in self._recovered:
                self._crash_recovery()

    def _crash(self, machine: Machine, loss: Loss, lost: int | None = None) -> None:
        if not self._is_own:
            return
        if time.monotonic() > self._deadline:
            raise OutOfTimeError
        if self._random.random() >= self._share:
            return
        machine.crash(loss, self._random, lost)
        self.tried[loss.name.lower()] += 1

    def _crash_at_sync(self, descriptor: int) -> None:
        """Right before something becomes durable, most may be lost."""
        for lost in self._machine.disk.sectors_to_lose(descriptor, self._seen):
            self._crash(self._machine, Loss.SECTOR, lost)
        for _ in range(SUBSETS):
            self._crash(self._machine, Loss.SECTORS)

    def _crash_recovery(self) -> None:
        self.recoveries += 1
        recorder = self.recording.recorder
        recovering, events = self._machine.recover_recorded(Loss.SECTORS, self._random, recorder)
        for _ in recovering.run(events):
            for loss in Loss:
                self._crash(recovering, loss)

    @property
    def part(self) -> Part:
        """The figures so far."""
        figures = {
            "crashes": self.tried.total(),
            "events": self.events,
            "syncs": self.syncs,
            "recoveries crashed as well": self.recoveries,
        }
        return Part({name: float(count) for name, count in figures.items()})

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {name}" for name, count in sorted(self.tried.items()))
        return (
            f"{self.tried.total()} crashes ({kinds}) at {self.events} of "
            f"{len(self.recording.events)} events with {self.syncs} syncs; "
            f"{self.recoveries} recoveries crashed as well"
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is tried, and until when (`time.monotonic`)."""

    deadline: float
    kills: int
    share: float
    shards: int
    keep: Path


def soak_power_loss(name: str, bounds: Bounds) -> Part:
    """The crashes of one recording that are a part's, while there is time."""
    seed, first = _numbers(name)
    with memory_directory() as place:
        directory, images = Path(place), Path(place) / "images"
        images.mkdir()
        power = PowerLoss(record(directory, seed, LENGTH), seed, images, bounds, first - 1)
        try:
            power.run()
        except OutOfTimeError:
            print(f"{name}: out of time after {power}", flush=True)
        except Exception as error:
            shutil.copytree(directory, bounds.keep / name.replace("/", "-"), dirs_exist_ok=True)
            print(f"{name}: BROKEN after {power}; what was left is in {bounds.keep}", flush=True)
            traceback.print_exc()
            broken = power.part
            broken.failures.append(f"{name}: {type(error).__name__}: {error}")
            return broken
    print(f"{name}: {power}", flush=True)
    return power.part


def soak_kills(name: str, bounds: Bounds) -> Part:
    """Kill a loaded server so often, while there is time."""
    with loaded_queue_manager(_numbers(name)[0]) as load:
        while load.ledger.kills < bounds.kills and time.monotonic() < bounds.deadline:
            load.run(1)
    ledger = load.ledger
    told = f"{ledger.kills} kills of a server with {ledger.operations} acknowledged operations"
    print(f"{name}: {told}", flush=True)
    figures = {"kills": ledger.kills, "acknowledged operations": ledger.operations}
    return Part({name: float(count) for name, count in figures.items()})


def _numbers(name: str) -> tuple[int, int]:
    """The seed of a part's name, and which part of the seed's crashes it is."""
    found = [int(number) for number in re.findall(r"\d+", name)]
    return found[0], found[1] if len(found) > 1 else 1


def parts_of(given: argparse.Namespace) -> list[str]:
    """The names of the parts: the crashes of a seed are several, so that they can be resumed."""
    found: list[str] = []
    for seed in range(given.seed, given.seed + given.seeds):
        if given.part in ("power", "all"):
            found += [f"power {seed}, {n}/{given.shards}" for n in range(1, given.shards + 1)]
        if given.part in ("kill", "all"):
            found.append(f"kill {seed}")
    return found


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("scripts/soak crash", description=__doc__)
    made.add_argument(
        "part",
        nargs="?",
        choices=["power", "kill", "all"],
        default="all",
        help="loss of power in a simulation, kill -9 of a server under load, or all (default)",
    )
    made.add_argument(
        "--kills", type=int, default=100, help="how often a server is killed (%(default)s)"
    )
    made.add_argument("--seed", type=int, default=1, help="the first seed (%(default)s)")
    made.add_argument("--seeds", type=int, default=1, help="how many seeds (%(default)s)")
    made.add_argument("--minutes", type=float, default=30, help="stop then (%(default)s)")
    made.add_argument("--shards", type=int, default=4, help="parts of a seed's crashes (4)")
    made.add_argument(
        "--share", type=float, default=1, help="try only this share of the crashes (%(default)s)"
    )
    made.add_argument("--keep", type=Path, default=KEPT, help="for what has failed (%(default)s)")
    return options(made)


def main(words: Sequence[str] | None = None) -> int:
    made = parser()
    given = made.parse_args(words)
    configure("critical")
    parts = parts_of(given)
    kept = Record(
        made,
        given,
        Goal(len(parts), given.minutes),
        seed=given.seed,
        name="crash" if given.part == "all" else f"crash {given.part}",
        variants=["part"],
        neutral=["keep"],
    )

    def work(name: str) -> Part:
        deadline = time.monotonic() + kept.left
        bounds = Bounds(deadline, given.kills, given.share, given.shards, given.keep)
        soak = soak_power_loss if name.startswith("power") else soak_kills
        return soak(name, bounds)

    return run_parts(kept, parts, work)


if __name__ == "__main__":
    main_of(main)
