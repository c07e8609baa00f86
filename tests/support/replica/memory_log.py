"""An engine in memory, with the faults that real ones have."""

from collections.abc import Callable
from typing import TypeVar

from rpcqm.base.completion import Completion
from rpcqm.store.errors import ReplicationError
from rpcqm.store.replication import (
    Absent,
    Appended,
    LogBounds,
    Present,
    Refused,
    Trimmed,
    Unknown,
)

T = TypeVar("T")
ELSEWHERE = "wrong last sequence"
TIMEOUT = "no answer"


class MemoryReading:
    """Delivers what is there, and what comes."""

    def __init__(
        self,
        after: int,
        deliver: Callable[[bytes], None],
        failed: Callable[[ReplicationError], None],
    ) -> None:
        self.after = after
        self.deliver = deliver
        self.failed = failed
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


class MemoryLog:
    """What all nodes of a test see, each by a view of its own.

    `later` calls back once the method that was called has returned.
    """

    def __init__(self, later: Callable[[Callable[[], None]], object]) -> None:
        self.later = later
        self.first = 1
        self.records: list[bytes] = []
        self.full = False
        self.readings: list[MemoryReading] = []
        self.reports: dict[str, bytes] = {}

    @property
    def last(self) -> int:
        return self.first - 1 + len(self.records)

    def put(self, after: int, record: bytes) -> bool:
        """Append as the leader does."""
        if after != self.last:
            return False
        self.records.append(record)
        self.later(self.push)
        return True

    def push(self) -> None:
        for reading in self.readings:
            while not reading.stopped and reading.after < self.last:
                if reading.after + 1 < self.first:
                    reading.stopped = True
                    reading.failed(ReplicationError("The log was trimmed."))
                    break
                record = self.records[reading.after + 1 - self.first]
                reading.after += 1
                reading.deliver(record)


class MemoryEngine:
    """The engine as one node sees it, with the faults of its connection.

    `lost` is what becomes of each next append: "request" does not get there, "answer" gets there
    but is not answered, "late" gets there when `land` is called. While `cut` its leader is one that
    is cut off: it says that the log ends elsewhere, and shows what is old.
    """

    def __init__(self, log: MemoryLog) -> None:
        self.log = log
        self.lost: list[str] = []
        self.cut = False
        self.appends: list[tuple[int, bytes]] = []
        self._late: list[tuple[int, bytes]] = []
        self._seen = 0

    def land(self) -> None:
        """What was given up gets there after all."""
        late, self._late = self._late, []
        for after, record in late:
            self.log.put(after, record)

    def _answer(self, value: T) -> Completion[T]:
        outcome: Completion[T] = Completion()
        self.log.later(lambda: outcome.succeed(value))
        return outcome

    def append(self, after: int, record: bytes) -> Completion[Appended | Unknown | Refused]:
        self.appends.append((after, record))
        lost = self.lost.pop(0) if self.lost else ""
        answer: Appended | Unknown | Refused
        if lost == "late":
            self._late.append((after, record))
        if self.cut:
            answer = Unknown(ELSEWHERE)
        elif lost in ("request", "late"):
            answer = Unknown(TIMEOUT)
        elif self.log.full:
            answer = Refused("the log is full")
        elif not self.log.put(after, record):
            answer = Unknown(ELSEWHERE)
        else:
            answer = Unknown(TIMEOUT) if lost == "answer" else Appended()
        return self._answer(answer)

    def look(self, number: int) -> Completion[Present | Absent | Trimmed]:
        seen: Present | Absent | Trimmed = Absent()
        if not self.cut:
            self._seen = self.log.last
        if number < self.log.first:
            seen = Trimmed()
        elif number <= self._seen:
            seen = Present(self.log.records[number - self.log.first])
        return self._answer(seen)

    def read(
        self,
        after: int,
        deliver: Callable[[bytes], None],
        failed: Callable[[ReplicationError], None],
    ) -> MemoryReading:
        reading = MemoryReading(after, deliver, failed)
        self.log.readings.append(reading)
        self.log.later(self.log.push)
        return reading

    def bounds(self) -> Completion[LogBounds]:
        size = sum(map(len, self.log.records))
        return self._answer(LogBounds(self.log.first, self.log.last, size))

    def trim(self, before: int) -> Completion[None]:
        del self.log.records[: max(0, before - self.log.first)]
        self.log.first = max(self.log.first, before)
        return self._answer(None)

    def report(self, member: str, report: bytes) -> Completion[None]:
        self.log.reports.pop(member, None)
        if report:
            self.log.reports[member] = report
        return self._answer(None)

    def reports(self) -> Completion[dict[str, bytes]]:
        return self._answer(dict(self.log.reports))
