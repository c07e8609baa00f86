"""Who takes the messages of an outgoing queue, kept for what it says after a restart (G101)."""

import struct
from typing import NamedTuple, Self
from uuid import UUID

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.codec.layout import NULL_GUID
from rpcqm.qm.streams import Streams

_PREFIX = b"qb peer:"
_QUEUE = struct.Struct(">I")
_GUID_SIZE = 16


class Peer(NamedTuple):
    """A queue manager and the address at which a session with it stood; null for nobody yet."""

    guid: UUID = NULL_GUID
    address: str = ""

    def encode(self) -> bytes:
        return self.guid.bytes_le + self.address.encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        return cls(UUID(bytes_le=data[:_GUID_SIZE]), data[_GUID_SIZE:].decode())


def kept_peer(streams: Streams, queue: OutgoingQueue) -> Peer:
    """Who took the transactional messages of a queue before a restart."""
    kept = streams.get(peer_key(queue))
    return Peer() if kept is None else Peer.decode(kept)


def peer_key(queue: OutgoingQueue) -> bytes:
    """Where that is kept."""
    return _PREFIX + _QUEUE.pack(queue.queue_id)
