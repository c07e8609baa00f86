"""Ten thousand at a time: idle authenticated connections, and blocking receives that wait.

Idle connections have logged on by NTLM and made one sealed call. Receives wait on an empty queue,
500 on each of 20 connections; meanwhile null calls are made at 16 connections, in turns with those
of a second queue manager on which nobody waits. Rates are by the servers' processor time.
"""

import resource
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from authenticated import NONE, PRIVACY, Connection
from figures import Figure, attempt, figure
from harness import computed, load, pairs
from null_call import script
from sealed import CONFIGURATION as ALLOWED
from sealed import QUEUE, REMOTE_READ, transfer
from served import EVERYONE, Served, serving

from rpcqm.codec.types.remoteread import R_GetServerPortRequest, R_StartReceiveRequest

MANY = 10_000
WAITING_EACH = 500
RECEIVE, INFINITE = 0, 0xFFFFFFFF
OPEN_FILES = MANY + 1000
CONFIGURATION = f"{ALLOWED}[limits]\nconnections_per_address = {OPEN_FILES}\n"
NULL = f"null calls while {MANY:,} receives wait, over those without"
WAITING = "memory of a receive that waits"
IDLE = f"memory with {MANY:,} idle authenticated connections"


def connected(served: Served) -> Connection:
    """An authenticated connection after one call."""
    made = Connection(served.port, REMOTE_READ, PRIVACY)
    made.call("R_GetServerPort", R_GetServerPortRequest())
    return made


def idle(served: Served) -> Figure:
    """Memory of the whole process, with all connections there."""
    before = served.resident
    connections = [connected(served) for _ in range(MANY)]
    for connection in (connections[0], connections[-1]):
        connection.call("R_GetServerPort", R_GetServerPortRequest())
    after = served.resident
    for connection in connections:
        connection.close()
    note = f"{before / 2**20:.0f} MiB before; {(after - before) / MANY / 1024:.1f} KiB each"
    return figure(IDLE, after / 2**20, note)


def waiting(served: Served) -> list[Connection]:
    """Connections whose receives all wait."""
    made = []
    for _ in range(MANY // WAITING_EACH):
        connection = Connection(served.port, REMOTE_READ, NONE)
        _, request = transfer(connection, access=1)
        assert isinstance(request, R_StartReceiveRequest)
        request.ulAction, request.ulTimeout = RECEIVE, INFINITE
        for number in range(WAITING_EACH):
            request.dwRequestId = number + 1
            connection.request("R_StartReceive", request)
        connection.send()
        connection.call("R_GetServerPort", R_GetServerPortRequest())
        made.append(connection)
    return made


def null_calls(served: Served) -> float:
    """Null calls per second of processor time."""
    before = computed(served.pid)
    seen = load(served.port, 16, script(served.port), seconds=1.0, warm_up=0)
    return seen.calls / (computed(served.pid) - before)


def blocked(busy: Served, quiet: Served) -> Sequence[Figure]:
    before = busy.resident
    connections = waiting(busy)
    each = (busy.resident - before) / MANY
    made = pairs(partial(null_calls, busy), partial(null_calls, quiet)).figure(NULL, busy.pid)
    for connection in connections:
        if connection.association.calls_in_flight != WAITING_EACH:
            raise RuntimeError("a receive that should wait was answered")
        connection.close()
    return made, figure(WAITING, each / 1024)


def run() -> Iterator[Figure]:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, most), most))
    with ExitStack() as stack:
        busy, quiet = (
            stack.enter_context(
                serving(Path(stack.enter_context(tempfile.TemporaryDirectory())), CONFIGURATION)
            )
            for _ in range(2)
        )
        for served in (busy, quiet):
            served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
        yield from attempt((NULL, WAITING), partial(blocked, busy, quiet))
        yield from attempt(IDLE, partial(idle, quiet))
