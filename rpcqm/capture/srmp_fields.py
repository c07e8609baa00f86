"""What a message of [MC-MQSRM] says, as JSON has it, and line by line with offsets."""

import dataclasses
from collections.abc import Iterator

from rpcqm.capture.conversation.http import HttpMessage
from rpcqm.capture.conversation.srmp import SrmpExchange
from rpcqm.capture.ndr_fields import StubField
from rpcqm.capture.values import Plain, plain
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.srmp.elements import MessageId, StreamId

_SHOWN_OCTETS = 32
_LEFT_OUT = frozenset({"signed_info"})
"""The octets of what is signed: the other elements say it."""


def element(value: object) -> Plain:
    """An element of an envelope and what is in it, by the names of `srmp.elements`."""
    if isinstance(value, MessageId):
        return str(MessageIdentifier(value.guid, value.ordinal))
    if isinstance(value, StreamId):
        return f"{value.guid}\\{value.ordinal}"
    if dataclasses.is_dataclass(value):
        names = (each.name for each in dataclasses.fields(value) if each.name not in _LEFT_OUT)
        return {name: element(getattr(value, name)) for name in names}
    if isinstance(value, tuple | list):
        return [element(each) for each in value]
    return plain(value)


def request_object(exchange: SrmpExchange) -> dict[str, Plain]:
    """The request: its elements and attachments, or its size and why it cannot be read."""
    found: dict[str, Plain] = {"target": exchange.asked.first[1]}
    request = exchange.decoded_request()
    if request is None:
        return found | {"size": exchange.request_size, "error": exchange.note}
    told = element(request.envelope)
    assert isinstance(told, dict)
    return found | told | {"body": plain(request.body), "extension": plain(request.extension)}


def response_object(exchange: SrmpExchange) -> dict[str, Plain] | None:
    """The answer: its reason and its body; None if it was not captured."""
    answer = exchange.answer
    if answer is None:
        return None
    return {"reason": answer.first[2], "body": bytes(answer.body).hex()}


def summary(exchange: SrmpExchange) -> str:
    """The message in a few words: its identifier, its class, its place in a stream."""
    envelope = exchange.envelope
    if envelope is None:
        return f"{exchange.asked.first[1]} {exchange.request_size} octets"
    parts = [exchange.identifiers[0], *(f"about={each}" for each in exchange.identifiers[1:])]
    if envelope.msmq is not None and envelope.msmq.message_class:
        parts.append(f"class=0x{envelope.msmq.message_class:04X}")
    if envelope.stream is not None:
        stream = envelope.stream
        parts.append(f"stream={element(stream.stream_id)} current={stream.current}")
    if envelope.stream_receipt is not None:
        receipt = envelope.stream_receipt
        parts.append(f"stream={element(receipt.stream_id)} last={receipt.last_ordinal}")
    label = envelope.action.removeprefix("MSMQ:")
    return " ".join([*parts, *([f"label={label!r}"] if label else [])])


def head_fields(message: HttpMessage) -> list[StubField]:
    """The lines of a head, with their offsets in the message."""
    at, found = 0, []
    for line in message.head.split(b"\r\n"):
        text = line.decode("latin-1")
        name, _, value = text.partition(":")
        field = ("first line", text) if not at else (name, value.strip())
        found.append(StubField(at, len(line), *field))
        at += len(line) + 2
    return found


def elements(exchange: SrmpExchange) -> Iterator[tuple[str, Plain]]:
    """Every element that is there, by its path, and the beginnings of what is attached."""
    request = exchange.decoded_request()
    if request is not None:
        yield from leaves("", element(request.envelope))
        for name, octets in (("body", request.body), ("extension", request.extension)):
            if octets is not None:
                more = "…" if len(octets) > _SHOWN_OCTETS else ""
                yield f"{name} ({len(octets)} octets)", octets[:_SHOWN_OCTETS].hex(" ") + more


def leaves(path: str, value: Plain) -> Iterator[tuple[str, Plain]]:
    """The values in what `element` gives, each with its path; none for what is not there."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(f"{path}.{name}" if path else name, inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(f"{path}[{index}]", inner)
    elif value is not None:
        yield path, value
