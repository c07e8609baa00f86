"""Interfaces as the runtime sees them, and the typed modules that handlers import."""

import importlib
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from rpcqm.codec.idl.load import idl_names, load_idl
from rpcqm.codec.interface import TransferSyntax, Value, load
from rpcqm.codec.ndr.compile import Wire
from rpcqm.codec.types.remoteread import SectionType, stSrmpSecondSection
from scripts import stub_files
from tests.support.codec.idl_text import interface_of

NDR, NDR64 = TransferSyntax.NDR, TransferSyntax.NDR64

IDENTITIES = {
    "remoteread": ("RemoteRead", "1a9134dd-7b39-45ba-ad88-44d01ca47f28", (1, 0), (NDR, NDR64)),
    "qm2qm": ("qm2qm", "1088a980-eae5-11d0-8d9b-00a02453c337", (1, 0), (NDR, NDR64)),
    "qmcomm": ("qmcomm", "fdb3a030-065f-11d1-bb9b-00a024ea5525", (1, 0), (NDR,)),
    "qmcomm2": ("qmcomm2", "76d12b80-3467-11d3-91ff-0090272f9ea3", (1, 0), (NDR,)),
    "qmmgmt": ("qmmgmt", "41208ee0-e970-11d1-9b9e-00e02c064c39", (1, 0), (NDR,)),
    "epm": ("ept", "e1af8308-5d1f-11c9-91a4-08002b14a0fa", (3, 0), (NDR, NDR64)),
    "mgmt": ("mgmt", "afa8bd80-7d8a-11c9-bef4-08002b102989", (1, 0), (NDR, NDR64)),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_an_interface_has_its_identity(name: str) -> None:
    interface = load(name)
    expected = IDENTITIES[name]
    identity = (interface.name, str(interface.uuid), interface.version, interface.syntaxes)
    assert identity == expected
    assert load(name) is load(name, ms_union=False) is interface
    assert load(name, ms_union=True) is not interface


def test_transfer_syntaxes_have_their_identifiers() -> None:
    """[MS-RPCE] 2.2.4.12 and 2.2.5.1."""
    assert (NDR.uuid, NDR.version) == (UUID("8a885d04-1ceb-11c9-9fe8-08002b104860"), 2)
    assert (NDR64.uuid, NDR64.version) == (UUID("71710533-beba-4937-8319-b5dbef9ccc36"), 1)


def test_requests_and_responses_have_the_parameters_of_their_direction() -> None:
    receive = load("remoteread").operation("R_StartReceive")
    assert receive.request_class.__slots__[0] == "phContext"
    assert receive.response_class.__slots__ == (
        "pdwArriveTime",
        "pSequenceId",
        "pdwNumberOfSections",
        "ppPacketSections",
        "result",
    )
    assert load("remoteread").operation("R_OpenQueue").response_class.__slots__ == ("pphContext",)


def test_constructors_take_keywords_and_miss_what_is_not_given() -> None:
    receive = load("remoteread").operation("R_CancelReceive")
    with pytest.raises(TypeError, match="dwRequestId"):
        receive.request_class(phContext=bytes(20))
    with pytest.raises(TypeError):
        receive.request_class(bytes(20), 1)
    request = receive.request_class(phContext=bytes(20), dwRequestId=1)
    for name in ("other", "dwRequestid"):
        with pytest.raises(AttributeError):
            setattr(request, name, 2)


def test_an_hresult_is_compared_as_it_is_printed() -> None:
    close = load("remoteread").operation("R_CloseQueue")
    response = close.response_class(pphContext=bytes(20), result=0xC00E0007)
    stub = close.encode_response(NDR, response)
    assert close.decode_response(NDR, stub).result == 0xC00E0007


def test_codecs_are_compiled_on_first_use() -> None:
    interface = interface_of("void f([in] long x);")
    narrow, wide = interface.compiler(Wire()), interface.compiler(Wire(ndr64=True))
    assert not [name for name in narrow.module.namespace if name.startswith("decode_")]
    operation = interface.operation("f")
    stub = operation.encode_request(NDR, operation.request_class(x=5))
    assert "encode_fRequest" in narrow.module.namespace
    assert "decode_fRequest" not in narrow.module.namespace
    assert "decode_fRequest" not in wide.module.namespace
    assert operation.decode_request(NDR64, stub).x == 5
    assert "decode_fRequest" in wide.module.namespace
    assert operation.codec(NDR) is operation.codec(NDR)


def test_every_file_has_a_module_of_its_types() -> None:
    for name in idl_names():
        module = importlib.import_module(f"rpcqm.codec.types.{name}")
        for declared in load_idl(name).types:
            made = getattr(module, declared, None)
            if isinstance(made, type) and issubclass(made, Value):
                assert made.__module__ == module.__name__
        for interface in load_idl(name).interfaces.values():
            for operation in () if interface.automation else interface.own:
                assert getattr(module, f"{operation.message_name}Request").__name__
                assert getattr(module, f"{operation.message_name}Response").__name__


def test_enumerations_are_names_of_plain_numbers() -> None:
    assert int(SectionType.stSrmpSecondSection) == stSrmpSecondSection
    assert stSrmpSecondSection == 4


def test_the_typed_modules_are_fresh() -> None:
    """Written by scripts/generate, and not since overtaken by idl/."""
    stale = [p.name for p, text in stub_files.files().items() if p.read_text("utf-8") != text]
    assert stale == []
    known = {path.name for path in stub_files.files()} | {"__init__.py"}
    found = {p.name for p in stub_files.DIRECTORY.iterdir() if p.suffix in (".py", ".pyi")}
    assert found == known, "a file of types without its IDL file"


def test_stale_modules_are_named_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "rpcqm" / "codec" / "types"
    directory.mkdir(parents=True)
    monkeypatch.setattr(stub_files, "DIRECTORY", directory)
    monkeypatch.setattr(stub_files, "idl_names", lambda: ["mgmt"])
    assert stub_files.main(["--check"]) == 1
    assert "stale: rpcqm/codec/types/mgmt.pyi" in capsys.readouterr().out
    assert not list(directory.iterdir())
    assert stub_files.main([]) == 0
    assert stub_files.main(["--check"]) == 0
    assert sorted(path.name for path in directory.iterdir()) == ["mgmt.py", "mgmt.pyi"]


def test_the_stubs_tell_a_type_checker_what_handlers_get(tmp_path: Path) -> None:
    program = tmp_path / "handler.py"
    program.write_text(
        "from rpcqm.codec.types.remoteread import R_MoveMessageRequest, SectionBuffer\n"
        "def f(request: R_MoveMessageRequest, section: SectionBuffer) -> None:\n"
        "    good: int = request.LookupId\n"
        "    bad: str = request.LookupId\n"
        "    request.NoSuchParameter\n"
        "    octets: bytes = section.pSectionBuffer\n"
        "    SectionBuffer(SectionSize='1')\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", str(program)]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    lines = sorted(int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line)
    assert lines == [4, 5, 6, 7]
