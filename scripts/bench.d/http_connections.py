"""Ten thousand idle keep-alive connections of messages over HTTP.

Each has posted one request, which was answered, and stays open.
"""

import resource
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from figures import Figure, attempt, figure
from served import Served, serving

MANY = 10_000
OPEN_FILES = MANY + 1000
NAME = f"memory with {MANY:,} idle connections over HTTP"
CONFIGURATION = f"""\
http_port = 0
[limits]
connections_per_address = {OPEN_FILES}
unauthenticated_seconds = 0
"""
BODY = b"<Envelope/>"
REQUEST = b"POST /msmq/private$/none HTTP/1.1\r\nHost: here\r\nContent-Type: text/xml\r\n"
REQUEST += b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


def connected(served: Served) -> socket.socket:
    """A connection after one request and its answer."""
    made = socket.create_connection(tuple(served.endpoints["http"]), 60)
    answered(made)
    return made


def answered(connection: socket.socket) -> None:
    connection.sendall(REQUEST)
    answer = connection.recv(4096)
    if not answer.startswith(b"HTTP/1.1 ") or b"close" in answer:
        raise RuntimeError(f"the connection does not go on: {answer!r}")


def idle() -> Figure:
    """Memory of the whole process, with all connections there."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, most), most))
    with (
        tempfile.TemporaryDirectory() as directory,
        serving(Path(directory), CONFIGURATION) as served,
    ):
        before = served.resident
        connections = [connected(served) for _ in range(MANY)]
        for each in (connections[0], connections[-1]):
            answered(each)
        after = served.resident
        for each in connections:
            each.close()
    note = f"{before / 2**20:.0f} MiB before; {(after - before) / MANY / 1024:.1f} KiB each"
    return figure(NAME, after / 2**20, note)


def run() -> Iterator[Figure]:
    yield from attempt(NAME, idle)
