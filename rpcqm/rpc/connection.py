"""One connection of a server: between an asyncio transport and a ServerAssociation."""

import asyncio
from functools import partial
from typing import Protocol, cast

from rpcqm.base.admission import Ticket
from rpcqm.base.clock import Clock
from rpcqm.base.errors import FaultStatus
from rpcqm.base.log import get_logger
from rpcqm.base.metrics import Metrics
from rpcqm.base.open_connections import ConnectionView, next_number
from rpcqm.base.outlet import Guarded
from rpcqm.rpc.association import ServerAssociation
from rpcqm.rpc.association_states import State
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.dispatch import Dispatcher
from rpcqm.rpc.events import (
    AuthenticationFailed,
    BindReceived,
    BindRefused,
    CallCancelled,
    CallOrphaned,
    CallRefused,
    CancelIgnored,
    Event,
    LoggedOn,
    ProtocolError,
)
from rpcqm.rpc.interface_registry import NCACN_IP_TCP, NCALRPC
from rpcqm.rpc.negotiation import Endpoint
from rpcqm.rpc.security.context import SecurityContext
from rpcqm.rpc.security.logon import NO_CLAIM, LogonClaim

_log = get_logger("rpc")

_CLOSED = State.CLOSED

MOST_TOGETHER = 16
"""PDUs that are kept for the end of the turn: more of them are written at once, because a client
that sends without reading is noticed by what has been written."""


class ConnectionOwner(Protocol):
    """The server of connections, as these see it (`server.RpcServer`)."""

    clock: Clock
    metrics: Metrics
    dispatcher: Dispatcher

    def identify(
        self, endpoint: Endpoint, transport: asyncio.Transport
    ) -> tuple[str, str, SecurityContext]: ...

    def keep(self, connection: "Connection") -> bool: ...

    def forget(self, connection: "Connection") -> None: ...

    def flush_soon(self, connection: "Connection") -> None: ...

    def flush_later(self, connection: "Connection") -> None: ...

    def settle_later(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    """Feeds what is read to the association, writes what it has to send, once per turn.

    It reads nothing while too many replies are unsent, and is given up if these grow further.
    """

    __slots__ = (
        "_cut_off",
        "_endpoint",
        "_guarded",
        "_logon_failed",
        "_server",
        "_stuck",
        "_taken",
        "_transport",
        "_unsettled",
        "_written",
        "active",
        "association",
        "number",
        "owed",
        "owed_since",
        "silent_since",
        "since",
        "taken_since",
        "ticket",
    )

    association: ServerAssociation

    def __init__(self, server: ConnectionOwner, endpoint: Endpoint) -> None:
        self._server = server
        self._endpoint = endpoint
        self._transport: asyncio.Transport | None = None
        self._guarded: Guarded | None = None
        self.ticket: Ticket | None = None
        self._stuck = self._cut_off = self._logon_failed = False
        self._unsettled: list[Call] = []
        self.active = True
        self.number, self.since = next_number(), server.clock.now()
        self.owed: object | None = None
        self._written = self._taken = 0
        self.owed_since = self.silent_since = self.taken_since = server.clock.monotonic()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if isinstance(transport, Guarded):
            self._guarded = transport
        peer, client, security = self._server.identify(self._endpoint, self._transport)
        self._start(peer, client, security)
        if self._endpoint.transport == NCACN_IP_TCP:
            self.association.local_address = self._transport.get_extra_info("sockname")[0]
        if not self._server.keep(self):
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=self._endpoint.limits.output_bytes)

    def _start(self, peer: str, client: str, security: SecurityContext) -> None:
        self.association = ServerAssociation(
            self._endpoint,
            peer,
            client,
            security,
            self._server.dispatcher.dispatch,
            self._note,
            partial(self._server.flush_later, self),
            self._output_full,
        )

    def data_received(self, data: bytes) -> None:
        association = self.association
        self.active = association.watching = True
        try:
            association.receive_data(data)
        except Exception:  # a mistake of ours ends this connection, not the server
            _log.exception("a connection failed", peer=association.peer)
            self.abort()
        association.watching = False
        if len(association.output) > MOST_TOGETHER:
            self.flush()
        elif association.output or association.deliveries or association.state is _CLOSED:
            self._server.flush_soon(self)

    def eof_received(self) -> bool:
        """End the connection: a client that has closed its side reads no further replies."""
        self._cut_off = True
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """End the calls; replies count as delivered if the transport ended without an error."""
        self._transport = None
        self._server.forget(self)
        undelivered = self._unsettled if error is not None or self._cut_off else []
        self._unsettled = []
        self._server.dispatcher.before_close()
        self.association.connection_lost()
        for call in undelivered + self.association.deliveries:
            call.notify_undelivered()

    def pause_writing(self) -> None:
        self._stuck = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._stuck = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            self.settle()

    # What the server calls.

    def flush(self) -> None:
        """Write everything that is to be sent; close when that is the end."""
        transport, association = self._transport, self.association
        if transport is None:
            return
        output = association.output
        if output:
            try:
                data = b"".join(output)
                if self._guarded is not None:
                    self._guarded.passing = not association.ran
                transport.write(data)
                association.ran = association.ran and bool(association.calls)
                self._written += len(data)
                output.clear()
            except RuntimeError:
                # uvloop's way to say that the transport is closed; connection_lost follows.
                return
        if self._stuck:
            self._give_up_if_hopeless(transport)
        if association.deliveries:
            self._unsettled += association.deliveries
            association.deliveries = []
            self._server.settle_later(self)
        if association.state is _CLOSED and not association.cut:
            transport.close()

    def begin_refusing(self) -> bool:
        """Every call is dispatched from now on; whether one is on its way."""
        self.association.shortcuts.clear()
        return self.association.ran or bool(self.association.calls)

    def _output_full(self) -> None:
        """Write long answers while others of the same turn are still made."""
        self.flush()
        if self._transport is not None:
            self._give_up_if_hopeless(self._transport)

    def _give_up_if_hopeless(self, transport: asyncio.Transport) -> None:
        if self.association.cut:
            return
        if transport.get_write_buffer_size() > self._endpoint.limits.unsent_bytes:
            self._server.metrics.count("rpc.connections_given_up")
            _log.warning("a client does not read its replies", peer=self.association.peer)
            self.abort()

    @property
    def peer(self) -> str:
        """Its client, as logs name it."""
        return self.association.peer

    def view(self) -> ConnectionView:
        """What operators see of it."""
        door = "local" if self._endpoint.transport == NCALRPC else "rpc"
        negotiated = self.association.negotiated
        handles = 0 if negotiated.group is None else len(negotiated.group.handles)
        callers = negotiated.security.callers()
        return ConnectionView(self.number, door, self.peer, callers, self.since, handles)

    @property
    def unsent(self) -> int:
        """Octets of replies that the client has not made room for."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    @property
    def held(self) -> int:
        """Octets that are kept for the client: unsent replies, and a request that is not whole."""
        return self.unsent + self.association.unfinished_bytes

    def takes_what_is_sent(self) -> bool:
        """Whether nothing is left unsent, or less than when this was asked last."""
        before, self._taken = self._taken, self._written - self.unsent
        return self._taken > before or self._taken == self._written

    def settle(self) -> None:
        """Note that replies were delivered when nothing is left to be written."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._unsettled and transport.get_write_buffer_size() == 0:
            self._unsettled.clear()

    def stop(self) -> None:
        """End when the calls in flight are answered."""
        self.association.stop()
        self.flush()

    def end_calls(self, status: FaultStatus) -> None:
        """Answer what is in flight with a fault, and end."""
        self.association.fault_all(status)
        self.flush()

    def abort(self) -> None:
        """End at once."""
        if self._transport is not None:
            self._cut_off = True
            self.association.cut_off()
            self._transport.abort()

    def _note(self, event: Event) -> None:
        """Log and count logons and refusals; the other events are not worth a line."""
        if isinstance(event, BindReceived | CallCancelled | CallOrphaned):
            return
        if isinstance(event, CancelIgnored):
            self._server.metrics.count("rpc.cancels_ignored")
            return
        if isinstance(event, LoggedOn):
            self._note_logon(event)
            return
        counter, line = _NOTED[type(event)]
        self._server.metrics.count(counter)
        if self._logon_failed and isinstance(event, ProtocolError):
            return  # a call after a failed logon: the line about the logon says why it is refused
        self._logon_failed = isinstance(event, AuthenticationFailed)
        _log.info(
            line,
            peer=self.association.peer,
            reason=event.text,
            octets=event.octets.hex(),
            **_particulars(event),
        )

    def _note_logon(self, event: LoggedOn) -> None:
        anonymous = event.identity.is_anonymous
        self._server.metrics.count("rpc.anonymous_logons" if anonymous else "rpc.logons")
        _log.info(
            "a caller stays anonymous" if anonymous else "a caller logged on",
            peer=self.association.peer,
            identity=event.identity.name,
            authentication_level=event.level.name,
            **_claims(event.claim),
        )


def _claims(claim: LogonClaim) -> dict[str, object]:
    """The peer's claim as fields of a log line; `claimed` has made it harmless."""
    if claim is NO_CLAIM:
        return {}
    return {
        "account": claim.account,
        "domain": claim.domain,
        "workstation": claim.workstation,
    }


def _asked(level: AuthenticationLevel | None) -> dict[str, object]:
    """The level of what was refused, where it is clear."""
    return {} if level is None else {"authentication_level": level.name}


def _particulars(event: Event) -> dict[str, object]:
    if isinstance(event, BindRefused):
        return {"code": event.reason.name, **_claims(event.claim), **_asked(event.level)}
    if isinstance(event, AuthenticationFailed):
        return {**_claims(event.claim), **_asked(event.level)}
    if isinstance(event, CallRefused):
        told = {"call_id": event.call_id, "opnum": event.opnum, "status": event.status.name}
        return told | _asked(event.level)
    return {}


_NOTED: dict[type[Event], tuple[str, str]] = {
    ProtocolError: ("rpc.protocol_errors", "the protocol was broken"),
    BindRefused: ("rpc.binds_refused", "a bind was refused"),
    AuthenticationFailed: ("rpc.authentications_failed", "an authentication failed"),
    CallRefused: ("rpc.refusals", "a call was refused"),
}
"""The counter and the log line of each event that tells of a refusal."""
