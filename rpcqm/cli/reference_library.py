"""docs/library.md: what programs may use of `rpcqm.client` and `rpcqm.testing`, from its texts."""

import ast
import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import rpcqm.client.mq
import rpcqm.client.queue_manager
import rpcqm.testing

HEADING = """\
# The library for programs

Written by `scripts/document` from the texts of the code. [client.md](client.md) tells how it is
used, task by task; what is not here may change with any version.
"""
_EXCEPTIONS = (Exception,)
_PROPERTY = ("property", "cached_property")

Definition = ast.FunctionDef | ast.AsyncFunctionDef


def library_reference() -> str:
    """docs/library.md."""
    found = rpcqm.client.queue_manager.QueueManagerClient
    parts = [
        *_module(rpcqm.client.mq, rpcqm.client.mq.__all__),
        "\n## rpcqm.client.queue_manager\n",
        *_one(found.__name__, found),
        *(part for each in _members(found) for part in _one(each.__name__, each)),
        *_module(rpcqm.testing, rpcqm.testing.__all__),
    ]
    return HEADING + "".join(parts)


def _module(module: ModuleType, names: list[str]) -> Iterator[str]:
    summary = (inspect.getdoc(module) or "").partition("\n")[0]
    yield f"\n## {module.__name__}\n\n{summary}\n"
    for name in sorted(names, key=lambda each: (each[:1].isupper(), each)):
        yield from _one(name, getattr(module, name))


def _members(client: type) -> list[type]:
    """The classes of the clients that one of a queue manager has for each subject."""
    found = {
        alias.name: each.module
        for each in ast.walk(_definition(client))
        if isinstance(each, ast.ImportFrom) and each.module
        for alias in each.names
        if alias.name.endswith("Client")
    }
    return [getattr(import_module(found[name]), name) for name in sorted(found)]


def _one(name: str, found: object) -> Iterator[str]:
    if inspect.isclass(found):
        yield f"\n### class {name}\n\n{_text(found)}"
        if not issubclass(found, _EXCEPTIONS):
            yield from map(_field, _fields(found))
            yield from map(_method, _methods(found))
    elif inspect.isfunction(found):
        definition = _definition(found)
        assert isinstance(definition, Definition)
        yield f"\n### {name}\n\n`{_signature(definition)}`\n\n{_text(found)}"


def _definition(found: object) -> ast.ClassDef | Definition:
    """The syntax tree of a class or of a function."""
    module = sys.modules[str(getattr(found, "__module__", ""))]
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    name = getattr(found, "__name__", "")
    for each in tree.body:
        if isinstance(each, ast.ClassDef | Definition) and each.name == name:
            return each
    raise LookupError(name)


def _methods(found: type) -> Iterator[Definition]:
    """Those of a class and of its bases of ours, without what is private."""
    for base in found.__mro__:
        if not base.__module__.startswith("rpcqm."):
            continue
        for each in _definition(base).body:
            if isinstance(each, Definition) and not each.name.startswith("_"):
                yield each


def _fields(found: type) -> Iterator[tuple[ast.AnnAssign, str]]:
    """What a dataclass of ours is made of, with the text behind each."""
    for base in reversed(found.__mro__):
        if not base.__module__.startswith("rpcqm."):
            continue
        body = [*_definition(base).body, ast.Pass()]
        for each, following in pairwise(body):
            if not isinstance(each, ast.AnnAssign) or ast.unparse(each.target).startswith("_"):
                continue
            said = following.value if isinstance(following, ast.Expr) else None
            text = said.value if isinstance(said, ast.Constant) else ""
            yield each, str(text)


def _field(found: tuple[ast.AnnAssign, str]) -> str:
    definition, text = found
    given = "" if definition.value is None else f" = {ast.unparse(definition.value)}"
    name, kind = ast.unparse(definition.target), ast.unparse(_unquoted(definition.annotation))
    return _entry(f"{name}: {kind}{given}", text)


def _method(definition: Definition) -> str:
    return _entry(_signature(definition), ast.get_docstring(definition) or "")


def _entry(code: str, text: str) -> str:
    lines = inspect.cleandoc(text).split("\n") if text else []
    return f"\n- **`{code}`**\n" + "".join(f"  {line}".rstrip() + "\n" for line in lines)


def _signature(definition: Definition) -> str:
    """A call as somebody writes it, with the types; without `self`."""
    words = [ast.unparse(each) for each in definition.decorator_list]
    name = f"{'async ' if isinstance(definition, ast.AsyncFunctionDef) else ''}{definition.name}"
    returns = definition.returns
    gives = "" if returns is None else f" -> {ast.unparse(_unquoted(returns))}"
    if any(word.rpartition(".")[2] in _PROPERTY for word in words):
        return f"{name}{gives}"
    for each in (*definition.args.args, *definition.args.kwonlyargs, definition.args.kwarg):
        if each is not None and each.annotation is not None:
            each.annotation = _unquoted(each.annotation)
    taken = ast.unparse(definition.args)
    for first in ("self, ", "cls, "):
        taken = taken.removeprefix(first)
    return f"{name}({'' if taken in ('self', 'cls') else taken}){gives}"


def _unquoted(annotation: ast.expr) -> ast.expr:
    """A type without the quotes that are there for its import alone."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def _text(found: object) -> str:
    return f"{inspect.getdoc(found) or ''}\n"
