"""Somebody who speaks the binary protocol by hand, and need not keep its rules.

A stranger claims to be any queue manager, connects from any address of loopback, and sends any
packet. What it has sent before a message that has arrived has been dealt with.
"""

import socket
from dataclasses import replace
from typing import Any, Self
from uuid import UUID, uuid4

from rpcqm.binary.framing import PacketBuffer
from rpcqm.client.message import ReceivedMessage
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.base import MAXIMUM_FRAME_SIZE
from rpcqm.codec.packet.enums import SenderIdentifierType
from rpcqm.codec.packet.internal import (
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
)
from rpcqm.codec.packet.message import MessageAttributes, PacketMessage, build_user_message
from rpcqm.codec.packet.patch import without_session_header
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.packet.user_message import UserMessage
from rpcqm.testing import PrivateQueueManager
from tests.support.waiting import PATIENCE

HERE = "DIRECT=TCP:127.0.0.1\\"
SENT_TIME = 1_750_000_000
INTERNAL = 0x08
NEVER = 0xFFFF_FFFF
ALL_ACKNOWLEDGEMENTS = 0x0F


class Stranger:
    """An open session with a queue manager; `close` it, or use it with `with`.

    `up` is for how many milliseconds the stranger's system has run, 0 if it does not say.
    """

    def __init__(
        self,
        address: tuple[str, int],
        guid: UUID | None = None,
        source: str = "127.0.0.1",
        up: int = 0,
    ) -> None:
        self.guid = guid or uuid4()
        self._ordinal, self._up = 0, up
        self._socket = socket.create_connection(address, PATIENCE, (source, 0))
        self._socket.settimeout(PATIENCE)
        self.server_guid = self._shake_hands()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def _shake_hands(self) -> UUID:
        header = EstablishConnectionHeader(self.guid, timestamp=self._up)
        self._socket.sendall(EstablishConnectionPacket.of(header))
        answer = EstablishConnectionPacket.decode(self._read(EstablishConnectionPacket.size()))
        parameters = ConnectionParametersHeader(0x1F4, 0x4E20, window_size=64)
        self._socket.sendall(ConnectionParametersPacket.of(parameters))
        self._read(ConnectionParametersPacket.size())
        return answer.establish_connection_header.server_guid

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionError("the queue manager has closed the connection")
            data += more
        return data

    def send_packet(self, packet: bytes) -> None:
        self._socket.sendall(packet)

    def message(self, to: str, **more: Any) -> bytes:
        """A message packet of an identifier of its own, with the attributes of `more`."""
        self._ordinal += 1
        attributes = MessageAttributes(
            destination_queue_format_name=FormatName.parse(to),
            identifier=MessageIdentifier(self.guid, self._ordinal),
            sent_time=SENT_TIME,
            time_to_reach_queue=NEVER,
            time_to_be_received=NEVER,
            delivery_guarantee=1,
            sender_identifier_type=SenderIdentifierType.NONE,
        )
        if isinstance(admin := more.get("administration_queue_format_name"), str):
            more["administration_queue_format_name"] = FormatName.parse(admin)
        return build_user_message(replace(attributes, **more))

    def send(self, to: str, **more: Any) -> None:
        self.send_packet(self.message(to, **more))

    def messages(self) -> list[PacketMessage]:
        """The messages that the queue manager has sent to it so far."""
        arrived = PacketBuffer()
        self._socket.setblocking(False)
        try:
            arrived.add(self._socket.recv(1 << 20))
        except BlockingIOError:
            return []
        finally:
            self._socket.settimeout(PATIENCE)
        packets = []
        while (packet := arrived.next(MAXIMUM_FRAME_SIZE)) is not None:
            packets.append(packet)
        plain = [without_session_header(each) for each in packets if not each[2] & INTERNAL]
        return [PacketMessage(each) for each in plain]

    def is_closed(self) -> bool:
        """Whether the queue manager closes the connection; what it says before is passed over."""
        try:
            while self._socket.recv(4096):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True


class Destination:
    """A queue manager that others connect to and send to; it says only what a test wants."""

    def __init__(self) -> None:
        self.guid = uuid4()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(PATIENCE)
        self.port = int(self._listening.getsockname()[1])
        self._arrived = PacketBuffer()
        self._connection: socket.socket | None = None

    def close(self) -> None:
        self._listening.close()
        if self._connection is not None:
            self._connection.close()

    def accept(self) -> None:
        """Open a session with the next one who connects."""
        self._connection, _ = self._listening.accept()
        self._connection.settimeout(PATIENCE)
        request = EstablishConnectionPacket.decode(self._next()).establish_connection_header
        answer = replace(request, server_guid=self.guid)
        self.send_packet(EstablishConnectionPacket.of(answer))
        parameters = ConnectionParametersPacket.decode(self._next()).connection_parameters_header
        self.send_packet(ConnectionParametersPacket.of(parameters))

    def _next(self) -> bytes:
        assert self._connection is not None
        while (packet := self._arrived.next(MAXIMUM_FRAME_SIZE)) is None:
            self._arrived.add(self._connection.recv(65_536))
        return packet

    def next_message(self) -> PacketMessage:
        """The next message that arrives; what sessions say of themselves is passed over."""
        while (packet := self._next())[2] & INTERNAL:
            pass
        return PacketMessage(without_session_header(packet))

    def send_packet(self, packet: bytes) -> None:
        assert self._connection is not None
        self._connection.sendall(packet)


def with_security_flags(packet: bytes, flags: int) -> bytes:
    """A packet whose SecurityHeader has other flags."""
    offset = UserMessage(packet).layout.security
    return packet[:offset] + flags.to_bytes(2, "little") + packet[offset + 2 :]


class Victim:
    """A queue manager that strangers attack, and what its users see."""

    def __init__(self, queue_manager: PrivateQueueManager) -> None:
        self.queue_manager = queue_manager

    @property
    def address(self) -> tuple[str, int]:
        return self.queue_manager.endpoint("binary")

    def create(self, label: str, *options: str) -> str:
        """A new queue of a name that no other has; the name for senders elsewhere."""
        name = f"{label}-{uuid4().hex[:8]}"
        self.queue_manager.run("queue", "create", name, *options)
        return f"{HERE}private$\\{name}"

    def await_all(self, stranger: Stranger) -> None:
        """Wait until everything that a stranger has sent has been dealt with."""
        until = self.create("until")
        stranger.send(until, body=b"the last")
        self.receive(until)

    def receive(self, name: str) -> ReceivedMessage:
        """Wait for the next message of a queue and take it."""
        with (
            self.queue_manager.client() as client,
            client.open_reader(_local(name)) as reader,
            reader.receive(int(PATIENCE * 1000)) as message,
        ):
            return message

    def bodies(self, name: str) -> list[bytes]:
        """The bodies of what is in a queue."""
        with (
            self.queue_manager.client() as client,
            client.open_reader(_local(name), peek_only=True) as reader,
        ):
            return [message.body for message in reader.browse()]

    def purge(self, name: str) -> None:
        with self.queue_manager.client() as client, client.open_reader(_local(name)) as reader:
            reader.purge()


def _local(name: str) -> FormatName:
    return FormatName.parse(name.replace(HERE, "DIRECT=OS:.\\", 1))
