"""The drop-in for impacket's DCERPCServer, with impacket's own classes on both sides."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from impacket import uuid as impacket_uuid
from impacket.dcerpc.v5 import mgmt, rpcrt, transport, wkst
from impacket.dcerpc.v5.rpcrt import DCERPCException

from rpcqm.rpc import listener
from rpcqm.rpc.listener import DCERPCServer
from tests.support.accounts import PASSWORD, TestAccounts

WORKSTATION = ("6BFFD098-A112-3610-9833-46C3F87E345A", "1.0")
OTHER = ("5f1d3b1e-8d0e-4c7b-9d9f-6a1c6b5d9a01", "2.5")


class Workstation(DCERPCServer):
    """A server as people write them for impacket, with another base class."""

    def __init__(self) -> None:
        DCERPCServer.__init__(self)
        self.release = threading.Event()
        self.addCallbacks(WORKSTATION, "\\PIPE\\wkssvc", {0: self.NetrWkstaGetInfo})
        self.addCallbacks(OTHER, "ignored", {0: bytes, 2: self.wait, 3: self.fail})

    def NetrWkstaGetInfo(self, data: bytes) -> Any:
        request = wkst.NetrWkstaGetInfo(data)
        answer = wkst.NetrWkstaGetInfoResponse()
        answer["WkstaInfo"]["tag"] = request["Level"]
        answer["WkstaInfo"]["WkstaInfo100"]["wki100_computername"] = "RPCQM\0"
        answer["WkstaInfo"]["WkstaInfo100"]["wki100_langroup"] = "WORKGROUP\0"
        answer["ErrorCode"] = 0
        return answer

    def wait(self, data: bytes) -> bytes:
        assert self.release.wait(20)
        return data

    def fail(self, data: bytes) -> bytes:
        raise RuntimeError("a bug in a callback")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Workstation]:
    started = Workstation()
    started.daemon = True
    started.setAccounts(TestAccounts(tmp_path))
    started.setListenPort(0)
    started.setCallbackThreads(4)
    started.start()
    yield started
    started.release.set()
    started.stop()
    started.join(20)
    assert not started.is_alive()


def connect(server: Workstation, interface: tuple[str, str], level: int = 1) -> Any:
    port = server.getListenPort()
    binding = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{port}]")
    dce = binding.get_dce_rpc()
    if level > 1:
        binding.set_credentials("alice", PASSWORD)
        dce.set_auth_level(level)
    dce.connect()
    dce.bind(impacket_uuid.uuidtup_to_bin(interface))
    return dce


def call(dce: Any, opnum: int, stub: bytes) -> bytes:
    dce.call(opnum, stub)
    return bytes(dce.recv())


@pytest.mark.parametrize("level", [1, 2, 5, 6])
def test_an_interface_of_impackets_with_and_without_ntlm(server: Workstation, level: int) -> None:
    dce = connect(server, WORKSTATION, level)
    answer = wkst.hNetrWkstaGetInfo(dce, 100)
    assert answer["WkstaInfo"]["WkstaInfo100"]["wki100_computername"] == "RPCQM\0"
    dce.disconnect()


def test_the_secondary_address_is_told(server: Workstation) -> None:
    binding = transport.DCERPCTransportFactory(f"ncacn_ip_tcp:127.0.0.1[{server.getListenPort()}]")
    dce = binding.get_dce_rpc()
    dce.connect()
    ack = rpcrt.MSRPCBindAck(dce.bind(impacket_uuid.uuidtup_to_bin(WORKSTATION)).get_packet())
    assert ack["SecondaryAddr"].rstrip("\0") == "\\PIPE\\wkssvc"


def test_several_connections_are_served_at_once(server: Workstation) -> None:
    waiting, free = connect(server, OTHER), connect(server, OTHER)
    waiting.call(2, b"blocked")
    assert call(free, 0, b"x" * 10_000) == b"x" * 10_000
    server.release.set()
    assert waiting.recv() == b"blocked"


def test_what_fails_leaves_the_connection_alive(server: Workstation) -> None:
    dce = connect(server, OTHER)
    with pytest.raises(DCERPCException, match="nca_s_fault_unspec"):
        call(dce, 3, b"")
    for opnum in (1, 4, 500):
        with pytest.raises(DCERPCException, match="nca_s_op_rng_error"):
            call(dce, opnum, b"")
    assert call(dce, 0, b"x") == b"x"


def test_an_unknown_interface_is_rejected(server: Workstation) -> None:
    with pytest.raises(DCERPCException, match="abstract_syntax_not_supported"):
        connect(server, (OTHER[0], "3.0"))


def test_the_management_interface_comes_with_it(server: Workstation) -> None:
    dce = connect(server, ("afa8bd80-7d8a-11c9-bef4-08002b102989", "1.0"))
    listed = mgmt.hinq_if_ids(dce)["if_id_vector"]["if_id"]
    found = {impacket_uuid.bin_to_string(each["Data"]["Uuid"]).lower() for each in listed}
    assert found == {WORKSTATION[0].lower(), OTHER[0]}


def test_a_server_may_be_stopped_before_and_after_it_has_begun() -> None:
    for wait in (False, True):
        server = DCERPCServer()
        server.addCallbacks(OTHER, "x", {0: bytes})
        server.start()
        while wait and server._loop is None:
            threading.Event().wait(0.001)
        server.stop()
        server.join(20)
        assert not server.is_alive()


def test_the_constants_are_impackets() -> None:
    names = [name for name in vars(listener) if name.startswith(("MSRPC_", "PFC_", "RPC_C_"))]
    assert len(names) > 30
    for name in names:
        assert getattr(listener, name) == getattr(rpcrt, name)


def test_every_public_method_of_impackets_setup_is_there() -> None:
    face = {"addCallbacks", "setListenAddress", "setListenPort", "getListenPort", "log", "run"}
    assert face <= {*vars(rpcrt.DCERPCServer)}
    assert face <= {*vars(DCERPCServer)}
