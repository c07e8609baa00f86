"""Alice and Bob, two queue managers of a simulation, and what tests look at."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rpcqm.adm.queue import Queue
from rpcqm.codec.packet.message import PacketMessage
from tests.support.binary.binary_network import Node, Simulation
from tests.support.queue_manager import MEMORY

ORDERS = "DIRECT=OS:bob\\private$\\orders"
STREAM = "DIRECT=OS:bob\\private$\\stream"
ADMIN = "DIRECT=OS:alice\\private$\\admin"
ALL_ACKNOWLEDGEMENTS = 0x0F


class Exchanging:
    """Alice sends to Bob, who has an ordinary queue `orders` and a transactional `stream`."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.alice = simulation.node("alice")
        self.bob = simulation.node("bob")
        self.orders = self.bob.create("orders")
        self.stream = self.bob.create("stream", transactional=True)
        self.alice.create("admin")

    def send(self, to: str = ORDERS, body: bytes = b"content", **more: Any) -> None:
        """Send a message that asks for every acknowledgement."""
        more.setdefault("administration_queue_format_name", ADMIN)
        more.setdefault("acknowledgements_requested", ALL_ACKNOWLEDGEMENTS)
        self.alice.send(to, body, **more)

    def settle(self, seconds: int = 5) -> None:
        self.simulation.advance(seconds * 1000)

    @property
    def acknowledged(self) -> list[int]:
        """The classes of the acknowledgements that have come back."""
        return [int(each.message_class) for each in packets(self.alice, self.alice.find("admin"))]


def packets(node: Node, queue: Queue) -> list[PacketMessage]:
    """The messages of a queue, in order."""
    keys = queue.message_position_list.page(None, 1_000)
    return [node.engine.positions.message_at(queue, key).attributes for key in keys]


@contextmanager
def exchanging() -> Iterator[Exchanging]:
    """A pair on a perfect network."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        simulation = Simulation(Path(name))
        yield Exchanging(simulation)
        simulation.stop()
