"""TCP reassembly: segments in whatever order they were captured → the octets of connections."""

import struct
from collections import OrderedDict
from collections.abc import Callable

from rpcqm.capture.file.flow import NEAR, Flow, FlowDirection, reversed_key
from rpcqm.capture.file.network import Network
from rpcqm.capture.file.problems import Problems
from rpcqm.capture.file.record import Record
from rpcqm.capture.frames.numbers import TCP, LinkType

MAXIMUM_FLOWS = 1 << 16
"""How many connections are followed at once, so that a forged capture cannot fill memory."""
_RECENT = 1024
"""How many closed connections are remembered, so that late segments do not reopen them."""
_MOST_OPENED = 4
"""So many connections may be opened while one waits for octets that were sent before its end."""

_FIN, _SYN, _RST, _ACK = 1, 2, 4, 16
_ENDS = _FIN | _SYN | _RST
_MASK = 0xFFFFFFFF

# Ethernet, IPv4 without options, TCP: what nearly every frame is.
_USUAL = struct.Struct("!12xHBxH2xHxB2x12sIIBB").unpack_from
_USUAL_LENGTH = 54
_TCP = struct.Struct("!4sIIBB").unpack_from
_ETHERNET = int(LinkType.ETHERNET)


class TcpReassembler:
    """Takes records, opens flows, and feeds their directions."""

    def __init__(self, opened: Callable[[Flow], None], problems: Problems) -> None:
        self.packets = 0
        self.flows = 0
        self._opened = opened
        self._problems = problems
        self._network = Network(problems)
        self._directions: dict[bytes, FlowDirection] = {}
        self._recent: OrderedDict[bytes, tuple[int | None, int | None]] = OrderedDict()
        self._ending: dict[Flow, int] = {}

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
            self._begin(key, direction, seq, ack, flags)
            return
        if direction is None:
            if length <= 0 or self._is_late(key, seq):
                return
            direction = self._open(key)
        flow = direction.flow
        if length > 0:
            flow.receive(direction, seq, data, length, ack, time, offset)
        if flags & (_FIN | _RST):
            flow.end(direction, (seq + max(length, 0)) & _MASK, bool(flags & _RST))
        if flow.ending:
            self._end(flow)

    def _is_late(self, key: bytes, seq: int) -> bool:
        """Whether a segment is of a connection that is closed, not of a new one."""
        if key not in self._recent:
            return False
        last, _ = self._recent[key]
        return last is None or (seq - last + NEAR) & _MASK < 2 * NEAR

    def _begin(
        self, key: bytes, direction: FlowDirection | None, seq: int, ack: int, flags: int
    ) -> None:
        """A SYN: a new connection, or the answer to one."""
        following = (seq + 1) & _MASK
        if direction is not None and not direction.may_begin(following):
            # The ports are used again.
            self._close(direction.flow)
            direction = None
        if direction is None:
            if following in self._recent.get(key, ())[1:]:
                # Of the connection that was closed: the capture has its frames several times.
                return
            direction = self._open(key)
        direction.flow.open(direction, following, ack if flags & _ACK else None)

    def _open(self, key: bytes) -> FlowDirection:
        for each in [each for each, n in self._ending.items() if n + _MOST_OPENED <= self.flows]:
            self._close(each)
        self.flows += 1
        flow = Flow(self.flows, key)
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

    def _end(self, flow: Flow) -> None:
        """Close what is over; what has ended before all of it is there waits for that."""
        if flow.is_over:
            self._close(flow)
        elif flow.has_ended:
            self._ending.setdefault(flow, self.flows)

    def _close(self, flow: Flow) -> None:
        self._ending.pop(flow, None)
        for direction, key in ((flow.forward, flow.key), (flow.backward, reversed_key(flow.key))):
            self._directions.pop(key, None)
            self._recent[key] = direction.next, direction.start
        while len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        self._finish(flow)

    def _finish(self, flow: Flow) -> None:
        flow.finish()
        for side in (flow.forward, flow.backward):
            if side.late and flow.carries:
                reason = f"{side.late} octets of {side.sender} come too late to be put in order"
                self._problems.add("order", side.late_at, reason)

    def finish(self) -> None:
        """The capture is over."""
        for flow in {id(d.flow): d.flow for d in self._directions.values()}.values():
            self._finish(flow)
        self._directions.clear()
        self._ending.clear()
        self._network.finish()
