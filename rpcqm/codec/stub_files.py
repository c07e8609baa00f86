"""Writes rpcqm/codec/types from idl/: a module and a typed stub for each IDL file.

scripts/generate            # write what has changed
scripts/generate --check    # exit 1 and name the files that are stale
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
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
)
from rpcqm.codec.ndr.classes import has_default, message

__all__ = ["files", "main"]

DIRECTORY = Path(__file__).with_name("types")
_PACKAGE = "rpcqm.codec.types"


_SIMPLE: dict[type[object], str] = {
    Integer: "int",
    Enumeration: "int",
    Float: "float",
    Guid: "UUID",
    ContextHandleType: "bytes",
    InterfacePointer: "bytes | None",
    String: "str",
}


def files() -> dict[Path, str]:
    """The files as they should be, by path."""
    found: dict[Path, str] = {}
    for name in idl_names():
        found[DIRECTORY / f"{name}.py"] = _module(name)
        found[DIRECTORY / f"{name}.pyi"] = _Stub(load_idl(name)).text()
    return found


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

    def text(self) -> str:
        body = "\n\n".join(self._body())
        header = f'"""Types of idl/{self.file.name}: written by scripts/generate."""\n\n'
        return _formatted(header + self._imports() + "\n\n" + body + "\n")

    def _imports(self) -> str:
        lines = [
            "from enum import IntEnum",
            "from typing import Any, Final",
            "from uuid import UUID",
            "from rpcqm.codec.interface import NullPointer, OperationRequest, Value",
        ]
        for module, names in sorted(self.foreign.items()):
            lines.append(f"from {_PACKAGE}.{module} import {', '.join(sorted(names))}")
        return "\n".join(lines)

    def _body(self) -> Iterator[str]:
        seen: set[int] = set()
        for name, value in self.file.constants.items():
            yield f"{name}: Final = {value}"
        for made, name in _declared(self.file):
            if id(made) in seen:
                continue
            seen.add(id(made))
            yield self._declaration(made, name)
            for alias in made.aliases:
                yield f"{alias} = {name}"
        for declaration in self.file.interfaces.values():
            inherited = declaration.base.operations if declaration.base else ()
            for operation in declaration.operations:
                if operation is not None and operation not in inherited:
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

    def _message(self, operation: OperationDeclaration, response: bool) -> str:
        made = message(operation, response)
        typed = [
            (p.name, self._parameter(p, response), self.python(p.type).endswith("None"))
            for p in made.parameters
        ]
        typed += [(extra, "int", False) for extra in made.extras]
        base = "Value" if response else f"OperationRequest[{message(operation, True).name}]"
        return _class(made.name, base, typed)

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


def _class(name: str, base: str, typed: Iterable[tuple[str, str, bool]]) -> str:
    """A class with attributes and a constructor that takes them by keyword."""
    lines = [f"class {name}({base}):"]
    arguments = []
    for attribute, python, default in typed:
        lines.append(f"    {attribute}: {python}")
        arguments.append(f"{attribute}: {python}{' = ...' if default else ''}")
    signature = ", ".join(["self", *(["*", *arguments] if arguments else [])])
    lines.append(f"    def __init__({signature}) -> None: ...")
    return "\n".join(lines)


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


def _formatted(text: str) -> str:
    """The text as the formatter would have it, with imports that are used, in order."""
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
    name = ["--stdin-filename", str(DIRECTORY / "stub.pyi")]
    fix = [ruff, "check", "--quiet", "--fix-only", "--select", "F401,I", *name, "-"]
    for command in (fix, [ruff, "format", "--quiet", *name, "-"]):
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
