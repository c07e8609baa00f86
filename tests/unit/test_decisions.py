"""The numbers of decisions: what code and tests cite is written down, each number once."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "decisions.md"
_CITED = re.compile(r"\bG[1-9][0-9]{0,2}\b(?=[\s,;.:)])")


def defined() -> set[str]:
    """Numbers at the beginning of a row, and those that the paragraph about G44 to G51 names."""
    text = DOCUMENT.read_text("utf-8")
    rows = re.findall(r"^\| (G\d+) \|", text, re.M)
    assert len(rows) == len(set(rows))
    return {*rows, *(f"G{number}" for number in range(44, 52) if f"G{number}," in text)}


def sources() -> Iterator[Path]:
    for directory in ("rpcqm", "idl", "tests"):
        for suffix in ("py", "idl"):
            yield from (ROOT / directory).rglob(f"*.{suffix}")


def test_every_decision_up_to_the_first_release_is_there() -> None:
    assert {f"G{number}" for number in range(1, 78)} <= defined()


@pytest.mark.parametrize("number", ["G63", "G64", "G65", "G66", "G67", "G68", "G69", "G70", "G71"])
def test_what_was_decided_last_is_cited_where_it_is_done(number: str) -> None:
    assert any(number in path.read_text("utf-8") for path in (ROOT / "rpcqm").rglob("*.py"))


def test_every_number_that_is_cited_is_explained() -> None:
    explained = defined()
    unknown = {
        f"{path.relative_to(ROOT)}: {number}"
        for path in sources()
        for number in _CITED.findall(path.read_text("utf-8"))
        if number not in explained and path != Path(__file__)
    }
    assert unknown == set()
