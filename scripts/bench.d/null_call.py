"""Null calls: R_GetServerPort with NDR at level NONE, through the ordinary path.

Against a C server that answers with the same bytes (the limit) at 1, 16 and 64 connections, and
against impacket's stock DCERPCServer, which serves one connection at a time. The load generator
and the servers run on different CPUs..
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop
from harness import Figure, Pairs, Script, limit_server, load, pairs, pinned, server_cpu
from impacket.dcerpc.v5.rpcrt import DCERPCServer

from rpcqm.codec.interface import load as load_interface
from rpcqm.codec.types.remoteread import R_GetServerPortResponse
from rpcqm.rpc.constants import ContextResult
from rpcqm.rpc.pdu import Bind, BindAck, ContextAnswer, ContextElement, Request, Response, SyntaxId
from rpcqm.rpc.presentation import NDR
from rpcqm.rpc.server import RpcServer

REMOTE_READ = load_interface("remoteread")
INTERFACE = SyntaxId(REMOTE_READ.uuid, *REMOTE_READ.version)
PORT = 2103
ANSWER = PORT.to_bytes(4, "little")

BIND = Bind(
    call_id=1,
    max_xmit_frag=5840,
    max_recv_frag=5840,
    p_context_elem=(ContextElement(0, INTERFACE, (NDR,)),),
).pack()
BIND_ACK = BindAck(
    call_id=1,
    max_xmit_frag=5840,
    max_recv_frag=5840,
    assoc_group_id=1,
    sec_addr=b"2103",
    p_result_list=(ContextAnswer(ContextResult.acceptance, 0, NDR),),
).pack()
REQUEST = Request(call_id=2, p_cont_id=0, opnum=0).pack()
RESPONSE = Response(call_id=2, p_cont_id=0, alloc_hint=4, stub_data=ANSWER).pack()
SCRIPT = Script(once=[BIND], loop=[REQUEST], tail=ANSWER)


class RemoteRead:
    """The one method that is called."""

    def R_GetServerPort(self, call: Any, request: Any) -> R_GetServerPortResponse:
        return R_GetServerPortResponse(result=PORT)


async def serve() -> None:
    server = RpcServer()
    server.register(REMOTE_READ, RemoteRead())
    endpoint = await server.listen_tcp("127.0.0.1", 0)
    print(endpoint.port, flush=True)
    await asyncio.Event().wait()


def serve_impacket() -> None:
    """impacket's stock server with the same interface, method and answer."""
    server = DCERPCServer()
    uuid, version = str(REMOTE_READ.uuid), "{}.{}".format(*REMOTE_READ.version)
    server.addCallbacks((uuid, version), "2103", {0: lambda stub: ANSWER})
    print(server.getListenPort(), flush=True)
    server.start()
    server.join()


@contextmanager
def server(kind: str) -> Iterator[int]:
    """This file's server of a kind, in a process of its own; yields its port."""
    argv = [sys.executable, Path(__file__), kind]
    process = pinned(argv, server_cpu, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def rate(port: int, connections: int, seconds: float = 1.0) -> float:
    return load(port, connections, SCRIPT, seconds, warm_up=0.3).calls_per_second


def against(port: int, other: int, connections: int, other_connections: int) -> Pairs:
    return pairs(lambda: rate(port, connections), lambda: rate(other, other_connections))


def run() -> list[Figure]:
    figures = []
    with server("serve") as ours, limit_server(BIND_ACK, RESPONSE) as limit:
        for connections, target in ((1, None), (16, 0.45), (64, None)):
            measured = against(ours, limit, connections, connections)
            name = f"null call over the C echo server, {connections} connections"
            figures.append(Figure(name, measured.ratio, target, note=measured.spread))
        with server("impacket") as stock:
            one = against(ours, stock, 1, 1)
            name = "null call over impacket's stock server, 1 connection"
            figures.append(Figure(name, one.ratio, 15, note=one.spread))
            best = against(ours, stock, 16, 1)
            name = "null call, 16 connections over impacket's best"
            figures.append(Figure(name, best.ratio, 100, note=best.spread))
    return figures


if __name__ == "__main__":
    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind == "serve":
        uvloop.run(serve())
    elif kind == "impacket":
        serve_impacket()
    else:
        from driver import line

        for figure in run():
            print(line(figure))
