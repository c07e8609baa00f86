"""Queues, messages, leases and traces in what JSON has: what programs and pages are told."""

from typing import Any, NamedTuple

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.text import iso_time
from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.codec.bodies.described import (
    LONGEST_DECODED,
    Place,
    described,
    described_body,
    described_octets,
)
from rpcqm.codec.filters.body_text import beginning
from rpcqm.codec.names.written import shown_name
from rpcqm.codec.types.mqvalues import INFINITE, QueuePrivacyLevel
from rpcqm.operations.account_names import AccountNames
from rpcqm.operations.trail import Event
from rpcqm.qm.leases import Lease, LeasedMessage
from rpcqm.qm.management_properties import STATES
from rpcqm.qm.message_lookup import LocationState, MessageLocation
from rpcqm.qm.quotas import Quotas
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
    name = queue.pathname.partition("\\")[2]
    prefix = "private$\\"
    if name.casefold().startswith(prefix):
        return name[len(prefix) :]
    known = shown_name(queue.pathname)
    return f".\\{name}" if known == queue.pathname else known


QueueFacts = tuple[object, ...]
"""What is told of a queue, before it is in words: queues with equal facts are told alike."""

_FACTS = (
    "name",
    "path_name",
    "format_name",
    "label",
    "transactional",
    "journal",
    "quota",
    "journal_quota",
    "authenticate",
    "privacy",
    "base_priority",
    "max_deliveries",
    "poison",
    "trail",
    "journal_max_age",
    "journal_max_messages",
    "created",
    "modified",
    "subqueues",
    "messages",
    "bytes",
    "journal_messages",
    "journal_bytes",
    "quota_percent",
    "journal_quota_percent",
)


def queue_facts(queue: Queue, names: QueueNames, counted: bool, quotas: Quotas) -> QueueFacts:
    """What a queue is, and how much is in it if that may be `counted`."""
    main, positions = queue.main, queue.message_position_list
    journal, subqueues = queue.journal_queue_reference, queue.subqueue_collection
    return (
        names.short,
        queue.pathname,
        names.format_name,
        main.label,
        main.transactional,
        main.journaling,
        main.quota,
        main.journal_quota,
        main.authentication,
        main.privacy_level,
        main.base_priority,
        main.max_deliveries,
        main.poison_subqueue,
        main.trail,
        main.journal_max_age,
        main.journal_max_messages,
        queue.create_time,
        queue.modify_time,
        tuple([each.subqueue_name for each in subqueues.values()]) if subqueues else (),
        positions.count if counted else None,
        positions.bytes if counted else None,
        journal.message_count if counted and journal else None,
        journal.total_bytes if counted and journal else None,
        quotas.percent(queue) if counted else None,
        quotas.percent(journal) if counted else None,
    )


def described_queue(facts: QueueFacts) -> dict[str, Any]:
    """The same in what JSON has."""
    told: dict[str, Any] = dict(zip(_FACTS, facts, strict=True))
    for quota in ("quota", "journal_quota"):
        told[quota] = None if told[quota] == INFINITE else told[quota]
    for moment in ("created", "modified"):
        told[moment] = iso_time(told[moment])
    told["privacy"] = _PRIVACY_NAMES.get(told["privacy"], "")
    told["subqueues"] = list(told["subqueues"])
    return told


def shown(
    message: Message, decode: bool = True, budget: DecodeBudget | None = None
) -> dict[str, object]:
    """A message with the members of `receive --json`.

    What its body and its extension say is looked at if `decode` says so and they are short, within
    a `budget` of the body and another of the extension; `budget` tells what both have spent.
    """
    attributes = message.attributes
    body, kind = attributes.body, attributes.body_type
    if not decode:
        return properties(message, decode=False) | described_octets(body, kind)
    told = described_body(body, kind, LONGEST_DECODED, budget)
    return properties(message, budget=budget) | told


def seen(told: dict[str, object], names: AccountNames) -> dict[str, object]:
    """A message that somebody looks at, with the name of its sender where that may be known."""
    return told | {"sender_name": names.found(told["sender"])}


def shown_where(
    message: Message, decode: bool = True, budget: DecodeBudget | None = None
) -> dict[str, object]:
    """The same with the queue that it is in."""
    return shown(message, decode, budget) | {"queue": queue_of(message)}


SUMMARY = 200
"""Characters of a body that are told of a message among many."""


def summary_where(message: Message) -> dict[str, object]:
    """What a message is, with the queue that it is in and the beginning of what its body says."""
    attributes = message.attributes
    said = beginning(attributes.body, attributes.body_type, SUMMARY)
    told = properties(message, decode=False)
    told.pop("extension_base64", None)
    return told | {"body": said, "queue": queue_of(message)}


def unread_where(message: Message) -> dict[str, object]:
    """Which message, and in which queue, a search has not read whole."""
    return {"queue": queue_of(message), "lookup_id": str(message.lookup_identifier)}


def queue_of(message: Message) -> str:
    """The name of the queue of a message as commands call it; one elsewhere by its format name."""
    queue = message.queue
    assert queue is not None
    return short_name(queue) if queue.pathname else queue.full_name


def properties(
    message: Message, *, decode: bool = True, budget: DecodeBudget | None = None
) -> dict[str, object]:
    """The same without its body."""
    place = Place(
        message.lookup_identifier,
        message.arrival_time / 1000,
        message.move_count,
        message.abort_count,
    )
    return described(message.attributes, place, {}, decode=decode, budget=budget)


def delivery(received: LeasedMessage) -> dict[str, object]:
    """What is told of a message because it was received."""
    told: dict[str, object] = {"delivery_count": received.delivery_count}
    if received.lease is None:
        return told
    lease = received.lease
    return told | {"lease": lease.identifier, "lease_expires": iso_time(lease.expires / 1000)}


def described_lease(lease: Lease) -> dict[str, object]:
    """Who holds which message until when."""
    return {
        "lease": lease.identifier,
        "received": iso_time(lease.begun / 1000),
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
