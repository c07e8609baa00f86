"""What each bench has found of a commit, kept until the page is written of all of them."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from figures import Figure
from machine import Machine
from measuring import Outcome


@dataclass(frozen=True, slots=True)
class Kept:
    """A directory with a file for each bench that has ended."""

    directory: Path
    machine: Machine

    def load(self, bench: str) -> Outcome | None:
        """What was found before on this machine; None when the bench is to be run."""
        path = self.directory / f"{bench}.json"
        if not path.exists():
            return None
        outcome = decoded(json.loads(path.read_text("utf-8")))
        return outcome if outcome.machine == self.machine else None

    def save(self, outcome: Outcome) -> None:
        """Keep it; a run that is interrupted here leaves the file before it as it was."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"{outcome.bench}.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps(asdict(outcome), indent=1) + "\n", "utf-8")
        new.rename(path)


def decoded(value: dict[str, Any]) -> Outcome:
    """An outcome from its JSON."""
    figures = tuple(
        Figure(**{**each, "profile": tuple(each["profile"])}) for each in value["figures"]
    )
    return Outcome(**{**value, "figures": figures, "machine": Machine(**value["machine"])})
