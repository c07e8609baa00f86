"""Appends what a primary writes, one record at a time, and keeps its lease alive meanwhile."""

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
    """Another node writes to the log now: whatever was not acknowledged has no answer."""


class _Write:
    """Rows, or a sign of life, in the bodies of its records."""

    def __init__(self, kind: RecordKind, bodies: list[bytes]) -> None:
        self.kind = kind
        self.bodies = bodies
        self.done = 0
        self.outcome: Completion[Place] = Completion()


class Appender:
    """The writer of the epoch in `end`, which is where the log ends; a `GroupLog`.

    `fenced` is called once, if another one has taken over. While a record is in doubt nothing else
    is appended and nobody is answered.
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
        """Records that the log has of this writer."""
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
        """Why it is not known what became of the record on its way; "" if it may be well."""
        return "" if self._settling is None else self._settling.doubt

    @property
    def is_writing(self) -> bool:
        """Whether rows are on their way, of which the log may have a part."""
        return any(write.kind is RecordKind.ROWS for write in self._writes)

    @property
    def waited(self) -> int:
        """Milliseconds for which the record on its way has had no outcome; 0 if there is none."""
        return 0 if self._settling is None else self.lease.boottime() - self._begun

    def append(self, body: bytes) -> Completion[Place]:
        """Append the rows of a group; raises ReplicationError if nothing can be appended."""
        if self._error is not None:
            raise self._error
        return self._add(_Write(RecordKind.ROWS, parts_of(body)))

    def hand_over(self, body: bytes) -> Completion[Place]:
        """Append that this writer stops on purpose, as the last thing that it does."""
        if self._error is not None:
            raise self._error
        return self._add(_Write(RecordKind.SWITCH_OVER, [body]))

    def stop(self) -> None:
        """Append nothing more, and hold the lease no longer; what is on its way stays open."""
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
        else:  # what was appended took longer than the lease
            self._give_sign()

    def _wait_for_work(self) -> None:
        """Give a sign of life if nothing else is written for a third of the lease."""
        self._idle = self._timers.call_later(self.lease.length // 3, self._give_sign)

    def _give_sign(self) -> None:
        self._add(_Write(RecordKind.NOTHING, [b""]))

    def _end(self, fenced: Fenced) -> None:
        """Another one writes now: nobody who waits is answered by us."""
        self.stop()
        self._error = FencedError("Another node has taken over: the log has a record of its own.")
        writes, self._writes = self._writes, deque()
        for write in writes:
            write.outcome.fail(self._error)
        self._fenced(fenced.by)
