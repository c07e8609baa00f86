"""The history of the connections of an outgoing queue ([MS-MQMQ] 2.3.12.25, G114)."""

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.session import BROKEN, REFUSED_BY_PEER
from rpcqm.binary.session_host import SessionState
from rpcqm.codec.types.mqvalues import ConnectionStatus
from rpcqm.qm.connection_failures import error_of
from rpcqm.qm.names import plain_address
from rpcqm.qm.outgoing import Outgoing

PROGRESS = {
    SessionState.WAITING_ECR_MSG: ConnectionStatus.IN_PROCESS,
    SessionState.WAITING_CPR_MSG: ConnectionStatus.ESTABLISH_PACKET_RECEIVED,
    SessionState.OPEN: ConnectionStatus.ESTABLISHED,
}


class ConnectionHistory:
    """Records what happens to the connections of one outgoing queue."""

    def __init__(self, outgoing: Outgoing, queue: OutgoingQueue) -> None:
        self._outgoing = outgoing
        self._queue = queue
        self._failed: PeerConnection | None = None

    def record(
        self,
        status: ConnectionStatus,
        connection: PeerConnection | None,
        place: str,
        error: int | None = None,
    ) -> None:
        """Record an event on the way to `place`, or on an open connection.

        An open connection goes on when a message cannot be encrypted; its end gets an entry as
        well.
        """
        error = error_of(status) if error is None else error
        if error and (connection is None or not connection.opened):
            self._failed = connection
        place = place or (connection.address if connection is not None else "")
        addresses = (plain_address(place),) if place else ()
        self._outgoing.record_connection(self._queue, status, error, addresses)

    def ended(self, connection: PeerConnection, in_flight: bool) -> None:
        """Record why a session that was still needed has ended, unless that is recorded already."""
        if self._failed is connection:
            return
        if connection.opened and in_flight:
            self.record(ConnectionStatus.SOCKET_SEND_FAILURE, connection, "")
        elif not connection.opened and connection.session.close_reason in (BROKEN, REFUSED_BY_PEER):
            self.record(ConnectionStatus.CONNECTION_REFUSED, connection, "")
        elif not connection.opened:
            self.record(ConnectionStatus.UNKNOWN_FAILURE, connection, "")
