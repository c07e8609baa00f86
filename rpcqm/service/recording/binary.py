"""What `rpcqm serve --capture` records of the binary protocol, bodies in clear."""

import asyncio
import time
from collections.abc import Callable

from rpcqm.base.errors import DecodeError
from rpcqm.binary.connection.listener import BinaryListener
from rpcqm.binary.connection.peer_connection import PeerConnection
from rpcqm.binary.connection.tcp import TcpNetwork, TcpTransport
from rpcqm.capture.file.writing import WrittenConnection
from rpcqm.codec.packet.base import (
    BASE_HEADER_SIZE,
    SESSION_HEADER_SIZE,
    BaseHeader,
    SessionHeader,
    frame_size,
)
from rpcqm.codec.packet.patch import with_session_header, without_session_header
from rpcqm.service.recording.rpc import Recorder


def record(listener: BinaryListener, recorder: Recorder) -> None:
    """Record every connection of a door, whoever has opened it."""

    def make(connection: PeerConnection, network: TcpNetwork, accepted: bool) -> TcpTransport:
        return _RecordedWire(connection, network, accepted, listener, recorder)

    listener.watch(make)


class _Packets:
    """Cuts one direction into packets, each written once it is whole."""

    def __init__(
        self, write: Callable[[int, bytes], None], in_clear: Callable[[bytes], bytes]
    ) -> None:
        self._write = write
        self._in_clear = in_clear
        self._buffer = bytearray()
        self._readable = True

    def take(self, data: bytes) -> None:
        now = time.time_ns()
        self._buffer += data
        while self._readable and len(self._buffer) >= BASE_HEADER_SIZE:
            try:
                size = frame_size(self._buffer[:BASE_HEADER_SIZE])
            except DecodeError:
                self._readable = False
                break
            if len(self._buffer) < size:
                return
            packet = bytes(self._buffer[:size])
            del self._buffer[:size]
            self._write(now, self._clear(packet))
        if not self._readable:
            self._write(now, bytes(self._buffer))
            self._buffer.clear()

    def _clear(self, packet: bytes) -> bytes:
        try:
            flags = BaseHeader.decode(packet).flags
            if flags.IN:
                return packet
            plain = without_session_header(packet)
            clear = self._in_clear(plain)
            if clear == plain or not flags.SH:
                return packet if clear == plain else clear
            header = SessionHeader.decode(packet, len(packet) - SESSION_HEADER_SIZE)
            return with_session_header(clear, header)
        except DecodeError:
            return packet


class _RecordedWire(TcpTransport):
    """A wire whose octets go to a capture as well."""

    def __init__(
        self,
        connection: PeerConnection,
        network: TcpNetwork,
        accepted: bool,
        listener: BinaryListener,
        recorder: Recorder,
    ) -> None:
        super().__init__(connection, network, accepted)
        self._recorder = recorder
        self._accepts = accepted
        self._written_to: WrittenConnection | None = None
        security = listener.protocol.security
        self._received = _Packets(
            lambda moment, octets: self._record(accepted, moment, octets),
            lambda packet: security.in_clear(packet, sent=False),
        )
        self._sent = _Packets(
            lambda moment, octets: self._record(not accepted, moment, octets),
            lambda packet: security.in_clear(packet, sent=True),
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._written_to = self._recorder.written(transport, self._accepts)
        super().connection_made(transport)

    def _record(self, from_client: bool, moment: int, octets: bytes) -> None:
        if self._written_to is not None:
            write = self._written_to.client_sent if from_client else self._written_to.server_sent
            write(moment, octets)

    def data_received(self, data: bytes) -> None:
        self._received.take(data)
        super().data_received(data)

    def write(self, data: bytes) -> None:
        self._sent.take(data)
        super().write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._written_to is not None:
            self._written_to.close(time.time_ns())
            self._written_to = None
