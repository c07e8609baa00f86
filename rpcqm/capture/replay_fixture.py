"""What a capture presupposes: the queues that it opens, and the messages that it reads."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rpcqm.base.errors import DecodeError, MQError
from rpcqm.base.hresult import HResult
from rpcqm.capture.analysis import Exchange
from rpcqm.capture.binary_conversation import SIGNATURE
from rpcqm.capture.call import Call
from rpcqm.capture.subjects import Subjects
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.format_name import FormatName
from rpcqm.codec.message import PacketMessage
from rpcqm.codec.path_name import PathName
from rpcqm.codec.sddl import parse_sddl

EVERYBODY = "D:(A;;GA;;;WD)(A;;GA;;;AN)"
_PRIVATE = re.compile(r"(?i)private\$\\([^;]+)")
_OPENS = frozenset({"R_OpenQueue", "R_OpenQueueForMove", "rpc_QMOpenQueueInternal"})


@dataclass(frozen=True, slots=True)
class PresupposedMessage:
    """A message that was in a queue before; `sequence` gives the order of sending."""

    queue: str
    sequence: int
    packet: PacketMessage
    whole: bool


@dataclass(slots=True)
class Fixture:
    """Names of private queues, whether they are transactional, and messages in their order."""

    queues: dict[str, bool] = field(default_factory=dict)
    messages: list[PresupposedMessage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def infer(exchanges: Iterable[Exchange]) -> Fixture:
    """What must have been there for the calls to be answered as they were."""
    found, subjects = Fixture(), Subjects()
    known: dict[str, PresupposedMessage] = {}
    created: set[str] = set()
    for exchange in sorted(exchanges, key=lambda each: each.time):
        queue = _name(subjects.queue(exchange))
        if not isinstance(exchange, Call) or exchange.fault is not None:
            continue
        if exchange.name == "R_QMCreateObjectInternal":
            created.add(queue.lower())
        elif queue and exchange.name in _OPENS and queue.lower() not in created:
            found.queues.setdefault(queue, False)
        if exchange.name == "R_StartTransactionalReceive" and queue in found.queues:
            found.queues[queue] = True
        _read(exchange, queue, known)
    found.messages = sorted(known.values(), key=lambda message: message.sequence)
    partial = sum(not message.whole for message in found.messages)
    if partial:
        found.notes.append(f"{partial} messages were never read whole; zeros stand for the rest")
    return found


def _name(queue: str) -> str:
    """The name of a private queue, without its subqueue."""
    match = _PRIVATE.search(queue)
    return match[1] if match else ""


def _read(call: Call, queue: str, known: dict[str, PresupposedMessage]) -> None:
    response = call.decoded_response()
    sections = getattr(response, "ppPacketSections", None)
    if not sections or not queue:
        return
    octets = sections[0].pSectionBuffer or b""
    if octets[4:8] != SIGNATURE:
        return
    whole = sections[0].SectionSizeAlloc == len(octets)
    if not whole:
        rest = b"".join(each.pSectionBuffer or b"" for each in sections[1:])
        octets = octets.ljust(sections[0].SectionSizeAlloc, b"\0") + rest
    try:
        packet = PacketMessage(octets)
        identifier = str(packet.identifier)
    except DecodeError:
        return
    if identifier not in known or (whole and not known[identifier].whole):
        first = known.get(identifier)
        origin = first.queue if first else queue
        known[identifier] = PresupposedMessage(origin, response.pSequenceId, packet, whole)


async def prepare(fixture: Fixture, client: QueueManagerClient) -> None:
    """Create the queues that are not there and send the messages; MQError and the like."""
    for name, transactional in fixture.queues.items():
        path = PathName.parse(f".\\private$\\{name}")
        settings = QueueSettings(transactional=transactional)
        try:
            await client.queues.create(path, settings, parse_sddl(EVERYBODY))
        except MQError as error:
            if error.status != HResult.MQ_ERROR_QUEUE_EXISTS:
                raise
    for message in fixture.messages:
        if message.queue not in fixture.queues:
            continue
        target = FormatName.parse(f"DIRECT=OS:.\\private$\\{message.queue}")
        async with client.open_sender(target) as sender:
            if fixture.queues[message.queue]:
                async with client.begin_transaction() as transaction:
                    await sender.send(outgoing(message.packet), transaction)
            else:
                await sender.send(outgoing(message.packet))


def outgoing(packet: PacketMessage) -> OutgoingMessage:
    """A message to send that is like a captured one."""
    values: dict[str, Any] = {
        "body": packet.body,
        "label": packet.label,
        "priority": packet.priority,
        "recoverable": bool(packet.delivery_guarantee),
        "body_type": packet.body_type,
        "time_to_be_received": packet.time_to_be_received,
        "correlation_identifier": packet.correlation_identifier,
        "application_tag": packet.application_tag,
        "extension": packet.extension,
        "acknowledgements": packet.acknowledgements_requested,
    }
    return OutgoingMessage(**values)
