"""Kill what an archive consists of behind each log of Spark: each message is kept once, none stays.

A part sends waves of messages into a queue that `rpcqm pipeline archive --follow` empties, a batch
for each wave. Behind a log of a batch it kills the driver with its Java, the Python workers, or the
queue manager, which it starts again. Then the archive runs once more until the queue is empty.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rpcqm.client.names import format_name
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.testing import PrivateQueueManager, private_queue_manager
from tests.support.soak.soak_record import Goal, Part, Record, main_of, options, run_parts

QUEUE = "archived"
DRIVER, WORKERS, QUEUE_MANAGER = "driver", "workers", "queue manager"
VICTIMS = (DRIVER, WORKERS, QUEUE_MANAGER)
LOGS = {
    "offsets": "checkpoint/offsets",
    "sink": "archive/_spark_metadata",
    "commits": "checkpoint/commits",
}
"""Where Spark writes a file for each batch, in the order in which it does."""
REMOVAL = "removal"
"""What follows behind the commits: the next batch is planned, and this one leaves the queue."""
PATIENCE = 240.0
_POLL = 0.002
_DAEMON = b"pyspark.daemon"


class NotSeenError(Exception):
    """What a part waits for does not come."""


class Archive:
    """One queue, and the directory that it is archived to."""

    def __init__(self, machine: PrivateQueueManager, directory: Path, wave: int) -> None:
        self.machine = machine
        self.directory = directory
        self._wave = wave
        self.sent: list[str] = []
        self.driver: subprocess.Popen[bytes] | None = None

    # The queue

    def send(self) -> None:
        """One wave."""
        bodies = [f"{len(self.sent) + number:06}" for number in range(self._wave)]
        with (
            self.machine.client() as client,
            client.open_sender(format_name(QUEUE)) as sender,
        ):
            for body in bodies:
                sender.send(OutgoingMessage(body.encode()))
        self.sent += bodies

    def left(self) -> int:
        """How many messages are in the queue, whoever holds them."""
        shown = self.machine.run("queue", "show", QUEUE, "--json").stdout
        return int(json.loads(shown)["messages"])

    def visible(self) -> int:
        """How many nobody holds."""
        with (
            self.machine.client() as client,
            client.open_bulk_reader(format_name(QUEUE), peek_only=True) as reader,
        ):
            return sum(1 for _ in reader.visible())

    # Spark

    @property
    def log(self) -> str:
        """What the driver has said."""
        return (self.directory / "driver.log").read_text("utf-8", "replace")

    @property
    def has_ended(self) -> bool:
        return self.driver is not None and self.driver.poll() is not None

    def command(self, *more: str) -> list[str]:
        words = ["--socket", str(self.machine.socket), "--queue", QUEUE, "--master", "local[2]"]
        words += ["--output", str(self.directory)]
        words += ["--checkpoint", str(self.directory / "checkpoint"), *more]
        return [sys.executable, "-m", "rpcqm", "pipeline", "archive", *words]

    def start(self) -> None:
        """A driver in a process group of its own, with Java."""
        with (self.directory / "driver.log").open("ab") as log:
            self.driver = subprocess.Popen(
                self.command("--follow"), stdout=log, stderr=log, start_new_session=True
            )

    def kill_driver(self) -> None:
        """Does nothing where it has ended by itself."""
        driver, self.driver = self.driver, None
        if driver is not None:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()

    def kill_workers(self) -> int:
        """Kill the Python processes that the driver's daemons have forked; how many."""
        assert self.driver is not None
        found = list(_workers(self.driver.pid))
        for each in found:
            os.kill(each, signal.SIGKILL)
        return len(found)

    def finish(self) -> None:
        """Archive what is there, as often as something goes wrong because of the kill."""
        self.kill_driver()
        run = subprocess.run(self.command(), capture_output=True, timeout=PATIENCE, check=False)
        if run.returncode:
            raise NotSeenError(f"archive ended with {run.returncode}: {run.stderr.decode()[-500:]}")

    # What is kept

    def has(self, log: str, batch: int) -> bool:
        return (self.directory / LOGS[log] / str(batch)).exists()

    def kept(self) -> list[str]:
        """The bodies in the files that the sink's log names, as Spark reads them."""
        import pyarrow.parquet

        bodies: list[str] = []
        for path in self._files():
            column = pyarrow.parquet.read_table(path, columns=["body"]).column("body")
            bodies += [octets.decode() for octets in column.to_pylist()]
        return sorted(bodies)

    def _files(self) -> Iterator[str]:
        for log in sorted((self.directory / LOGS["sink"]).glob("[0-9]*")):
            for line in log.read_text("utf-8").splitlines()[1:]:
                yield unquote(urlsplit(json.loads(line)["path"]).path)


def _workers(root: int) -> Iterator[int]:
    """Processes below one whose parent is a daemon of pyspark."""
    parents = dict(_processes())
    for process, parent in parents.items():
        if _is_below(process, root, parents) and _DAEMON in _words(process) & _words(parent):
            yield process


def _processes() -> Iterator[tuple[int, int]]:
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            told = each.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        yield int(each.parent.name), int(told[1])


def _words(process: int) -> set[bytes]:
    try:
        return set(Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0"))
    except OSError:
        return set()


def _is_below(process: int, root: int, parents: dict[int, int]) -> bool:
    while process in parents:
        process = parents[process]
        if process == root:
            return True
    return False


def await_seen(archive: Archive, seen: Callable[[], object], what: str) -> None:
    """Look all the time, so that the kill comes in front of the next log."""
    give_up = time.monotonic() + PATIENCE
    while not seen():
        if time.monotonic() > give_up or archive.has_ended:
            raise NotSeenError(f"{what} did not come: {archive.log[-500:]}")
        time.sleep(_POLL)


def boundary(archive: Archive, log: str, batch: int) -> None:
    """Wait until a batch is behind a log; wave after wave is sent on the way."""
    for before in range(batch):
        await_seen(archive, partial(archive.has, "commits", before), f"commit {before}")
        archive.send()
    if log != REMOVAL:
        await_seen(archive, lambda: archive.has(log, batch), f"{log} {batch}")
        return
    await_seen(archive, lambda: archive.has("commits", batch), f"commit {batch}")
    await_seen(archive, lambda: archive.visible() < len(archive.sent), "the first removal")


def killed(archive: Archive, victim: str) -> int:
    """Kill it; how many processes that were."""
    if victim == DRIVER:
        archive.kill_driver()
        return 1
    if victim == WORKERS:
        return archive.kill_workers()
    archive.machine.kill()
    archive.machine.start()
    return 1


def part_of(name: str, wave: int) -> Part:
    """Kill what the name says, go on, and look at what is kept and what is left."""
    victim, _, place = name.partition(" behind ")
    log, _, batch = place.partition(" ")
    part = Part()
    with (
        tempfile.TemporaryDirectory(prefix="rpcqm-archive-") as directory,
        private_queue_manager() as machine,
    ):
        machine.run("queue", "create", QUEUE)
        archive = Archive(machine, Path(directory), wave)
        try:
            archive.send()
            archive.start()
            boundary(archive, log, int(batch))
            part.figures["processes killed"] = float(killed(archive, victim))
            archive.send()
            archive.finish()
        finally:
            archive.kill_driver()
        kept, sent, left = archive.kept(), archive.sent, archive.left()
    part.figures["messages"] = float(len(sent))
    if kept != sent:
        lost, twice = sorted({*sent} - {*kept}), len(kept) - len({*kept})
        part.failures.append(f"{name}: {len(lost)} are not kept, {twice} are kept twice")
    if left:
        part.failures.append(f"{name}: {left} are left in the queue")
    return part


def names(batches: int) -> list[str]:
    """The parts: each victim behind each log of each batch."""
    return [
        f"{victim} behind {log} {batch}"
        for batch in range(batches)
        for log in (*LOGS, REMOVAL)
        for victim in VICTIMS
    ]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("scripts/soak archive", description=__doc__)
    made.add_argument("--batches", type=int, default=2, help="logs of so many (%(default)s)")
    made.add_argument("--wave", type=int, default=25, help="messages of a batch (%(default)s)")
    return options(made)


def main(words: Sequence[str] | None = None) -> int:
    made = parser()
    given = made.parse_args(words)
    parts = names(given.batches)
    record = Record(made, given, Goal(len(parts)))

    def work(name: str) -> Part:
        print(name, flush=True)
        return part_of(name, given.wave)

    return run_parts(record, parts, work)


if __name__ == "__main__":
    main_of(main)
