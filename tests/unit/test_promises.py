"""What SECURITY.md and docs/hardening.md promise: each names tests, and these are there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECURITY, HARDENING = ROOT / "SECURITY.md", ROOT / "docs" / "hardening.md"
_TEST = re.compile(r"\[(test_\w+)\]\(([^)\s]+\.py)\)")
_SECTION = re.compile(r"(?m)^## (.+)$")
WITHOUT = {"8. Keeping it so"}
"""Sections of hardening.md that say what to do, and promise nothing."""


def sections(page: Path) -> dict[str, str]:
    """The text of each section by its heading."""
    _, *parts = _SECTION.split(page.read_text("utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


@cache
def functions_of(path: Path) -> frozenset[str]:
    """The names of the functions of a module of tests."""
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def named(page: Path) -> list[tuple[str, Path]]:
    found = _TEST.findall(page.read_text("utf-8"))
    return [(name, (page.parent / where).resolve()) for name, where in found]


@pytest.mark.parametrize("page", [SECURITY, HARDENING], ids=lambda page: page.name)
def test_every_test_that_a_promise_names_is_there(page: Path) -> None:
    missing = [name for name, path in named(page) if name not in functions_of(path)]
    assert missing == []
    assert named(page)


def test_every_promise_names_a_test() -> None:
    text = sections(SECURITY)["What is promised"]
    _, *promises = re.split(r"(?m)^- ", text)
    assert len(promises) >= 15
    assert [each for each in promises if not _TEST.search(each)] == []


def test_every_row_of_the_table_of_borders_names_a_test() -> None:
    rows = [
        line
        for line in sections(SECURITY)["Who is trusted with what"].splitlines()
        if line.startswith("| ") and not line.startswith("| Who ")
    ]
    assert len(rows) >= 12
    assert [row for row in rows if not _TEST.search(row)] == []


@pytest.mark.parametrize("section", sections(HARDENING))
def test_every_section_of_hardening_names_tests(section: str) -> None:
    assert bool(_TEST.search(sections(HARDENING)[section])) is (section not in WITHOUT)
