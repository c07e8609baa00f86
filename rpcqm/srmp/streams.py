"""Incoming streams: which message is the next one, and when receipts go ([MC-MQSRM] 3.1.5.1.6.3).

Storage is the caller's task: `encode` gives the octets, which become durable with the message that
has changed them.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.errors import DecodeError
from rpcqm.codec.layout import NULL_GUID
from rpcqm.srmp.elements import Stream, StreamId
from rpcqm.srmp.settings import SrmpSettings

_STATE = struct.Struct("<16sQIIQI")
_BETWEEN = "\0"
"""A separator that no URL in XML can contain."""


@dataclass(slots=True)
class IncomingStream:
    """The last message taken of a stream; Stream of [MC-MQSRM] 3.1.1.1.6, the receiver's part.

    `guid` and `ordinal` are IncomingId, `number` is IncomingSequenceNumber. `durable` is the number
    that may be acknowledged: its message is on the disk, or was refused for good.
    `last_access_time` is seconds since 1970, `queue_id` the queue of the last message, `owner` the
    owner of the address that it came from.
    """

    guid: UUID = NULL_GUID
    ordinal: int = 0
    number: int = 0
    send_receipts_to: str = ""
    reject_count: int = 0
    last_access_time: int = 0
    queue_id: int = 0
    durable: tuple[int, int] = (0, 0)
    owner: str = ""

    def copy(self) -> "IncomingStream":
        """A copy of the present state, to return to."""
        return replace(self)

    def accept(self, stream: Stream) -> bool:
        """Whether a message is the next one; only then it counts ([MC-MQSRM] 3.1.5.1.6.3)."""
        accepted = self._begins_with(stream) or self._goes_on_with(stream)
        if not accepted:
            self.reject_count += 1
            return False
        if stream.send_receipts_to is not None:
            self.guid, self.ordinal = stream.stream_id
            self.send_receipts_to = stream.send_receipts_to
        self.number, self.reject_count = stream.current, 0
        return True

    def _begins_with(self, stream: Stream) -> bool:
        """Whether it is the first message of a new stream, or the first one left (G226)."""
        if stream.send_receipts_to is None or stream.stream_id == self.stream_id:
            return False
        return stream.current == 1 or stream.previous == 0

    def _goes_on_with(self, stream: Stream) -> bool:
        """Whether it is the next message, or behind numbers that its sender has given up."""
        if stream.stream_id != self.stream_id:
            return False
        if stream.current == self.number + 1:
            return True
        return stream.current > self.number >= stream.previous

    def follow(self, stream: Stream) -> bool:
        """Take another SendReceiptsTo when the first message of this stream comes again.

        Returns whether it differs: the sender has been reconfigured meanwhile (G169).
        """
        url = stream.send_receipts_to
        if stream.stream_id != self.stream_id or url in (None, self.send_receipts_to):
            return False
        assert url is not None
        self.send_receipts_to = url
        return True

    @property
    def stream_id(self) -> StreamId:
        """IncomingId."""
        return StreamId(self.guid, self.ordinal)

    @property
    def is_durable(self) -> bool:
        """Whether the last message that was taken may be acknowledged."""
        return self.durable == (self.ordinal, self.number)

    def settled(self, stream: Stream) -> None:
        """Note that the outcome of a message and of all before it is durable."""
        ordinal, number = self.durable
        if stream.stream_id.ordinal != ordinal or stream.current > number:
            self.durable = stream.stream_id.ordinal, stream.current

    def encode(self) -> bytes:
        """The octets that have to be durable together with the message (G213)."""
        state = _STATE.pack(
            self.guid.bytes_le,
            self.ordinal,
            self.number,
            self.reject_count,
            self.last_access_time,
            self.queue_id,
        )
        texts = self.send_receipts_to, self.owner
        return state + _BETWEEN.join(texts).encode("utf-8", "surrogatepass")

    @classmethod
    def decode(cls, data: bytes) -> "IncomingStream":
        """The stream that `encode` has written. Raises DecodeError."""
        try:
            guid, ordinal, number, rejected, time, queue_id = _STATE.unpack_from(data)
            texts = data[_STATE.size :].decode("utf-8", "surrogatepass")
        except (struct.error, ValueError) as error:
            raise DecodeError(f"damaged incoming stream: {error}") from error
        url, _, owner = texts.partition(_BETWEEN)
        done = ordinal, number
        return cls(UUID(bytes_le=guid), ordinal, number, url, rejected, time, queue_id, done, owner)


class ReceiptSchedule:
    """The Stream Receipt Coalescing Timer: soon after the last message, but not for ever later.

    Each message starts it again, until the oldest one without a receipt has waited for
    `maximum_receipt_delay`: then the receipt goes at once ([MC-MQSRM] 3.1.2.3, 3.1.5.1.6.3).
    """

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        settings: Callable[[], SrmpSettings],
        send: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._timers = timers
        self._settings = settings
        self._send = send
        self._timer: Timer | None = None
        self._oldest: int | None = None

    def message_received(self) -> None:
        """Note that a message, or a repetition, has come: its sender waits for a receipt (G214)."""
        now, settings = self._clock.monotonic(), self._settings()
        if self._oldest is None:
            self._oldest = now
        self.stop()
        left = self._oldest + settings.maximum_receipt_delay - now
        delay = max(min(settings.receipt_coalescing, left), 0)
        self._timer = self._timers.call_later(delay, self._expired)

    def _expired(self) -> None:
        """[MC-MQSRM] 3.1.6.3."""
        self._timer = None
        self._oldest = None
        self._send()

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
