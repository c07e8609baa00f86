"""Messages of a session that the peer has not acknowledged ([MS-MQQB] 3.1.1.4, 3.1.5.5)."""

from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, compress, islice, repeat
from operator import itemgetter
from typing import NamedTuple

from rpcqm.codec.packet.base import SessionHeader
from rpcqm.codec.packet.fields import DELIVERY_MODE

COUNTER = 0xFFFF
"""Messages are numbered from 1, modulo this and one."""
_HALF = 0x8000
_DELIVERY_MODE_AT, _DELIVERY_MODE = DELIVERY_MODE
_delivery_mode_of = itemgetter(_DELIVERY_MODE_AT)
_IS_RECOVERABLE = bytes(octet & _DELIVERY_MODE != 0 for octet in range(256))


class Sent(NamedTuple):
    """A message in flight; only a recoverable one has a number."""

    token: object
    recoverable: int | None


_new_sent = partial(tuple.__new__, Sent)
_number_of = itemgetter(1)


class SentMessages:
    """Messages that the peer has not counted, in order; recoverable ones not on its disk."""

    __slots__ = ("in_flight", "unpersisted")

    def __init__(self) -> None:
        self.in_flight: deque[Sent] = deque()
        self.unpersisted: dict[int, object] = {}
        """The tokens of recoverable messages by their numbers, in the order of sending."""

    def __bool__(self) -> bool:
        return bool(self.in_flight or self.unpersisted)

    def clear(self) -> None:
        """Forget all messages."""
        self.in_flight.clear()
        self.unpersisted.clear()

    def add(self, packets: Sequence[bytes], tokens: Sequence[object], last: int) -> int:
        """Add messages; `last` is the number of the last recoverable one, and so is the result."""
        recoverable = bytes(map(_delivery_mode_of, packets)).translate(_IS_RECOVERABLE)
        numbers = list(accumulate(recoverable, initial=last))[1:]
        if numbers and numbers[-1] > COUNTER:
            numbers = [number & COUNTER for number in numbers]
        self.unpersisted.update(compress(zip(numbers, tokens, strict=True), recoverable))
        own: Sequence[int | None] = numbers
        if not all(recoverable):
            durable = zip(numbers, recoverable, strict=True)
            own = [number if is_recoverable else None for number, is_recoverable in durable]
        self.in_flight.extend(map(_new_sent, zip(tokens, own, strict=True)))
        return numbers[-1] if numbers else last

    def take_counted(self, count: int) -> list[object]:
        """Remove the first messages in flight, which the peer has counted; the tokens of express
        ones."""
        sent = list(map(deque.popleft, repeat(self.in_flight, count)))
        if None not in map(_number_of, sent):
            return []
        return [each.token for each in sent if each.recoverable is None]

    def take_persisted(self, header: SessionHeader) -> list[object]:
        """Remove messages that a SessionHeader reports as persisted; returns their tokens."""
        first = header.recoverable_msg_ack_seq_number
        flags = header.recoverable_msg_ack_flags
        if not first and not flags:
            return []
        following = range(first, first + flags.bit_length())
        if self._are_next(following, flags):
            return list(map(self.unpersisted.pop, following))
        released: list[object] = []
        for number in list(self.unpersisted):
            if (first - number) & COUNTER >= _HALF:
                break
            released.append(self.unpersisted.pop(number))
        for bit in range(flags.bit_length()):
            number = (first + bit) & COUNTER
            if flags >> bit & 1 and number in self.unpersisted:
                released.append(self.unpersisted.pop(number))
        return released

    def _are_next(self, numbers: range, flags: int) -> bool:
        """Whether there are flags, all are set, and they are about the next numbers."""
        return (
            0 < flags == (1 << len(numbers)) - 1
            and numbers.stop <= COUNTER + 1
            and list(islice(self.unpersisted, len(numbers))) == list(numbers)
        )
