"""The command line of scripts/fuzz."""

import argparse
import itertools
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.fuzz.campaign import Report
from tests.fuzz.target import Oracles
from tests.fuzz.targets import CRASHES, TARGETS, fuzz, inputs_of
from tests.fuzz.targets_security import LEFT_OUT
from tests.support.soak.soak_record import Goal, Part, Record, main_of, options


def replay(name: str, path: Path) -> None:
    """Feed one written input again, with the logs shown; raises Violation."""
    octets = bytes.fromhex(path.read_text("ascii"))
    with TARGETS[name].open() as run:
        print(Oracles(TARGETS[name].declared).feed(run, octets))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("scripts/fuzz", description=__doc__)
    made.add_argument("targets", metavar="TARGET", nargs="*", help="all, when none is named")
    made.add_argument("--inputs", type=int, default=2_000_000, help="of all targets together")
    made.add_argument("--seed", type=int, default=0, help="another seed, other inputs")
    made.add_argument("--jobs", type=int, default=1, help="targets that run at a time")
    made.add_argument("--list", action="store_true", help="name the targets and stop")
    made.add_argument("--replay", type=Path, metavar="FILE", help="feed TARGET this input")
    return options(made)


def arguments(made: argparse.ArgumentParser, given: Sequence[str]) -> argparse.Namespace:
    found = made.parse_args(given)
    unknown = set(found.targets) - TARGETS.keys()
    if unknown:
        made.error(f"no such target: {', '.join(sorted(unknown))}")
    if found.replay and len(found.targets) != 1:
        made.error("--replay needs the TARGET")
    return found


def main(given: Sequence[str]) -> int:
    made = parser()
    found = arguments(made, given)
    names = found.targets or list(TARGETS)
    if LEFT_OUT:
        print(LEFT_OUT, file=sys.stderr)
    if found.list:
        print("\n".join(TARGETS))
        return 0
    if found.replay:
        replay(names[0], found.replay)
        return 0
    record = Record(made, found, Goal(len(names)), seed=found.seed, neutral=["jobs"])
    return feed(record, names, found)


def feed(record: Record, names: Sequence[str], found: argparse.Namespace) -> int:
    """Run the targets that were not run, so many at a time; 1 when there was a violation."""
    shares = inputs_of(names, found.inputs)
    left = list(itertools.islice(record.waiting(names), found.parts))
    with ProcessPoolExecutor(found.jobs, max_tasks_per_child=1) as pool:
        running = [pool.submit(fuzz, name, found.seed, shares[name]) for name in left]
        for each in as_completed(running):
            report = each.result()
            print(report.line, flush=True)
            record.keep(report.target, part_of(report))
    record.write()
    return record.status()


def part_of(report: Report) -> Part:
    failures = [f"{report.target}: {CRASHES / line}" for line in report.crashes]
    figures = {"inputs": float(report.inputs), "violations": float(len(failures))}
    most = {"ms for an input": report.slowest * 1000, "KiB for one": report.most_traced / 1024}
    return Part(figures, most, failures, seconds=report.seconds)


if __name__ == "__main__":
    main_of(main)
