"""What programs do over `/api/v1`, against a route on the same HTTP server that keeps nothing.

Recoverable messages of 1 KiB are sent, and received under a lease that is completed, by one client
in C with a token; both servers have the same processor, in turns, and the same kind of loop.
Receiving takes two requests for a message, and counts both. Each figure is of the rates; its note
has the same of the server's processor time, which other programs on the machine change less.
"""

import socket
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory

from authenticated import ACCOUNT
from harness import (
    BUILD,
    HERE,
    TRIAL,
    Figure,
    Load,
    Stolen,
    brief,
    client_cpu,
    compile_c,
    few,
    generated,
    pinned,
    processor_seconds,
    server_cpu,
)
from served import EVERYONE, PATIENCE, Served, serving

CONNECTIONS, ROUNDS = 16, 5
SECONDS = 2.0
BODY = b"x" * 1024
STOCK = 2_000
"""Messages to be received; each round of sending, which comes first, adds more."""
LEASE = "L" * 22
CONFIGURATION = "console_port = 0\n[storage]\nquota = 67108864\n"
QUEUE = "/api/v1/queues/orders"


@dataclass(frozen=True, slots=True)
class Round:
    """Requests per second, and seconds of the server's processor for each."""

    rate: float
    cost: float


class Asking:
    """Requests of one kind to one server."""

    def __init__(self, pid: int, port: int, script: str) -> None:
        self.pid = pid
        self._port, self._script = port, script

    def wake(self) -> None:
        """Ask once, with patience: the first request loads what answers, which is not measured."""
        with socket.create_connection(("127.0.0.1", self._port), PATIENCE) as connection:
            connection.sendall(bytes.fromhex(self._script.split(maxsplit=2)[1]))
            answer = connection.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 20"), answer

    def measured(self) -> Round:
        """One round; it is made again once if a busy machine has answered nothing in it."""
        try:
            return self._round()
        except RuntimeError as error:
            if "nothing was done" not in str(error):
                raise
        return self._round()

    def _round(self) -> Round:
        argv = [compile_c("post"), self._port, CONNECTIONS, 0, brief(SECONDS)]
        before = processor_seconds(self.pid)
        load: Load = generated(argv, self._script, SECONDS + 60, client_cpu)
        return Round(load.calls_per_second, (processor_seconds(self.pid) - before) / load.calls)


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


def figure(name: str, ours: Asking, theirs: Asking) -> Figure:
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
    made = Figure(name, statistics.median(rates), 0.35, note=told, stolen=watch.share)
    return made.explained(ours.pid, ours.measured)


def prepared(served: Served) -> str:
    """The token of an account that may use the queue as everybody may; the queue has a stock."""
    served.command("queue", "create", "orders", "--sddl", EVERYONE)
    stock = ("--count", str(few(STOCK)), "--file", "-")
    served.command("send", "orders", *stock, stdin=BODY.decode("ascii"))
    token = served.command("token", "create", "bench", "--account", ACCOUNT.username)
    return token.decode("ascii").strip()


def run() -> Iterator[Figure]:
    BUILD.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(dir=BUILD)))
        served = stack.enter_context(serving(directory / "served", CONFIGURATION))
        token, port = prepared(served), int(served.endpoints["console"][1])
        send, receive = (
            Asking(served.pid, port, script) for script in (sending(token), receiving(token))
        )
        other = stack.enter_context(bare(token))
        for each in (send, receive, other):
            each.wake()
            each.measured()
        route = "over a route that reads and answers"
        yield figure(f"recoverable messages of 1 KiB sent over /api/v1, {route}", send, other)
        yield figure(f"requests to receive and complete them, {route}", receive, other)
