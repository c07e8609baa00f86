"""The binary protocol of one queue manager: its connections, transfers and history.

Nothing here knows sockets: a `PeerNetwork` resolves and connects, so that tests can simulate one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.log import get_logger
from rpcqm.base.open_connections import ConnectionView
from rpcqm.binary.connection.acknowledgement_authors import AcknowledgementAuthors
from rpcqm.binary.connection.arriving_acknowledgements import ArrivingAcknowledgements
from rpcqm.binary.connection.attempts import ConnectionAttempts
from rpcqm.binary.connection.departures import Departures
from rpcqm.binary.connection.incoming_transfers import IncomingTransfers
from rpcqm.binary.connection.message_security import MessageSecurity
from rpcqm.binary.connection.outgoing_route import Connecting, OutgoingRoute
from rpcqm.binary.connection.outgoing_sequences import OutgoingSequences
from rpcqm.binary.connection.outgoing_transfer import OutgoingTransfer, Sending
from rpcqm.binary.connection.outgoing_transfers import OutgoingTransfers
from rpcqm.binary.connection.peer_connection import Connections, PeerConnection, PeerNetwork
from rpcqm.binary.connection.places import Peers, Places
from rpcqm.binary.connection.receiving import Receiver
from rpcqm.binary.connection.recent_messages import ComparedMessages
from rpcqm.binary.connection.session_reuse import SessionReuse
from rpcqm.binary.connection.shared_identities import SharedIdentities
from rpcqm.binary.connection.together import TakesTogether
from rpcqm.binary.connection.trace_reports import TraceReports
from rpcqm.binary.connection.transfer_acknowledgements import TransferAcknowledgements
from rpcqm.binary.own_keys import OwnKeys
from rpcqm.binary.session import Session
from rpcqm.binary.session_host import Identities
from rpcqm.binary.settings import ROUTER_SESSION_CLEANUP, BinarySettings
from rpcqm.codec.layout import NULL_GUID
from rpcqm.codec.packet.acknowledgement import PacketKind
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.packet.message import PacketMessage
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.forwarded import Forwarded
from rpcqm.qm.message_history import MessageIDHistory
from rpcqm.qm.sessions import SessionView
from rpcqm.store.transaction import StoreTransaction

_log = get_logger("binary")

HISTORY_PREFIX = b"qb history:"
_LOCKED = "hardened_security lets HTTP alone carry messages"


class BinaryProtocol:
    """Sends the messages of outgoing queues, and takes messages of others.

    The engine must have been started. `start` looks for waiting messages; `stop` closes all
    sessions.
    """

    def __init__(
        self,
        engine: QueueManagerEngine,
        network: PeerNetwork,
        settings: BinarySettings | None = None,
        peers: Peers | None = None,
        keys: OwnKeys | None = None,
    ) -> None:
        self._engine = engine
        self._clock, self._timers = engine.clock, engine.timers
        self._queue_manager = engine.queue_manager
        self.gathering = engine.dispatcher.gathering
        """Sends within it are collected until its end; then the highest priority goes first."""
        self.settings = settings or session_settings(engine.queue_manager)
        self.stopping = False
        self.connections: Connections = {}
        self.places = Places(
            network,
            engine.timers,
            engine.queue_manager,
            engine.names,
            engine.directory,
            peers or {},
        )
        self.security = MessageSecurity(
            engine.clock,
            engine.timers,
            engine.queue_manager,
            engine.directory,
            keys or OwnKeys(),
            lambda sid: engine.sender_rights.signer_of(sid),
        )
        self._reports = TraceReports(
            engine.store,
            engine.clock,
            engine.directory,
            engine.composer,
            engine.sender_rights,
            engine.acknowledgements,
        )
        self._identities = SharedIdentities(
            engine.clock, engine.queue_manager, self.connections, engine.identity_conflicts
        )
        self._build_sending(engine, network)
        self._build_receiving(engine)
        engine.acknowledgement_queues.is_known = self.places.is_peer
        engine.positions.deleted_hooks.append(self._message_position_deleted)
        engine.positions.left_together[self._message_position_deleted] = self._left_together
        engine.session_sources.append(self._sessions)
        engine.connection_sources.append(self)

    def _build_sending(self, engine: QueueManagerEngine, network: PeerNetwork) -> None:
        """Build the parts that send messages of outgoing queues."""
        attempts = ConnectionAttempts(
            engine.clock, engine.timers, lambda: self.settings.session_retry_connect
        )
        self.connecting = Connecting(
            self,
            network,
            self.places,
            attempts,
            SessionReuse(self.connections, self.places, engine.acknowledgement_queues),
            engine.queue_manager,
            engine.outgoing,
            engine.timers,
            lambda: self.settings,
        )
        self._sequences: OutgoingSequences[OutgoingTransfer] = OutgoingSequences(
            engine.clock, engine.protocol_records
        )
        self.sending = Sending(
            engine.clock,
            engine.timers,
            engine.queue_manager,
            engine.dispatcher,
            engine.transfer,
            engine.protocol_records,
            engine.message_trace,
            self.security,
            self._reports,
            self._sequences,
            lambda: self.settings,
        )
        self.transfers = OutgoingTransfers(self.sending, self.connecting, engine.outgoing)

    def _build_receiving(self, engine: QueueManagerEngine) -> None:
        """Build the parts that take arriving messages."""
        records = engine.protocol_records
        self.history = MessageIDHistory(
            engine.clock,
            engine.timers,
            HISTORY_PREFIX,
            self.settings.message_id_history_size,
            self.settings.message_id_history_cleanup,
        )
        self.history.restore(
            records.records(HISTORY_PREFIX), records.records(self.history.prefix_of_many)
        )
        self.recent = ComparedMessages(engine.identity_conflicts)
        self.take_together: TakesTogether | None = None
        """Gives each new session the callable that takes several of its packets in one step."""
        answers = TransferAcknowledgements(
            engine.store,
            engine.clock,
            engine.timers,
            lambda: self.settings,
            engine.names,
            engine.composer,
            engine.acknowledgements,
        )
        self.incoming_transfers = IncomingTransfers(
            answers, records, engine.queue_manager, engine.arrivals
        )
        acknowledged = ArrivingAcknowledgements(
            engine.clock,
            records,
            engine.transfer,
            self.transfers,
            self._sequences,
            AcknowledgementAuthors(engine.directory, self.places),
        )
        forwarded = Forwarded()
        self._departures = Departures(
            engine.queue_manager, engine.positions, self.incoming_transfers, forwarded
        )
        self.receiver = Receiver(
            engine.store,
            engine.clock,
            engine.queue_manager,
            records,
            engine.arrivals,
            engine.protection,
            self.security,
            engine.message_trace,
            self.history,
            self.recent,
            self.incoming_transfers,
            acknowledged,
            self._reports,
            forwarded,
        )

    def start(self) -> None:
        """[MS-MQQB] 3.1.4.1: connect for every queue that has messages."""
        engine = self._engine
        engine.positions.available_hooks.append(self.transfers.message_position_available)
        engine.online_hooks.append(self._online_changed)
        engine.hardened_hooks.append(self._hardened_changed)
        engine.maintenance_hooks.append(self._maintenance_changed)
        engine.protection.verify = self.security.verified
        engine.protection.sign = self.security.sign_sent
        engine.protection.sign_octets = self.security.sign_octets
        engine.protection.certificate_of = self.security.certificate_of
        engine.protection.own_certificate = self.security.own_certificate
        engine.arrivals.decrypt = self.security.decrypted
        engine.stopped_hooks.append(self.stop)
        engine.directory.online_hooks.append(self.directory_changed)
        self.places.start()
        self.transfers.start()

    def stop(self) -> None:
        """[MS-MQQB] 3.1.4.2."""
        if self.stopping:
            return
        self.stopping = True
        self.transfers.stop()
        self._close_all("the queue manager stops")
        self.incoming_transfers.stop()
        self.history.stop()
        self.security.stop()
        self.places.stop()

    def _close_all(self, reason: str) -> None:
        """End every session, whichever side has opened it, and every attempt to open one."""
        self.transfers.disconnect(reason)
        for connection in list(self.connections):
            connection.session.close(reason)

    def directory_changed(self) -> None:
        """Route by the changed directory, and try failed routes again."""
        if not self.stopping:
            self.places.directory_changed()
            self.transfers.places_changed()

    # Connections

    def _sessions(self) -> Iterator[SessionView]:
        """The sessions, for administrators."""
        for connection, since in self.connections.items():
            session = connection.session
            peer = session.remote_qm_guid
            queues = [each.queue for each in connection.users if isinstance(each, OutgoingRoute)]
            yield SessionView(
                "binary",
                connection.address,
                "" if peer == NULL_GUID else str(peer),
                connection.initiator,
                session.state.value,
                tuple(queue.destination_format_name for queue in queues),
                session.message_sent_count,
                session.message_received_count,
                session.un_acked_message_count,
                sum(queue.message_count for queue in queues),
                since,
            )

    def open_connections(self) -> Iterator[ConnectionView]:
        """The connections of sessions, for operators."""
        for connection, since in self.connections.items():
            peer = connection.session.remote_qm_guid
            names = () if peer == NULL_GUID else (str(peer),)
            yield ConnectionView(connection.number, "binary", connection.address, names, since, 0)

    def end_connection(self, number: int) -> bool:
        """End a session and its connection; routes that need it open another one later."""
        ended = [each for each in self.connections if each.number == number]
        for connection in ended:
            connection.session.close("an operator has ended it")
        return bool(ended)

    def accept(self) -> PeerConnection:
        """A new connection that a peer has made ([MS-MQQB] 3.1.5.10); closed if none is allowed."""
        connection = PeerConnection(self, initiator=False, direct=False)
        if not self._queue_manager.connection_active:
            connection.session.close("the queue manager is offline")
        elif self._queue_manager.hardened_security:
            connection.session.close(_LOCKED)
        return connection

    def new_session(self, connection: PeerConnection, remote: UUID, direct: bool) -> Session:
        self.connections[connection] = self._clock.now()
        identities = Identities(self._queue_manager.identifier, remote)
        session = Session(
            connection, identities, self._clock, self._timers, self.settings, direct=direct
        )
        if self.take_together is not None:
            session.take_together = self.take_together(connection)
        return session

    def connection_opened(self, connection: PeerConnection) -> None:
        """Let transfers that wait for that queue manager use the connection."""
        self._identities.opened(connection)
        if not connection.initiator:
            self.transfers.connection_opened(connection)

    def connection_ended(self, connection: PeerConnection, reason: str) -> None:
        """Log the end of a connection; refused peers and repeated failures only for debugging."""
        self.connections.pop(connection, None)
        known = connection.repeats if connection.initiator else not connection.address
        log = _log.info if connection.opened or not known else _log.debug
        log("session closed", peer=connection.address, reason=reason)

    def message_received(
        self,
        connection: PeerConnection,
        kind: PacketKind,
        message: PacketMessage,
        recoverable: int | None,
    ) -> None:
        self.receiver.message_received(connection, kind, message, recoverable)

    # Events of messages and of the queue manager

    def _message_position_deleted(
        self, change: StoreTransaction, queue: Queue, key: int, reason: MessageClass
    ) -> None:
        self._departures.removed(change, queue, key, reason)
        if isinstance(queue, OutgoingQueue):
            self.transfers.removed(change, queue, key)

    def _left_together(
        self, change: StoreTransaction, queue: OutgoingQueue, keys: Sequence[int]
    ) -> None:
        """Handle `_message_position_deleted` for each message."""
        self._departures.left_together(queue, keys)
        self.transfers.left_together(change, queue, keys)

    def _online_changed(self, active: bool) -> None:
        if active:
            self.transfers.try_all()
        else:
            self._close_all("the queue manager goes offline")

    def _hardened_changed(self, hardened: bool) -> None:
        """Lock or unlock queues after hardened security was switched (G533)."""
        if hardened:
            self._close_all(_LOCKED)
        else:
            self.transfers.try_all()

    def _maintenance_changed(self, begins: bool) -> None:
        """Reset sessions at the end of maintenance: unacknowledged messages come again, in order
        (G632)."""
        if begins:
            return
        for connection in list(self.connections):
            if connection.session.withholds:
                connection.session.close("messages are taken again")


def session_settings(queue_manager: QueueManager, retry: int | None = None) -> BinarySettings:
    """The times of Windows, which differ on a routing server; `retry` is milliseconds."""
    settings = BinarySettings()
    if queue_manager.routing_server:
        settings = replace(settings, session_cleanup=ROUTER_SESSION_CLEANUP)
    return settings if retry is None else replace(settings, session_retry_connect=retry)
