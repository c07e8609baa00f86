"""Counters of events in the process by name, and histograms of durations."""

from collections import Counter
from collections.abc import Callable, Mapping
from time import perf_counter_ns

stopwatch = perf_counter_ns
"""Nanoseconds from an arbitrary point, for measuring durations."""


class Histogram:
    """Counts integers by how many bits they have, at the cost of a list's element.

    `counts[n]` are those below 2**n and not below 2**(n-1); `total` is the sum of all.
    """

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * 65
        self.total = 0

    def add(self, value: int) -> None:
        """Count a value, which is not negative and has 64 bits at most."""
        self.counts[value.bit_length()] += 1
        self.total += value

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)


class Metrics:
    """Named counters; `snapshot` gives them to an operator.

    `histograms` are by name, which are words such as ("rpc", "qmcomm2", "rpc_QMGetObjectSecurity").
    `gauges` are functions, called when somebody reads the metrics.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self.histograms: dict[tuple[str, ...], Histogram] = {}
        self.gauges: dict[str, Callable[[], float]] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        """All counters as they are now, and 0 for any other name; not to be changed."""
        return self._counts

    def histogram(self, *name: str) -> Histogram:
        """The histogram of that name, which is made when it is first asked for."""
        return self.histograms.setdefault(name, Histogram())

    def gauge(self, name: str) -> float:
        """The present value of a gauge, 0 if there is no gauge of that name."""
        ask = self.gauges.get(name)
        return 0 if ask is None else ask()

    def count(self, name: str, amount: int = 1) -> None:
        self._counts[name] += amount

    def of(self, subject: str) -> dict[str, int]:
        """The counters whose names are `subject.…`, by what follows the dot."""
        prefix = f"{subject}."
        counts = self._counts.items()
        return {name.removeprefix(prefix): n for name, n in counts if name.startswith(prefix)}

    def since(self, before: Mapping[str, int]) -> dict[str, int]:
        """What has been counted since a snapshot."""
        return dict(self._counts - Counter(before))

    def go_back(self, before: Mapping[str, int]) -> None:
        """Reset the counters to a snapshot: later events no longer count."""
        self._counts = Counter(before)

    def snapshot(self) -> dict[str, int]:
        return dict(self._counts)
