"""Try every mutation; each test must notice its own, and docs/evidence.md tells what came of it."""

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.mutations.campaign import Campaign, Fate, Judgement, block
from tests.mutations.data import DIRECTORY, read_mutations
from tests.mutations.running import preload
from tests.support.soak.soak_record import (
    Goal,
    Part,
    Record,
    main_of,
    on_one_line,
    options,
    run_parts,
)

EVIDENCE = "evidence.md"
"""Beside the page of long runs; what follows this mark is written by the run."""
MARK = "<!-- What follows is written by `scripts/soak mutations`. -->\n"
PATIENCE = 60.0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("scripts/soak mutations", description=__doc__)
    made.add_argument("--directory", type=Path, default=DIRECTORY, help="where the data is")
    made.add_argument("--shards", type=int, default=60, help="in so many parts (%(default)s)")
    made.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time")
    made.add_argument(
        "--timeout", type=float, default=PATIENCE, help="seconds; longer is caught (%(default)s)"
    )
    return options(made)


def part_of(judgements: Sequence[Judgement]) -> Part:
    """Figures by fate; all but those that were caught are failures, those by time are noted."""
    fates = Counter(judgement.fate for judgement in judgements)
    figures = {"mutations": float(len(judgements))}
    figures |= {fate.value: float(fates[fate]) for fate in Fate if fates[fate]}
    told = [judgement for judgement in judgements if judgement.fate is not Fate.CAUGHT]
    failures = [str(judgement) for judgement in told if not judgement.fate.is_good]
    notes = [str(judgement) for judgement in told if judgement.fate.is_good]
    return Part(figures, failures=failures, notes=notes)


def tell(judgement: Judgement) -> None:
    if judgement.fate is not Fate.CAUGHT:
        print(judgement, flush=True)


def write_evidence(page: Path, record: Record) -> None:
    """Put the figures of the run behind the mark of a page, if there is one."""
    if not page.is_file():
        return
    before, mark, _ = page.read_text("utf-8").partition(MARK)
    if mark:
        lines = [f"{record.told}.", f"{record.done} were done."]
        lines += [f"Commit {record.commit}, {record.state.ended}: `{on_one_line(record.command)}`."]
        told = [on_one_line(line) for line in [*record.failures, *record.notes]]
        text = "\n".join([*lines, "", *(f"- {line}" for line in told)])
        page.write_text(f"{before}{mark}\n{text}".rstrip() + "\n", "utf-8")


def main(words: Sequence[str]) -> int:
    made = parser()
    given = made.parse_args(words)
    record = Record(made, given, Goal(given.shards), neutral=["jobs", "timeout"])
    mutations = read_mutations(given.directory)
    names = [f"{index}/{given.shards}" for index in range(1, given.shards + 1)]
    campaign = Campaign(given.jobs, tell, given.timeout)
    preload()

    def work(name: str) -> Part:
        index, count = map(int, name.split("/"))
        print(f"part {name}", flush=True)
        return part_of(campaign.judge(block(mutations, index, count)))

    status = run_parts(record, names, work)
    if record.page:
        write_evidence(record.page.with_name(EVIDENCE), record)
    return status


if __name__ == "__main__":
    main_of(main)
