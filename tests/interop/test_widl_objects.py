"""Wine's IDL compiler reads the interfaces of objects as we do: opnums, parameters, properties."""

import re
import subprocess
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from rpcqm.codec.automation.type_library import written_name
from rpcqm.codec.idl.load import load_idl
from rpcqm.codec.idl.tree import InterfaceDeclaration, OperationDeclaration
from tests.support.codec.widl import COMMAND
from tests.support.codec.widl_objects import OBJECT_FILES, prepare_objects

PROCEDURE = re.compile(r"\(procedure (\w+)::(\w+)\) \*/.*?/\* method (\d+) \*/", re.DOTALL)
PARAMETER = re.compile(r"\(parameter (\w+)\) \*/\s*NdrFcShort\(\w+\),\s*/\* flags: ([^*]*)")

Read = dict[tuple[str, int], tuple[str, dict[str, set[str]]]]
"""By interface and opnum: the method's name, and the flags of its parameters."""


@pytest.fixture(scope="module", params=OBJECT_FILES)
def file_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def read(
    file_name: str, require: Callable[..., None], tmp_path_factory: pytest.TempPathFactory
) -> Read:
    require("x86_64-w64-mingw32-widl")
    directory = tmp_path_factory.mktemp("widl")
    prepare_objects(directory)
    command = [*COMMAND, "-h", "-c", "-p", f"{file_name}.idl"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    made = [path.read_text() for path in directory.glob(f"{file_name}_[cp].c")]
    return {key: value for text in made for key, value in _procedures(text)}


def _procedures(text: str) -> Iterator[tuple[tuple[str, int], tuple[str, dict[str, set[str]]]]]:
    found = list(PROCEDURE.finditer(text))
    ends = [each.start() for each in found] + [len(text)]
    for each, (begin, end) in zip(found, pairwise(ends), strict=True):
        flags = {
            name: set(re.split(r",\s*", words.strip()))
            for name, words in PARAMETER.findall(text[begin:end])
        }
        interface = each[1].removeprefix("Q_")
        yield (interface, int(each[3])), (each[2], flags)


def declared(file_name: str) -> Iterator[tuple[InterfaceDeclaration, OperationDeclaration]]:
    for interface in load_idl(file_name).interfaces.values():
        for operation in interface.own:
            yield interface, operation


def test_a_method_has_the_same_opnum_and_name(read: Read, file_name: str) -> None:
    ours = {(i.name, o.opnum): written_name(o) for i, o in declared(file_name)}
    theirs = {key: name for key, (name, _) in read.items() if "NotUsedOnWire" not in name}
    assert theirs == ours


def test_a_method_has_the_same_parameters_in_the_same_directions(
    read: Read, file_name: str
) -> None:
    """But for what we put before them, which no IDL has."""
    for interface, operation in declared(file_name):
        _, flags = read[interface.name, operation.opnum]
        ours = [p for p in operation.parameters if p.name not in ("orpcthis", "orpcthat")]
        theirs = {name: each for name, each in flags.items() if not name.startswith("orpcth")}
        assert list(theirs) == [p.name for p in ours], (interface.name, operation.name)
        for parameter in ours:
            words = theirs[parameter.name]
            assert ("in" in words, "out" in words) == (parameter.in_, parameter.out)
