"""The stream of an outgoing queue: exactly once, in order ([MC-MQSRM] 3.1.1.2, 3.1.1.1.6).

Storage is the caller's task: `encode` gives the octets, and a number must be durable before the
message that carries it leaves.
"""

import secrets
import struct
from collections.abc import Callable
from dataclasses import dataclass

from rpcqm.adm.queue import NO_SEQUENCE, OutgoingTransferInfo
from rpcqm.base.clock import Clock, Timers
from rpcqm.base.errors import DecodeError
from rpcqm.base.resend_ladder import ResendLadder
from rpcqm.codec.packet.types import SequenceInfo

_STATE = struct.Struct("<QIII")
_TIMESTAMP_BITS = 32
_START_BITS = 31
_STEP_BITS = 24
_FAR_AHEAD = 1 << 28
"""Seconds; many streams in each of them must not use up the 32 bits of the upper half."""
_SIGN = 1 << 63


def next_stream(last: int, now: int) -> int:
    """The number of a new stream, greater than `last`, the one before; `now` is seconds since 1970.

    Its upper half is a time ([MC-MQSRM] 2.2.5.3.1). Nobody but the destination can guess the lower
    half, so that a receipt proves by it that the destination has written it (G223).
    """
    # One second, one stream: the number of one destination's stream does not reveal the next one's.
    seconds = max(now, (last >> _TIMESTAMP_BITS) + 1)
    if seconds > now + _FAR_AHEAD:
        return last + 1 + secrets.randbits(_STEP_BITS)
    return seconds << _TIMESTAMP_BITS | secrets.randbits(_START_BITS)


@dataclass(eq=False, repr=False)
class OutgoingStream:
    """The sent and the acknowledged messages of a stream.

    Messages are named by keys (lookup identifiers). `ladder` is the Stream Receipt Wait Timer;
    `resend` is called when all unacknowledged messages have to be sent again, `table` holds the
    times in milliseconds.
    """

    identifier: int
    _clock: Clock
    _timers: Timers
    _resend: Callable[[], None]
    _table: Callable[[], tuple[int, ...]]

    def __post_init__(self) -> None:
        self.next_number = 1
        self.posted = 0
        """The greatest posted number; numbers are given ahead of it."""
        self.acknowledged = 0
        self.receipts = 0
        self.last_receipt_time: int | None = None
        self._numbers: dict[int, int] = {}
        self._deciding: dict[int, int] = {}
        self._previous: dict[int, int] | None = None
        self.ladder = ResendLadder(
            self._clock, self._timers, self._table, lambda: self.has_unacknowledged, self._resend
        )

    # The messages

    @property
    def keys(self) -> list[int]:
        """The messages that await their stream receipt, in the order of the numbers."""
        return list(self._numbers)

    @property
    def has_unacknowledged(self) -> bool:
        """Whether a message awaits its stream receipt."""
        return bool(self._numbers)

    def number_of(self, key: int) -> int | None:
        """The number of a message that awaits its stream receipt."""
        return self._numbers.get(key)

    def assign(self, key: int) -> int:
        """Give a message its number, at its first transmission ([MC-MQSRM] 3.1.7.2.3)."""
        number = self.next_number
        self.next_number += 1
        if self._previous is not None:
            self._previous[key] = next(reversed(self._numbers.values()), self.acknowledged)
        self._numbers[key] = number
        return number

    def note_posted(self, key: int) -> None:
        """Note that a message is posted, perhaps not for the first time."""
        self.posted = max(self.posted, self._numbers.get(key, 0))

    def previous_of(self, key: int) -> int:
        """The number of the message still there before this one, or the last acknowledged number.

        Messages between them may have expired. KeyError when the message has no number.
        """
        if self._previous is None:
            self._previous = {}
            previous = self.acknowledged
            for other, number in self._numbers.items():
                self._previous[other] = previous
                previous = number
        return self._previous[key]

    def forget(self, key: int) -> bool:
        """Forget a message that has left; its number stays unused.

        Returns whether it belonged to the stream ([MC-MQSRM] 3.1.7.6).
        """
        if self._deciding.pop(key, None) is not None:
            return True
        if self._numbers.pop(key, None) is None:
            return False
        self._previous = None
        if not self._numbers:
            self.ladder.stop()
        return True

    @property
    def over(self) -> bool:
        """Whether no receipt is outstanding: the next message begins another stream."""
        return not self._numbers and not self._deciding

    # Receipts

    def receipt(self, last_ordinal: int) -> dict[int, int]:
        """Take a receipt for all messages up to a number; returns the newly acknowledged ones.

        They come with their numbers. A number that was never given is ignored. The ladder begins
        anew when something new is acknowledged (G28).

        Source: [MC-MQSRM] 3.1.5.1.8.1, .2.
        """
        if last_ordinal >= self.next_number:
            return {}
        self.last_receipt_time = self._clock.now() // 1000
        self.receipts += 1
        if last_ordinal <= self.acknowledged:
            return {}
        self.acknowledged = last_ordinal
        done = {key: number for key, number in self._numbers.items() if number <= last_ordinal}
        for key in done:
            del self._numbers[key]
        self._previous = None
        self.ladder.acknowledged()
        return done

    def await_decision(self, key: int, number: int) -> None:
        """A message awaits its final stream receipt ([MC-MQSRM] 3.1.1.3.3)."""
        self._deciding[key] = number

    def awaits_decision(self, key: int) -> bool:
        """Whether a message has arrived, and its fate is open."""
        return key in self._deciding

    def find(self, number: int) -> int | None:
        """The key of a message of which a receipt is outstanding ([MC-MQSRM] 3.1.5.1.9.1)."""
        for messages in (self._deciding, self._numbers):
            for key, given in messages.items():
                if given == number:
                    return key
        return None

    # Storing and showing

    def encode(self) -> bytes:
        """The octets that have to survive a restart, apart from the numbers of messages."""
        return _STATE.pack(self.identifier, self.next_number, self.acknowledged, self.receipts)

    def restore(self, data: bytes, numbers: dict[int, int]) -> None:
        """Restore the octets of `encode`, with the numbers of messages that are left.

        Acknowledged ones await their final stream receipt. Raises DecodeError.
        """
        try:
            state = _STATE.unpack(data)
        except struct.error as error:
            raise DecodeError(f"damaged outgoing stream: {error}") from error
        self.identifier, self.next_number, self.acknowledged, self.receipts = state
        for key, number in sorted(numbers.items(), key=lambda entry: entry[1]):
            acknowledged = number <= self.acknowledged
            (self._deciding if acknowledged else self._numbers)[key] = number
        self._previous = None
        self.next_number = max([self.next_number, *(number + 1 for number in numbers.values())])
        # The messages sent before the restart are uncertain: each one with a number may have been.
        self.posted = self.next_number - 1

    def show(self, info: OutgoingTransferInfo) -> None:
        """Fill in the statistics for administrators ([MC-MQSRM] 3.1.5.1.8.2, 3.1.7.2.3).

        They count posted messages, without those that only have a number (G463).
        """
        keys = [key for key, number in self._numbers.items() if number <= self.posted]
        info.eod_last_ack_time = self.last_receipt_time
        info.eod_last_ack_count = self.receipts
        info.eod_no_ack_count = len(keys)
        info.eod_resend_interval = self.ladder.interval // 1000
        info.eod_first_non_ack = self._info_of(keys[0]) if keys else NO_SEQUENCE
        info.eod_last_non_ack = self._info_of(keys[-1]) if keys else NO_SEQUENCE
        info.eod_last_ack = self._info(self.acknowledged, max(self.acknowledged - 1, 0))
        info.eod_next_seq = self._info(self.posted + 1, self.posted)
        info.eod_resend_count = self.ladder.step
        info.eod_resend_time = self.ladder.resend_time

    def _info_of(self, key: int) -> SequenceInfo:
        return self._info(self._numbers[key], self.previous_of(key))

    def _info(self, number: int, previous: int) -> SequenceInfo:
        identifier = self.identifier
        signed = identifier - 2 * _SIGN if identifier & _SIGN else identifier
        return SequenceInfo(signed, number, previous)
