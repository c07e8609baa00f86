"""Cuts the bytes of a connection into packets ([MS-MQQB] 3.1.5.1)."""

from rpcqm.base.errors import DecodeError
from rpcqm.codec.packet.acknowledgement import PacketKind, identify_packet
from rpcqm.codec.packet.base import BASE_HEADER_SIZE, frame_size
from rpcqm.codec.packet.fields import BASE_FLAGS


class PacketBuffer:
    """Bytes that have come and are not taken yet; a packet in pieces is copied once it is whole."""

    __slots__ = ("_data", "_partial", "_start", "_wanted")

    def __init__(self) -> None:
        self._data = b""
        self._start = 0
        self._partial = bytearray()
        self._wanted = 0

    @property
    def unfinished(self) -> int:
        """Bytes of a packet that is not whole yet."""
        return len(self._partial)

    def add(self, data: bytes) -> None:
        """Take bytes, in whatever pieces they come; all whole packets before were taken."""
        if self._partial:
            self._partial += data
            if len(self._partial) < self._wanted:
                return
            data = bytes(self._partial)
            self._partial.clear()
        self._data, self._start = data, 0

    def next(self, largest: int) -> bytes | None:
        """The next packet, or None until it is whole. Raises DecodeError if bad or too large."""
        data, start = self._data, self._start
        left = len(data) - start
        if not left:
            return None
        self._wanted = BASE_HEADER_SIZE
        if left >= BASE_HEADER_SIZE:
            self._wanted = size = frame_size(data[start : start + BASE_HEADER_SIZE])
            if size > largest:
                raise DecodeError(f"packet of {size} bytes before the session is open")
            if left >= size:
                self._start = end = start + size
                return data[start:end]
        self._partial += data[start:]
        self._data, self._start = b"", 0
        return None

    @property
    def rest(self) -> tuple[bytes, int]:
        """The bytes that are not taken yet, and the place where they begin."""
        return self._data, self._start

    def skip_to(self, start: int) -> None:
        """Skip the bytes before `start`: their packets have been taken."""
        self._start = start

    def clear(self) -> None:
        """Forget everything."""
        self._data, self._start = b"", 0
        self._partial.clear()


def may_carry_acknowledgement(packet: bytes) -> bool:
    """Whether a SessionHeader may ride on a packet: OrderAck and FinalAck have no flags at all.

    Source: [MS-MQQB] 2.2.4, 2.2.5, 3.1.5.1.1.
    """
    return any(packet[BASE_FLAGS]) or identify_packet(packet) is PacketKind.USER_MESSAGE
