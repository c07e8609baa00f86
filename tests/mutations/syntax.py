"""Find an expression by its syntax, in what a qualified name names, and put another there."""

import ast
import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.mutations.data import Mutation, MutationError
from tests.mutations.names import Definition, parsed, resolve

T = TypeVar("T")
# A place where an equal piece of syntax was found; it takes what is put there.
Place = Callable[[ast.AST], None]


@dataclass(frozen=True, slots=True)
class Mutated:
    """The changed source text of one module."""

    module: str
    path: Path
    source: str


def parse_piece(text: str) -> ast.expr | list[ast.stmt]:
    """An expression if the text is one, else statements; MutationError if it is neither."""
    with contextlib.suppress(SyntaxError):
        return ast.parse(text, mode="eval").body
    try:
        return ast.parse(text).body
    except SyntaxError as error:
        raise MutationError(f"no piece of Python: {text!r}") from error


def parse_entry(text: str) -> ast.Dict | None:
    """The text as an entry of a dictionary, `key: value`, in a dictionary of its own."""
    with contextlib.suppress(SyntaxError):
        piece = ast.parse(f"{{{text}}}", mode="eval").body
        if isinstance(piece, ast.Dict) and piece.keys:
            return piece
    return None


def same(left: ast.AST, right: ast.AST) -> bool:
    return type(left) is type(right) and ast.dump(left) == ast.dump(right)


def children(node: ast.AST) -> Iterator[tuple[ast.AST, Place]]:
    """The nodes directly below, in the order of the text, each with how to replace it."""
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            yield value, functools.partial(setattr, node, field)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield item, functools.partial(value.__setitem__, index)


def nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The scope and all below it, in the order of the text."""
    yield scope
    for child, _ in children(scope):
        yield from nodes(child)


def expressions(scope: ast.AST, old: ast.expr) -> Iterator[Place]:
    """Where the scope has the expression."""
    for child, place in children(scope):
        if same(child, old):
            yield place
        else:
            yield from expressions(child, old)


def runs(scope: ast.AST, old: Sequence[ast.stmt]) -> Iterator[Callable[[list[ast.stmt]], None]]:
    """Where the scope has the statements, one after the other."""
    for node in nodes(scope):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                for start in range(len(value) - len(old) + 1):
                    piece = slice(start, start + len(old))
                    if all(map(same, value[piece], old)):
                        yield functools.partial(value.__setitem__, piece)


def keywords(scope: ast.AST, name: str, value: ast.expr) -> Iterator[Place]:
    """Where the scope passes the value by the keyword."""
    for node in nodes(scope):
        if isinstance(node, ast.keyword) and node.arg == name and same(node.value, value):
            yield functools.partial(setattr, node, "value")


def entries(scope: ast.AST, old: ast.Dict, new: ast.Dict) -> Iterator[Callable[[], None]]:
    """What would change each entry of a dictionary of the scope that equals the only old one."""
    for node in nodes(scope):
        if not isinstance(node, ast.Dict):
            continue
        for index, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
            if key and old.keys[0] and same(key, old.keys[0]) and same(value, old.values[0]):
                yield functools.partial(_put_entry, node, index, new)


def _put_entry(node: ast.Dict, index: int, new: ast.Dict) -> None:
    node.keys[index : index + 1] = new.keys
    node.values[index : index + 1] = new.values


def _keyword_value(new: ast.expr | list[ast.stmt]) -> ast.expr:
    match new:
        case [ast.Assign(value=value)]:
            return value
    raise MutationError("a keyword argument gives way to a keyword argument only")


def replacements(
    scope: ast.AST, old: ast.expr | list[ast.stmt], new: ast.expr | list[ast.stmt]
) -> list[Callable[[], None]]:
    """What would change each place of the scope that has the old piece."""
    if isinstance(old, ast.expr):
        if isinstance(new, list):
            raise MutationError("an expression gives way to an expression only")
        return [functools.partial(place, new) for place in expressions(scope, old)]
    block: list[ast.stmt] = new if isinstance(new, list) else [ast.Expr(new)]
    found = list(runs(scope, old))
    match old:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)] if not found:
            places = list(keywords(scope, name, value))
            return [functools.partial(place, _keyword_value(new)) for place in places]
    return [functools.partial(place, block) for place in found]


def changes(scope: ast.AST, mutation: Mutation) -> list[Callable[[], None]]:
    """What the mutation may mean in the scope: a change of a piece, else of an entry."""
    old, new = parse_entry(mutation.old), parse_entry(mutation.new)
    if old and new and (found := list(entries(scope, old, new))):
        return found
    return replacements(scope, parse_piece(mutation.old), parse_piece(mutation.new))


def found_in(definition: Definition, mutation: Mutation) -> list[Callable[[], None]]:
    """What the mutation may mean in all that the definition's name stands for."""
    return [change for scope in definition.scopes for change in changes(scope, mutation)]


def place_of(mutation: Mutation) -> Definition:
    """Where the mutation applies; MutationError if it applies nowhere, or in several places."""

    def fits(definition: Definition) -> bool:
        return len(found_in(definition, mutation)) >= (mutation.nth or 1)

    place = resolve(mutation.at, fits)
    found = found_in(place, mutation)
    if not found and (others := elsewhere(place, mutation)):
        raise MutationError(
            f"no longer applies: the old piece is not there, but in {', '.join(map(str, others))}"
        )
    chosen(found, mutation.nth)
    return place


def elsewhere(place: Definition, mutation: Mutation) -> list[Definition]:
    """The innermost definitions of the same module that have the old piece."""
    having = [
        other
        for inner in place.module.defined
        if inner and found_in(other := Definition(place.module, inner), mutation)
    ]
    return [
        one
        for one in having
        if not any(
            other.inner != one.inner and other.inner[: len(one.inner)] == one.inner
            for other in having
        )
    ]


def mutate(mutation: Mutation) -> Mutated:
    """The module with the mutation in it; MutationError if it applies nowhere, or in two places."""
    place = place_of(mutation)
    module = parsed(place.module.path)
    chosen(found_in(Definition(module, place.inner), mutation), mutation.nth)()
    source = ast.unparse(ast.fix_missing_locations(module.tree))
    return Mutated(".".join(("rpcqm", *module.name)), module.path, source)


def chosen(found: Sequence[T], nth: int | None) -> T:
    """The only one found, or the nth."""
    if not found or (nth is not None and nth > len(found)):
        raise MutationError(f"no longer applies: the old piece is there {len(found)} times")
    if nth is None and len(found) > 1:
        raise MutationError(f"applies {len(found)} times; say which, by nth")
    return found[(nth or 1) - 1]
