"""Connections without a call are listed with the reason; SMB is told as not read."""

import uuid
from pathlib import Path

import pytest

from rpcqm.cli.main import main
from rpcqm.codec.interface import load
from rpcqm.rpc.pdu import (
    Bind,
    BindAck,
    BindNak,
    ContextAnswer,
    ContextElement,
    Fault,
    Pdu,
    Request,
    SyntaxId,
)
from tests.support.capture.analysed import calls_of
from tests.support.capture.captures import ACK, FIN, SYN, pcapng
from tests.support.capture.traffic import SERVER, Connection
from tests.unit.capture.test_columnar import compare

NDR = SyntaxId(uuid.UUID("8a885d04-1ceb-11c9-9fe8-08002b104860"), 2, 0)
SIZES = {"call_id": 1, "max_xmit_frag": 5840, "max_recv_frag": 5840}


def bind() -> Bind:
    interface = load("remoteread")
    element = ContextElement(1, SyntaxId(interface.uuid, *interface.version), (NDR,))
    return Bind(**SIZES, p_context_elem=(element,))  # type: ignore[arg-type]


def answered(answer: ContextAnswer) -> BindAck:
    return BindAck(**SIZES, sec_addr=b"2103", assoc_group_id=7, p_result_list=(answer,))  # type: ignore[arg-type]


CASES: dict[str, tuple[list[Pdu], str]] = {
    "accepted": ([bind(), answered(ContextAnswer(0, 0, NDR))], "no call was made"),
    "not answered": ([bind()], "the bind was not answered"),
    "refused": (
        [bind(), BindNak(call_id=1, provider_reject_reason=8)],
        "the bind was refused: authentication_type_not_recognized",
    ),
    "refused for another reason": (
        [bind(), BindNak(call_id=1, provider_reject_reason=77)],
        "the bind was refused: 77",
    ),
    "no interface": (
        [bind(), answered(ContextAnswer(2, 1))],
        "no interface was accepted: abstract_syntax_not_supported",
    ),
    "logon": (
        [bind(), Fault(call_id=1, p_cont_id=1, status=5)],
        "the logon was refused: RPC_S_ACCESS_DENIED",
    ),
}


def frames_of(payloads: list[bytes], whole: bool = True, port: int = 2103) -> list[bytes]:
    """A connection in which both sides send in turn."""
    frames: list[bytes] = []
    connection = Connection(3, 1000, frames)
    connection.frame(0, b"", SYN)
    connection.frame(1, b"", SYN | ACK)
    for number, octets in enumerate(payloads):
        connection.send(number % 2, octets)
    for side in (0, 1):
        connection.frame(side, b"", FIN | ACK)
    kept = frames if whole else frames[2:-2]
    old, new = SERVER[1].to_bytes(2, "big"), port.to_bytes(2, "big")
    return [each[:34] + each[34:38].replace(old, new) + each[38:] for each in kept]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "capture"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", [[], ["--json"], ["--status", "MQ_OK"]])
def test_a_connection_without_a_call_is_listed_with_the_reason(
    case: str, way: list[str], path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the list, but neither for programs nor where only some calls are wanted."""
    pdus, why = CASES[case]
    path.write_bytes(pcapng(frames_of([each.pack() for each in pdus])))
    assert main(["capture", "show", str(path), *way]) == 0
    out, told = capsys.readouterr()
    assert told == ""
    if way:
        assert "without a call" not in out
        return
    assert "0 calls in 0 conversations\n\n1 conversation without a call\n" in out
    line = out.splitlines()[-1]
    assert line.split()[:4] == ["1", "192.0.2.13:50003", "192.0.2.2:2103", "ncacn_ip_tcp"]
    assert line.endswith(f"  {why}")
    compare(path)


MESSAGE = bytes(4) + b"\xfeSMB" + bytes(60)


@pytest.mark.parametrize("kind", [b"\xffSMB", b"\xfeSMB", b"\xfdSMB", b"\xfcSMB"])
@pytest.mark.parametrize("whole", [True, False])
def test_smb_is_told_once_a_connection(kind: bytes, whole: bool, path: Path) -> None:
    """Also in its middle, and where PDUs are in its messages."""
    request = Request(call_id=1, p_cont_id=1, opnum=9, stub_data=bytes(40)).pack()
    message = MESSAGE.replace(b"\xfeSMB", kind) + request
    path.write_bytes(pcapng(frames_of([message] * 6, whole, 445)))
    found, problems = calls_of(path)
    assert found == []
    (problem,) = problems
    reason = "a connection to 192.0.2.2:445 holds SMB, which is not read"
    assert (problem.kind, problem.reason) == ("not read", reason)
    compare(path)


def test_the_middle_of_smb_has_no_calls_by_luck(path: Path) -> None:
    """What was captured of the connection begins with a PDU in the middle of a message."""
    request = Request(call_id=1, p_cont_id=1, opnum=9, stub_data=bytes(40)).pack()
    path.write_bytes(pcapng(frames_of([request, MESSAGE] * 4, False, 445)))
    found, problems = calls_of(path)
    assert (found, [each.kind for each in problems]) == ([], ["not read"])
    session = b"\x81\0\0\x44" + bytes(68)
    path.write_bytes(pcapng(frames_of([session, b"\x82\0\0\0", MESSAGE], True, 139)))
    found, problems = calls_of(path)
    assert (found, [each.kind for each in problems]) == ([], ["not read"])
