"""Wine's IDL compiler reads the same declarations, and gcc compiles what it makes of them.

qmcomm and qmmgmt are compiled without one arm of PROPVARIANT: the whole of it sends widl 7 into
endless recursion. That arm is proved by impacket's classes (unit/codec/test_impacket_agreement)
and by octets made by hand (unit/codec/test_ndr_variants).
"""

import re
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from rpcqm.codec.idl.tree import Integer
from rpcqm.codec.interface import load
from tests.support.codec.interfaces import INTERFACES
from tests.support.codec.widl import COMMAND, INCLUDED, prepare

PROCEDURE = re.compile(r"\(procedure (\w+)::(\w+)\) \*/.*?/\* method (\d+) \*/", re.DOTALL)
PARAMETER = re.compile(r"\(parameter (\w+)\) \*/\s*NdrFcShort\(\w+\),\s*/\* flags: ([^*]*)")


@pytest.fixture(scope="module")
def prepared(require: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("x86_64-w64-mingw32-widl", "x86_64-w64-mingw32-gcc")
    directory = tmp_path_factory.mktemp("widl")
    assert prepare(directory) == INTERFACES
    for name in (*INTERFACES, *INCLUDED):
        compile_idl(directory, name)
    return directory


def compile_idl(directory: Path, name: str) -> None:
    outputs = ["-h"] if name in INCLUDED else ["-h", "-c", "-s"]
    run([*COMMAND, *outputs, f"{name}.idl"], directory)


def run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("side", ["c", "s"], ids=["client", "server"])
@pytest.mark.parametrize("name", INTERFACES)
def test_the_stubs_of_an_interface_compile(prepared: Path, name: str, side: str) -> None:
    source = f"{name}_{side}.c"
    flags = ["-O1", "-w", "-I.", "-c", source, "-o", f"{source}.o"]
    run(["x86_64-w64-mingw32-gcc", *flags], prepared)
    assert (prepared / f"{source}.o").stat().st_size > 1000


@pytest.mark.parametrize("name", INTERFACES)
def test_both_compilers_give_a_method_the_same_opnum(prepared: Path, name: str) -> None:
    interface = load(name)
    found = PROCEDURE.findall((prepared / f"{name}_c.c").read_text())
    theirs = {int(opnum): method for _, method, opnum in found}
    for opnum, operation in enumerate(interface.operations):
        ours = f"Opnum{opnum}NotUsedOnWire" if operation is None else operation.name
        assert theirs[opnum] == ours
    assert len(theirs) == len(interface.operations)
    assert {owner for owner, _, _ in found} == {interface.name}


@pytest.mark.parametrize("name", INTERFACES)
def test_both_compilers_send_the_same_parameters_the_same_way(prepared: Path, name: str) -> None:
    text = (prepared / f"{name}_c.c").read_text()
    starts = [m.start() for m in PROCEDURE.finditer(text)] + [len(text)]
    bodies = [text[begin:end] for begin, end in pairwise(starts)]
    for operation, body in zip(load(name).operations, bodies, strict=True):
        if operation is None:
            continue
        theirs = {p: set(re.split(r",\s*", flags.strip())) for p, flags in PARAMETER.findall(body)}
        parameters = operation.declaration.parameters
        assert list(theirs) == [p.name for p in parameters]
        for parameter in parameters:
            flags = theirs[parameter.name]
            assert ("in" in flags, "out" in flags) == (parameter.in_, parameter.out)
            if isinstance(parameter.type, Integer):
                # A number with a [range] is a type of its own to widl.
                assert ("base type" in flags) == (parameter.type.limits is None)
