"""An asyncio client: connections, bindings to interfaces, and multiplexed calls."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, cast
from uuid import UUID

from rpcqm.base.errors import FaultStatus, HResult, NtStatus, RpcFault
from rpcqm.base.gathering import Gathering
from rpcqm.base.resolver import LookUp, connect, look_up
from rpcqm.codec.interface import Interface, OperationRequest, TransferSyntax, Value
from rpcqm.rpc.client_association import (
    BindAccepted,
    BindFailed,
    ClientAssociation,
    ClientEvent,
    ClientState,
    Faulted,
    Responded,
    ServerBroken,
    ShutdownAsked,
)
from rpcqm.rpc.constants import AuthenticationLevel, ProviderReason
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.rpc.security.context import NONE, PKT_PRIVACY, AuthenticationError, Credentials

_T = TypeVar("_T")
ResponseT = TypeVar("ResponseT", bound=Value)


def known_status(value: int) -> FaultStatus | HResult | NtStatus:
    """The named status of a fault; a number without a name becomes a FaultStatus."""
    for names in (FaultStatus, HResult, NtStatus):
        if value in names._value2member_map_:
            return names(value)
    return FaultStatus(value)


class _Protocol(asyncio.Protocol):
    """Carries bytes between a transport and a client."""

    def __init__(self, client: "RpcClient") -> None:
        self._client = client
        self.transport: asyncio.Transport | None = None
        self.writable = asyncio.Event()
        self.writable.set()
        self.closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._client.receive_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self.writable.set()
        self.closed.set()
        self._client.connection_lost(error)

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()


class RpcClient:
    """One connection to a server: one association, any number of interfaces and calls.

    Errors of calls: RpcFault for a fault, ConnectionError when the connection is lost.
    """

    def __init__(self, association: ClientAssociation, group_id: int = 0) -> None:
        self._association = association
        self._group_id = group_id
        self._protocol = _Protocol(self)
        self._bound: asyncio.Future[BindAccepted] | None = None
        self._binding = asyncio.Lock()
        self._calls: dict[int, asyncio.Future[bytes]] = {}
        self._gathering = Gathering(self._flush)

    @classmethod
    async def connect_tcp(
        cls,
        host: str,
        port: int,
        *,
        credentials: Credentials | None = None,
        level: AuthenticationLevel | None = None,
        group_id: int = 0,
        limits: Limits | None = None,
        find: LookUp = look_up,
    ) -> Self:
        """Connect to a TCP port; nothing is sent before the first `bind`.

        Credentials are NtlmCredentials, KerberosCredentials or SpnegoCredentials; with them the
        level is PKT_PRIVACY unless it is given. Raises OSError.
        """
        client = cls(_association(credentials, level, limits, host), group_id)
        await connect(lambda: client._protocol, host, port, find)
        return client

    @classmethod
    async def connect_unix(
        cls, path: Path | str, *, group_id: int = 0, limits: Limits | None = None
    ) -> Self:
        """Connect to a Unix socket, as the user whose process this is. Raises OSError."""
        client = cls(_association(None, None, limits), group_id)
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: client._protocol, str(path))
        return client

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await self.wait_closed()

    @property
    def group_id(self) -> int:
        """The association group; another connection may join it."""
        return self._association.group_id

    @property
    def connected(self) -> bool:
        """Whether calls can be sent."""
        transport = self._protocol.transport
        return transport is not None and not transport.is_closing()

    @property
    def multiplexed(self) -> bool:
        """Whether the server runs calls of this connection concurrently, once it is bound."""
        return self._association.multiplexed

    async def bind(self, interface: Interface, syntax: TransferSyntax | None = None) -> "Binding":
        """Agree with the server on an interface, in `syntax` or what it prefers.

        Raises RpcFault (nca_s_unk_if, RPC_S_UNSUPPORTED_TRANS_SYN, …) or AuthenticationError
        when it refuses, ConnectionError when it goes away.
        """
        syntaxes = (syntax,) if syntax is not None else interface.syntaxes
        abstract = SyntaxId(interface.uuid, *interface.version)
        transfers = {SyntaxId(each.uuid, each.version): each for each in syntaxes}
        async with self._binding:
            await self._propose(abstract, list(transfers))
        context = self._association.context_of(abstract)
        if context is None or context[1] not in transfers:
            raise RpcFault(FaultStatus.nca_s_unk_if, f"{interface.name} was refused")
        return Binding(self, interface, transfers[context[1]], context[0])

    async def _propose(self, abstract: SyntaxId, transfers: list[SyntaxId]) -> None:
        self._require_open()
        self._bound = asyncio.get_running_loop().create_future()
        proposal = [(abstract, transfers)]
        try:
            if self._association.state is ClientState.UNBOUND:
                self._association.bind(proposal, self._group_id)
            else:
                self._association.alter(proposal)
            self._flush()
            bound = await self._bound
        finally:
            self._bound = None
        _check(bound)

    def start(
        self, context_id: int, opnum: int, stub_data: bytes, object_uuid: UUID | None = None
    ) -> "PendingCall":
        """Send a request; the call can be awaited for its stub data, and cancelled."""
        self._require_open()
        call_id = self._association.request(context_id, opnum, stub_data, object_uuid)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._calls[call_id] = future
        self._flush()
        return PendingCall(self, call_id, future)

    def together(self) -> Gathering:
        """Send at once, at the end of the block, what is sent within it."""
        return self._gathering

    async def drained(self) -> None:
        """Wait until what was sent has mostly gone out."""
        await self._protocol.writable.wait()

    def cancel(self, call_id: int) -> None:
        """Ask the server to cancel a call; its answer still comes."""
        self._association.cancel(call_id)
        self._flush()

    def orphan(self, call_id: int) -> None:
        """Give a call up; its answer is not waited for."""
        self._calls.pop(call_id, None)
        self._association.orphan(call_id)
        self._flush()

    def close(self) -> None:
        """Close the connection; calls in flight fail."""
        if self._protocol.transport is not None:
            self._protocol.transport.close()

    async def wait_closed(self) -> None:
        await self._protocol.closed.wait()

    # What the transport calls.

    def receive_data(self, data: bytes) -> None:
        for event in self._association.receive_data(data):
            self._take(event)
        self._flush()

    def connection_lost(self, error: Exception | None) -> None:
        self._association.close()
        reason = str(error) if error is not None else "the server closed the connection"
        self._fail(lambda: ConnectionError(reason))

    def _take(self, event: ClientEvent) -> None:
        match event:
            case Responded(call_id, stub_data):
                _resolve(self._calls.pop(call_id, None), stub_data)
            case Faulted(call_id, status, _):
                _reject(self._calls.pop(call_id, None), RpcFault(known_status(status)))
            case BindAccepted():
                _resolve(self._bound, event)
            case BindFailed(text, reason):
                _reject(self._bound, _bind_error(text, reason))
                self.close()
            case ServerBroken(text):
                self._fail(lambda: ConnectionError(f"the server broke the protocol: {text}"))
                self.close()
            case ShutdownAsked() if not self._calls:
                self.close()

    def _fail(self, error: Callable[[], Exception]) -> None:
        calls, self._calls = self._calls, {}
        for future in calls.values():
            _reject(future, error())
        _reject(self._bound, error())

    def _flush(self) -> None:
        if self._gathering.depth:
            return
        data = self._association.data_to_send()
        transport = self._protocol.transport
        if data and transport is not None and not transport.is_closing():
            transport.write(data)

    def _require_open(self) -> None:
        if not self.connected:
            raise ConnectionError("the connection is closed")


class PendingCall:
    """A call that was sent: await it for the response's stub data."""

    def __init__(self, client: RpcClient, call_id: int, future: "asyncio.Future[bytes]") -> None:
        self._client = client
        self._future = future
        self.call_id = call_id

    def cancel(self) -> None:
        """Ask the server to cancel the call; what it then answers is still the outcome."""
        self._client.cancel(self.call_id)

    def forget(self) -> None:
        """Drop the outcome, also an error, so that asyncio does not report it as unseen."""
        if not self._future.cancel() and not self._future.cancelled():
            self._future.exception()

    async def result(self) -> bytes:
        """The stub data of the response; cancelling the task that waits here orphans the call."""
        try:
            await self._client.drained()
            return await self._future
        except asyncio.CancelledError:
            self._client.orphan(self.call_id)
            raise


@dataclass(frozen=True, slots=True)
class Binding:
    """An interface that the server serves on this connection."""

    client: RpcClient
    interface: Interface
    syntax: TransferSyntax
    context_id: int

    async def call(self, name: str, request: Value, object_uuid: UUID | None = None) -> Any:
        """Call an operation by its IDL name; the decoded response.

        Raises RpcFault if the answer is a fault, ConnectionError if the connection is lost, and
        DecodeError if the response cannot be decoded.
        """
        return await self.start(name, request, object_uuid).response()

    def send(self, request: OperationRequest[ResponseT]) -> "TypedCall[ResponseT]":
        """Send a request of `codec.types`, to await its response later or to cancel it."""
        return self.start(request.operation.name, request)

    def start(self, name: str, request: Value, object_uuid: UUID | None = None) -> "TypedCall[Any]":
        """Send a request of anybody's IDL under the name of its operation."""
        operation = self.interface.operation(name)
        codec = operation.codec(self.syntax)
        stub = codec.request.encode(request)
        pending = self.client.start(self.context_id, operation.opnum, stub, object_uuid)
        return TypedCall(pending, codec.response.decode)


@dataclass(frozen=True, slots=True)
class TypedCall(Generic[ResponseT]):
    """A call that was sent, with the codec of its response."""

    pending: PendingCall
    decode: Callable[[bytes], ResponseT]

    def cancel(self) -> None:
        self.pending.cancel()

    async def response(self) -> ResponseT:
        return self.decode(await self.pending.result())


def _association(
    credentials: Credentials | None,
    level: AuthenticationLevel | None,
    limits: Limits | None,
    host: str = "",
) -> ClientAssociation:
    if credentials is None:
        if level not in (None, NONE):
            raise ValueError(f"{level.name if level else level} needs credentials")
        return ClientAssociation(limits)
    wanted = PKT_PRIVACY if level is None else level
    return ClientAssociation(limits, credentials.authentication(wanted, host))


def _check(bound: BindAccepted) -> None:
    """Raise the reason when no proposed context was accepted."""
    if any(answer.result == 0 for answer in bound.answers):
        return
    reason = bound.answers[0].reason if bound.answers else 0
    if reason == ProviderReason.proposed_transfer_syntaxes_not_supported:
        raise RpcFault(FaultStatus.RPC_S_UNSUPPORTED_TRANS_SYN, "the transfer syntax was refused")
    raise RpcFault(FaultStatus.nca_s_unk_if, "the interface is not served here")


def _bind_error(text: str, reason: int | None) -> Exception:
    # RejectReason of authentication: its type is not known, or its check has failed.
    if reason is None or reason in (8, 9):
        return AuthenticationError(text)
    return RpcFault(FaultStatus.RPC_S_PROTOCOL_ERROR, text)


def _resolve(future: "asyncio.Future[_T] | None", value: _T) -> None:
    if future is not None and not future.done():
        future.set_result(value)


def _reject(future: "asyncio.Future[_T] | None", error: Exception) -> None:
    if future is not None and not future.done():
        future.set_exception(error)
