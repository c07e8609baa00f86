"""docs/log-lines.md has every line that the program logs, and no other.

A line is a call of `_log` or `self._log`; its text is the first argument. Where that is a name,
the texts are in VARIABLE here.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEVELS = {"exception": "error"}
VARIABLE = {
    ("rpcqm/qm/standing_orders.py", "text"): {
        "still off the network, as somebody has ordered before this start",
        "still in maintenance, as somebody has ordered before this start",
    },
    ("rpcqm/qm/acknowledgement_queues.py", "event"): {
        "a message names a URL that srmp.receipts_to does not list",
        "too much waits in outgoing queues to strangers",
        "too many outgoing queues for acknowledgements to strangers",
    },
    ("rpcqm/rpc/connection.py", "line"): {
        "the protocol was broken",
        "a bind was refused",
        "an authentication failed",
        "a call was refused",
    },
    ("rpcqm/base/served_connections.py", "event"): {
        "a connection timed out",
        "a connection was given up",
    },
}
NOT_SHOWN = {"exc_info", "always", None}
"""Arguments of a line that are no members of it, and `**` for what the page says by hand."""
PAGE = (ROOT / "docs" / "log-lines.md").read_text("utf-8")
ROWS = {
    row[1]: (row[2], set(re.findall(r"`(\w+)`", row[3])))
    for row in re.finditer(r"(?m)^\| `([^`]+)` \| (\w+) \| ([^|]*)\|", PAGE)
    if row[2] in ("debug", "info", "warning", "error", "critical")
}


def lines() -> Iterator[tuple[str, str, set[str]]]:
    """Text, level and members of every line of the program that is not for debugging."""
    for path in sorted((ROOT / "rpcqm").rglob("*.py")):
        source = path.read_text("utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and _is_line(node):
                assert isinstance(node.func, ast.Attribute)
                members = {word.arg for word in node.keywords} - NOT_SHOWN
                for text in _texts(node.args[0], str(path.relative_to(ROOT))):
                    level = LEVELS.get(node.func.attr, node.func.attr)
                    yield text, level, {str(name) for name in members}


def _is_line(node: ast.Call) -> bool:
    function = node.func
    return (
        isinstance(function, ast.Attribute)
        and ast.unparse(function.value) in ("_log", "self._log")
        and function.attr != "debug"
    )


def _texts(node: ast.expr, path: str) -> set[str]:
    if isinstance(node, ast.Constant):
        return {str(node.value)}
    if isinstance(node, ast.IfExp):
        return _texts(node.body, path) | _texts(node.orelse, path)
    assert isinstance(node, ast.Name), f"{path}: the text of a line is {ast.unparse(node)}"
    return VARIABLE[path, node.id]


def test_every_line_is_described_with_its_level_and_members() -> None:
    found = list(lines())
    assert len(found) > 50
    for text, level, members in found:
        assert text in ROWS, f"docs/log-lines.md lacks `{text}`"
        assert ROWS[text][0] == level, text
        assert members <= ROWS[text][1], text


def test_no_line_is_described_that_is_never_logged() -> None:
    assert set(ROWS) == {text for text, _, _ in lines()}


def test_the_texts_in_variables_are_those_of_the_program() -> None:
    for (path, _), texts in VARIABLE.items():
        source = (ROOT / path).read_text("utf-8")
        assert all(f'"{text}"' in source for text in texts)


def test_members_of_a_line_are_logged() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "rpcqm").rglob("*.py"))
    for _, members in ROWS.values():
        assert all(re.search(rf"\b{name}=|\"{name}\"", source) for name in members - {"epm"})


def test_no_member_of_a_line_takes_the_place_of_one_that_every_line_has() -> None:
    section = PAGE.partition("## What every line has")[2].partition("\n## ")[0]
    own = set(re.findall(r"(?m)^\| `(\w+)` \|", section))
    assert own >= {"level", "event", "timestamp"}
    for text, _, members in lines():
        assert not members & own, text
