"""The hops of the last messages that left for other queue managers, in memory only.

They show where each message was sent, by which hop, and the acknowledgements that came. Event
trails keep what has to outlast a restart, or some thousand messages.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from operator import add

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.clock import Clock
from rpcqm.base.each import run_all
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.fields import MESSAGE_ID, SOURCE_QUEUE_MANAGER
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.qm.names import next_hop_text
from rpcqm.qm.trail import TrailEvent, TrailEventType
from rpcqm.qm.watching import MessageWatch

MOST = 10_000
"""Messages that are remembered: a few megabytes."""
MOST_STEPS = 32
"""Events of one message; the first is kept, and then the last ones."""

_CLASSES = {int(each): each for each in MessageClass}


Place = tuple[int, int]
"""A message on its way to one queue: the number of the outgoing queue, and the key there."""
Step = tuple[int, TrailEventType, str]


class MessageTrace:
    """The events of messages that have been sent from here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sent: OrderedDict[Place, tuple[bytes, str]] = OrderedDict()
        """Identifiers and destinations, in the order of sending."""
        self._steps: dict[Place, tuple[Step, ...]] = {}
        self._told: deque[tuple[int, bytes, str, str]] = deque(maxlen=MOST)
        self.watch: MessageWatch | None = None

    def __len__(self) -> int:
        return len(self._sent)

    def steps(self, queue: Queue, keys: Iterable[int]) -> list[tuple[object, ...]]:
        """The steps of a queue's messages."""
        places = ((queue.queue_id, key) for key in keys)
        return [
            (*self._sent[place], *self._steps[place]) for place in places if place in self._sent
        ]

    def told(self) -> list[tuple[int, bytes, str, str]]:
        """The messages that report about others."""
        return list(self._told)

    def sent(self, queue: OutgoingQueue, message: Message, address: str) -> None:
        """Note that a message goes out to the address of its next hop."""
        self._step(self._noted(queue, message), TrailEventType.SENT, address)
        if self.watch is not None:
            self.watch.sent(queue, [(message.lookup_identifier, message.packet)], address)

    def leaves(self, queue: OutgoingQueue, message: Message, address: str) -> None:
        """Report to the watch that a message goes out; `sent` follows at the next hop's answer."""
        if self.watch is not None:
            self.watch.sent(queue, [(message.lookup_identifier, message.packet)], address)

    def sent_together(
        self,
        queue: OutgoingQueue,
        keys: Sequence[int],
        identifiers: Sequence[bytes],
        packets: Sequence[bytes],
        address: str,
    ) -> None:
        """Note that messages go out to one address, as `sent` does of each: their columns.

        Identifiers are the octets of source and number.
        """
        if self.watch is not None:
            self.watch.sent(queue, list(zip(keys, packets, strict=True)), address)
        places = list(zip(repeat(queue.queue_id), keys))
        names = zip(identifiers, repeat(queue.destination_format_name))
        if not self._sent.keys().isdisjoint(places):
            for place, names_of in zip(places, names, strict=True):
                self._note(place, *names_of)
                self._step(place, TrailEventType.SENT, address)
            return
        step = (self._clock.now(), TrailEventType.SENT, address)
        self._sent.update(zip(places, names, strict=True))
        self._steps.update(dict.fromkeys(places, (step,)))
        surplus = list(islice(self._sent, max(len(self._sent) - MOST, 0)))
        run_all(map(self._sent.__delitem__, surplus))
        run_all(map(self._steps.__delitem__, surplus))

    def acknowledged_together(self, queue: Queue, keys: Sequence[int], by: str) -> None:
        """Note that messages were acknowledged, as `acknowledged` does for each."""
        places = list(zip(repeat(queue.queue_id), keys))
        known = list(filter(None, map(self._steps.get, places)))
        if (
            self.watch is None
            and len(known) == len(places) > 0
            and max(map(len, known)) < MOST_STEPS
        ):
            step = (self._clock.now(), TrailEventType.ACKNOWLEDGED, by)
            self._steps.update(zip(places, map(add, known, repeat((step,))), strict=True))
            return
        for key in keys:
            self.acknowledged(queue, key, by)

    def refused(self, queue: OutgoingQueue, message: Message, by: str, status: int) -> None:
        """Note that the next hop has refused a message, with a status of HTTP."""
        self._step(self._noted(queue, message), TrailEventType.REFUSED, f"{by}, {status}")
        if self.watch is not None:
            self.watch.turned_away(queue, message.lookup_identifier, str(status))

    def _noted(self, queue: OutgoingQueue, message: Message) -> Place:
        """The place of a message, which is remembered from now on."""
        packet, place = message.packet, (queue.queue_id, message.lookup_identifier)
        identifier = packet[SOURCE_QUEUE_MANAGER] + packet[MESSAGE_ID]
        self._note(place, identifier, queue.destination_format_name)
        return place

    def _note(self, place: Place, identifier: bytes, queue: str) -> None:
        if place not in self._sent:
            self._sent[place], self._steps[place] = (identifier, queue), ()
            if len(self._sent) > MOST:
                oldest, _ = self._sent.popitem(last=False)
                del self._steps[oldest]

    def acknowledged(self, queue: Queue, key: int, by: str) -> None:
        """Note that an acknowledgement of a message has come; `by` describes it."""
        place = (queue.queue_id, key)
        if place in self._sent:
            self._step(place, TrailEventType.ACKNOWLEDGED, by)
        if self.watch is not None:
            self.watch.acknowledged(queue, key)

    def arrived(self, queue: Queue, message: Message) -> None:
        """Note an arrived message, if it reports about another one."""
        kind = _CLASSES.get(message.attributes.message_class)
        if kind is not None and kind is not MessageClass.MQMSG_CLASS_NORMAL:
            about = message.attributes.correlation_identifier
            name = kind.name.removeprefix("MQMSG_CLASS_")
            self._told.append((self._clock.now(), _octets(about), queue.pathname, name))

    def arrived_together(self, told: Iterable[tuple[Queue, MessageClass, bytes]]) -> None:
        """Note messages that report about others: their places, classes and subjects."""
        now = self._clock.now()
        for queue, kind, about in told:
            name = kind.name.removeprefix("MQMSG_CLASS_")
            self._told.append((now, about, queue.pathname, name))

    def _step(self, place: Place, happening: TrailEventType, detail: str) -> None:
        steps, step = self._steps[place], (self._clock.now(), happening, detail)
        if len(steps) == MOST_STEPS:
            steps = (steps[0], *steps[2:])
        self._steps[place] = (*steps, step)

    def events(self, identifier: MessageIdentifier) -> Iterator[TrailEvent]:
        """The events of a message, in no particular order."""
        wanted = _octets(identifier)
        for place, (sent, queue) in self._sent.items():
            if sent == wanted:
                for time, happening, detail in self._steps[place]:
                    text = next_hop_text(detail) if happening is TrailEventType.SENT else detail
                    yield TrailEvent(time, happening, queue, place[1], text)
        for time, about, queue, name in self._told:
            if about == wanted:
                yield TrailEvent(time, TrailEventType.ACKNOWLEDGED, queue, 0, name)


def _octets(identifier: MessageIdentifier) -> bytes:
    return identifier.queue_manager_guid.bytes_le + identifier.ordinal.to_bytes(4, "little")
