"""The reasons of failed connections, for administrators ([MS-MQMQ] 2.3.12.25, G114, G197)."""

import errno
import socket
import ssl

from rpcqm.base.errors import HResult
from rpcqm.codec.types.mqvalues import ConnectionStatus

_WIN32 = 0x8007_0000
"""An HRESULT is this plus a code of Winsock."""
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
"""The numbers of these errors on Windows."""

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
    """The HRESULT of a status without further details; 0 if it is no failure."""
    return int(_ERRORS.get(status, HResult.MQ_ERROR))


def connect_failure(error: BaseException) -> tuple[ConnectionStatus, int]:
    """The status and the HRESULT for a failed attempt to connect."""
    if isinstance(error, socket.gaierror):
        return ConnectionStatus.DNS_FAILURE, error_of(ConnectionStatus.DNS_FAILURE)
    if isinstance(error, TimeoutError):
        return ConnectionStatus.SOCKET_CONNECT_FAILURE, _WIN32 | _TIMED_OUT
    if isinstance(error, ssl.SSLCertVerificationError):  # its `errno` is not the system's
        return ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE, int(HResult.MQ_ERROR)
    number = (error.errno if isinstance(error, OSError) else None) or 0
    status = _FAILURES.get(number, ConnectionStatus.SOCKET_CONNECT_FAILURE)
    known = _WINDOWS_SOCKETS.get(number)
    return status, int(HResult.MQ_ERROR) if known is None else _WIN32 | known
