"""What the product defines, by qualified name; a name whose module has moved is found again."""

import ast
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutations.data import MutationError

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "rpcqm"
FAST = "fast"
"""The room to which code of any other room may move."""

Name = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Module:
    """One module as it was parsed; its name begins at its room, and is empty for the package."""

    name: Name
    path: Path
    tree: ast.Module
    defined: Mapping[Name, Sequence[ast.AST]]


@dataclass(frozen=True, slots=True)
class Definition:
    """What one qualified name stands for; `inner` is its part within the module."""

    module: Module
    inner: Name

    def __str__(self) -> str:
        return ".".join(self.module.name + self.inner)

    @property
    def scopes(self) -> Sequence[ast.AST]:
        """The whole module, or each definition of that name."""
        return self.module.defined[self.inner]


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


def parsed(path: Path) -> Module:
    """The module of a file, in a tree that the caller may change."""
    tree = ast.parse(path.read_text("utf-8"))
    defined: dict[Name, list[ast.AST]] = {(): [tree]}
    for name, statement in definitions(tree.body):
        defined.setdefault(name, []).append(statement)
    return Module(module_name(path), path, tree, defined)


# Few are kept: the processes of tests are copies of this one, and would copy all trees.
kept = functools.lru_cache(maxsize=8)(parsed)


def file_of(parts: Name) -> tuple[Path, Name] | None:
    """The file of the longest beginning of a name that is a module, and the rest of the name."""
    for end in range(len(parts), 0, -1):
        place = PACKAGE.joinpath(*parts[:end])
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                return path, parts[end:]
    return None


@functools.cache
def index(package: Path) -> dict[str, dict[Name, Path]]:
    """The file of each qualified name of a package, by the name's last part."""
    found: dict[str, dict[Name, Path]] = {}
    for path in sorted(package.rglob("*.py")):
        module = parsed(path)
        for name in (module.name + inner for inner in module.defined):
            if name:
                found.setdefault(name[-1], {})[name] = path
    return found


def resolve(at: str, fits: Callable[[Definition], bool]) -> Definition:
    """The definition that is named exactly so, or else the one to which the name has moved.

    That one ends in as many parts of the name as any, and fits; it is in the same room or in
    `fast`, because a room may well have a function that is called as a renamed one of another
    room was. MutationError if there is none, or if there are several.
    """
    parts = tuple(at.split("."))
    place = file_of(parts)
    if place and place[1] in kept(place[0]).defined:
        return Definition(kept(place[0]), place[1])
    anywhere = index(PACKAGE).get(parts[-1], {})
    known = {name: path for name, path in anywhere.items() if name[0] in (parts[0], FAST)}
    for start in range(len(parts)):
        found = [one for one in _ending(known, parts[start:]) if fits(one)]
        if len(found) == 1:
            return found[0]
        if found:
            raise MutationError(f"{at} may be {', '.join(map(str, found))}")
    more = f", and no other {parts[-1]} has the old piece" if known else ""
    rooms = sorted({name[0] for name in anywhere.keys() - known.keys()})
    elsewhere = f"; a {parts[-1]} is in {', '.join(rooms)}" if rooms else ""
    raise MutationError(f"nothing is named {at}{more}{elsewhere}")


def _ending(known: Mapping[Name, Path], suffix: Name) -> Iterator[Definition]:
    for name, path in known.items():
        if name[-len(suffix) :] == suffix:
            module = kept(path)
            yield Definition(module, name[len(module.name) :])
