"""How two answers to the same question are compared: field by field, under a rule for each."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from rpcqm.base.errors import DecodeError
from rpcqm.capture.binary_conversation import SIGNATURE
from rpcqm.capture.call import Call
from rpcqm.capture.packet_fields import packet_fields
from rpcqm.capture.replay_mapping import NO_HANDLE, Mapping
from rpcqm.codec.interface import Value
from rpcqm.codec.packet import UserMessage
from rpcqm.codec.packet_remote_read import MessagePacketExtension
from rpcqm.codec.types.remoteread import SectionBuffer
from rpcqm.rpc.tower import Tower


@dataclass(frozen=True, slots=True)
class Rule:
    """`kind` is exact, mapped (to what `detail` is) or ignored (because of `detail`)."""

    kind: str
    detail: str = ""


EXACT = Rule("exact")
HANDLE = Rule("mapped", "handle")


def _mapped(what: str) -> Rule:
    return Rule("mapped", what)


def _ignored(reason: str) -> Rule:
    return Rule("ignored", reason)


_RULES: tuple[tuple[re.Pattern[str], Rule], ...] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r"pdwArriveTime$", _ignored("the time of arrival is another one")),
        (r"\.SentTime$", _ignored("the message was sent at another time")),
        (r"\.TimeToReachQueue$", _ignored("it is absolute, from the time of sending on")),
        (r"\.QueueManagerAddress$", _ignored("it holds the address of the sender")),
        (r"\.extension\.subqueue\.last_move_time$", _ignored("the move was at another time")),
        (r"\.extension\.address", _ignored("it holds the address of the sender")),
        (r"\.SourceQueueManager$", _mapped("queue manager")),
        (r"\.MessageID$", _mapped("message number")),
        (r"\.TxSequenceID$", _mapped("transaction sequence")),
        (r"\.(Lineage|Uniquifier)$", _mapped("message identifier")),
        (r"\.pSequenceId$", _mapped("sequence number")),
        (r"\.phCursor$", _mapped("cursor")),
        (r"\.pMoveContext$", _mapped("move context")),
        (r"\.(pdwContext|dwpContext)$", _mapped("context")),
        (r"^(R_GetServerPort|R_GetRTQMServerPort|R_QMGetRTQMServerPort)\.result$", _mapped("port")),
        (r"\.tower\.port$", _mapped("port")),
        (r"\.tower\.host$", _mapped("host")),
        (r"\.machine$", _mapped("machine name")),
    )
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A field in which two answers differ although they should not."""

    field: str
    captured: Any
    live: Any
    rule: str


class Comparison:
    """Compares answers and counts what was not compared, by reason."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self.ignored: dict[str, int] = {}

    def compare(self, call: Call, captured: Any, live: Any) -> list[Difference]:
        """The differences of two decoded responses."""
        operation = call.operation
        handles = {h.name for h in operation.context_handles} if operation else set()
        one = dict(_fields(captured, call.name))
        other = dict(_fields(live, call.name))
        found = []
        for path in dict.fromkeys((*one, *other)):
            pair = one.get(path, "(absent)"), other.get(path, "(absent)")
            rule = HANDLE if path.rpartition(".")[2] in handles else rule_of(path)
            if not self._fits(rule, *pair):
                found.append(Difference(path, *pair, rule.kind))
        return found

    def _fits(self, rule: Rule, captured: Any, live: Any) -> bool:
        if rule.kind == "ignored":
            self.ignored[rule.detail] = self.ignored.get(rule.detail, 0) + 1
            return True
        if rule.kind == "exact" or not captured or not live or NO_HANDLE in (captured, live):
            return bool(captured == live)
        return self._mapping.agrees(rule.detail, captured, live)


def rule_of(path: str) -> Rule:
    """The rule for a field, by its path."""
    for pattern, rule in _RULES:
        if pattern.search(path):
            return rule
    return EXACT


def _fields(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The plain values in a decoded value, each with its path."""
    if isinstance(value, Value):
        for name in value.__slots__:
            yield from _fields(getattr(value, name, None), f"{path}.{name}")
    elif isinstance(value, list):
        yield f"{path}.#count", len(value)
        if len(value) > 1 and all(isinstance(each, SectionBuffer) for each in value):
            yield from _sections(value, path)
            return
        for index, each in enumerate(value):
            yield from _fields(each, f"{path}[{index}]")
    elif isinstance(value, bytes) and value[4:8] == SIGNATURE:
        yield from _packet(value, path)
    elif isinstance(value, bytes) and path.endswith("tower_octet_string"):
        yield from _tower(value, path)
    elif isinstance(value, str) and "\\private$\\" in value.lower():
        yield from _queue_name(value, path)
    else:
        yield path, value


def _sections(sections: list[Any], path: str) -> Iterator[tuple[str, Any]]:
    """The parts of one packet, whose body was asked for only in part, put together."""
    parts = []
    for index, section in enumerate(sections):
        for name in ("SectionBufferType", "SectionSizeAlloc", "SectionSize"):
            yield f"{path}[{index}].{name}", getattr(section, name)
        parts.append((section.pSectionBuffer or b"").ljust(section.SectionSizeAlloc, b"\0"))
    yield from _packet(b"".join(parts), path)


def _queue_name(value: str, path: str) -> Iterator[tuple[str, Any]]:
    machine, separator, name = value.partition("\\")
    yield f"{path}.machine", machine
    yield f"{path}.name", f"{separator}{name}"


def _tower(octets: bytes, path: str) -> Iterator[tuple[str, Any]]:
    try:
        tower = Tower.unpack(octets)
    except DecodeError:
        yield path, octets
        return
    yield f"{path}.tower.interface", str(tower.interface)
    yield f"{path}.tower.transfer_syntax", str(tower.transfer_syntax)
    yield f"{path}.tower.protocols", tower.protocols
    yield f"{path}.tower.port", tower.tcp_port
    yield f"{path}.tower.host", tower.floors[-1].right


def _packet(octets: bytes, path: str) -> Iterator[tuple[str, Any]]:
    """The fields of a packet, and of the headers that a remote reader gets behind it."""
    fields, why = packet_fields(octets)
    for field in fields:
        inner = f"{path}.{field.path}"
        if isinstance(field.value, str) and "\\private$\\" in field.value.lower():
            yield from _queue_name(field.value, inner)
        else:
            yield inner, field.value
    if why:
        # A first section ends within the packet.
        yield f"{path}.#size", len(octets)
        return
    with suppress(DecodeError):
        size = UserMessage(octets).size
        if len(octets) > size:
            yield from _extension(MessagePacketExtension.decode(octets, size), path)


def _extension(extension: MessagePacketExtension, path: str) -> Iterator[tuple[str, Any]]:
    for name in ("subqueue", "dead_letter", "address"):
        header = getattr(extension, name, None)
        if header is None:
            continue
        for part in getattr(header, "__slots__", ()):
            yield f"{path}.extension.{name}.{part}", getattr(header, part)
