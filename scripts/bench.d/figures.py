"""What a bench finds: figures of the rows that the catalogue names, and why some have none.

A row is measured by `attempt`, so that one which fails is told, and the others go on.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from catalogue import ROWS
from sampling import sampled

NOT_QUIET = 0.05
"""From this share of stolen processor time on a figure does not count."""

FAILED, UNMEASURED = "failed", "not measured"


class UnavailableError(RuntimeError):
    """A peer that is not on this machine: what is held against it is not measured."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One result: a ratio (or a number of ``unit``) and the target it is held against."""

    name: str
    value: float
    target: float | None = None
    unit: str = "times"
    at_most: bool = False
    note: str = ""
    unprotected: bool = False
    """Whether calls at level NONE were measured, which a setting has to allow."""
    stolen: float | None = None
    """Share of the processors' time that other machines took meanwhile, where it is known."""
    profile: tuple[str, ...] = ()
    """Where the time went, if the target is missed."""
    why: str = ""
    """Why there is no target."""
    missing: str = ""
    """Why there is no value: that the row failed, or was not measured, and the reason."""

    def explained(self, process: int, again: Callable[[], object]) -> "Figure":
        """With the profile of a process when the target is missed, of one more round."""
        return self if self.met else replace(self, profile=sampled(process, again))

    @property
    def quiet(self) -> bool:
        """Whether this machine had its processors for itself."""
        return (self.stolen or 0) <= NOT_QUIET

    @property
    def failed(self) -> bool:
        """Whether an error ended the row."""
        return self.missing.startswith(FAILED)

    @property
    def met(self) -> bool:
        """Whether the target is reached; a figure without one always is."""
        if self.missing:
            return False
        if self.target is None:
            return True
        return self.value <= self.target if self.at_most else self.value >= self.target


def figure(
    name: str,
    value: float,
    note: str = "",
    *,
    target: float | None = None,
    stolen: float | None = None,
) -> Figure:
    """The figure of a row of the catalogue; a target is given only where the run computes it."""
    row = ROWS[name]
    wanted = target if row.computed else row.target
    return Figure(
        name, value, wanted, row.unit, row.at_most, note, row.unprotected, stolen, why=row.why
    )


def without_value(name: str, missing: str) -> Figure:
    """A row that has nothing to show."""
    return replace(figure(name, 0.0), missing=missing)


def unmeasured(name: str, reason: str) -> Figure:
    """A row that was left out."""
    return without_value(name, f"{UNMEASURED}: {reason}")


def reason_of(error: Exception) -> str:
    """Why a row has no value: its peer is not here, or it failed."""
    if isinstance(error, UnavailableError):
        return f"{UNMEASURED}: {error}"
    return f"{FAILED}: {' '.join(f'{type(error).__name__}: {error}'.split())[:300]}"


def attempt(
    names: str | Iterable[str], measure: Callable[[], Figure | Iterable[Figure]]
) -> Iterator[Figure]:
    """Measure rows; those that an error keeps from having a figure say so, and nobody else."""
    left = [names] if isinstance(names, str) else list(names)
    try:
        found = measure()
        for each in [found] if isinstance(found, Figure) else found:
            left = [name for name in left if name != each.name]
            yield each
    except Exception as error:
        if not isinstance(error, UnavailableError):
            traceback.print_exc()
        yield from (without_value(name, reason_of(error)) for name in left)
