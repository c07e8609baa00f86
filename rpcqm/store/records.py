"""The records on disk: column families, keys and values.

Keys are big-endian, so that their order is the order of identifiers; values are little-endian
64-bit words, so that recovery can decode whole columns of a run of them at once.
"""

import enum
import struct
from typing import NamedTuple

NEVER = 0xFFFF_FFFF_FFFF_FFFF
"""The expiry of a message that does not expire."""

MAX_IDENTIFIER = 0xFFFF_FFFF_FFFF_FFFF
"""The largest lookup identifier that its key has room for."""

FLAGS_MASK = 0x3F
"""Flags of a position that belong to the queue manager."""
FLAG_PURGE_PENDING = 0x40
"""On disk only: the queue was purged while the message was locked."""
FLAG_EXPRESS = 0x80
"""In memory only: the message is not durable."""


SYNCED_KEY = b"synced write"
SYNCED_NUMBER = struct.Struct("<Q")
"""In META: the number of the last synced write."""
LOG_POSITION_KEY = b"log position"
"""In META, in a cluster only: the place of the replicated log after the last local write."""
LOG_WRITER_KEY = b"log writer"
"""In META, in a cluster only: the last takeover that was read here, and its time."""


class Family(enum.Enum):
    """Column families of the database."""

    META = "meta"
    QUEUE = "queue"
    BODY = "body"
    POSITION = "position"
    STAGED = "staged"
    STREAM = "stream"
    HISTORY = "history"


class PositionRecord(NamedTuple):
    """A message in a queue; times are milliseconds since 1970, `size` is bytes of its packet."""

    serial: int
    size: int
    arrival: int
    expiry: int
    flags: int


class Moves(NamedTuple):
    """How often a message was given back or moved, and when last (milliseconds; 0 = never).

    `message_class` is the reason of a dead letter, which replaces the class in its packet (0:
    none).
    """

    abort_count: int
    move_count: int
    last_move_time: int
    message_class: int = 0


NO_MOVES = Moves(0, 0, 0)

SERIAL = struct.Struct(">Q")
QUEUE_ID = struct.Struct(">I")
POSITION_KEY = struct.Struct(">IQ")
POSITION = struct.Struct("<QQQIIIIQ")
"""serial, arrival, expiry, size, flags, abort count, move count, last move time.

The upper half of the flags is the class of a dead letter.
"""
CLASS_SHIFT = 16
STAGED_KEY = struct.Struct(">16sI")
STAGED = struct.Struct("<IIQQ")
"""kind, queue id, serial, size; then the queue manager's own bytes."""
COUNTER = struct.Struct("<Q")
MOST = 1 << 62
"""No counter and no number of synced writes gets so far: a larger one is damage."""

STAGED_OPERATION = 0
STAGED_MESSAGE = 1
