"""Large captures of RemoteRead's clients, written as fast as the disk takes them."""

import ipaddress
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from uuid import UUID

import numpy as np

from rpcqm.codec.interface import TransferSyntax, load
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.attributes import MessageAttributes
from rpcqm.codec.packet.builder import build_user_message
from rpcqm.codec.packet.types import MessageIdentifier
from rpcqm.codec.types.remoteread import SectionBuffer
from rpcqm.rpc.pdu import (
    Bind,
    BindAck,
    ContextAnswer,
    ContextElement,
    Request,
    Response,
    SyntaxId,
)

CONNECTIONS = 16
SERVER = ("10.0.1.1", 2103)
_BEGIN = 1_700_000_000_000_000_000
_STEP = 5_000
_NDR = SyntaxId(TransferSyntax.NDR.uuid, TransferSyntax.NDR.version)
_BLOCK, _FRAME, _PDU = 28, 54, 24
_TIMES, _NUMBERS, _STUB = 12, _BLOCK + 38, _BLOCK + _FRAME + _PDU
_REQUEST_ID = 44
_SYN, _ACK, _PUSH = 2, 16, 8
_CHUNK = 1 << 24


@dataclass(frozen=True, slots=True)
class Recorded:
    """A capture: how many calls it has, and the offset at which its second half begins."""

    path: Path
    calls: int
    middle: int


def _stubs(connection: int, body: int) -> tuple[bytes, bytes]:
    """A request of R_StartReceive, and a timeout or a message of `body` octets as its answer."""
    operation = load("remoteread").operation("R_StartReceive")
    request = operation.request_class(
        phContext=bytes(4) + bytes([connection]) * 16,
        LookupId=0,
        hCursor=0,
        ulAction=0,
        ulTimeout=1000,
        dwRequestId=0,
        dwMaxBodySize=4096,
        dwMaxCompoundMessageSize=4096,
    )
    sections, result = [], 0xC00E001B
    if body:
        packet = _packet(body)
        size = len(packet)
        section = SectionBuffer(
            SectionBufferType=0, SectionSizeAlloc=size, SectionSize=size, pSectionBuffer=packet
        )
        sections, result = [section], 0
    response = operation.response_class(
        pdwArriveTime=0,
        pSequenceId=0,
        pdwNumberOfSections=len(sections),
        ppPacketSections=sections,
        result=result,
    )
    encoded = operation.encode_request(TransferSyntax.NDR, request)
    return encoded, operation.encode_response(TransferSyntax.NDR, response)


def _packet(body: int) -> bytes:
    return build_user_message(
        MessageAttributes(
            destination_queue_format_name=FormatName.parse("DIRECT=TCP:10.0.1.1\\private$\\orders"),
            identifier=MessageIdentifier(UUID(int=1 << 90), 0),
            body=(b"The quick brown fox jumps over the lazy dog. " * (body // 45 + 1))[:body],
            label="an order",
        )
    )


class _Frame:
    """A frame of one connection in a packet block, and where in it what changes is."""

    def __init__(self, connection: int, side: int, octets: bytes, flags: int) -> None:
        client = (f"10.0.{connection >> 8}.{connection & 255}", 40000 + connection)
        ends = (client, SERVER) if side == 0 else (SERVER, client)
        addresses = b"".join(ipaddress.ip_address(host).packed for host, _ in ends)
        length = _FRAME + len(octets)
        block = _BLOCK + length + -length % 4 + 4
        frame = struct.pack(
            "!12xHBBHHHBBH8s", 0x800, 0x45, 0, length - 14, 1, 0, 64, 6, 0, addresses
        )
        frame += struct.pack("!HHIIBBHHH", ends[0][1], ends[1][1], 0, 0, 0x50, flags, 65535, 0, 0)
        head = struct.pack("<IIIIIII", 6, block, 0, 0, 0, length, length)
        self.octets = head + frame + octets + bytes(-length % 4) + struct.pack("<I", block)
        self.size = len(octets)

    def filled(self, time: int, seq: int, ack: int) -> bytes:
        """The one frame of its kind."""
        made = np.frombuffer(self.octets, np.uint8).copy().reshape(1, -1)
        _set(made, _TIMES, "<u4", np.array([[time >> 32, time & 0xFFFFFFFF]]))
        _set(made, _NUMBERS, ">u4", np.array([[seq, ack]]))
        return made.tobytes()


def _set(rows: Any, at: int, code: str, values: Any) -> None:
    """Write numbers into every row; `values` has a row for each, or is one number for each."""
    octets = np.ascontiguousarray(values.reshape(len(rows), -1).astype(code)).view(np.uint8)
    rows[:, at : at + octets.shape[1]] = octets


class _Connection:
    """The frames of one connection: its beginning, and one call as often as is wanted."""

    def __init__(self, number: int, body: int) -> None:
        syntax, sizes = load("remoteread"), (5840, 5840)
        element = ContextElement(0, SyntaxId(syntax.uuid, *syntax.version), (_NDR,))
        bind = Bind(
            call_id=1, max_xmit_frag=sizes[0], max_recv_frag=sizes[1], p_context_elem=(element,)
        ).pack()
        ack = BindAck(
            call_id=1,
            max_xmit_frag=sizes[0],
            max_recv_frag=sizes[1],
            assoc_group_id=number + 1,
            sec_addr=b"2103",
            p_result_list=(ContextAnswer(0, 0, _NDR),),
        ).pack()
        asked, told = _stubs(number, body)
        request = Request(call_id=0, p_cont_id=0, opnum=7, stub_data=asked).pack()
        response = Response(call_id=0, p_cont_id=0, stub_data=told).pack()
        self._number = number
        self._bind, self._ack = bind, ack
        self._sizes = len(request), len(response)
        self._asked = _Frame(number, 0, request, _ACK | _PUSH)
        self._told = _Frame(number, 1, response, _ACK | _PUSH)
        self._places = _places(told, body)
        self.octets = self._asked.octets + self._told.octets

    def beginning(self) -> bytes:
        """The handshake and the bind."""
        number, bind, ack = self._number, self._bind, self._ack
        return b"".join(
            (
                _Frame(number, 0, b"", _SYN).filled(_BEGIN, 0, 0),
                _Frame(number, 1, b"", _SYN | _ACK).filled(_BEGIN, 0, 1),
                _Frame(number, 0, bind, _ACK | _PUSH).filled(_BEGIN, 1, 1),
                _Frame(number, 1, ack, _ACK | _PUSH).filled(_BEGIN, 1, 1 + len(bind)),
            )
        )

    def fill(self, rows: Any, rounds: Any) -> None:
        """Write what differs from call to call into the rows of both frames."""
        asked, told = rows[:, : len(self._asked.octets)], rows[:, len(self._asked.octets) :]
        client = (1 + len(self._bind) + rounds * self._sizes[0]) & 0xFFFFFFFF
        server = (1 + len(self._ack) + rounds * self._sizes[1]) & 0xFFFFFFFF
        after = (client + self._sizes[0]) & 0xFFFFFFFF
        time = _BEGIN + (rounds * CONNECTIONS + self._number + 1) * 2 * _STEP
        for frame, when, pair in (
            (asked, time, (client, server)),
            (told, time + _STEP + (rounds * 7919 & 0xFFF), (server, after)),
        ):
            _set(frame, _TIMES, "<u4", np.stack((when >> 32, when & 0xFFFFFFFF), axis=1))
            _set(frame, _NUMBERS, ">u4", np.stack(pair, axis=1))
            _set(frame, _STUB - 12, "<u4", rounds + 2)
        _set(asked, _STUB + _REQUEST_ID, "<u4", rounds)
        for place, code, factor in self._places:
            _set(told, _STUB + place, code, rounds * factor + self._number)


def _places(told: bytes, body: int) -> list[tuple[int, str, int]]:
    """Where in an answer numbers are that differ from call to call."""
    if not body:
        return []
    message = told.index(b"LIOR") - 4
    return [(0, "<u4", 1), (8, "<u8", 3), (message + 56, "<u4", CONNECTIONS)]


def generate(path: Path, body: int, size: int) -> Recorded:
    """A capture of about `size` octets with `body` octets in each message; 0: timeouts only."""
    made = [_Connection(number, body) for number in range(CONNECTIONS)]
    whole = np.frombuffer(b"".join(each.octets for each in made), np.uint8)
    total = max(2, size // len(whole))
    half = total // 2
    with path.open("wb") as file:
        file.write(_head())
        file.write(b"".join(each.beginning() for each in made))
        header = file.tell()
        step = max(1, _CHUNK // len(whole))
        for start in range(0, total, step):
            _write(file, made, whole, np.arange(start, min(start + step, total), dtype=np.int64))
    return Recorded(path, total * CONNECTIONS, header + half * len(whole))


def _write(file: IO[bytes], made: list[_Connection], whole: Any, rounds: Any) -> None:
    rows = np.tile(whole, (len(rounds), 1))
    at = 0
    for each in made:
        each.fill(rows[:, at : at + len(each.octets)], rounds)
        at += len(each.octets)
    file.write(rows.data)


def _head() -> bytes:
    """A section, and an Ethernet interface that counts nanoseconds."""
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    options = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    return section + struct.pack("<IIHHI", 1, 32, 1, 0, 0) + options + struct.pack("<I", 32)


def cut(made: Recorded, directory: Path) -> list[Path]:
    """The two halves of a capture as captures of their own."""
    halves = [directory / f"{made.path.stem}-{n}.pcapng" for n in (1, 2)]
    with made.path.open("rb") as file:
        for number, path in enumerate(halves):
            with path.open("wb") as half:
                end = made.middle if number == 0 else made.path.stat().st_size
                if number:
                    half.write(_head())
                while file.tell() < end:
                    half.write(file.read(min(_CHUNK, end - file.tell())))
    return halves
