"""`rpcqm serve --capture`: what is served as a capture, unsealed where it is served.

For tests and bug reports only: whoever reads the file reads every message in it. Connections to
the local socket are written as if they had come over TCP, from and to addresses that stand for
them. The hashes of passwords that administrators set are blanked.
"""

import asyncio
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from rpcqm.base.errors import DecodeError
from rpcqm.base.files import replace_private
from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.capture.conversation.pdu_stream import CapturedPdu, PduStream
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.writing import LOCAL_CLIENT, LOCAL_SOCKET, CaptureWriter, WrittenConnection
from rpcqm.codec.interface import load
from rpcqm.rpc.connection import Connection
from rpcqm.rpc.constants import AuthenticationLevel, PduType
from rpcqm.rpc.negotiation import Endpoint
from rpcqm.rpc.pdu import (
    BIG_REQUEST_BODY,
    HEADER_LENGTH,
    REQUEST_BODY,
    TRAILER_LENGTH,
    AlterContext,
    Bind,
    unpack,
)
from rpcqm.rpc.security.context import (
    Handshake,
    MessageProtection,
    SecurityProvider,
    SecurityProviders,
)
from rpcqm.rpc.security.logon import LogonClaim
from rpcqm.rpc.server import RpcServer

_log = get_logger("service")

_SEALED = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY
_FRAGMENT_LENGTH = slice(8, 12)
_STUB = HEADER_LENGTH + REQUEST_BODY.size
_SETTING_PASSWORDS = frozenset({0, 1})
"""R_AddAccount and R_SetAccountPassword of rpcqm_admin."""
_FIRST_PORT, _PORTS = 1024, 64_000


class _Writer(CaptureWriter):
    """Serving goes before recording: from the first write that fails on nothing is recorded."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self._failed = False

    def packet(self, time: int, octets: bytes) -> None:
        if self._failed:
            return
        try:
            super().packet(time, octets)
        except OSError as error:
            self._failed = True
            _log.error("nothing more is recorded", reason=error.strerror)


class Recorder:
    """Writes connections to a file as they go on."""

    def __init__(self, path: Path) -> None:
        # Written at once, so that a process that dies leaves what it has served.
        self._file = replace_private(path)
        self.writer = _Writer(self._file)
        self.current: RecordedConnection | None = None
        self._local = -1

    def close(self) -> None:
        self._file.close()

    def providers(self, providers: SecurityProviders) -> SecurityProviders:
        """The same providers, whose messages are also recorded in clear."""
        return {number: _Provider(each, self) for number, each in providers.items()}

    def connection(self, server: RpcServer, endpoint: Endpoint) -> Connection:
        """A connection that is recorded."""
        return RecordedConnection(server, endpoint, self)

    def written(self, transport: asyncio.BaseTransport, accepted: bool = True) -> WrittenConnection:
        """Where to write what goes over a transport."""
        info = transport.get_extra_info
        if info("socket").family == socket.AF_UNIX:
            self._local = (self._local + 1) % _PORTS
            ends = (LOCAL_CLIENT, _FIRST_PORT + self._local), LOCAL_SOCKET
        else:
            ends = info("peername")[:2], info("sockname")[:2]
        client, server = ends if accepted else ends[::-1]
        return self.writer.connection(time.time_ns(), client, server)


class _Secrets:
    """Blanks the requests by which administrators set passwords."""

    def __init__(self) -> None:
        self._contexts: set[int] = set()

    def without(self, kind: int, pdu: bytes) -> bytes:
        if kind in (PduType.bind, PduType.alter_context):
            self._note(pdu)
        if kind != PduType.request or not self._contexts:
            return pdu
        layout = REQUEST_BODY if pdu[4] else BIG_REQUEST_BODY
        _, context_id, opnum = layout.unpack_from(pdu, HEADER_LENGTH)
        secret = context_id in self._contexts and opnum in _SETTING_PASSWORDS
        return pdu[:_STUB].ljust(len(pdu), b"\0") if secret else pdu

    def _note(self, pdu: bytes) -> None:
        with suppress(DecodeError):
            bind = unpack(pdu)
            if isinstance(bind, Bind | AlterContext):
                for each in bind.p_context_elem:
                    if each.abstract_syntax.uuid == load("rpcqm_admin").uuid:
                        self._contexts.add(each.p_cont_id)


class _Side:
    """One direction of a connection: PDUs as they were sent, or as they would be in clear."""

    def __init__(self, write: Callable[[int, int, bytes], None]) -> None:
        self._write = write
        self._stream = PduStream(self._pdu, Problems())
        self.plain: deque[tuple[bytes, bytes]] = deque()

    def take(self, data: bytes) -> None:
        self._stream.take(data, time.time_ns(), 0)

    def _pdu(self, found: CapturedPdu) -> None:
        pdu = found.data[found.begin : found.end]
        if found.auth_length and self.plain and pdu.startswith(self.plain[0][0]):
            head, body = self.plain.popleft()
            padding = pdu[len(pdu) - found.auth_length - TRAILER_LENGTH + 2]
            pdu = _unprotected(head, body[: len(body) - padding])
        self._write(found.kind, found.time, pdu)


def _unprotected(head: bytes, stub: bytes) -> bytes:
    """A PDU without its authentication trailer."""
    length = (len(head) + len(stub)).to_bytes(2, "little" if head[4] else "big")
    changed = bytearray(head)
    changed[_FRAGMENT_LENGTH] = length + b"\0\0"
    return bytes(changed) + stub


class RecordedConnection(Connection):
    """A connection of a server whose octets go to a capture as well."""

    def __init__(self, server: RpcServer, endpoint: Endpoint, recorder: Recorder) -> None:
        super().__init__(server, endpoint)
        self._recorder = recorder
        self._written_to: WrittenConnection | None = None
        self._incoming = self._outgoing = b""
        self._secrets = _Secrets()
        self.received = _Side(self._record_received)
        self.sent = _Side(self._record_sent)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._written_to = self._recorder.written(transport)

    def _record_received(self, kind: int, moment: int, pdu: bytes) -> None:
        if self._written_to is not None:
            self._written_to.client_sent(moment, self._secrets.without(kind, pdu))

    def _record_sent(self, kind: int, moment: int, pdu: bytes) -> None:
        if self._written_to is not None:
            self._written_to.server_sent(moment, pdu)

    def data_received(self, data: bytes) -> None:
        self._incoming = data
        self._recorder.current = self
        super().data_received(data)
        self._recorder.current = None
        self._record()

    def _record(self) -> None:
        """What was received is unsealed by now, and comes before its answers."""
        incoming, self._incoming = self._incoming, b""
        outgoing, self._outgoing = self._outgoing, b""
        self.received.take(incoming)
        self.sent.take(outgoing)

    def flush(self) -> None:
        output = b"".join(self.association.output)
        super().flush()
        self._outgoing += output
        if self._recorder.current is not self:
            self._record()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        if self._written_to is not None:
            self._written_to.close(time.time_ns())
            self._written_to = None


class _Provider:
    """A security provider whose handshakes are those of recorded connections."""

    def __init__(self, provider: SecurityProvider, recorder: Recorder) -> None:
        self._provider = provider
        self._recorder = recorder

    @property
    def principal_name(self) -> str:
        return self._provider.principal_name

    def accept(self, level: AuthenticationLevel, address: str = "") -> Handshake:
        handshake = self._provider.accept(level, address)
        connection = self._recorder.current
        return handshake if connection is None else _Handshake(handshake, connection)


class _Handshake:
    def __init__(self, handshake: Handshake, connection: RecordedConnection) -> None:
        self._handshake = handshake
        self._connection = connection

    @property
    def complete(self) -> bool:
        return self._handshake.complete

    @property
    def claim(self) -> LogonClaim:
        return self._handshake.claim

    def step(self, token: bytes) -> bytes:
        return self._handshake.step(token)

    def protection(self, level: AuthenticationLevel) -> MessageProtection:
        protection = self._handshake.protection(level)
        return _Protection(protection, self._connection) if level == _SEALED else protection

    def peer(self) -> Identity:
        return self._handshake.peer()


class _Protection:
    """Protects messages as ever, and notes what was sealed."""

    def __init__(self, protection: MessageProtection, connection: RecordedConnection) -> None:
        self._protection = protection
        self._connection = connection
        self.sign_headers = protection.sign_headers
        self.restart_ciphers = protection.restart_ciphers
        self.sign = protection.sign
        self.verify = protection.verify

    @property
    def signature_length(self) -> int:
        return self._protection.signature_length

    @property
    def dummy_signature(self) -> bytes | None:
        return self._protection.dummy_signature

    def seal(self, head: bytes, body: bytes, tail: bytes) -> tuple[bytes, bytes]:
        self._connection.sent.plain.append((head, body))
        return self._protection.seal(head, body, tail)

    def unseal(self, head: bytes, sealed: bytes, tail: bytes, signature: bytes) -> bytes:
        body = self._protection.unseal(head, sealed, tail, signature)
        self._connection.received.plain.append((head, body))
        return body
