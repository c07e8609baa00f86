"""Receiving by the binary protocol on loopback: durable messages of 1 KiB.

A generator that speaks [MS-MQQB] sends packets made beforehand, a window of them ahead, to a queue
manager, and stops its watch when the last one is acknowledged as being on the disk.
"""

import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID, uuid4

from harness import BUILD, Figure, raw_syncs

from rpcqm.codec.format_name import FormatName
from rpcqm.codec.message import MessageAttributes, build_user_message
from rpcqm.codec.packet_base import SESSION_HEADER_SIZE, SessionHeader, frame_size
from rpcqm.codec.packet_internal import (
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
)
from rpcqm.codec.packet_types import MessageIdentifier, TxSequenceID
from rpcqm.testing import PrivateQueueManager, private_queue_manager

MESSAGES = 6_016
"""A multiple of what one acknowledgement has room for."""
BODY = b"x" * 1024
WINDOW = 64
ROUNDS = 3


class Generator:
    """A session that sends as fast as its window lets it."""

    def __init__(self, port: int) -> None:
        self._line = socket.create_connection(("127.0.0.1", port))
        self._line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._guid = uuid4()
        self._sent = self._acknowledged = 0
        self._persisted = 0
        self._open()

    def close(self) -> None:
        self._line.close()

    def _open(self) -> None:
        self._line.sendall(EstablishConnectionPacket.of(EstablishConnectionHeader(self._guid)))
        self._packet()
        parameters = ConnectionParametersHeader(500, 20_000, window_size=WINDOW)
        self._line.sendall(ConnectionParametersPacket.of(parameters))
        self._packet()

    def _packet(self) -> bytes:
        data = self._exactly(16)
        return data + self._exactly(frame_size(data) - 16)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._line.recv(size - len(data))
            if not piece:
                raise ConnectionError("the queue manager has closed the session")
            data += piece
        return data

    def _acknowledgement(self) -> None:
        """Take one session acknowledgement; other packets are acknowledgements of order."""
        packet = self._packet()
        if len(packet) == 36:
            header = SessionHeader.decode(packet, len(packet) - SESSION_HEADER_SIZE)
            self._acknowledged += (header.ack_sequence_number - self._acknowledged) & 0xFFFF
            self._persisted += header.recoverable_msg_ack_flags.bit_count()

    def send(self, packets: list[bytes]) -> float:
        """Send them; the seconds until all of them are on the disk."""
        target = self._persisted + len(packets)
        began = time.perf_counter()
        for packet in packets:
            while self._sent - self._acknowledged >= WINDOW:
                self._acknowledgement()
            self._line.sendall(packet)
            self._sent += 1
        while self._persisted < target:
            self._acknowledgement()
        return time.perf_counter() - began


def packets(name: str, count: int, transactional: bool, source: UUID) -> list[bytes]:
    """Messages to a queue of the receiver, in sequence when they are transactional."""
    attributes = MessageAttributes(
        destination_queue_format_name=FormatName.parse(f"DIRECT=OS:receiver\\private$\\{name}"),
        identifier=MessageIdentifier(source, 0),
        sent_time=int(time.time()),
        body=BODY,
        delivery_guarantee=1,
    )
    made = []
    sequence = TxSequenceID(1, int(time.time()))
    for number in range(1, count + 1):
        attributes.identifier = MessageIdentifier(source, number)
        if transactional:
            attributes.transaction_identifier = number & 0xF_FFFF
            attributes.transactional_message_sequence_identifier = sequence
            attributes.transaction_sequence_number = number
            attributes.transaction_previous_sequence_number = number - 1
        made.append(build_user_message(attributes))
    return made


@contextmanager
def receiver() -> Iterator[PrivateQueueManager]:
    with TemporaryDirectory(dir=BUILD) as directory:
        configuration = 'name = "receiver"\n[storage]\nquota = 67108864\n'
        with private_queue_manager(
            configuration=configuration, data_dir=Path(directory) / "data"
        ) as queue_manager:
            queue_manager.run("queue", "create", "orders")
            queue_manager.run("queue", "create", "stream", "--transactional")
            yield queue_manager


def received(port: int, name: str, transactional: bool) -> float:
    """Messages per second that the receiver stores."""
    rates = []
    for _ in range(ROUNDS):
        generator = Generator(port)
        rates.append(MESSAGES / generator.send(packets(name, MESSAGES, transactional, uuid4())))
        generator.close()
    return statistics.median(rates)


def run() -> list[Figure]:
    BUILD.mkdir(parents=True, exist_ok=True)
    syncs = raw_syncs(BUILD, 1024)
    with receiver() as queue_manager:
        port = queue_manager.endpoint("binary")[1]
        recoverable = received(port, "orders", transactional=False)
        in_sequence = received(port, "stream", transactional=True)
    note = f"raw syncs of 1 KiB {syncs:.0f}/s; window {WINDOW}"
    return [
        Figure("received, recoverable, 1 KiB", recoverable, unit="messages/s", note=note),
        Figure(
            "received, transactional against recoverable, 1 KiB",
            in_sequence / recoverable,
            0.7,
            note=f"{in_sequence:.0f} messages/s",
        ),
    ]
