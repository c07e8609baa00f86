"""Ten thousand queues: a scrape of /metrics, and the list of queues; both in processor time.

The longest pause is that of a turn of the server's loop (`turns.py`), by processor time; its note
has what a small request waits from outside, which depends on what else the machine does.
"""

import base64
import http.client
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from authenticated import ACCOUNT
from figures import Figure, attempt, figure
from harness import HERE, few
from served import Served, serving

MANY = 10_000
PAGE = 1_000
ROUNDS = 5
PATIENCE = 10
MAKERS = 16
ROWS = (
    f"a scrape with {MANY:,} queues",
    f"the list of {MANY:,} queues in one answer",
    f"the list of {MANY:,} queues in pages",
)
CONFIGURATION = f"""\
console_port = 0
[metrics]
queues = {MANY}
"""


class Program:
    """An administrator that asks over one connection."""

    def __init__(self, served: Served) -> None:
        host, port = served.endpoints["console"]
        self.connection = http.client.HTTPConnection(host, port, timeout=60)
        logon = base64.b64encode(f"boss:{ACCOUNT.password}".encode()).decode()
        self.headers = {"Authorization": f"Basic {logon}"}

    def ask(self, method: str, path: str, body: object = None) -> bytes:
        octets = None if body is None else json.dumps(body).encode()
        headers = self.headers | ({} if octets is None else {"Content-Type": "application/json"})
        self.connection.request(method, path, octets, headers)
        answer = self.connection.getresponse()
        told = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status} {told[:200]!r}")
        return told


def spent(served: Served) -> float:
    """Processor time of the server's loop so far, in milliseconds."""
    return int(Path(f"/proc/{served.pid}/schedstat").read_text().split()[0]) / 1e6


def costs(served: Served, ask: Callable[[], object]) -> float:
    """Processor time that one asking takes, in milliseconds: the median of some."""
    taken = []
    for _ in range(ROUNDS):
        before = spent(served)
        ask()
        taken.append(spent(served) - before)
    return statistics.median(taken)


def longest_wait(served: Served, ask: Callable[[], object]) -> float:
    """The longest time, in milliseconds, that a small request waits while `ask` goes on."""
    over, waits, probe = threading.Event(), [0.0], Program(served)

    def look() -> None:
        while not over.is_set():
            began = time.perf_counter()
            probe.ask("GET", "/healthz")
            waits.append((time.perf_counter() - began) * 1000)

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(ROUNDS):
        ask()
    over.set()
    thread.join()
    return max(waits) - statistics.median(waits)


def longest_turn(served: Served, turns: Path, ask: Callable[[], object]) -> float:
    """The longest turn of the server's loop while `ask` goes on, in milliseconds computed."""
    path = turns / str(served.pid)
    path.unlink(missing_ok=True)
    os.kill(served.pid, signal.SIGRTMIN)
    for _ in range(ROUNDS):
        ask()
    os.kill(served.pid, signal.SIGRTMIN + 1)
    end = time.monotonic() + PATIENCE
    while not path.exists():
        if time.monotonic() > end:
            raise RuntimeError("the server does not tell its turns")
        time.sleep(0.02)
    return int(path.read_text("ascii").split()[0]) / 1e6


def figures_of(name: str, served: Served, turns: Path, ask: Callable[[], object]) -> list[Figure]:
    """What something costs, and how long it keeps others waiting."""
    before = spent(served)
    ask()
    first, cost = spent(served) - before, costs(served, ask)
    turn, waited = longest_turn(served, turns, ask), longest_wait(served, ask)
    note = f"from outside, by the clock: {waited:.1f} ms"

    def again() -> None:
        for _ in range(ROUNDS):
            ask()

    found = (
        figure(name, cost, f"the first one: {first:.0f} ms"),
        figure(f"the longest pause of {name}", turn, note),
    )
    return [each.explained(served.pid, again) for each in found]


def make(served: Served, names: list[str]) -> None:
    """Make queues by several connections, so that they share syncs."""

    def some(names: list[str]) -> None:
        program = Program(served)
        for name in names:
            program.ask("POST", "/api/v1/queues", {"name": name})

    with ThreadPoolExecutor(MAKERS) as pool:
        list(pool.map(some, (names[each::MAKERS] for each in range(MAKERS))))


def list_all(program: Program, count: int) -> None:
    """Every queue, in pages."""
    after: str | None = ""
    found = 0
    while after is not None:
        told = json.loads(program.ask("GET", f"/api/v1/queues?limit={PAGE}{after}"))
        found += len(told["queues"])
        after = None if told["next"] is None else f"&after={told['next']}"
    if found < count:
        raise RuntimeError(f"{found} queues instead of {count}")


def run() -> Iterator[Figure]:
    count = few(MANY)
    with tempfile.TemporaryDirectory() as directory:
        turns = Path(directory)
        os.environ["BENCH_TURNS"] = directory
        command = (sys.executable, HERE / "turns.py")
        with serving(turns / "served", CONFIGURATION, command) as served:
            words = ("user", "add", "boss", "--group", "administrators", "--password-stdin")
            served.command(*words, stdin=f"{ACCOUNT.password}\n")
            program = Program(served)
            make(served, [f"q{number:05}" for number in range(count)])

            def scrape() -> None:
                if program.ask("GET", "/metrics").count(b"rpcqm_queue_messages{") != count:
                    raise RuntimeError("a queue has no series")

            def whole() -> None:
                told = json.loads(program.ask("GET", f"/api/v1/queues?limit={MANY}"))
                if len(told["queues"]) != count:
                    raise RuntimeError("a queue is missing")

            def pages() -> None:
                list_all(program, count)

            for name, ask in zip(ROWS, (scrape, whole, pages), strict=True):
                names = name, f"the longest pause of {name}"
                yield from attempt(names, partial(figures_of, name, served, turns, ask))
