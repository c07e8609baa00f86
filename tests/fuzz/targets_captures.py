"""Targets of captures: frames in tunnels, files of Network Monitor, segments in any order."""

import random
import struct
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from rpcqm.capture.columnar.record_batch import RecordBatch
from rpcqm.capture.columnar.segments import tcp_headers
from rpcqm.capture.file.flow import Flow, FlowDirection, Take
from rpcqm.capture.file.netmon import NetmonReader
from rpcqm.capture.file.network import Network
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.source import CaptureError
from rpcqm.capture.file.tcp import TcpReassembler
from rpcqm.capture.frames.ends import End, Other, Segment
from rpcqm.capture.frames.octets import Octets
from rpcqm.capture.frames.walking import end_of_frame
from tests.fuzz.target import Run, Target, Violation
from tests.support.capture.captures import ACK, CLIENT, FIN, RST, SERVER, SYN, ipv4, segment, tcp
from tests.support.capture.netmon import frame, netmon
from tests.support.capture.tunnels import LINKS, UNREAD, WRAPS, broken, in_itself

PACKET = ipv4(CLIENT[0], SERVER[0], tcp(CLIENT, SERVER, 7, b"x" * 30))


def _frames() -> Iterable[bytes]:
    for wrap in WRAPS.values():
        yield b"\0\1" + wrap(PACKET)
    for link, wrap in LINKS.values():
        yield struct.pack("!H", link) + wrap(PACKET)
    for link, octets in UNREAD.values():
        yield struct.pack("!H", link) + octets[:2000]
    yield b"\0\1" + in_itself(6)


@contextmanager
def _network() -> Iterator[Run]:
    """In columns a frame is what it is by itself."""
    network = Network(Problems())

    def run(octets: bytes) -> Hashable:
        link, data = int.from_bytes(octets[:2], "big"), octets[2:]
        end = end_of_frame(link, Octets(data))
        found = network.segment(link, data, 0)
        _compare(link, data, end)
        return type(end).__name__, getattr(end, "kind", ""), found is not None

    yield run


def _compare(link: int, data: bytes, end: End) -> None:
    buffer = data + bytes(100)
    one = np.array([len(data)], np.int64)
    zero = np.zeros(1, np.int64)
    batch = RecordBatch(buffer, 0, zero, zero, one, one, zero, np.array([link], np.int32))
    headers = tcp_headers(batch) if data else None
    if headers is None:
        return
    if headers.empty[0] and not isinstance(end, Other):
        raise Violation(f"in columns nothing, by itself {type(end).__name__}")
    if not headers.sound[0]:
        return
    if not isinstance(end, Segment):
        raise Violation(f"in columns a segment, by itself {type(end).__name__}")
    head = int(headers.payload[0]) - end.at
    if end.length - head != headers.length[0]:
        raise Violation("in columns the segment is another one")


def _fragmented() -> Iterable[bytes]:
    """Frames, each behind its length."""
    for outside in (False, True):
        (parts,) = broken([bytes(12) + b"\x08\0" + PACKET], 24, outside, random.Random(1))
        yield b"".join(struct.pack("!H", len(part)) + part for part in parts)


@contextmanager
def _fragments() -> Iterator[Run]:
    def run(octets: bytes) -> Hashable:
        network, at, found = Network(problems := Problems()), 0, 0
        while at + 2 <= len(octets):
            size = int.from_bytes(octets[at : at + 2], "big")
            found += network.segment(1, octets[at + 2 : at + 2 + size], at) is not None
            at += 2 + size
        network.finish()
        return min(found, 3), *sorted(problems.counts)

    yield run


def _files() -> Iterable[bytes]:
    frames = [segment(100 + n, b"x" * n) for n in range(5)]
    for minor in range(4):
        yield netmon([frame(each, n, minor) for n, each in enumerate(frames)], minor)


@contextmanager
def _netmon() -> Iterator[Run]:
    """A table makes no more of a file than it holds."""

    def run(octets: bytes) -> Hashable:
        reader = NetmonReader(b"GMBU" + octets[4:], problems := Problems())
        records = list(reader.records())
        if sum(len(each[2]) for each in records) > len(octets):
            raise Violation("more was read than there is")
        if any(end > reader.end for _, end in reader.taken):
            raise Violation("octets are claimed that are not there")
        return min(len(records), 6), *sorted(problems.counts)

    yield run


_SEGMENT = struct.Struct("!BBBB")
_FLAGS = (ACK, ACK, ACK, SYN, SYN | ACK, FIN | ACK, RST, ACK)


def _orders() -> Iterable[bytes]:
    yield b"".join(_SEGMENT.pack(n % 2, n, 3, 0) for n in range(40))
    yield _SEGMENT.pack(0, 0, 0, 3) + _SEGMENT.pack(1, 0, 0, 4) + _SEGMENT.pack(0, 1, 9, 5)
    yield b"".join(_SEGMENT.pack(0, 200 - n, 2, n % 8) for n in range(200))


class _Counting:
    """Each octet of a connection is handed on once, or counted as lost."""

    def __init__(self) -> None:
        self.flows: list[Flow] = []
        self.taken: dict[FlowDirection, int] = {}
        self.tcp = TcpReassembler(self._opened, Problems())

    def _opened(self, flow: Flow) -> None:
        self.flows.append(flow)
        for side in (flow.forward, flow.backward):
            self.taken[side] = 0
            side.take = self._taker(side)

    def _taker(self, side: FlowDirection) -> Take:
        def take(data: bytes, time: int, offset: int) -> None:
            self.taken[side] += len(data)

        return take

    def check(self) -> None:
        for side, taken in self.taken.items():
            if side.next is None or side.first is None:
                continue
            # The end may have taken a number, unless octets claim to be behind it.
            more = side.next - side.first - taken - side.lost
            if more not in (0, int(side.fin is not None)):
                raise Violation("octets are handed on twice, or neither handed on nor lost")


@contextmanager
def _segments() -> Iterator[Run]:
    def run(octets: bytes) -> Hashable:
        counting = _Counting()
        for at in range(0, len(octets) - 3, 4):
            side, place, size, flags = _SEGMENT.unpack_from(octets, at)
            made = segment(
                1000 + 3 * place, bytes(size), _FLAGS[flags & 7], backward=bool(side & 1)
            )
            acked = bytearray(made)
            acked[42:46] = (1000 + 3 * (side >> 1)).to_bytes(4, "big")
            counting.tcp.feed((at, 1, bytes(acked), len(acked), at))
        counting.tcp.finish()
        counting.check()
        return min(len(counting.flows), 4), sum(map(bool, counting.taken.values()))

    yield run


TARGETS = (
    Target("frames", _frames, _network, share=3),
    Target("fragments", _fragmented, _fragments, share=5),
    Target("netmon", _files, _netmon, (CaptureError,)),
    Target("segments", _orders, _segments, share=1),
)
