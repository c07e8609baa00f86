"""A caller of a queue manager over a real TCP connection, whose every octet a test can change.

It has the calls of `Caller`, so that `Reader`, `Qm2QmReader` and `Client` speak through it too.
"""

import socket
from collections.abc import Iterable
from typing import Any, Self, cast

from rpcqm.codec.interface import Interface, Operation, TransferSyntax, load
from rpcqm.rpc import pdu
from rpcqm.rpc.client_association import (
    BindFailed,
    ClientAssociation,
    ClientState,
    Faulted,
    Responded,
    ServerBroken,
)
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.rpc.presentation import NDR
from rpcqm.rpc.security.context import PKT_PRIVACY, Credentials, SecurityContext
from tests.support.rpc.callers import Caller, PendingCall
from tests.support.rpc.rpc_sockets import read_pdu
from tests.support.waiting import PATIENCE


class RefusedError(Exception):
    """The server refused the bind."""


class NetworkCaller:
    """One connection to `address` that is bound to interfaces by their names.

    Without credentials it does not log on. Raises RefusedError where the bind is refused.
    """

    def __init__(
        self,
        address: tuple[str, int],
        *interfaces: str,
        credentials: Credentials | None = None,
        level: AuthenticationLevel = PKT_PRIVACY,
        group_id: int = 0,
    ) -> None:
        self.interfaces = {name: load(name) for name in interfaces}
        authentication = credentials.authentication(level) if credentials is not None else None
        self.client = ClientAssociation(authentication=authentication)
        self.pending: dict[int, PendingCall] = {}
        self.plain = socket.create_connection(address, timeout=PATIENCE)
        self.plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client.bind(self._proposed(), group_id)
        try:
            while self.client.state is not ClientState.BOUND:
                self._flush()
                self._receive()
            self._flush()
        except BaseException:
            self.plain.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.plain.close()

    @property
    def caller(self) -> Caller:
        """This, for those who make the calls of one interface."""
        return cast(Caller, self)

    @property
    def group_id(self) -> int:
        """The association group, which another connection may try to join."""
        return self.client.group_id

    @property
    def security(self) -> SecurityContext:
        """The security context of what is sent."""
        return self.client._security

    # Calls as any client makes them

    def send(self, operation: str, /, **fields: Any) -> PendingCall:
        """Send a call; `settle` waits for its answer."""
        call, octets = self.made(operation, **fields)
        self.plain.sendall(octets)
        return call

    def call(self, operation: str, /, **fields: Any) -> Any:
        """A call and its response; raises Fault."""
        call = self.send(operation, **fields)
        self.settle()
        return call.result()

    def settle(self) -> None:
        """Wait until every call is answered; raises ConnectionError when the server hangs up."""
        while self.pending:
            self._receive()

    # Octets

    def made(self, operation: str, /, **fields: Any) -> tuple[PendingCall, bytes]:
        """A call that is not sent yet, and what a decent client would send for it."""
        interface, found = self.find(operation)
        request = found.request_class(**fields)
        stub = found.encode_request(TransferSyntax.NDR, request)
        return self.made_of(interface, found, stub)

    def made_of(
        self, interface: Interface, operation: Operation, stub: bytes
    ) -> tuple[PendingCall, bytes]:
        """A call with stub data of any kind."""
        context = self.client.context_of(SyntaxId(interface.uuid, *interface.version))
        assert context is not None, f"{interface.name} was not accepted"
        call_id = self.client.request(context[0], operation.opnum, stub)
        call = self.pending[call_id] = PendingCall(operation, TransferSyntax.NDR, call_id)
        return call, self.client.data_to_send()

    def find(self, operation: str) -> tuple[Interface, Operation]:
        """An operation of one of the interfaces; raises KeyError."""
        for each in self.interfaces.values():
            for found in each.operations:
                if found is not None and found.name == operation:
                    return each, found
        raise KeyError(operation)

    def answer_to(self, octets: bytes) -> pdu.Pdu:
        """Send octets as they are; the PDU that comes next."""
        self.plain.sendall(octets)
        return read_pdu(self.plain)

    @property
    def ended(self) -> bool:
        """Whether the server closes the connection, for which this waits."""
        try:
            return self.plain.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def _proposed(self) -> Iterable[tuple[SyntaxId, tuple[SyntaxId, ...]]]:
        for each in self.interfaces.values():
            yield SyntaxId(each.uuid, *each.version), (NDR,)

    def _flush(self) -> None:
        self.plain.sendall(self.client.data_to_send())

    def _receive(self) -> None:
        octets = self.plain.recv(1 << 16)
        if not octets:
            raise ConnectionError("the server closed the connection")
        for event in self.client.receive_data(octets):
            self._take(event)

    def _take(self, event: object) -> None:
        if isinstance(event, Responded):
            call = self.pending.pop(event.call_id)
            call.response = call.operation.decode_response(call.syntax, event.stub_data)
        elif isinstance(event, Faulted):
            self.pending.pop(event.call_id).fault = event.status
        elif isinstance(event, BindFailed):
            raise RefusedError(event.text)
        elif isinstance(event, ServerBroken):
            raise AssertionError(str(event))
