"""The drop-in for impacket's DCERPCServer, with impacket's own classes on both sides."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from impacket import uuid as impacket_uuid
from impacket.dcerpc.v5 import mgmt, rpcrt, transport, wkst
from impacket.dcerpc.v5.rpcrt import DCERPCException

from rpcqm.base.errors import FaultStatus, RpcFault
from rpcqm.codec.interface import TransferSyntax, read
from rpcqm.rpc import listener
from rpcqm.rpc.client import RpcClient
from rpcqm.rpc.interface_registry import InterfacePolicy
from rpcqm.rpc.listener import DCERPCServer
from rpcqm.rpc.security.context import PKT_INTEGRITY, PKT_PRIVACY, Credentials
from rpcqm.rpc.security.ntlm import NtlmCredentials
from rpcqm.rpc.security.spnego import SpnegoCredentials
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


# By IDL.

COUNTER = """
    [uuid(5f1d3b1e-8d0e-4c7b-9d9f-6a1c6b5d9a03), version(1.0), pointer_default(unique)]
    interface counter
    {
        long add([in] long a, [in, unique, string] wchar_t *text, [out] __int64 *sum);
        long fail([in] long status);
        long nothing(void);
    }
"""


class Counter:
    def __init__(self, server: DCERPCServer) -> None:
        self.server = server
        self.seen: list[tuple[str, int]] = []

    def add(self, request: Any) -> Any:
        call = self.server.currentCall()
        self.seen.append((call.identity.name, call.authentication_level))
        total = request.a + len(request.text or "")
        return ADD.response_class(sum=total, result=0)

    def fail(self, request: Any) -> int:
        raise RpcFault(FaultStatus(request.status))


INTERFACE = read(COUNTER)
ADD = INTERFACE.operation("add")


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[Counter]:
    started = DCERPCServer()
    methods = Counter(started)
    started.addInterface(INTERFACE, methods)
    started.setAccounts(TestAccounts(tmp_path))
    started.start()
    yield methods
    started.stop()
    started.join(20)


def go(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 20))


async def bound(counter: Counter, syntax: TransferSyntax | None = None, **options: Any) -> Any:
    port = counter.server.getListenPort()
    client = await RpcClient.connect_tcp("127.0.0.1", port, **options)
    return await client.bind(INTERFACE, syntax)


ALICE = NtlmCredentials("alice", PASSWORD)


@pytest.mark.parametrize(
    "credentials", [ALICE, SpnegoCredentials((ALICE,))], ids=["NTLM", "SPNEGO"]
)
@pytest.mark.parametrize("syntax", list(TransferSyntax), ids=lambda syntax: syntax.name)
def test_an_interface_by_its_idl(
    counter: Counter, syntax: TransferSyntax, credentials: Credentials
) -> None:
    async def main() -> None:
        binding = await bound(counter, syntax, credentials=credentials)
        assert binding.syntax is syntax
        answer = await binding.call("add", ADD.request_class(a=-5, text="four"))
        assert (answer.sum, answer.result) == (-1, 0)
        binding.client.close()

    go(main())
    assert counter.seen == [("alice", 6)]


def test_ndr64_is_preferred(counter: Counter) -> None:
    async def main() -> TransferSyntax:
        binding = await bound(counter)
        binding.client.close()
        assert isinstance(binding.syntax, TransferSyntax)
        return binding.syntax

    assert go(main()) is TransferSyntax.NDR64


def test_faults_of_methods_and_methods_that_are_not_there(counter: Counter) -> None:
    async def main() -> None:
        binding = await bound(counter)
        request = INTERFACE.operation("fail").request_class(status=5)
        with pytest.raises(RpcFault, match="RPC_S_ACCESS_DENIED"):
            await binding.call("fail", request)
        with pytest.raises(RpcFault, match="nca_s_op_rng_error"):
            await binding.call("nothing", INTERFACE.operation("nothing").request_class())
        binding.client.close()

    go(main())


def test_a_policy_is_kept(tmp_path: Path) -> None:
    server = DCERPCServer()
    methods = Counter(server)
    server.addInterface(INTERFACE, methods, InterfacePolicy(minimum_level=PKT_PRIVACY))
    server.setAccounts(TestAccounts(tmp_path))
    server.start()

    async def main() -> None:
        for level in (PKT_INTEGRITY, PKT_PRIVACY):
            binding = await bound(methods, credentials=ALICE, level=level)
            refused = (
                nullcontext() if level is PKT_PRIVACY else pytest.raises(RpcFault, match="ACC")
            )
            with refused:
                await binding.call("add", ADD.request_class(a=1))
            binding.client.close()

    go(main())
    server.stop()
    server.join(20)
    assert methods.seen == [("alice", 6)]


@pytest.mark.parametrize(
    ("number", "printed"),
    [
        pytest.param(0, ["alice greets the world", "1"], id="listener"),
        pytest.param(1, ["42 NDR64"], id="asyncio"),
    ],
)
def test_the_examples_of_the_documentation_run(number: int, printed: list[str]) -> None:
    text = (Path(__file__).parents[3] / "docs" / "rpc.md").read_text("utf-8")
    example = text.split("```python\n")[1 + number].split("```")[0]
    command = [sys.executable, "-c", example]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == printed
