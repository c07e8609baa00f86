"""What a number of an interface means is written in idl/, and nowhere else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import rpcqm
from rpcqm.codec.idl.load import idl_names, load_idl
from rpcqm.codec.idl.tree import Enumeration
from rpcqm.codec.types.mqacvalues import MQMSGCLASS
from rpcqm.codec.types.mqvalues import ReceiveAction, UnservedAction

PACKAGE = Path(rpcqm.__file__).parent
GENERATED = PACKAGE / "codec" / "types"

FILES = [load_idl(name) for name in idl_names()]
TWICE = frozenset(MQMSGCLASS.__members__)
"""The classes of messages that objects know are fewer than those of packets."""
CONSTANTS = frozenset(name for file in FILES for name in file.constants) - TWICE
ENUMERATIONS = frozenset(
    name
    for file in FILES
    for made in file.types.values()
    if isinstance(made, Enumeration)
    for name in (made.name, *made.aliases)
)
LOOKUPS = frozenset(
    each.value for each in (*ReceiveAction, *UnservedAction) if "LOOKUP" in each.name
)


def written(target: ast.expr, value: ast.expr | None) -> Iterator[str]:
    """The names that get a literal number."""
    match target, value:
        case ast.Name(id=name), ast.Constant(value=int()):
            yield name.lstrip("_")
        case ast.Tuple(elts=targets), ast.Tuple(elts=values):
            for each, one in zip(targets, values, strict=False):
                yield from written(each, one)


def copies(source: str) -> Iterator[str]:
    """Constants and enumerations of the IDL that are written again, and actions as numbers."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assign(targets=targets, value=value):
                names = [name for target in targets for name in written(target, value)]
                yield from (name for name in names if name in CONSTANTS)
            case ast.AnnAssign(target=target, value=value):
                yield from (name for name in written(target, value) if name in CONSTANTS)
            case ast.ClassDef(name=name) if name in ENUMERATIONS:
                yield name
            case ast.Constant(value=int() as number) if number in LOOKUPS:
                yield hex(number)


SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if GENERATED not in path.parents)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_value_of_an_interface_is_not_written_again(path: Path) -> None:
    assert list(copies(path.read_text("utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "INFINITE = 0xFFFF_FFFF",
        "RR_NACK, RR_ACK = 1, 2",
        "_IP_READ: int = 1",
        "class Access:\n    RECEIVE_ACCESS = 1",
        "class SectionType(IntEnum): ...",
        "ACTIONS = {0x40000010: 'lookup-peek-current'}",
    ],
)
def test_a_copy_is_noticed(source: str) -> None:
    assert list(copies(source))


def test_a_name_for_a_value_is_fine() -> None:
    assert list(copies("INFINITE = mqvalues.INFINITE\nREADS = frozenset({PEEK_ACCESS})")) == []
