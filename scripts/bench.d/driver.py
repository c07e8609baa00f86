"""Runs the benches of this directory and prints each figure with its target."""

import argparse
import json
import platform
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path

from harness import BUILD, HERE, TRIAL, UNPROTECTED, Figure, Stolen, syncs_of

sys.path.insert(0, str(HERE.parents[1]))  # some benches share inputs with the tests

SHARED = {
    *("authenticated", "bare", "broker", "driver", "harness", "recorded", "sampling", "served"),
    *("sessions", "streams", "turns"),
}

SYNC = 1024


def benches() -> list[str]:
    """The names of all benches."""
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem not in SHARED)


def line(figure: Figure) -> str:
    """One figure as a person reads it; a missed target says so, and where the time went."""
    value = f"{figure.value:,.3g}" if figure.value < 1000 else f"{figure.value:,.0f}"
    text = f"  {figure.name}: {value} {figure.unit}"
    if figure.target is not None:
        wanted = f"{'at most' if figure.at_most else 'at least'} {figure.target:.4g}"
        text += f"   (target {wanted}: {'met' if figure.met else 'MISSED'})"
    more = [figure.note] if figure.note else []
    more += [f"level NONE, which {UNPROTECTED} allows"] if figure.unprotected else []
    if not figure.quiet:
        more.append(f"not quiet: {figure.stolen:.0%} of the processors' time was stolen")
    return "\n      ".join([text, *more, *figure.profile])


def measure(name: str) -> list[Figure] | None:
    """Run one bench, and print each figure when it is there; None when it failed."""
    BUILD.mkdir(parents=True, exist_ok=True)
    before, watch = syncs_of(BUILD, SYNC, 0.3), Stolen()
    print(f"{name}   (raw sync of 1 KiB, p50: {before.p50_us:,.0f} µs)", flush=True)
    figures: list[Figure] = []
    try:
        for each in import_module(name).run():
            figure = replace(each, stolen=watch.share) if each.stolen is None else each
            print(line(figure), flush=True)
            figures.append(figure)
    except Exception:  # the other benches are run all the same
        traceback.print_exc()
        return None
    share, after = watch.share, syncs_of(BUILD, SYNC, 0.3)
    told = f"stolen processor time {share:.1%}; raw sync of 1 KiB, p50: {after.p50_us:,.0f} µs"
    print(f"  ({told}{'; A TRIAL: no figure means anything' * TRIAL})", flush=True)
    return figures


def report(results: dict[str, list[Figure] | None]) -> str:
    """The last line: how many figures, how many missed, which benches failed."""
    figures = [figure for found in results.values() if found for figure in found]
    missed = sum(not figure.met for figure in figures)
    failed = [name for name, found in results.items() if found is None]
    text = f"{len(figures)} figures, {missed} missed"
    noisy = sum(not figure.quiet for figure in figures)
    text += f", {noisy} not quiet" if noisy else ""
    return f"{text}; failed: {', '.join(failed)}" if failed else text


def write_json(path: Path, results: dict[str, list[Figure] | None]) -> None:
    """Write all figures, with what machine they are from."""
    benches = {
        name: [{**asdict(figure), "met": figure.met} for figure in found or []]
        for name, found in results.items()
    }
    machine = {"python": platform.python_version(), "system": platform.platform()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": machine, "benches": benches}, indent=1) + "\n", "utf-8")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("scripts/bench", description=__doc__)
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="a bench (all, when none is named)"
    )
    parser.add_argument("--list", action="store_true", help="name the benches and stop")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(benches())
    if unknown:
        parser.error(
            f"no such bench: {', '.join(sorted(unknown))}; there are {', '.join(benches())}"
        )
    if options.list:
        print("\n".join(benches()))
        return 0
    results = {name: measure(name) for name in options.names or benches()}
    print(report(results))
    if options.json:
        write_json(options.json, results)
    return int(None in results.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
