"""What the interface for programs costs a queue manager that nobody watches.

The same durable sends by RPC go to two servers in turns, one with the port of the interface and
metrics, one without; they count by the server's processor time. Starts are measured in the same
way: processes with the port and without it, in turns, until each is ready.
"""

import math
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from durable import CONFIGURATION, QUEUE, sending
from harness import BUILD, Figure, few, load, pinned, processor_seconds, server_cpu
from served import EVERYONE, PORTS, RPCQM, Served, serving

CONNECTIONS, PAIRS, SECONDS = 16, 15, 1.0
STARTS = 15
PATIENCE = 60


def seconds_per_call(served: Served) -> float:
    """Of the server's processor, for a round of sends."""
    before = processor_seconds(served.pid)
    seen = load(served.port, CONNECTIONS, sending(1024).ours, SECONDS, warm_up=0)
    return (processor_seconds(served.pid) - before) / seen.calls


def compared(name: str, ratios: list[float], at_most: bool = False) -> Figure:
    """The end of the interval of the median that is to be on the good side of 1.

    Nothing is measurable as long as the median may be 1 with a probability of 95 %.
    """
    ratios.sort()
    low, high = interval(ratios)
    note = f"{len(ratios)} pairs; the median is {statistics.median(ratios):.3f}, "
    note += f"from {low:.3f} to {high:.3f} (95 %)"
    value = low if at_most else high
    return Figure(f"{name}, the end of the interval", value, 1, at_most=at_most, note=note)


def interval(ordered: list[float]) -> tuple[float, float]:
    """Of the median, by ranks: so many of the pairs are below it as coins would tell."""
    count = len(ordered)
    chance, rank = 0.5**count, 0
    while rank < count // 2 and (more := chance + coins(count, rank + 1)) <= 0.025:
        chance, rank = more, rank + 1
    return ordered[rank], ordered[-rank - 1]


def coins(count: int, heads: int) -> float:
    return float(math.comb(count, heads)) * 0.5**count


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
    name = "durable sends with the interface that nobody uses, over without it, by processor time"
    return compared(name, ratios)


@contextmanager
def started(directory: Path, port: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is ready."""
    ready = directory / "ready.json"
    ready.unlink(missing_ok=True)
    places = ("--data-dir", directory / f"data{port}", "--ready-file", ready)
    argv = [*RPCQM, "serve", *places, *PORTS, "--console-port", port]
    process = pinned(argv, server_cpu, stderr=subprocess.DEVNULL)
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


def computed(directory: Path, port: str) -> float:
    """Seconds that all threads of a server have computed when it is ready."""
    with started(directory, port) as process:
        tasks = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
        return sum(int(each.read_text("ascii").split()[0]) for each in tasks) / 1e9


def starts() -> Figure:
    """Starts with the port over those without."""
    with TemporaryDirectory(dir=BUILD) as name:
        directory = Path(name)
        for port in ("0", "-1"):
            computed(directory, port)  # which makes the data directory
        ratios, costs = [], []
        for number in range(few(STARTS)):
            order = ("0", "-1") if number % 2 else ("-1", "0")
            took = {port: computed(directory, port) for port in order}
            ratios.append(took["0"] / took["-1"])
            costs.append(took["0"])
    name = "processor time of a start with the interface for programs, over one without it"
    made = compared(name, ratios, at_most=True)
    return replace(made, note=f"{statistics.median(costs) * 1000:.0f} ms; {made.note}")


def run() -> Iterator[Figure]:
    BUILD.mkdir(parents=True, exist_ok=True)
    yield sends()
    yield starts()
