"""The last hour of a queue manager: a sample every ten seconds, in a ring.

A sample reads a few totals that are kept anyway, so that it costs a timer and a microsecond. A
timer each second tells how late the loop comes.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from rpcqm.base.clock import Timer
from rpcqm.base.told import Moment
from rpcqm.qm.engine import QueueManagerEngine
from rpcqm.qm.message_counts import ARRIVED, GONE

SAMPLE_EVERY = 10_000
"""Milliseconds."""
LOOK_EVERY = 1_000

POINTS = 360
"""Points of the history that an overview tells.

An hour of them.

Bound `overview.points` [points]: the oldest one is forgotten.
"""

FAILED_LOGONS = ("rpc.authentications_failed", "http.logons_failed")
"""Counters of logons that have failed, by any protocol."""


@dataclass(frozen=True, slots=True)
class Point:
    """The state at a time, and the rates since the point before."""

    time: Moment
    in_per_second: float
    out_per_second: float
    messages: int


@dataclass(frozen=True, slots=True)
class _Sample:
    time: int
    moment: int
    arrived: int
    gone: int
    messages: int
    failed_logons: int


class History:
    """Takes samples from `start` to `stop`."""

    def __init__(self, engine: QueueManagerEngine) -> None:
        self._clock, self._timers, self._store = engine.clock, engine.timers, engine.store
        self._samples: deque[_Sample] = deque([self._sample()], maxlen=POINTS + 1)
        self._lags = engine.store.metrics.histogram("loop", "lag")
        self._timer: Timer | None = None
        self._due = 0

    def start(self) -> None:
        """Take samples at intervals."""
        self._due = self._clock.monotonic() + LOOK_EVERY
        self._timer = self._timers.call_later(LOOK_EVERY, self._look)

    def stop(self) -> None:
        """Take no more samples."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        moment = self._clock.monotonic()
        self._lags.add(max(moment - self._due, 0) * 1_000_000)
        if moment - self._samples[-1].moment >= SAMPLE_EVERY:
            self._samples.append(self._sample())
        self.start()

    def _sample(self) -> _Sample:
        counts: Mapping[str, int] = self._store.metrics.counts
        return _Sample(
            self._clock.now(),
            self._clock.monotonic(),
            counts[ARRIVED],
            sum(counts[name] for name in GONE),
            self._store.total.count,
            sum(counts[name] for name in FAILED_LOGONS),
        )

    def points(self) -> tuple[Point, ...]:
        """The last hour, the oldest point first."""
        return tuple(_point(before, after) for before, after in pairwise(self._samples))

    def now(self) -> Point:
        """The state now; its rates are those since the last sample but one."""
        before = self._samples[-2] if len(self._samples) > 1 else self._samples[-1]
        return _point(before, self._sample())

    def failed_logons(self) -> int:
        """The number of failed logons within the hour."""
        return self._sample().failed_logons - self._samples[0].failed_logons


def _point(before: _Sample, after: _Sample) -> Point:
    seconds = max(after.moment - before.moment, 1) / 1000
    return Point(
        after.time,
        round((after.arrived - before.arrived) / seconds, 3),
        round((after.gone - before.gone) / seconds, 3),
        after.messages,
    )
