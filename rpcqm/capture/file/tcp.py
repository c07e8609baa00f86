"""TCP reassembly: segments in whatever order they were captured → octets in order.

One flow is one connection; each of its two directions hands its octets to a `take` callable and
what was not captured to `gap`, which the opener of the flow sets.
"""

import struct
from collections import OrderedDict
from collections.abc import Callable

from rpcqm.capture.file.network import Network, address_text
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.record import Record
from rpcqm.capture.frames.numbers import TCP, LinkType

Take = Callable[[bytes, int, int], None]
"""Octets, the time of their segment in nanoseconds, and the offset of its record."""
Gap = Callable[[int, int, int], None]
"""How many octets are missing, time, offset."""

WAITING_SEGMENTS = 512
WAITING_OCTETS = 1 << 22
"""More waiting segments, or octets, than this prove that the missing one was not captured:
no window of TCP that is used in practice has room for more."""
PATIENCE = 64
"""How many segments may wait for octets that they acknowledge, before those count as lost."""
MAXIMUM_FLOWS = 1 << 16
"""How many connections are followed at once, so that a forged capture cannot fill memory."""
_RECENT = 1024
"""How many closed connections are remembered, so that late segments do not reopen them."""

_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16
_ENDS = _FIN | _SYN | _RST
_MASK = 0xFFFFFFFF
_HALF = 1 << 31

# Ethernet, IPv4 without options, TCP: what nearly every frame is.
_USUAL = struct.Struct("!12xHBxH2xHxB2x12sIIBB").unpack_from
_USUAL_LENGTH = 54
_TCP = struct.Struct("!4sIIBB").unpack_from
_ETHERNET = int(LinkType.ETHERNET)


def _ignore(data: bytes, time: int, offset: int) -> None:
    """Drop the octets of a flow that carries something else."""


def _ignore_gap(count: int, time: int, offset: int) -> None:
    """Drop the gap of a flow that carries something else."""


Waiting = tuple[bytes, int, int, int, int]
"""Octets, their number on the wire, what was acknowledged with them, time, offset."""


class FlowDirection:
    """What one side of a flow sends.

    Octets are handed on in order, and not before those of the other side that their sender had
    acknowledged by then: an answer never comes before its question, whatever the order in which
    they were captured.
    """

    __slots__ = (
        "ended",
        "flow",
        "gap",
        "lost",
        "next",
        "patience",
        "peer",
        "sender",
        "take",
        "waiting",
        "waiting_octets",
    )

    peer: "FlowDirection"

    def __init__(self, flow: "Flow", sender: str) -> None:
        self.flow = flow
        self.sender = sender
        self.next: int | None = None
        self.take: Take = _ignore
        self.gap: Gap = _ignore_gap
        self.waiting: dict[int, Waiting] = {}
        self.waiting_octets = 0
        self.patience = PATIENCE
        self.ended = False
        self.lost = 0

    def receive(self, seq: int, data: bytes, length: int, ack: int, time: int, offset: int) -> None:
        """A segment that is not simply the next one."""
        if self.next is None:
            self.next = seq
        if self.peer.next is None and ack:
            self.peer.next = ack
        ahead = (seq - self.next) & _MASK
        if ahead >= _HALF:
            seen = (1 << 32) - ahead
            if seen >= length:
                return
            seq, data, length, ahead = self.next, data[seen:], length - seen, 0
        if ahead or self._too_early(ack):
            self._wait(seq, data, length, ack, time, offset)
        else:
            self._deliver(data, length, time, offset)
            self.flow.release()

    def _too_early(self, ack: int) -> bool:
        """Whether octets of the other side are missing that were there for the sender."""
        expected = self.peer.next
        return expected is not None and 0 < (ack - expected) & _MASK < _HALF

    def _deliver(self, data: bytes, length: int, time: int, offset: int) -> None:
        assert self.next is not None
        self.next = (self.next + length) & _MASK
        self.patience = PATIENCE
        if data:
            self.take(data, time, offset)
        if len(data) < length:
            self._lose(length - len(data), time, offset)

    def _lose(self, count: int, time: int, offset: int) -> None:
        self.lost += count
        self.gap(count, time, offset)

    def _wait(self, seq: int, data: bytes, length: int, ack: int, time: int, offset: int) -> None:
        known = self.waiting.get(seq)
        if known is not None and known[1] >= length:
            return
        self.waiting[seq] = data, length, ack, time, offset
        self.waiting_octets += len(data)
        late = self.peer if self._too_early(ack) else self
        late.patience -= 1
        if len(self.waiting) > WAITING_SEGMENTS or self.waiting_octets > WAITING_OCTETS:
            self.skip()
        elif late.patience <= 0 and late is not self:
            late.skip(ack, time, offset)

    def step(self) -> bool:
        """Deliver one segment that has waited long enough, if there is one."""
        assert self.next is not None
        if self.next not in self.waiting and not self._overlapping():
            return False
        data, length, ack, time, offset = self.waiting[self.next]
        if self._too_early(ack):
            return False
        del self.waiting[self.next]
        self.waiting_octets -= len(data)
        self._deliver(data, length, time, offset)
        return True

    def _overlapping(self) -> bool:
        """Cut what waits and began before the next octet to what is new."""
        assert self.next is not None
        for seq in list(self.waiting):
            behind = (self.next - seq) & _MASK
            if 0 < behind < _HALF:
                data, length, ack, time, offset = self.waiting.pop(seq)
                self.waiting_octets -= len(data)
                if behind < length:
                    self.waiting[self.next] = data[behind:], length - behind, ack, time, offset
                    self.waiting_octets += len(data[behind:])
                    return True
        return False

    def skip(self, acknowledged: int | None = None, time: int = 0, offset: int = 0) -> None:
        """Give up what is missing before the first segment that waits, or was acknowledged."""
        expected = self.next or 0
        ends = {seq: (seq - expected) & _MASK for seq in self.waiting}
        if acknowledged is not None:
            ends.setdefault(acknowledged, (acknowledged - expected) & _MASK)
        if not ends:
            return
        first = min(ends, key=lambda seq: ends[seq])
        if first in self.waiting:
            _, _, _, time, offset = self.waiting[first]
        self.patience = PATIENCE
        if ends[first]:
            self._lose(ends[first], time, offset)
            self.next = first
        else:
            # It waits for the other side, which has nothing more.
            data, length, _, time, offset = self.waiting.pop(first)
            self.waiting_octets -= len(data)
            self._deliver(data, length, time, offset)
        self.flow.release()

    def first_waiting(self) -> int:
        """The offset of the record of the first waiting segment; -1 without one."""
        return min((waiting[4] for waiting in self.waiting.values()), default=-1)


class Flow:
    """One connection; `whole` if its beginning was captured: then `client` has opened it."""

    __slots__ = ("backward", "client", "finished", "forward", "key", "number", "server", "whole")

    def __init__(self, number: int, key: bytes, whole: bool) -> None:
        half = (len(key) - 4) // 2
        source = address_text(key[:half], int.from_bytes(key[-4:-2], "big"))
        destination = address_text(key[half:-4], int.from_bytes(key[-2:], "big"))
        self.number = number
        self.key = key
        self.whole = whole
        self.client, self.server = source, destination
        self.forward = FlowDirection(self, source)
        self.backward = FlowDirection(self, destination)
        self.forward.peer, self.backward.peer = self.backward, self.forward
        self.finished: Callable[[], None] = lambda: None

    def turn_round(self) -> None:
        """Swap client and server, which were taken for each other."""
        self.client, self.server = self.server, self.client
        self.forward, self.backward = self.backward, self.forward

    def stalled(self, direction: FlowDirection, ack: int) -> bool:
        """Whether a segment of that side that comes in order must wait all the same."""
        if self.forward.waiting or self.backward.waiting:
            return True
        expected = direction.peer.next
        return expected is None or 0 < (ack - expected) & _MASK < _HALF

    def release(self) -> None:
        """Deliver the segments that need not wait any longer."""
        one, other = self.forward, self.backward
        while (one.waiting and one.step()) or (other.waiting and other.step()):
            pass

    def finish(self) -> None:
        """Nothing more comes: deliver what waits, with its gaps."""
        while self.forward.waiting or self.backward.waiting:
            sides = [side for side in (self.forward, self.backward) if side.waiting]
            min(sides, key=FlowDirection.first_waiting).skip()
        self.finished()


def reversed_key(key: bytes) -> bytes:
    """The key of the other direction."""
    half = (len(key) - 4) // 2
    return key[half:-4] + key[:half] + key[-2:] + key[-4:-2]


class TcpReassembler:
    """Takes records, opens flows, and feeds their directions."""

    def __init__(self, opened: Callable[[Flow], None], problems: Problems) -> None:
        self.packets = 0
        self.flows = 0
        self._opened = opened
        self._problems = problems
        self._network = Network(problems)
        self._directions: dict[bytes, FlowDirection] = {}
        self._recent: OrderedDict[bytes, None] = OrderedDict()

    def direction(self, key: bytes) -> FlowDirection | None:
        """The direction of a connection that is open, by its key."""
        return self._directions.get(key)

    def feed(self, record: Record) -> None:
        """Take one record."""
        time, link, data, _, offset = record
        self.packets += 1
        if link == _ETHERNET and len(data) >= _USUAL_LENGTH:
            kind, version, total, fragment, protocol, key, seq, ack, words, flags = _USUAL(data)
            if (
                version == 0x45
                and kind == 0x0800
                and protocol == TCP
                and total
                and not fragment & 0x3FFF
            ):
                head = (words >> 2) & 0x3C
                length = total - 20 - head
                direction = self._directions.get(key)
                if direction is not None and direction.next == seq and not flags & _ENDS:
                    if length <= 0:
                        return
                    payload = data[34 + head : 14 + total]
                    if len(payload) == length and not direction.flow.stalled(direction, ack):
                        direction.next = (seq + length) & _MASK
                        direction.take(payload, time, offset)
                        return
                payload = data[34 + head : 14 + total]
                self._segment(key, seq, ack, flags, payload, length, time, offset)
                return
        self._unusual(link, data, time, offset)

    def _unusual(self, link: int, data: bytes, time: int, offset: int) -> None:
        found = self._network.segment(link, data, offset)
        if found is None:
            return
        addresses, segment, length = found
        if len(segment) < 14:
            self._problems.add("network", offset, "a TCP header is cut short")
            return
        ports, seq, ack, words, flags = _TCP(segment)
        head = (words >> 4) * 4
        if head < 20 or head > length:
            self._problems.add("network", offset, f"a TCP header of {head} octets")
            return
        key = addresses + ports
        self._segment(key, seq, ack, flags, segment[head:], length - head, time, offset)

    def _segment(
        self,
        key: bytes,
        seq: int,
        ack: int,
        flags: int,
        data: bytes,
        length: int,
        time: int,
        offset: int,
    ) -> None:
        direction = self._directions.get(key)
        if flags & _SYN:
            self._begin(key, direction, seq, flags)
            return
        if direction is None:
            if length <= 0 or key in self._recent:
                return
            direction = self._open(key, whole=False)
        if length > 0:
            direction.receive(seq, data, length, ack, time, offset)
        if flags & (_FIN | _RST):
            self._end(direction, (seq + max(length, 0)) & _MASK, bool(flags & _RST))

    def _begin(self, key: bytes, direction: FlowDirection | None, seq: int, flags: int) -> None:
        """A SYN: a new connection, or the answer to one."""
        following = (seq + 1) & _MASK
        if direction is not None and direction.next not in (None, following):
            # The ports are used again.
            self._close(direction.flow)
            direction = None
        if direction is None:
            direction = self._open(key, whole=True)
            if flags & _ACK:
                direction.flow.turn_round()
        direction.next = following

    def _open(self, key: bytes, whole: bool) -> FlowDirection:
        self.flows += 1
        flow = Flow(self.flows, key, whole)
        forward = flow.forward
        self._directions[key] = forward
        self._directions[reversed_key(key)] = flow.backward
        self._recent.pop(key, None)
        self._recent.pop(reversed_key(key), None)
        self._opened(flow)
        if len(self._directions) > 2 * MAXIMUM_FLOWS:
            self._problems.add("flow", 0, "too many connections at once; the oldest is given up")
            self._close(next(iter(self._directions.values())).flow)
        return forward

    def _end(self, direction: FlowDirection, end: int, reset: bool) -> None:
        if direction.next == end:
            # The end takes a sequence number.
            direction.next = (end + 1) & _MASK
        direction.ended = True
        flow = direction.flow
        if reset or (flow.forward.ended and flow.backward.ended):
            self._close(flow)

    def _close(self, flow: Flow) -> None:
        for key in (flow.key, reversed_key(flow.key)):
            self._directions.pop(key, None)
            self._recent[key] = None
        while len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        flow.finish()

    def finish(self) -> None:
        """The capture is over."""
        for flow in {id(d.flow): d.flow for d in self._directions.values()}.values():
            flow.finish()
        self._directions.clear()
        self._network.finish()
