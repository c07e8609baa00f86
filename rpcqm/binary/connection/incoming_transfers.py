"""Incoming sequences of transactional messages, and the acknowledgements that are due for them.

A transfer is a sequence from one source queue manager to one destination format name (G55). It
keeps the way back to its source, so that the final acknowledgement of a message can be sent long
after its session has ended ([MS-MQQB] 3.1.5.8.6, 3.1.6.9, 3.1.7.17).
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator
from itertools import starmap
from uuid import UUID

from rpcqm.adm.message import Message
from rpcqm.adm.queue import IncomingTransactionalTransferInfo
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.addresses import owner_of
from rpcqm.base.errors import DecodeError
from rpcqm.base.shares import RankedShares, Shares
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.connection.transfer_acknowledgements import TransferAcknowledgements
from rpcqm.binary.sequence import INCOMING_SIZE, IncomingSequence, Stamp
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.fields import NAMES_OFFSET, QUEUE_MANAGER_ADDRESS, SOURCE_QUEUE_MANAGER
from rpcqm.codec.packet.transaction import TransactionHeader
from rpcqm.qm.arrivals import Arrivals
from rpcqm.qm.protocol_records import ProtocolRecords
from rpcqm.store.transaction import StoreTransaction

PREFIX = b"qb stream:"
_REJECTED_PREFIX = b"qb rejected:"
Changes = dict[bytes, bytes | None]
_QUEUE_ID = struct.Struct("<I")
_TIME = struct.Struct("<I")
_REJECTED = struct.Struct("<II")
_GUID_SIZE = 16
CACHED = 10_000
"""Sources of transactional messages, for each queue that they name, that are in memory.

Bound `binary.transfers` [sources]: of the address from which most come, the one that was used
longest ago is read from the store again when it is needed.
"""
KEPT = 50_000
"""The same in the store, where it is known over restarts how far they have come.

Those are forgotten that cost least (G510).

Bound `binary.kept_transfers` [sources]: those are forgotten first that were for no queue here,
then, of the address from which most have come, the one that was used longest ago.
"""
FORGOTTEN_AT_ONCE = 1_000
"""Records that one commit removes; earlier versions have kept any number."""
LONGEST_NAME = 512
"""Characters of a queue name that identify a transfer.

Bound `binary.transfer_name` [characters]: a digest stands for the rest.
"""
_LONGEST_REMEMBERED = 2_048
"""Octets of the part of a packet by which a transfer is found without decoding its name."""
_OWNER = "\x1f"
"""Stands before the owner in the place of the address; earlier versions ignore such a name."""
_SOURCE_AND_ADDRESS = slice(SOURCE_QUEUE_MANAGER.start, QUEUE_MANAGER_ADDRESS.stop)


class IncomingTransfer:
    """One incoming sequence, the connections that it comes by, and the way back."""

    def __init__(self, acknowledgements: TransferAcknowledgements, source: UUID, name: str) -> None:
        self._acknowledgements = acknowledgements
        self.source = source
        self.name = name
        written = source.bytes_le + name.encode("utf-8", "surrogatepass")
        self.key = PREFIX + written
        self.rejected_key = _REJECTED_PREFIX + written
        self.incoming = IncomingSequence()
        self.last_access_time: int | None = None
        self.address = ""
        self.queue_id = 0
        self.owner = ""
        self._owed: dict[PeerConnection, None] = {}
        self.schedule = acknowledgements.schedule(self.send_order_ack)

    def encode(self) -> bytes:
        """The octets that become durable together with a message; the address ends with a zero.

        Without an address for answers they hold the owner of the last message.
        """
        address = self.address or (_OWNER + self.owner if self.owner else "")
        place = _QUEUE_ID.pack(self.queue_id) + address.encode() + b"\0"
        return self.incoming.encode() + place + _TIME.pack(self.last_access_time or 0)

    def encode_rejected(self) -> bytes:
        """The octets of rejected messages that survive a restart ([MS-MQQB] 3.1.1.3.1).

        They have a record of their own, because the last accepted message may not be durable yet.
        """
        return _REJECTED.pack(self.incoming.reject_count, self.last_access_time or 0)

    def restore(self, data: bytes, rejected: bytes | None) -> None:
        """Restore what `encode` and `encode_rejected` have written. Raises DecodeError."""
        self.incoming = IncomingSequence.decode(data[:INCOMING_SIZE])
        self.queue_id = _QUEUE_ID.unpack_from(data, INCOMING_SIZE)[0]
        address, _, time = data[INCOMING_SIZE + _QUEUE_ID.size :].partition(b"\0")
        self.address, _, owner = address.decode().partition(_OWNER)
        self.owner = owner or (owner_of(self.address) if self.address else "")
        if time:  # records of earlier versions have no owner
            self.last_access_time = _TIME.unpack(time)[0]
        if rejected is not None:
            self.incoming.reject_count, self.last_access_time = _REJECTED.unpack(rejected)

    def show(self, info: IncomingTransactionalTransferInfo) -> None:
        """Fill in its progress for administrators ([MS-MQQB] 3.1.5.8.8)."""
        info.sequence_identifier = self.incoming.sequence.value
        info.sequence_number = self.incoming.number
        info.reject_count = self.incoming.reject_count
        info.last_access_time = self.last_access_time

    def arrived(self, connection: PeerConnection, direct: bool) -> None:
        """Note that a message has come over a connection, where its order will be acknowledged.

        There may be several connections; the last one that a message came by may be dead (G75).
        """
        self._owed[connection] = None
        self.came_by(connection, direct)
        self.schedule.message_received()

    def came_by(self, connection: PeerConnection, direct: bool) -> None:
        """Note the address of a direct message's source: answers go there."""
        from_source = connection.session.remote_qm_guid == self.source
        self.address = connection.address if direct and from_source else ""

    def settled(self, stamp: Stamp) -> None:
        """Note that the outcome of a message is durable."""
        self.incoming.settled(stamp)

    @property
    def order_queue(self) -> FormatName:
        """The queue that gets the acknowledgements of the source."""
        return self._acknowledgements.order_queue(self.source, self.address)

    def send_order_ack(self) -> None:
        """Acknowledge the durable messages, over the sessions that they came by ([MS-MQQB]
        3.1.6.9)."""
        durable = self.incoming.durable
        owed = [connection for connection in self._owed if connection.session.is_open]
        self._owed = {}
        if durable.number < self.incoming.number or durable.sequence != self.incoming.sequence:
            self._owe(owed)
        if durable.number:
            packet = self._acknowledgements.order_ack(self.order_queue, durable)
            for connection in owed:
                self._send_order_ack(packet, connection)

    def _owe(self, connections: Iterable[PeerConnection]) -> None:
        """Note that more is to be acknowledged, and start the timer."""
        self._owed.update(dict.fromkeys(connections))
        self.schedule.message_received()

    def _send_order_ack(self, packet: bytes, connection: PeerConnection) -> None:
        """Send an order acknowledgement over a connection, or by a queue.

        The source of a routed message has no session with us: its acknowledgement goes by an
        outgoing queue.
        """
        if connection.session.remote_qm_guid != self.source:
            source = connection.address or str(self.source)
            self._acknowledgements.send_by_queue(packet, self.order_queue, source)
        elif connection.session.can_send:
            connection.session.send(packet, None)
        else:
            self._owe([connection])

    def send_final_ack(
        self, change: StoreTransaction, message: Message, reason: MessageClass
    ) -> None:
        """Send the final acknowledgement of a message, within the commit that decides about it."""
        self._acknowledgements.send_final_ack(change, self.order_queue, message, reason)


def transaction_header_of(message: Message) -> TransactionHeader:
    """The TransactionHeader. Raises DecodeError if the message has none."""
    header = message.attributes.transaction_header
    if header is None:
        raise DecodeError("message is not transactional")
    return header


def _bounded(name: str) -> str:
    """A queue name of bounded length for a transfer's key: senders write hosts of any length."""
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16)
    return f"{name[:LONGEST_NAME]}…{digest.hexdigest()}"


def _last_access(transfer: IncomingTransfer) -> int:
    return transfer.last_access_time or 0


class IncomingTransfers:
    """The incoming transfers of a queue manager; the least used are read from the store again.

    Transfers of the address that has most give way first. An acknowledgement that such a transfer
    owes is sent all the same, when it is due (G428).
    """

    def __init__(
        self,
        acknowledgements: TransferAcknowledgements,
        records: ProtocolRecords,
        queue_manager: QueueManager,
        arrivals: Arrivals,
    ) -> None:
        self._acknowledgements, self._records = acknowledgements, records
        self._queue_manager, self._arrivals = queue_manager, arrivals
        self._cache: dict[bytes, IncomingTransfer] = {}
        self._shares: Shares[bytes] = Shares()
        self._kept: RankedShares[bytes] = RankedShares()
        """The transfers in the store; those that no queue here has got a message of are worth
        nothing."""
        self._keys: dict[bytes, bytes] = {}
        """The keys of transfers, by the octets of packets that name source and destination."""
        self.fed: set[int] = set()
        """Queues that have ever received from elsewhere in sequence."""
        restored = starmap(self._restore, records.records(PREFIX))
        for transfer in sorted(restored, key=_last_access):
            self._keep(transfer)

    def _restore(self, key: bytes, data: bytes) -> IncomingTransfer:
        """Show a transfer of before the restart to administrators again."""
        written = key[len(PREFIX) :]
        source = UUID(bytes_le=written[:_GUID_SIZE])
        name = written[_GUID_SIZE:].decode("utf-8", "surrogatepass")
        transfer = IncomingTransfer(self._acknowledgements, source, name)
        transfer.restore(data, self._records.get(transfer.rejected_key))
        self.fed.add(transfer.queue_id)
        self.show(transfer)
        return transfer

    def show(self, transfer: IncomingTransfer) -> None:
        """Show a transfer to administrators once a queue has got a message of it."""
        queue = self._queue_manager.queue_collection.get(transfer.queue_id)
        if queue is not None:
            arrivals = self._arrivals
            transfer.show(arrivals.transfer_info(queue, transfer.name, transfer.source))

    def of(self, message: Message) -> IncomingTransfer:
        """The transfer that a message belongs to.

        A direct name may come with the number of this machine, or without one: it is the same.
        """
        attributes = message.attributes
        names = message.packet[NAMES_OFFSET : attributes.layout.admin_queue]
        written = message.packet[_SOURCE_AND_ADDRESS] + names
        known = self._keys.get(written)
        if known is not None and (found := self._cache.get(known)) is not None:
            self._shares.touch(known)
            return found
        transfer = self._found_or_made(message)
        if len(self._keys) >= CACHED:
            self._keys.clear()
        if len(written) <= _LONGEST_REMEMBERED:
            self._keys[written] = transfer.key
        return transfer

    def _found_or_made(self, message: Message) -> IncomingTransfer:
        attributes, records = message.attributes, self._records
        source = attributes.identifier.queue_manager_guid
        name = _bounded(str(attributes.destination_queue_format_name))
        made = IncomingTransfer(self._acknowledgements, source, name)
        if (found := self._cache.get(made.key)) is not None:
            self._shares.touch(made.key)
            return found
        if (data := records.get(made.key)) is not None:
            made.restore(data, records.get(made.rejected_key))
        self._cache[made.key] = made
        self._shares.use(made.key, owner_of(message.source_address))
        while len(self._cache) > CACHED:
            del self._cache[self._shares.take_surplus()]
        return made

    # In the store

    def _keep(self, transfer: IncomingTransfer) -> None:
        """Note that a transfer is in the store, and its rank.

        A transfer without a queue here has delivered nothing: what comes again is refused.
        """
        machine = self._queue_manager
        queues = machine.queue_collection, machine.unusable_queues
        worthless = not any(transfer.queue_id in each for each in queues)
        self._kept.use(transfer.key, transfer.owner, worthless=worthless)

    def took(self, transfer: IncomingTransfer, address: str, changes: Changes) -> None:
        """Add the progress of a transfer, by a message from an address, to the `changes`.

        Other transfers are forgotten with it if there are too many (G510).
        """
        transfer.owner = owner_of(address)
        changes[transfer.key] = transfer.encode()
        self._keep(transfer)
        for _ in range(min(len(self._kept) - KEPT, FORGOTTEN_AT_ONCE)):
            self._forget(self._kept.take_surplus(), changes)

    def _forget(self, key: bytes, changes: Changes) -> None:
        """Remove a transfer from the store; it stays in memory where it is in use."""
        forgotten = self._in_memory_or_store(key)
        changes[key] = None
        if forgotten is not None:
            changes[forgotten.rejected_key] = None
            self._hide(forgotten)

    def _in_memory_or_store(self, key: bytes) -> IncomingTransfer | None:
        if (found := self._cache.get(key)) is not None:
            return found
        data = self._records.get(key)
        return None if data is None else self._restore(key, data)

    def _hide(self, transfer: IncomingTransfer) -> None:
        arrivals = self._arrivals
        arrivals.forget_transfer_info(transfer.queue_id, transfer.name, transfer.source)

    def take_back(self, changes: Changes) -> None:
        """Undo `took` after its commit has failed: nothing of it is in the store.

        The transfers themselves have been restored before.
        """
        for key in changes:
            if not key.startswith(PREFIX):
                continue
            found = self._in_memory_or_store(key)
            if found is None:
                self._kept.remove(key)
            elif not found.incoming.number:
                self._kept.remove(key)
                self._hide(found)
            else:
                self._keep(found)
                self.show(found)

    def is_kept(self, transfer: IncomingTransfer) -> bool:
        """Whether a transfer is in the store."""
        return transfer.key in self._kept

    def __iter__(self) -> Iterator[IncomingTransfer]:
        return iter(self._cache.values())

    def stop(self) -> None:
        for transfer in self:
            transfer.schedule.stop()
