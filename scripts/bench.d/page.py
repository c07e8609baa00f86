"""Writes docs/performance.md: one run of one commit, with what is missed and why.

The prose is in page.md; the rows are those of the catalogue. What an interrupted run has measured
is kept in var/bench/page, by commit, and not measured again.
"""

import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from catalogue import ROWS, TABLES
from checkouts import git
from figures import FAILED, Figure
from harness import BUILD, HERE, TRIAL
from kept import Kept
from machine import Machine, this_machine
from measuring import BUSY, OVER, Outcome, left_out, measure, report, told
from subjects.row import Table

ROOT = HERE.parents[1]
TEMPLATE = HERE / "page.md"
PAGE = Path("docs/performance.md")
BUDGET = 80 * 60.0
"""Seconds after which no further row begins; the longest takes some minutes."""


def order() -> list[str]:
    """The benches in the order of the page."""
    return list(dict.fromkeys(row.bench for row in ROWS.values()))


def main(again: Sequence[str]) -> int:
    """Measure what is not kept, and write the page."""
    commit, changed = commit_of(ROOT)
    if changed and not TRIAL:
        print(f"the page is of one commit: commit or remove first {', '.join(changed)}")
        return 2
    kept = Kept(BUILD / "page" / f"{commit}{'-trial' * TRIAL}", this_machine(BUILD))
    outcomes = gathered(kept, again, BUDGET)
    written = ROOT / PAGE if not TRIAL else BUILD / "trial.md"
    written.write_text(rendered(TEMPLATE.read_text("utf-8"), commit, outcomes), "utf-8")
    print(f"{report(outcomes)}; {written.name} is written")
    return int(any(figure.failed for each in outcomes for figure in each.figures))


def gathered(kept: Kept, again: Sequence[str], budget: float) -> list[Outcome]:
    """An outcome of each bench; those that the time does not suffice for are left out."""
    found = {bench: kept.load(bench) for bench in order() if bench not in again}
    spent = sum(each.seconds for each in found.values() if each is not None)
    end = time.monotonic() + budget - spent
    outcomes = []
    for bench in order():
        outcome = found.get(bench)
        if outcome is None and time.monotonic() < end:
            outcome = measure(bench, end)
            kept.save(outcome)
        outcomes.append(outcome or left_out(bench, OVER))
    return outcomes


def commit_of(root: Path) -> tuple[str, list[str]]:
    """What is checked out, and which files are not as they are in it, the page left aside."""
    commit = git(root, "rev-parse", "--short=12", "HEAD")
    status = git(root, "status", "--porcelain", "--", ".", f":!{PAGE}")
    return commit, [line.split(maxsplit=1)[1] for line in status.splitlines()]


def rendered(template: str, commit: str, outcomes: Sequence[Outcome]) -> str:
    """The page: each line of the template that is a place gets what belongs there."""
    figures = {figure.name: figure for each in outcomes for figure in each.figures}
    noisy = {figure.name for each in outcomes if each.busy > BUSY for figure in each.figures}
    places = {f"rows {table.key}": rows_of(table, figures, noisy) for table in TABLES}
    places |= {"run": run_of(commit, outcomes), "missed": missed_of(figures)}
    lines = []
    for line in template.splitlines():
        place = line.removeprefix("{{").removesuffix("}}")
        lines.append(places.pop(place) if line == f"{{{{{place}}}}}" else line)
    if places:
        raise ValueError(f"the template has no place for {', '.join(places)}")
    return "\n".join(lines).rstrip() + "\n"


def rows_of(table: Table, figures: Mapping[str, Figure], noisy: set[str]) -> str:
    """A table in Markdown."""
    lines = ["| What | Measured | Target |", "|---|---|---|"]
    for row in table.rows:
        figure = figures[row.name]
        cells = (marked(figure), measured(figure, figure.name in noisy), wanted(figure))
        lines.append(f"| {' | '.join(map(escaped, cells))} |")
    return "\n".join(lines)


def escaped(text: str) -> str:
    """What may stand in a cell."""
    return text.replace("|", "\\|")


def marked(figure: Figure) -> str:
    return f"{figure.name} *n*" if figure.unprotected else figure.name


def measured(figure: Figure, noisy: bool) -> str:
    if figure.missing:
        return figure.missing.replace(FAILED, f"**{FAILED}**", 1)
    value = told(figure).removesuffix(" times")
    note = f" ({figure.note})" if figure.note else ""
    return f"{value}{note}{'' if figure.quiet and not noisy else ', **not quiet**'}"


def wanted(figure: Figure) -> str:
    """The target and whether it is missed, or why there is none."""
    if figure.target is None:
        return figure.why or "of the run"
    target = f"{'at most ' * figure.at_most}{figure.target:,.4g}"
    return target if figure.met or figure.missing else f"{target}, **missed**"


def run_of(commit: str, outcomes: Sequence[Outcome]) -> str:
    """Which commit, when, on what machine, and how quiet that was."""
    taken = [each for each in outcomes if each.day]
    if not taken:
        return f"Nothing was measured of commit `{commit}`."
    minutes = sum(each.seconds for each in taken) / 60
    return (
        f"{'A TRIAL: no figure means anything. ' * TRIAL}"
        f"All figures are of one run of commit `{commit}`, {days_of(taken)}, which took "
        f"{minutes:.0f} minutes, on a machine with {about(taken[0].machine)}, and "
        f"{statistics.median(each.syncs for each in taken):,.0f} `fdatasync` of 1 KiB a second. "
        f"{quietness(taken)}\n\n{counts(outcomes)}"
    )


def about(machine: Machine) -> str:
    return f"processors: {machine.processors}; {machine.kernel}; Python {machine.python}; " + (
        f"data on {machine.file_system}"
    )


def days_of(taken: Sequence[Outcome]) -> str:
    days = sorted({each.day for each in taken})
    first, last = (f"{date.fromisoformat(day):%d %B %Y}".lstrip("0") for day in (days[0], days[-1]))
    return first if first == last else f"from {first} to {last}"


def quietness(taken: Sequence[Outcome]) -> str:
    most_busy, most_stolen = max(each.busy for each in taken), max(each.stolen for each in taken)
    quiet = all(each.quiet for each in taken)
    return (
        f"It was {'' if quiet else '**not** '}quiet: before each bench other programs used at most "
        f"{most_busy:.0%} of the processors, and at most {most_stolen:.1%} were stolen during one."
    )


def counts(outcomes: Sequence[Outcome]) -> str:
    figures = [figure for each in outcomes for figure in each.figures]
    there = [each for each in figures if not each.missing]
    aimed = [each for each in there if each.target is not None]
    missed = sum(not each.met for each in aimed)
    failed = sum(each.failed for each in figures)
    return (
        f"Of {len(figures)} rows {len(aimed) - missed} meet their target and {missed} miss it; "
        f"{len(there) - len(aimed)} have none, {failed} failed, and "
        f"{len(figures) - len(there) - failed} were not measured."
    )


def missed_of(figures: Mapping[str, Figure]) -> str:
    """Each row that misses its target, with where the time goes."""
    missed = [each for each in figures.values() if not each.met and not each.missing]
    if not missed:
        return "No row misses its target."
    return "\n\n".join(map(explained, missed))


def explained(figure: Figure) -> str:
    value = told(figure).removesuffix(" times")
    head = f"**{figure.name}**: {value} instead of {wanted(figure).removesuffix(', **missed**')}."
    if not figure.profile:
        return f"{head} No profile of it was taken."
    return "\n".join([head, "", "```", *figure.profile, "```"])
