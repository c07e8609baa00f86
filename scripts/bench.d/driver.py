"""Runs the benches of this directory and prints each figure with its target."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog
from harness import HERE

sys.path.insert(0, str(HERE.parents[1]))  # some benches share inputs with the tests

import against
import page
from measuring import benches, measure, report, write_json


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser("scripts/bench", description=__doc__)
    made.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="a bench (all, when none is named); with --against a row of it, or all of a bench",
    )
    made.add_argument("--list", action="store_true", help="name the benches and stop")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    made.add_argument(
        "--page",
        action="store_true",
        help="measure all of this commit and write docs/performance.md; what an interrupted run "
        "has measured of the commit is kept, unless it is named",
    )
    made.add_argument(
        "--against",
        metavar="COMMIT",
        help="compare what is checked out with COMMIT, by the processor time of the same loads",
    )
    return made


def main(arguments: Sequence[str]) -> int:
    command = parser()
    options = command.parse_args(arguments)
    there = against.names() if options.against else benches()
    if unknown := set(options.names) - set(there):
        command.error(f"no such bench: {', '.join(sorted(unknown))}; there are {', '.join(there)}")
    if options.list:
        print("\n".join(there))
        return 0
    if options.against:
        return against.main(options.against, options.names)
    if options.page:
        return page.main(options.names)
    outcomes = [measure(name) for name in options.names or there]
    print(report(outcomes))
    if options.json:
        write_json(options.json, outcomes)
    return int(any(figure.failed for each in outcomes for figure in each.figures))


if __name__ == "__main__":
    # What queue managers and stores within this process have to say would stand between the rows.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    sys.exit(main(sys.argv[1:]))
