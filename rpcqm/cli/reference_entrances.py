"""The table of docs/architecture.md: which rooms use which entrance of `qm/messages`."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

_CLASS = "MessageEvents"
_CALLED = ("messages", "_messages")
"""What rooms call the events of messages."""
_OF_OTHERS = ("api", "cli", "client", "console", "pipeline", "testing", "triggers")
"""Rooms that may not know the queue manager, and call others so."""


def entrances_table(root: Path) -> str:
    """A row for each public method, with the modules that call it."""
    package = root / "rpcqm"
    methods = dict(_methods(package / "qm" / "messages.py"))
    used: dict[str, set[str]] = defaultdict(set)
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        if place.parts[0] in _OF_OTHERS or place == Path("qm/messages.py"):
            continue
        for name in _calls(path):
            used[name].add(f"`{place.with_suffix('')}`")
    rows = "".join(
        f"| `{name}` | {text} | {', '.join(sorted(used[name])) or '-'} |\n"
        for name, text in methods.items()
    )
    return f"| Entrance | | Used by |\n|---|---|---|\n{rows}"


def _methods(path: Path) -> Iterator[tuple[str, str]]:
    tree = ast.parse(path.read_text("utf-8"))
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    found = next(each for each in classes if each.name == _CLASS)
    for each in found.body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            text = (ast.get_docstring(each) or "").partition("\n")[0]
            yield each.name, text.replace("|", "\\|")


def _calls(path: Path) -> Iterator[str]:
    """The names that a module takes of what it calls `messages`."""
    for each in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(each, ast.Attribute):
            continue
        owner = each.value
        called = getattr(owner, "attr", getattr(owner, "id", ""))
        if called in _CALLED:
            yield each.attr
