"""Targets of sessions: packets that nearly are of a shape that is known.

What the form of a packet tells must be what the packet is; what is taken together must be taken as
each would be (docs/request-templates.md).
"""

import tempfile
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from rpcqm.adm.message import Message
from rpcqm.base.errors import DecodeError
from rpcqm.codec.packet.base import BaseHeader
from rpcqm.codec.packet.fields import MESSAGE_ID, NAMES_OFFSET, PACKET_SIZE
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.patch import set_sequence
from rpcqm.codec.packet.properties import MessagePropertiesStart
from rpcqm.fast.doors.session_shapes import Shape, is_usual_arrival
from rpcqm.fast.formats.packet_form import Values
from tests.fuzz.mutation import LONGEST, mutated
from tests.fuzz.target import Run, Target, Violation
from tests.support.binary.binary_peer import ScriptedPeer
from tests.support.queue_manager import MEMORY
from tests.support.shadow.arriving import ArrivalShadow
from tests.support.shadow.comparing import Difference, Shadow
from tests.unit.fast.test_arrival_batches import Half, Sent

NOW = 1_000_000_000
FED_EVERY = 16
"""Of so many packets that are recognised one is fed to a session."""
DIRECT = (
    Sent("orders", 1, body=b"octets"),
    Sent("orders", 2, recoverable=False, label="label", body=bytes(70)),
    Sent("others", 3, label="another", extension=b"extension"),
    Sent("others", 4, priority=5, limits=(7, 9), body=b"seventeen octets!"),
    Sent("stream", 5, place=(1, 1, 0), body=b"octets"),
    Sent("stream", 6, place=(1, 2, 1), label="label", extension=b"more"),
    Sent("orders", 7, acknowledged=1, body=b"octets"),
)
_COUNTS = ("label_length", "message_size", "allocation_body_size", "extension_size")


def _seeds() -> Iterator[bytes]:
    for sent in DIRECT:
        yield sent.packet(NOW)


class _Known:
    """A queue manager that knows the shapes of the seeds, and learns what is fed as well."""

    def __init__(self, directory: Path) -> None:
        self._half = Half(directory, together=True)
        self._differences: list[Difference] = []
        node = self._half.bob
        shadow = Shadow(node.store, node.simulation.clock, self._differences.append)
        self.batches = node.speed.batches
        self.batches.shadow = ArrivalShadow(node.engine, node.protocol, shadow)
        self._number = self._recognised = 0
        for octets in _seeds():
            similar = self.batches.shapes.unknown(octets, 0, b"")
            self.batches.shapes.unknown(octets, 0, similar)

    def run(self, octets: bytes) -> Hashable:
        """A packet: what is told of it is what it is, and it is taken as it would be alone."""
        shapes, packet = self.batches.shapes, _whole(octets)
        found = shapes.find(packet, 0)
        try:
            message = Message(packet)
            message.attributes.validate()
            usual = is_usual_arrival(message)
        except DecodeError as error:
            if found is not None:
                raise Violation("a packet is recognised and refused") from error
            raise
        if found is None:
            similar = shapes.unknown(packet, 0, b"")
            return shapes.unknown(packet, 0, similar) == b"", usual
        if not usual:
            raise Violation("a packet is recognised that is not usual")
        self._check(message, *found)
        self._recognised += 1
        if self._recognised % FED_EVERY == 0:
            return self._fed(packet)
        return found[0].transactional, found[0].flags, len(shapes)

    def _check(self, message: Message, shape: Shape, values: Values) -> None:
        attributes, other = message.attributes, Shape(message, shape.form)
        for name in Shape.__slots__:
            if getattr(shape, name) != getattr(other, name):
                raise Violation(f"the {name} of a packet is another one")
        sequence = attributes.transactional_message_sequence_identifier
        told = (
            len(message.packet),
            attributes.sent_time,
            message.packet[MESSAGE_ID],
            0 if sequence is None else sequence.value,
            attributes.transaction_sequence_number,
            attributes.transaction_previous_sequence_number,
        )
        if tuple(values[1:]) != told:
            raise Violation("a value of a packet is another one")

    def _fed(self, packet: bytes) -> Hashable:
        """Have it come in one read with itself under other numbers."""
        peer = self._half.peer
        if peer.closed:
            peer = self._half.peer = ScriptedPeer(self._half.bob)
        before, self._number = self.batches.taken, self._number + 3
        sequence = PacketMessage(packet).transactional_message_sequence_identifier
        several = bytearray()
        for number in range(self._number, self._number + 3):
            made = bytearray(packet)
            made[MESSAGE_ID] = number.to_bytes(4, "little")
            if sequence is not None:
                set_sequence(made, sequence, number, number - 1)
            several += made
        peer.feed(bytes(several))
        self._half.bob.settle()
        peer.answers.clear()
        if self._differences:
            what, self._differences = self._differences[0], []
            raise Violation(f"{what.what} differ where packets are taken together")
        return "fed", self.batches.taken - before, peer.closed


@contextmanager
def _opened() -> Iterator[Run]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        known = _Known(Path(directory))
        try:
            yield known.run
        finally:
            known._half.simulation.stop()


def _whole(octets: bytes) -> bytes:
    """The first packet of these octets, if it is whole."""
    size = int.from_bytes(octets[PACKET_SIZE], "little")
    return octets[:size] if BaseHeader.size() <= size <= len(octets) else octets


def _nearly(random: Random, octets: bytes, others: Sequence[bytes]) -> bytes:
    """One octet is another one, or something is of another size and its counts say so, or not."""
    packet, chosen = bytearray(octets), random.random()
    if chosen < 0.1 or len(packet) < NAMES_OFFSET:
        return mutated(random, octets, others)
    if chosen < 0.6:
        for _ in range(random.randrange(1, 3)):
            packet[random.randrange(len(packet))] = random.choice(
                (0, 1, 2, 255, random.randrange(256))
            )
    else:
        _resize(random, packet)
    return bytes(packet[:LONGEST])


def _resize(random: Random, packet: bytearray) -> None:
    """Put in or take out octets behind the names, and say so in most places."""
    try:
        start = PacketMessage(bytes(packet)).layout.properties
    except DecodeError:
        return
    by = random.choice((-4, -2, -1, 1, 2, 3, 4, 8, 24))
    name = random.choice(_COUNTS)
    _add(packet, MessagePropertiesStart.place(name, start), by)
    units = 2 if name == "label_length" else 1
    change = units * by if random.random() < 0.8 else random.choice((-4, 4, 8))
    place = random.randrange(min(start + 40, len(packet)), len(packet) + 1)
    if change > 0:
        packet[place:place] = random.choice((bytes(change), b"l\0" * change))[:change]
    else:
        del packet[place : place - change]
    if random.random() < 0.9:
        packet[PACKET_SIZE] = len(packet).to_bytes(4, "little")


def _add(packet: bytearray, place: slice, by: int) -> None:
    width = place.stop - place.start
    value = int.from_bytes(packet[place], "little") + by
    packet[place] = (value % (1 << 8 * width)).to_bytes(width, "little")


TARGETS = (
    Target("session-shape", _seeds, _opened, (DecodeError,), _nearly, share=20, lifetime=20_000),
)
