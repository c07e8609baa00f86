"""What programs do over `/api/v1`, against a route on the same HTTP server that keeps nothing.

Recoverable messages of 1 KiB are sent, and received under a lease that is completed, by one client
in C with a token; both servers have the same processor, in turns, and the same kind of loop.
Receiving takes two requests for a message, and counts both. Each figure is of the rates; its note
has the same of the server's processor time, which other programs on the machine change less.
"""

import socket
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory

from authenticated import ACCOUNT
from figures import Figure, attempt, figure
from harness import (
    BUILD,
    HERE,
    PATIENCE,
    TRIAL,
    Load,
    Stolen,
    client_cpu,
    compile_c,
    computed,
    few,
    generated,
    lasting,
    pinned,
    server_cpu,
)
from served import EVERYONE, Served, serving

CONNECTIONS, ROUNDS = 16, 5
REQUESTS = 16_000
"""Of one round, which takes about two seconds; so many were sent before they are received."""
BODY = b"x" * 1024
LEASE = "L" * 22
CONFIGURATION = "console_port = 0\n[storage]\nquota = 67108864\n"
QUEUE = "/api/v1/queues/orders"
ROUTE = "over a route that reads and answers"


@dataclass(frozen=True, slots=True)
class Round:
    """Requests per second, and seconds of the server's processor for each."""

    rate: float
    cost: float


class Asking:
    """Requests of one kind to one server; `before` makes ready for each round."""

    def __init__(
        self, pid: int, port: int, script: str, before: Callable[[], object] = lambda: None
    ) -> None:
        self.pid = pid
        self._port, self._script, self._before = port, script, before

    def wake(self) -> None:
        """Ask once, with patience: the first request loads what answers, which is not measured."""
        with socket.create_connection(("127.0.0.1", self._port), PATIENCE) as connection:
            connection.sendall(bytes.fromhex(self._script.split(maxsplit=2)[1]))
            answer = connection.recv(1 << 16)
        if not answer.startswith(b"HTTP/1.1 20"):
            raise RuntimeError(f"the first answer: {answer[:200]!r}")

    def measured(self) -> Round:
        """One round."""
        self._before()
        before = computed(self.pid)
        seen = self.asked()
        return Round(seen.calls_per_second, (computed(self.pid) - before) / seen.calls)

    def asked(self, count: int = REQUESTS) -> Load:
        """So many requests, and what the client saw."""
        times, counted = lasting(0, 0, few(count))
        argv = [compile_c("post"), self._port, CONNECTIONS, *times]
        return generated(argv, f"{self._script}{counted}", PATIENCE, client_cpu)


def request(path: str, token: str, body: bytes = b"") -> bytes:
    """A POST as a program writes it."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:15680\r\nAuthorization: Bearer {token}\r\n"
        f"User-Agent: bench\r\nAccept: application/json\r\n"
        f"Content-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


def sending(token: str) -> str:
    """What the client does to send."""
    return f"request {request(f'{QUEUE}/messages', token, BODY).hex()}\n"


def receiving(token: str) -> str:
    """What the client does to receive, and to complete."""
    complete = request(f"/api/v1/leases/{LEASE}/complete", token)
    at = complete.index(LEASE.encode("ascii"))
    return (
        f"request {request(f'{QUEUE}/receive', token).hex()}\nthen {complete.hex()}\nlease {at}\n"
    )


@contextmanager
def bare(token: str) -> Iterator[Asking]:
    """The route that keeps nothing, asked as if messages were sent."""
    process = pinned([sys.executable, HERE / "bare.py", "route"], server_cpu, stdout=PIPE)
    try:
        assert process.stdout is not None
        yield Asking(process.pid, int(process.stdout.readline()), sending(token))
    finally:
        process.kill()
        process.wait()


def against(name: str, ours: Asking, theirs: Asking) -> Figure:
    """Rounds in turns."""
    watch = Stolen()
    rounds = [(ours.measured(), theirs.measured()) for _ in range(1 if TRIAL else ROUNDS)]
    rates = sorted(mine.rate / other.rate for mine, other in rounds)
    costs = sorted(other.cost / mine.cost for mine, other in rounds)
    mine, other = (statistics.median(each[side].rate for each in rounds) for side in (0, 1))
    told = (
        f"{mine:,.0f}/s against {other:,.0f}/s; rounds {rates[0]:.2f} to {rates[-1]:.2f}; by "
        f"processor time {statistics.median(costs):.2f}, {costs[0]:.2f} to {costs[-1]:.2f}"
    )
    made = figure(name, statistics.median(rates), told, stolen=watch.share)
    return made.explained(ours.pid, ours.measured)


def prepared(served: Served) -> str:
    """The token of an account that may use the queue as everybody may."""
    served.command("queue", "create", "orders", "--sddl", EVERYONE)
    token = served.command("token", "create", "bench", "--account", ACCOUNT.username)
    return token.decode("ascii").strip()


def programs(served: Served, token: str) -> tuple[Asking, Asking]:
    """Who sends, and who receives what was put there before each round."""
    port = int(served.endpoints["console"][1])
    send = Asking(served.pid, port, sending(token))
    receive = Asking(served.pid, port, receiving(token), send.asked)
    send.wake()
    send.asked(few(REQUESTS))
    receive.wake()
    receive.measured()
    return send, receive


def run() -> Iterator[Figure]:
    BUILD.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(dir=BUILD)))
        served = stack.enter_context(serving(directory / "served", CONFIGURATION))
        token = prepared(served)
        send, receive = programs(served, token)
        other = stack.enter_context(bare(token))
        other.wake()
        other.measured()
        for name, ours in (
            (f"recoverable messages of 1 KiB sent over /api/v1, {ROUTE}", send),
            (f"requests to receive and complete them, {ROUTE}", receive),
        ):
            yield from attempt(name, partial(against, name, ours, other))
