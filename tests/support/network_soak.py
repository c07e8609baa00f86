"""Message by message over networks that fail, between queue managers that die.

python -m tests.support.network_soak [--seeds N] [--first N] [--messages N] [--pause FILE]
python -m tests.support.network_soak --processes|--http [--seeds N] [--first N] [--kills N]
                                     [--messages N]

Each seed sends messages from three queue managers by two routers to several destinations each,
transactional, recoverable and express, with tracing, journals, dead letters, acknowledgements and
times to live. Connections are cut, damaged, delayed, refused and reordered, addresses cannot be
reached, quotas are full for a while, only routers get through to the other site, they lose order
acknowledgements, and every machine dies at random. In the end a judge explains what became of each
message at each destination; none may be lost, doubled, wrongly dead or stuck. Simulated clock and
network: a seed is a run.

With --processes two are real ones, killed by a signal, with a failing proxy between them; with
--http they send by HTTP, at least so many messages.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rpcqm.base import log
from tests.support import network_processes
from tests.support.network_holdings import look
from tests.support.network_judge import Judge
from tests.support.network_story import Story
from tests.support.queue_manager import MEMORY


@dataclass
class Outcome:
    """What a seed came to; `problems` is empty when all is well."""

    seed: int
    happened: Counter[str]
    fates: Counter[str]
    problems: list[str]


def run_seed(seed: int, messages: int) -> Outcome:
    """Let that many messages be sent, and everything come to rest; then judge."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        story = Story(Path(directory), seed)
        story.play(messages)
        story.end()
        judge = judged(story)
        happened = story.happened + Counter(seconds=story.world.clock.monotonic() // 1000)
        story.world.stop()
    return Outcome(seed, happened, judge.fates, judge.problems)


def judged(story: Story) -> Judge:
    """The judge of a story that has ended."""
    letters = story.ledger.letters.items()
    held = look(story.world, {each.identifier: number for number, each in letters})
    judge = Judge(story.ledger, held, story.world.destinations, story.now)
    judge.judge()
    return judge


def simulated(seed: int, arguments: argparse.Namespace) -> tuple[list[str], str]:
    """Run a seed; its problems, and what it was like."""
    outcome = run_seed(seed, arguments.messages)
    return outcome.problems, f"{_counted(outcome.happened)}: {_counted(outcome.fates)}"


def with_processes(seed: int, arguments: argparse.Namespace) -> tuple[list[str], str]:
    """The same with real processes, whose timing no seed decides."""
    outcome = network_processes.run_seed(seed, arguments.kills)
    return _told(outcome)


def by_http(seed: int, arguments: argparse.Namespace) -> tuple[list[str], str]:
    """Those send over HTTP."""
    wire = network_processes.HTTP
    return _told(network_processes.run_seed(seed, arguments.kills, wire, arguments.messages))


def _told(outcome: network_processes.Outcome) -> tuple[list[str], str]:
    about = f"{outcome.messages} messages, {outcome.kills} kills, {_counted(outcome.happened)}"
    return outcome.problems, about


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Soak of the binary protocol.")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--kills", type=int, default=20, help="with --processes or --http")
    parser.add_argument("--pause", type=Path, help="begin no seed while this file is there")
    return parser.parse_args()


def main() -> int:
    """Run the seeds, one line each; 1 when a seed has problems."""
    arguments = _arguments()
    log.configure("critical")
    run = by_http if arguments.http else with_processes if arguments.processes else simulated
    failed = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        while arguments.pause is not None and arguments.pause.exists():
            time.sleep(5)
        started = time.monotonic()
        problems, about = run(seed, arguments)
        failed += bool(problems)
        seconds = time.monotonic() - started
        print(
            f"seed {seed}: {'; '.join(problems) or 'well'}, {about} in {seconds:.1f} s", flush=True
        )
    print(f"{arguments.seeds - failed} of {arguments.seeds} seeds are well")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
