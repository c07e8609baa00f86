"""Sessions of the binary protocol for the benches: what the C sender says, and rpcqm for it."""

import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from uuid import UUID, uuid4

from harness import (
    BUILD,
    PATIENCE,
    Cpus,
    Load,
    client_cpu,
    compile_c,
    generated,
    lasting,
    pin,
    sampled_environment,
    server_cpu,
)
from streams import varied

from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.base import SessionHeader
from rpcqm.codec.packet.internal import (
    ConnectionParametersHeader,
    ConnectionParametersPacket,
    EstablishConnectionHeader,
    EstablishConnectionPacket,
    SessionAckPacket,
)
from rpcqm.codec.packet.message import MessageAttributes, build_user_message
from rpcqm.codec.packet.types import MessageIdentifier, TxSequenceID
from rpcqm.testing import PrivateQueueManager

WINDOW = 64
"""Messages of a session that are not acknowledged yet; Windows' value, and ours."""

BODY = b"x" * 1024
CONFIGURATION = """\
[security]
allow_nonauthenticated_rpc = true
allow_unprotected_rpc = true
supporting_server = true
[storage]
quota = 67108864
"""
ACKNOWLEDGEMENT_TIMES = 500, 20_000
DIFFERENT = 64
"""Messages that differ, which the C sender sends in turn; each has the next number."""
NUMBER, SEQUENCE, PREVIOUS = 0x31415926, 0x27182818, 0x14142135
SESSION = b"\xfe\xed\xfa\xce"


@contextmanager
def queue_manager(
    name: str,
    more: str = "",
    cpu: Cpus = server_cpu,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[PrivateQueueManager]:
    """`rpcqm serve` with options on one processor, or on some; `more` is added to its TOML.

    Without an `environment` it can be sampled.
    """
    with TemporaryDirectory(dir=BUILD) as directory:
        made = PrivateQueueManager(
            Path(directory) / "data",
            options,
            f'name = "{name}"\n{CONFIGURATION}{more}',
            sampled_environment() if environment is None else environment,
        )
        with ExitStack() as stack:
            stack.callback(made.stop)
            made.start()
            assert made.process is not None
            pin(made.process.pid, cpu)
            yield made


def parameters() -> bytes:
    """What asks for the windows and times of a session."""
    header = ConnectionParametersHeader(*ACKNOWLEDGEMENT_TIMES, window_size=WINDOW)
    return ConnectionParametersPacket.of(header)


def script(queue: str, transactional: bool, differing: bool = False) -> str:
    """What the C sender says: recoverable messages of queue managers that nobody knows yet."""
    known = uuid4().bytes_le[:12] + SESSION
    source = UUID(bytes_le=known)
    packets = {
        "establish": EstablishConnectionPacket.of(EstablishConnectionHeader(source)),
        "parameters": parameters(),
        "acknowledge": SessionAckPacket.of(SessionHeader(window_size=WINDOW)),
    }
    lines = [f"{name} {packet.hex()}" for name, packet in packets.items()]
    lines.append(f"field establish {packets['establish'].index(SESSION)} session")
    fields = [(SESSION, "session"), (_octets(NUMBER), "number")]
    if transactional:
        fields += [(_octets(SEQUENCE), "number"), (_octets(PREVIOUS), "previous")]
    # All messages are of one sequence, so that they have one time.
    draw, now = Random(0), int(time.time())
    for _ in range(DIFFERENT if differing else 1):
        attributes = _message(source, queue, transactional, now)
        if differing:
            attributes = varied(attributes, draw)
        packet = build_user_message(attributes)
        lines.append(f"message {packet.hex()}")
        lines += [f"field message {packet.index(octets)} {value}" for octets, value in fields]
    return "\n".join(lines) + "\n"


def _message(source: UUID, queue: str, transactional: bool, now: int) -> MessageAttributes:
    attributes = MessageAttributes(
        destination_queue_format_name=FormatName.parse(f"DIRECT=OS:receiver\\private$\\{queue}"),
        identifier=MessageIdentifier(source, NUMBER),
        sent_time=now,
        body=BODY,
        delivery_guarantee=1,
    )
    if transactional:
        attributes.transaction_identifier = 1
        attributes.transactional_message_sequence_identifier = TxSequenceID(1, now)
        attributes.transaction_sequence_number = SEQUENCE
        attributes.transaction_previous_sequence_number = PREVIOUS
    return attributes


def _octets(number: int) -> bytes:
    return struct.pack("<I", number)


def received(
    port: int,
    queue: str,
    sessions: int,
    transactional: bool = False,
    seconds: float = 1.5,
    warm_up: float = 0.4,
    cpu: int = client_cpu,
    differing: bool = False,
    calls: int = 0,
) -> Load:
    """Messages that a queue manager has on its disk and has acknowledged, sent by C from `cpu`.

    With `calls` the run ends after so many.
    """
    times, counted = lasting(seconds, warm_up, calls)
    argv = [compile_c("mqqb"), port, sessions, *times]
    told = f"{script(queue, transactional, differing)}{counted}"
    return generated(argv, told, warm_up + seconds + PATIENCE, cpu)


class Session:
    """One session that only opens and closes."""

    def __init__(self, port: int) -> None:
        self._line = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def open(self) -> float:
        """Establish it; the seconds that the first question and its answer took."""
        began = time.perf_counter()
        self._ask(EstablishConnectionPacket.of(EstablishConnectionHeader(uuid4())))
        took = time.perf_counter() - began
        self._ask(parameters())
        return took

    def close(self) -> None:
        self._line.close()

    def _ask(self, packet: bytes) -> None:
        """Answers are as long as questions."""
        self._line.sendall(packet)
        left = len(packet)
        while left:
            data = self._line.recv(left)
            if not data:
                raise ConnectionError("the queue manager has closed the session")
            left -= len(data)
