"""Message by message over networks that fail, between queue managers that die.

python -m tests.support.network_soak [--seeds N] [--first N] [--messages N]
python -m tests.support.network_soak --processes [--seeds N] [--first N] [--kills N]

Each seed sends transactional and recoverable messages with cut, corrupted, delayed,
refused and reordered connections while both ends are killed at random. The transactional ones must
arrive exactly once and in order, the others exactly once too, because their duplicates fall into
the history's window; nothing may be left behind. Simulated clock and network: a seed is a run.

With --processes both are real ones, killed by a signal, with a failing proxy between them.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rpcqm.base import log
from tests.support import network_processes
from tests.support.binary_network import Faults, Node, Simulation
from tests.support.queue_manager import MEMORY

STREAM = "DIRECT=OS:bob\\private$\\stream"
ORDERS = "DIRECT=OS:bob\\private$\\orders"
FAULTS = Faults(
    cut=0.03,
    corrupt=0.02,
    refuse=0.2,
    linger=0.005,
    stall=0.005,
    replay=0.1,
    late=60_000,
    delay=20,
)
PAUSES = (0, 0, 1, 5, 100, 700)


@dataclass
class Outcome:
    """What a seed came to; `problems` is empty when all is well."""

    seed: int
    kills: int
    simulated_seconds: int
    problems: list[str]


def run_seed(seed: int, messages: int) -> Outcome:
    """Send that many messages of each kind, then check what has arrived."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        simulation = Simulation(Path(directory), seed, FAULTS)
        alice, bob = simulation.node("alice"), simulation.node("bob")
        bob.create("orders")
        bob.create("stream", transactional=True)
        kills = _send_all(simulation, alice, bob, messages)
        simulation.faults = Faults()
        problems = _problems(simulation, alice, bob, messages)
        outcome = Outcome(seed, kills, simulation.clock.monotonic() // 1000, problems)
        simulation.stop()
    return outcome


def _send_all(simulation: Simulation, alice: Node, bob: Node, messages: int) -> int:
    kills, choose = 0, simulation.random
    for number in range(messages):
        body = b"%d" % number
        dead_letter = choose.random() < 0.3
        alice.send(STREAM, body, True, negative_journaling_requested=dead_letter)
        alice.send(ORDERS, body)
        simulation.advance(choose.choice(PAUSES))
        if choose.random() < 0.02:
            victim = choose.choice((alice, bob))
            victim.kill()
            kills += 1
            simulation.advance(choose.randint(0, 20_000))
            victim.start()
    return kills


def _problems(simulation: Simulation, alice: Node, bob: Node, messages: int) -> list[str]:
    stream, orders = bob.find("stream"), bob.find("orders")
    arrived = (stream.message_position_list, orders.message_position_list)
    try:
        simulation.until(lambda: all(each.count >= messages for each in arrived))
        simulation.advance(60_000)
        expected = [b"%d" % number for number in range(messages)]
        problems = [] if bob.bodies("stream") == expected else ["the stream is not what was sent"]
        if sorted(bob.bodies("orders")) != sorted(expected):
            problems.append("the recoverable messages are not those that were sent")
        while bob.find("stream").message_count:
            bob.receive("stream")
        simulation.until(lambda: alice.unsent == 0)
    except AssertionError as error:
        return [f"{error}: {[each.count for each in arrived]} of {messages} have arrived"]
    return problems


def simulated(seed: int, arguments: argparse.Namespace) -> tuple[list[str], str]:
    """Run a seed; its problems, and what it was like."""
    outcome = run_seed(seed, arguments.messages)
    return outcome.problems, f"{outcome.kills} kills, {outcome.simulated_seconds} simulated seconds"


def with_processes(seed: int, arguments: argparse.Namespace) -> tuple[list[str], str]:
    """The same with real processes, whose timing no seed decides."""
    outcome = network_processes.run_seed(seed, arguments.kills)
    happened = ", ".join(f"{name} {count}" for name, count in sorted(outcome.happened.items()))
    about = f"{outcome.messages} messages, {outcome.kills} kills, {happened}"
    return outcome.problems, about


def main() -> int:
    """Run the seeds, one line each; 1 when a seed has problems."""
    parser = argparse.ArgumentParser(description="Soak of the binary protocol.")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--kills", type=int, default=20, help="with --processes")
    arguments = parser.parse_args()
    log.configure("critical")
    run = with_processes if arguments.processes else simulated
    failed = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
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
