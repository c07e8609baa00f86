"""docs/request-templates.md names where each step is: files that are there, and short."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "request-templates.md"
MOST_LINES = 400
"""A new reader reads the careful path; what stands beside it must not be as long."""


def named() -> Iterator[Path]:
    """The files of the tables' second column; those without a folder are in that of the last."""
    for row in re.findall(r"^\| [^|]+ \| (`[^|]+) \|", PAGE.read_text("utf-8"), re.M):
        folder = ROOT
        for name in re.findall(r"`([^`]+\.py)`", row):
            path = ROOT / name if "/" in name else folder / name
            folder = path.parent
            yield path


def test_each_file_that_the_page_names_is_there_and_short() -> None:
    found = {path: len(path.read_text("utf-8").splitlines()) for path in named()}
    assert len(found) > 25
    assert {path.name: lines for path, lines in found.items() if lines >= MOST_LINES} == {}
