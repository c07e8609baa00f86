"""One connection: what each side sends, in order, whatever the order in which it was captured.

Each of the two directions hands its octets to a `take` callable and what was not captured to `gap`,
which the opener of the flow sets.
"""

from collections.abc import Callable

from rpcqm.capture.file.beginning import Beginning
from rpcqm.capture.file.network import address_text

Take = Callable[[bytes, int, int], None]
"""Octets, the time of their segment in nanoseconds, and the offset of its record."""
Gap = Callable[[int, int, int], None]
"""How many octets are missing, time, offset."""

WAITING_SEGMENTS = 512
WAITING_OCTETS = 1 << 22
"""More waiting segments, or octets, than this prove that the missing one was not captured:
no window of TCP that is used in practice has room for more."""
PATIENCE = 256
"""How many segments may wait for octets that they acknowledge, before those count as lost."""
NEAR = 1 << 24
"""Sequence numbers of one connection are no farther apart than this where one is late."""

_MASK = 0xFFFFFFFF
_HALF = 1 << 31


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
        "fin",
        "first",
        "flow",
        "gap",
        "late",
        "late_at",
        "lost",
        "next",
        "patience",
        "peer",
        "sender",
        "start",
        "take",
        "waiting",
        "waiting_octets",
    )

    peer: "FlowDirection"

    def __init__(self, flow: "Flow", sender: str) -> None:
        self.flow = flow
        self.sender = sender
        self.next: int | None = None
        self.start: int | None = None
        self.first: int | None = None
        self.fin: int | None = None
        self.take: Take = _ignore
        self.gap: Gap = _ignore_gap
        self.waiting: dict[int, Waiting] = {}
        self.waiting_octets = 0
        self.patience = PATIENCE
        self.lost = self.late = self.late_at = 0

    def receive(self, seq: int, data: bytes, length: int, ack: int, time: int, offset: int) -> None:
        """A segment that is not simply the next one."""
        following = self.begin_at(seq)
        if ack:
            self.peer.begin_at(ack)
        ahead = (seq - following) & _MASK
        if ahead >= _HALF:
            seen = (1 << 32) - ahead
            if self.first is not None and 0 < (self.first - seq) & _MASK < NEAR and length > 1:
                # What has been handed on already comes behind it.
                self.late, self.late_at = self.late + length, self.late_at or offset
            if seen >= length:
                return
            seq, data, length, ahead = following, data[seen:], length - seen, 0
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
        self.pass_end()
        if data:
            self.take(data, time, offset)
        if len(data) < length:
            self._lose(length - len(data), time, offset)

    def begin_at(self, seq: int) -> int:
        """The octets begin there, unless that is known already; where the next ones begin."""
        if self.next is None:
            self.next = self.first = seq
        return self.next

    def pass_end(self) -> None:
        """The end takes a sequence number, once all before it is there."""
        if self.fin is not None and self.next == self.fin:
            self.next = (self.fin + 1) & _MASK

    @property
    def is_whole(self) -> bool:
        """Whether all that is known to have been sent has been handed on."""
        if self.fin is None or self.next is None:
            return not self.waiting
        return not self.waiting and (self.next - self.fin) & _MASK < _HALF

    def may_begin(self, following: int) -> bool:
        """Whether an opening with that number behind it is that of this connection."""
        if self.start is not None:
            return self.start == following
        return self.first is None or (self.first - following) & _MASK < NEAR

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
    """One connection; `whole` if its beginning was captured: then `client` has opened it.

    `carries` tells that it is one that is read.
    """

    __slots__ = (
        "backward",
        "beginning",
        "carries",
        "client",
        "ending",
        "finished",
        "forward",
        "key",
        "number",
        "reset",
        "server",
        "whole",
    )

    def __init__(self, number: int, key: bytes) -> None:
        half = (len(key) - 4) // 2
        source = address_text(key[:half], int.from_bytes(key[-4:-2], "big"))
        destination = address_text(key[half:-4], int.from_bytes(key[-2:], "big"))
        self.number = number
        self.key = key
        self.whole = False
        self.client, self.server = source, destination
        self.forward = FlowDirection(self, source)
        self.backward = FlowDirection(self, destination)
        self.forward.peer, self.backward.peer = self.backward, self.forward
        self.beginning: Beginning[FlowDirection] | None = Beginning()
        self.carries = self.ending = self.reset = False
        self.finished: Callable[[], None] = lambda: None

    def turn_round(self) -> None:
        """Swap client and server, which were taken for each other."""
        self.client, self.server = self.server, self.client
        self.forward, self.backward = self.backward, self.forward

    def stalled(self, direction: FlowDirection, ack: int) -> bool:
        """Whether a segment of that side that comes in order must wait all the same."""
        if self.forward.waiting or self.backward.waiting or self.ending:
            return True
        expected = direction.peer.next
        return expected is None or 0 < (ack - expected) & _MASK < _HALF

    # The beginning.

    def open(self, direction: FlowDirection, following: int, ack: int | None) -> None:
        """One side opens the connection, or answers its opening, which acknowledges something."""
        if direction.start == following:
            return
        direction.start = following
        if direction.next == direction.first:
            # What was acknowledged may be behind the first octets, which come later.
            direction.next = direction.first = following
        if ack is not None:
            direction.peer.begin_at(ack)
        if self.beginning is not None and not self.whole:
            self.whole = True
            if (direction is self.forward) is (ack is not None):
                self.turn_round()
        if direction.peer.next is not None:
            self.begin()

    def receive(
        self,
        direction: FlowDirection,
        seq: int,
        data: bytes,
        length: int,
        ack: int,
        time: int,
        offset: int,
    ) -> None:
        """A segment with octets; the first ones are held until it is clear where they begin."""
        if self.beginning is None:
            direction.receive(seq, data, length, ack, time, offset)
        elif self.beginning.add(direction, seq, data, length, ack, time, offset):
            self.begin()

    def begin(self) -> None:
        """Begin with the first of the segments that are held."""
        held, self.beginning = self.beginning, None
        if held is None:
            return
        for direction in (self.forward, self.backward):
            first = held.first_of(direction, direction.peer)
            if first is not None:
                direction.begin_at(first)
        for direction, seq, data, length, ack, time, offset in held.segments:
            direction.receive(seq, data, length, ack, time, offset)

    # The end.

    def end(self, direction: FlowDirection, end: int, reset: bool) -> None:
        """One side ends what it sends, or both."""
        self.ending, self.reset = True, self.reset or reset
        if direction.fin is None:
            direction.fin = end
        direction.pass_end()

    @property
    def has_ended(self) -> bool:
        """Whether neither side sends anything further."""
        return self.reset or None not in (self.forward.fin, self.backward.fin)

    @property
    def is_over(self) -> bool:
        """Whether the connection has ended, and nothing of it is missing."""
        whole = self.forward.is_whole and self.backward.is_whole
        return self.has_ended and self.beginning is None and whole

    def release(self) -> None:
        """Deliver the segments that need not wait any longer."""
        one, other = self.forward, self.backward
        while (one.waiting and one.step()) or (other.waiting and other.step()):
            pass

    def finish(self) -> None:
        """Nothing more comes: deliver what waits, with its gaps."""
        self.begin()
        while self.forward.waiting or self.backward.waiting:
            sides = [side for side in (self.forward, self.backward) if side.waiting]
            # What is in order waits for the other side only: the hole there is what is lost.
            holed = [side for side in sides if side.next not in side.waiting]
            min(holed or sides, key=FlowDirection.first_waiting).skip()
        self.finished()


def reversed_key(key: bytes) -> bytes:
    """The key of the other direction."""
    half = (len(key) - 4) // 2
    return key[half:-4] + key[:half] + key[-2:] + key[-4:-2]
