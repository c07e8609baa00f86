"""What becomes of messages, as spans: it follows each from its sender to its reader.

The trace of a message is worked out from its identifier, so that all queue managers that see it
tell of one trace, and decide alike whether it is told at all (G302). What a program says in the
message's extension is a link, and never decides anything.
"""

import functools
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Concatenate, NamedTuple, ParamSpec, Protocol
from urllib.parse import urlsplit
from uuid import UUID

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.errors import DecodeError
from rpcqm.base.log import get_logger
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.fields import MESSAGE_ID, SOURCE_QUEUE_MANAGER
from rpcqm.codec.packet.trace_context import TraceContext, context_in
from rpcqm.codec.packet.types import NULL_IDENTIFIER, MessageIdentifier
from rpcqm.store.transaction import StoreTransaction

MOST_OPEN = 10_000
"""Messages that are traced and wait for their next event, of readers and of next hops each.

Each takes about 700 octets.

Bound `traces.open` [messages]: the oldest are forgotten: their spans `forward` and `settle` are not
told.
"""
MOST_ROOTS = 10_000
"""Messages sent here whose span `send` is known to have been told.

Bound `traces.roots` [messages]: the oldest are forgotten: one that comes back over the network is
told as sent again.
"""
MOST_AT_ONCE = 1_000
"""Spans beyond twice the share of messages that is to be told of, of messages from here and from
elsewhere each: identifiers may have been chosen for being told.

Bound `traces.at_once` [spans]: their spans are not told until others have been looked at.
"""

_SAMPLED_BITS = 56
_GOOD = (MessageClass.MQMSG_CLASS_ACK_RECEIVE, MessageClass.MQMSG_CLASS_ACK_REACH_QUEUE)
_ORDERS = "order_queue$"
"""Where queue managers tell each other about sequences: no message of anybody."""

_log = get_logger("otel")
_Arguments = ParamSpec("_Arguments")


@dataclass(frozen=True, slots=True)
class Span:
    """One thing that was done with a message; moments are nanoseconds since 1970.

    `kind` is the name of an OpenTelemetry SpanKind. `error` is the name of what went wrong.
    """

    name: str
    kind: str
    trace: int
    span: int
    parent: int | None
    begun: int
    ended: int
    attributes: dict[str, str]
    link: TraceContext | None = None
    error: str = ""


class SpanSink(Protocol):
    """Takes spans, and never waits."""

    def take(self, span: Span) -> None:
        """Take one; it may be dropped."""


class _Traced(NamedTuple):
    """A message that is told of: its identifier's octets, its trace, its queue, its link.

    `queue` is the path name of one here, the format name of one elsewhere; `conversation` is the
    message's correlation identifier, "" if it has none.
    """

    octets: bytes
    trace: int
    queue: str
    link: TraceContext | None
    conversation: str = ""


@dataclass(slots=True)
class _Open:
    """What waits for its next event; `span` is that of the receive."""

    message: _Traced
    begun: int
    span: int = 0
    settles: bool = True
    next_hop: str = ""


@dataclass(eq=False, repr=False)
class _OpenSpans:
    """What waits, by queue and lookup identifier; beyond MOST_OPEN the oldest are forgotten."""

    entries: OrderedDict[tuple[int, int], _Open] = field(default_factory=OrderedDict)

    def put(self, queue: Queue, key: int, entry: _Open) -> None:
        place = queue.queue_id, key
        self.entries[place] = entry
        self.entries.move_to_end(place)
        if len(self.entries) > MOST_OPEN:
            self.entries.popitem(last=False)

    def pop(self, queue: Queue, key: int) -> _Open | None:
        return self.entries.pop((queue.queue_id, key), None)


@dataclass(eq=False, repr=False)
class _Share:
    """Keeps spans to twice `per_thousand` of the events, and MOST_AT_ONCE more (G327).

    Who chooses the identifiers of messages could have each of them told of.
    """

    per_thousand: int
    credit: int = MOST_AT_ONCE * 1000

    def event(self) -> None:
        """Something has become of a message, whether it is told of or not."""
        self.credit = min(self.credit + 2 * self.per_thousand, MOST_AT_ONCE * 1000)

    def spend(self) -> bool:
        """Whether one more may be told of."""
        if self.credit < 1000:
            return False
        self.credit -= 1000
        return True


@dataclass(eq=False, repr=False)
class _Roots:
    """The last messages whose span `send` has been told, MOST_ROOTS at most."""

    known: OrderedDict[bytes, None] = field(default_factory=OrderedDict)

    def first(self, octets: bytes) -> bool:
        """Whether a message is new here; the next time it is not."""
        if octets in self.known:
            return False
        self.known[octets] = None
        if len(self.known) > MOST_ROOTS:
            self.known.popitem(last=False)
        return True


def _quiet(
    watch: Callable[Concatenate["MessageSpans", _Arguments], None],
) -> Callable[Concatenate["MessageSpans", _Arguments], None]:
    """Let nothing that goes wrong with a span reach the message; it is logged once."""

    @functools.wraps(watch)
    def watched(
        self: "MessageSpans", /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> None:
        try:
            watch(self, *args, **kwargs)
        except Exception:
            self.failures += 1
            if self.failures == 1:
                _log.exception("a message could not be traced")

    return watched


class MessageSpans:
    """Watches messages, and gives a span of each event to `sink`.

    `own` is the identifier of this queue manager, `sampled_per_thousand` how many of a thousand
    messages are told of, `server` the name of this computer.
    """

    def __init__(
        self,
        sink: SpanSink,
        own: UUID,
        sampled_per_thousand: int,
        now: Callable[[], int] = time.time_ns,
        *,
        server: str = "",
    ) -> None:
        self._sink = sink
        self._server = server
        self._own = own.bytes_le
        self._threshold = (sampled_per_thousand << _SAMPLED_BITS) // 1000
        self._own_share = _Share(sampled_per_thousand)
        self._others_share = _Share(sampled_per_thousand)
        self._roots = _Roots()
        self._received = _OpenSpans()
        self._sent = _OpenSpans()
        self.now = now
        self.failures = 0

    # Into a queue

    @_quiet
    def arrived(self, queue: Queue, message: Message, begun: int) -> None:
        """A message is in a queue: its sender has sent it, or a queue manager has brought it."""
        self._arrived(queue, message, begun)

    @_quiet
    def arrived_together(self, queue: Queue, stored: Sequence[bytes], begun: int) -> None:
        """The same for several, by their octets as they are kept."""
        for octets in stored:
            self._arrived(queue, Message.restored(octets, 0), begun)

    def _arrived(self, queue: Queue, message: Message, begun: int) -> None:
        traced = self._traced(queue, message.packet)
        if traced is not None:
            self._tell_entry(queue, traced, message, begun)

    @_quiet
    def refused(self, queue: Queue, message: Message, status: str) -> None:
        """A queue does not take a message; `status` is the name of an HRESULT."""
        traced = self._traced(queue, message.packet)
        if traced is not None:
            self._tell_entry(queue, traced, message, self.now(), status)

    @_quiet
    def rejected(self, message: Message, reason: MessageClass) -> None:
        """A message of another queue manager is refused; there may be no queue of its name."""
        name = str(message.attributes.destination_queue_format_name or "")
        traced = self._traced(name, message.packet)
        if traced is not None:
            self._tell("arrive", "SERVER", traced, self.now(), error=_called(reason))

    def _tell_entry(
        self, queue: Queue, traced: _Traced, message: Message, begun: int, error: str = ""
    ) -> None:
        """Tell `send` or `arrive`; of several queues of one message the first has the root."""
        own = traced.octets.startswith(self._own)
        root = own and self._roots.first(traced.octets)
        if root or (own and (isinstance(queue, OutgoingQueue) or _is_for_several(message))):
            self._tell("send", "PRODUCER", traced, begun, root=root, error=error)
        else:  # also one of here that has come back over the network
            self._tell("arrive", "SERVER", traced, begun, error=error)

    # Out of a queue

    @_quiet
    def received(self, queue: Queue, message: Message, begun: int, settles: bool = True) -> None:
        """A reader gets a message; one that does not settle has it when its removal is durable."""
        traced = self._traced(queue, message.packet)
        if traced is None:
            return
        span = self._tell("receive", "CLIENT", traced, begun) if settles else 0
        self._received.put(queue, message.lookup_identifier, _Open(traced, begun, span, settles))

    def released(self, queue: Queue, key: int) -> None:
        """A message that was received has been given back."""
        self._settle(queue, key, self.now(), "release")

    def moved(self, queue: Queue, key: int) -> None:
        """A message that was received has been moved elsewhere."""
        self._settle(queue, key, self.now(), "move")

    def deleted(
        self, change: StoreTransaction, queue: Queue, key: int, reason: MessageClass
    ) -> None:
        """A message is removed by a commit: a reader has done with it, or it has left."""
        error = "" if reason in _GOOD else _called(reason)
        if isinstance(queue, OutgoingQueue):
            change.call_after(partial(self._passed, queue, key, error))
            error = ""  # a reader that has it there has it, though it does not arrive
        change.call_after(partial(self._settle, queue, key, self.now(), "complete", error))

    @_quiet
    def _settle(self, queue: Queue, key: int, begun: int, outcome: str, error: str = "") -> None:
        entry = self._received.pop(queue, key)
        if entry is None:
            return
        if not entry.settles:
            if outcome == "complete":
                self._tell("receive", "CLIENT", entry.message, entry.begun, error=error)
        else:
            more = {} if error else {"rpcqm.outcome": outcome}
            self._tell(
                "settle", "CLIENT", entry.message, begun, parent=entry.span, error=error, more=more
            )

    # To another queue manager

    @_quiet
    def sent(self, queue: Queue, packets: Iterable[tuple[int, bytes]], address: str) -> None:
        """Messages go out to their next hop; one that goes again goes on."""
        begun = self.now()
        for key, packet in packets:
            traced = self._traced(queue, packet)
            again = self._sent.entries.get((queue.queue_id, key))
            if again is not None:
                again.next_hop = address
            elif traced is not None:
                self._sent.put(queue, key, _Open(traced, begun, next_hop=address))

    def acknowledged(self, queue: Queue, key: int) -> None:
        """The next hop has a message."""
        self._passed(queue, key, "")

    def turned_away(self, queue: Queue, key: int, reason: str) -> None:
        """The next hop does not want a message."""
        self._passed(queue, key, reason)

    @_quiet
    def _passed(self, queue: Queue, key: int, error: str) -> None:
        entry = self._sent.pop(queue, key)
        if entry is not None:
            more = {"rpcqm.next_hop": entry.next_hop, "server.address": _host(entry.next_hop)}
            self._tell("forward", "CLIENT", entry.message, entry.begun, error=error, more=more)

    # Spans

    def _traced(self, queue: Queue | str, packet: bytes) -> _Traced | None:
        """Which trace a message belongs to; None if it is not told of."""
        octets = packet[SOURCE_QUEUE_MANAGER] + packet[MESSAGE_ID]
        share = self._own_share if octets.startswith(self._own) else self._others_share
        share.event()
        trace = trace_of(octets)
        if trace & ((1 << _SAMPLED_BITS) - 1) >= self._threshold:
            return None
        name = queue if isinstance(queue, str) else queue.full_name
        if name.lower().endswith(_ORDERS) or not share.spend():
            return None
        return _Traced(octets, trace, name, *_said(packet))

    def _tell(
        self,
        operation: str,
        kind: str,
        message: _Traced,
        begun: int,
        *,
        root: bool = False,
        parent: int | None = None,
        error: str = "",
        more: dict[str, str] | None = None,
    ) -> int:
        """Give a span to the sink; returns its identifier."""
        sent = root_of(message.octets)
        span = sent if root else secrets.randbits(64) or 1
        attributes = _attributes(operation, message, self._server) | (more or {})
        if error:
            attributes["error.type"] = error
        self._sink.take(
            Span(
                f"{operation} {short_name(message.queue)}",
                kind,
                message.trace,
                span,
                None if root else parent or sent,
                begun,
                max(begun, self.now()),
                attributes,
                message.link,
                error,
            )
        )
        return span


def trace_of(octets: bytes) -> int:
    """The identifier of the trace of a message, by the 20 octets of its own."""
    return int.from_bytes(hashlib.blake2b(octets, digest_size=16, person=b"rpcqm trace").digest())


def root_of(octets: bytes) -> int:
    """The identifier of the span `send` of a message, by the 20 octets of its own."""
    return int.from_bytes(hashlib.blake2b(octets, digest_size=8, person=b"rpcqm send").digest())


def short_name(name: str) -> str:
    """The last part of a queue's name or URL, and of its queue's if it is a journal."""
    if "://" in name:
        return name.rpartition("/")[2] or name
    head, _, last = name.rpartition("\\")
    return f"{head.rpartition(chr(92))[2]}\\{last}" if last.lower() == "journal$" else last


def _called(reason: MessageClass) -> str:
    return reason.name.removeprefix("MQMSG_CLASS_")


def _is_for_several(message: Message) -> bool:
    return bool(message.attributes.destination_multi_queue_format_name)


def _said(packet: bytes) -> tuple[TraceContext | None, str]:
    """The context that a message carries, and its correlation identifier."""
    try:
        attributes = Message.restored(packet, 0).attributes
        correlation = attributes.correlation_identifier
        conversation = "" if correlation is NULL_IDENTIFIER else str(correlation)
        return context_in(attributes.extension), conversation
    except DecodeError:
        return None, ""


def _host(address: str) -> str:
    """The host of a next hop: of an address, or of the URL of one by HTTP (G482)."""
    return urlsplit(address).hostname or "" if "://" in address else address


_TYPES = {"forward": "send"}


def _attributes(operation: str, message: _Traced, server: str) -> dict[str, str]:
    attributes = {
        "messaging.system": "msmq",
        "messaging.operation.name": operation,
        "messaging.operation.type": _TYPES.get(operation, operation),
        "messaging.destination.name": message.queue,
        "messaging.message.id": str(MessageIdentifier.decode(message.octets)),
        "server.address": server,
    }
    if message.conversation:
        attributes["messaging.message.conversation_id"] = message.conversation
    return attributes
