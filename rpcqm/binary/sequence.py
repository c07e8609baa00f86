"""Exactly once, in order: sequences of transactional messages ([MS-MQQB] 3.1.1.5, 3.1.1.6.2).

Sequences outlive sessions. The sender's belongs to an outgoing queue, the receiver's to a source
queue manager and a destination format name as it arrived (G25, G55). Storage is the caller's task:
`encode` gives the bytes, and a stamp must be durable before the message that carries it leaves.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from rpcqm.adm.queue import OutgoingTransferInfo
from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.errors import DecodeError
from rpcqm.base.resend_ladder import ResendLadder
from rpcqm.binary.settings import RESEND_TIMER_TABLE, BinarySettings
from rpcqm.codec.packet.types import SequenceInfo, TxSequenceID

_OUTGOING = struct.Struct("<QIQI")
_LAST_SEQUENCE = struct.Struct("<Q")
_INCOMING = struct.Struct("<QII")


class Stamp(NamedTuple):
    """The place of a message in order: sequence, number, and the number before it."""

    sequence: TxSequenceID
    number: int
    previous: int


@dataclass(eq=False, repr=False)
class OutgoingSequence:
    """The sent and the acknowledged messages of an outgoing queue ([MS-MQQB] 3.1.1.3.1.1).

    Messages are named by keys (lookup identifiers). `ladder` is the Transactional Ack Wait Timer;
    `resend` is called when all unacknowledged messages have to be sent again.
    """

    identifier: TxSequenceID
    _clock: Clock
    _timers: Timers
    _resend: Callable[[], None]
    _table: tuple[int, ...] = RESEND_TIMER_TABLE

    def __post_init__(self) -> None:
        self.next_number = 1
        self.last_ack = Stamp(self.identifier, 0, 0)
        self.last_ack_count = 0
        self.last_ack_time: int | None = None
        self._numbers: dict[int, int] = {}
        self._previous: dict[int, int] | None = None
        self.ladder = ResendLadder(
            self._clock, self._timers, lambda: self._table, lambda: bool(self), self._resend
        )

    # The messages

    def __len__(self) -> int:
        return len(self._numbers)

    def number_of(self, key: int) -> int | None:
        """The number of a stamped message that is not acknowledged yet, or None."""
        return self._numbers.get(key)

    @property
    def keys(self) -> list[int]:
        """Stamped messages that have not been acknowledged, in the order of their numbers."""
        return list(self._numbers)

    def assign(self, key: int) -> Stamp:
        """Give a message its number, at its first transmission ([MS-MQQB] 3.1.7.1.3)."""
        number = self.next_number
        self.next_number += 1
        self._numbers[key] = number
        self._previous = None
        return Stamp(self.identifier, number, number - 1)

    def stamp_of(self, key: int) -> Stamp:
        """The stamp for sending a message again: the message before it may have expired since.

        The number before is that of the message before it that is still there. The first one has
        none, so that a receiver that was restored from a backup takes it, too: nothing before it
        comes any more (G358). KeyError when it has not been stamped.
        """
        if self._previous is None:
            self._previous = {}
            previous = 0
            for other, number in self._numbers.items():
                self._previous[other] = previous
                previous = number
        return Stamp(self.identifier, self._numbers[key], self._previous[key])

    def forget(self, key: int) -> None:
        """Forget a stamped message, for example an expired one: its number stays unused."""
        if self._numbers.pop(key, None) is not None:
            self._previous = None
            if not self._numbers:
                self.ladder.begin_anew()

    # Acknowledgements

    def order_ack(self, sequence: TxSequenceID, number: int) -> list[int]:
        """Take an acknowledgement of all messages up to a number ([MS-MQQB] 3.1.5.6); their keys.

        An acknowledgement of another sequence, or of numbers that were never given, is ignored. The
        ladder starts anew when something new was acknowledged (G28).
        """
        if sequence != self.identifier or number >= self.next_number:
            return []
        self.last_ack_time = self._clock.now() // 1000
        self.last_ack_count += 1
        if number <= self._acknowledged:
            return []
        self.last_ack = Stamp(sequence, number, number - 1)
        done = [key for key, given in self._numbers.items() if given <= number]
        for key in done:
            del self._numbers[key]
        self._previous = None
        self.ladder.acknowledged()
        return done

    @property
    def _acknowledged(self) -> int:
        """The number of this sequence that was acknowledged last, 0 before the first."""
        return self.last_ack.number if self.last_ack.sequence == self.identifier else 0

    @property
    def drained(self) -> bool:
        """Whether every sent message has been acknowledged, or is gone."""
        return not self._numbers and self.next_number > 1

    @property
    def next_stamp(self) -> Stamp:
        """The next message's stamp: number 1 of the next sequence when this one is drained.

        Source: [MS-MQQB] 3.1.1.5, 3.1.5.6.
        """
        if self.drained:
            return Stamp(sequence_of(self.identifier.value + 1), 1, 0)
        return Stamp(self.identifier, self.next_number, self.next_number - 1)

    def restart(self, identifier: TxSequenceID) -> None:
        """Begin another sequence; `identifier` is greater than every earlier one."""
        self.identifier = identifier
        self.next_number = 1

    # Sessions

    def session_opened(self) -> None:
        """[MS-MQQB] 3.1.3.2; the sequence and its last acknowledgement go on (G118)."""
        self.ladder.begin_anew()
        self.last_ack_count = 0
        self.last_ack_time = self._clock.now() // 1000

    def session_closed(self) -> None:
        """Stop resending until the next session ([MS-MQQB] 3.1.5.9)."""
        self.ladder.stop()

    # Storing and showing

    def encode(self) -> bytes:
        """The octets that have to survive a restart, apart from the stamps."""
        last = self.last_ack
        state = (self.identifier.value, self.next_number, last.number, self.last_ack_count)
        return _OUTGOING.pack(*state) + _LAST_SEQUENCE.pack(last.sequence.value)

    def restore(self, data: bytes, numbers: dict[int, int]) -> list[int]:
        """Restore the octets of `encode`, with the numbers of messages that are left.

        Returns the keys of messages that are left although their order is acknowledged: a crash has
        come between their removals.
        """
        try:
            value, next_number, last, count = _OUTGOING.unpack_from(data)
            last_sequence = _LAST_SEQUENCE.unpack(data[_OUTGOING.size :] or data[:8])[0]
        except struct.error as error:
            raise DecodeError(f"damaged outgoing sequence: {error}") from error
        self.identifier = sequence_of(value)
        self.last_ack_count = count
        self.last_ack = Stamp(sequence_of(last_sequence), last, max(last - 1, 0))
        ordered = sorted(numbers.items(), key=lambda entry: entry[1])
        self._numbers = {key: number for key, number in ordered if number > self._acknowledged}
        self._previous = None
        self.next_number = max([next_number, *(number + 1 for number in numbers.values())])
        return [key for key, _ in ordered if key not in self._numbers]

    def show(self, info: OutgoingTransferInfo) -> None:
        """Fill in the statistics for administrators ([MS-MQQB] 3.1.5.6)."""
        numbers = list(self._numbers.values())
        info.eod_last_ack_time = self.last_ack_time
        info.eod_last_ack_count = self.last_ack_count
        info.eod_no_ack_count = len(numbers)
        info.eod_resend_interval = self.ladder.interval // 1000
        info.eod_first_non_ack = self._info(numbers[0] if numbers else 0)
        info.eod_last_non_ack = self._info(numbers[-1] if numbers else 0)
        info.eod_last_ack = _sequence_info(self.last_ack)
        info.eod_next_seq = _sequence_info(self.next_stamp)
        info.eod_resend_count = self.ladder.step
        info.eod_resend_time = self.ladder.resend_time

    def _info(self, number: int) -> SequenceInfo:
        return _sequence_info(Stamp(self.identifier, number, number - 1))


def _sequence_info(stamp: Stamp) -> SequenceInfo:
    """A stamp for administrators; zeros before the first."""
    value = stamp.sequence.value
    signed = value - (1 << 64) if value >> 63 else value
    return SequenceInfo(signed, stamp.number, stamp.number - 1) if stamp.number else SequenceInfo()


def sequence_of(value: int) -> TxSequenceID:
    """A sequence identifier from its 64 bits."""
    return TxSequenceID(value & 0xFFFF_FFFF, value >> 32)


def identifier_in(data: bytes) -> TxSequenceID:
    """The identifier in octets of `OutgoingSequence.encode`; DecodeError."""
    try:
        return sequence_of(_OUTGOING.unpack_from(data)[0])
    except struct.error as error:
        raise DecodeError(f"damaged outgoing sequence: {error}") from error


def begun_anew(data: bytes, identifier: TxSequenceID) -> bytes:
    """The octets of the sequence after it, with its last acknowledgement. Raises DecodeError."""
    before = identifier_in(data).value.to_bytes(_LAST_SEQUENCE.size, "little")
    _, _, last, count = _OUTGOING.unpack_from(data)
    kept = data[_OUTGOING.size :][: _LAST_SEQUENCE.size] or before
    return _OUTGOING.pack(identifier.value, 1, last, count) + kept


def next_identifier(last: TxSequenceID, now: int) -> TxSequenceID:
    """The first identifier of a queue, greater than the last one; `now` is seconds since 1970.

    Its ordinal is 1 and its timestamp no other queue's, so that the ordinal can be counted up
    without asking ([MS-MQQB] 3.1.1.3.1, 3.1.5.6).
    """
    return TxSequenceID(1, max(now, last.timestamp + 1))


@dataclass(slots=True)
class IncomingSequence:
    """The last transactional message taken from one sender for one destination.

    `durable` is the number of the last one that is on the disk, or was refused for good: only that
    may be acknowledged. Source: [MS-MQQB] 3.1.5.8.6.
    """

    sequence: TxSequenceID = field(default_factory=TxSequenceID)
    number: int = 0
    reject_count: int = 0
    durable: Stamp = field(default_factory=lambda: Stamp(TxSequenceID(), 0, 0))

    def copy(self) -> "IncomingSequence":
        """A copy of the present state, to return to."""
        return IncomingSequence(self.sequence, self.number, self.reject_count, self.durable)

    def accept(self, stamp: Stamp) -> bool:
        """Whether a message is the next one; only then it counts (G23)."""
        if stamp.sequence == self.sequence:
            accepted = stamp.number > self.number and stamp.previous <= self.number
        else:
            accepted = self.sequence < stamp.sequence and stamp.previous == 0
        if accepted:
            self.sequence, self.number, self.reject_count = stamp.sequence, stamp.number, 0
        else:
            self.reject_count += 1
        return accepted

    def settled(self, stamp: Stamp) -> None:
        """Note that the outcome of a message and of all before it is durable."""
        if self.durable.sequence < stamp.sequence or (
            self.durable.sequence == stamp.sequence and self.durable.number < stamp.number
        ):
            self.durable = stamp

    def encode(self) -> bytes:
        """The octets that have to be durable together with the message."""
        return _INCOMING.pack(self.sequence.value, self.number, self.reject_count)

    @classmethod
    def decode(cls, data: bytes) -> "IncomingSequence":
        """The sequence that `encode` has written. Raises DecodeError."""
        try:
            value, number, rejected = _INCOMING.unpack(data)
        except struct.error as error:
            raise DecodeError(f"damaged incoming sequence: {error}") from error
        sequence = sequence_of(value)
        return cls(sequence, number, rejected, Stamp(sequence, number, max(number - 1, 0)))


INCOMING_SIZE = _INCOMING.size


class OrderAckSchedule:
    """The Order Ack Send Timer: soon after the last message, but not for ever later.

    Each transactional message starts it again, as long as the last acknowledgement is not
    `maximum_order_ack_delay` ago ([MS-MQQB] 3.1.1.6.2).
    """

    def __init__(
        self, clock: Clock, timers: Timers, settings: BinarySettings, send: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._timers = timers
        self._settings = settings
        self._send = send
        self._timer: Timer | None = None
        self._last_sent = clock.monotonic()

    def message_received(self) -> None:
        """A transactional message has come, accepted or not."""
        if self._timer is not None:
            waited = self._clock.monotonic() - self._last_sent
            if waited >= self._settings.maximum_order_ack_delay:
                return
            self._timer.cancel()
        self._timer = self._timers.call_later(self._settings.order_ack_timeout, self._expired)

    def _expired(self) -> None:
        self._timer = None
        self._last_sent = self._clock.monotonic()
        self._send()

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
