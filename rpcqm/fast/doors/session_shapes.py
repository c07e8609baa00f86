"""Shapes of earlier packets, so that similar ones need fewer checks.

A shape keeps the results of checking one packet, as far as they depend on the constants of its form
alone. It keeps no decision: the queue, and whether it takes messages, are looked up for every run.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import repeat
from operator import add
from random import Random

from rpcqm.adm.message import FLAG_ADMINISTRATION_QUEUE, NEVER, Message
from rpcqm.base.errors import DecodeError
from rpcqm.binary.connection.identities import identity_of, is_direct
from rpcqm.codec.packet.acknowledgement import (
    PacketKind,
    goes_to_order_queue,
    identify_message,
)
from rpcqm.codec.packet.enums import AcknowledgementsRequested, MessageClass
from rpcqm.codec.packet.fields import (
    MESSAGE_ID,
    QUEUE_MANAGER_ADDRESS,
    SOURCE_QUEUE_MANAGER,
)
from rpcqm.codec.packet.properties import MessagePropertiesStart
from rpcqm.fast.formats.packet_form import Constants, PacketForm, PacketForms, Values

MOST_FORMS = 4
"""Forms, which say where values lie in packets, that each packet is tried with.

Those of a queue manager's peers are few.

Bound `binary.known_forms` [forms]: the one that was learned longest ago is forgotten, and packets
of it come one by one.
"""
MOST_SHAPES = 256
"""Shapes of packets that are remembered, for each direction of all sessions.

Each takes about a kilobyte.

Bound `binary.known_shapes` [shapes]: the one that was used longest ago is forgotten.
"""
LEARN_EVERY = 256
"""Unknown packets between two shapes that are learned.

Learning one costs as much as handling a few of them.

Bound `binary.packets_between_shapes` [packets]: packets are taken one by one.
"""
LEARN_AT_ONCE = 16
"""Shapes that are learned one after the other.

As when several peers begin to send.

Bound `binary.shapes_learned_at_once` [shapes]: packets are taken one by one.
"""
_SIMILAR = slice(SOURCE_QUEUE_MANAGER.start, QUEUE_MANAGER_ADDRESS.stop)
"""The part that two packets must share for the second one to be learned."""
_TELLING = {int(each): each for each in MessageClass}
_NUMBER_SIZE = MESSAGE_ID.stop - MESSAGE_ID.start


class Shape:
    """The constants of packets of one form; times are seconds."""

    __slots__ = (
        "_behind",
        "_source",
        "about",
        "asks",
        "flags",
        "form",
        "is_direct",
        "priority",
        "recoverable",
        "shortest",
        "tells",
        "time_to_be_received",
        "time_to_reach_queue",
        "transactional",
    )

    def __init__(self, message: Message, form: PacketForm) -> None:
        envelope = message.envelope
        self.form = form
        self.flags = message.position_flags(envelope)
        self.priority = envelope.priority
        self.recoverable = envelope.recoverable
        self.transactional = envelope.transactional
        self.time_to_reach_queue = envelope.time_to_reach_queue
        self.time_to_be_received = envelope.time_to_be_received
        limits = (self.time_to_reach_queue, self.time_to_be_received)
        self.shortest = min((each for each in limits if each != NEVER), default=1 << 63)
        self.is_direct = is_direct(message)
        self.asks = asks_on_arrival(message)
        """Whether the arrival causes an acknowledgement."""
        self.tells = told_by(message)
        properties = message.attributes.layout.properties
        self.about = MessagePropertiesStart.place("correlation_id", properties)
        """The place of the identifier of the message that a report is about."""
        self._source = message.packet[SOURCE_QUEUE_MANAGER]
        self._behind = identity_of(message)[len(self._source) + _NUMBER_SIZE :]

    def identity(self, message_id: bytes) -> bytes:
        """The value of `identity_of` for the message with that number."""
        return self._source + message_id + self._behind

    def identifiers(self, message_ids: Iterable[bytes]) -> list[bytes]:
        """The octets of the identifiers of messages with those numbers."""
        return list(map(self._source.__add__, message_ids))

    def identities(self, message_ids: Iterable[bytes]) -> list[bytes]:
        """`identity` of each."""
        return list(map(add, self.identifiers(message_ids), repeat(self._behind)))


class KnownShapes:
    """The shapes of all connections; the least used are forgotten.

    `is_usual` says whether messages of a shape are recognised at all, from one of them.
    """

    def __init__(self, is_usual: Callable[[Message], bool], random: Random | None = None) -> None:
        self._is_usual = is_usual
        self._forms = PacketForms(MOST_FORMS, random)
        self._shapes: OrderedDict[Constants, Shape] = OrderedDict()
        self._last: tuple[Constants, Shape] | None = None
        self._credit = LEARN_EVERY * LEARN_AT_ONCE

    def __len__(self) -> int:
        return len(self._shapes)

    def find(self, data: bytes, start: int) -> tuple[Shape, Values] | None:
        """The shape and the values of the whole packet that begins there; None if unknown."""
        for form in self._forms.known:
            values = form.read(data, start)
            if values is None:
                continue
            constants = values[0]
            last = self._last
            if last is not None and constants == last[0]:
                return last[1], values
            shape = self._shapes.get(constants)
            if shape is not None:
                self._last = constants, shape
                self._shapes.move_to_end(constants)
                return shape, values
        return None

    def unknown(self, packet: bytes, unseen: int, last: bytes) -> bytes:
        """Note a packet of unknown shape, and learn it if it is like the `last` one.

        `unseen` packets came since. Returns the part to compare the next one with, b"" once this
        one has been learned.
        """
        self._credit = min(self._credit + unseen + 1, LEARN_EVERY * LEARN_AT_ONCE)
        similar = packet[_SIMILAR]
        if similar != last or self._credit < LEARN_EVERY:
            return similar
        self._credit -= LEARN_EVERY
        try:
            return b"" if self._learn(Message(packet)) else similar
        except DecodeError:  # the careful path reports the error
            return similar

    def _learn(self, message: Message) -> bool:
        attributes = message.attributes
        attributes.validate()
        found = self._forms.learn(attributes, message.packet) if self._is_usual(message) else None
        if found is None:
            return False
        form, values = found
        self._shapes[values.constants] = Shape(message, form)
        if len(self._shapes) > MOST_SHAPES:
            self._shapes.popitem(last=False)
        return True


def is_usual_arrival(message: Message) -> bool:
    """Whether messages of its shape are stored, and are not for queue managers.

    Messages to the order queue may be either, by their labels and bodies.
    """
    attributes = message.attributes
    return (
        identify_message(attributes) is PacketKind.USER_MESSAGE
        and not goes_to_order_queue(attributes)
        and not attributes.is_srmp
    )


def asks_on_arrival(message: Message) -> bool:
    """Whether a message asks for an acknowledgement of its arrival ([MS-MQQB] 3.1.7.15)."""
    requested = message.attributes.acknowledgements_requested
    asks = bool(requested & AcknowledgementsRequested.ACK_POS_ARRIVAL)
    return asks and bool(message.envelope.flags & FLAG_ADMINISTRATION_QUEUE)


def told_by(message: Message) -> MessageClass | None:
    """The class of a report about another message; None for an ordinary message."""
    found = _TELLING.get(message.attributes.message_class)
    return None if found is MessageClass.MQMSG_CLASS_NORMAL else found
