"""Mutations: changes of the product that a named test must notice, kept as data.

Each `*.toml` beside this module has an array of tables `mutation`:

    points  the ids of conformance.csv that the mutation denies, or instead of them
    rule    a sentence of our own that it denies
    at      the qualified name of what is changed, from the room on: "qm.queues.QueueEvents.x"
    old     the expression, statements, keyword argument or entry of a dictionary to change
    new     what stands there instead
    nth     which of several equal places, from 1; without it there must be only one
    test    the node id of the test that fails then; without parameters it means all of them
    door    by what the test reaches the product, where its folder does not tell
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

DIRECTORY = Path(__file__).parent


class MutationError(Exception):
    """A mutation that cannot be applied, and why."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change, and the test that fails because of it."""

    points: tuple[str, ...]
    at: str
    old: str
    new: str
    test: str
    nth: int | None = None
    door: str | None = None
    rule: str = ""

    @property
    def denied(self) -> tuple[str, ...]:
        """What the mutation denies."""
        return self.points or (self.rule,)

    def __str__(self) -> str:
        return f"{', '.join(self.denied)}: {self.at}: {self.old!r} -> {self.new!r}"


NAMES = {field.name for field in fields(Mutation)}


def mutation_of(table: Mapping[str, object], path: Path) -> Mutation:
    """The mutation that a table of a file tells; MutationError if it lacks or invents a name."""
    unknown = table.keys() - NAMES
    denied = "points" if "points" in table else "rule"
    missing = {denied, "at", "old", "new", "test"} - table.keys()
    if unknown or missing:
        raise MutationError(f"{path.name}: {sorted(unknown | missing)} in {dict(table)}")
    points = table.get("points", [])
    assert isinstance(points, list)
    texts = {name: str(table[name]) for name in ("at", "old", "new", "test")}
    nth, door = table.get("nth"), table.get("door")
    assert nth is None or isinstance(nth, int)
    assert door is None or isinstance(door, str)
    rule = str(table.get("rule", ""))
    return Mutation(tuple(map(str, points)), **texts, nth=nth, door=door, rule=rule)


def read_mutations(directory: Path = DIRECTORY) -> list[Mutation]:
    """All mutations, in the order of the files' names."""
    return list(_read(sorted(directory.glob("*.toml"))))


def _read(paths: Iterable[Path]) -> Iterator[Mutation]:
    for path in paths:
        for table in tomllib.loads(path.read_text("utf-8")).get("mutation", []):
            yield mutation_of(table, path)
