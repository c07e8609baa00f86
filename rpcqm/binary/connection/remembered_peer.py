"""The queue manager that takes the messages of an outgoing queue, kept over restarts (G101)."""

import struct
from typing import NamedTuple, Self
from uuid import UUID

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.codec.layout import NULL_GUID
from rpcqm.qm.protocol_records import ProtocolRecords

_PREFIX = b"qb peer:"
_QUEUE = struct.Struct(">I")
_GUID_SIZE = 16
_SEPARATOR = "\n"
MOST_ADDRESSES = 64


class RememberedPeer(NamedTuple):
    """A queue manager and the addresses that led to it; null before the first one (G159)."""

    guid: UUID = NULL_GUID
    addresses: tuple[str, ...] = ()

    def now(self, guid: UUID, addresses: set[str], *, complete: bool) -> "RememberedPeer":
        """The present peer; the same one keeps its earlier addresses unless `complete`."""
        if not complete and guid == self.guid:
            addresses = addresses.union(self.addresses)
        return RememberedPeer(guid, tuple(sorted(addresses)[:MOST_ADDRESSES]))

    def encode(self) -> bytes:
        return self.guid.bytes_le + _SEPARATOR.join(self.addresses).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        addresses = tuple(data[_GUID_SIZE:].decode().split(_SEPARATOR))
        return cls(UUID(bytes_le=data[:_GUID_SIZE]), addresses)


def kept_peer(records: ProtocolRecords, queue: OutgoingQueue) -> RememberedPeer:
    """The queue manager that took a queue's transactional messages before a restart."""
    kept = records.get(peer_key(queue))
    return RememberedPeer() if kept is None else RememberedPeer.decode(kept)


def peer_key(queue: OutgoingQueue) -> bytes:
    """The key under which the peer of a queue is stored."""
    return _PREFIX + _QUEUE.pack(queue.queue_id)
