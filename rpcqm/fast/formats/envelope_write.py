"""Envelopes like one that was written before.

A template keeps an outcome of the careful path (`outgoing.envelope_of`, `writing`), which stays the
only definition of sent envelopes: the text around the values that change from message to message. A
packet of the same shape is written without a look at its other fields.

A template is made when a shape comes a second time, so that messages that all differ cost little;
it is kept if it writes that message as the careful path does.
"""

import base64
from typing import NamedTuple

from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.codec.packet.user import QueueFormatType
from rpcqm.fast.formats.packet_shape import Shape, Varying
from rpcqm.srmp.dates import format_date
from rpcqm.srmp.elements import MSMQ_PREFIX, MessageId, Stream, StreamId
from rpcqm.srmp.outgoing import UrlOf, envelope_of, is_relayed, is_signed, time_after
from rpcqm.srmp.writing import write_envelope, write_stream
from rpcqm.srmp.xml import escaped

KEPT = 4
"""Templates of a queue, which are tried in turn: its messages have few shapes."""


class Attached(NamedTuple):
    """An envelope as it is sent, and its attachments."""

    envelope: bytes
    body: bytes | None
    extension: bytes | None


class WritingTemplate:
    """The constant parts of the envelopes of one shape."""

    __slots__ = ("_parts", "_to_be_received", "_to_reach_queue", "shape")

    def __init__(self, shape: Shape, parts: tuple[str, ...], message: PacketMessage) -> None:
        self.shape, self._parts = shape, parts
        self._to_be_received = message.time_to_be_received
        self._to_reach_queue = message.time_to_reach_queue

    def filled(self, own: Varying, stream: Stream | None) -> bytes:
        """The octets of the envelope of a message of this shape."""
        start, label, number, expires, sent, streams, correlation, end = self._parts
        return (
            f"{start}{escaped(own.label)}{label}{own.message_id}{number}"
            f"{format_date(time_after(own.sent_time, self._to_be_received))}{expires}"
            f"{format_date(own.sent_time)}{sent}{'' if stream is None else write_stream(stream)}"
            f"{streams}{base64.b64encode(own.correlation).decode()}{correlation}"
            f"{format_date(time_after(own.sent_time, self._to_reach_queue))}{end}"
        ).encode()


class WritingTemplates:
    """Writes the envelopes of one queue, most of them without a look at every field."""

    def __init__(self, url_of: UrlOf) -> None:
        self._url_of = url_of
        self._kept: list[WritingTemplate] = []
        self._missed: list[Shape] = []

    def __len__(self) -> int:
        return len(self._kept)

    def written(self, packet: bytes, stream: Stream | None) -> Attached | None:
        """A message as it is sent; None where the careful path has to write it."""
        for number, template in enumerate(self._kept):
            if template.shape.fits(packet):
                if number:
                    self._kept.insert(0, self._kept.pop(number))
                return _attached(template, packet, stream)
        return None

    def note(self, message: PacketMessage, packet: bytes) -> None:
        """Learn from an envelope of the careful path; raises DecodeError."""
        if not is_usual(message):
            return
        shape = Shape.of(message)
        if shape is None:
            return
        if shape not in self._missed:
            self._missed = [shape, *self._missed[: KEPT - 1]]
            return
        self._missed.remove(shape)
        template = _learned(shape, message, self._url_of)
        if template is not None:
            self._kept = [template, *self._kept[: KEPT - 1]]


def is_usual(message: PacketMessage) -> bool:
    """Whether an envelope depends only on the shape of the packet and its own values.

    The URL of an administration queue depends on the settings and on the queue.
    """
    return (
        message.message_class == MessageClass.MQMSG_CLASS_NORMAL
        and message.administration_queue_type == QueueFormatType.NONE
        and not is_relayed(message)
        and not is_signed(message)
        and message.soap is None
    )


def _attached(template: WritingTemplate, packet: bytes, stream: Stream | None) -> Attached:
    """`outgoing.written` for a message that is no receipt and did not come by HTTP."""
    own = template.shape.varying(packet)
    envelope = template.filled(own, stream)
    if not own.body and not own.extension:
        return Attached(envelope, None, None)
    return Attached(envelope, own.body, own.extension or None)


def _learned(shape: Shape, message: PacketMessage, url_of: UrlOf) -> WritingTemplate | None:
    """Have the careful path write marks in the place of varying values; they divide the text."""
    envelope = envelope_of(message, url_of, _STREAM)
    assert envelope.msmq is not None
    careful = write_envelope(envelope)
    stream = envelope.stream
    envelope.action = MSMQ_PREFIX + _LABEL
    envelope.id = MessageId(envelope.id.guid, _NUMBER)
    envelope.expires_at, envelope.sent_at, envelope.msmq.ttrq = _DATES
    envelope.msmq.correlation = _CORRELATION
    parts = _divided(write_envelope(envelope).decode())
    if parts is None:
        return None
    template = WritingTemplate(shape, parts, message)
    own = shape.varying(bytes(message.buffer))
    return template if template.filled(own, stream) == careful else None


def _divided(text: str) -> tuple[str, ...] | None:
    """The texts around the marks; None unless each mark is there once, in this order."""
    parts = []
    for mark in _MARKS:
        before, found, text = text.partition(mark)
        if not found or mark in text:
            return None
        parts.append(before)
    return (*parts, text)


_LABEL = "\ue000 the label \ue001"
_NUMBER = 0xFEDC_BA98_7654_3210
_DATES = 1, 2, 3
_CORRELATION = bytes(range(0xE0, 0xE0 + 20))
_STREAM = Stream(StreamId(NULL_GUID, _NUMBER - 1), 1, 0)
_MARKS = (
    _LABEL,
    str(_NUMBER),
    format_date(_DATES[0]),
    format_date(_DATES[1]),
    write_stream(_STREAM),
    base64.b64encode(_CORRELATION).decode(),
    format_date(_DATES[2]),
)
"""The marks for the varying values, in the order of [MC-MQSRM] 3.1.7.2.4."""
