"""Every bound is written down, and tested under its name."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rpcqm.config import Configuration
from rpcqm.config.limits_reference import MARK, PACKAGE, Bound, bounds
from rpcqm.config.schema import settings

TESTS = Path(__file__).parents[1]
DOCUMENT = TESTS.parent / "docs" / "limits.md"


def marked(path: Path) -> Iterator[str]:
    """The bounds that the tests of one file name."""
    text = path.read_text("utf-8")
    if "mark.bound(" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.bound":
            yield from (ast.literal_eval(argument) for argument in node.args)


MARKED = {name for path in TESTS.rglob("test_*.py") for name in marked(path)}


@pytest.mark.parametrize("bound", bounds(), ids=lambda bound: bound.name)
def test_every_bound_is_reached_and_exceeded_by_a_test(bound: Bound) -> None:
    assert bound.name in MARKED


def test_what_tests_name_are_bounds() -> None:
    assert {bound.name for bound in bounds()} >= MARKED


def test_every_setting_of_the_limits_is_a_bound() -> None:
    known = {setting.key for setting in settings() if setting.kind is not bool}
    named = [bound.name for bound in bounds()]
    assert len(set(named)) == len(named)
    assert {key for key in known if key.startswith("limits.")} <= set(named)
    assert {bound.name for bound in bounds() if bound.is_setting} <= known


def test_every_text_beside_a_constant_that_names_a_bound_is_read() -> None:
    reader = PACKAGE / "config" / "limits_reference.py"
    sources = (path.read_text("utf-8") for path in PACKAGE.rglob("*.py") if path != reader)
    declared = {name for source in sources for name in re.findall(rf"{MARK}([^`]*)`", source)}
    assert declared <= {bound.name for bound in bounds()}


def test_every_bound_says_what_it_bounds_and_what_happens_beyond() -> None:
    for bound in bounds():
        assert bound.text.endswith("."), bound
        assert re.fullmatch(r"[a-z].*[^.]", bound.beyond), bound
        assert bound.value(Configuration()) >= 0
        assert bound.is_setting or bound.unit


def test_the_document_has_every_bound_with_its_default() -> None:
    text = DOCUMENT.read_text("utf-8")
    for bound in bounds():
        assert f"| `{bound.name}` | {bound.value(Configuration()):,}" in text, bound
