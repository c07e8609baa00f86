"""A handler on the product's HTTP server that keeps nothing of what it reads.

`bare.py` tells the parts of each request apart, as SRMP has them; `bare.py route` reads the body
alone, and answers as `/api/v1` answers a send.
"""

import asyncio
import sys

import uvloop

from rpcqm.base.admission import Admission
from rpcqm.base.clock import SystemClock
from rpcqm.http.exchange import HttpRequest, HttpResponse
from rpcqm.http.server import HttpServer
from rpcqm.srmp.multipart import split_request

ANSWER = b'{"id":"{00000000-0000-0000-0000-000000000000}\\\\1"}'
JSON = (("Content-Type", "application/json"),)


async def read(request: HttpRequest) -> HttpResponse:
    """Answer when the parts have been told apart."""
    split_request(request)
    return HttpResponse(200)


async def answer(request: HttpRequest) -> HttpResponse:
    """Answer; the server has read the body already."""
    return HttpResponse(201, ANSWER, JSON)


async def serve() -> None:
    handler = answer if sys.argv[1:] == ["route"] else read
    server = HttpServer(handler, SystemClock(), Admission(1024, 1024))
    print(await server.listen("127.0.0.1", 0), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as `rpcqm serve` does
        runner.run(serve())
