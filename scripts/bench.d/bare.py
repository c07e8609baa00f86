"""A handler on the product's HTTP server that reads the parts of each request and keeps nothing."""

import asyncio

from rpcqm.base.admission import Admission
from rpcqm.base.clock import SystemClock
from rpcqm.http.exchange import HttpRequest, HttpResponse
from rpcqm.http.server import HttpServer
from rpcqm.srmp.multipart import split_request


async def read(request: HttpRequest) -> HttpResponse:
    """Answer when the parts have been told apart."""
    split_request(request)
    return HttpResponse(200)


async def serve() -> None:
    server = HttpServer(read, SystemClock(), Admission(1024, 1024))
    print(await server.listen("127.0.0.1", 0), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())
