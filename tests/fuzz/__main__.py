"""The command line of scripts/fuzz."""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.fuzz.campaign import Report
from tests.fuzz.target import Oracles
from tests.fuzz.targets import CRASHES, TARGETS, fuzz, inputs_of
from tests.fuzz.targets_security import LEFT_OUT


def replay(name: str, path: Path) -> None:
    """Feed one written input again, with the logs shown; raises Violation."""
    octets = bytes.fromhex(path.read_text("ascii"))
    with TARGETS[name].open() as run:
        print(Oracles(TARGETS[name].declared).feed(run, octets))


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("scripts/fuzz", description=__doc__)
    parser.add_argument("targets", metavar="TARGET", nargs="*", help="all, when none is named")
    parser.add_argument("--inputs", type=int, default=2_000_000, help="of all targets together")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other inputs")
    parser.add_argument("--jobs", type=int, default=1, help="targets that run at a time")
    parser.add_argument("--list", action="store_true", help="name the targets and stop")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="feed TARGET this input")
    options = parser.parse_args(given)
    unknown = set(options.targets) - TARGETS.keys()
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if options.replay and len(options.targets) != 1:
        parser.error("--replay needs the TARGET")
    return options


def main(given: Sequence[str]) -> int:
    options = arguments(given)
    names = options.targets or list(TARGETS)
    if LEFT_OUT:
        print(LEFT_OUT, file=sys.stderr)
    if options.list:
        print("\n".join(TARGETS))
        return 0
    if options.replay:
        replay(names[0], options.replay)
        return 0
    shares = inputs_of(names, options.inputs)
    reports = []
    with ProcessPoolExecutor(options.jobs, max_tasks_per_child=1) as pool:
        running = [pool.submit(fuzz, name, options.seed, shares[name]) for name in names]
        for each in running:
            reports.append(each.result())
            print(reports[-1].line, flush=True)
    return summary(reports)


def summary(reports: Sequence[Report]) -> int:
    """The last lines; 1 when there was a violation."""
    violations = [line for report in reports for line in report.crashes]
    print(f"{sum(report.inputs for report in reports):,} inputs, {len(violations)} violations")
    for line in violations:
        print(f"  {CRASHES / line}")
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
