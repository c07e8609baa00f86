"""Find an expression by its syntax, in what a qualified name names, and put another there."""

import ast
import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.mutations.data import Mutation, MutationError

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "rpcqm"

T = TypeVar("T")
Name = tuple[str, ...]
# A place where an equal piece of syntax was found; it takes what is put there.
Place = Callable[[ast.AST], None]


@dataclass(frozen=True, slots=True)
class Mutated:
    """The changed source text of one module."""

    module: str
    path: Path
    source: str


def module_name(path: Path) -> Name:
    """The module's name from its room on; empty for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def definitions(body: Sequence[ast.stmt], prefix: Name = ()) -> Iterator[tuple[Name, ast.stmt]]:
    """What is defined or assigned under a name, in the body and in what it defines."""
    for statement in body:
        match statement:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield (*prefix, statement.name), statement
                yield from definitions(statement.body, (*prefix, statement.name))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield (*prefix, name), statement
            case ast.If() | ast.Try() | ast.With():
                yield from definitions(statement.body, prefix)


@functools.cache
def names() -> dict[str, dict[Name, Path]]:
    """The file of each qualified name of the package, by the name's last part."""
    found: dict[str, dict[Name, Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = module_name(path)
        tree = ast.parse(path.read_text("utf-8"))
        for name in [module, *(module + name for name, _ in definitions(tree.body))]:
            if name:
                found.setdefault(name[-1], {})[name] = path
    return found


def resolve(at: str) -> tuple[Name, Path]:
    """The one qualified name that ends as `at` does, and its file.

    A name that has moved is found by the parts that it has kept.  Raises MutationError if
    there is none or more than one.
    """
    parts = tuple(at.split("."))
    known = names().get(parts[-1], {})
    for start in range(len(parts)):
        suffix = parts[start:]
        found = [name for name in known if name[-len(suffix) :] == suffix]
        if len(found) == 1:
            return found[0], known[found[0]]
        if found:
            several = ", ".join(".".join(name) for name in found)
            raise MutationError(f"{at} may be {several}")
    raise MutationError(f"nothing is named {at}")


def scopes(tree: ast.Module, name: Name, module: Name) -> list[ast.AST]:
    """What the name stands for: a whole module, or each definition of that name."""
    if name == module:
        return [tree]
    inner = name[len(module) :]
    return [node for found, node in definitions(tree.body) if found == inner]


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


def mutate(mutation: Mutation) -> Mutated:
    """The module with the mutation in it; MutationError if it applies nowhere, or in two places."""
    name, path = resolve(mutation.at)
    module = module_name(path)
    tree = ast.parse(path.read_text("utf-8"))
    found = [change for scope in scopes(tree, name, module) for change in changes(scope, mutation)]
    chosen(found, mutation.nth)()
    source = ast.unparse(ast.fix_missing_locations(tree))
    return Mutated(".".join(("rpcqm", *module)), path, source)


def chosen(found: Sequence[T], nth: int | None) -> T:
    """The only one found, or the nth."""
    if not found or (nth is not None and nth > len(found)):
        raise MutationError(f"no longer applies: the old piece is there {len(found)} times")
    if nth is None and len(found) > 1:
        raise MutationError(f"applies {len(found)} times; say which, by nth")
    return found[(nth or 1) - 1]
