"""Null calls: R_GetServerPort with NDR at level NONE, of `rpcqm serve` as it is.

Against a C server that answers with the same bytes (the limit) at 1, 16 and 64 connections, and
against impacket's stock DCERPCServer, which serves one connection at a time. The load generator
and the servers run on different CPUs.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from figures import Figure, attempt
from harness import Script, limit_server, load, pairs, pinned, server_cpu
from impacket.dcerpc.v5.rpcrt import DCERPCServer
from served import Served, serving

from rpcqm.codec.interface import load as load_interface
from rpcqm.rpc.constants import ContextResult
from rpcqm.rpc.pdu import Bind, BindAck, ContextAnswer, ContextElement, Request, Response, SyntaxId
from rpcqm.rpc.presentation import NDR

REMOTE_READ = load_interface("remoteread")
INTERFACE = SyntaxId(REMOTE_READ.uuid, *REMOTE_READ.version)
PATIENCE = 60

BIND = Bind(
    call_id=1,
    max_xmit_frag=5840,
    max_recv_frag=5840,
    p_context_elem=(ContextElement(0, INTERFACE, (NDR,)),),
).pack()
REQUEST = Request(call_id=2, p_cont_id=0, opnum=0).pack()


def bind_ack(port: int) -> bytes:
    """What the queue manager answers to the bind, but for the group's number."""
    return BindAck(
        call_id=1,
        max_xmit_frag=5840,
        max_recv_frag=5840,
        assoc_group_id=1,
        sec_addr=str(port).encode(),
        p_result_list=(ContextAnswer(ContextResult.acceptance, 0, NDR),),
    ).pack()


def response(port: int) -> bytes:
    stub = port.to_bytes(4, "little")
    return Response(call_id=2, p_cont_id=0, alloc_hint=4, stub_data=stub).pack()


def script(port: int) -> Script:
    """Bind once, then call; every answer ends with the port."""
    return Script(once=[BIND], loop=[REQUEST], tail=port.to_bytes(4, "little"))


@contextmanager
def queue_manager() -> Iterator[Served]:
    """A queue manager of its own on the servers' CPU."""
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory)) as served:
        yield served


@contextmanager
def stock_server(port: int) -> Iterator[int]:
    """impacket's server with the same interface and answer; yields its port."""
    argv = [sys.executable, __file__, "impacket", str(port)]
    with process(argv, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        yield int(started.stdout.readline())


@contextmanager
def process(argv: Sequence[str], **popen: int) -> Iterator[subprocess.Popen[bytes]]:
    started = pinned(argv, server_cpu, **popen)
    try:
        yield started
    finally:
        started.terminate()
        started.wait(PATIENCE)


def serve_impacket(port: int) -> None:
    server = DCERPCServer()
    answer = port.to_bytes(4, "little")
    version = "{}.{}".format(*REMOTE_READ.version)
    server.addCallbacks((str(REMOTE_READ.uuid), version), str(port), {0: lambda stub: answer})
    print(server.getListenPort(), flush=True)
    server.start()
    server.join()


def rate(port: int, connections: int, calls: Script) -> float:
    return load(port, connections, calls, seconds=1.0, warm_up=0.3).calls_per_second


def against(served: Served, name: str, other: int, here: int, there: int) -> Iterator[Figure]:
    """One row: so many connections to ours, and to the other server."""
    calls = script(served.port)

    def measure() -> Figure:
        ours, theirs = partial(rate, served.port, here), partial(rate, other, there)
        return pairs(lambda: ours(calls), lambda: theirs(calls)).figure(name, served.pid)

    yield from attempt(name, measure)


def run() -> Iterator[Figure]:
    with queue_manager() as served:
        port = served.port
        with limit_server(bind_ack(port), response(port)) as limit:
            for count, clients in (
                (1, "1 connection"),
                (16, "16 connections"),
                (64, "64 connections"),
            ):
                name = f"null call over the C echo server, {clients}"
                yield from against(served, name, limit, count, count)
        with stock_server(port) as stock:
            name = "null call over impacket's stock server, 1 connection"
            yield from against(served, name, stock, 1, 1)
            name = "null call, 16 connections over impacket's best"
            yield from against(served, name, stock, 16, 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["impacket"]:
        serve_impacket(int(sys.argv[2]))
