"""What a capture presupposes: the queues that it opens, and the messages that it reads."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote

from rpcqm.base.errors import DecodeError, MQError
from rpcqm.base.hresult import HResult
from rpcqm.base.text import folded
from rpcqm.capture.analysis import Exchange
from rpcqm.capture.conversation.binary import BinaryPacket
from rpcqm.capture.conversation.binary_progress import final_ack_of
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.conversation.srmp import SrmpExchange
from rpcqm.capture.conversation.subjects import Subjects, message_identifiers
from rpcqm.client.outgoing import OutgoingMessage
from rpcqm.client.queue_manager import QueueManagerClient
from rpcqm.client.queue_settings import QueueSettings
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.base import SIGNATURE_OCTETS
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.fields import SIGNATURE
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.security.sddl import parse_sddl

EVERYBODY = "D:(A;;GA;;;WD)(A;;GA;;;AN)"
_PRIVATE = re.compile(r"(?i)private\$(?:\\([^;]+)|/([^;?]+))")
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


class _Inference:
    """Reads a capture in the order of its requests."""

    def __init__(self) -> None:
        self.found = Fixture()
        self._subjects = Subjects()
        self._known: dict[str, PresupposedMessage] = {}
        self._created: set[str] = set()
        self._sent: set[str] = set()

    def take(self, exchange: Exchange) -> None:
        queue = _name(self._subjects.queue(exchange))
        if isinstance(exchange, BinaryPacket):
            if exchange.from_client and exchange.name == PacketKind.USER_MESSAGE.value:
                self._message(exchange, queue)
        elif isinstance(exchange, SrmpExchange):
            self._posted(exchange, queue)
        elif exchange.fault is None:
            self._call(exchange, queue)

    def _message(self, packet: BinaryPacket, queue: str) -> None:
        """A message of another queue manager: its queue must be there, unless it was refused."""
        self._sent.update(message_identifiers(packet))
        message = packet.decoded_request()
        if queue and folded(queue) not in self._created and isinstance(message, PacketMessage):
            transactional = message.layout.transaction >= 0
            known = self.found.queues.get(queue, False)
            self.found.queues[queue] = known or transactional

    def _posted(self, exchange: SrmpExchange, queue: str) -> None:
        """A message over HTTP that was taken: only a stream goes to a transactional queue."""
        self._sent.update(message_identifiers(exchange))
        envelope = exchange.envelope
        if envelope is None or exchange.status != HTTPStatus.OK:
            return
        if queue and folded(queue) not in self._created:
            known = self.found.queues.get(queue, False)
            self.found.queues[queue] = known or envelope.stream is not None

    def refused(self, identifiers: Iterable[str], exchanges: Iterable[Exchange]) -> None:
        """The queues of these messages were not there."""
        gone = set(identifiers)
        for exchange in exchanges if gone else ():
            sent = isinstance(exchange, BinaryPacket) and exchange.from_client
            if sent and gone.intersection(message_identifiers(exchange)):
                self.found.queues.pop(_name(self._subjects.queue(exchange)), None)

    def _call(self, call: CapturedCall, queue: str) -> None:
        if call.name == "R_QMCreateObjectInternal":
            self._created.add(folded(queue))
        elif queue and call.name in _OPENS and folded(queue) not in self._created:
            self.found.queues.setdefault(queue, False)
        if call.name == "R_StartTransactionalReceive" and queue in self.found.queues:
            self.found.queues[queue] = True
        if "SendMessage" in call.name:
            if queue in self.found.queues and _in_transaction(call):
                self.found.queues[queue] = True
            self._sent.update(message_identifiers(call))
        _read(call, queue, self._known)

    def finish(self) -> Fixture:
        """What was sent in the capture, and what was said about it, was not there before."""
        own = self._sent.union(self._known)
        messages = [
            message
            for identifier, message in self._known.items()
            if identifier not in self._sent and _correlation(message.packet) not in own
        ]
        self.found.messages = sorted(messages, key=lambda message: message.sequence)
        partial = sum(not message.whole for message in self.found.messages)
        if partial:
            told = f"{partial} messages were never read whole; zeros stand for the rest"
            self.found.notes.append(told)
        return self.found


def _in_transaction(call: CapturedCall) -> bool:
    """Whether a message was sent in a transaction."""
    buffer = getattr(call.decoded_request(), "ptb", None)
    return getattr(getattr(buffer, "old", None), "pUow", None) is not None


def infer(exchanges: Iterable[Exchange]) -> Fixture:
    """What must have been there for the calls to be answered as they were."""
    inference, ordered = _Inference(), sorted(exchanges, key=lambda each: each.time)
    for exchange in ordered:
        inference.take(exchange)
    inference.refused(_refused(ordered), ordered)
    return inference.finish()


def _refused(exchanges: Iterable[Exchange]) -> Iterator[str]:
    """The identifiers of messages whose FinalAck says that their queue does not exist."""
    for exchange in exchanges:
        if isinstance(exchange, BinaryPacket) and (body := final_ack_of(exchange)) is not None:
            message = PacketMessage(exchange.octets)
            if message.message_class == MessageClass.MQMSG_CLASS_NACK_BAD_DST_Q:
                yield str(MessageIdentifier(body.source_guid, body.message_id))


def _correlation(packet: PacketMessage) -> str:
    """The message that an acknowledgement is about; empty for other messages."""
    if packet.message_class == MessageClass.MQMSG_CLASS_NORMAL:
        return ""
    return str(packet.correlation_identifier)


def _name(queue: str) -> str:
    """The name of a private queue, without its subqueue."""
    match = _PRIVATE.search(queue)
    return (match[1] or unquote(match[2])) if match else ""


def _read(call: CapturedCall, queue: str, known: dict[str, PresupposedMessage]) -> None:
    response = call.decoded_response()
    sections = getattr(response, "ppPacketSections", None)
    if not sections or not queue:
        return
    octets = sections[0].pSectionBuffer or b""
    if octets[SIGNATURE] != SIGNATURE_OCTETS:
        return
    whole = sections[0].SectionSizeAlloc == len(octets)
    if not whole:
        rest = b"".join(each.pSectionBuffer or b"" for each in sections[1:])
        octets = octets.ljust(sections[0].SectionSizeAlloc, b"\0") + rest
    try:
        packet = PacketMessage(octets)
        identifier = str(packet.identifier)
    except DecodeError:
        # A message that cannot be read cannot be sent beforehand either.
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
    return OutgoingMessage(
        body=packet.body,
        label=packet.label,
        priority=packet.priority,
        recoverable=bool(packet.delivery_guarantee),
        body_type=packet.body_type,
        time_to_be_received=packet.time_to_be_received,
        correlation_identifier=packet.correlation_identifier,
        application_tag=packet.application_tag,
        extension=packet.extension,
        acknowledgements=packet.acknowledgements_requested,
    )
