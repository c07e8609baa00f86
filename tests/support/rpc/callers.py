"""Callers of the RPC interfaces of a queue manager, without a network.

Both ends are the associations themselves: every call is encoded, sent, dispatched and answered as
on a connection. `settle` of the queue manager makes things durable; calls do that on their own.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from rpcqm.base.identity import ANONYMOUS, BUILTIN_ADMINISTRATORS, Identity, authenticated
from rpcqm.codec.interface import Interface, Operation, TransferSyntax, load
from rpcqm.interfaces.qmcomm2 import QmComm2
from rpcqm.interfaces.remote_read import RemoteRead
from rpcqm.rpc.association import ServerAssociation
from rpcqm.rpc.association_group import AssociationGroups
from rpcqm.rpc.client_association import ClientAssociation, Faulted, Responded
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.dispatch import Dispatcher
from rpcqm.rpc.interface_registry import (
    NCACN_IP_TCP,
    NCALRPC,
    InterfacePolicy,
    InterfaceSet,
    Shortcut,
    register,
)
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.negotiation import Endpoint
from rpcqm.rpc.pdu import SyntaxId
from rpcqm.rpc.presentation import NDR, NDR64
from rpcqm.rpc.security.context import unauthenticated
from rpcqm.service.speed import Speed, with_shortcuts
from tests.support.queue_manager import RunningQueueManager

ALICE = authenticated("alice", "S-1-5-21-1-2-3-1000")
BOB = authenticated("bob", "S-1-5-21-1-2-3-1001")
ADMINISTRATOR = authenticated("root", "S-1-5-21-1-2-3-500", BUILTIN_ADMINISTRATORS)
NOBODY = ANONYMOUS

LEVEL_NONE = AuthenticationLevel.RPC_C_AUTHN_LEVEL_NONE
LEVEL_INTEGRITY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_INTEGRITY
LEVEL_PRIVACY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY


class Fault(Exception):
    """A call was answered with a fault PDU."""

    def __init__(self, status: int) -> None:
        super().__init__(f"fault 0x{status:08X}")
        self.status = status


class NoAnswerError(AssertionError):
    """A call that should have been answered was not."""


class HasSpeed(Protocol):
    """A queue manager that may have shortcuts."""

    @property
    def installed(self) -> Speed: ...


@dataclass(frozen=True, slots=True)
class Served:
    """One interface with its handlers."""

    name: str
    handlers: object
    policy: InterfacePolicy

    @property
    def interface(self) -> Interface:
        return load(self.name)

    def shortcut(self, opnum: int) -> Shortcut:
        """One of an operation in NDR, which learns together with the one that is served."""
        operation = self.interface.operations[opnum]
        assert operation is not None
        assert self.policy.shortcut is not None
        shortcut = self.policy.shortcut(operation, TransferSyntax.NDR)
        assert shortcut is not None
        return shortcut


def shortened(
    qm: HasSpeed, name: str, handlers: RemoteRead | QmComm2, policy: InterfacePolicy
) -> Served:
    """An interface with the shortcuts of its handlers."""
    return Served(name, handlers, with_shortcuts(qm.installed, policy, handlers))


class Settling(Protocol):
    """A queue manager whose turns end when a test says so."""

    def settle(self) -> None: ...


class CallServer:
    """The endpoints of a queue manager; `interfaces` are served at both transports."""

    def __init__(self, qm: Settling, *interfaces: Served, limits: Limits | None = None) -> None:
        self.qm = qm
        self.interfaces: Mapping[str, Served] = {each.name: each for each in interfaces}
        self.dispatcher = Dispatcher()
        if isinstance(qm, RunningQueueManager):
            self.dispatcher.before_close = lambda: qm.store.carry_out_first()
        self.groups = AssociationGroups(limits or Limits())
        registered = [register(each.interface, each.handlers, each.policy) for each in interfaces]
        self._endpoints = {
            transport: Endpoint(
                transport,
                b"2103",
                InterfaceSet([each for each in registered if transport in each.policy.transports]),
                self.groups,
                limits=limits or Limits(),
            )
            for transport in (NCACN_IP_TCP, NCALRPC)
        }

    def connect(
        self,
        identity: Identity = ALICE,
        level: AuthenticationLevel = LEVEL_PRIVACY,
        transport: str = NCACN_IP_TCP,
        group_id: int = 0,
        syntax: TransferSyntax = TransferSyntax.NDR,
        address: str = "192.0.2.1",
    ) -> "Caller":
        """A connection; one with the `group_id` of another belongs to the same client."""
        base = unauthenticated(identity, level)
        association = ServerAssociation(
            self._endpoints[transport],
            f"{address}:4711",
            address,
            base,
            self.dispatcher.dispatch,
        )
        return Caller(self, association, group_id, syntax)


@dataclass(eq=False)
class PendingCall:
    """A call that was sent; `response` or `fault` are there when it has been answered."""

    operation: Operation
    syntax: TransferSyntax
    call_id: int
    response: Any = None
    fault: int | None = None

    @property
    def answered(self) -> bool:
        return self.response is not None or self.fault is not None

    def result(self) -> Any:
        """The response; raises Fault, or NoAnswerError."""
        if self.fault is not None:
            raise Fault(self.fault)
        if self.response is None:
            raise NoAnswerError(self.operation.name)
        return self.response


@dataclass(eq=False)
class Caller:
    """One connection of a client."""

    server: CallServer
    association: ServerAssociation
    group_id: int
    syntax: TransferSyntax
    client: ClientAssociation = field(default_factory=ClientAssociation)
    pending: dict[int, PendingCall] = field(default_factory=dict)
    held: list[bytes] | None = None

    def __post_init__(self) -> None:
        transfer = NDR if self.syntax is TransferSyntax.NDR else NDR64
        proposed = [
            (SyntaxId(each.interface.uuid, *each.interface.version), (transfer,))
            for each in self.server.interfaces.values()
        ]
        self.client.bind(proposed, self.group_id)
        self.protocol()
        self.group_id = self.client.group_id

    # Calls

    def send(self, operation: str, /, **fields: Any) -> PendingCall:
        """Send a call; it is answered now, or later."""
        interface, found = self._find(operation)
        request = found.request_class(**fields)
        return self.send_stub(interface, found, found.encode_request(self.syntax, request))

    def send_stub(self, interface: Interface, operation: Operation, stub: bytes) -> PendingCall:
        """Send stub data of any kind as a call."""
        context = self.client.context_of(SyntaxId(interface.uuid, *interface.version))
        assert context is not None, f"{interface.name} was not accepted"
        call_id = self.client.request(context[0], operation.opnum, stub)
        call = self.pending[call_id] = PendingCall(operation, self.syntax, call_id)
        self.protocol()
        return call

    @contextmanager
    def one_segment(self) -> Iterator[list[bytes]]:
        """Let the PDUs of a block arrive at the server together; they can be changed before."""
        segment = self.held = list[bytes]()
        yield segment
        self.held = None
        self.association.receive_data(b"".join(segment))
        self.protocol()

    def call(self, operation: str, /, **fields: Any) -> Any:
        """A call and its response, once everything is durable; raises Fault."""
        call = self.send(operation, **fields)
        self.settle()
        return call.result()

    def cancel(self, call: PendingCall) -> None:
        """Send co_cancel."""
        self.client.cancel(call.call_id)
        self.protocol()

    def orphan(self, call: PendingCall) -> None:
        self.client.orphan(call.call_id)
        self.protocol()
        self.settle()

    def lose(self, delivered: bool = True) -> None:
        """The connection breaks; what was not taken yet has been `delivered`, or has not."""
        self.server.dispatcher.before_close()  # as `rpc.connection` does
        deliveries = [] if delivered else self.association.deliveries
        undelivered = [call for call in deliveries if call.call_id in self.pending]
        self.association.connection_lost()
        for call in undelivered:
            call.notify_undelivered()
        self.server.qm.settle()

    def settle(self) -> None:
        """End the turn and take the answers that are there."""
        self.server.qm.settle()
        self.protocol()

    def _find(self, operation: str) -> tuple[Interface, Operation]:
        for each in self.server.interfaces.values():
            for found in each.interface.operations:
                if found is not None and found.name == operation:
                    return each.interface, found
        raise KeyError(operation)

    def protocol(self) -> None:
        """Carry the PDUs of both sides across."""
        if self.held is not None:
            self.held.append(self.client.data_to_send())
            return
        self.association.receive_data(self.client.data_to_send())
        for answer in self.client.receive_data(self.association.data_to_send()):
            if isinstance(answer, Responded):
                call = self.pending.pop(answer.call_id)
                call.response = call.operation.decode_response(call.syntax, answer.stub_data)
            elif isinstance(answer, Faulted):
                self.pending.pop(answer.call_id).fault = answer.status
