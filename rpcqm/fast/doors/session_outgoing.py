"""A run: messages of an outgoing queue that are sent together (`outgoing_runs`)."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import takewhile
from typing import Protocol

from rpcqm.adm.message import NEVER
from rpcqm.adm.queue import OutgoingQueue
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.connection.together import SendingQueue
from rpcqm.binary.sequence import Stamp
from rpcqm.fast.doors.session_shapes import Shape
from rpcqm.fast.formats.packet_form import Alike, Values
from rpcqm.qm.protocol_records import Changes
from rpcqm.qm.transfer import WaitingRun
from rpcqm.store.transaction import StoreTransaction

FOREVER = 1 << 63


class Leaving:
    """The first waiting messages, as far as they may leave; `now` is seconds since 1970.

    `packets` are their octets to send, `identifiers` the octets of their identifiers, `shapes`
    those that recognised them, `latest` the times until which they may leave. `to_be_stamped` are
    transactional ones of our own.
    """

    __slots__ = (
        "_mixed",
        "_now",
        "_waiting",
        "identifiers",
        "latest",
        "packets",
        "shapes",
        "to_be_stamped",
    )

    def __init__(self, waiting: WaitingRun, now: int) -> None:
        self._waiting, self._now = waiting, now
        self._mixed = False
        """Whether neighbours differed, so that no more runs are sought."""
        self.packets: list[bytes] = []
        self.identifiers: list[bytes] = []
        self.shapes: list[Shape] = []
        self.latest: list[int] = []
        self.to_be_stamped = False

    def __len__(self) -> int:
        return len(self.packets)

    @property
    def keys(self) -> list[int]:
        return self._waiting.keys[: len(self.packets)]

    @property
    def following(self) -> bytes | None:
        """The stored octets of the next message; None when all are in the run."""
        at, stored = len(self.packets), self._waiting.stored
        return stored[at] if at < len(stored) else None

    def take(self, shape: Shape, values: Values) -> bool:
        """Take the next message, and those behind it that are like it; False if it is late."""
        if self._are_late(shape, [values.sent_time]):
            return False
        alike = None if self._mixed else self._alike(shape)
        numbers = [values.message_id] if alike is None else alike.message_ids
        sent_times = [values.sent_time] if alike is None else alike.sent_times
        at = len(self.packets)
        taken = self._waiting.stored[at : at + len(numbers)]
        self.identifiers += shape.identifiers(numbers)
        self.shapes += [shape] * len(numbers)
        limit = shape.time_to_reach_queue
        self.latest += [FOREVER if limit == NEVER else sent + limit for sent in sent_times]
        if len(taken[0]) == values.size:
            self.packets += taken
        else:  # their source addresses lie behind the packets
            self.packets += [each[: values.size] for each in taken]
        return True

    def _are_late(self, shape: Shape, sent_times: Sequence[int]) -> bool:
        """Whether any of them is too late to reach its queue."""
        limit = shape.time_to_reach_queue
        return limit != NEVER and self._now - min(sent_times) > limit

    def _alike(self, shape: Shape) -> Alike | None:
        """The own values of messages that can be taken at once; None for a single one."""
        left = self._waiting.stored[len(self.packets) :]
        size = len(left[0])
        equal = len(list(takewhile(size.__eq__, map(len, left))))
        alike = shape.form.alike(b"".join(left[:equal]), 0, size, equal)
        self._mixed = alike is None or alike.length * 4 < len(left)
        return None if alike is None or self._are_late(shape, alike.sent_times) else alike


ChangesOf = Callable[[int], Changes | None]
"""The changes of records that belong to the removal of one message."""

Look = Callable[[StoreTransaction], None]
"""Examines what is about to be committed."""


class LeavingObserver(Protocol):
    """Compares messages that leave, or are removed, together with single ones."""

    def sending(
        self, sending: SendingQueue, connection: PeerConnection, keys: Sequence[int]
    ) -> AbstractContextManager[None]:
        """Compare the sent packets of these messages within the block."""

    def compare_locked(self, sending: SendingQueue, keys: Sequence[int]) -> None:
        """Compare the messages that would be locked one by one, and stamped before they leave."""

    def compare_stamped(self, sending: SendingQueue, key: int, stamp: Stamp, packet: bytes) -> None:
        """Compare the packet of a stamped message."""

    def removing(
        self, queue: OutgoingQueue, keys: Sequence[int], changes_of: ChangesOf
    ) -> AbstractContextManager[Look]:
        """Give the comparison of a commit that removes these messages within the block."""
