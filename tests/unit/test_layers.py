"""Imports go only as the table of the architecture says."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import rpcqm

PACKAGE = Path(rpcqm.__file__).parent

ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "codec": {"base"},
    "rpc": {"base", "codec"},
    "adm": {"base", "codec"},
    "store": {"base", "codec", "adm"},
    "replica": {"base", "store"},
    "directory": {"base", "codec", "adm"},
    "qm": {"base", "codec", "adm", "store"},
    "operations": {"base", "codec", "adm", "qm"},
    "otel": {"base", "codec", "adm", "store"},
    "interfaces": {"base", "codec", "adm", "qm", "rpc", "operations"},
    "binary": {"base", "codec", "adm"},
    "binary.connection": {"base", "codec", "adm", "store", "qm", "binary"},
    "http": {"base"},
    "api": {"base", "codec", "http", "operations"},
    "console": {"base", "codec", "http", "operations"},
    "srmp": {"base", "codec", "adm", "http"},
    "srmp.connection": {"base", "codec", "adm", "store", "qm", "http", "srmp"},
    "dcom": {"base", "codec", "rpc"},
    "mqac": {"base", "codec", "adm", "qm", "rpc", "dcom", "operations"},
    "client": {"base", "codec", "rpc"},
    "capture": {"base", "codec", "client", "rpc", "binary", "http", "srmp", "dcom"},
    "pipeline": {"base", "codec", "client", "capture"},
    "testing": {"base", "client", "service", "config"},
    "triggers": {"base", "codec", "client", "http"},
}
ALLOWED["fast"] = set(ALLOWED) - {
    "testing",
    "pipeline",
    "capture",
    "client",
    "replica",
    "triggers",
}
ASSEMBLY = {"service", "config", "accounts", "cli", "__main__"}

# `interfaces` modules, and the like, must not know each other.
SEPARATE_MODULES = {"interfaces"}


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    if parts[1] == "connection":
        return f"{parts[0]}.connection"
    return parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def forbidden(path: Path) -> Iterator[str]:
    room = room_of(path)
    for line, name in imports_of(path):
        parts = name.split(".")
        if parts[0] != "rpcqm" or len(parts) == 1 or room in ASSEMBLY:
            continue
        if parts[1] != room and parts[1] not in ALLOWED.get(room, set()):
            yield f"{path.relative_to(PACKAGE)}:{line} imports {name}"


SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


def test_one_file_of_the_assembly_imports_the_fast_room() -> None:
    found = [
        str(path.relative_to(PACKAGE))
        for path in [*SOURCES, *PACKAGE.glob("*.py")]
        if path.parts[len(PACKAGE.parts)].removesuffix(".py") in ASSEMBLY
        and any(name.startswith("rpcqm.fast") for _, name in imports_of(path))
    ]
    assert found == ["service/speed.py"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_layers(path: Path) -> None:
    assert list(forbidden(path)) == []


def test_every_room_is_known() -> None:
    assert {room_of(path) for path in SOURCES} <= set(ALLOWED) | ASSEMBLY | {"idl"}


def test_interfaces_do_not_know_each_other() -> None:
    for path in SOURCES:
        if room_of(path) in SEPARATE_MODULES and path.name != "__init__.py":
            for line, name in imports_of(path):
                parts = name.split(".")
                if parts[:2] == ["rpcqm", "interfaces"]:
                    assert parts[2].startswith("_"), f"{path}:{line} imports {name}"


def modules_of(room: str) -> set[str]:
    """The names of the modules of a room or of one of its folders."""
    folder = PACKAGE.joinpath(*room.split("."))
    return {path.stem for path in folder.glob("*.py")} - {"__init__"}


IN_CIRCLES = {"adm", "http", "mqac", "operations"}
"""Rooms whose modules name each other's types; at run time none has a circle of imports.

The abstract data model is a circle, and so are the objects of [MC-MQAC].
"""
FOLDERS = {".".join(path.parent.relative_to(PACKAGE).parts) for path in SOURCES}
ON_FLOORS = sorted(name for name in FOLDERS - IN_CIRCLES if len(modules_of(name)) > 1)
"""Rooms whose modules have no circle of imports, not even for type checking."""


def modules_used(room: str) -> dict[str, set[str]]:
    """Which modules of a room each of them imports, for its types too."""
    folder, prefix = PACKAGE.joinpath(*room.split(".")), ["rpcqm", *room.split(".")]
    names = modules_of(room)
    used: dict[str, set[str]] = {}
    for name in names:
        parts = (imported.split(".") for _, imported in imports_of(folder / f"{name}.py"))
        used[name] = {part[len(prefix)] for part in parts if part[: len(prefix)] == prefix} & names
    return used


@pytest.mark.parametrize("room", ON_FLOORS)
def test_the_modules_of_a_room_stand_on_floors(room: str) -> None:
    """Each uses only what is below it."""
    remaining = modules_used(room)
    while remaining:
        floor = {name for name, used in remaining.items() if not used & remaining.keys()}
        assert floor, f"these know each other: {sorted(remaining)}"
        remaining = {name: used for name, used in remaining.items() if name not in floor}


def test_only_the_engine_knows_all_subjects() -> None:
    assert [name for name, used in modules_used("qm").items() if "engine" in used] == []
