"""Change the product in one place after the other; the named test must fail each time.

Without arguments all mutations of tests/mutations are tried.  Exits with 1 if one survives or
no longer applies.
"""

import argparse
import datetime
import fnmatch
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.mutations import evidence
from tests.mutations.campaign import TIMEOUT, Campaign, Fate, Judgement, shard, shard_of_day
from tests.mutations.data import DIRECTORY, Mutation, MutationError, read_mutations
from tests.mutations.moving import Moves
from tests.mutations.named_tests import require_test
from tests.mutations.running import preload, require_place


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("scripts/mutate", description=__doc__)
    made.add_argument(
        "--points", nargs="+", default=["*"], help="ids of points, rules, or patterns"
    )
    made.add_argument("--directory", type=Path, default=DIRECTORY, help="where the data is")
    made.add_argument("--shard", default="1/1", metavar="I/N", help="only part I of N")
    made.add_argument(
        "--shard-of-day", type=int, metavar="N", help="the part that is the day's, of N parts"
    )
    made.add_argument(
        "--day", type=datetime.date.fromisoformat, help="which day (YYYY-MM-DD; today)"
    )
    made.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    made.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds; longer is caught")
    made.add_argument("--check", action="store_true", help="only see whether all apply")
    made.add_argument(
        "--moved", action="store_true", help="only write anew where what has moved is now"
    )
    made.add_argument(
        "--table", type=Path, metavar="FILE", help="only write which test proves which point"
    )
    made.add_argument("--verbose", action="store_true", help="name the caught ones too")
    return made


def selected(options: argparse.Namespace) -> list[Mutation]:
    """The mutations that the options ask for, in the order in which they are tried."""
    found = [
        mutation
        for mutation in read_mutations(options.directory)
        if any(fnmatch.filter(mutation.denied, pattern) for pattern in options.points)
    ]
    if options.shard_of_day:
        today = options.day or datetime.datetime.now(datetime.UTC).date()
        return shard_of_day(found, options.shard_of_day, today)
    index, count = map(int, options.shard.split("/"))
    return shard(found, index, count)


def check(mutations: Sequence[Mutation]) -> list[str]:
    """What is wrong with those that do not apply."""
    wrong = []
    # Those of one module one after the other, which is parsed once then.
    for mutation in sorted(mutations, key=lambda mutation: mutation.at):
        try:
            require_place(mutation)
            require_test(mutation)
        except MutationError as error:
            wrong.append(f"{mutation}: {error}")
    return wrong


def report(judgements: Sequence[Judgement], wanted: int) -> int:
    """Print the figures; the exit status."""
    fates = Counter(judgement.fate for judgement in judgements)
    told = ", ".join(f"{fates[fate]} {fate.value}" for fate in Fate if fates[fate])
    print(f"{len(judgements)} of {wanted} mutations: {told or 'none tried'}")
    return int(any(not fate.is_good for fate in fates))


def main(arguments: Sequence[str]) -> int:
    options = parser().parse_args(arguments)
    if options.table:
        wrong = evidence.write_table(options.table)
        print("\n".join([*wrong, f"{options.table}: {len(wrong)} mistakes"]))
        return int(bool(wrong))
    if options.moved:
        moves = Moves()
        moves.follow(options.directory)
        figures = f"{len(moves.told)} moved, {len(moves.lost)} not found"
        print("\n".join([*moves.told, *moves.lost, figures]))
        return int(bool(moves.lost))
    mutations = selected(options)
    if options.check:
        wrong = check(mutations)
        print("\n".join([*wrong, f"{len(mutations)} mutations, {len(wrong)} do not apply"]))
        return int(bool(wrong))

    def tell(judgement: Judgement) -> None:
        if options.verbose or judgement.fate is not Fate.CAUGHT:
            print(judgement, flush=True)

    preload()
    campaign = Campaign(options.jobs, tell, options.timeout)
    return report(campaign.judge(mutations), len(mutations))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
