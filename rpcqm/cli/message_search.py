"""Finds a message and tells its past.

The queue manager of this machine searches its queues itself. From another one, every readable
message is fetched.
"""

import argparse
import shlex
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from rpcqm.base.errors import HResult, MQError, RpcFault
from rpcqm.base.text import iso_time, visible
from rpcqm.cli.errors import CommandError
from rpcqm.cli.message_outcome import outcomes
from rpcqm.cli.options import queue_name
from rpcqm.cli.output import ProgressDisplay, Table, print_json, time_text
from rpcqm.cli.session import with_server
from rpcqm.client.maintenance import FoundMessage
from rpcqm.client.names import SYSTEM_QUEUES, is_format_name, shown_name
from rpcqm.codec.packet.types import MessageIdentifier

if TYPE_CHECKING:
    from rpcqm.client.maintenance import RecordedEvent
    from rpcqm.client.queue_manager import QueueManagerClient

NOT_READABLE = frozenset({HResult.MQ_ERROR_ACCESS_DENIED, HResult.MQ_ERROR_QUEUE_NOT_FOUND})

Trails = dict[str, bool]
"""Queues, and whether they have event trails."""


def explain_message(arguments: argparse.Namespace, identifier: MessageIdentifier) -> int:
    """Print the queues and the past of a message; raises CommandError if nothing is known of it."""

    async def work(client: "QueueManagerClient") -> None:
        if arguments.server is None:
            places = [_place(place) for place in await client.maintenance.find(identifier)]
            events = [_event(event) for event in await client.maintenance.trail(identifier)]
        else:
            with ProgressDisplay("Looked at") as progress:
                places = [p async for p in _places(client, arguments, identifier, progress)]
            events = []
        trails = await _trails(client, arguments, places, events)
        if not places and not events:
            raise CommandError(_unknown(identifier, arguments.server is None))
        if arguments.json:
            print_json(_for_programs(identifier, places, events, trails))
        else:
            _print(places, events, trails)

    return with_server(arguments, f"look for {identifier}", work, administrators_only=True)


def _place(place: FoundMessage) -> FoundMessage:
    return replace(place, queue=shown_name(place.queue))


def _event(event: "RecordedEvent") -> "RecordedEvent":
    return replace(event, queue=shown_name(event.queue), detail=shown_name(event.detail))


def _unknown(identifier: MessageIdentifier, local: bool) -> str:
    where = "no queue here" if local else "no queue there that can be read"
    teller = "no event trail tells" if local else "event trails are told on that machine only"
    begins = "`rpcqm queue set QUEUE --trail` begins one"
    return f"{identifier} is in {where}, and {teller}{f' of it; {begins}' if local else ''}."


async def _trails(
    client: "QueueManagerClient",
    arguments: argparse.Namespace,
    places: "Iterable[FoundMessage]",
    events: "Iterable[RecordedEvent]",
) -> Trails:
    """Whether each of the queues has an event trail, which their own machine tells.

    The trail of a queue covers its journal and its subqueues. Queues to other queue managers are
    left out: they have no trail.
    """
    trails: Trails = {}
    names = [place.queue for place in places] + [event.queue for event in events]
    paths = [name.partition(";")[0] for name in names if not is_format_name(name)]
    for name in dict.fromkeys(paths):
        try:
            trails[name] = await client.maintenance.has_trail(queue_name(arguments, name))
        except (MQError, RpcFault):  # the queue is gone, or another machine's
            continue
    return trails


async def _places(
    client: "QueueManagerClient",
    arguments: argparse.Namespace,
    identifier: MessageIdentifier,
    progress: ProgressDisplay,
) -> AsyncIterator[FoundMessage]:
    async for path in queues_with_messages(client, arguments):
        try:
            async for place in _places_in(client, arguments, path, identifier, progress):
                yield place
        except MQError as error:
            if error.status not in NOT_READABLE:
                raise


async def queues_with_messages(
    client: "QueueManagerClient", arguments: argparse.Namespace
) -> AsyncIterator[str]:
    """Every queue with messages: private, public and system queues, subqueues and journals."""
    private = await client.management.private_queues()
    active = await client.management.active_public_queues()
    for path in [*private, *(queue.path_name for queue in active), *SYSTEM_QUEUES]:
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
    progress: ProgressDisplay,
) -> AsyncIterator[FoundMessage]:
    async with client.open_reader(queue_name(arguments, path), peek_only=True) as reader:
        async for message in reader.browse(body=0):
            progress.advance()
            if message.identifier == identifier:
                lookup, arrived = message.lookup_identifier, message.arrival_time
                yield FoundMessage(path, lookup, arrived, message.label)


def _for_programs(
    identifier: MessageIdentifier,
    places: list[FoundMessage],
    events: "list[RecordedEvent]",
    trails: Trails,
) -> dict[str, object]:
    return {
        "id": str(identifier),
        "places": [
            {
                "queue": place.queue,
                "lookup_id": str(place.lookup_identifier) if place.lookup_identifier else None,
                "arrived": iso_time(place.arrived) if place.arrived else None,
                "label": place.label,
                "state": place.state,
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
        "outcomes": list(outcomes(events)),
        "trails": trails,
    }


def _print(places: list[FoundMessage], events: "list[RecordedEvent]", trails: Trails) -> None:
    for place in places:
        print(visible(_sentence(place)))
    if not places:
        print("It is in no queue any more.")
    for sentence in outcomes(events):
        print(visible(sentence))
    if events:
        print()
        table = Table(["TIME", "WHAT", "QUEUE", "WHERE TO, OR WHY"])
        for event in events:
            table.add(time_text(event.time), event.happening, event.queue, event.detail)
        table.print()
    if trails:
        print()
    for name, on in trails.items():
        print(visible(f"The event trail of {name} is {'on' if on else _off(name)}."))


def _off(name: str) -> str:
    begins = f"rpcqm queue set {shlex.quote(name)} --trail"
    return f"off, so nothing is written down there; `{begins}` begins it"


_STATES = {
    "being read": ", and somebody is reading it",
    "leaving": ", which it is about to leave",
}


def _sentence(place: FoundMessage) -> str:
    if not place.lookup_identifier:
        return f"It was sent to {place.queue} in a transaction that is still open."
    since = f", since {time_text(place.arrived)}" if place.arrived else ""
    where = f"{place.queue}, lookup id {place.lookup_identifier}{since}"
    if is_format_name(place.queue):
        explain = f"rpcqm explain {shlex.quote(place.queue)}"
        return f"It is on its way to {where}; `{explain}` tells how that goes."
    if ";dead" in place.queue.casefold():
        lookup = place.lookup_identifier
        return f"It is in {where}; `rpcqm dead-letter inspect {lookup}` tells why."
    return f"It is in {where}{_STATES.get(place.state, '')}."
