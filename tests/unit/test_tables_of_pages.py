"""Tables of pages: each row has as many cells as its head, or renderers drop what is beyond."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("findings/*.md")])


def cells(line: str) -> int:
    """The number of cells of a row; a pipe behind a backslash is text."""
    return len(re.split(r"(?<!\\)\|", line.strip())) - 2


def rows(text: str) -> Iterator[tuple[int, int, int]]:
    """(line, cells, cells of the table's head) of each row; blocks of code hold no tables."""
    head, in_code = None, False
    for number, line in enumerate(text.splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        if in_code or not line.startswith("|"):
            head = None
            continue
        head = head or cells(line)
        yield number, cells(line), head


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_row_of_a_table_has_as_many_cells_as_its_head(page: Path) -> None:
    wrong = [number for number, found, head in rows(page.read_text("utf-8")) if found != head]
    assert wrong == []


@pytest.mark.parametrize(
    ("row", "count"), [("| G1 | one | two |", 3), ("| G1 | one |", 2), (r"| `a \| b` | one |", 2)]
)
def test_cells_are_counted_as_renderers_do(row: str, count: int) -> None:
    assert cells(row) == count
    assert [found for _, found, _ in rows(f"| a | b |\n|---|---|\n{row}\n")] == [2, 2, count]
