"""Calls that are made before they are sent: sealed ones, and ones that all differ.

Connections are opened and bound by Python, the octets of their calls are written to files in
memory, and the load generator only sends them.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TypeVar
from uuid import UUID

from authenticated import Connection
from harness import memory_file

from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.codec.interface import Value
from rpcqm.codec.packet.attributes import MessageAttributes
from rpcqm.codec.packet.types import MessageIdentifier

VARIED_SIZES = 100, 10_240
PRIORITIES = 3, 5

Message = TypeVar("Message", OutgoingMessage, MessageAttributes)
Prepare = Callable[[int, Connection], Iterable[Value]]
"""Makes a connection ready, which has a number; the requests that it sends then."""


@contextmanager
def streams(
    connect: Callable[[], Connection], connections: int, operation: str, prepare: Prepare
) -> Iterator[dict[int, Path]]:
    """Connections with what each of them will send; their file descriptors, and the files."""
    with ExitStack() as stack:
        made: dict[int, Path] = {}
        for number in range(connections):
            connection = stack.enter_context(closing(connect()))
            path = stack.enter_context(memory_file())
            connection.prepare(operation, prepare(number, connection), path)
            made[connection.socket.fileno()] = path
        yield made


def varied(message: Message, draw: Random) -> Message:
    """The message with a body, a label, a correlation and a priority of its own."""
    return replace(
        message,
        body=draw.randbytes(draw.randint(*VARIED_SIZES)),
        label=f"order {draw.randrange(10 ** draw.randint(1, 12))}",
        correlation_identifier=MessageIdentifier(UUID(int=draw.getrandbits(128)), 1),
        priority=draw.choice(PRIORITIES),
    )
