"""Packets of messages that are sent here, like one that was built before.

`build_user_message` stays the only definition of a packet. A template keeps the octets that it has
made, except for the values that `filled` takes. When a template is made, both build packets of
other values; if these differ, there is no template.
"""

import struct
from collections.abc import Sequence
from dataclasses import replace
from itertools import product, repeat
from random import Random

from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import encode_text
from rpcqm.codec.packet.base import MAXIMUM_PACKET_SIZE, BaseHeader, PacketTooLargeError
from rpcqm.codec.packet.fields import (
    BASE_FLAGS,
    CORRELATION_ID,
    PRIORITY,
    QUEUE_MANAGER_ADDRESS,
    SOURCE_QUEUE_MANAGER,
    USER_FLAGS,
)
from rpcqm.codec.packet.message import MessageAttributes, build_user_message, read_attributes
from rpcqm.codec.packet.properties import (
    MAXIMUM_LABEL_LENGTH,
    PROPERTIES_HEADER_SIZE,
    MessagePropertiesStart,
    locate_properties,
)
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.packet.user_message import UserMessage

_PADDING = (b"", b"\0\0\0", b"\0\0", b"\0")
_PRIORITY_AT, _PRIORITY = PRIORITY
_BASE_SIGNATURE = BaseHeader.place("signature")
_LABEL_LENGTH = MessagePropertiesStart.place("label_length")
_BODY_TYPE = MessagePropertiesStart.place("body_type")
_PRIVACY_LEVEL = MessagePropertiesStart.place("privacy_level")
_LONGEST_LABEL = 2 * MAXIMUM_LABEL_LENGTH + 2
_TRIED_BODIES = (0, 1, 2, 3, 4, 1_000)
_TRIED_LABELS = ("", "x", "label", "€" * MAXIMUM_LABEL_LENGTH)


def label_octets(title: bytes) -> bytes | None:
    """A label as packets have it: up to its null character and with it, nothing if it is empty.

    None for one that is too long. `title` is UTF-16, with or without a null character.
    """
    text = str(title, "utf-16-le", "surrogatepass")
    end = text.find("\0")
    if end == 0 or not text:
        return b""
    raw = title if end == len(text) - 1 else encode_text(text if end < 0 else text[:end])
    return raw if len(raw) <= _LONGEST_LABEL else None


class SentTemplate:
    """The constants of packets that differ only in the values that `filled` takes.

    Queue names, sender, transaction, extension and queue manager are those of the packet that it
    was learned from, so that no other queue manager can use it.
    """

    __slots__ = (
        "_address",
        "_behind",
        "_extension",
        "_flags",
        "_label_behind",
        "_least",
        "_middle",
        "_pack",
        "_signature",
        "_start",
        "_type",
        "_which",
    )

    def __init__(self, packet: bytes) -> None:
        """Raises DecodeError."""
        layout = UserMessage(packet).layout
        start = layout.properties
        _, extension, body, _, end = locate_properties(packet, start)
        at = BASE_FLAGS.start
        behind_first = at + 1  # the priority is in the first octet of the flags
        self._start, flags = packet[:at], packet[at] & ~_PRIORITY
        mask = 0 if layout.transaction >= 0 else _PRIORITY
        self._flags = bytes(flags | priority & mask for priority in range(_PRIORITY + 1))
        self._signature = packet[behind_first : _BASE_SIGNATURE.stop]
        self._address = packet[SOURCE_QUEUE_MANAGER.start : QUEUE_MANAGER_ADDRESS.stop]
        self._middle = packet[USER_FLAGS.start : start + _LABEL_LENGTH.start]
        self._which = packet[start + _LABEL_LENGTH.stop : start + CORRELATION_ID.start]
        self._type = packet[start + _BODY_TYPE.start : start + _BODY_TYPE.stop]
        self._label_behind = packet[start + _PRIVACY_LEVEL.start : start + PROPERTIES_HEADER_SIZE]
        self._extension, self._behind = packet[extension:body], packet[end:]
        fixed = start + PROPERTIES_HEADER_SIZE
        self._least = fixed + len(self._extension) + len(self._behind)
        self._pack = struct.Struct(
            f"<{at}sB{len(self._signature)}sII32sIII{len(self._middle)}sB"
            f"{len(self._which)}s20s4sIII{len(self._label_behind)}s"
        ).pack

    @classmethod
    def learn(cls, packet: bytes) -> "SentTemplate | None":
        """The template of a packet from the careful path; None if no template holds for it."""
        try:
            template, attributes = cls(packet), read_attributes(packet)
        except DecodeError:
            return None
        return template if template._agrees(packet, attributes) else None

    def filled(
        self,
        ordinal: int,
        sent_time: int,
        time_to_reach_queue: int,
        time_to_be_received: int,
        priority: int,
        application_tag: int,
        correlation: bytes,
        label: bytes,
        body: bytes,
    ) -> bytes:
        """The packet with these values, each of which fits its field; times are seconds.

        `label` is as `label_octets` gives it, `correlation` is 20 octets, all zero without one.
        Raises MQError(MQ_ERROR_INSUFFICIENT_RESOURCES) for a packet over 4 MiB.
        """
        size = len(body)
        padding, total = self._end(len(label), size)
        head = self._pack(
            self._start,
            self._flags[priority],
            self._signature,
            total,
            time_to_reach_queue,
            self._address,
            time_to_be_received,
            sent_time,
            ordinal,
            self._middle,
            len(label) >> 1,
            self._which,
            correlation,
            self._type,
            application_tag,
            size,
            size,
            self._label_behind,
        )
        return b"".join((head, label, self._extension, body, padding, self._behind))

    def filled_many(
        self,
        ordinals: Sequence[int],
        sent_time: int,
        times_to_reach_queue: Sequence[int],
        times_to_be_received: Sequence[int],
        priorities: Sequence[int],
        application_tags: Sequence[int],
        correlations: Sequence[bytes],
        labels: Sequence[bytes],
        bodies: Sequence[bytes],
    ) -> list[bytes]:
        """As `filled`, for each message of a column; quick where they are of one size."""
        columns = (
            ordinals,
            repeat(sent_time),
            times_to_reach_queue,
            times_to_be_received,
            priorities,
            application_tags,
            correlations,
            labels,
            bodies,
        )
        sizes = {*zip(map(len, labels), map(len, bodies), strict=True)}
        if len(sizes) != 1:
            return list(map(self.filled, *columns))
        length, size = sizes.pop()
        padding, total = self._end(length, size)
        heads = map(
            self._pack,
            repeat(self._start),
            map(self._flags.__getitem__, priorities),
            repeat(self._signature),
            repeat(total),
            times_to_reach_queue,
            repeat(self._address),
            times_to_be_received,
            repeat(sent_time),
            ordinals,
            repeat(self._middle),
            repeat(length >> 1),
            repeat(self._which),
            correlations,
            repeat(self._type),
            application_tags,
            repeat(size),
            repeat(size),
            repeat(self._label_behind),
        )
        extension, behind = repeat(self._extension), repeat(self._behind)
        parts = zip(heads, labels, extension, bodies, repeat(padding), behind)
        return list(map(b"".join, parts))

    def _end(self, length: int, size: int) -> tuple[bytes, int]:
        """The padding behind a body of a size, with a label of a length, and the packet's size."""
        padding = _PADDING[length + len(self._extension) + size & 3]
        total = self._least + length + size + len(padding)
        if total > MAXIMUM_PACKET_SIZE:
            raise PacketTooLargeError(total)
        return padding, total

    def _agrees(self, packet: bytes, attributes: MessageAttributes) -> bool:
        """Whether the careful path builds the same, of the packet's values and of others."""
        if build_user_message(attributes) != packet:
            return False
        source = Random(len(packet))
        return all(
            self._same(source, attributes, label, source.randbytes(size))
            for label, size in product(_TRIED_LABELS, _TRIED_BODIES)
        )

    def _same(self, source: Random, attributes: MessageAttributes, label: str, body: bytes) -> bool:
        ordinal, sent, reach, live, tag = (source.getrandbits(32) for _ in range(5))
        priority, correlation = source.randrange(_PRIORITY + 1), source.randbytes(20)
        attributes.identifier = replace(attributes.identifier, ordinal=ordinal)
        attributes.sent_time, attributes.priority = sent, priority
        attributes.time_to_reach_queue, attributes.time_to_be_received = reach, live
        attributes.application_tag, attributes.label, attributes.body = tag, label, body
        attributes.correlation_identifier = MessageIdentifier.decode(correlation)
        raw = encode_text(label) if label else b""
        filled = self.filled(ordinal, sent, reach, live, priority, tag, correlation, raw, body)
        return filled == build_user_message(attributes)
