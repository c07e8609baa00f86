"""docs/peers.md: whatever it says of a peer is held by a test, or by a script of findings/."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "peers.md"
FINDINGS = ROOT / "findings"
_ROW = re.compile(r"^\| (?!What it does|---)(.+) \| (.+) \|$", re.M)
_HOLDER = re.compile(r"`(findings/[\w-]+\.sh|(?:unit|integration|interop)/[\w/]+\.py)(?:::(\w+))?`")


def rows() -> list[tuple[str, str]]:
    """What is said, and what holds it."""
    found = _ROW.findall(PAGE.read_text("utf-8"))
    assert len(found) > 30
    return found


def test_every_row_names_what_holds_it_and_nothing_else() -> None:
    for said, held in rows():
        assert _HOLDER.sub("", held).strip(", ") == "", said
        assert _HOLDER.search(held), said


def test_what_holds_a_row_is_there() -> None:
    for _, held in rows():
        for path, name in _HOLDER.findall(held):
            place = ROOT / path if path.startswith("findings/") else ROOT / "tests" / path
            text = place.read_text("utf-8")
            assert not name or re.search(rf"^(?:    )?(?:async )?def {name}\(", text, re.M), name


def test_every_finding_is_listed_and_told_to_peers() -> None:
    """By the table of findings/README.md, and by a row of the page."""
    listed = re.findall(
        r"^\| \[(.+)\]\((.+)\) \|", (FINDINGS / "README.md").read_text("utf-8"), re.M
    )
    scripts = sorted(path.name for path in FINDINGS.glob("*.sh"))
    assert listed == [(name, name) for name in scripts]
    held = "".join(held for _, held in rows())
    assert [name for name in scripts if f"`findings/{name}`" not in held] == []
