"""Appends a primary's writes, one record at a time, and keeps its lease alive."""

from collections import deque
from collections.abc import Callable

from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.completion import Completion
from rpcqm.replica.lease import Lease
from rpcqm.replica.settling import Settling
from rpcqm.store.errors import ReplicationError
from rpcqm.store.migration import FORMAT
from rpcqm.store.replication import (
    Appended,
    Fenced,
    LogRecord,
    Place,
    RecordKind,
    ReplicatedLog,
    parts_of,
    place_of,
)


class FencedError(ReplicationError):
    """Another node writes to the log now: unacknowledged writes have no answer."""


class _Write:
    """Rows, or a sign of life, in the bodies of its records."""

    def __init__(self, kind: RecordKind, bodies: list[bytes]) -> None:
        self.kind = kind
        self.bodies = bodies
        self.done = 0
        self.outcome: Completion[Place] = Completion()


class Appender:
    """The writer of the epoch in `end`, the log's last place; a `GroupLog`.

    `fenced` is called once, if another writer has taken over. While a record is in doubt no other
    one is appended and nobody is answered.
    """

    def __init__(
        self,
        engine: ReplicatedLog,
        end: Place,
        lease: Lease,
        clock: Clock,
        timers: Timers,
        fenced: Callable[[bytes], None],
    ) -> None:
        self.end = end
        self.lease = lease
        self.appended = 0
        """The number of records that this writer has appended."""
        self._engine = engine
        self._clock = clock
        self._timers = timers
        self._fenced = fenced
        self._writes: deque[_Write] = deque()
        self._settling: Settling | None = None
        self._octets = b""
        self._begun = 0
        self._idle: Timer | None = None
        self._error: ReplicationError | None = None
        self._wait_for_work()

    @property
    def doubt(self) -> str:
        """Why the outcome of the present record is uncertain; "" while nothing has gone wrong."""
        return "" if self._settling is None else self._settling.doubt

    @property
    def is_writing(self) -> bool:
        """Whether rows are under way, of which the log may have a part."""
        return any(write.kind is RecordKind.ROWS for write in self._writes)

    @property
    def waited(self) -> int:
        """Milliseconds for which the present record has had no outcome; 0 without one."""
        return 0 if self._settling is None else self.lease.boottime() - self._begun

    def append(self, body: bytes) -> Completion[Place]:
        """Append the rows of a group; raises ReplicationError if nothing can be appended."""
        if self._error is not None:
            raise self._error
        return self._add(_Write(RecordKind.ROWS, parts_of(body)))

    def hand_over(self, body: bytes) -> Completion[Place]:
        """Append, as the last record, that this writer stops on purpose."""
        if self._error is not None:
            raise self._error
        return self._add(_Write(RecordKind.SWITCH_OVER, [body]))

    def stop(self) -> None:
        """Append nothing more, and give up the lease; the present record stays open."""
        self._error = ReplicationError("The log is not written to any more.")
        self.lease.end()
        if self._settling is not None:
            self._settling.stop()
        if self._idle is not None:
            self._idle.cancel()

    def _add(self, write: _Write) -> Completion[Place]:
        self._writes.append(write)
        if self._settling is None:
            self._next()
        return write.outcome

    def _next(self) -> None:
        """Begin the next record of the first write."""
        if self._idle is not None:
            self._idle.cancel()
        write, end = self._writes[0], self.end
        record = LogRecord(
            write.kind,
            end.incarnation,
            end.epoch,
            end.number + 1,
            end.digest,
            FORMAT,
            self._clock.now(),
            write.bodies[write.done],
            write.done + 1,
            len(write.bodies),
        )
        self._octets = record.encode()
        self._begun = self.lease.boottime()
        self._settling = Settling(self._engine, self._timers, end.number, self._octets)
        after = place_of(record, self._octets)
        self._settling.start().add_done_callback(lambda outcome: self._settled(outcome, after))

    def _settled(self, outcome: Completion[Appended | Fenced], after: Place) -> None:
        found = outcome.result()
        if isinstance(found, Fenced):
            self._end(found)
            return
        self.end = after
        self.appended += 1
        self.lease.renew(self._begun)
        self._settling = None
        write = self._writes[0]
        write.done += 1
        if write.done == len(write.bodies):
            self._writes.popleft()
            write.outcome.succeed(after)
        if self._settling is None and self._error is None:
            self._go_on()

    def _go_on(self) -> None:
        if self._writes:
            self._next()
        elif self.lease.held:
            self._wait_for_work()
        else:  # the append took longer than the lease
            self._give_sign()

    def _wait_for_work(self) -> None:
        """Append a sign of life after a third of the lease without other writes."""
        self._idle = self._timers.call_later(self.lease.length // 3, self._give_sign)

    def _give_sign(self) -> None:
        self._add(_Write(RecordKind.NOTHING, [b""]))

    def _end(self, fenced: Fenced) -> None:
        """Give up: another node writes now, and our waiting callers get no answer."""
        self.stop()
        self._error = FencedError("Another node has taken over: the log has a record of its own.")
        writes, self._writes = self._writes, deque()
        for write in writes:
            write.outcome.fail(self._error)
        self._fenced(fenced.by)
