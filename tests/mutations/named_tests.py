"""Whether the test that a mutation names is there, found without importing it."""

import ast
from collections.abc import Iterator
from functools import cache

from tests.mutations.data import Mutation, MutationError
from tests.mutations.names import ROOT


def require_test(mutation: Mutation) -> None:
    """MutationError if the file of the mutation's test has no such test."""
    file, *names = mutation.test.partition("[")[0].split("::")
    if not names or "::".join(names) not in _tests_of(file):
        raise MutationError(f"there is no test {mutation.test}")


@cache
def _tests_of(file: str) -> frozenset[str]:
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    return frozenset(_names(ast.parse(path.read_text("utf-8")).body))


def _names(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement.name
        elif isinstance(statement, ast.ClassDef):
            yield from (f"{statement.name}::{name}" for name in _names(statement.body))
