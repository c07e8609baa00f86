"""Messages over HTTP on loopback: what a queue manager receives, and what one sends to another.

Receiving is measured against a handler on the same server that reads the parts of the same requests
and answers without keeping anything, with the same client in C, on the same processor, in turns.
Sending is measured against the binary protocol between the same two queue managers: messages wait
in the paused outgoing queue, and count from the moment on when the first one has arrived. A stream
is measured by what it takes, and by how many receipts it was answered with.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory
from uuid import uuid4

from durable_calls import QUEUE
from figures import Figure, attempt, figure
from harness import (
    BUILD,
    HERE,
    PATIENCE,
    Load,
    client_cpu,
    compile_c,
    few,
    generated,
    lasting,
    pairs,
    pinned,
    server_cpu,
)
from sessions import BODY, queue_manager
from transfer import two

from rpcqm.codec.names.format_name import FormatName
from rpcqm.testing import PrivateQueueManager
from tests.support.network.tap import tapped
from tests.support.ports import reserved_port
from tests.support.srmp import srmp_text

CONNECTIONS = 16
NUMBER = "3141592653"
STREAM = 10_000
FREE_PORT = ("--http-port", "0")
DURABLE = srmp_text.durable()
RECEIVED = (
    f"received over HTTP, recoverable 1 KiB from {CONNECTIONS} connections, over a handler that "
    "keeps nothing"
)
SENT = "recoverable messages between two queue managers over HTTP, over the binary protocol"
STREAMED = "transactional messages of a stream over HTTP"
RECEIPTS = "receipts over the windows of 500 ms"


def script(port: int, queue: str) -> str:
    """What the client in C posts: recoverable messages of a queue manager nobody knows yet."""
    guid = str(uuid4())
    msmq = (
        "<Class>0</Class><Priority>3</Priority><App>0</App><BodyType>0</BodyType>"
        f"<HashAlgorithm>32772</HashAlgorithm><SourceQmGuid>{guid}</SourceQmGuid>"
        f"<TTrq>{srmp_text.LATER}</TTrq>"
    )
    elements = srmp_text.Elements("a label", int(NUMBER), guid, services=DURABLE, msmq=msmq)
    url = f"http://127.0.0.1:{port}/msmq/private$/{queue}"
    wire = srmp_text.message(url, BODY, elements).wire(f"127.0.0.1:{port}")
    assert wire.count(NUMBER.encode()) == 1
    return f"request {wire.hex()}\nnumber {wire.index(NUMBER.encode())}\n"


def posted(
    port: int, queue: str, seconds: float = 2.0, warm_up: float = 0.5, calls: int = 0
) -> Load:
    """Requests that were answered with 200; with `calls` so many."""
    times, counted = lasting(seconds, warm_up, calls)
    argv = [compile_c("post"), port, CONNECTIONS, *times]
    told = f"{script(port, queue)}{counted}"
    return generated(argv, told, warm_up + seconds + PATIENCE, client_cpu)


@contextmanager
def bare() -> Iterator[int]:
    """The handler that keeps nothing; its port."""
    process = pinned([sys.executable, HERE / "bare.py"], server_cpu, stdout=PIPE)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def receiving() -> Figure:
    """What is stored over what is only read."""
    with queue_manager("receiver", options=FREE_PORT) as served, bare() as other:
        served.run("queue", "create", "orders")
        port = served.endpoint("http")[1]
        posted(port, "orders", 1.0)
        assert served.process is not None

        def rate(port: int) -> float:
            return posted(port, "orders").calls_per_second

        against = pairs(partial(rate, port), partial(rate, other), 5)
        return against.figure(RECEIVED, served.process.pid)


def sending() -> Figure:
    """The same messages from one to the other, by both protocols in turns."""
    with two(FREE_PORT) as pair:
        port = pair.receiver.endpoint("http")[1]
        url = rf"DIRECT=HTTP://127.0.0.1:{port}/msmq/private$/{QUEUE}"
        over_http = replace(pair, elsewhere=url)
        over_http.send(1)
        over_http.wait(2)
        assert pair.receiver.process is not None
        against = pairs(over_http.transferred, pair.transferred, 3)
        return against.figure(SENT, pair.receiver.process.pid)


def streaming() -> list[Figure]:
    """Transactional messages, and the receipts that they are answered with."""
    with TemporaryDirectory(dir=BUILD) as place, ExitStack() as stack:
        port, directory = reserved_port(), Path(place)
        tap = stack.enter_context(tapped(port, directory / "receipts.pcapng"))
        receipts = f"http://127.0.0.1:{tap}/msmq/private$/order_queue$"
        sender = stack.enter_context(
            queue_manager("sender", SENDER.format(tap=tap, url=receipts), options=_at(port))
        )
        receiver = stack.enter_context(
            queue_manager("receiver", RECEIVER, client_cpu, options=FREE_PORT)
        )
        seconds, arrived = _streamed(sender, receiver)
        stack.close()  # what the tap has seen is written when it ends
        count = (directory / "receipts.pcapng").read_bytes().count(b"<streamReceipt>")
    note = f"{count} receipts in {seconds:.1f} s"
    windows = seconds * 1000 / COALESCING + 2
    return [figure(STREAMED, arrived / seconds), figure(RECEIPTS, count / windows, note)]


COALESCING = 500
SENDER = """\
[srmp]
default_stream_receipt_url = "{url}"
[[srmp.inbound]]
from = "http://127.0.0.1:{tap}/*"
to = "http://127.0.0.1/*"
"""
RECEIVER = '[srmp]\nreceipts_to = ["127.0.0.1"]\n'


def _at(port: int) -> tuple[str, str]:
    return "--http-port", str(port)


def _streamed(sender: PrivateQueueManager, receiver: PrivateQueueManager) -> tuple[float, int]:
    """Send the stream; seconds from its commit until the sender has got rid of all of it."""
    receiver.run("queue", "create", "stream", "--transactional")
    url = f"DIRECT=HTTP://127.0.0.1:{receiver.endpoint('http')[1]}/msmq/private$/stream"
    name = FormatName.parse(url)
    body = "x" * len(BODY)
    with sender.client() as client:
        began = time.perf_counter()
        sender.run("send", url, "--transactional", "--count", str(few(STREAM)), "--body", body)
        end = time.monotonic() + PATIENCE
        while (queue := client.run(client.management.outgoing_queue(name))) and queue.message_count:
            if time.monotonic() > end:
                raise RuntimeError("the stream was not acknowledged")
            time.sleep(0.02)
        seconds = time.perf_counter() - began
    with receiver.client() as client:
        asked = client.management.queue_information(
            FormatName.parse(r"DIRECT=OS:.\private$\stream")
        )
        return seconds, client.run(asked).message_count


def run() -> Iterator[Figure]:
    BUILD.mkdir(parents=True, exist_ok=True)
    yield from attempt(RECEIVED, receiving)
    yield from attempt(SENT, sending)
    yield from attempt((STREAMED, RECEIPTS), streaming)
