"""Calls as lines for people and as objects for programs."""

import functools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from uuid import UUID

from rpcqm.capture.analysis import Exchange
from rpcqm.capture.conversation.binary import BinaryPacket
from rpcqm.capture.conversation.call import CapturedCall
from rpcqm.capture.conversation.srmp import SrmpExchange
from rpcqm.capture.conversation.subjects import message_identifiers
from rpcqm.capture.ndr_fields import StubField, stub_fields
from rpcqm.capture.packet_fields import packet_fields
from rpcqm.capture.srmp_fields import (
    elements,
    head_fields,
    request_object,
    response_object,
    summary,
)
from rpcqm.capture.values import Plain, message_attributes, plain
from rpcqm.codec.automation.values import MISSING, SafeArray, Variant
from rpcqm.codec.interface import Value
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.types.mqvalues import (
    DENY_NONE,
    DENY_RECEIVE,
    MOVE_ACCESS,
    PEEK_ACCESS,
    RECEIVE_ACCESS,
    RR_ACK,
    RR_NACK,
    SEND_ACCESS,
    ReceiveAction,
    UnservedAction,
)

_SECOND = 1_000_000_000
_SHOWN_OCTETS = 32

# What a reader of a list does not want to know of every call.
_BORING = frozenset(
    {
        "BuildNumber",
        "Major",
        "Minor",
        "cbSize",
        "dwMaxBodySize",
        "dwMaxCompoundMessageSize",
        "fNonRoutingServer",
        "fWorkgroup",
        "orpcthat",
        "orpcthis",
        "pClientId",
        "pQueueFormat",
        "pTransactionId",
        "pdwArriveTime",
        "pdwNumberOfSections",
        "result",
    }
)


def _action_text(action: ReceiveAction | UnservedAction) -> str:
    """MQ_LOOKUP_PEEK_PREV as lookup-peek-previous, MQ_ACTION_RECEIVE as receive."""
    text = action.name.removeprefix("MQ_").removeprefix("ACTION_").lower().replace("_", "-")
    return f"{text}ious" if text.endswith("-prev") else text


_NAMED: dict[str, dict[int, str]] = {
    "ulAction": {each: _action_text(each) for each in (*ReceiveAction, *UnservedAction)},
    "dwAck": {RR_NACK: "nack", RR_ACK: "ack"},
    "dwAccess": {
        RECEIVE_ACCESS: "receive",
        SEND_ACCESS: "send",
        MOVE_ACCESS: "move",
        PEEK_ACCESS: "peek",
    },
    "dwShareMode": {DENY_NONE: "", DENY_RECEIVE: "deny-receive"},
}
_LARGE = 0xFFFF
_FEW = 4
"""Elements of an array that a line has room for."""


class _Times:
    """Formats times; most calls share the second of the one before."""

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def __call__(self, nanoseconds: int) -> str:
        second, rest = divmod(nanoseconds, _SECOND)
        if second != self._second:
            self._second = second
            self._text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{self._text}.{rest // 1000:06d}Z"


utc_time = _Times()
"""Nanoseconds since 1970 as ISO 8601 with microseconds."""


def arguments_text(call: CapturedCall) -> str:
    """The parameters that matter, in and out, in one line."""
    parts = _parts(call.decoded_request())
    answer = _parts(call.decoded_response())
    if answer:
        parts += ["→", *answer]
    return " ".join(parts)


@functools.cache
def shown_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """The parameters of a request or a response that are worth showing."""
    return tuple(name for name in names if name not in _BORING)


def _parts(value: Value | None) -> list[str]:
    if value is None:
        return []
    slots = shown_names(value.__slots__)
    found = (argument_text(name, getattr(value, name, None)) for name in slots)
    return [text for text in found if text]


def argument_text(name: str, value: object) -> str:
    """`name=value` as a reader of a list wants it; empty for what says nothing."""
    # What is 0 and has no name, or is octets, says nothing.
    if (not value and name not in _NAMED) or type(value) is bytes:
        return ""
    text = _short(name, value)
    return f"{name}={text}" if text else ""


def _short(name: str, value: object) -> str:
    """A value in a few characters; nothing for what is 0, empty or long."""
    if type(value) is int:
        named = _NAMED.get(name)
        if named is not None:
            return named.get(value, hex(value))
        if not value:
            return ""
        return hex(value) if value > _LARGE else str(value)
    if isinstance(value, str):
        return repr(value) if value else ""
    if isinstance(value, bytes) or value is None:
        return ""
    if isinstance(value, Variant):
        return _variant_text(name, value)
    if isinstance(value, list):
        return _elements(value)
    if isinstance(value, Value):
        # Of DISPPARAMS, whose arguments stand in reverse.
        arguments = getattr(value, "rgvarg", None)
        return f"({_variants(arguments[::-1])})" if arguments else ""
    if isinstance(value, UUID):
        return str(value) if value.int else ""
    return str(value)


def _variant_text(name: str, variant: Variant) -> str:
    """A VARIANT in a few characters: its value, or its type where that is long or an object."""
    value = variant.value
    if isinstance(value, Variant):
        return _variant_text(name, value)
    if value is None or variant == MISSING:
        return ""
    if isinstance(value, SafeArray):
        return f"array[{len(value.values)}]"
    return "object" if isinstance(value, bytes) else _short(name, value) or str(value)


def _variants(values: Sequence[object]) -> str:
    """The first few of some VARIANTs; `-` for one that says nothing."""
    shown = [_variant_text("", each) or "-" for each in values[:_FEW] if isinstance(each, Variant)]
    return ", ".join(shown) + (", …" if len(values) > _FEW else "")


def _elements(values: list[object]) -> str:
    if not values:
        return ""
    sections = [getattr(each, "SectionSize", None) for each in values]
    if None not in sections:
        return "+".join(map(str, sections))
    if len(values) <= _FEW and all(isinstance(each, int | str) for each in values):
        return ",".join(map(str, values))
    if len(values) <= _FEW and all(isinstance(each, Variant) for each in values):
        return _variants(values)
    return f"[{len(values)}]"


def line(exchange: Exchange, queue: str) -> str:
    """One call in one line: when, which conversation, who, what, how it ended, how long."""
    conversation = exchange.conversation
    duration = exchange.duration_ms
    took = f"{duration:9.3f}" if duration is not None else "        -"
    if isinstance(exchange, BinaryPacket):
        arrow = "→" if exchange.from_client else "←"
        status, text = "-", f"{arrow} {_packet_text(exchange)}"
    elif isinstance(exchange, SrmpExchange):
        status, text = exchange.status_name or "no answer", summary(exchange)
    else:
        status, text = _status(exchange), arguments_text(exchange)
    about = f" queue={queue}" if queue else ""
    note = f"  ({exchange.note})" if exchange.note else ""
    method = f"{exchange.interface_name}.{exchange.name}"
    return (
        f"{utc_time(exchange.time)} {conversation.number:>4} {conversation.client:<21} "
        f"{method:<32} {status:<28} {took}{about} {text}{note}"
    )


def _status(call: CapturedCall) -> str:
    if call.fault is not None:
        return f"fault {call.status_name}"
    if call.sealed and call.response is None:
        return f"sealed {call.request_size}/{call.response_size}"
    return call.status_name or ("-" if call.ended else "no answer")


def _packet_text(packet: BinaryPacket) -> str:
    decoded = packet.decoded_request()
    if isinstance(decoded, PacketMessage):
        found = message_attributes(decoded)
        label = f" label={found.get('label')!r}" if found.get("label") else ""
        return f"{found.get('identifier')} {found.get('message_class')}{label}"
    return f"{len(packet.octets)} octets"


def as_object(exchange: Exchange) -> dict[str, Plain]:
    """One call as JSON has it, with the keys that programs rely on."""
    conversation = exchange.conversation
    request, response = _side(exchange, False), _side(exchange, True)
    duration = exchange.duration_ms
    return {
        "time": utc_time(exchange.time),
        "client": conversation.client,
        "server": conversation.server,
        "protocol": exchange.protocol,
        "interface": exchange.interface_name,
        "opnum": exchange.opnum,
        "name": exchange.name,
        "object": _object(exchange),
        "status": exchange.status,
        "status_name": exchange.status_name,
        "duration_ms": None if duration is None else round(duration, 6),
        "sealed": exchange.sealed,
        "request": request,
        "response": response,
    }


def _object(exchange: Exchange) -> str | None:
    """The object that a call is for (of COM objects its IPID), if it is for one."""
    if not isinstance(exchange, CapturedCall) or not exchange.object_uuid:
        return None
    octets = exchange.object_uuid
    return str(UUID(bytes=octets) if exchange.big_endian else UUID(bytes_le=octets))


def _side(exchange: Exchange, response: bool) -> Plain:
    """A request's or a response's parameters, or how long it was where they are not known.

    What the server of the binary protocol sends is in the response's place.
    """
    if isinstance(exchange, BinaryPacket):
        if response is exchange.from_client:
            return None
        packet = exchange.decoded_request()
        return {"size": len(exchange.octets)} if packet is None else plain(packet)
    if isinstance(exchange, SrmpExchange):
        return response_object(exchange) if response else request_object(exchange)
    value = exchange.decoded_response() if response else exchange.decoded_request()
    if value is not None:
        return plain(value)
    stub = exchange.response if response else exchange.request
    size = exchange.response_size if response else exchange.request_size
    if stub is not None:
        return {"size": size, "stub_data": stub.hex()}
    there = size or (exchange.ended and exchange.fault is None if response else not exchange.note)
    return {"size": size} if there and exchange.sealed else None


def full(exchange: Exchange) -> list[str]:
    """Every decoded field of a call or packet, one per line with its offset and size."""
    if isinstance(exchange, BinaryPacket):
        return _section(f"packet, {len(exchange.octets)} octets", *packet_fields(exchange.octets))
    if isinstance(exchange, SrmpExchange):
        return list(_srmp_lines(exchange))
    lines = _half(exchange, False)
    if exchange.ended:
        lines += _half(exchange, True)
    for text in message_identifiers(exchange):
        lines.append(f"    message {text}")
    return lines


def _srmp_lines(exchange: SrmpExchange) -> Iterator[str]:
    """Both heads with their offsets, and between them the elements of the envelope."""
    asked, answer = exchange.asked, exchange.answer
    title = f"request, {asked.size} octets, record at {asked.offset}"
    yield from _section(title, head_fields(asked), "")
    for path, value in elements(exchange):
        yield f"    {path} = {value}"
    if answer is None:
        yield "  response: not captured"
        return
    title = f"response, {answer.size} octets, record at {answer.offset}"
    yield from _section(title, head_fields(answer), "")
    if answer.body:
        yield f"    body = {bytes(answer.body)!r}"


def _half(call: CapturedCall, response: bool) -> list[str]:
    which = "response" if response else "request"
    stub = call.response if response else call.request
    size = call.response_size if response else call.request_size
    offset = call.response_offset if response else call.offset
    title = f"{which}, {size} octets, record at {offset}"
    if stub is None:
        if response and call.fault is not None:
            return [f"  {title}: fault 0x{call.fault:08X}"]
        return [f"  {title}: sealed" if call.sealed else f"  {title}: not captured"]
    operation, syntax = call.operation, call.context.syntax
    if operation is None or syntax is None:
        return [f"  {title}: {stub[:_SHOWN_OCTETS].hex(' ')}{'…' if len(stub) > 32 else ''}"]
    fields, why = stub_fields(operation, response, syntax, stub, call.big_endian)
    lines = _section(title, fields, why)
    for field in fields:
        if isinstance(field.value, bytes) and field.value[4:8] == b"LIOR":
            inner, odd = packet_fields(field.value)
            lines += _section(f"packet in {field.path}", inner, odd, field.offset)
    return lines


def _section(title: str, fields: list[StubField], why: str, base: int = 0) -> list[str]:
    lines = [f"  {title}:"]
    for field in fields:
        lines.append(f"    {base + field.offset:>6} +{field.size:<5} {field.path} = {_text(field)}")
    if why:
        lines.append(f"    {why}")
    return lines


def _text(field: StubField) -> str:
    value = field.value
    if isinstance(value, bytes):
        more = f"… ({len(value)} octets)" if len(value) > _SHOWN_OCTETS else ""
        return value[:_SHOWN_OCTETS].hex(" ") + more
    if type(value) is int:
        return f"{value} (0x{value & 0xFFFFFFFFFFFFFFFF:X})" if abs(value) > 9 else str(value)
    return repr(value) if isinstance(value, str) else str(value)
