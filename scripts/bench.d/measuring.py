"""Runs one bench, and prints each figure when it is there."""

import json
import time
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from catalogue import ROWS, rows_of
from figures import Figure, reason_of, unmeasured, without_value
from harness import BUILD, TRIAL, UNPROTECTED, Stolen, syncs_of
from machine import Machine, busy, this_machine

SYNC = 1024
BUSY = 0.1
"""From this share of used processor time before a bench on its machine was not quiet."""
OVER = "the time of the whole run was over"
Run = Generator[Figure, None, None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one bench has found, and under which circumstances."""

    bench: str
    figures: tuple[Figure, ...]
    seconds: float
    stolen: float
    busy: float
    """Share of the processors that other programs used before it began."""
    syncs: float
    """What the disk alone did then, in a second."""
    day: str
    machine: Machine

    @property
    def quiet(self) -> bool:
        """Whether nobody else used the processors, as far as that can be seen."""
        return self.busy <= BUSY and all(each.quiet for each in self.figures)


def benches() -> list[str]:
    """The names of all benches."""
    return sorted({row.bench for row in ROWS.values()})


def told(figure: Figure) -> str:
    """A value with its unit."""
    value = f"{figure.value:,.3g}" if abs(figure.value) < 1000 else f"{figure.value:,.0f}"
    return f"{value} {figure.unit}"


def line(figure: Figure) -> str:
    """One figure as a person reads it; a missed target says so, and where the time went."""
    if figure.missing:
        return f"  {figure.name}: {figure.missing}"
    text = f"  {figure.name}: {told(figure)}"
    if figure.target is not None:
        wanted = f"{'at most' if figure.at_most else 'at least'} {figure.target:.4g}"
        text += f"   (target {wanted}: {'met' if figure.met else 'MISSED'})"
    elif figure.why:
        text += f"   (no target; {figure.why})"
    more = [figure.note] if figure.note else []
    more += [f"level NONE, which {UNPROTECTED} allows"] if figure.unprotected else []
    if not figure.quiet:
        more.append(f"not quiet: {figure.stolen:.0%} of the processors' time was stolen")
    return "\n      ".join([text, *more, *figure.profile])


def figures_of(name: str, run: Run, end: float | None = None) -> Iterator[Figure]:
    """What a bench finds until the time is over; its other rows say why they have nothing."""
    left = {row.name: None for row in rows_of(name)}
    reason = "its bench has not come to it"
    try:
        with closing(run):
            for each in run:
                left.pop(each.name, None)
                yield each
                if end is not None and time.monotonic() >= end:
                    reason = OVER
                    break
    except Exception as error:  # the other benches are run all the same
        traceback.print_exc()
        yield from (without_value(row, reason_of(error)) for row in left)
    else:
        yield from (unmeasured(row, reason) for row in left)


def used_by_others() -> float:
    """The share of the processors that other programs use; what soon ends is waited for."""
    used = busy()
    return used if used <= BUSY else min(used, busy(3.0))


def measure(name: str, end: float | None = None) -> Outcome:
    """Run a bench, until a time of the monotonic clock if one is given."""
    BUILD.mkdir(parents=True, exist_ok=True)
    used, began = used_by_others(), time.monotonic()
    before, watch = syncs_of(BUILD, SYNC, 0.3), Stolen()
    print(f"{name}   (raw sync of 1 KiB, p50: {before.p50_us:,.0f} µs)", flush=True)
    found: list[Figure] = []
    for each in figures_of(name, import_module(name).run(), end):
        known = each.missing or each.stolen is not None
        row = each if known else replace(each, stolen=watch.share)
        print(line(row), flush=True)
        found.append(row)
    share, after = watch.share, syncs_of(BUILD, SYNC, 0.3)
    text = f"stolen processor time {share:.1%}; raw sync of 1 KiB, p50: {after.p50_us:,.0f} µs"
    print(f"  ({text}{'; A TRIAL: no figure means anything' * TRIAL})", flush=True)
    took, day = time.monotonic() - began, datetime.now(UTC).date().isoformat()
    machine = this_machine(BUILD)
    return Outcome(name, tuple(found), took, share, used, before.per_second, day, machine)


def left_out(name: str, reason: str) -> Outcome:
    """A bench of which nothing was measured."""
    figures = tuple(unmeasured(row.name, reason) for row in rows_of(name))
    return Outcome(name, figures, 0.0, 0.0, 0.0, 0.0, "", this_machine(BUILD))


def report(outcomes: Sequence[Outcome]) -> str:
    """The last line: how many figures, how many missed, how many there are none of."""
    figures = [figure for each in outcomes for figure in each.figures]
    missed = sum(not figure.met and not figure.missing for figure in figures)
    failed = [figure.name for figure in figures if figure.failed]
    text = f"{sum(not figure.missing for figure in figures)} figures, {missed} missed"
    noisy = sum(not figure.quiet for figure in figures)
    text += f", {noisy} not quiet" if noisy else ""
    left = sum(bool(figure.missing) and not figure.failed for figure in figures)
    text += f", {left} not measured" if left else ""
    return f"{text}; failed: {'; '.join(failed)}" if failed else text


def write_json(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write all figures, with what machine they are from."""
    benches = {
        each.bench: [{**asdict(figure), "met": figure.met} for figure in each.figures]
        for each in outcomes
    }
    written = {"machine": asdict(this_machine(path.parent)), "benches": benches}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(written, indent=1) + "\n", "utf-8")
