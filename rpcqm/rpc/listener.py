"""A drop-in for impacket's `DCERPCServer`: the same face, another server inside.

    server = DCERPCServer()
    server.addCallbacks((uuid, "1.0"), "2103", {0: callback})
    server.setListenPort(2103)
    server.start()

A callback takes the stub data of a request and returns that of the response, as bytes or as an
impacket structure. An interface whose IDL is at hand can be given as such (`addInterface`): its
methods take and return values, and it is served in NDR64 as well.

Unlike the original this serves any number of connections at once, fragments both ways, several
interfaces per connection, authentication (`setAccounts`: NTLM and SPNEGO, `setKeytab`: Kerberos),
the management interface, cancels, and stops (`stop`). Callbacks run one at a time in a thread of
their own, as they did, unless `setCallbackThreads` allows more; `currentCall` says who calls. An
unknown opnum is nca_s_op_rng_error, a callback that raises is nca_s_fault_unspec (or the status
of its RpcFault); in all cases the connection lives on.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from operator import attrgetter
from pathlib import Path
from typing import Any
from uuid import UUID

import uvloop

from rpcqm.base.completion import Completion
from rpcqm.codec.interface import OperationCodec, TransferSyntax, Value
from rpcqm.codec.ndr.compile import Buffer, MessageCodec
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import (
    AuthenticationLevel,
    AuthenticationType,
    ContextResult,
    PduType,
    PfcFlags,
)
from rpcqm.rpc.interface_registry import InterfacePolicy, ServedInterface
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.security.context import SecurityProvider
from rpcqm.rpc.security.ntlm import AccountDirectory
from rpcqm.rpc.security.providers import security_providers
from rpcqm.rpc.server import RpcServer

MSRPC_REQUEST = PduType.request
MSRPC_RESPONSE = PduType.response
MSRPC_FAULT = PduType.fault
MSRPC_BIND = PduType.bind
MSRPC_BINDACK = PduType.bind_ack
MSRPC_BINDNAK = PduType.bind_nak
MSRPC_ALTERCTX = PduType.alter_context
MSRPC_ALTERCTX_R = PduType.alter_context_resp
MSRPC_AUTH3 = PduType.auth3
MSRPC_SHUTDOWN = PduType.shutdown
MSRPC_CO_CANCEL = PduType.co_cancel
MSRPC_ORPHANED = PduType.orphaned

PFC_FIRST_FRAG = PfcFlags.PFC_FIRST_FRAG
PFC_LAST_FRAG = PfcFlags.PFC_LAST_FRAG
MSRPC_SUPPORT_SIGN = PfcFlags.PFC_SUPPORT_HEADER_SIGN
MSRPC_PENDING_CANCEL = PfcFlags.PFC_PENDING_CANCEL
PFC_CONC_MPX = PfcFlags.PFC_CONC_MPX
PFC_DID_NOT_EXECUTE = PfcFlags.PFC_DID_NOT_EXECUTE
PFC_MAYBE = PfcFlags.PFC_MAYBE
PFC_OBJECT_UUID = PfcFlags.PFC_OBJECT_UUID

RPC_C_AUTHN_NONE = AuthenticationType.RPC_C_AUTHN_NONE
RPC_C_AUTHN_GSS_NEGOTIATE = AuthenticationType.RPC_C_AUTHN_GSS_NEGOTIATE
RPC_C_AUTHN_WINNT = AuthenticationType.RPC_C_AUTHN_WINNT
RPC_C_AUTHN_GSS_SCHANNEL = AuthenticationType.RPC_C_AUTHN_GSS_SCHANNEL
RPC_C_AUTHN_GSS_KERBEROS = AuthenticationType.RPC_C_AUTHN_GSS_KERBEROS
RPC_C_AUTHN_NETLOGON = AuthenticationType.RPC_C_AUTHN_NETLOGON
RPC_C_AUTHN_DEFAULT = AuthenticationType.RPC_C_AUTHN_DEFAULT

RPC_C_AUTHN_LEVEL_NONE = AuthenticationLevel.RPC_C_AUTHN_LEVEL_NONE
RPC_C_AUTHN_LEVEL_CONNECT = AuthenticationLevel.RPC_C_AUTHN_LEVEL_CONNECT
RPC_C_AUTHN_LEVEL_CALL = AuthenticationLevel.RPC_C_AUTHN_LEVEL_CALL
RPC_C_AUTHN_LEVEL_PKT = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT
RPC_C_AUTHN_LEVEL_PKT_INTEGRITY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY
RPC_C_AUTHN_LEVEL_PKT_PRIVACY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY

MSRPC_CONT_RESULT_ACCEPT = ContextResult.acceptance
MSRPC_CONT_RESULT_USER_REJECT = ContextResult.user_rejection
MSRPC_CONT_RESULT_PROV_REJECT = ContextResult.provider_rejection
MSRPC_CONT_RESULT_NEGOTIATE_ACK = ContextResult.negotiate_ack

Callback = Callable[[bytes], Any]


class _Stub(Value):
    """A request or a response given as octets only."""

    __slots__ = ("octets",)

    def __init__(self, octets: Buffer) -> None:
        self.octets = bytes(octets)


_OCTETS = MessageCodec(_Stub, attrgetter("octets"))


class _Operation:
    """An opnum that has a callback."""

    context_handles = ()
    response_class: type[Value] = _Stub

    def __init__(self, opnum: int) -> None:
        self.name = f"opnum_{opnum}"

    def codec(self, syntax: TransferSyntax, big_endian: bool = False) -> OperationCodec:
        return OperationCodec(_OCTETS, _OCTETS)

    def failure_response(self, request: Value, result: int) -> Value:
        raise TypeError("a callback returns stub data")


class _Interface:
    """An interface that consists of callbacks only."""

    def __init__(self, uuid: UUID, version: tuple[int, int], opnums: set[int]) -> None:
        self.name = str(uuid)
        self.uuid = uuid
        self.version = version
        self.syntaxes = (TransferSyntax.NDR,)
        self.operations = [
            _Operation(opnum) if opnum in opnums else None
            for opnum in range(max(opnums, default=-1) + 1)
        ]


class DCERPCServer(threading.Thread):
    """See the module's text; the methods are impacket's, and a few more."""

    def __init__(self) -> None:
        super().__init__()
        self._listenPort = 0
        self._listenAddress = "127.0.0.1"
        self._interfaces: list[tuple[ServedInterface, object, InterfacePolicy]] = []
        self._secondary_address = ""
        self._accounts: AccountDirectory | None = None
        self._keytab: tuple[Path, str] | None = None
        self._running = threading.local()
        self._limits = Limits()
        self._callback_threads = 1
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = threading.Event()
        self._sock = self._bound_socket()

    def addCallbacks(
        self, ifaceUUID: tuple[str, str], secondaryAddr: str, callbacks: Mapping[int, Callback]
    ) -> None:
        """Serve an interface: UUID and version, and a callback for each opnum.

        Binds are answered with the `secondaryAddr` of the first interface.
        """
        major, _, minor = ifaceUUID[1].partition(".")
        interface = _Interface(UUID(ifaceUUID[0]), (int(major), int(minor or 0)), set(callbacks))
        handlers = type("Callbacks", (), {})()
        for opnum, callback in callbacks.items():
            setattr(handlers, f"opnum_{opnum}", self._handler(_octets(callback)))
        self._interfaces.append((interface, handlers, InterfacePolicy()))
        self._secondary_address = self._secondary_address or secondaryAddr
        self.log(f"Callback added for UUID {ifaceUUID[0]} V:{ifaceUUID[1]}", logging.DEBUG)

    def addInterface(
        self, interface: ServedInterface, methods: object, policy: InterfacePolicy | None = None
    ) -> None:
        """Serve an interface by its IDL (`rpcqm.codec.interface.read` or `load`).

        `methods` has one for each operation, named as there; it takes a request and returns a
        response or a status. `policy` says what callers need, for example a minimum level.
        """
        handlers = type("Methods", (), {})()
        for operation in filter(None, interface.operations):
            method = getattr(methods, operation.name, None)
            if method is not None:
                setattr(handlers, operation.name, self._handler(method))
        self._interfaces.append((interface, handlers, policy or InterfacePolicy()))

    def currentCall(self) -> Call:
        """The call that this thread's callback runs for: its identity, its level, its peer."""
        call: Call = self._running.call
        return call

    def setListenAddress(self, addr: str) -> None:
        """Listen on another address than 127.0.0.1."""
        self._listenAddress = addr
        self._sock = self._bound_socket()

    def setListenPort(self, portNum: int) -> None:
        """Listen on this port; it is bound at once."""
        self._listenPort = portNum
        self._sock = self._bound_socket()

    def getListenPort(self) -> int:
        """The port, also before `start`."""
        return int(self._sock.getsockname()[1])

    def setAccounts(self, accounts: AccountDirectory) -> None:
        """Let callers authenticate, by NTLM or SPNEGO."""
        self._accounts = accounts

    def setKeytab(self, keytab: Path, principal: str = "") -> None:
        """Let the callers that have accounts authenticate by Kerberos as well."""
        self._keytab = keytab, principal

    def setLimits(self, limits: Limits) -> None:
        """Bound what clients may use."""
        self._limits = limits

    def setCallbackThreads(self, threads: int) -> None:
        """How many callbacks may run at once."""
        self._callback_threads = threads

    def log(self, msg: str, level: int = logging.INFO) -> None:
        logging.getLogger("impacket").log(level, msg)

    def start(self) -> None:
        """Listen, so that clients may connect from now on, and serve in a thread of its own."""
        self._sock.listen(1024)  # clients that connect all at once; the kernel may allow fewer
        super().start()

    def run(self) -> None:
        """Serve until `stop`."""
        with ThreadPoolExecutor(self._callback_threads) as self._workers:
            uvloop.run(self._serve())

    def stop(self) -> None:
        """Let the calls in flight be answered and end; `join` waits for that."""
        self._stopping.set()
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(self._wake.set)

    async def _serve(self) -> None:
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        server = RpcServer(providers=self._providers(), limits=self._limits)
        for interface, handlers, policy in self._interfaces:
            server.register(interface, handlers, policy)
        await server.listen_socket(self._sock, secondary_address=self._secondary_address)
        if not self._stopping.is_set():
            await self._wake.wait()
        await server.stop()
        self._loop = None

    def _bound_socket(self) -> socket.socket:
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((self._listenAddress, self._listenPort))
        return bound

    def _providers(self) -> dict[int, SecurityProvider]:
        if self._accounts is None:
            return {}
        keytab, principal = self._keytab or (None, "")
        return security_providers(self._accounts, keytab=keytab, principal=principal)

    def _handler(
        self, method: Callable[[Value], object]
    ) -> Callable[[Call, Value], Completion[object]]:
        """A handler that runs a method in a worker thread."""

        def run(call: Call, request: Value) -> object:
            self._running.call = call
            return method(request)

        def handle(call: Call, request: Value) -> Completion[object]:
            completion: Completion[object] = Completion()
            loop = asyncio.get_running_loop()
            future = self._workers.submit(run, call, request)
            future.add_done_callback(
                lambda done: loop.call_soon_threadsafe(_conclude, completion, done)
            )
            return completion

        return handle


def _octets(callback: Callback) -> Callable[[Value], _Stub]:
    """A method that answers with what a callback returns."""

    def method(request: Value) -> _Stub:
        assert isinstance(request, _Stub)
        answer = callback(request.octets)
        return _Stub(answer.getData() if hasattr(answer, "getData") else bytes(answer))

    return method


def _conclude(completion: Completion[object], done: "Future[object]") -> None:
    error = done.exception()
    if error is not None:
        completion.fail(error)
    else:
        completion.succeed(done.result())
