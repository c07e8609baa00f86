"""Messages that programs send repeatedly, put into their queues once a turn.

`ProgramWork.perform` stays the only definition of a send. A message that differs from an earlier
one in few values is filled into the packet that was composed for that one, once everything that may
have changed has been checked again (docs/request-templates.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.message import ON_ARRIVAL
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion
from rpcqm.base.errors import MQError
from rpcqm.base.identity import ANONYMOUS, Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.mqvalues import FormatNameType, QueueAccessType, QueueShareMode
from rpcqm.fast.formats.sent_packet import SentTemplate, label_octets
from rpcqm.fast.learned import Budget, Learned, Near
from rpcqm.fast.rehearsing import RehearsingComposer
from rpcqm.fast.repeated_name import RepeatedName
from rpcqm.fast.requests import Composed, Kind, composed_each
from rpcqm.fast.turn import Turn, can_insert_in_bulk
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.opening import is_name_for
from rpcqm.qm.program_work import Sending
from rpcqm.qm.sent_keys import Identifiers
from rpcqm.qm.timers import expiry_at

TEMPLATES = 512
"""Templates of messages that programs send, of all of them.

Each has about two kilobytes.

Bound `program.sent_templates` [templates]: the one that was used longest ago is forgotten.
"""
OF_SENDING = 8
"""Senders whose packets are kept with the repeated send, for a quicker search."""
LEARNED_AT_ONCE = 64
"""Templates of these that are made in one moment.

Bound `program.sent_templates_learned_at_once` [templates]: messages are sent one by one.
"""
LEARNED_PER_SECOND = 32
"""Lessons a second: each costs as much as some twenty sends, so ever new kinds bring nothing."""
LONGEST_BODY = 1 << 20
"""Longer ones go alone, so that no packet that is too large spoils a run."""

_SEND, _SHARED = QueueAccessType.SEND_ACCESS, QueueShareMode.DENY_NONE
_MORE_THAN_NAMES = (
    FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC,
    FormatNameType.QUEUE_FORMAT_TYPE_DL,
)
"""Names whose packets depend on more than the name."""

_Constant = tuple[object, ...]
_Key = tuple[str, str, _Constant]
"""The destination, the sender, and the other constants of a template's packets."""


class _Template(NamedTuple):
    kind: Kind
    packet: SentTemplate


class RepeatedSend:
    """A send that repeats with other bodies: its destination and its other values.

    `values` are filled in: time to reach the queue, time to be received, priority, tag, correlation
    and label.
    """

    __slots__ = ("_attributes", "constant", "name", "of_sender", "values")

    def __init__(self, name: FormatName, attributes: MessageAttributes, label: bytes) -> None:
        self.name, self._attributes = RepeatedName(name), attributes
        self.values = (
            attributes.time_to_reach_queue,
            attributes.time_to_be_received,
            attributes.priority,
            attributes.application_tag,
            attributes.correlation_identifier.encode(),
            label,
        )
        self.constant: _Constant = (
            attributes.body_type,
            attributes.delivery_guarantee,
            str(attributes.response_queue_format_name),
            attributes.extension,
            attributes.negative_journaling_requested,
        )
        self.of_sender: Near[str, _Template] = Near(OF_SENDING)

    @classmethod
    def of(
        cls, names: tuple[FormatName, ...], attributes: MessageAttributes
    ) -> "RepeatedSend | None":
        """The repeated part of a send with these attributes; None if it always goes alone."""
        label = label_octets(attributes.label.encode("utf-16-le", "surrogatepass"))
        if len(names) != 1 or names[0].type in _MORE_THAN_NAMES:
            return None
        if not is_name_for(names[0], _SEND):
            return None
        if label is None or "\0" in attributes.label or _has_more(attributes):
            return None
        return cls(names[0], attributes, label)

    @property
    def extension(self) -> bytes:
        """The extension of each of these messages."""
        return self._attributes.extension

    def sending(self, body: bytes) -> Sending:
        """The send with a body, to be carried out alone."""
        attributes = self._attributes.copy()
        attributes.body = body
        return Sending(self.name.name, attributes)


_WITHOUT_MORE = MessageAttributes()
_PLAIN = {
    name: getattr(_WITHOUT_MORE, name)
    for name in (
        "body",
        "label",
        "priority",
        "time_to_reach_queue",
        "time_to_be_received",
        "application_tag",
        "correlation_identifier",
        "body_type",
        "delivery_guarantee",
        "response_queue_format_name",
        "extension",
        "negative_journaling_requested",
    )
}


def _has_more(attributes: MessageAttributes) -> bool:
    """Whether attributes lie outside of templates: acknowledgements, encryption and the like."""
    return replace(attributes, **_PLAIN) != _WITHOUT_MORE


class RepeatedMessage:
    """One message of a repeated send, waiting for the end of the turn (`turn.TemplatedMessage`).

    `alone` sends it the careful way, or raises before anything has happened. The `outcome` is its
    identifier, once it is as durable as it asks for.
    """

    __slots__ = (
        "_alone",
        "_body",
        "_machine",
        "_ordinal",
        "_template",
        "_values",
        "outcome",
        "priority",
    )

    administration, sender = None, ANONYMOUS
    """A message that asks for acknowledgements goes alone."""

    def __init__(
        self,
        machine: QueueManager,
        again: RepeatedSend,
        template: SentTemplate,
        body: bytes,
        alone: Callable[[], Completion[Identifiers]],
    ) -> None:
        self._machine, self._values, self._template = machine, again.values, template
        self._body, self._ordinal, self._alone = body, 0, alone
        self.priority = again.values[2]
        self.outcome: Completion[Identifiers] = Completion()

    @staticmethod
    def composed(
        messages: "Sequence[RepeatedMessage]", ordinals: Sequence[int], now: int
    ) -> Composed:
        """The columns of several messages."""
        return composed_each(messages, ordinals, now)

    def compose(self, ordinal: int, now: int) -> bytes:
        """The message's packet."""
        self._ordinal = ordinal
        return self._template.filled(ordinal, now, *self._values, self._body)

    def expiry(self, now: int) -> int:
        """The time of its expiry, if it is sent now."""
        return expiry_at(now // 1000, self._values[1], now)

    def accepted(self) -> None:
        """Drop the body while the commit is under way: the store has it."""
        self._body = b""
        self._alone = _gone

    def stored(self) -> None:
        """Complete with its identifier."""
        self.outcome.succeed((MessageIdentifier(self._machine.identifier, self._ordinal),))

    def carefully(self) -> None:
        """Send it alone."""
        self.outcome.follow_call(self._alone)

    @property
    def response(self) -> bytes:
        """The message's number, the only part of the answer that differs."""
        return self._ordinal.to_bytes(4, "little")


def _gone() -> Completion[Identifiers]:
    raise RuntimeError("the message is on its way")


class RepeatedSends:
    """Carries out the repeated sends of all programs, and keeps their packets."""

    def __init__(self, engine: QueueManagerEngine, turn: Turn) -> None:
        self._queue_manager, self._registry = engine.queue_manager, engine.registry
        self._opening = engine.opening
        self._composer = RehearsingComposer(engine.composer, engine.store)
        self._work, self._turn = engine.program_work, turn
        self._learned: Learned[_Key, _Template] = Learned(TEMPLATES)
        self._budget = Budget(engine.clock, LEARNED_AT_ONCE, LEARNED_PER_SECOND)

    def __len__(self) -> int:
        return len(self._learned)

    def send(self, identity: Identity, again: RepeatedSend, body: bytes) -> Completion[Identifiers]:
        """Send a message, if possible together with others of the turn.

        The errors of `ProgramWork.perform` are raised here, or are those of the completion.
        """
        alone = partial(self._send_alone, identity, again, body)
        queue = again.name.find(self._registry)
        if queue is None or not self._turn.is_on or len(body) > LONGEST_BODY:
            return alone()
        template = self._template(identity, again, queue)
        if template is None or not can_insert_in_bulk(queue):
            return alone()
        self._opening.check_to_send(queue, identity)
        message = RepeatedMessage(self._queue_manager, again, template.packet, body, alone)
        self._turn.add(queue, template.kind, message, len(body))
        return message.outcome

    def _send_alone(
        self, identity: Identity, again: RepeatedSend, body: bytes
    ) -> Completion[Identifiers]:
        return self._work.perform(identity, [again.sending(body)])

    def _template(self, identity: Identity, again: RepeatedSend, queue: Queue) -> _Template | None:
        near = again.of_sender
        if identity.sid in near:
            return near[identity.sid]
        key = (str(again.name.name), identity.sid, again.constant)
        learn = partial(self._learn, identity, again, queue)
        template = self._learned.find_or_learn(key, self._budget, learn)
        return near.keep(identity.sid, template) if key in self._learned else None

    def _learn(self, identity: Identity, again: RepeatedSend, queue: Queue) -> _Template | None:
        """Build the packet on the careful path, without sending it."""
        descriptor = OpenQueueDescriptor(0, 0, _SEND, _SHARED, again.name.name, queue)
        try:
            message = self._composer.rehearsed(descriptor, again.sending(b"").attributes, identity)
        except MQError:
            return None
        packet, envelope = SentTemplate.learn(message.packet), message.envelope
        kind = Kind(envelope.recoverable, message.position_flags(envelope))
        if packet is None or envelope.transactional or kind.flags & ON_ARRIVAL:
            return None
        return _Template(kind, packet)
