"""The binary protocol of one queue manager: its connections, transfers and history.

Nothing here knows sockets: a `PeerNetwork` resolves and connects, so that tests can simulate one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from rpcqm.adm.enums import OutgoingQueueState
from rpcqm.adm.message import Message, MessagePosition
from rpcqm.adm.queue import OutgoingQueue, OutgoingTransferInfo, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion, completed, failed
from rpcqm.base.log import get_logger
from rpcqm.base.resolver import OPERATOR, Addresses, Senders
from rpcqm.binary.connection.attempts import ConnectionAttempts
from rpcqm.binary.connection.incoming_transfers import IncomingTransfers
from rpcqm.binary.connection.message_security import MessageSecurity
from rpcqm.binary.connection.outgoing_transfer import OutgoingTransfer
from rpcqm.binary.connection.peer_connection import (
    BINARY_PORT,
    NextHop,
    PeerConnection,
    PeerNetwork,
)
from rpcqm.binary.connection.receiving import Receiver
from rpcqm.binary.connection.recent_messages import RecentMessages
from rpcqm.binary.connection.remembered_peer import peer_key
from rpcqm.binary.connection.sequence_numbers import (
    LAST_SEQUENCE_KEY,
    last_sequence,
    last_sequence_record,
    sequence_key,
)
from rpcqm.binary.connection.session_reuse import SessionReuse, claims
from rpcqm.binary.connection.shared_identities import SharedIdentities
from rpcqm.binary.connection.together import SendsTogether, TakesTogether
from rpcqm.binary.own_keys import OwnKeys
from rpcqm.binary.routing import Routing
from rpcqm.binary.sequence import next_identifier
from rpcqm.binary.session import Session
from rpcqm.binary.session_host import Identities
from rpcqm.binary.settings import ROUTER_SESSION_CLEANUP, BinarySettings
from rpcqm.binary.trace import report
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.names.format_name import FormatName, PrivateQueueFormatName
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import PacketMessage, build_user_message
from rpcqm.codec.packet.types import TxSequenceID
from rpcqm.codec.types.mqvalues import FormatNameType
from rpcqm.qm.message_history import MessageIDHistory
from rpcqm.qm.outgoing_bounds import source_of
from rpcqm.qm.sessions import SessionView
from rpcqm.store.transaction import StoreTransaction

if TYPE_CHECKING:
    from rpcqm.qm.engine import QueueManagerEngine

_log = get_logger("binary")

Peers = dict[str, list[NextHop]]
"""Where to find queue managers, by host name or GUID in lower case; it comes before the DNS."""

HISTORY_PREFIX = b"qb history:"
_TIDY_AT_LEAST = 64
_LOCKED = "hardened_security lets HTTP alone carry messages"


class BinaryProtocol:
    """Sends what is in outgoing queues, and takes what others send.

    The engine must have been started. `start` looks for messages that wait; `stop` closes all.
    """

    def __init__(
        self,
        engine: "QueueManagerEngine",
        network: PeerNetwork,
        settings: BinarySettings | None = None,
        peers: Peers | None = None,
        keys: OwnKeys | None = None,
    ) -> None:
        self.store, self.clock, self.timers = engine.store, engine.clock, engine.timers
        self.queue_manager, self.names = engine.queue_manager, engine.names
        self.directory, self.protocol_records = engine.directory, engine.protocol_records
        self.dispatcher, self.outgoing = engine.dispatcher, engine.outgoing
        self.positions, self.sending = engine.positions, engine.transfer
        self.composer, self.arrivals = engine.composer, engine.arrivals
        self.protection, self.acknowledgements = engine.protection, engine.acknowledgements
        self.sender_rights = engine.sender_rights
        self.message_trace = engine.message_trace
        self.acknowledgement_queues = engine.acknowledgement_queues
        self._online_hooks, self._stopped_hooks = engine.online_hooks, engine.stopped_hooks
        self._hardened_hooks = engine.hardened_hooks
        self.network = network
        self.settings = settings or session_settings(engine.queue_manager)
        self.peers = peers or {}
        self.own_place: NextHop | None = None
        """Where sessions with this queue manager itself are accepted; None if nowhere."""
        self.ping: Callable[[str], Completion[bool]] | None = None
        self.stopping = False
        self.connections: dict[PeerConnection, int] = {}
        """Since when they are there, in milliseconds since 1970."""
        self.attempts = ConnectionAttempts(
            engine.clock, engine.timers, lambda: self.settings.session_retry_connect
        )
        self.transfers: dict[OutgoingQueue, OutgoingTransfer] = {}
        self._by_sequence: dict[int, OutgoingTransfer] = {}
        self._tidy_at = _TIDY_AT_LEAST
        self.routing = self._new_routing()
        self._last_sequence = last_sequence(self.protocol_records.get(LAST_SEQUENCE_KEY))
        self.history = MessageIDHistory(
            engine.clock,
            engine.timers,
            HISTORY_PREFIX,
            self.settings.message_id_history_size,
            self.settings.message_id_history_cleanup,
        )
        records = engine.protocol_records.records
        self.history.restore(records(HISTORY_PREFIX), records(self.history.prefix_of_many))
        self.incoming_transfers = IncomingTransfers(self)
        self.borrowing = SessionReuse(self, engine.acknowledgement_queues)
        self.security = MessageSecurity(
            engine.clock, engine.timers, engine.queue_manager, engine.directory, keys or OwnKeys()
        )
        self.conflicts, self.recent = engine.identity_conflicts, RecentMessages()
        self._identities = SharedIdentities(self, self.conflicts)
        self.receiver = Receiver(self)
        self.take_together: TakesTogether | None = None
        self.send_together: SendsTogether | None = None
        engine.acknowledgement_queues.is_known = self._is_peer
        engine.positions.deleted_hooks.append(self._message_position_deleted)
        engine.positions.left_together[self._message_position_deleted] = self._left_together
        engine.session_sources.append(self._sessions)

    def start(self) -> None:
        """[MS-MQQB] 3.1.4.1: connect for every queue that has messages."""
        self.positions.available_hooks.append(self._message_position_available)
        self.outgoing.state_hooks.append(self._state_changed)
        self.outgoing.resend_hooks.append(self._resend)
        self.outgoing.transfer_hooks.append(self._show_transfer)
        self.dispatcher.send_by_binary = self.send_user_message_wrapper
        self._online_hooks.append(self._online_changed)
        self._hardened_hooks.append(self._hardened_changed)
        self.protection.verify = self.security.verified
        self.protection.sign = self.security.sign_sent
        self.protection.sign_octets = self.security.sign_octets
        self.protection.certificate_of = self.security.certificate_of
        self.protection.own_certificate = self.security.own_certificate
        self.arrivals.decrypt = self.security.decrypted
        self._stopped_hooks.append(self.stop)
        self.directory.online_hooks.append(self.directory_changed)
        if self.routing is not None:
            self.routing.start()
        for queue in self.outgoing.list():
            if self._carries(queue) and (queue.message_count or self._has_sequence(queue)):
                transfer = self.transfer(queue)
                transfer.finish_acknowledgement()
                transfer.wake()

    def _new_routing(self) -> Routing | None:
        """The routing of the directory; None without one."""
        if not self.directory.is_there:
            return None
        return Routing(self.directory, self.timers, self.queue_manager.identifier)

    def stop(self) -> None:
        """[MS-MQQB] 3.1.4.2."""
        if self.stopping:
            return
        self.stopping = True
        for transfer in list(self.transfers.values()):
            transfer.stop()
        self._close_all("the queue manager stops")
        self.incoming_transfers.stop()
        self.history.stop()
        self.security.stop()
        if self.routing is not None:
            self.routing.stop()

    def _close_all(self, reason: str) -> None:
        """End every session, whoever has opened it, and every attempt to open one."""
        for transfer in list(self.transfers.values()):
            transfer.disconnect(reason)
        for connection in list(self.connections):
            connection.session.close(reason)

    def directory_changed(self) -> None:
        """Route as the directory says now ([MS-MQBR] 3.1.6.1), and try what did not work."""
        if self.stopping:
            return
        if self.routing is None:
            self.routing = self._new_routing()
            if self.routing is not None:
                self.routing.start()
        else:
            self.routing.initialize_routing_table()
        with self.gathering():
            for transfer in list(self.transfers.values()):
                transfer.try_now()

    def gathering(self) -> AbstractContextManager[None]:
        """What could be sent inside is sent at the end, the highest priority first."""
        return self.dispatcher.gathering

    # Connections

    def _sessions(self) -> Iterator[SessionView]:
        """What administrators see of the sessions."""
        for connection, since in self.connections.items():
            session = connection.session
            peer = session.remote_qm_guid
            users = [each.queue for each in connection.users if isinstance(each, OutgoingTransfer)]
            yield SessionView(
                "binary",
                connection.address,
                "" if peer == NULL_GUID else str(peer),
                connection.initiator,
                session.state.value,
                tuple(queue.destination_format_name for queue in users),
                session.message_sent_count,
                session.message_received_count,
                session.un_acked_message_count,
                sum(queue.message_count for queue in users),
                since,
            )

    def accept(self) -> PeerConnection:
        """A connection that a peer has made ([MS-MQQB] 3.1.5.10); closed where none may be."""
        connection = PeerConnection(self, initiator=False, direct=False)
        if not self.queue_manager.connection_active:
            connection.session.close("the queue manager is offline")
        elif self.queue_manager.hardened_security:
            connection.session.close(_LOCKED)
        return connection

    def new_session(self, connection: PeerConnection, remote: UUID, direct: bool) -> Session:
        self.connections[connection] = self.clock.now()
        identities = Identities(self.queue_manager.identifier, remote)
        session = Session(
            connection, identities, self.clock, self.timers, self.settings, direct=direct
        )
        if self.take_together is not None:
            session.take_together = self.take_together(connection)
        return session

    def connection_opened(self, connection: PeerConnection) -> None:
        """Let transfers that wait for that queue manager use the connection."""
        self._identities.opened(connection)
        if connection.initiator:
            return
        with self.gathering():
            for transfer in list(self.transfers.values()):
                if transfer.connection is None and self._leads_to(transfer.name, connection):
                    transfer.connection_available()

    def connection_ended(self, connection: PeerConnection, reason: str) -> None:
        """Log the end of a connection; refused peers and repeated failures only for debugging."""
        self.connections.pop(connection, None)
        known = connection.repeats if connection.initiator else not connection.address
        log = _log.info if connection.opened or not known else _log.debug
        log("session closed", peer=connection.address, reason=reason)

    def _leads_to(self, name: FormatName, connection: PeerConnection) -> bool:
        value = name.value
        return isinstance(value, PrivateQueueFormatName) and claims(
            connection, value.source_queue_manager
        )

    def message_received(
        self,
        connection: PeerConnection,
        kind: PacketKind,
        message: PacketMessage,
        recoverable: int | None,
    ) -> None:
        self.receiver.message_received(connection, kind, message, recoverable)

    # Outgoing transfers

    def _carries(self, queue: Queue) -> bool:
        """Whether the binary protocol is the one that sends from a queue."""
        if not isinstance(queue, OutgoingQueue) or queue.multicast:
            return False
        return not FormatName.parse(queue.destination_format_name).is_http

    def is_direct(self, name: FormatName) -> bool:
        return name.type is FormatNameType.QUEUE_FORMAT_TYPE_DIRECT

    def transfer(self, queue: OutgoingQueue) -> OutgoingTransfer:
        """The transfer of a queue, made when it is first needed."""
        transfer = self.transfers.get(queue)
        if transfer is None:
            if len(self.transfers) >= self._tidy_at:
                self._tidy()
            transfer = self.transfers[queue] = OutgoingTransfer(self, queue)
        return transfer

    def _tidy(self) -> None:
        """Forget the transfers of queues that are deleted, and what is stored of them."""
        gone = [queue for queue in self.transfers if queue.deleted]
        for queue in gone:
            transfer = self.transfers.pop(queue)
            if transfer.sequence is not None:
                self.forget_sequence(transfer.sequence.identifier)
        keys = [key(queue) for queue in gone for key in (sequence_key, peer_key)]
        self.protocol_records.write(dict.fromkeys(keys))
        self._tidy_at = max(_TIDY_AT_LEAST, 2 * len(self.transfers))

    def _message_position_available(self, queue: OutgoingQueue, key: int) -> None:
        """[MS-MQQB] 3.1.7.12."""
        if not self.stopping and self._carries(queue):
            self.transfer(queue).wake()

    def send_user_message_wrapper(self, data: object, position: MessagePosition) -> None:
        """Let a transfer send; the dispatcher is told when its turn is over.

        Source: [MS-MQQB] 3.1.7.16.
        """
        assert isinstance(data, OutgoingTransfer)
        try:
            is_over = data.send()
        finally:
            self.dispatcher.remove_message_from_dispatch_collection(position)
        if not is_over:
            data.pump()

    def _message_position_deleted(
        self, change: StoreTransaction, queue: Queue, key: int, reason: MessageClass
    ) -> None:
        self.receiver.removed(change, queue, key, reason)
        if not isinstance(queue, OutgoingQueue):
            return
        if queue in self.transfers or self._has_sequence(queue):
            self.transfer(queue).removed(change, key)

    def _left_together(
        self, change: StoreTransaction, queue: OutgoingQueue, keys: Sequence[int]
    ) -> None:
        """`_message_position_deleted` of each."""
        self.receiver.left_together(queue, keys)
        if queue in self.transfers or self._has_sequence(queue):
            self.transfer(queue).left_together(change, keys)

    def _state_changed(self, queue: OutgoingQueue) -> None:
        """[MS-MQQB] 3.1.7.13, 3.1.7.14."""
        transfer = self.transfers.get(queue)
        if queue.state is OutgoingQueueState.ON_HOLD:
            self.dispatcher.remove_messages_from_dispatch_collection_by_queue(queue)
            if transfer is not None:
                transfer.hold()
        elif queue.state is OutgoingQueueState.INACTIVE and self._carries(queue):
            self.transfer(queue).resume()

    def _resend(self, queue: OutgoingQueue) -> None:
        transfer = self.transfers.get(queue)
        if transfer is not None:
            transfer.resend_now()

    def _show_transfer(self, info: OutgoingTransferInfo) -> None:
        transfer = self.transfers.get(info.outgoing_queue_reference)
        if transfer is not None and transfer.sequence is not None:
            transfer.sequence.show(info)

    def _online_changed(self, active: bool) -> None:
        if not active:
            self._close_all("the queue manager goes offline")
            return
        with self.gathering():
            for queue, transfer in list(self.transfers.items()):
                if queue.message_count:
                    transfer.try_now()

    def _hardened_changed(self, hardened: bool) -> None:
        """Queues have been locked, or unlocked, while this runs (G533)."""
        if hardened:
            self._close_all(_LOCKED)
            return
        with self.gathering():
            for queue in self.outgoing.list():
                if self._carries(queue) and queue.message_count:
                    self.transfer(queue).try_now()

    # Where to connect

    def next_hops(self, name: FormatName, senders: Senders) -> Completion[list[NextHop]]:
        """Resolve Host Address ([MS-MQQB] 3.1.5.2.1), which `senders` have named or the operator.

        Fails with an OSError.
        """
        if isinstance(name.value, str):
            host = name.direct_name.host
            known = self.peers.get(host.lower())
            if known is not None:
                return self.resolved_all(known)
            if self.own_place is not None and self.names.is_local(host):
                return completed([self.own_place])  # it waited before the name was ours (G501)
            return self.resolved_all([NextHop(host, BINARY_PORT, host)], senders)
        destination = self.directory.destination_queue_manager(name)
        if destination is None:
            return failed(OSError("the directory does not know the queue manager"))
        return self.resolved_all(self._hops_to(destination))

    def _hops_to(self, destination: UUID) -> list[NextHop]:
        """Get Next Hops ([MS-MQQB] 3.1.7.5); without a directory the peer itself, if known."""
        own = self.queue_manager.identifier
        machines = self.routing.get_next_hops(own, destination) if self.routing else [destination]
        return [hop for machine in machines for hop in self.places_of(machine)]

    def places_of(self, machine: UUID) -> list[NextHop]:
        """Where a queue manager may be found: configured, in the directory, or by its name."""
        known = self.peers.get(str(machine))
        if known is not None:
            return known
        found = self.directory.queue_manager(machine)
        if found is None:
            return []
        name = found.qualified_computer_name or found.computer_name
        by_name = self.peers.get(found.computer_name.lower())
        if by_name is not None:
            return [NextHop(hop.address, hop.port, name, machine) for hop in by_name]
        return [NextHop(place, BINARY_PORT, name, machine) for place in found.addresses or [name]]

    def resolved_all(
        self, hops: list[NextHop], senders: Senders = OPERATOR
    ) -> Completion[list[NextHop]]:
        """Every address of every hop, in their order; those without any are left out."""
        outcome: Completion[list[NextHop]] = Completion()
        found: list[list[NextHop]] = [[] for _ in hops]
        waiting = len(hops)

        def resolved(index: int, hop: NextHop, answer: Completion[Addresses]) -> None:
            nonlocal waiting
            waiting -= 1
            if answer.error is None:
                found[index] = [
                    NextHop(address, hop.port, hop.host_name or hop.address, hop.qm_guid)
                    for address in answer.result()
                ]
            if not waiting:
                outcome.succeed([hop for group in found for hop in group])

        for index, hop in enumerate(hops):
            answer = self.network.resolve(hop.address, senders)
            answer.add_done_callback(partial(resolved, index, hop))
        return outcome if hops else completed([])

    def _is_peer(self, name: FormatName) -> bool:
        """Whether the operator has said where the queue manager is."""
        if isinstance(name.value, str):
            return name.direct_name.host.lower() in self.peers
        owner = self.directory.destination_queue_manager(name)
        return owner is not None and str(owner) in self.peers

    # Sequences

    def next_sequence(self) -> TxSequenceID:
        """The first identifier of a queue; durable with the first stamp of it."""
        now = self.clock.now() // 1000
        self._last_sequence = next_identifier(self._last_sequence, now)
        record = last_sequence_record(self._last_sequence)
        self.protocol_records.write({LAST_SEQUENCE_KEY: record})
        return self._last_sequence

    def sequence_after(self, following: TxSequenceID) -> TxSequenceID:
        """That one, unless a store of earlier times has given it to another queue."""
        return self.next_sequence() if self.transfer_of(following) is not None else following

    def _has_sequence(self, queue: OutgoingQueue) -> bool:
        return self.protocol_records.get(sequence_key(queue)) is not None

    def remember_sequence(self, identifier: TxSequenceID, transfer: OutgoingTransfer) -> None:
        self._by_sequence[identifier.value] = transfer

    def forget_sequence(self, identifier: TxSequenceID) -> None:
        self._by_sequence.pop(identifier.value, None)

    def transfer_of(self, identifier: TxSequenceID) -> OutgoingTransfer | None:
        """The transfer whose messages have numbers in a sequence."""
        return self._by_sequence.get(identifier.value)

    def outgoing_packet(self, name: FormatName, message: Message) -> bytes:
        """The bytes of a message as they are sent. Raises CouldNotEncryptError."""
        destination = None
        if not isinstance(name.value, str):
            destination = self.directory.destination_queue_manager(name)
        return self.security.protect(message, destination)

    def trace(self, message: Message, next_hop: str = "") -> None:
        """Report a traced message; nobody is told without a queue, or when it has no room."""
        now = self.clock.now() // 1000
        made = report(message.attributes, self.composer.new_identifier(), now, next_hop)
        if made is None or made.destination_queue_format_name is None:
            return
        destination = made.destination_queue_format_name
        owner = self.directory.destination_queue_manager(destination)
        if owner is None:
            return
        made.destination_queue_manager_identifier = owner
        with self.store.transaction("trace") as change:
            packet = build_user_message(made)
            sender, origin = self.sender_rights.sender_of(message), source_of(message)
            self.acknowledgements.send_if_possible(
                change, Message(packet), destination, sender, origin=origin
            )


def session_settings(queue_manager: QueueManager, retry: int | None = None) -> BinarySettings:
    """The times of Windows, which differ on a routing server; `retry` is milliseconds."""
    settings = BinarySettings()
    if queue_manager.routing_server:
        settings = replace(settings, session_cleanup=ROUTER_SESSION_CLEANUP)
    return settings if retry is None else replace(settings, session_retry_connect=retry)
