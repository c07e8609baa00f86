"""No link of the documentation leads nowhere: neither to a file nor to a heading in it."""

import re
from pathlib import Path

import pytest

from tests.support.cli.documents import PAGES, ROOT, prose

OTHERS = (ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")
ALL = (*PAGES, *OTHERS)
_LINK = re.compile(r"\[[^\]\n]*(?:\n[^\]\n]*)?\]\(([^)\s]+)\)")
_HEADING = re.compile(r"(?m)^#+ (.*)$")


def links(page: Path) -> list[str]:
    """Where a page points to."""
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page)))


def anchors(page: Path) -> set[str]:
    """What `#…` can name in a page."""
    return {_anchor(heading) for heading in _HEADING.findall(prose(page))}


def _anchor(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link} leads to no file"
        if anchor:
            assert anchor in anchors(target), f"{link} leads to no heading"


def test_the_index_names_every_page() -> None:
    named = {link.partition("#")[0] for link in links(ROOT / "docs" / "README.md")}
    pages = {page.name for page in PAGES if page.parent.name == "docs"} - {"README.md"}
    assert pages - named == set()


def test_every_page_is_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    ahead = [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page not in reached:
            reached.add(page)
            names = {link.partition("#")[0] for link in links(page)}
            ahead += [(page.parent / name).resolve() for name in names if name.endswith(".md")]
    assert set(ALL) - reached == set()
