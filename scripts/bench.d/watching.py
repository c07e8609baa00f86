"""What the interface for programs costs a queue manager that nobody watches.

The same durable sends by RPC go to two servers in turns, one with the port of the interface and
metrics, one without; they count by the server's processor time. Starts are measured in the same
way: processes with the port and without it, in turns, until each is ready.
"""

import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from durable_calls import CONFIGURATION, QUEUE, sending
from figures import Figure, attempt, figure
from harness import BUILD, computed, few, load, pinned, server_cpu
from intervals import interval
from served import EVERYONE, PORTS, RPCQM, Served, serving

CONNECTIONS, PAIRS, CALLS = 16, 15, 12_000
SENDS = (
    "durable sends with the interface that nobody uses, over without it, by processor time, "
    "the end of the interval"
)
STARTING = (
    "processor time of a start with the interface for programs, over one without it, "
    "the end of the interval"
)
STARTS = 15
PATIENCE = 60


def seconds_per_call(served: Served) -> float:
    """Of the server's processor, for a round of sends."""
    before = computed(served.pid)
    seen = load(served.port, CONNECTIONS, sending(1024).ours, 0, 0, few(CALLS))
    return (computed(served.pid) - before) / seen.calls


def compared(name: str, ratios: list[float], at_most: bool = False, more: str = "") -> Figure:
    """The end of the interval of the median that is to be on the good side of 1.

    Nothing is measurable as long as the median may be 1 with a probability of 95 %.
    """
    ratios.sort()
    low, high = interval(ratios)
    note = f"{len(ratios)} pairs; the median is {statistics.median(ratios):.3f}, "
    note += f"from {low:.3f} to {high:.3f} (95 %)"
    return figure(name, low if at_most else high, f"{more}{note}")


def sends() -> Figure:
    """Sends with the port over those without."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(dir=BUILD)))
        both = [
            stack.enter_context(serving(directory / name, f"{ports}{CONFIGURATION}{metrics}"))
            for name, ports, metrics in (
                ("with", "console_port = 0\n", ""),
                ("without", "console_port = -1\n", "[metrics]\nenabled = false\n"),
            )
        ]
        for served in both:
            served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
            seconds_per_call(served)
        ratios = []
        for number in range(few(PAIRS)):
            order = both if number % 2 else both[::-1]
            costs = {id(served): seconds_per_call(served) for served in order}
            watched, unwatched = (costs[id(served)] for served in both)
            ratios.append(unwatched / watched)
        again = partial(seconds_per_call, both[0])
        return compared(SENDS, ratios).explained(both[0].pid, again)


@contextmanager
def started(
    directory: Path, port: str, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is ready."""
    ready = directory / "ready.json"
    ready.unlink(missing_ok=True)
    places = ("--data-dir", directory / f"data{port}", "--ready-file", ready)
    argv = [*RPCQM, "serve", *places, *PORTS, "--console-port", port]
    process = pinned(argv, server_cpu, stderr=subprocess.DEVNULL, env=environment)
    try:
        end = time.monotonic() + PATIENCE
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("rpcqm serve did not start")
            time.sleep(0.002)
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)


def computed_by_start(
    directory: Path, port: str, environment: Mapping[str, str] | None = None
) -> float:
    """Seconds that all threads of a server have computed when it is ready."""
    with started(directory, port, environment) as process:
        return computed(process.pid)


def starts() -> Figure:
    """Starts with the port over those without."""
    with TemporaryDirectory(dir=BUILD) as name:
        directory = Path(name)
        for port in ("0", "-1"):
            computed_by_start(directory, port)  # which makes the data directory
        ratios, costs = [], []
        for number in range(few(STARTS)):
            order = ("0", "-1") if number % 2 else ("-1", "0")
            took = {port: computed_by_start(directory, port) for port in order}
            ratios.append(took["0"] / took["-1"])
            costs.append(took["0"])
    more = f"{statistics.median(costs) * 1000:.0f} ms; "
    return compared(STARTING, ratios, at_most=True, more=more)


def run() -> Iterator[Figure]:
    BUILD.mkdir(parents=True, exist_ok=True)
    yield from attempt(SENDS, sends)
    yield from attempt(STARTING, starts)
