"""Every crash that can be thought of, for as long as there is time; see `scripts/soak --help`."""

import argparse
import shutil
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random

from rpcqm.base.log import configure
from tests.crash.disk_images import File, Loss
from tests.crash.power_loss import Machine, Recording, memory_directory, record
from tests.crash.server_load import loaded_queue_manager

LENGTH = 360
SUBSETS = 64
"""Random choices of what survives, for each sync."""

RECOVERIES = 20
"""How many recoveries of one recording are crashed themselves, at every event."""


class OutOfTimeError(Exception):
    """The minutes are over."""


class PowerLoss:
    """The crashes of one recording."""

    def __init__(
        self, recording: Recording, seed: int, directory: Path, deadline: float, share: float
    ) -> None:
        self.recording = recording
        self._share = share
        self._seen: dict[File, int] = {}
        self.events = 0
        self.syncs = 0
        self.recoveries = 0
        self.tried: Counter[str] = Counter()
        self._random = Random(seed)
        self._machine = Machine(recording.script, directory)
        self._deadline = deadline
        count = len(recording.events)
        self._recovered = set(self._random.sample(range(count), round(RECOVERIES * share)))

    def run(self) -> None:
        """Crash at every event; AssertionError, StoreError … where a promise was broken."""
        for number, event in self._machine.run(self.recording.events):
            self.events = number + 1
            self._crash(self._machine, Loss.NOTHING)
            self._crash(self._machine, Loss.ALL)
            self._crash(self._machine, Loss.TAIL)
            if event.kind == "b":
                self.syncs += 1
                self._crash_at_sync(event.descriptor)
            if number in self._recovered:
                self._crash_recovery()

    def _crash(self, machine: Machine, loss: Loss, lost: int | None = None) -> None:
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

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {name}" for name, count in sorted(self.tried.items()))
        return (
            f"{self.tried.total()} crashes ({kinds}) at {self.events} of "
            f"{len(self.recording.events)} events with {self.syncs} syncs; "
            f"{self.recoveries} recoveries crashed as well"
        )


def soak_power_loss(seed: int, deadline: float, share: float, keep: Path) -> bool:
    """The crashes of one recording; whether there was time for all."""
    with memory_directory() as name:
        directory, images = Path(name), Path(name) / "images"
        images.mkdir()
        part = PowerLoss(record(directory, seed, LENGTH), seed, images, deadline, share)
        try:
            part.run()
        except OutOfTimeError:
            print(f"seed {seed}: out of time after {part}", flush=True)
            return False
        except BaseException:
            shutil.copytree(directory, keep, dirs_exist_ok=True)
            print(f"seed {seed}: BROKEN after {part}; what was left is in {keep}", flush=True)
            raise
    print(f"seed {seed}: {part}", flush=True)
    return True


def soak_kills(seed: int, kills: int, deadline: float) -> bool:
    """Kill a loaded server so often; whether there was time for all."""
    with loaded_queue_manager(seed) as load:
        while load.ledger.kills < kills and time.monotonic() < deadline:
            load.run(1)
    print(
        f"seed {seed}: {load.ledger.kills} kills of a server with {load.ledger.operations} "
        "acknowledged operations",
        flush=True,
    )
    return load.ledger.kills == kills


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/soak", description="Crash the store everywhere, and look at what is left."
    )
    parser.add_argument(
        "part",
        nargs="?",
        choices=["power", "kill", "all"],
        default="all",
        help="loss of power in a simulation, kill -9 of a server under load, or all (default)",
    )
    parser.add_argument(
        "--kills", type=int, default=100, help="how often a server is killed (default 100)"
    )
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default 1)")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds (default 1)")
    parser.add_argument("--minutes", type=float, default=30, help="stop then (default 30)")
    parser.add_argument(
        "--share", type=float, default=1, help="try only this share of the crashes (default 1)"
    )
    parser.add_argument("--keep", type=Path, default=Path("var/soak"), help="for what has failed")
    arguments = parser.parse_args()
    configure("critical")
    deadline = time.monotonic() + arguments.minutes * 60
    parts = ["power", "kill"] if arguments.part == "all" else [arguments.part]
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        if "power" in parts and not soak_power_loss(
            seed, deadline, arguments.share, arguments.keep
        ):
            break
        if "kill" in parts and not soak_kills(seed, arguments.kills, deadline):
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
