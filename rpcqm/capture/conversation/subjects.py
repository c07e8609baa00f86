"""What calls are about: queues by the handles they gave, messages by their identifiers."""

import functools
from collections.abc import Callable, Iterator

from rpcqm.base.errors import DecodeError
from rpcqm.capture.analysis import Exchange
from rpcqm.capture.conversation.binary import BinaryPacket
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.conversation.srmp import SrmpExchange
from rpcqm.capture.values import queue_text
from rpcqm.codec.interface import Operation, Value
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.ndr.layout import reachable
from rpcqm.codec.packet.base import SIGNATURE_OCTETS
from rpcqm.codec.packet.fields import SIGNATURE
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqmq import OBJECTID, QUEUE_FORMAT

NO_HANDLE = bytes(20)
IDENTIFIER_DEPTH = 8
MOST_ELEMENTS = 64
"""How deep in a value, and how far in its arrays, messages are searched."""


class Subjects:
    """Follows handles from call to call; feed it calls in their order."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, bytes], str] = {}
        self.changed: Callable[[str, bytes, str], None] | None = None
        """Told of each handle that stands for another queue than before, and for which before."""

    def queue_of(self, server: str, handle: bytes) -> str:
        """What a handle of a server stands for now; empty when that is not known."""
        return self._queues.get((server, handle), "")

    def queue(self, exchange: Exchange) -> str:
        """The queue that a call or a packet is about; empty if it is not known."""
        if isinstance(exchange, BinaryPacket):
            return _destination(exchange)
        if isinstance(exchange, SrmpExchange):
            return exchange.queue
        operation = exchange.operation
        if operation is None:
            return ""
        if not _is_about_queues(operation):
            return ""
        request = exchange.decoded_request()
        named = _queue_named(request) if _names_queues(operation) else ""
        server = exchange.conversation.server
        for handle in operation.context_handles:
            if "in" in handle.direction and request is not None:
                octets = getattr(request, handle.name, b"")
                if isinstance(octets, bytes):
                    named = self._queues.get((server, octets), named)
        if named and any("out" in handle.direction for handle in operation.context_handles):
            self._keep(exchange, named)
        return named

    def _keep(self, call: CapturedCall, named: str) -> None:
        response, operation = call.decoded_response(), call.operation
        if response is None or operation is None:
            return
        for handle in operation.context_handles:
            octets = getattr(response, handle.name, b"") if "out" in handle.direction else b""
            if isinstance(octets, bytes) and octets not in (b"", NO_HANDLE):
                server = call.conversation.server
                before = self.queue_of(server, octets)
                self._queues[server, octets] = named
                if self.changed is not None and before != named:
                    self.changed(server, octets, before)


def _destination(packet: BinaryPacket) -> str:
    message = packet.decoded_request()
    if not isinstance(message, PacketMessage):
        return ""
    try:
        return str(message.destination_queue_format_name or "")
    except DecodeError:
        return ""


@functools.cache
def _names_queues(operation: Operation) -> bool:
    """Whether a request of the operation holds a queue's name."""
    parameters = [each for each in operation.declaration.parameters if each.in_]
    return any(
        each.name == "lpwcsPathName" or getattr(inner, "name", "") == "QUEUE_FORMAT"
        for each in parameters
        for inner in reachable(each.type)
    )


@functools.cache
def _is_about_queues(operation: Operation) -> bool:
    return bool(operation.context_handles) or _names_queues(operation)


@functools.cache
def handles_used(operation: Operation) -> tuple[str, ...] | None:
    """The handles that tell the queue of a call; None if the call names or opens a queue."""
    if _names_queues(operation) or any("out" in h.direction for h in operation.context_handles):
        return None
    return tuple(h.name for h in operation.context_handles if "in" in h.direction)


def _queue_named(request: object) -> str:
    """The first queue that a request names, by format name or path."""
    for value in _values(request, 4):
        if isinstance(value, QUEUE_FORMAT):
            return queue_text(value)
    path = getattr(request, "lpwcsPathName", None) if request is not None else None
    return path if isinstance(path, str) else ""


def message_identifiers(exchange: Exchange) -> list[str]:
    """The identifiers of the messages that a call or packet carries, as `{guid}\\number`."""
    if isinstance(exchange, BinaryPacket):
        return [text for text in [identifier_of(exchange.decoded_request())] if text]
    if isinstance(exchange, SrmpExchange):
        return exchange.identifiers
    found: list[str] = []
    for part in (exchange.decoded_request(), exchange.decoded_response()):
        for value in _values(part, IDENTIFIER_DEPTH):
            text = identifier_of(value)
            if text and text not in found:
                found.append(text)
    return found


def identifier_of(value: object) -> str:
    """The identifier that an OBJECTID, a packet or its octets hold; empty for anything else."""
    if isinstance(value, OBJECTID):
        known = value.Uniquifier or value.Lineage != NULL_GUID
        return str(MessageIdentifier(value.Lineage, value.Uniquifier)) if known else ""
    if isinstance(value, bytes) and value[SIGNATURE] == SIGNATURE_OCTETS:
        value = _packet(value)
    if isinstance(value, PacketMessage):
        try:
            return str(value.identifier)
        except DecodeError:
            return ""
    return ""


def _packet(octets: bytes) -> PacketMessage | None:
    try:
        return PacketMessage(octets)
    except DecodeError:
        return None


def _values(value: object, depth: int) -> Iterator[object]:
    """A value and what is in it, down to a depth."""
    yield value
    if not depth:
        return
    if isinstance(value, Value):
        for name in value.__slots__:
            yield from _values(getattr(value, name, None), depth - 1)
    elif isinstance(value, list):
        for each in value[:MOST_ELEMENTS]:
            if isinstance(each, Value | bytes | list):
                yield from _values(each, depth - 1)
