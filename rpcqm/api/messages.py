"""Messages of a queue: sending, receiving under leases, peeking, moving, removing."""

import asyncio
import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from functools import partial
from operator import attrgetter

from rpcqm.api import models, parameters, reading
from rpcqm.api.asked import Asked, Reply, settled
from rpcqm.api.problems import bad_request
from rpcqm.api.searching import conditions_of, lookup_id_of, names_for, search_queue
from rpcqm.api.telling import ToldMessages
from rpcqm.codec.bodies.budget import DecodeBudget
from rpcqm.codec.bodies.described import LONGEST_DECODED, described_body
from rpcqm.codec.names.written import HERE, format_names
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.operations.account_names import AccountNames
from rpcqm.operations.drafts import Draft, message_identifier
from rpcqm.operations.messages import (
    LONGEST_KEY,
    LeasedMessage,
    Message,
    RequestKey,
)
from rpcqm.operations.shapes import delivery, described_lease, seen, shown

PREFIX = "rpcqm-"


async def send_message(asked: Asked) -> Reply:
    """Send the request's body, with the properties in `Rpcqm-…` headers."""
    properties = properties_of(asked)
    draft = draft_of(asked, properties, asked.body)
    sent = asked.operations.messages.send(
        asked.identity, asked.destinations, [draft], _key(asked, properties)
    )
    (identifier,) = await settled(sent)
    return Reply(201, octets=told_identifier(identifier))


def told_identifier(identifier: MessageIdentifier) -> bytes:
    """What is told of a message that was sent."""
    return b'{"id":%b}' % reading.write_json(str(identifier))


async def send_messages(asked: Asked) -> Reply:
    """Send several messages to one queue, all or none."""
    wanted: models.MessagesDraft = asked.content
    drafts = [draft_of(asked, each, decoded(each.body_base64)) for each in wanted.messages]
    sent = asked.operations.messages.send(asked.identity, asked.destinations, drafts, _key(asked))
    return Reply(201, {"ids": [str(identifier) for identifier in await settled(sent)]})


async def work(asked: Asked) -> Reply:
    """Complete leases and send messages in one commit, all or none."""
    wanted: models.TransactionDraft = asked.content
    sendings = [
        (format_names(each.queue, HERE), draft_of(asked, each, decoded(each.body_base64)))
        for each in wanted.send
    ]
    done = asked.operations.messages.work(asked.identity, sendings, wanted.complete, _key(asked))
    return Reply(201, {"ids": [str(identifier) for identifier in await settled(done)]})


async def receive_messages(asked: Asked) -> Reply:
    """Receive messages, each under a lease; an empty list if the wait ends without one."""
    wanted: parameters.Receive = asked.parameters
    one, told = wanted.correlation_id, ToldMessages(partial(_told, decode=True))
    if one is None:
        given = await _received(asked, wanted, told)
    else:
        given = await _answer(asked, wanted, one, told)
    for each in given:
        if each.lease is not None:
            asked.operations.messages.answered(each.lease)
    told.add(map(delivery, given))
    return Reply(200, octets=told.answer(None))


def _wait(asked: Asked, wanted: parameters.Receive | parameters.PageOfMessages) -> int:
    """Milliseconds that are waited."""
    return min(wanted.wait, asked.longest_wait) * 1000


async def _received(
    asked: Asked, wanted: parameters.Receive, told: ToldMessages
) -> list[LeasedMessage]:
    wait, lease = _wait(asked, wanted), wanted.lease * 1000
    reception = asked.operations.messages.receive(
        asked.identity, asked.queue, lease, wait, wanted.max, asked.still, told.measure
    )
    try:
        return await settled(reception.outcome)
    except asyncio.CancelledError:  # the program has gone, and will not get them
        reception.abandon()
        raise


async def _answer(
    asked: Asked, wanted: parameters.Receive, text: str, told: ToldMessages
) -> list[LeasedMessage]:
    identifier, lease = message_identifier(text), wanted.lease * 1000
    wait = _wait(asked, wanted)
    received = await asked.operations.waiting.receive_answer(
        asked.identity, asked.queue, identifier, lease, wait, asked.still
    )
    for each in received:
        told.measure(each.message)
    return received


async def peek_messages(asked: Asked) -> Reply:
    """Peek at messages in order, or at those that meet conditions; they stay.

    Waits for the first one on request.
    """
    wanted: parameters.PageOfMessages = asked.parameters
    if conditions := conditions_of(wanted):
        return await search_queue(asked, conditions)
    after = None if wanted.after is None else lookup_id_of(wanted.after)
    tell = partial(_seen, decode=wanted.decode, names=names_for(asked))
    wait, told = _wait(asked, wanted), ToldMessages(tell)
    page = await asked.operations.waiting.peek(
        asked.identity, asked.queue, after, wanted.limit, wait, asked.still, told.measure
    )
    return Reply(200, octets=told.answer(page.next))


async def peek_message(asked: Asked) -> Reply:
    """Peek at one message."""
    wanted: parameters.Peek = asked.parameters
    return Reply(200, seen(shown(_looked_up(asked), wanted.decode), names_for(asked)))


async def peek_body(asked: Asked) -> Reply:
    """The body of one message: its octets, or its decoded value."""
    wanted: parameters.PeekBody = asked.parameters
    attributes = _looked_up(asked).attributes
    if not wanted.decode:
        return Reply(200, octets=attributes.body, content_type=_OCTETS)
    tell = partial(_told_body, attributes.body, attributes.body_type)
    if attributes.body_size <= LONGEST_DECODED:
        return Reply(200, octets=tell())
    return Reply(200, octets=await asked.operations.decoding.run(tell))


async def export_message(asked: Asked) -> Reply:
    """One message as a packet, which another queue manager can import."""
    return Reply(200, octets=_looked_up(asked).packet, content_type=_OCTETS)


async def import_message(asked: Asked) -> Reply:
    """Put a packet that was exported into a queue, as it was; for administrators."""
    operations = asked.operations.messages
    key = await settled(operations.import_message(asked.identity, asked.queue, asked.body))
    return Reply(201, {"lookup_id": str(key)})


async def remove_message(asked: Asked) -> Reply:
    """Receive one message by its lookup identifier; it is removed, and is the answer."""
    key = lookup_id_of(asked.path["lookup_id"])
    taken = asked.operations.messages.take(asked.identity, asked.queue, key)
    return Reply(200, shown(await settled(taken)))


async def purge_queue(asked: Asked) -> Reply:
    """Remove all messages of a queue."""
    purged = asked.operations.messages.purge(asked.identity, asked.queue)
    return Reply(200, {"messages": await settled(purged)})


async def list_leases(asked: Asked) -> Reply:
    """The leases of the caller; administrators see those of all."""
    leases = asked.operations.messages.leases(asked.identity)
    return Reply(200, {"leases": [described_lease(each) for each in leases]})


async def complete_lease(asked: Asked) -> Reply:
    """Remove the message of a lease, which is processed."""
    await settled(asked.operations.messages.complete(asked.identity, [asked.path["lease"]]))
    return Reply(204)


async def release_lease(asked: Asked) -> Reply:
    """Return the message of a lease to its queue; this counts as a failed delivery."""
    await settled(asked.operations.messages.release(asked.identity, [asked.path["lease"]]))
    return Reply(204)


async def extend_lease(asked: Asked) -> Reply:
    """Extend a lease."""
    wanted: parameters.Extend = asked.parameters
    lease = asked.operations.messages.extend(
        asked.identity, asked.path["lease"], wanted.lease * 1000
    )
    return Reply(200, described_lease(lease))


_OCTETS = "application/octet-stream"


def _looked_up(asked: Asked) -> Message:
    key = lookup_id_of(asked.path["lookup_id"])
    return asked.operations.messages.look_up(asked.identity, asked.queue, key)


def _told(message: Message, budget: DecodeBudget, decode: bool) -> dict[str, object]:
    return shown(message, decode, budget)


def _seen(
    message: Message, budget: DecodeBudget, decode: bool, names: AccountNames
) -> dict[str, object]:
    return seen(shown(message, decode, budget), names)


def _told_body(body: bytes, body_type: int) -> bytes:
    return reading.write_json(described_body(body, body_type))


_values = attrgetter(*(each.name for each in fields(Draft)[1:-1]))
"""What a draft has between its body and its context, which properties have under the same names."""


def draft_of(asked: Asked, properties: models.MessageProperties, body: bytes) -> Draft:
    """What is asked for; the header `traceparent` of W3C counts for all messages of a request."""
    draft = Draft(body, *_values(properties))
    draft.acknowledgements = tuple(properties.acknowledgements)
    draft.traceparent = asked.headers.get("traceparent", "")
    return draft


def decoded(text: str) -> bytes:
    """The octets of a body as JSON has them."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request("body_base64 is no Base64") from None


def properties_of(asked: Asked) -> models.MessageProperties:
    """The properties of the message of a request."""
    return reading.read_texts(models.MessageProperties, _properties(asked.headers))


def _properties(headers: Mapping[str, str]) -> dict[str, object]:
    """What `Rpcqm-…` headers say, percent-decoded; unknown ones are mistakes, as in JSON."""
    given: dict[str, object] = {}
    if PREFIX not in "\n".join(headers):  # most messages have none
        return given
    for name, value in headers.items():
        if name.startswith(PREFIX):
            member = name.removeprefix(PREFIX).replace("-", "_")
            given[member] = _text(name, value)
    if "acknowledgements" in given:
        texts = str(given["acknowledgements"]).split(",")
        given["acknowledgements"] = [text.strip() for text in texts if text.strip()]
    return given


def _text(name: str, value: str) -> str:
    try:
        return reading.percent_decoded(value)
    except ValueError:
        raise bad_request(f"{name}: not percent-encoded UTF-8") from None


def _key(asked: Asked, properties: models.MessageProperties | None = None) -> RequestKey | None:
    """The key under which a request is done once, with the digest of what it asks for."""
    key = asked.headers.get("idempotency-key")
    if key is None:
        return None
    if not (1 <= len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        raise bad_request(f"Idempotency-Key: 1 to {LONGEST_KEY} printable characters of ASCII")
    asked_for = None if properties is None else asdict(properties)
    parts: Iterable[bytes] = (
        json.dumps(asked_for, sort_keys=True).encode(),
        asked.queue_text.encode("utf-8", "surrogatepass") if "name" in asked.path else b"",
        asked.body,
    )
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return RequestKey(key, digest.digest())
