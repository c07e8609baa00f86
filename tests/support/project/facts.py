"""Compares the facts in docstrings and comments of two states of the code, for a change of words.

`python -m tests.support.project.facts COMMIT [ROOM…]` names each definition of `rpcqm/` whose
citations differ between COMMIT and the working tree: specifications with their sections, opnums,
decisions, status codes, and the errors that its text names. A definition is a module, a class or a
function by its qualified name; comments count to the innermost definition around them. It ends
with status 1 if any differ.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "rpcqm"
FACT = re.compile(
    r"\[[A-Z0-9]+(?:-[A-Z0-9]+)*\](?: (?:[A-Z]\.)?\d+(?:\.\d+)*)?"  # [MS-MQRR] 3.1.4.10, [C706]
    r"|\b\d+(?:\.\d+){2,}\b"  # a further section behind the first
    r"|\b[Oo]pnum \d+"
    r"|\bG\d+\b"
    r"|\b(?:MQ|STATUS|RPC|HRESULT|E|S|DISP)_[A-Z0-9_]+\b"
    r"|\b(?:RFC|ISO) ?\d+\b"
    r"|\b[A-Z]\w*(?:Error|Fault|Exception|Refusal|Warning)\b"
)

Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def facts_of(source: str) -> dict[str, frozenset[str]]:
    """The facts in the texts of each definition, by its qualified name; "" is the module."""
    spans = list(_spans(ast.parse(source), ""))
    facts: dict[str, set[str]] = {name: set() for name, _, _ in spans}
    for line, text in _texts(source):
        name = next(name for name, first, last in reversed(spans) if first <= line <= last)
        facts[name] |= {" ".join(fact.split()) for fact in FACT.findall(" ".join(text.split()))}
    return {name: frozenset(found) for name, found in facts.items()}


def _spans(node: Definition, name: str) -> Iterator[tuple[str, int, int]]:
    """The definition with its first and last line, then those within it."""
    if isinstance(node, ast.Module):
        yield name, 1, sys.maxsize
    else:
        yield name, node.lineno, node.end_lineno or node.lineno
    for child in _definitions_in(node):
        yield from _spans(child, f"{name}.{child.name}".lstrip("."))


def _definitions_in(
    node: ast.AST,
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """The outermost definitions within, also those under a condition."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        else:
            yield from _definitions_in(child)


def _texts(source: str) -> Iterator[tuple[int, str]]:
    """The comments and docstrings, also those of attributes, with their first lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def differences(before: str, after: str) -> Iterator[str]:
    """A line for each definition whose facts differ; new and deleted definitions are left out."""
    was, now = facts_of(before), facts_of(after)
    for name in sorted(was.keys() & now.keys()):
        lost, added = sorted(was[name] - now[name]), sorted(now[name] - was[name])
        if lost or added:
            yield f"{name or '(module)'}: lost {lost}, added {added}"


def _changed(commit: str, rooms: list[str]) -> list[Path]:
    """The Python files of the rooms that differ from a commit and are in both states."""
    command = ["git", "diff", "--name-only", "--diff-filter=M", "--relative", commit, "--"]
    run = subprocess.run(
        [*command, *(f"{PACKAGE}/{room}" for room in rooms)],
        capture_output=True,
        text=True,
        check=True,
    )
    return [Path(name) for name in run.stdout.split() if name.endswith(".py")]


def _at(commit: str, path: Path) -> str:
    """The file's text at a commit."""
    command = ["git", "show", f"{commit}:./{path}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main(arguments: list[str]) -> int:
    """Compare each changed file of the rooms, or of all; returns the status of the process."""
    commit, rooms = arguments[0], arguments[1:] or [""]
    found = [
        f"{path}: {line}"
        for path in _changed(commit, rooms)
        for line in differences(_at(commit, path), path.read_text())
    ]
    print("\n".join(found) or "The facts of all texts are the same.")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("Usage: python -m tests.support.project.facts COMMIT [ROOM…]")
    sys.exit(main(sys.argv[1:]))
