"""The table of evidence: each claimed point, the test that proves it, the mutation it catches.

docs/evidence.md says what it is for; `scripts/mutate --table FILE` writes it.
"""

import csv
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.mutations.data import Mutation, read_mutations
from tests.mutations.names import ROOT

POINTS = ROOT / "rpcqm" / "conformance.csv"

# By what the tests of a folder reach the product; the first that fits.
DOORS = {
    "tests/interop": "a foreign peer",
    "tests/unit/binary/test_own_keys": "a file",
    "tests/unit/binary/test_protection": "octets",
    "tests/unit/binary/test_routing": "a function",
    "tests/unit/binary/test_sequence": "a function",
    "tests/unit/capture/test_formats": "a file",
    "tests/unit/codec/test_export_file": "a file",
    "tests/unit/test_accounts": "a file",
    "tests/unit/test_directory_file": "a file",
    "tests/unit/test_file_bounds": "a file",
    "tests/unit/srmp/test_outgoing": "requests of a queue manager",
    "tests/crash": "a restart",
    "tests/integration": "a client of a server process",
    "tests/unit/interfaces": "a call over a connection",
    "tests/unit/client": "the client, to a server",
    "tests/unit/binary": "packets of a session",
    "tests/unit/qm": "an event of the queue manager",
    "tests/unit/store": "the store, opened again",
    "tests/unit/codec": "octets",
    "tests": "a function",
}

PREFACE = """\
# The table of evidence

Written by `scripts/mutate --table` from the claims of the tests and from tests/mutations;
docs/evidence.md says how to read it.

"""

RULES = """\
What our own pages promise, where no specification has a point for it.

"""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table."""

    point: str
    section: str
    name: str
    mutation: Mutation | None


class Claims:
    """A plugin of pytest that writes which tests claim which points, and runs none."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        claims = {
            item.nodeid: [
                str(point) for marker in item.iter_markers("conformance") for point in marker.args
            ]
            for item in session.items
        }
        Path(session.config.getoption("--claims")).write_text(json.dumps(claims), "utf-8")

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        parser.addoption("--claims")


def claiming_files() -> list[str]:
    """The test files that claim something."""
    return sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if "conformance" in path.read_text("utf-8")
    )


def read_claims() -> dict[str, list[str]]:
    """The points that each test claims, as pytest collects them in a process of its own."""
    with TemporaryDirectory() as folder:
        target = Path(folder) / "claims"
        program = (
            "import sys, pytest; from tests.mutations.evidence import Claims;"
            "sys.exit(pytest.main(sys.argv[1:], plugins=[Claims()]))"
        )
        options = ["--collect-only", "-qq", "-p", "no:cacheprovider", f"--claims={target}"]
        subprocess.run(
            [sys.executable, "-c", program, *options, *claiming_files()],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        claims: dict[str, list[str]] = json.loads(target.read_text("utf-8"))
    return claims


def rows(claimed: Iterable[str], mutations: Iterable[Mutation]) -> Iterator[tuple[str, list[Row]]]:
    """The documents, each with the rows of its claimed points in the order of the list."""
    wanted = set(claimed)
    by_point: dict[str, Mutation] = {}
    for mutation in sorted(mutations, key=is_inside):
        for point in mutation.points:
            by_point.setdefault(point, mutation)
    documents: dict[str, list[Row]] = {}
    with POINTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["id"] in wanted:
                found = Row(row["id"], row["section"], row["name"], by_point.get(row["id"]))
                documents.setdefault(row["doc"], []).append(found)
    yield from sorted(documents.items())


def door(mutation: Mutation) -> str:
    """By what its test reaches the product."""
    if mutation.door:
        return mutation.door
    return next(told for folder, told in DOORS.items() if mutation.test.startswith(folder))


def is_inside(mutation: Mutation) -> bool:
    """Whether its test only sees what a function makes, so that any other test says more."""
    return door(mutation) in (DOORS["tests/unit/codec"], DOORS["tests"])


def code(text: str) -> str:
    """A cell that shows a piece of code on one line."""
    line = " ".join(text.split()).replace("|", "\\|")
    fence = "``" if "`" in line else "`"
    return f"{fence}{line}{fence}" if line else "nothing"


def cells(row: Row) -> list[str]:
    found = row.mutation
    told = [row.point, row.section, row.name.replace("|", "\\|")]
    return [*told, *(_proof(found) if found else ("", "open", ""))]


def _proof(found: Mutation) -> tuple[str, str, str]:
    """The cells of the door, the test and the change."""
    path, _, test = found.test.partition("::")
    change = f"{code(found.old)} → {code(found.new)} in {code(found.at)}"
    return door(found), code(f"{Path(path).stem}: {test.split('[')[0]}"), change


def table(claims: Mapping[str, Sequence[str]], mutations: Sequence[Mutation]) -> str:
    """The text of the table, a chapter for each document."""
    claimed = {point for points in claims.values() for point in points}
    text = [PREFACE]
    for document, found in rows(claimed, mutations):
        covered = sum(row.mutation is not None for row in found)
        text.append(
            f"## {document}\n\n{covered} of {len(found)} claimed points have a mutation.\n\n"
        )
        text.append("| Point | Section | Name | Door | Test | Mutation |\n" + "|---" * 6 + "|\n")
        text += [f"| {' | '.join(cells(row))} |\n" for row in found]
        text.append("\n")
    return "".join([*text, *_rules(mutations)]).rstrip() + "\n"


def _rules(mutations: Iterable[Mutation]) -> Iterator[str]:
    """The rules that no document has."""
    yield f"## Rules of our own\n\n{RULES}"
    yield "| Rule | Door | Test | Mutation |\n" + "|---" * 4 + "|\n"
    for mutation in mutations:
        if mutation.rule:
            yield f"| {' | '.join([mutation.rule, *_proof(mutation)])} |\n"


def write_table(target: Path) -> list[str]:
    """Write the table to a file; the mistakes in the data, which it cannot show."""
    claims, mutations = read_claims(), read_mutations()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(table(claims, mutations), "utf-8")
    return mistakes(claims, mutations)


def uncovered(claims: Mapping[str, Sequence[str]], mutations: Iterable[Mutation]) -> set[str]:
    """The claimed points without a mutation."""
    denied = {point for mutation in mutations for point in mutation.points}
    return {point for points in claims.values() for point in points} - denied


def mistakes(claims: Mapping[str, Sequence[str]], mutations: Sequence[Mutation]) -> list[str]:
    """Why the data does not fit the claims; empty if it does."""
    wrong = []
    for mutation in mutations:
        tests = [node for node in claims if node.split("[")[0] == mutation.test.split("[")[0]]
        tests = [node for node in tests if node == mutation.test or "[" not in mutation.test]
        claimed = {point for node in tests for point in claims[node]}
        if not claimed.issuperset(mutation.points):
            wrong.append(f"{mutation.test} does not claim {', '.join(mutation.points)}")
    wrong += [f"{point} needs a mutation" for point in sorted(uncovered(claims, mutations))]
    return wrong
