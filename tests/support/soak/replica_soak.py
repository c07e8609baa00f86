"""Faults of every kind in a cluster of two nodes and three servers of a log, all under load.

Machines are network namespaces, and all programs real ones. Senders by RPC, HTTP, /api/v1 with keys
and through another queue manager, transactions, and readers in two phases go on while processes are
killed and paused, machines cut off, disks filled and clocks set. In the end every message that was
acknowledged must be there once, in order, and all that docs/failover.md promises be kept. Each part
has a cluster of its own, and some of the faults of the seed. It takes root.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.cluster.checker import PROMPT
from tests.support.cluster.log_servers import SERVER
from tests.support.cluster.machines import alone, why_not
from tests.support.queue_manager import MEMORY
from tests.support.soak.soak_record import ROOT, Goal, Part, Record, options, run_parts

TOGETHER = 10
_BEFORE_AND_AFTER, _FAULT = 600, 150
"""Seconds in which a part ends: with its start and its judgement, and for each fault."""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("scripts/soak replica", description=__doc__)
    made.add_argument("--faults", type=int, default=1000, help="how many (%(default)s)")
    made.add_argument("--seed", type=int, default=0, help="chooses them (%(default)s)")
    made.add_argument(
        "--together", type=int, default=TOGETHER, help="faults of a part (%(default)s)"
    )
    made.add_argument(
        "--prompt",
        type=float,
        default=PROMPT,
        help="seconds after a fault in which something is answered again (%(default)g); more where "
        "the machine does other work besides",
    )
    return options(made)


def storm(
    seed: int, first: int, count: int, kept: Path | None = None, prompt: float = PROMPT
) -> dict[str, Any]:
    """What came of so many faults of a seed, from one on; what programs said is kept if need be."""
    with tempfile.TemporaryDirectory(prefix="rpcqm-soak-", dir=MEMORY) as name:
        outcome = Path(name) / "outcome.json"
        program = [sys.executable, "-m", "tests.support.cluster.storm"]
        command = alone([*program, seed, first, count, outcome, "--prompt", prompt])
        limit = _BEFORE_AND_AFTER + _FAULT * count
        ended = subprocess.run(command, cwd=ROOT, check=False, timeout=limit)
        if not outcome.exists():
            return {"problems": [f"the storm ended with {ended.returncode}"]}
        told: dict[str, Any] = json.loads(outcome.read_text("utf-8"))
        if told["problems"] and kept is not None:
            shutil.copytree(name, kept, dirs_exist_ok=True)
        return told


def part_of(told: dict[str, Any]) -> Part:
    """The figures of a storm."""
    names = ("faults", "acknowledged", "taken", "lost", "twice")
    part = Part({name: float(told.get(name, 0)) for name in names}, failures=told["problems"])
    part.most["seconds without an answer"] = max(told.get("silences", {}).values(), default=0.0)
    part.notes = [f"{what}: {times} times" for what, times in told.get("ends", {}).items()]
    return part


def last_line(record: Record) -> str:
    """What it all came to."""
    figures = {name: int(count) for name, count in record.figures.items()}
    return (
        f"{figures.get('faults', 0)} faults, {figures.get('acknowledged', 0)} acknowledged, "
        f"{figures.get('lost', 0)} lost, {figures.get('twice', 0)} twice"
    )


def main(words: Sequence[str] | None = None) -> int:
    made = parser()
    given = made.parse_args(words)
    if SERVER is None:
        print("This needs nats-server: scripts/setup test installs it.", file=sys.stderr)
        return 2
    if reason := why_not():
        print(f"This needs networks of its own, as root: {reason}", file=sys.stderr)
        return 2
    parts = [str(first) for first in range(0, given.faults, given.together)]
    record = Record(made, given, Goal(len(parts)), seed=given.seed, neutral=["prompt"])

    def work(name: str) -> Part:
        first = int(name)
        count = min(given.together, given.faults - first)
        kept = given.state / f"replica-{given.seed}-{first}"
        part = part_of(storm(given.seed, first, count, kept, given.prompt))
        part.failures = [f"from fault {first}: {problem}" for problem in part.failures]
        return part

    status = run_parts(record, parts, work)
    print(last_line(record))
    return status
