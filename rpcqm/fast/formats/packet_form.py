"""Forms of message packets: the places of changing values in packets like an earlier one.

A form keeps the findings of `PacketMessage` in one packet, which stays the only definition of a
packet: in every packet with the same `constants` the same headers lie at the same places, and only
these values differ: times and number of the message, its label, correlation, body type, application
tag, body and extension, and of a transactional one its place in a sequence.
"""

import functools
import struct
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import align4, decode_text, encode_text
from rpcqm.codec.packet.acknowledgement import PacketKind, identify_message
from rpcqm.codec.packet.base import MAXIMUM_PACKET_SIZE, BaseFlags, BaseHeader
from rpcqm.codec.packet.fields import MESSAGE_ID, SENT_TIME, TX_SEQUENCE_ID
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.properties import (
    MAXIMUM_LABEL_LENGTH,
    PROPERTIES_HEADER_SIZE,
    MessagePropertiesStart,
)
from rpcqm.codec.packet.security import SecurityFlags
from rpcqm.codec.packet.transaction import TRANSACTION_HEADER_SIZE, TransactionFlags
from rpcqm.codec.packet.user import UserFlags

_PRIORITY = BaseFlags.PR.bits
_TRAILERS = UserFlags.MQ.bits | UserFlags.AH.bits | UserFlags.HH.bits
_MARKS = TransactionFlags.ID.bits | TransactionFlags.FM.bits | TransactionFlags.LM.bits
_WITHOUT_MARKS = ~_MARKS & 0xFFFF_FFFF
_MARKS_SIZE = TX_SEQUENCE_ID.start
_CLAIMED = SecurityFlags.AS.bits | SecurityFlags.AU.bits | SecurityFlags.EB.bits
_LONGEST_LABEL = MAXIMUM_LABEL_LENGTH + 1
_SAMPLES = 4
"""Packets with other values that a form is tried with: each value is long, short and absent."""

_HEAD = "<" + "".join(
    (
        "8s",  # version, reserved, flags, signature
        "I",  # packet size
        "40s",  # time to reach the queue, source, address, time to be received
        "I",  # sent time
        "4s",  # message number
    )
)
_HEAD_SIZE = struct.calcsize(_HEAD)
_TRANSACTION, _NO_TRANSACTION = "IQII", "0s0s0s0s0s"
"""Without a TransactionHeader nothing is read in its place."""
_PROPERTIES = "".join(
    (
        "B",  # flags: acknowledgements
        "B",  # label length
        "H",  # class
        "20x",  # correlation
        "8x",  # body type, application tag
        "II",  # message size, allocated size
        "12s",  # privacy level and algorithms
        "I",  # extension size
    )
)
assert struct.calcsize("<" + _PROPERTIES) == PROPERTIES_HEADER_SIZE

_CONTENTS = struct.Struct("<xB2x20sIII4x12xI").unpack_from
"""Label length, correlation, body type, application tag, sizes of body and extension."""

Constants = tuple[bytes | int, ...]
"""The constants of packets that differ in their values only."""


class Values(NamedTuple):
    """The own values of one packet; the last three are 0 without a TransactionHeader."""

    constants: Constants
    size: int
    sent_time: int
    message_id: bytes
    sequence: int
    number: int
    previous: int


class Contents(NamedTuple):
    """Further own values of one packet; a label is as it is in the packet."""

    correlation: bytes
    body_type: int
    application_tag: int
    label: bytes
    extension: bytes
    body: bytes


class Alike(NamedTuple):
    """The own values of neighbouring packets of one size with equal constants.

    The last three are empty without a TransactionHeader.
    """

    length: int
    sent_times: tuple[int, ...]
    message_ids: tuple[bytes, ...]
    sequences: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    previous: tuple[int, ...] = ()


_new_values = functools.partial(tuple.__new__, Values)
_ROW_HEAD = "<12s40sI4s"
"""The beginning of a row: up to the packet size, names, sent time, message number."""
_ROW_CONTENTS = "4s28x24s"
"""The MessagePropertiesHeader without the correlation, the body type and the tag."""
_ROW_FLAGS = 5
"""The index of a TransactionHeader's flags in a row."""
_OWN = (2, 3), (2, 3, 5, 6, 7)
"""The indexes of differing values, without flags; the second with a TransactionHeader."""
assert struct.calcsize(_ROW_HEAD) == _HEAD_SIZE
assert struct.calcsize("<" + _ROW_CONTENTS) == PROPERTIES_HEADER_SIZE


class PacketForm:
    """The places of one form: `transaction` and `properties` are where those headers begin.

    `transaction` is -1 in packets without one.
    """

    __slots__ = ("_least", "_read", "_row", "properties", "transaction")

    def __init__(self, transaction: int, properties: int) -> None:
        self.transaction, self.properties = transaction, properties
        if transaction < 0:
            names = f"{properties - _HEAD_SIZE}s"
            middle = names + _NO_TRANSACTION
        else:
            behind = transaction + TRANSACTION_HEADER_SIZE
            names = f"{transaction - _HEAD_SIZE}s{_TRANSACTION}{properties - behind}s"
            middle = names
        self._read = struct.Struct(_HEAD + middle + _PROPERTIES).unpack_from
        self._row = _ROW_HEAD + names + _ROW_CONTENTS
        self._least = properties + PROPERTIES_HEADER_SIZE

    @classmethod
    def of(cls, message: PacketMessage) -> "PacketForm | None":
        """The form of a packet; None where forms are not possible. Raises DecodeError.

        Packets without forms end with a SessionHeader, or with headers behind the body, or are
        signed, encrypted, traced or of a connector.
        """
        layout = message.layout
        if message.base_flags & ~_PRIORITY or message.user_flags & _TRAILERS:
            return None
        if layout.connector_type >= 0 or message.connector_queue_manager_identifier is not None:
            return None
        if layout.security >= 0 and (message._security_flags() & _CLAIMED or message.signature):
            return None
        return cls(layout.transaction, layout.properties)

    def read(self, data: bytes, start: int) -> Values | None:
        """The values of the packet that begins there, if it is whole and may be of this form.

        It is of this form if its constants are those of a packet that is.
        """
        if len(data) - start < self._least:
            return None
        (
            first,
            size,
            ends,
            sent_time,
            identifier,
            names,
            flags,
            sequence,
            number,
            previous,
            more,
            acknowledgements,
            label,
            kind,
            body,
            room,
            last,
            extension,
        ) = self._read(data, start)
        if self.transaction < 0:
            constants: Constants = (first, ends, names, acknowledgements, kind, last)
            sequence = number = previous = 0
        else:
            flags &= _WITHOUT_MARKS
            constants = (first, ends, names, flags, more, acknowledgements, kind, last)
        text = start + self._least
        end = align4(PROPERTIES_HEADER_SIZE + 2 * label + extension + body) + self.properties
        if (
            not end <= size <= align4(end)
            or size > MAXIMUM_PACKET_SIZE
            or start + size > len(data)
            or room < body
            or (label and not _is_label(data[text : text + 2 * label]))
        ):
            return None
        return _new_values((constants, size, sent_time, identifier, sequence, number, previous))

    def alike(self, data: bytes, start: int, size: int, most: int) -> Alike | None:
        """The packets from `start` on that are like the first one, which `read` has read.

        At most `most` of them, of its `size`; they differ in their times, numbers, correlations,
        types, tags, texts and contents, but in no length. None where the second one is not like it.
        """
        count = min(most, (len(data) - start) // size)
        if count < 2 or data[start : start + 12] != data[start + size : start + size + 12]:
            return None
        label = 2 * data[start + self.properties + 1]
        unpack = _rows(self._row, label, size)
        columns = list(zip(*unpack(memoryview(data)[start : start + count * size]), strict=True))
        if label:
            count = _labels(columns.pop(), count)
        if self.transaction >= 0:
            count = _equal([flags & _WITHOUT_MARKS for flags in columns.pop(_ROW_FLAGS)], count)
        own = _OWN[self.transaction >= 0]
        for at, column in enumerate(columns):
            if at not in own:
                count = _equal(column, count)
        if count < 2:
            return None
        return Alike(count, *(columns[at][:count] for at in own))

    def contents(self, packet: bytes) -> Contents:
        """The further own values of a packet of this form."""
        at = self.properties
        label, correlation, body_type, tag, body, extension = _CONTENTS(packet, at)
        start = at + PROPERTIES_HEADER_SIZE
        more = start + 2 * label
        end = more + extension
        return Contents(
            correlation,
            body_type,
            tag,
            packet[start:more],
            packet[more:end],
            packet[end : end + body],
        )

    def packet_with(
        self, packet: bytes, sent_and_number: bytes, contents: Contents, room: int
    ) -> bytes:
        """A packet like one of this form, with another time, number and contents.

        `room` is the size that is allocated for its body.
        """
        start = self.properties
        behind = contents.label + contents.extension + contents.body
        made = bytearray(packet[: start + PROPERTIES_HEADER_SIZE]) + behind
        made += bytes(-(len(made) - start) % 4)
        made[BaseHeader.place("packet_size")] = len(made).to_bytes(4, "little")
        made[_SENT_AND_NUMBER] = sent_and_number
        for name, value in (
            ("label_length", len(contents.label) // 2),
            ("message_size", len(contents.body)),
            ("allocation_body_size", room),
            ("extension_size", len(contents.extension)),
            ("body_type", contents.body_type),
            ("application_tag", contents.application_tag),
        ):
            place = MessagePropertiesStart.place(name, start)
            made[place] = value.to_bytes(place.stop - place.start, "little")
        made[MessagePropertiesStart.place("correlation_id", start)] = contents.correlation
        return bytes(made)

    def is_proved(self, packet: bytes, random: Random) -> bool:
        """Whether packets with random values are of the form, and like this one in all else."""
        known = self.read(packet, 0)
        return known is not None and all(
            self._is_like(packet, _sample(packet, self, random), known) for _ in range(_SAMPLES)
        )

    def _is_like(self, packet: bytes, other: bytes, known: Values) -> bool:
        values, message = self.read(other, 0), PacketMessage(other)
        try:
            message.validate()
            kind, layout = identify_message(message), message.layout
        except DecodeError:
            return False
        return (
            values is not None
            and values.constants == known.constants
            and values.size == len(other)
            and values.sent_time == message.sent_time
            and values.message_id == message.identifier.ordinal.to_bytes(4, "little")
            and values.sequence == _sequence_of(message)
            and values.number == message.transaction_sequence_number
            and values.previous == message.transaction_previous_sequence_number
            and kind is PacketKind.USER_MESSAGE is identify_message(PacketMessage(packet))
            and (layout.transaction, layout.properties) == (self.transaction, self.properties)
        )


class PacketForms:
    """The forms of earlier packets, few of them: each packet is tried with all `known`.

    The one that was learned longest ago is forgotten.
    """

    __slots__ = ("_most", "_random", "known")

    def __init__(self, most: int, random: Random | None = None) -> None:
        self._most, self._random = most, random or Random()
        self.known: list[PacketForm] = []

    def learn(
        self, message: PacketMessage, packet: bytes, *, plain: bool = False
    ) -> tuple[PacketForm, Values] | None:
        """Learn the form of a packet; returns it with the values, or None if it has no form.

        With `plain` only messages outside transactions have one. Raises DecodeError.
        """
        form = PacketForm.of(message)
        if form is None or (plain and form.transaction >= 0):
            return None
        values = form.read(packet, 0)
        if values is None or not form.is_proved(packet, self._random):
            return None
        places = [(each.transaction, each.properties) for each in self.known]
        if (form.transaction, form.properties) not in places:
            self.known = [form, *self.known[: self._most - 1]]
        return form, values


@functools.lru_cache(maxsize=256)
def _rows(row: str, label: int, size: int) -> Callable[[memoryview], Iterator[tuple[Any, ...]]]:
    """A reader of consecutive packets of that size with labels of that length."""
    text = f"{label}s" if label else ""
    head = row + text
    return struct.Struct(f"{head}{size - struct.calcsize(head)}x").iter_unpack


def _equal(column: Sequence[object], count: int) -> int:
    """How many of the first `count` elements equal the first one, up to one that does not."""
    first = column[0]
    if column.count(first) == len(column):
        return count
    return next((at for at in range(count) if column[at] != first), count)


def _labels(column: Sequence[bytes], count: int) -> int:
    """How many of the first `count` are labels, up to one that is not."""
    return next((at for at in range(count) if not _is_label(column[at])), count)


def _sequence_of(message: PacketMessage) -> int:
    sequence = message.transactional_message_sequence_identifier
    return 0 if sequence is None else sequence.value


@functools.lru_cache(maxsize=1024)
def _is_label(octets: bytes) -> bool:
    """Whether the octets are a valid label of a packet; most messages have one of few."""
    try:
        decode_text(octets, "label")
    except DecodeError:
        return False
    return len(octets) <= 2 * _LONGEST_LABEL


def _sample(packet: bytes, form: PacketForm, random: Random) -> bytes:
    """A packet of a form with random values."""
    label = random.choice((b"", encode_text("label"), encode_text("l" * MAXIMUM_LABEL_LENGTH)))
    extension, body = (random.randbytes(random.choice((0, 1, 100))) for _ in range(2))
    contents = Contents(
        correlation=random.randbytes(20),
        body_type=random.getrandbits(32),
        application_tag=random.getrandbits(32),
        label=label,
        extension=extension,
        body=body,
    )
    sent_and_number = random.randbytes(8)
    room = len(body) + random.choice((0, 1, 1000))
    made = form.packet_with(packet, sent_and_number, contents, room)
    return _with_random_transaction(made, form.transaction, random)


def _with_random_transaction(packet: bytes, at: int, random: Random) -> bytes:
    if at < 0:
        return packet
    behind = at + _MARKS_SIZE
    marks = int.from_bytes(packet[at:behind], "little") & _WITHOUT_MARKS
    marks |= random.getrandbits(32) & _MARKS
    rest = random.randbytes(TRANSACTION_HEADER_SIZE - _MARKS_SIZE)
    made = packet[:at] + marks.to_bytes(_MARKS_SIZE, "little") + rest
    return made + packet[at + TRANSACTION_HEADER_SIZE :]


_SENT_AND_NUMBER = slice(SENT_TIME.start, MESSAGE_ID.stop)
