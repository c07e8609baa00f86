"""Plain sockets to a server in this process: what no decent client would send."""

import itertools
import select
import socket
import time

from rpcqm.rpc import pdu
from rpcqm.rpc.connection import Connection
from tests.support.rpc.probe import bind, request
from tests.support.rpc.rpc_server import RunningServer
from tests.support.waiting import PATIENCE


def raw(running: RunningServer, *, bound: bool = True) -> socket.socket:
    """A plain socket to the server."""
    plain = socket.create_connection(("127.0.0.1", running.port), timeout=20)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if bound:
        plain.sendall(bind())
        read_pdu(plain)
    return plain


def only_connection(running: RunningServer) -> Connection:
    """The connection of a server that has one."""
    (connection,) = running.do(lambda: list(running.server.served.open))
    return connection


def flood(running: RunningServer, plain: socket.socket) -> None:
    """Send requests and read no answer, until nothing more is taken and the server is stuck."""
    connection, give_up = only_connection(running), time.monotonic() + PATIENCE
    plain.setblocking(False)
    waiting = b""
    for number in itertools.count():
        waiting = waiting or request(1, bytes(5000), number)
        try:
            waiting = waiting[plain.send(waiting) :]
        except BlockingIOError:
            if running.do(lambda: connection._stuck):
                break
            select.select([], [plain], [], 0.1)
        assert time.monotonic() < give_up, "the server takes more and more"
    plain.settimeout(PATIENCE)


def read_pdu(plain: socket.socket) -> pdu.Pdu:
    octets = b""
    while len(octets) < 16 or len(octets) < pdu.unpack_header(octets).frag_length:
        more = plain.recv(1 if len(octets) >= 16 else 16 - len(octets))
        assert more, "the server closed the connection"
        octets += more
    return pdu.unpack(octets)


def read_all(plain: socket.socket) -> bytes:
    octets = b""
    while more := plain.recv(65536):
        octets += more
    return octets
