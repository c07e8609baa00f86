"""Where a capture is played, and what becomes of each thing that was played."""

from dataclasses import dataclass, field
from pathlib import Path

from rpcqm.capture.analysis import Exchange
from rpcqm.capture.replay.policy import Difference

SAME, DIFFERENT, SKIPPED = "same", "different", "skipped"


@dataclass(frozen=True, slots=True)
class Server:
    """Where a capture is played: `machine` and `address` stand for the captured ones in names.

    `socket` is the local one, if there is any.
    """

    host: str
    endpoint_mapper_port: int = 135
    machine: str = "."
    address: str = "127.0.0.1"
    binary_port: int = 1801
    http_port: int = 80
    socket: Path | None = None


@dataclass(slots=True)
class Outcome:
    """What became of one call or packet."""

    call: Exchange
    verdict: str = SKIPPED
    reason: str = ""
    differences: list[Difference] = field(default_factory=list)
    duration_ms: float | None = None


@dataclass(slots=True)
class Result:
    """All outcomes in the order of the requests; `seconds` is how long the playing took."""

    outcomes: list[Outcome]
    ignored: dict[str, int]
    seconds: float

    def count(self, verdict: str) -> int:
        return sum(outcome.verdict == verdict for outcome in self.outcomes)

    @property
    def clean(self) -> bool:
        return self.count(DIFFERENT) == 0
