"""Writes rpcqm/codec/types from idl/: a module and a typed stub for each IDL file.

A file of constants and enumerations needs no codec: its module is plain Python, without a stub.
Written is what a source of this repository imports, and what that is made of: the IDL describes
interfaces whole, and much of them is never called. At run time all types of a codec are there.

scripts/generate            # write what has changed
scripts/generate --check    # exit 1 and name the files that are stale
"""

import argparse
import ast
import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from rpcqm.codec.idl.load import idl_names, load_idl
from rpcqm.codec.idl.tree import (
    Array,
    ContextHandleType,
    Enumeration,
    Float,
    Guid,
    IdlFile,
    Integer,
    InterfacePointer,
    OperationDeclaration,
    Parameter,
    Pointer,
    PointerKind,
    String,
    StructureType,
    Type,
    Union,
    WireMarshal,
)
from rpcqm.codec.ndr.classes import has_default, message

__all__ = ["files", "main"]

ROOT = Path(__file__).parents[1]
DIRECTORY = ROOT / "rpcqm" / "codec" / "types"
_TYPES = DIRECTORY
_PACKAGE = "rpcqm.codec.types"
_WORD = re.compile(r"\w+")

_SIMPLE: dict[type[object], str] = {
    Integer: "int",
    Enumeration: "int",
    Float: "float",
    Guid: "UUID",
    ContextHandleType: "bytes",
    InterfacePointer: "bytes | None",
    String: "str",
}

_AUTOMATION = {
    "BSTR": "str | bytes | None",
    "VARIANT": "Variant",
    "SAFEARRAY": "SafeArray | None",
}


def files() -> dict[Path, str]:
    """The files as they should be, by path."""
    found: dict[Path, str] = {}
    stubs = [_Stub(load_idl(name)) for name in idl_names()]
    needed = _needed({name: text for stub in stubs for name, text in stub.parts})
    for stub in stubs:
        name = stub.file.name.removesuffix(".idl")
        text = stub.text(needed)
        if _has_only_values(stub.file):
            found[DIRECTORY / f"{name}.py"] = text
        else:
            found[DIRECTORY / f"{name}.py"] = _module(name)
            found[DIRECTORY / f"{name}.pyi"] = text
    return found


def _needed(parts: Mapping[str, str]) -> set[str]:
    """The names of parts that sources use, and of those that the texts of these use."""
    needed: set[str] = set()
    more = parts.keys() & _imported_names()
    while more:
        needed |= more
        texts = (parts[name] for name in more)
        # The members of an enumeration are names of constants as well, and use none of them.
        used = {word for text in texts if "(IntEnum)" not in text for word in _WORD.findall(text)}
        more = parts.keys() & used - needed
    return needed


@functools.cache
def _imported_names() -> frozenset[str]:
    """The names that sources import from what is written here."""
    folders = (ROOT / name for name in ("rpcqm", "tests", "scripts"))
    paths = (path for folder in folders for path in folder.rglob("*.py"))
    texts = (path.read_text("utf-8") for path in paths if path.parent != _TYPES)
    return frozenset(name for text in texts if _PACKAGE in text for name in _imports(text))


def _imports(source: str) -> Iterator[str]:
    """The names of a source that come from modules of types, or stand behind such a module's."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules = set()
    for node in imports:
        names = [alias.name for alias in node.names]
        if node.module == _PACKAGE:
            modules.update(names)
        elif (node.module or "").startswith(_PACKAGE):
            yield from names
    for each in ast.walk(tree):
        match each:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in modules:
                yield name


def _has_only_values(file: IdlFile) -> bool:
    """Whether a file has nothing but constants and enumerations: its stub is a module, then."""
    return not file.interfaces and all(type(t) is Enumeration for t in file.types.values())


def _module(name: str) -> str:
    return (
        f'"""The types, requests and responses of idl/{name}.idl.\n\n'
        'Written by scripts/generate, as is the stub beside it.\n"""\n\n'
        "from rpcqm.codec.interface import types_of\n\n"
        f'globals().update(types_of("{name}", __name__))\n'
    )


class _Stub:
    """The stub of one IDL file."""

    def __init__(self, file: IdlFile) -> None:
        self.file = file
        self.names = {id(made): name for made, name in _declared(file)}
        self.foreign: dict[str, set[str]] = {}
        self.homes = {
            id(made): (other.name.removesuffix(".idl"), name)
            for other in _imported(file)
            for made, name in _declared(other)
        }
        self.parts = list(self._parts())

    def text(self, needed: Collection[str]) -> str:
        """The stub with those parts whose names are needed."""
        body = "\n".join(text for name, text in self.parts if name in needed)
        header = f'"""Types of idl/{self.file.name}: generated by scripts/generate."""\n\n'
        name = "module.py" if _has_only_values(self.file) else "stub.pyi"
        return _formatted(header + self._imports() + "\n\n" + body + "\n", name)

    def _imports(self) -> str:
        lines = [
            "from enum import IntEnum",
            "from typing import Any, Final",
            "from uuid import UUID",
            "from rpcqm.codec.automation.values import SafeArray, Variant",
            "from rpcqm.codec.interface import NullPointer, OperationRequest, Result, Value",
        ]
        for module, names in sorted(self.foreign.items()):
            lines.append(f"from {_PACKAGE}.{module} import {', '.join(sorted(names))}")
        return "\n".join(lines)

    def _parts(self) -> Iterator[tuple[str, str]]:
        """The name and the text of each definition, in order."""
        for name, value in self.file.constants.items():
            yield name, f"{name}: Final = {value}"
        for made, name in _declared(self.file):
            yield name, self._declaration(made, name)
            for alias in made.aliases:
                yield alias, f"{alias} = {name}"
        for declaration in self.file.interfaces.values():
            for operation in () if declaration.automation else declaration.own:
                yield self._message(operation, response=False)
                yield self._message(operation, response=True)

    def _declaration(self, made: StructureType | Union | Enumeration, name: str) -> str:
        match made:
            case Enumeration(values=values):
                members = "".join(f"\n    {n} = {v}" for n, v in values.items())
                return f"class {name}(IntEnum):{members}"
            case Union():
                arms = [*made.arms, *([made.default] if made.default else [])]
                types = dict.fromkeys(self.python(a.type) if a.type else "None" for a in arms)
                value = " | ".join(_without_none(types)) + " | None"
                return (
                    f"class {name}(Value):\n    tag: int\n    value: {value}\n"
                    f"    def __init__(self, tag: int, value: {value} = None) -> None: ..."
                )
            case StructureType(fields=fields):
                typed = [(f.name, self.python(f.type), has_default(f.type)) for f in fields]
                return _class(name, "Value", typed)

    def _message(self, operation: OperationDeclaration, response: bool) -> tuple[str, str]:
        made = message(operation, response)
        typed = [
            (p.name, self._parameter(p, response), self.python(p.type).endswith("None"))
            for p in made.parameters
        ]
        typed += [(extra, "int", False) for extra in made.extras]
        base = "Value" if response else f"OperationRequest[{_response(operation)}]"
        return made.name, _class(made.name, base, typed)

    def _parameter(self, parameter: Parameter, response: bool) -> str:
        """A handler finds a record where the wire has a context handle."""
        if isinstance(parameter.type, ContextHandleType) and not response:
            return "Any"
        return self.python(parameter.type)

    def python(self, made: Type) -> str:
        """The annotation of a type's values."""
        match made:
            case Array(element=element):
                return self._array(element)
            case Pointer(kind=PointerKind.REF, to=to):
                return self.python(to)
            case Pointer(to=Pointer() as to):
                return f"{self.python(to).removesuffix(' | None')} | NullPointer | None"
            case Pointer(to=to):
                return f"{self.python(to)} | None"
            case StructureType() | Union():
                return self._named(made)
            case WireMarshal(name=name):
                return _AUTOMATION[name]
            case Integer(truth=True):
                return "bool"
        return _SIMPLE[type(made)]

    def _array(self, element: Type) -> str:
        if isinstance(element, Integer) and element.octet:
            return "bytes"
        if isinstance(element, Integer) and element.character:
            return "str"
        return f"list[{self.python(element)}]"

    def _named(self, made: StructureType | Union) -> str:
        if id(made) in self.names:
            return self.names[id(made)]
        module, name = self.homes[id(made)]
        self.foreign.setdefault(module, set()).add(name)
        return name


def _response(operation: OperationDeclaration) -> str:
    """The class of the answers to an operation, which many have in common."""
    made = message(operation, True)
    is_result = [each.name for each in made.parameters] == ["result"] and not made.extras
    return "Result" if is_result and made.name not in _imported_names() else made.name


def _class(name: str, base: str, typed: Iterable[tuple[str, str, bool]]) -> str:
    """A class with attributes; the constructor that takes them by keyword follows from `Value`."""
    lines = [
        f"    {each}: {python}{' = ...' if default else ''}" for each, python, default in typed
    ]
    return "\n".join([f"class {name}({base}):", *(lines or ["    pass"])])


def _without_none(types: Iterable[str]) -> list[str]:
    parts = [part for made in types for part in made.split(" | ")]
    return [part for part in dict.fromkeys(parts) if part != "None"]


def _declared(file: IdlFile) -> Iterator[tuple[StructureType | Union | Enumeration, str]]:
    """The structures, unions and enumerations of a file, each once, with their names."""
    waiting: list[object] = list(file.types.values())
    seen: set[int] = set()
    for made in waiting:
        if isinstance(made, StructureType | Union | Enumeration) and id(made) not in seen:
            seen.add(id(made))
            yield made, made.name
            if not isinstance(made, Enumeration):
                waiting.extend(made.nested.values())


def _imported(file: IdlFile) -> list[IdlFile]:
    found: list[IdlFile] = []
    waiting = list(file.imports)
    for other in waiting:
        if other not in found:
            found.append(other)
            waiting.extend(other.imports)
    return found


def _formatted(text: str, name: str) -> str:
    """The text as the formatter would have it in a file of that name, with imports in order.

    Imports that are not used are left out.
    """
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
    named = ["--stdin-filename", str(DIRECTORY / name)]
    fix = [ruff, "check", "--quiet", "--fix-only", "--select", "F401,I", *named, "-"]
    for command in (fix, [ruff, "format", "--quiet", *named, "-"]):
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        text = done.stdout
    return text


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or check them; gives the exit status."""
    parser = argparse.ArgumentParser(prog="scripts/generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say what is stale")
    check = parser.parse_args(arguments).check
    stale = []
    for path, text in files().items():
        if not path.is_file() or path.read_text("utf-8") != text:
            stale.append(path)
            if not check:
                path.write_text(text, "utf-8")
    for path in stale:
        print(f"{'stale' if check else 'written'}: {path.relative_to(DIRECTORY.parents[2])}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
