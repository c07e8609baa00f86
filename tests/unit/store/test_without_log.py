"""A store outside of clusters: what it asks of the system did not change when logs came.

The figures are those of the version before (by strace as well): each turn is one write of the same
octets to the database's own log, and one sync of it; one more is at the end.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.crash.disk_images import Event, read_events
from tests.crash.power_loss import run_recorded
from tests.support.preloading import compile_library
from tests.support.store.fixed_workload import TURNS

FIRST = 61
"""Octets of the write that makes a new database."""
OCTETS = 139_231


def of_its_log(events: Iterator[Event]) -> tuple[list[int], int]:
    """The octets of each write to the database's own log, and how often that was synced."""
    opened: dict[int, bytes] = {}
    written: list[int] = []
    synced = 0
    for event in events:
        if event.kind == "o":
            opened[event.descriptor] = event.first
        elif opened.get(event.descriptor, b"").endswith(b".log"):
            written += [len(event.first)] if event.kind == "w" else []
            synced += event.kind == "e"
    return written, synced


def test_a_fixed_workload_is_the_same_writes_and_syncs(tmp_path: Path) -> None:
    recorder, root = compile_library("write_recorder", tmp_path), tmp_path / "root"
    root.mkdir()
    log = tmp_path / "log"
    run_recorded(recorder, root, log, "tests.support.store.fixed_workload", str(root / "data"))
    written, synced = of_its_log(read_events(log))
    assert (len(written), written[0], sum(written)) == (TURNS + 1, FIRST, OCTETS)
    assert synced == TURNS + 2


def test_nothing_of_a_log_is_loaded() -> None:
    code = (
        "import sys, rpcqm.service.run\n"
        "print(*sorted(name for name in sys.modules if name.startswith("
        "('nats', 'asyncpg', 'rpcqm.replica', 'rpcqm.service.cluster.'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
