"""Texts say what they mean: some phrases make every reader stop, and are not written."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import rpcqm

PACKAGE = Path(rpcqm.__file__).parent
ROOT = PACKAGE.parent
RIDDLES = re.compile(r"\b(?i:what is|for|if it is) none\b")


def riddles_of(text: str) -> list[str]:
    return RIDDLES.findall(" ".join(text.split()))


def texts_of(source: str) -> Iterator[str]:
    """The comments, and the strings: docstrings, and sentences for users."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(text)):
                yield text


@pytest.mark.parametrize(
    "text", ['The proxy, "" for none.', "None for\n    none.", "Raises ValueError if it is none."]
)
def test_a_riddle_is_found(text: str) -> None:
    assert riddles_of(text)


@pytest.mark.parametrize(
    "text", ["What is None stays None.", "for nonempty queues", "none of them"]
)
def test_another_text_is_no_riddle(text: str) -> None:
    assert not riddles_of(text)


def test_no_text_of_the_code_is_a_riddle() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {text.strip()}"
        for path in PACKAGE.rglob("*.py")
        for text in texts_of(path.read_text())
        if riddles_of(text)
    }
    assert not found


def test_no_page_has_a_riddle() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    assert pages
    assert not [page.name for page in pages if riddles_of(page.read_text())]
