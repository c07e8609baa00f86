"""A call: a whole request, and what a handler may ask about it and do with it."""

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from rpcqm.base.identity import Identity
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Histogram
from rpcqm.rpc.association_group import AssociationGroup
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.context_handle import ContextHandle, Rundown
from rpcqm.rpc.negotiation import Endpoint
from rpcqm.rpc.presentation import PresentationContext
from rpcqm.rpc.security.context import NONE, SecurityContext

_log = get_logger("rpc")

Hook = Callable[[], None]

ANSWERED = 1
ABANDONED = 2
"""Bits of `fate`: how a call has ended."""


class InFlight(Protocol):
    """A request that is not answered yet: a call, or the object that a shortcut made of it."""

    @property
    def context(self) -> PresentationContext: ...

    @property
    def security(self) -> SecurityContext: ...

    def notify_cancelled(self) -> None:
        """The client has asked for its cancellation."""

    def notify_abandoned(self) -> None:
        """The client wants no answer any more, or has gone."""


class ConnectionShortcut(Protocol):
    """Carries out requests of one operation on one connection before they become calls.

    A shortcut of the operation sets it in `CallingAssociation.shortcuts`, by the opnum.
    """

    def take(
        self,
        association: "CallingAssociation",
        call_id: int,
        context: PresentationContext,
        security: SecurityContext,
        stub: bytes,
    ) -> bool:
        """Put a request in flight, to be answered later, and count it.

        Returns False, and changes nothing, for a request that has to be dispatched as a call.
        """


class CallingAssociation(Protocol):
    """The members of `association.ServerAssociation` that calls use.

    `pending` counts its calls that wait, `untaken` those since a shortcut took one; `ran` is set
    when one runs in a process that another one may be speaking in the place of.
    """

    calls: dict[int, InFlight]
    shortcuts: dict[int, ConnectionShortcut]
    pending: int
    ran: bool
    untaken: int
    peer: str
    local_address: str
    endpoint: Endpoint

    @property
    def group(self) -> AssociationGroup: ...

    @property
    def signs_headers(self) -> bool: ...

    def send_response(self, call: "Call", stub: bytes) -> None: ...

    def send_stub(
        self, call_id: int, context: PresentationContext, security: SecurityContext, stub: bytes
    ) -> None: ...

    def send_fault(self, call: "Call", status: int, executed: bool = True) -> None: ...

    def end(self, reason: str) -> None: ...


class Hooks:
    """The callbacks of a call and the handles that it has opened; few calls have any."""

    __slots__ = ("abandoned", "cancel_asked", "cancelled", "opened", "undelivered")

    def __init__(self) -> None:
        self.abandoned: tuple[Hook, ...] = ()
        self.cancelled: tuple[Hook, ...] = ()
        self.cancel_asked = False
        self.undelivered: tuple[Hook, ...] = ()
        self.opened: tuple[ContextHandle, ...] = ()


class Call:
    """One request with all of its stub data: the event by which an association reports it.

    It is answered once, by `ServerAssociation.send_response` or by `fault`. An answer after the
    client has gone, or has orphaned the call, is not sent, and the callbacks of
    `on_delivery_failed` run instead. How long it took since `begun` is added to `durations`.
    """

    __slots__ = (
        "association",
        "begun",
        "big_endian",
        "call_id",
        "context",
        "durations",
        "fate",
        "hooks",
        "object_octets",
        "opnum",
        "security",
        "stub_data",
    )

    def __init__(
        self,
        association: "CallingAssociation",
        call_id: int,
        context: PresentationContext,
        opnum: int,
        security: SecurityContext,
        stub_data: bytes,
    ) -> None:
        self.association = association
        self.call_id = call_id
        self.context = context
        self.opnum = opnum
        self.security = security
        self.stub_data = stub_data
        self.object_octets = b""
        self.big_endian = False
        self.fate = 0
        self.hooks: Hooks | None = None
        self.begun = 0
        self.durations: Histogram | None = None

    @property
    def object_uuid(self) -> UUID | None:
        """The object that is called; `object_octets` are its octets, little-endian, or none."""
        return UUID(bytes_le=self.object_octets) if self.object_octets else None

    @property
    def answered(self) -> bool:
        return self.fate & ANSWERED != 0

    @property
    def abandoned(self) -> bool:
        """Whether the client has vanished or does not want an answer any more."""
        return self.fate & ABANDONED != 0

    @property
    def cancelled(self) -> bool:
        """Whether the client has asked for the call to be cancelled."""
        return self.hooks is not None and self.hooks.cancel_asked

    @property
    def identity(self) -> Identity:
        """The caller; ANONYMOUS if the caller has not proved an identity."""
        return self.security.identity

    @property
    def authentication_level(self) -> AuthenticationLevel:
        """How this call was protected; `ncalrpc` counts as PKT_PRIVACY."""
        return self.security.assured_level

    @property
    def transport(self) -> str:
        """`ncacn_ip_tcp` or `ncalrpc`."""
        return self.association.endpoint.transport

    @property
    def peer(self) -> str:
        """The other end, as text for logs."""
        return self.association.peer

    @property
    def local_address(self) -> str:
        """The address of this machine that the caller has reached; empty on a Unix socket."""
        return self.association.local_address

    @property
    def association_group(self) -> AssociationGroup:
        return self.association.group

    def on_abandoned(self, callback: Hook) -> None:
        """Run `callback` when the client vanishes or orphans the call before it is answered."""
        if self.abandoned:
            callback()
        else:
            self._need_hooks().abandoned += (callback,)

    def on_cancelled(self, callback: Hook) -> None:
        """Run `callback` when the client cancels the call; it is answered all the same."""
        if self.cancelled:
            callback()
        else:
            self._need_hooks().cancelled += (callback,)

    def on_delivery_failed(self, callback: Hook) -> None:
        """Run `callback` if the answer cannot be handed to the transport's other end (G52)."""
        self._need_hooks().undelivered += (callback,)

    def open_context_handle(
        self,
        type_name: str,
        value: object,
        rundown: Rundown | None = None,
        minimum_level: AuthenticationLevel = NONE,
    ) -> ContextHandle:
        """A new context handle of the caller's group, to be returned in the response.

        It is run down at once when this call ends in a fault, or its response is lost. Raises
        RpcFault when the client has too many, or is gone.
        """
        handle = self.association.group.handles.open(
            type_name, value, rundown, self.context.interface, self.identity, minimum_level
        )
        self._need_hooks().opened += (handle,)
        return handle

    def close_context_handle(self, handle: ContextHandle) -> None:
        """End a handle without its rundown: the handler has ended what it meant."""
        self.association.group.handles.close(handle)

    def fault(self, status: int, executed: bool = True) -> None:
        """Answer with a fault; `executed` is False when no handler has seen the call."""
        self._run_down_opened()
        self.association.send_fault(self, status, executed)

    def notify_cancelled(self) -> None:
        hooks = self._need_hooks()
        hooks.cancel_asked = True
        callbacks, hooks.cancelled = hooks.cancelled, ()
        self._run(callbacks)

    def notify_abandoned(self) -> None:
        self.fate |= ABANDONED
        hooks = self.hooks
        if hooks is not None:
            callbacks, hooks.abandoned = hooks.abandoned, ()
            self._run(callbacks)

    def notify_undelivered(self) -> None:
        hooks = self.hooks
        if hooks is not None:
            self._run_down_opened()
            callbacks, hooks.undelivered = hooks.undelivered, ()
            self._run(callbacks)

    def _run_down_opened(self) -> None:
        """End the handles that the client will never learn of."""
        if self.hooks is not None:
            for handle in self.hooks.opened:
                self.association.group.handles.run_down(handle)

    def _need_hooks(self) -> Hooks:
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    def _run(self, callbacks: tuple[Hook, ...]) -> None:
        for callback in callbacks:
            try:
                callback()
            except Exception:  # the other callbacks still have to run
                _log.exception("a callback of a call failed", peer=self.peer, opnum=self.opnum)
