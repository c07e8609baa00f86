"""Write into the data where what has moved is now, and leave all else of its text as it is."""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutations.data import Mutation, MutationError, mutation_of
from tests.mutations.running import require_place

AT = re.compile(r'^at = "([^"]*)"', re.MULTILINE)


@dataclass(slots=True)
class Moves:
    """A sentence for each place that was written anew, and for each that was not found."""

    told: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def follow(self, directory: Path) -> None:
        """Look for all mutations of the files of a directory, and change those files."""
        for path in sorted(directory.glob("*.toml")):
            text = path.read_text("utf-8")
            tables = tomllib.loads(text).get("mutation", [])
            mutations = [mutation_of(table, path) for table in tables]
            lines = list(AT.finditer(text))
            if [line[1] for line in lines] != [mutation.at for mutation in mutations]:
                self.lost.append(f"{path.name}: give each `at` a line of its own")
                continue
            changed = self._changed(text, lines, mutations)
            if changed != text:
                path.write_text(changed, "utf-8")

    def _changed(self, text: str, lines: list[re.Match[str]], mutations: list[Mutation]) -> str:
        places = [self._place(mutation) for mutation in mutations]
        for line, place in zip(reversed(lines), reversed(places), strict=True):
            text = text[: line.start(1)] + place + text[line.end(1) :]
        return text

    def _place(self, mutation: Mutation) -> str:
        try:
            place = require_place(mutation)
        except MutationError as error:
            self.lost.append(f"{mutation}: {error}")
            return mutation.at
        if place != mutation.at:
            self.told.append(f"{mutation.at} is now {place}")
        return place
