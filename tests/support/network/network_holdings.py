"""What is left at the end of a run: every message in every queue, as anybody can read it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rpcqm.adm.queue import Queue
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import PacketMessage
from tests.support.binary.binary_network import Node
from tests.support.network.network_world import MACHINES, World, queue_of

AUTHORS = {identifier: name for name, identifier in MACHINES.items()}


class Copy(NamedTuple):
    """A message by its number, and the place that it was to go to."""

    number: int
    path: str


@dataclass
class Holdings:
    """What each kind of queue holds; acknowledgements are classes without MQMSG_CLASS_."""

    waiting: dict[str, list[int]] = field(default_factory=dict)
    journals: dict[str, list[int]] = field(default_factory=dict)
    dead: dict[Copy, list[str]] = field(default_factory=lambda: defaultdict(list))
    dead_transactional: dict[Copy, list[str]] = field(default_factory=lambda: defaultdict(list))
    sources: dict[Copy, list[str]] = field(default_factory=lambda: defaultdict(list))
    told: dict[Copy, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    """The classes of acknowledgements, and who has made them."""
    reports: list[int] = field(default_factory=list)
    """The numbers that the messages were given which reports are about."""
    unsent: dict[str, int] = field(default_factory=dict)


def look(world: World, numbers: dict[object, int]) -> Holdings:
    """Read everything; `numbers` says which message has which identifier."""
    held = Holdings(unsent=world.unsent())
    places = {each.format_name.upper(): path for path, each in world.destinations.items()}
    for path, each in world.destinations.items():
        node = world.nodes[each.machine]
        queue = queue_of(node, each.queue)
        held.waiting[path] = [int(message.body) for message in _messages(node, queue)]
        journal = queue.journal_queue_reference
        assert journal is not None
        held.journals[path] = [int(message.body) for message in _messages(node, journal)]
    for node in world.nodes.values():
        _look_at_system_queues(held, node, places)
    alice = world.nodes["alice"]
    for message in _messages(alice, queue_of(alice, "admin")):
        about = numbers[message.correlation_identifier]
        name = MessageClass(message.message_class).name.removeprefix("MQMSG_CLASS_")
        place = str(message.response_queue_format_name).upper()
        author = AUTHORS[message.identifier.queue_manager_guid]
        held.told[Copy(about, places[_absolute(place)])].append((name, author))
    for message in _messages(alice, queue_of(alice, "reports")):
        body = message.body.decode("utf-16-le")
        held.reports.append(int(body.split("</MESSAGE ID>")[0].removeprefix("<MESSAGE ID>"), 16))
    return held


def _look_at_system_queues(held: Holdings, node: Node, places: dict[str, str]) -> None:
    kept = {
        "deadletter": held.dead,
        "deadxact": held.dead_transactional,
        "journal": held.sources,
    }
    for name, where in kept.items():
        for message in _messages(node, queue_of(node, f"system$;{name}")):
            place = str(message.destination_queue_format_name).upper()
            where[Copy(int(message.body), places[place])].append(node.name)


def _absolute(place: str) -> str:
    """A local name, as the messages of others call it."""
    return place.replace("DIRECT=OS:ALICE\\PRIVATE$\\HOME", "DIRECT=OS:.\\PRIVATE$\\HOME")


def _messages(node: Node, queue: Queue) -> Iterator[PacketMessage]:
    for key in queue.message_position_list.page(None, 1_000_000, available=False):
        yield node.engine.positions.message_at(queue, key).attributes
