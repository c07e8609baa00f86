"""Queues, messages, leases and traces in what JSON has: what programs and pages are told."""

from typing import NamedTuple

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.text import iso_time
from rpcqm.codec.bodies.described import Place, described
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.types.mqvalues import INFINITE, QueuePrivacyLevel
from rpcqm.operations.trail import Event
from rpcqm.qm.leases import Lease, LeasedMessage
from rpcqm.qm.management_properties import STATES
from rpcqm.qm.message_lookup import LocationState, MessageLocation
from rpcqm.qm.trail import TrailEvent, TrailEventType

PRIVACY = {
    "none": QueuePrivacyLevel.MQ_PRIV_LEVEL_NONE,
    "optional": QueuePrivacyLevel.MQ_PRIV_LEVEL_OPTIONAL,
    "body": QueuePrivacyLevel.MQ_PRIV_LEVEL_BODY,
}
_PRIVACY_NAMES = {level: name for name, level in PRIVACY.items()}


class QueueNames(NamedTuple):
    """The name by which commands call a queue, and the one by which others can open it."""

    short: str
    format_name: str


def short_name(queue: Queue) -> str:
    """The name by which commands and this interface call a queue."""
    private = queue.pathname.partition("\\")[2]
    prefix = "private$\\"
    if private.casefold().startswith(prefix):
        return private[len(prefix) :]
    return f".\\{PathName.parse(queue.pathname).queue}"


def described_queue(queue: Queue, names: QueueNames, counted: bool) -> dict[str, object]:
    """What a queue is, and how much is in it if that may be `counted`."""
    main, positions = queue.main, queue.message_position_list
    journal = queue.journal_queue_reference if counted else None
    created, modified = queue.create_time, queue.modify_time
    created_at = iso_time(created)
    return {
        "name": names.short,
        "path_name": queue.pathname,
        "format_name": names.format_name,
        "label": main.label,
        "transactional": main.transactional,
        "journal": main.journaling,
        "quota": None if main.quota == INFINITE else main.quota,
        "journal_quota": None if main.journal_quota == INFINITE else main.journal_quota,
        "authenticate": main.authentication,
        "privacy": _PRIVACY_NAMES.get(main.privacy_level, ""),
        "base_priority": main.base_priority,
        "max_deliveries": main.max_deliveries,
        "poison": main.poison_subqueue,
        "trail": main.trail,
        "created": created_at,
        "modified": created_at if modified == created else iso_time(modified),
        "subqueues": [each.subqueue_name for each in queue.subqueue_collection.values()],
        "messages": positions.count if counted else None,
        "bytes": positions.bytes if counted else None,
        "journal_messages": journal.message_count if journal else None,
        "journal_bytes": journal.total_bytes if journal else None,
    }


def shown(message: Message) -> dict[str, object]:
    """A message with the members of `receive --json`."""
    attributes = message.attributes
    place = Place(
        message.lookup_identifier,
        message.arrival_time / 1000,
        message.move_count,
        message.abort_count,
    )
    return described(attributes, place, attributes.body)


def leased(received: LeasedMessage) -> dict[str, object]:
    """A message that was received, with its lease if it has one."""
    told = shown(received.message) | {"delivery_count": received.delivery_count}
    if received.lease is None:
        return told
    lease = received.lease
    return told | {"lease": lease.identifier, "lease_expires": iso_time(lease.expires / 1000)}


def described_lease(lease: Lease) -> dict[str, object]:
    """Who holds which message until when."""
    return {
        "lease": lease.identifier,
        "lease_expires": iso_time(lease.expires / 1000),
        "account": lease.account,
        "queue": lease.queue.pathname,
        "lookup_id": str(lease.lookup_identifier),
        "delivery_count": lease.delivery_count,
    }


def described_outgoing(queue: OutgoingQueue) -> dict[str, object]:
    """A queue to another queue manager."""
    return {
        "format_name": queue.destination_format_name,
        "state": str(STATES[queue.state]),
        "messages": queue.message_count,
        "bytes": queue.total_bytes,
        "next_hops": list(queue.next_hops),
        "oldest": iso_time(queue.message_position_list.oldest() / 1000),
    }


def described_event(event: TrailEvent) -> dict[str, object]:
    """Something that happened to a message."""
    return {
        "time": iso_time(event.time / 1000),
        "event": TrailEventType(event.happening).name.lower(),
        "queue": event.queue,
        "detail": event.detail,
        "lookup_id": str(event.lookup_identifier),
    }


def described_happening(event: Event) -> dict[str, object]:
    """Something that has happened, or that an operator did."""
    return {
        "id": str(event.number) if event.number else None,
        "time": iso_time(event.time / 1000),
        "kind": str(event.kind),
        "about": event.about,
        **event.told,
    }


def described_place(place: MessageLocation) -> dict[str, object]:
    """Where a message or a copy of it is."""
    return {
        "queue": place.queue,
        "state": LocationState(place.whereabouts).name.lower(),
        "label": place.label,
        "lookup_id": str(place.lookup_identifier),
        "arrived": iso_time(place.arrived / 1000),
    }
