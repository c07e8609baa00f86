"""impacket's own client against a server in this process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from impacket import uuid as impacket_uuid
from impacket.dcerpc.v5 import epm, mgmt, transport
from impacket.dcerpc.v5.rpcrt import DCERPCException

from rpcqm.codec.interface import load
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.interface_registry import InterfacePolicy
from rpcqm.rpc.security.context import PKT_PRIVACY
from tests.support.accounts import PASSWORD, TestAccounts
from tests.support.rpc.probe import OTHER, PROBE, ProbeHandlers, ProbeInterface
from tests.support.rpc.rpc_server import RunningServer, serving

LEVELS = [1, 2, 4, 5, 6]


@pytest.fixture
def handlers() -> ProbeHandlers:
    return ProbeHandlers()


@pytest.fixture
def running(tmp_path: Path, handlers: ProbeHandlers) -> Iterator[RunningServer]:
    locked = InterfacePolicy(minimum_level=PKT_PRIVACY)
    with serving(
        (ProbeInterface(), handlers, InterfacePolicy(annotation="a probe")),
        (ProbeInterface(OTHER), handlers, locked),
        accounts=TestAccounts(tmp_path),
    ) as server:
        yield server


def connect(port: int, level: int = 1, user: str = "alice", password: str = PASSWORD) -> Any:
    binding = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
    binding.set_connect_timeout(10)
    dce = binding.get_dce_rpc()
    if level > 1:
        binding.set_credentials(user, password)
        dce.set_auth_level(level)
    dce.connect()
    return dce


def bound(port: int, level: int = 1, **account: str) -> Any:
    dce = connect(port, level, **account)
    dce.bind(impacket_uuid.uuidtup_to_bin((str(PROBE.uuid), "1.0")))
    return dce


def call(dce: Any, opnum: int, stub: bytes) -> bytes:
    dce.call(opnum, stub)
    return bytes(dce.recv())


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("length", [0, 5, 1000, 5800, 40_000])
def test_calls_at_every_level_with_fragments_both_ways(
    running: RunningServer, level: int, length: int
) -> None:
    dce = bound(running.port, level)
    octets = bytes(range(256)) * (length // 256 + 1)
    for _ in range(3):
        assert call(dce, 1, octets[:length]) == octets[:length] + bytes(4)
    dce.disconnect()


def test_small_fragments_of_the_client(running: RunningServer) -> None:
    dce = bound(running.port, 6)
    dce.set_max_fragment_size(100)
    assert call(dce, 1, bytes(3000)) == bytes(3004)
    dce.disconnect()


@pytest.mark.parametrize("level", LEVELS)
def test_the_handler_sees_the_caller(
    running: RunningServer, handlers: ProbeHandlers, level: int
) -> None:
    dce = bound(running.port, level)
    call(dce, 0, b"")
    seen = handlers.calls[-1]
    assert seen.identity.name == ("ANONYMOUS LOGON" if level == 1 else "alice")
    # impacket does not sign at level 4, so it is taken for what it is.
    assert seen.authentication_level == {4: 2}.get(level, level)
    dce.disconnect()


@pytest.mark.parametrize("level", [2, 5, 6])
@pytest.mark.parametrize("user", ["alice", "mallory"])
def test_a_wrong_password_gets_nowhere(
    running: RunningServer, handlers: ProbeHandlers, level: int, user: str
) -> None:
    dce = bound(running.port, level, user=user, password="wrong")
    with pytest.raises(DCERPCException, match="rpc_s_access_denied"):
        call(dce, 0, b"")
    assert handlers.calls == []


def test_a_level_below_the_interfaces_is_refused(running: RunningServer) -> None:
    other = impacket_uuid.uuidtup_to_bin((str(OTHER.uuid), "1.0"))
    for level, allowed in ((1, False), (5, False), (6, True)):
        dce = connect(running.port, level)
        dce.bind(other)
        if allowed:
            assert call(dce, 1, b"x") == b"x\0\0\0\0"
        else:
            with pytest.raises(DCERPCException, match="rpc_s_access_denied"):
                call(dce, 1, b"x")
        dce.disconnect()


def test_an_unknown_interface_is_rejected(running: RunningServer) -> None:
    dce = connect(running.port)
    with pytest.raises(DCERPCException, match="abstract_syntax_not_supported"):
        dce.bind(impacket_uuid.uuidtup_to_bin((str(OTHER.uuid), "9.0")))


def test_an_unknown_opnum_is_refused_and_the_connection_lives(running: RunningServer) -> None:
    dce = bound(running.port)
    with pytest.raises(DCERPCException, match="nca_s_op_rng_error"):
        call(dce, 3, b"")
    with pytest.raises(DCERPCException, match="rpc_x_bad_stub_data"):
        call(dce, 1, b"bad")
    assert call(dce, 1, b"x") == b"x\0\0\0\0"


def test_a_second_interface_by_alter_context(running: RunningServer) -> None:
    dce = bound(running.port, AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY)
    second = dce.alter_ctx(impacket_uuid.uuidtup_to_bin((str(OTHER.uuid), "1.0")))
    second.set_auth_level(6)
    assert call(second, 1, b"x") == b"x\0\0\0\0"


def towers(port: int, **inquiry: Any) -> set[tuple[str, str]]:
    """What rpcdump.py prints: interface and binding of each element."""
    found = epm.hept_lookup("127.0.0.1", dce=connect(port), **inquiry)
    return {
        (str(entry["tower"]["Floors"][0]), epm.PrintStringBinding(entry["tower"]["Floors"]))
        for entry in found
    }


def test_rpcdump_lists_every_interface(running: RunningServer) -> None:
    binding = f"ncacn_ip_tcp:127.0.0.1[{running.port}]"
    assert towers(running.epm_port) == {
        (f"{PROBE.uuid} v1.2".upper().replace("V", "v"), binding),
        (f"{OTHER.uuid} v1.0".upper().replace("V", "v"), binding),
    }


def test_the_annotation_is_told(running: RunningServer) -> None:
    found = epm.hept_lookup("127.0.0.1", dce=connect(running.epm_port))
    assert {entry["annotation"].rstrip(b"\0") for entry in found} == {b"a probe", b""}


def test_an_interface_is_mapped_to_its_port(running: RunningServer) -> None:
    interface = impacket_uuid.uuidtup_to_bin((str(PROBE.uuid), "1.0"))
    found = epm.hept_map(
        "127.0.0.1", interface, protocol="ncacn_ip_tcp", dce=connect(running.epm_port)
    )
    assert found == f"ncacn_ip_tcp:127.0.0.1[{running.port}]"


def test_an_unknown_interface_is_not_mapped(running: RunningServer) -> None:
    interface = impacket_uuid.uuidtup_to_bin((str(PROBE.uuid), "7.0"))
    with pytest.raises(DCERPCException, match=r"ept_s_not_registered|0x16c9a0d6"):
        epm.hept_map("127.0.0.1", interface, protocol="ncacn_ip_tcp", dce=connect(running.epm_port))


def test_the_management_interface_answers(running: RunningServer) -> None:
    dce = connect(running.port)
    dce.bind(mgmt.MSRPC_UUID_MGMT)
    listed = mgmt.hinq_if_ids(dce)["if_id_vector"]["if_id"]
    found = {impacket_uuid.bin_to_string(each["Data"]["Uuid"]).lower() for each in listed}
    assert found == {str(PROBE.uuid), str(OTHER.uuid)}
    assert dce.request(mgmt.is_server_listening(), checkError=False)["status"] == 0
    with pytest.raises(DCERPCException, match="rpc_s_access_denied"):
        mgmt.hstop_server_listening(dce)
    assert b"".join(mgmt.hinq_princ_name(dce, 10, 100)["princ_name"]) == b"rpcqm/test\0"


def test_statistics_count_calls(running: RunningServer) -> None:
    dce = connect(running.port)
    dce.bind(mgmt.MSRPC_UUID_MGMT)
    first = mgmt.hinq_stats(dce, 4)["statistics"]
    second = mgmt.hinq_stats(dce, 4)["statistics"]
    assert [after - before for before, after in zip(first, second, strict=True)] == [1, 0, 1, 1]


def test_the_mapper_serves_itself_only(running: RunningServer) -> None:
    assert load("epm").uuid != PROBE.uuid
    dce = connect(running.epm_port)
    with pytest.raises(DCERPCException, match="abstract_syntax_not_supported"):
        dce.bind(impacket_uuid.uuidtup_to_bin((str(PROBE.uuid), "1.0")))
