"""The history of the connections of an outgoing queue ([MS-MQMQ] 2.3.12.25, G114)."""

import errno

from rpcqm.adm.queue import OutgoingQueue
from rpcqm.base.errors import HResult
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.session import BROKEN, REFUSED_BY_PEER, SessionState
from rpcqm.codec.types.mqvalues import ConnectionStatus
from rpcqm.qm.names import plain_address
from rpcqm.qm.outgoing import Outgoing

PROGRESS = {
    SessionState.WAITING_ECR_MSG: ConnectionStatus.IN_PROCESS,
    SessionState.WAITING_CPR_MSG: ConnectionStatus.ESTABLISH_PACKET_RECEIVED,
    SessionState.OPEN: ConnectionStatus.ESTABLISHED,
}

_WIN32 = 0x8007_0000
_TIMED_OUT = 10060
_RESET = 10054
_HOST_NOT_FOUND = 11001
_WINDOWS_SOCKETS = {
    errno.EACCES: 10013,
    errno.EMFILE: 10024,
    errno.ENFILE: 10024,
    errno.EPROTONOSUPPORT: 10043,
    errno.EAFNOSUPPORT: 10047,
    errno.EADDRINUSE: 10048,
    errno.EADDRNOTAVAIL: 10049,
    errno.ENETUNREACH: 10051,
    errno.ECONNRESET: _RESET,
    errno.ENOBUFS: 10055,
    errno.ENOMEM: 10055,
    errno.ETIMEDOUT: _TIMED_OUT,
    errno.ECONNREFUSED: 10061,
    errno.EHOSTUNREACH: 10065,
}
"""The numbers by which administrators of Windows know these errors."""

_FAILURES = {
    errno.EMFILE: ConnectionStatus.SOCKET_CREATE_FAILURE,
    errno.ENFILE: ConnectionStatus.SOCKET_CREATE_FAILURE,
    errno.EPROTONOSUPPORT: ConnectionStatus.TCP_NOT_ENABLED,
    errno.EAFNOSUPPORT: ConnectionStatus.TCP_NOT_ENABLED,
    errno.EADDRINUSE: ConnectionStatus.SOCKET_BIND_FAILURE,
    errno.EADDRNOTAVAIL: ConnectionStatus.SOCKET_BIND_FAILURE,
    errno.ENOBUFS: ConnectionStatus.LOW_RESOURCE,
    errno.ENOMEM: ConnectionStatus.LOW_RESOURCE,
}

_ERRORS: dict[ConnectionStatus, int] = {
    ConnectionStatus.IN_PROCESS: 0,
    ConnectionStatus.ESTABLISH_PACKET_RECEIVED: 0,
    ConnectionStatus.ESTABLISHED: 0,
    ConnectionStatus.DNS_FAILURE: _WIN32 | _HOST_NOT_FOUND,
    ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE: HResult.MQ_ERROR_NO_DS,
    ConnectionStatus.PING_FAILURE: HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE,
    ConnectionStatus.CONNECTION_REFUSED: HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE,
    ConnectionStatus.SOCKET_SEND_FAILURE: _WIN32 | _RESET,
}


def error_of(status: ConnectionStatus) -> int:
    """The HRESULT that goes with a status when nothing more is known; 0 if it is no failure."""
    return int(_ERRORS.get(status, HResult.MQ_ERROR))


def connect_failure(error: BaseException) -> tuple[ConnectionStatus, int]:
    """The status and the HRESULT that tell why a connection could not be made."""
    if isinstance(error, TimeoutError):
        return ConnectionStatus.SOCKET_CONNECT_FAILURE, _WIN32 | _TIMED_OUT
    number = (error.errno if isinstance(error, OSError) else None) or 0
    status = _FAILURES.get(number, ConnectionStatus.SOCKET_CONNECT_FAILURE)
    known = _WINDOWS_SOCKETS.get(number)
    return status, int(HResult.MQ_ERROR) if known is None else _WIN32 | known


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
        """Something has happened on the way to `place`, or over an open connection."""
        error = error_of(status) if error is None else error
        if error:
            self._failed = connection
        place = place or (connection.address if connection is not None else "")
        addresses = (plain_address(place),) if place else ()
        self._outgoing.record_connection(self._queue, status, error, addresses)

    def ended(self, connection: PeerConnection, in_flight: bool) -> None:
        """Record why a session that was still wanted has ended, unless that is recorded already."""
        if self._failed is connection:
            return
        if connection.opened and in_flight:
            self.record(ConnectionStatus.SOCKET_SEND_FAILURE, connection, "")
        elif not connection.opened and connection.session.close_reason in (BROKEN, REFUSED_BY_PEER):
            self.record(ConnectionStatus.CONNECTION_REFUSED, connection, "")
        elif not connection.opened:
            self.record(ConnectionStatus.UNKNOWN_FAILURE, connection, "")
