"""A standby: it applies the log, notices who writes, and takes over.

Silence makes it try, but no clock makes it succeed: the takeover is a record behind the last one
that it has applied, under the same condition as any other. If another record is there already, for
example an append that its writer had given up, the takeover is refused, and that record is applied
first.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rpcqm.base.clock import Clock, Timer, Timers
from rpcqm.base.completion import Completion
from rpcqm.replica.lease import Lease
from rpcqm.replica.settling import Settling
from rpcqm.store.database import Database
from rpcqm.store.errors import ReplicationError
from rpcqm.store.migration import FORMAT
from rpcqm.store.replay import Replay, last_takeover
from rpcqm.store.replication import (
    Appended,
    Fenced,
    LogRecord,
    Place,
    RecordKind,
    ReplicatedLog,
    place_of,
)

INSTANCE_SIZE = 16
LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Writer:
    """The node that takes over. Nodes are identified by the random `instance` of their data
    directories: two may have one name."""

    instance: bytes
    name: str

    def encode(self) -> bytes:
        return self.instance + self.name.encode()

    @classmethod
    def decode(cls, octets: bytes) -> "Writer":
        """Raises ReplicationError for other octets."""
        name = octets[INSTANCE_SIZE:]
        if len(octets) < INSTANCE_SIZE or len(name) > LONGEST_NAME:
            raise ReplicationError("names no writer")
        return cls(octets[:INSTANCE_SIZE], name.decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class SwitchOver:
    """A writer has stopped, and asks another one to take over: the one named `to`, or any if that
    is empty."""

    writer: Writer
    to: str

    def encode(self) -> bytes:
        to = self.to.encode()
        return bytes([len(to)]) + to + self.writer.encode()

    @classmethod
    def decode(cls, octets: bytes) -> "SwitchOver":
        """Raises ReplicationError for other octets."""
        end = 1 + (octets[0] if octets else 0)
        return cls(Writer.decode(octets[end:]), octets[1:end].decode("utf-8", "replace"))


class Standby:
    """Follows a log with the database of a node, until it takes over or cannot go on.

    `took_over` is called with the log's end then: everything that was ever acknowledged is applied
    here, and no writer of an older epoch can append any more. `failed` is called with the reason
    for which the log cannot be followed any further. Nothing happens after either.

    `first` is the log's end when this one was started. If nobody has taken over up to there since
    it wrote itself, it need not wait: the writer to wait for is itself, and is gone.
    """

    def __init__(
        self,
        engine: ReplicatedLog,
        database: Database,
        itself: Writer,
        lease: Lease,
        clock: Clock,
        timers: Timers,
        took_over: Callable[[Place], None],
        failed: Callable[[ReplicationError], None],
        automatic: bool = True,
        first: int | None = None,
    ) -> None:
        self.writer: Writer | None = None
        """The present writer, by the last takeover that was read."""
        self.taken_over = 0
        """The time of that takeover, in milliseconds since 1970, by the writer's clock."""
        if (known := last_takeover(database)) is not None:
            self.writer, self.taken_over = Writer.decode(known.body), known.time
        self._engine = engine
        self._replay = Replay(database)
        self._itself = itself
        self._lease = lease
        self._clock = clock
        self._timers = timers
        self._took_over = took_over
        self._failed = failed
        self._automatic = automatic
        self._first = first
        self._promoted = self._stopped = False
        self._settling: Settling | None = None
        self._begun = 0
        self._heard = lease.boottime()
        self._timer: Timer | None = None
        self._reading = engine.read(self.end.number, self._deliver, self._fail)
        self._wait()
        timers.call_later(0, self._go_on_writing)

    @property
    def end(self) -> Place:
        """The end of the log as it was read and applied here."""
        return self._replay.end

    @property
    def is_between(self) -> bool:
        """Whether all parts of the last write have come."""
        return self._replay.is_between

    @property
    def latest(self) -> int:
        """The latest time of a writer, in milliseconds since 1970."""
        return self._replay.latest

    @property
    def silence(self) -> int:
        """Milliseconds since a record came."""
        return self._lease.boottime() - self._heard

    def promote(self) -> None:
        """Take over now, whoever writes."""
        self._promoted = True
        self._try()

    def stop(self) -> None:
        """Follow no more; a takeover under way may succeed, and then nobody writes."""
        self._stopped = True
        self._reading.stop()
        if self._settling is not None:
            self._settling.stop()
        if self._timer is not None:
            self._timer.cancel()

    def _deliver(self, octets: bytes) -> None:
        if self._stopped:
            return
        try:
            self._feed(octets)
        except ReplicationError as error:
            self._fail(error)
            return
        self._heard = self._lease.boottime()
        if self._promoted:
            self._try()
        self._go_on_writing()

    def _feed(self, octets: bytes) -> None:
        record = self._replay.feed(octets)
        if record.kind is RecordKind.TAKEOVER:
            self.writer, self.taken_over = Writer.decode(record.body), record.time
        elif record.kind is RecordKind.SWITCH_OVER and self._is_asked(
            SwitchOver.decode(record.body)
        ):
            self._timers.call_later(0, self._try)

    def _is_asked(self, order: "SwitchOver") -> bool:
        """Whether an order to take over is for this node."""
        if order.writer.instance == self._itself.instance:
            return False
        return not order.to or order.to == self._itself.name

    def _go_on_writing(self) -> None:
        """Take over once all is read, without waiting, if this node was the last writer."""
        if self._first is None or self.end.number < self._first:
            return
        self._first = None
        if self.writer is None or self.writer.instance == self._itself.instance:
            self._try()

    def _fail(self, error: ReplicationError) -> None:
        if not self._stopped:
            self.stop()
            self._failed(error)

    def _wait(self) -> None:
        """Check the silence when it may have lasted long enough."""
        left = max(1, self._lease.patience - self.silence)
        self._timer = self._timers.call_later(left, self._look)

    def _look(self) -> None:
        self._wait()
        if self._automatic and self.silence >= self._lease.patience:
            self._try()

    def _try(self) -> None:
        """Append a takeover behind the last applied record, unless one is under way."""
        if self._settling is not None or self._stopped:
            return
        end = self.end
        record = LogRecord(
            RecordKind.TAKEOVER,
            end.incarnation,
            end.epoch + 1,
            end.number + 1,
            end.digest,
            FORMAT,
            max(self._clock.now(), self.latest),
            self._itself.encode(),
        )
        octets = record.encode()
        self._begun = self._lease.boottime()
        self._settling = Settling(self._engine, self._timers, end.number, octets)
        place = place_of(record, octets)
        outcome = self._settling.start()
        outcome.add_done_callback(lambda found: self._settled(found, place, octets))

    def _settled(self, found: Completion[Appended | Fenced], place: Place, octets: bytes) -> None:
        self._settling = None
        if isinstance(found.result(), Fenced) or self.end.number > place.number:
            self._heard = self._lease.boottime()  # another node writes, or has written
            if self._promoted and self.end.number >= place.number:
                self._try()
            return
        if self.end.number < place.number:
            self._feed(octets)
        self.stop()
        self._lease.renew(self._begun)
        self._took_over(place)
