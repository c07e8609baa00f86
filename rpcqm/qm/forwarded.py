"""Others' transactional messages that wait here for their next hop (G155).

Their source sends them again until their destination has acknowledged their order, which may take
days. A message that still waits here is not stored once more.
"""

import hashlib
from collections.abc import Sequence

from rpcqm.adm.enums import PositionState
from rpcqm.adm.message import Message
from rpcqm.adm.queue import OutgoingQueue, Queue

MOST = 65_536
"""Messages that are remembered; of more than that each may be stored several times."""

_WAITS = frozenset({PositionState.AVAILABLE, PositionState.LOCKED})


def fingerprint(message: Message) -> bytes:
    """A digest of a message, equal for its repetition: of every octet, before a hop is counted."""
    return hashlib.blake2b(message.packet, digest_size=16).digest()


class Forwarded:
    """The durable messages that wait here, by their fingerprints."""

    def __init__(self) -> None:
        self._places: dict[bytes, tuple[Queue, int]] = {}
        self._fingerprints: dict[tuple[int, int], bytes] = {}

    def __contains__(self, printed: bytes) -> bool:
        place = self._places.get(printed)
        return place is not None and place[0].message_position_list.state(place[1]) in _WAITS

    def add(self, printed: bytes, message: Message) -> None:
        """Note that a message is durable, unless it was refused or has left already."""
        queue, key = message.queue, message.lookup_identifier
        if not isinstance(queue, OutgoingQueue) or len(self._places) >= MOST:
            return
        if queue.message_position_list.state(key) in _WAITS:
            self._places[printed] = queue, key
            self._fingerprints[queue.queue_id, key] = printed

    def removed_many(self, queue: Queue, keys: Sequence[int]) -> None:
        """Forget several messages."""
        for key in keys if self._fingerprints else ():
            self.removed(queue, key)

    def removed(self, queue: Queue, key: int) -> None:
        """Forget a message that has left its queue."""
        printed = self._fingerprints.pop((queue.queue_id, key), None)
        if printed is not None and self._places.get(printed) == (queue, key):
            del self._places[printed]
