"""Searches a queue for messages that match a filter, a piece at a time.

A piece is bounded work, between two of which others are served. It sees the messages that a peek
would see: available ones, and locked ones that may be peeked.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from typing import NamedTuple

from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import FLAG_TRANSACTIONAL, Message
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import DecodeError
from rpcqm.codec.filters.matching import Matcher, Verdict
from rpcqm.codec.packet.types import SEQUENTIAL_BITS
from rpcqm.qm.stored_messages import message_at
from rpcqm.store.index import QueueIndex
from rpcqm.store.priority_index import Row
from rpcqm.store.store import Store

ROWS_AT_ONCE = 512
"""Messages whose index entries one piece examines."""
PACKETS_AT_ONCE = 64
OCTETS_AT_ONCE = 256 * 1024
"""Packets that a piece reads, and octets of them; one packet may be larger."""


class Candidate(NamedTuple):
    """A message that matches, or whose body decides (YES, READ), with its number in the piece."""

    message: Message
    verdict: Verdict
    number: int


@dataclass(slots=True)
class Piece:
    """The result for a piece of a queue, in its order.

    `looked_at` counts messages, `octets` those of the packets that were read. `last` is the lookup
    identifier behind which the next piece begins; None at the end.
    """

    found: list[Candidate] = field(default_factory=list)
    looked_at: int = 0
    octets: int = 0
    last: int | None = None


def look_through(store: Store, queue: Queue, matcher: Matcher, after: int | None) -> Piece:
    """Compare the next messages behind that of `after`; None begins with the first one."""
    piece, packets = Piece(), 0
    index = store.index(queue.queue_id)
    for row in islice(_visible(index, queue, after), ROWS_AT_ONCE + 1):
        if piece.looked_at == ROWS_AT_ONCE or packets == PACKETS_AT_ONCE:
            return piece
        wanted = _may_match(matcher, row)
        if wanted and piece.octets and piece.octets + row.size > OCTETS_AT_ONCE:
            return piece
        piece.looked_at += 1
        piece.last = row.key
        if wanted:
            packets += 1
            piece.octets += row.size
            _compare(store, queue, matcher, row.key, piece)
    piece.last = None
    return piece


def _visible(index: QueueIndex, queue: Queue, after: int | None) -> Iterator[Row]:
    available = index.available_behind(after)
    if not queue.peekable_when_locked:
        return available
    return merge(available, _peekable(index, queue, -1 if after is None else after))


def _peekable(index: QueueIndex, queue: Queue, after: int) -> Iterator[Row]:
    for key in sorted(key for key in queue.peekable_when_locked if key > after):
        position = index.position(key)
        if position is not None and index.state(key) is PositionState.LOCKED:
            yield Row(key, position.serial, position.size, position.arrival, position.flags)


def _may_match(matcher: Matcher, row: Row) -> bool:
    priority = 7 - (row.key >> SEQUENTIAL_BITS)
    transactional = bool(row.flags & FLAG_TRANSACTIONAL)
    return matcher.may_match(row.arrival, row.size, transactional, priority)


def _compare(store: Store, queue: Queue, matcher: Matcher, key: int, piece: Piece) -> None:
    message = message_at(store, queue, key)
    try:
        verdict = matcher.compare(message.attributes, message.sender)
    except DecodeError:  # an unreadable packet meets no condition
        return
    if verdict is not Verdict.NO:
        piece.found.append(Candidate(message, verdict, piece.looked_at))
