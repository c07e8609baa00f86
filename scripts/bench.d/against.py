"""Whether what is checked out is slower than another commit, by the processor time of its servers.

The same number of the same calls goes to servers of both, in turns. Before that each commit is
compared with itself, which shows how narrow the interval of the median is here: where 15 pairs are
not enough for NARROW, 45 are taken, and where these are not either, the row is not measurable.
"""

import statistics
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from against_loads import LOADS, Open
from checkouts import Checkout, checked_out, git, present
from figures import UnavailableError
from harness import BUILD, HERE, TRIAL
from intervals import interval

ROOT = HERE.parents[1]
FEW, MANY = (3, 6) if TRIAL else (15, 45)
NARROW = 0.03
BLOCK = 5
"""Pairs with the same servers; then new ones are started, of which each has its own luck."""

NOT_SLOWER, SLOWER, NOT_MEASURABLE = "not slower", "slower", "not measurable"


@dataclass(frozen=True, slots=True)
class Compared:
    """The median of ratios, and where that of all there could be lies with 95 %."""

    ratio: float
    low: float
    high: float
    pairs: int

    @classmethod
    def of(cls, ratios: Sequence[float]) -> "Compared":
        return cls(statistics.median(ratios), *interval(ratios), len(ratios))

    @property
    def width(self) -> float:
        return self.high - self.low

    @property
    def text(self) -> str:
        return f"{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f}, {self.pairs} pairs)"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of a row."""

    row: str
    verdict: str
    both: Compared | None
    own: tuple[Compared, Compared]

    @property
    def text(self) -> str:
        both = f" {self.both.text};" if self.both is not None else ""
        other, this = self.own
        return f"{self.row}:{both} {self.verdict} (with itself: {other.text}, {this.text})"


class Rounds(Protocol):
    """Takes pairs; each ratio is processor time for an operation over that of the other."""

    def own(self, pairs: int) -> tuple[list[float], list[float]]:
        """The other commit against itself, and this one against itself."""

    def both(self, pairs: int) -> list[float]:
        """This commit over the other."""


def judged(row: str, rounds: Rounds) -> Verdict:
    """Take as many pairs as are needed, and say what they show."""
    other, this = rounds.own(FEW)
    if not narrow(other, this):
        more = rounds.own(MANY - FEW)
        other, this = other + more[0], this + more[1]
    own = Compared.of(other), Compared.of(this)
    if not narrow(other, this):
        return Verdict(row, NOT_MEASURABLE, None, own)
    ratios = rounds.both(len(other))
    if not narrow(ratios) and len(ratios) < MANY:
        ratios += rounds.both(MANY - len(ratios))
    both = Compared.of(ratios)
    return Verdict(row, said(both, own), both, own)


def narrow(*ratios: Sequence[float]) -> bool:
    return all(Compared.of(each).width <= NARROW for each in ratios)


def said(both: Compared, own: Sequence[Compared]) -> str:
    """Slower is what is farther above 1 than a commit is from itself."""
    noise = max(1.0, *(max(each.high, 1 / each.low) for each in own))
    if both.low > noise:
        return SLOWER
    if both.width > NARROW and both.high > noise:
        return NOT_MEASURABLE
    return NOT_SLOWER


class Servers:
    """Rounds with servers of two commits, on the same processor."""

    def __init__(self, load: Open, other: Checkout, this: Checkout) -> None:
        self._load, self._other, self._this = load, other, this

    def own(self, pairs: int) -> tuple[list[float], list[float]]:
        other: list[float] = []
        this: list[float] = []
        for count in blocks(pairs):
            with self._started(self._other, self._this, self._other, self._this) as costs:
                for number in range(count):
                    seen = in_turn(costs, number)
                    other.append(seen[0] / seen[2])
                    this.append(seen[1] / seen[3])
        return other, this

    def both(self, pairs: int) -> list[float]:
        ratios = []
        for count in blocks(pairs):
            with self._started(self._this, self._other) as costs:
                for number in range(count):
                    this, other = in_turn(costs, number)
                    ratios.append(this / other)
        return ratios

    def _started(self, *checkouts: Checkout) -> "Started":
        return Started(self._load, checkouts)


class Started:
    """New servers, each of which has carried out a round that does not count."""

    def __init__(self, load: Open, checkouts: Sequence[Checkout]) -> None:
        self._load, self._checkouts = load, checkouts
        self._stack = ExitStack()

    def __enter__(self) -> list[Callable[[], float]]:
        with ExitStack() as stack:
            root = Path(stack.enter_context(TemporaryDirectory(dir=BUILD)))
            costs = []
            for number, checkout in enumerate(self._checkouts):
                place = root / str(number)
                place.mkdir()
                costs.append(stack.enter_context(self._load(checkout.environment, place)))
            for each in costs:
                each()
            self._stack = stack.pop_all()
        return costs

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def blocks(pairs: int) -> Iterator[int]:
    """So many pairs in blocks."""
    for start in range(0, pairs, BLOCK):
        yield min(BLOCK, pairs - start)


def in_turn(costs: Sequence[Callable[[], float]], number: int) -> list[float]:
    """One round of each, with another one first each time."""
    first = number % len(costs)
    order = [*range(first, len(costs)), *range(first)]
    seen = {each: costs[each]() for each in order}
    return [seen[each] for each in range(len(costs))]


def names() -> list[str]:
    """The rows that can be compared, and the benches that have some."""
    return sorted({*LOADS, *(row.partition("-")[0] for row in LOADS)})


def chosen(asked: Sequence[str]) -> list[str]:
    """The rows that are named, and those of benches that are named; all without a name."""
    return [
        row
        for row in LOADS
        if not asked or any(row == name or row.startswith(f"{name}-") for name in asked)
    ]


def compared(row: str, other: Checkout, this: Checkout) -> tuple[str, bool]:
    """What is said of a row, and whether that is good enough."""
    try:
        verdict = judged(row, Servers(LOADS[row], other, this))
    except UnavailableError as error:
        return f"{row}: not measured: {error}", True
    except Exception as error:  # the other rows are compared all the same
        traceback.print_exc()
        return f"{row}: failed: {error}", False
    return verdict.text, verdict.verdict != SLOWER


def main(commit: str, asked: Sequence[str]) -> int:
    """Compare what is checked out with a commit; 1 when a row is slower, or failed."""
    BUILD.mkdir(parents=True, exist_ok=True)
    said = []
    with (
        checked_out(ROOT, commit, BUILD / "against") as other,
        checked_out(ROOT, present(ROOT), BUILD / "against") as this,
    ):
        print(f"processor time of what is checked out ({this.commit}) over {other.commit}")
        if git(ROOT, "status", "--porcelain", "--untracked-files=no"):
            print("what is checked out has changes that are not committed; they count")
        for row in chosen(asked):
            print(f"  {row} …", flush=True)
            said.append(compared(row, other, this))
            print(f"  {said[-1][0]}", flush=True)
    print("\n".join(text for text, _ in said))
    return int(not all(good for _, good in said))
