"""Peeks at a message of 1 KiB by its lookup identifier, against null calls of the same server.

Both with NDR at level NONE over 16 connections with one call outstanding, in turns.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from durable_calls import (
    CONFIGURATION,
    QUEUE,
    bind,
    handle_into,
    open_for_receiving,
    opened_for_receiving,
    start_receive,
)
from figures import Figure, attempt
from harness import BUILD, Script, pairs
from null_call import rate, script
from served import EVERYONE, Served, serving

from rpcqm.client.blocking import BlockingClient
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.target import LocalServer
from rpcqm.codec.names.format_name import FormatName

SIZE = 1024
CONNECTIONS = 16
NAME = f"peeks at 1 KiB by lookup identifier over null calls, {CONNECTIONS} connections"
MESSAGES = 100
PEEK_ACCESS, LOOKUP_PEEK_CURRENT = 0x20, 0x40000010


def peeking(lookup_identifier: int) -> Script:
    """Every answer has the whole message, and ends with success."""
    loop = [start_receive(SIZE, 0, LOOKUP_PEEK_CURRENT, lookup_identifier)]
    once = [bind("remoteread"), open_for_receiving(access=PEEK_ACCESS)]
    return Script(once, loop, handle_into(loop, opened_for_receiving()), bytes(4))


def in_the_middle(served: Served) -> int:
    """The lookup identifier of a message among others."""
    name = FormatName.parse(rf"DIRECT=OS:.\private$\{QUEUE}")
    with BlockingClient(LocalServer(served.socket)) as client:
        with client.open_sender(name) as sender:
            for _ in range(MESSAGES):
                sender.send(OutgoingMessage(bytes(SIZE)))
        with client.open_reader(name) as reader:
            return [message.lookup_identifier for message in reader.browse()][MESSAGES // 2]


def measure() -> Figure:
    with TemporaryDirectory(dir=BUILD) as name, serving(Path(name), CONFIGURATION) as served:
        served.command("queue", "create", QUEUE, "--sddl", EVERYONE)
        port, peeks = served.port, peeking(in_the_middle(served))
        measured = pairs(
            lambda: rate(port, CONNECTIONS, peeks),
            lambda: rate(port, CONNECTIONS, script(port)),
        )
        return measured.figure(NAME, served.pid)


def run() -> Iterator[Figure]:
    yield from attempt(NAME, measure)
