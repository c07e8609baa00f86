"""Counters of events in the process, by name."""

from collections import Counter
from collections.abc import Mapping


class Metrics:
    """Named counters; `snapshot` gives them to an operator."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    @property
    def counts(self) -> Mapping[str, int]:
        """All counters as they are now, and 0 for any other name; not to be changed."""
        return self._counts

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
        """Count as at the time of a snapshot: what has happened since is taken back."""
        self._counts = Counter(before)

    def snapshot(self) -> dict[str, int]:
        return dict(self._counts)
