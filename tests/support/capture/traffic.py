"""Traffic of RPC clients made up at random: frames of several connections, and what spoils them."""

import ipaddress
import random
import struct
import uuid
from collections.abc import Iterator
from typing import Any

from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.queue_format import queue_format_of
from rpcqm.codec.types.remoteread import SectionBuffer
from rpcqm.rpc.pdu import (
    Bind,
    BindAck,
    ContextAnswer,
    ContextElement,
    Fault,
    Request,
    Response,
    SyntaxId,
)
from tests.support.capture.captures import ACK, FIN, SYN, ethernet, ipv4

SERVER = ("192.0.2.2", 2103)
_MASK = 0xFFFFFFFF


class Connection:
    """Both sides of one connection; `frames` grows as they speak."""

    def __init__(self, number: int, start: int, frames: list[bytes]) -> None:
        self._client = (f"192.0.2.{10 + number}", 50000 + number)
        self._next = [start & _MASK, (start + 7777) & _MASK]
        self._frames = frames

    def frame(self, side: int, data: bytes, flags: int = ACK, seq: int | None = None) -> None:
        source, target = (self._client, SERVER) if side == 0 else (SERVER, self._client)
        number = self._next[side] if seq is None else seq
        ports = struct.pack("!HH", source[1], target[1])
        rest = struct.pack("!IIBBHHH", number, self._next[1 - side], 0x50, flags, 65535, 0, 0)
        self._frames.append(ethernet(ipv4(source[0], target[0], ports + rest + data)))
        self._next[side] = (number + len(data) + bool(flags & (SYN | FIN))) & _MASK

    def send(self, side: int, data: bytes, segment: int = 60_000) -> None:
        for at in range(0, len(data), segment):
            self.frame(side, data[at : at + segment])


class Client:
    """Opens a queue and reads from it, as RemoteRead's clients do."""

    def __init__(
        self,
        rng: random.Random,
        number: int,
        syntax: TransferSyntax,
        odd: bool,
        start: int | None = None,
    ) -> None:
        self.frames: list[bytes] = []
        self._rng = rng
        self._odd = odd
        start = rng.randrange(1 << 32) if start is None else start
        self._connection = Connection(number, start, self.frames)
        self._interface = load("remoteread")
        self._syntax = syntax
        self._call = rng.randrange(1, 1 << 31)
        self._handle = bytes(4) + rng.randbytes(16)
        self._open: list[tuple[int, str, dict[str, Any]]] = []

    def begin(self, whole: bool) -> None:
        connection = self._connection
        if whole:
            connection.frame(0, b"", SYN)
            connection.frame(1, b"", SYN | ACK)
            connection.frame(0, b"")
        transfer = SyntaxId(self._syntax.uuid, self._syntax.version)
        version = self._interface.version
        element = ContextElement(1, SyntaxId(self._interface.uuid, *version), (transfer,))
        sizes: dict[str, Any] = {"call_id": self._call, "max_xmit_frag": 5840}
        sizes["max_recv_frag"] = 5840
        connection.send(0, Bind(**sizes, p_context_elem=(element,)).pack())
        answer = (ContextAnswer(0, 0, transfer),)
        told = BindAck(**sizes, sec_addr=b"2103", assoc_group_id=7, p_result_list=answer)
        connection.send(1, told.pack())

    def ask(self, name: str, response: dict[str, Any], **fields: Any) -> None:
        operation = self._interface.operation(name)
        stub = operation.encode_request(self._syntax, operation.request_class(**fields))
        if not self._odd or self._rng.random() < 0.9:
            self._call += 1
        self._open.append((self._call, name, response))
        asked = Request(call_id=self._call, p_cont_id=1, opnum=operation.opnum, stub_data=stub)
        self._connection.send(0, asked.pack(), self._segment())

    def answer(self) -> None:
        call, name, fields = self._open.pop(self._rng.randrange(len(self._open)))
        operation = self._interface.operation(name)
        if self._rng.random() < 0.1:
            told = Fault(call_id=call, p_cont_id=1, status=0x1C00001A).pack()
        else:
            stub = operation.encode_response(self._syntax, operation.response_class(**fields))
            told = Response(call_id=call, p_cont_id=1, stub_data=stub).pack()
        self._connection.send(1, told, self._segment())
        if self._rng.random() < 0.3:
            self._connection.frame(0, b"")

    def _segment(self) -> int:
        short = self._odd and self._rng.random() < 0.05
        return self._rng.randrange(10, 100) if short else 60_000

    def open(self) -> None:
        self.ask(
            "R_OpenQueue",
            {"pphContext": self._handle},
            pQueueFormat=_queue(self._rng.randrange(3)),
            dwAccess=1,
            dwShareMode=0,
            pClientId=uuid.UUID(int=self._rng.randrange(5)),
            fNonRoutingServer=0,
            Major=1,
            Minor=1,
            BuildNumber=0,
            fWorkgroup=0,
        )

    def receive(self) -> None:
        rng = self._rng
        found = rng.random() < 0.6
        response = {
            "pdwArriveTime": rng.randrange(1 << 32),
            "pSequenceId": rng.randrange(1 << 56) if found else 0,
            "pdwNumberOfSections": int(found),
            "ppPacketSections": [self._section()] if found else [],
            "result": 0 if found else 0xC00E001B,
        }
        self.ask(
            "R_StartReceive",
            response,
            phContext=self._handle,
            LookupId=rng.choice((0, rng.randrange(1 << 64))),
            hCursor=rng.randrange(3),
            ulAction=rng.choice((0, 0x80000000, 0x80000001, 5)),
            ulTimeout=rng.choice((0, _MASK)),
            dwRequestId=rng.randrange(1 << 32),
            dwMaxBodySize=4096,
            dwMaxCompoundMessageSize=4096,
        )

    def _section(self) -> Any:
        octets = bytearray(self._rng.randbytes(80))
        octets[4:8] = b"LIOR" if self._rng.random() < 0.8 else b"none"
        return SectionBuffer(
            SectionBufferType=0,
            SectionSizeAlloc=len(octets),
            SectionSize=len(octets),
            pSectionBuffer=bytes(octets),
        )

    def end(self) -> None:
        request, ack = self._rng.randrange(100), self._rng.choice((1, 2))
        fields = {"phContext": self._handle, "dwAck": ack, "dwRequestId": request}
        self.ask("R_EndReceive", {"result": self._rng.choice((0, 0xC00E0007))}, **fields)

    def close(self) -> None:
        self.ask("R_CloseQueue", {"pphContext": bytes(20), "result": 0}, pphContext=self._handle)

    def speak(self, calls: int) -> None:
        """Calls at random, up to three of them open at a time."""
        kinds = [self.receive] * 6 + [self.end] * 4 + [self.open, self.close]
        for _ in range(calls):
            self._rng.choice(kinds)()
            while len(self._open) > self._rng.choice((0, 0, 0, 0, 0, 1, 2)):
                self.answer()

    def leave(self) -> None:
        self._connection.frame(0, b"", FIN | ACK)
        self._connection.frame(1, b"", FIN | ACK)


def _queue(number: int) -> Any:
    return queue_format_of(FormatName.parse(f"DIRECT=TCP:192.0.2.2\\private$\\q{number}"))


def traffic(seed: int, clients: int = 3, calls: int = 60, odd: bool = True) -> list[bytes]:
    """Frames of some clients, mixed; `odd` ones cut PDUs, and use call identifiers again."""
    rng = random.Random(seed)
    every = []
    for number in range(clients):
        syntax = rng.choice((TransferSyntax.NDR, TransferSyntax.NDR, TransferSyntax.NDR64))
        client = Client(rng, number, syntax, odd)
        client.begin(whole=rng.random() < 0.8)
        client.open()
        client.answer()
        client.speak(rng.randrange(calls))
        if rng.random() < 0.5:
            client.leave()
        every.append(client.frames[::-1])
    mixed: list[bytes] = []
    while any(every):
        mixed.append(rng.choice([frames for frames in every if frames]).pop())
    return mixed


def hard_traffic(seed: int, clients: int) -> list[bytes]:
    """Connections that are hard to follow.

    Sequence numbers wrap around, ports are used again after a new SYN, with or without an end of
    the connection before, frames come again with other contents, out of order and much too late,
    and of a single client sometimes one side only is there.
    """
    rng = random.Random(seed)
    every = []
    for number in range(clients):
        frames: list[bytes] = []
        for _ in range(rng.randrange(1, 4)):
            start = rng.choice((rng.randrange(1 << 32), (1 << 32) - rng.randrange(1, 3000)))
            client = Client(rng, number, TransferSyntax.NDR, rng.random() < 0.5, start)
            client.begin(whole=True)
            client.open()
            client.answer()
            client.speak(rng.randrange(20))
            if rng.random() < 0.5:
                client.leave()
            frames += client.frames
        every.append(frames[::-1])
    mixed: list[bytes] = []
    while any(every):
        mixed.append(rng.choice([frames for frames in every if frames]).pop())
    if clients == 1 and rng.random() < 0.3:
        side = rng.choice((SERVER[0], "192.0.2.10"))
        mixed = [frame for frame in mixed if frame[26:30] == ipaddress.ip_address(side).packed]
    return _repeated(rng, _swapped(rng, mixed))


def _swapped(rng: random.Random, frames: list[bytes]) -> list[bytes]:
    for at in range(len(frames) - 1):
        if rng.random() < 0.1:
            frames[at : at + 2] = frames[at + 1], frames[at]
    return frames


def _repeated(rng: random.Random, frames: list[bytes]) -> list[bytes]:
    """With some frames again later, as they were or with other contents."""
    for at in range(len(frames)):
        if rng.random() < 0.08 and len(frames[at]) > 54:
            other = frames[at][:54] + rng.randbytes(len(frames[at]) - 54)
            again = rng.choice((frames[at], other))
            frames.insert(min(len(frames), at + rng.randrange(1, 40)), again)
    return frames


def spoilt(frames: list[bytes], seed: int, share: float) -> Iterator[bytes]:
    """Frames of which some are lost, repeated, late, cut, damaged, tagged or of something else."""
    rng = random.Random(seed)
    late: list[bytes] = []
    for frame in frames:
        luck = rng.random() / share if share else 1.0
        if luck < 0.1:
            continue
        if luck < 0.3:
            late.append(frame)
        elif luck < 0.4:
            yield frame[: rng.randrange(len(frame))]
        elif luck < 0.55:
            at = rng.randrange(len(frame))
            yield frame[:at] + bytes([frame[at] ^ 1 << rng.randrange(8)]) + frame[at + 1 :]
        elif luck < 0.65:
            yield frame[:12] + b"\x81\0\0\5" + frame[12:]
        elif luck < 0.75:
            yield bytes(12) + b"\x08\x06" + rng.randbytes(28)
            yield frame
        else:
            yield frame
        if luck > 0.9 and luck < 1:
            yield frame
        if late and rng.random() < 0.3:
            yield late.pop(0)
    yield from late
