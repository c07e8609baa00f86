"""Message by message over networks that fail, between queue managers that die.

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
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rpcqm.base import log
from tests.support.network import network_processes
from tests.support.network.network_holdings import look
from tests.support.network.network_judge import Judge
from tests.support.network.network_story import Story
from tests.support.queue_manager import MEMORY
from tests.support.soak.soak_record import Goal, Part, Record, main_of, options, run_parts


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


def simulated(seed: int, arguments: argparse.Namespace) -> tuple[Part, str]:
    """Run a seed; what came of it, and what it was like."""
    outcome = run_seed(seed, arguments.messages)
    figures = {"messages": float(arguments.messages)} | _floats(outcome.fates)
    about = f"{_counted(outcome.happened)}: {_counted(outcome.fates)}"
    return Part(figures, failures=outcome.problems), about


def with_processes(seed: int, arguments: argparse.Namespace) -> tuple[Part, str]:
    """The same with real processes, whose timing no seed decides."""
    return _told(network_processes.run_seed(seed, arguments.kills))


def by_http(seed: int, arguments: argparse.Namespace) -> tuple[Part, str]:
    """Those send over HTTP."""
    wire = network_processes.HTTP
    return _told(network_processes.run_seed(seed, arguments.kills, wire, arguments.messages))


def _told(outcome: network_processes.Outcome) -> tuple[Part, str]:
    about = f"{outcome.messages} messages, {outcome.kills} kills, {_counted(outcome.happened)}"
    figures = {"messages": float(outcome.messages), "kills": float(outcome.kills)}
    return Part(figures | _floats(outcome.happened), failures=outcome.problems), about


def _floats(counter: Counter[str]) -> dict[str, float]:
    return {name: float(count) for name, count in sorted(counter.items())}


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("scripts/soak network", description=__doc__)
    parser.add_argument("--seeds", type=int, default=50, help="how many (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (%(default)s)")
    parser.add_argument("--messages", type=int, default=2000, help="of a seed (%(default)s)")
    parser.add_argument("--processes", action="store_true", help="between two real processes")
    parser.add_argument("--http", action="store_true", help="the same over HTTP")
    parser.add_argument("--kills", type=int, default=20, help="with --processes or --http")
    parser.add_argument("--pause", type=Path, help="begin no seed while this file is there")
    return options(parser)


def main(words: Sequence[str] | None = None) -> int:
    """Run the seeds, one line each; 1 when a seed has problems."""
    parser = _parser()
    arguments = parser.parse_args(words)
    log.configure("critical")
    run = by_http if arguments.http else with_processes if arguments.processes else simulated
    variant = " --http" if arguments.http else " --processes" if arguments.processes else ""
    record = Record(
        parser,
        arguments,
        Goal(arguments.seeds),
        seed=f"{arguments.first} to {arguments.first + arguments.seeds - 1}",
        name=f"network{variant}",
        variants=["processes", "http"],
        neutral=["pause"],
    )

    def work(name: str) -> Part:
        while arguments.pause is not None and arguments.pause.exists():
            time.sleep(5)
        part, about = run(int(name), arguments)
        print(f"seed {name}: {'; '.join(part.failures) or 'well'}, {about}", flush=True)
        part.figures = {"seeds": 1.0} | part.figures
        part.failures = [f"seed {name}: {problem}" for problem in part.failures]
        return part

    every = range(arguments.first, arguments.first + arguments.seeds)
    return run_parts(record, map(str, every), work)


if __name__ == "__main__":
    main_of(main)
