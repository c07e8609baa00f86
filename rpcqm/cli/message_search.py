"""Where a message is, and what happened to it."""

import argparse
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rpcqm.base.errors import HResult, MQError, RpcFault
from rpcqm.cli.errors import CommandError
from rpcqm.cli.options import queue_name
from rpcqm.cli.output import Progress, Table, iso_time, print_json, time_text
from rpcqm.cli.session import with_server
from rpcqm.codec.packet_types import MessageIdentifier

if TYPE_CHECKING:
    from rpcqm.client.maintenance import TrailEvent
    from rpcqm.client.queue_manager import QueueManagerClient

SYSTEM_QUEUES = ("DeadLetter$", "XactDeadLetter$", "Journal$")
NOT_READABLE = frozenset({HResult.MQ_ERROR_ACCESS_DENIED, HResult.MQ_ERROR_QUEUE_NOT_FOUND})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message is; copies in journals are further places."""

    queue: str
    lookup_identifier: int
    arrived: int
    label: str


def explain_message(arguments: argparse.Namespace, identifier: MessageIdentifier) -> int:
    """Print where a message is and what happened to it; CommandError when nothing is known."""

    async def work(client: "QueueManagerClient") -> None:
        events = await _events(client, identifier)
        with Progress("Looked at") as progress:
            places = [p async for p in _places(client, arguments, identifier, progress)]
        if not places and not events:
            raise CommandError(
                f"{identifier} is in no queue here that can be read, and no event trail tells of "
                "it; `rpcqm queue set QUEUE --trail` begins one."
            )
        if arguments.json:
            print_json(_for_programs(identifier, places, events))
        else:
            _print(places, events)

    return with_server(arguments, f"look for {identifier}", work, administrators_only=True)


async def _events(
    client: "QueueManagerClient", identifier: MessageIdentifier
) -> "list[TrailEvent]":
    """What its own machine tells administrators; nothing elsewhere."""
    try:
        return await client.maintenance.trail(identifier)
    except (MQError, RpcFault):
        return []


async def _places(
    client: "QueueManagerClient",
    arguments: argparse.Namespace,
    identifier: MessageIdentifier,
    progress: Progress,
) -> AsyncIterator[Place]:
    async for path in _queues(client, arguments):
        try:
            async for place in _places_in(client, arguments, path, identifier, progress):
                yield place
        except MQError as error:
            if error.status not in NOT_READABLE:
                raise


async def _queues(
    client: "QueueManagerClient", arguments: argparse.Namespace
) -> AsyncIterator[str]:
    """Every queue with messages: private ones, their subqueues and journals, the system's."""
    for path in [*await client.management.private_queues(), *SYSTEM_QUEUES]:
        information = await client.management.queue_information(queue_name(arguments, path))
        if information.message_count:
            yield path
        for name in information.subqueues:
            yield f"{path};{name}"
        if information.journal_message_count:
            yield f"{path};JOURNAL"


async def _places_in(
    client: "QueueManagerClient",
    arguments: argparse.Namespace,
    path: str,
    identifier: MessageIdentifier,
    progress: Progress,
) -> AsyncIterator[Place]:
    async with client.open_reader(queue_name(arguments, path), peek_only=True) as reader:
        async for message in reader.browse(body=0):
            progress.advance()
            if message.identifier == identifier:
                lookup, arrived = message.lookup_identifier, message.arrival_time
                yield Place(path, lookup, arrived, message.label)


def _for_programs(
    identifier: MessageIdentifier, places: list[Place], events: "list[TrailEvent]"
) -> dict[str, object]:
    return {
        "id": str(identifier),
        "places": [
            {
                "queue": place.queue,
                "lookup_id": str(place.lookup_identifier),
                "arrived": iso_time(place.arrived),
                "label": place.label,
            }
            for place in places
        ],
        "events": [
            {
                "time": iso_time(event.time),
                "happening": event.happening,
                "queue": event.queue,
                "lookup_id": str(event.lookup_identifier),
                "detail": event.detail or None,
            }
            for event in events
        ],
    }


def _print(places: list[Place], events: "list[TrailEvent]") -> None:
    for place in places:
        arrived = f", since {time_text(place.arrived)}" if place.arrived else ""
        print(f"It is in {place.queue}, lookup id {place.lookup_identifier}{arrived}.")
    if not places:
        print("It is in no queue any more, or somebody is reading it.")
    if events:
        print()
        table = Table(["TIME", "WHAT", "QUEUE", "WHERE TO, OR WHY"])
        for event in events:
            table.add(time_text(event.time), event.happening, event.queue, event.detail)
        table.print()
