"""Samba's generated decoders as a second opinion on stub data and PDUs."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rpcqm.codec.interface import TransferSyntax, Value, load
from rpcqm.codec.types import epm, mgmt
from rpcqm.rpc.constants import PfcFlags
from rpcqm.rpc.pdu import (
    AlterContext,
    AlterContextResp,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    CoCancel,
    ContextAnswer,
    ContextElement,
    Fault,
    Orphaned,
    Pdu,
    Request,
    Response,
    SecurityTrailer,
    Shutdown,
    SyntaxId,
)

REMOTE_READ = UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28")
OBJECT = UUID("5d1f8a2e-4c3b-4a19-8e7d-6f5c4b3a2918")
NDR, NDR64 = TransferSyntax.NDR, TransferSyntax.NDR64
HANDLE = bytes(4) + OBJECT.bytes_le


@pytest.fixture
def ndrdump(require: Callable[..., None], tmp_path: Path) -> Callable[..., str]:
    """Samba's dump of bytes; fails when they cannot be read to their end."""
    require("ndrdump")

    def dump(what: str, how: str, data: bytes, *options: str, context: bytes = b"") -> str:
        (tmp_path / "data").write_bytes(data)
        (tmp_path / "context").write_bytes(context)
        command = ["ndrdump", *what.split(), how, str(tmp_path / "data"), *options]
        if how == "out":
            command += ["--context-file", str(tmp_path / "context")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "WARNING" not in done.stdout
        return done.stdout

    return dump


def values(dump: str, field: str) -> list[str]:
    """What the dump shows for each field of that name, without the number in brackets."""
    return [line.strip() for line in re.findall(rf"^ *{field} +: (.*?)(?: \(\d+\))?$", dump, re.M)]


def floor(left: bytes, right: bytes) -> bytes:
    return b"".join(len(side).to_bytes(2, "little") + side for side in (left, right))


def tower(port: int) -> epm.twr_t:
    """ncacn_ip_tcp:127.0.0.1[port] of RemoteRead 1.0 ([C706] appendix L)."""
    floors = (
        floor(b"\x0d" + REMOTE_READ.bytes_le + b"\1\0", b"\0\0"),
        floor(b"\x0d" + NDR.uuid.bytes_le + b"\2\0", b"\0\0"),
        floor(b"\x0b", b"\0\0"),
        floor(b"\x07", port.to_bytes(2, "big")),
        floor(b"\x09", bytes([127, 0, 0, 1])),
    )
    octets = b"\5\0" + b"".join(floors)
    return epm.twr_t(tower_length=len(octets), tower_octet_string=octets)


MAP_REQUEST = epm.ept_mapRequest(obj=OBJECT, map_tower=tower(0), entry_handle=HANDLE, max_towers=4)
MAP_RESPONSE = epm.ept_mapResponse(
    entry_handle=HANDLE,
    num_towers=2,
    ITowers=[tower(2103), tower(2105)],
    status=0x16C9A0D6,
    max_towers=4,
)
LOOKUP_REQUEST = epm.ept_lookupRequest(
    inquiry_type=1,
    object=OBJECT,
    Ifid=epm.RPC_IF_ID(Uuid=REMOTE_READ, VersMajor=1, VersMinor=0),
    vers_option=3,
    entry_handle=HANDLE,
    max_ents=7,
)
LOOKUP_RESPONSE = epm.ept_lookupResponse(
    entry_handle=HANDLE,
    num_ents=2,
    entries=[
        epm.ept_entry_t(object=OBJECT, tower=tower(2103), annotation="the first"),
        epm.ept_entry_t(object=UUID(int=0), tower=tower(2105), annotation=""),
    ],
    status=0,
    max_ents=7,
)
INTERFACES = mgmt.rpc_mgmt_inq_if_idsResponse(
    if_id_vector=mgmt.rpc_if_id_vector_t(
        Count=2,
        IfId=[
            epm.RPC_IF_ID(Uuid=REMOTE_READ, VersMajor=1, VersMinor=0),
            epm.RPC_IF_ID(Uuid=OBJECT, VersMajor=3, VersMinor=0),
        ],
    ),
    status=0,
)
NAME_REQUEST = mgmt.rpc_mgmt_inq_princ_nameRequest(authn_proto=10, princ_name_size=64)
NAME_RESPONSE = mgmt.rpc_mgmt_inq_princ_nameResponse(
    princ_name="host/rpcqm", status=0, princ_name_size=64
)


def request(interface: str, operation: str, value: Value, syntax: TransferSyntax) -> bytes:
    return load(interface).operation(operation).encode_request(syntax, value)


def response(interface: str, operation: str, value: Value, syntax: TransferSyntax) -> bytes:
    return load(interface).operation(operation).encode_response(syntax, value)


# Samba's own description of towers counts their bytes in 32 bits under NDR64 as well, so that
# only methods without a tower can be compared there.


def test_a_map_request_is_read(ndrdump: Callable[..., str]) -> None:
    dump = ndrdump("epmapper epm_Map", "in", request("epm", "ept_map", MAP_REQUEST, NDR))
    assert values(dump, "object") == ["*", str(OBJECT)]
    assert values(dump, "protocol") == [
        f"EPM_PROTOCOL_{name}" for name in ("UUID", "UUID", "NCACN", "TCP", "IP")
    ]
    assert values(dump, "max_towers") == ["0x00000004"]


def test_a_map_response_is_read(ndrdump: Callable[..., str]) -> None:
    context = request("epm", "ept_map", MAP_REQUEST, NDR)
    stub = response("epm", "ept_map", MAP_RESPONSE, NDR)
    dump = ndrdump("epmapper epm_Map", "out", stub, context=context)
    assert values(dump, "port") == ["0x0837", "0x0839"]
    assert values(dump, "ipaddr") == ["127.0.0.1"] * 2
    assert values(dump, "num_towers")[-1] == "0x00000002"
    assert values(dump, "result") == ["0x16c9a0d6"]


@pytest.mark.parametrize("syntax", [NDR, NDR64], ids=["ndr", "ndr64"])
def test_a_lookup_request_is_read(ndrdump: Callable[..., str], syntax: TransferSyntax) -> None:
    stub = request("epm", "ept_lookup", LOOKUP_REQUEST, syntax)
    dump = ndrdump("epmapper epm_Lookup", "in", stub, *ndr64(syntax))
    assert values(dump, "inquiry_type") == ["RPC_C_EP_MATCH_BY_IF"]
    assert values(dump, "object") == ["*", str(OBJECT)]
    assert values(dump, "uuid") == [str(REMOTE_READ), str(OBJECT)]
    assert re.search(r"vers_option +: \w+ \(3\)$", dump, re.M)
    assert values(dump, "max_ents") == ["0x00000007"]


def test_a_lookup_response_is_read(ndrdump: Callable[..., str]) -> None:
    context = request("epm", "ept_lookup", LOOKUP_REQUEST, NDR)
    stub = response("epm", "ept_lookup", LOOKUP_RESPONSE, NDR)
    dump = ndrdump("epmapper epm_Lookup", "out", stub, context=context)
    assert values(dump, "annotation") == ["'the first'", "''"]
    assert values(dump, "port") == ["0x0837", "0x0839"]
    assert values(dump, "num_ents")[-1] == "0x00000002"


@pytest.mark.parametrize("syntax", [NDR, NDR64], ids=["ndr", "ndr64"])
def test_a_list_of_interfaces_is_read(ndrdump: Callable[..., str], syntax: TransferSyntax) -> None:
    stub = response("mgmt", "rpc_mgmt_inq_if_ids", INTERFACES, syntax)
    dump = ndrdump("mgmt mgmt_inq_if_ids", "out", stub, *ndr64(syntax))
    assert values(dump, "uuid") == [str(REMOTE_READ), str(OBJECT)]
    assert values(dump, "if_version") == ["0x00000001", "0x00000003"]


@pytest.mark.parametrize("syntax", [NDR, NDR64], ids=["ndr", "ndr64"])
def test_a_principal_name_is_read(ndrdump: Callable[..., str], syntax: TransferSyntax) -> None:
    context = request("mgmt", "rpc_mgmt_inq_princ_name", NAME_REQUEST, syntax)
    stub = response("mgmt", "rpc_mgmt_inq_princ_name", NAME_RESPONSE, syntax)
    dump = ndrdump("mgmt mgmt_inq_princ_name", "out", stub, *ndr64(syntax), context=context)
    assert values(dump, "princ_name") == ["'host/rpcqm'"]


def ndr64(syntax: TransferSyntax) -> list[str]:
    return ["--ndr64"] if syntax is NDR64 else []


ABSTRACT = SyntaxId(REMOTE_READ, 1)
TRANSFER = SyntaxId(NDR.uuid, 2)
ELEMENTS = (
    ContextElement(0, ABSTRACT, (TRANSFER, SyntaxId(NDR64.uuid, 1))),
    ContextElement(7, ABSTRACT, (TRANSFER,)),
)
ANSWERS = (ContextAnswer(0, 0, TRANSFER), ContextAnswer(2, 2))
FRAGMENTS: Any = {"max_xmit_frag": 5840, "max_recv_frag": 4280, "assoc_group_id": 0x1234}
TRAILER = SecurityTrailer(10, 6, 79231, bytes(range(16)))
OBJECT_FLAGS = PfcFlags.PFC_FIRST_FRAG | PfcFlags.PFC_LAST_FRAG | PfcFlags.PFC_OBJECT_UUID

PDUS: list[Pdu] = [
    Bind(call_id=1, p_context_elem=ELEMENTS, **FRAGMENTS),
    Bind(call_id=1, p_context_elem=ELEMENTS, auth=TRAILER, **FRAGMENTS),
    BindAck(call_id=1, sec_addr=b"135", p_result_list=ANSWERS, **FRAGMENTS),
    BindAck(call_id=1, sec_addr=b"49152", p_result_list=ANSWERS, auth=TRAILER, **FRAGMENTS),
    BindNak(call_id=1, provider_reject_reason=4),
    AlterContext(call_id=2, p_context_elem=ELEMENTS, **FRAGMENTS),
    AlterContextResp(call_id=2, p_result_list=ANSWERS, **FRAGMENTS),
    Auth3(call_id=3, auth=TRAILER),
    Request(call_id=4, p_cont_id=7, opnum=10, alloc_hint=4, stub_data=b"stub"),
    Request(
        call_id=4,
        p_cont_id=7,
        opnum=10,
        object_uuid=OBJECT,
        pfc_flags=OBJECT_FLAGS,
        stub_data=b"stub",
        auth=TRAILER,
    ),
    Response(call_id=4, p_cont_id=7, alloc_hint=4, stub_data=b"stub", auth=TRAILER),
    Fault(call_id=4, p_cont_id=7, status=0x1C010003),
    Shutdown(call_id=0),
    CoCancel(call_id=4),
    Orphaned(call_id=4),
]


@pytest.mark.parametrize("pdu", PDUS, ids=lambda pdu: type(pdu).__name__)
def test_a_pdu_is_read_and_written_alike(ndrdump: Callable[..., str], pdu: Pdu) -> None:
    dump = ndrdump("dcerpc ncacn_packet", "struct", pdu.pack(), "--validate")
    assert "differ" not in dump
    assert values(dump, "call_id") == [f"0x{pdu.call_id:08x}"]


def test_the_fields_of_a_bind_are_read(ndrdump: Callable[..., str]) -> None:
    dump = ndrdump("dcerpc ncacn_packet", "struct", PDUS[1].pack())
    assert values(dump, "max_recv_frag") == ["0x10b8"]
    assert values(dump, "assoc_group_id") == ["0x00001234"]
    assert values(dump, "context_id") == ["0x0000", "0x0007"]
    transfer = [str(NDR.uuid), str(NDR64.uuid)]
    assert values(dump, "uuid") == [
        *(str(REMOTE_READ), *transfer, str(REMOTE_READ), str(NDR.uuid)),
    ]


def test_the_status_of_a_fault_is_read(ndrdump: Callable[..., str]) -> None:
    fault = next(pdu for pdu in PDUS if isinstance(pdu, Fault))
    dump = ndrdump("dcerpc ncacn_packet", "struct", fault.pack())
    assert values(dump, "status") == ["DCERPC_NCA_S_UNKNOWN_IF"]
