"""Captures made by hand: frames, segments, files."""

import ipaddress
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from rpcqm.capture.file.flow import Flow
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.reading import read_records
from rpcqm.capture.file.record import Record
from rpcqm.capture.file.tcp import TcpReassembler

SYN, ACK, FIN, RST, PUSH = 2, 16, 1, 4, 8
CLIENT, SERVER = ("192.0.2.1", 50000), ("192.0.2.2", 2103)
TIME = 1_700_000_000_000_000_000

Address = tuple[str, int]


def tcp(source: Address, target: Address, seq: int, data: bytes, flags: int = ACK) -> bytes:
    head = struct.pack("!HHIIBBHHH", source[1], target[1], seq, 0, 0x50, flags, 65535, 0, 0)
    return head + data


def ipv4(source: str, target: str, body: bytes, identifier: int = 1, fragment: int = 0) -> bytes:
    addresses = ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(target).packed
    total = 20 + len(body)
    return struct.pack("!BBHHHBBH", 0x45, 0, total, identifier, fragment, 64, 6, 0) + (
        addresses + body
    )


def ipv6(source: str, target: str, body: bytes, following: int = 6) -> bytes:
    addresses = ipaddress.IPv6Address(source).packed + ipaddress.IPv6Address(target).packed
    return struct.pack("!IHBB", 0x60000000, len(body), following, 64) + addresses + body


def ethernet(packet: bytes, kind: int = 0x0800) -> bytes:
    return bytes(12) + struct.pack("!H", kind) + packet


def segment(seq: int, data: bytes = b"", flags: int = ACK, *, backward: bool = False) -> bytes:
    """An Ethernet frame from the client to the server, or `backward`."""
    source, target = (SERVER, CLIENT) if backward else (CLIENT, SERVER)
    return ethernet(ipv4(source[0], target[0], tcp(source, target, seq, data, flags)))


def pcap(
    frames: Iterable[bytes], link: int = 1, order: str = "<", nano: bool = False, snap: int = 65535
) -> bytes:
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)]
    seconds, rest = divmod(TIME, 1_000_000_000)
    for number, frame in enumerate(frames):
        fraction = (rest + number * 1_000_000) // (1 if nano else 1000)
        cut = frame[:snap]
        out.append(struct.pack(order + "IIII", seconds, fraction, len(cut), len(frame)) + cut)
    return b"".join(out)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + length + body + length


def pcapng_head(links: Sequence[int] = (1,), order: str = "<", resolution: int = 9) -> bytes:
    section = struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)
    option = struct.pack(order + "HHB3xHH", 9, 1, resolution, 0, 0)
    described = (struct.pack(order + "HHI", link, 0, 0) + option for link in links)
    return block(0x0A0D0D0A, section, order) + b"".join(block(1, d, order) for d in described)


def enhanced(frame: bytes, ticks: int = TIME, interface: int = 0, order: str = "<") -> bytes:
    fixed = (interface, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
    return block(6, struct.pack(order + "IIIII", *fixed) + frame, order)


def pcapng(frames: Iterable[bytes], order: str = "<") -> bytes:
    packets = (enhanced(frame, TIME + n * 1_000_000, order=order) for n, frame in enumerate(frames))
    return pcapng_head(order=order) + b"".join(packets)


def read(path: Path) -> tuple[list[Record], Problems]:
    problems = Problems(path.name)
    return list(read_records(path, problems)), problems


class Collected:
    """Reassembles frames and keeps what each direction delivers."""

    def __init__(self) -> None:
        self.problems = Problems()
        self.flows: list[Flow] = []
        self.forward = bytearray()
        self.backward = bytearray()
        self.gaps: list[int] = []
        self.finished = 0
        self.tcp = TcpReassembler(self._opened, self.problems)

    def _opened(self, flow: Flow) -> None:
        self.flows.append(flow)
        flow.forward.take = lambda data, time, offset: self.forward.extend(data)
        flow.backward.take = lambda data, time, offset: self.backward.extend(data)
        flow.forward.gap = lambda count, time, offset: self.gaps.append(count)
        flow.finished = self._finished

    def _finished(self) -> None:
        self.finished += 1

    def feed(self, *frames: bytes, link: int = 1) -> "Collected":
        for number, frame in enumerate(frames):
            self.tcp.feed((TIME + number, link, frame, len(frame), number))
        return self

    def finish(self) -> "Collected":
        """The capture is over."""
        self.tcp.finish()
        return self
