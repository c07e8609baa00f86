"""What an outsider knows of a run: what was sent, what was read, and what went wrong when."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rpcqm.codec.packet.types import MessageIdentifier

MACHINE = "machine"
"""The quota of a whole queue manager, as the scope of a trouble."""
DEATH = "death"


@dataclass
class Letter:
    """A message and where it was sent to; times are milliseconds since 1970.

    `doubtful`: its sender died, or ran out of room, before it was told how that had ended.
    `reach` and `received` are seconds, None for ever.
    """

    number: int
    source: str
    targets: tuple[str, ...]
    sent: int
    transactional: bool = False
    express: bool = False
    acknowledged: bool = False
    dead_letter: bool = False
    journal: bool = False
    traced: bool = False
    reach: int | None = None
    received: int | None = None
    refused: bool = False
    doubtful: bool = False
    identifier: MessageIdentifier | None = None

    @property
    def body(self) -> bytes:
        return b"%d" % self.number

    @property
    def deadline(self) -> int | None:
        """When it expires on its way."""
        return self._after(self.reach, self.received)

    @property
    def last_read(self) -> int | None:
        """When it expires wherever it is."""
        return self._after(self.received)

    def _after(self, *seconds: int | None) -> int | None:
        bounds = [each for each in seconds if each is not None]
        return (self.sent // 1000 + min(bounds)) * 1000 if bounds else None


@dataclass
class Trouble:
    """Something that stands in the way, at a machine; `end` is None while it lasts."""

    machine: str
    scope: str
    begin: int
    end: int | None = None


@dataclass
class Reading:
    """A message that an application has received; `certain` when it was told so."""

    path: str
    number: int
    time: int
    certain: bool = True


@dataclass
class Ledger:
    """All of it, in order."""

    letters: dict[int, Letter] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)

    def begin(self, machine: str, scope: str, now: int) -> Trouble:
        trouble = Trouble(machine, scope, now)
        self.troubles.append(trouble)
        return trouble

    def going_on(self, machine: str) -> Iterator[Trouble]:
        """The troubles of a machine that have not ended."""
        return (each for each in self.troubles if each.machine == machine and each.end is None)

    def was(self, machine: str, scope: str, begin: int, end: int | None = None) -> bool:
        """Whether there was such a trouble in that time, whose end is the run's by default."""
        return any(
            each.machine == machine
            and each.scope == scope
            and (each.end is None or each.end >= begin)
            and (end is None or each.begin <= end)
            for each in self.troubles
        )
