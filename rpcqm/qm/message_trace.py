"""The hops of the last messages that left for other queue managers, in memory only.

They tell where each message was sent, by which hop, and which acknowledgements have come. Event
trails keep what has to outlast a restart, or some thousand messages.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator

from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.clock import Clock
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


class _MessageHops:
    """One message on its way to one queue."""

    __slots__ = ("identifier", "queue", "steps")

    def __init__(self, identifier: bytes, queue: str) -> None:
        self.identifier = identifier
        self.queue = queue
        self.steps: list[tuple[int, TrailEventType, str]] = []


class MessageTrace:
    """The events of messages that have been sent from here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hops: OrderedDict[tuple[int, int], _MessageHops] = OrderedDict()
        self._told: deque[tuple[int, bytes, str, str]] = deque(maxlen=MOST)
        self.watch: MessageWatch | None = None

    def __len__(self) -> int:
        return len(self._hops)

    def copied(self, queue: Queue | None = None, keys: Iterable[int] = ()) -> "MessageTrace":
        """One like it, with only these messages of a queue that were sent, or with all of them."""
        made = MessageTrace(self._clock)
        made._told = self._told.copy()
        made._hops = OrderedDict(self._hops) if queue is None else OrderedDict()
        places = () if queue is None else ((queue.queue_id, key) for key in keys)
        for place, hops in ((each, self._hops.get(each)) for each in places):
            if hops is not None:
                made._hops[place] = _MessageHops(hops.identifier, hops.queue)
                made._hops[place].steps = list(hops.steps)
        return made

    def steps(self, queue: Queue, keys: Iterable[int]) -> list[tuple[object, ...]]:
        """What is known of messages of a queue."""
        found = (self._hops.get((queue.queue_id, key)) for key in keys)
        return [(each.identifier, each.queue, *each.steps) for each in found if each is not None]

    def told(self) -> list[tuple[int, bytes, str, str]]:
        """What is known of messages that tell what became of others."""
        return list(self._told)

    def sent(self, queue: OutgoingQueue, message: Message, address: str) -> None:
        """Note that a message goes out to the address of its next hop."""
        self._step(self._of(queue, message), TrailEventType.SENT, address)
        if self.watch is not None:
            self.watch.sent(queue, [(message.lookup_identifier, message.packet)], address)

    def leaves(self, queue: OutgoingQueue, message: Message, address: str) -> None:
        """Tell who watches that a message goes out; `sent` is said when the next hop answers."""
        if self.watch is not None:
            self.watch.sent(queue, [(message.lookup_identifier, message.packet)], address)

    def sent_together(
        self, queue: OutgoingQueue, packets: Iterable[tuple[int, bytes]], address: str
    ) -> None:
        """Note that messages go out to one address: keys and packets."""
        step = (self._clock.now(), TrailEventType.SENT, address)
        if self.watch is not None:
            packets = list(packets)
            self.watch.sent(queue, packets, address)
        for key, packet in packets:
            hops = self._at(queue, key, packet)
            if len(hops.steps) == MOST_STEPS:
                del hops.steps[1]
            hops.steps.append(step)

    def acknowledged_together(self, queue: Queue, keys: Iterable[int], by: str) -> None:
        """Note that acknowledgements of messages have come, as `acknowledged` does each."""
        for key in keys:
            self.acknowledged(queue, key, by)

    def refused(self, queue: OutgoingQueue, message: Message, by: str, status: int) -> None:
        """Note that the next hop does not want a message, with a status of HTTP."""
        self._step(self._of(queue, message), TrailEventType.REFUSED, f"{by}, {status}")
        if self.watch is not None:
            self.watch.turned_away(queue, message.lookup_identifier, str(status))

    def _of(self, queue: OutgoingQueue, message: Message) -> _MessageHops:
        return self._at(queue, message.lookup_identifier, message.packet)

    def _at(self, queue: OutgoingQueue, key: int, packet: bytes) -> _MessageHops:
        place = (queue.queue_id, key)
        hops = self._hops.get(place)
        if hops is None:
            identifier = packet[SOURCE_QUEUE_MANAGER] + packet[MESSAGE_ID]
            hops = self._hops[place] = _MessageHops(identifier, queue.destination_format_name)
            if len(self._hops) > MOST:
                self._hops.popitem(last=False)
        return hops

    def acknowledged(self, queue: Queue, key: int, by: str) -> None:
        """Note that an acknowledgement of a message has come; `by` describes it."""
        hops = self._hops.get((queue.queue_id, key))
        if hops is not None:
            self._step(hops, TrailEventType.ACKNOWLEDGED, by)
        if self.watch is not None:
            self.watch.acknowledged(queue, key)

    def arrived(self, queue: Queue, message: Message) -> None:
        """Note a message that has arrived, if it tells what became of another one."""
        kind = _CLASSES.get(message.attributes.message_class)
        if kind is not None and kind is not MessageClass.MQMSG_CLASS_NORMAL:
            about = message.attributes.correlation_identifier
            name = kind.name.removeprefix("MQMSG_CLASS_")
            self._told.append((self._clock.now(), _octets(about), queue.pathname, name))

    def arrived_together(self, told: Iterable[tuple[Queue, MessageClass, bytes]]) -> None:
        """Note messages that tell what became of others: where they are, what, and about which."""
        now = self._clock.now()
        for queue, kind, about in told:
            name = kind.name.removeprefix("MQMSG_CLASS_")
            self._told.append((now, about, queue.pathname, name))

    def _step(self, hops: _MessageHops, happening: TrailEventType, detail: str) -> None:
        if len(hops.steps) == MOST_STEPS:
            del hops.steps[1]
        hops.steps.append((self._clock.now(), happening, detail))

    def events(self, identifier: MessageIdentifier) -> Iterator[TrailEvent]:
        """The events of a message, in no particular order."""
        wanted = _octets(identifier)
        for (_, key), hops in self._hops.items():
            if hops.identifier == wanted:
                for time, happening, detail in hops.steps:
                    text = next_hop_text(detail) if happening is TrailEventType.SENT else detail
                    yield TrailEvent(time, happening, hops.queue, key, text)
        for time, about, queue, name in self._told:
            if about == wanted:
                yield TrailEvent(time, TrailEventType.ACKNOWLEDGED, queue, 0, name)


def _octets(identifier: MessageIdentifier) -> bytes:
    return identifier.queue_manager_guid.bytes_le + identifier.ordinal.to_bytes(4, "little")
