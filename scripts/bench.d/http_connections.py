"""Ten thousand idle keep-alive connections of messages over HTTP.

Each has posted one request, which was answered, and stays open.
"""

import resource
import socket
import tempfile
from pathlib import Path

from harness import Figure
from served import Served, serving

MANY = 10_000
OPEN_FILES = MANY + 1000
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


def run() -> list[Figure]:
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
    return [
        Figure(
            f"memory with {MANY:,} idle connections over HTTP",
            after / 2**20,
            300,
            unit="MiB",
            at_most=True,
            note=f"{before / 2**20:.0f} MiB before; {(after - before) / MANY / 1024:.1f} KiB each",
        )
    ]


if __name__ == "__main__":
    from driver import line

    for figure in run():
        print(line(figure))
