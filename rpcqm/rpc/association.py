"""The server's side of one connection, without input or output.

Bytes go into `receive_data`, bytes to send come out of `data_to_send`. Whole requests are given to
`on_call` at once, and answered through the call; all other events are given to `on_event`.
`association_states` lists the PDUs that each state accepts. A PDU that its table lacks is a
protocol error: a fault (for a second bind a bind_nak), then the end of the connection. [C706] calls
this an association, [MS-RPCE] 3.3.1.1.2 a connection.
"""

from collections.abc import Callable
from operator import attrgetter

from rpcqm.base.errors import DecodeError, FaultStatus, RpcFault
from rpcqm.base.metrics import stopwatch
from rpcqm.rpc.association_group import AssociationGroup
from rpcqm.rpc.association_states import TRANSITIONS, State
from rpcqm.rpc.call import ANSWERED, Call, ConnectionShortcut, InFlight
from rpcqm.rpc.constants import RPC_VERS, WHOLE, PduType, PfcFlags, RejectReason
from rpcqm.rpc.events import (
    SHOWN,
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
from rpcqm.rpc.fragment import fragments
from rpcqm.rpc.negotiation import BindRejected, Endpoint, Negotiation
from rpcqm.rpc.pdu import (
    HEADER,
    HEADER_LENGTH,
    LITTLE_ENDIAN,
    RESPONSE_BODY,
    RESPONSE_LENGTH,
    WHOLE_RESPONSE,
    AlterContext,
    Auth3,
    Bind,
    BindNak,
    Fault,
    Header,
    Shutdown,
    unpack,
    unpack_header,
    whole_heads,
)
from rpcqm.rpc.presentation import PresentationContext
from rpcqm.rpc.refusal import ConnectionBroken, RequestRefused, unreadable
from rpcqm.rpc.request_receiver import RequestReceiver
from rpcqm.rpc.security.context import PKT_INTEGRITY, SecurityContext
from rpcqm.rpc.security.table import SecurityRefusal

_LEGS = frozenset({PduType.bind, PduType.alter_context, PduType.auth3})
"""The PDUs that may carry a token of authentication, which is never cut into fragments."""

_BOUND = State.BOUND
_STOPPING = State.STOPPING
_CLOSED = State.CLOSED

MOST_UNWRITTEN = 256
"""PDUs of long answers after which they are written before another is made: requests are short, and
hundreds of them may be read at once."""

Receive = Callable[[bytes, int, int, int, bool], Call | None]
"""Receives a PDU: its bytes, pfc_flags, auth_length, call_id, and whether it is big-endian.

It returns the call that the PDU completes, or None.
"""


def _nothing(*_: object) -> None:
    """Ignore a report: the default of callbacks."""


class ServerAssociation:
    """The protocol machine of one connection.

    `calls` are in flight, by their call_ids. `shortcuts` take requests of operations, by their
    opnums; `untaken` counts calls since a shortcut took one.
    `peer` is text for logs, `client` the address that association groups are bound to, `base`
    the security of calls on a connection without authentication. `output_ready` is called when
    the empty output gets its first PDU, unless `watching` says that the caller looks by itself,
    and `output_full` when the output should not get longer.
    """

    __slots__ = (
        "_accepted",
        "_base",
        "_client",
        "_joined_group",
        "_largest",
        "_limits",
        "_negotiation",
        "_partial",
        "_requests",
        "_wanted",
        "calls",
        "cut",
        "deliveries",
        "endpoint",
        "local_address",
        "on_call",
        "on_event",
        "output",
        "output_full",
        "output_ready",
        "pdus_in",
        "pdus_out",
        "peer",
        "pending",
        "ran",
        "shortcuts",
        "state",
        "untaken",
        "watching",
    )

    def __init__(
        self,
        endpoint: Endpoint,
        peer: str,
        client: str,
        base: SecurityContext,
        on_call: Callable[[Call], None],
        on_event: Callable[[Event], None] = _nothing,
        output_ready: Callable[[], None] = _nothing,
        output_full: Callable[[], None] = _nothing,
    ) -> None:
        self.endpoint = endpoint
        self.peer = peer
        self.local_address = ""
        self.on_call = on_call
        self.on_event = on_event
        self.output_ready, self.output_full = output_ready, output_full
        self.watching = self.cut = False
        self.deliveries: list[Call] = []
        self.pdus_in = self.pdus_out = self.pending = self.untaken = 0
        self._client, self._base = client, base
        self._limits = endpoint.limits
        self._largest = endpoint.limits.fragment_size
        self.calls: dict[int, InFlight] = {}
        self.ran = False
        """Whether a call has run, in a process that may be spoken for, whose answer may not have
        left."""
        self._joined_group: AssociationGroup | None = None
        self.shortcuts: dict[int, ConnectionShortcut] = {}
        self._begin()
        self.output: list[bytes] = []
        self._partial = bytearray()
        self._wanted = HEADER_LENGTH
        self._become(State.UNBOUND)

    def _begin(self) -> None:
        """Agree on nothing as yet."""
        self.shortcuts.clear()
        negotiation = Negotiation(self.endpoint, self._client, self._base, self._note_logon)
        self._negotiation = negotiation
        self._requests = RequestReceiver(self, self.calls, negotiation, self._limits)
        negotiation.security.in_use = self._requests.uses

    @property
    def group(self) -> AssociationGroup:
        """The association group, which a connection has from its first accepted bind on.

        Raises RuntimeError before that.
        """
        group = self._negotiation.group
        if group is None:
            raise RuntimeError("the connection has no association group")
        return group

    @property
    def unfinished(self) -> object | None:
        """What the peer owes: a bind, a leg, the rest of a request or PDU, or the close; or None.

        The value stays equal as long as the peer owes the same.
        """
        if self.state in (State.UNBOUND, State.CLOSED):
            return self.state
        if self._requests.incomplete is not None:
            return self._requests.incomplete
        return self._negotiation.security.unfinished or (self.pdus_in if self._partial else None)

    @property
    def unfinished_bytes(self) -> int:
        """Octets that have come of a PDU and of a request whose rest is missing."""
        return len(self._partial) + self._requests.incomplete_bytes

    @property
    def idle(self) -> bool:
        """Whether the connection has neither calls nor context handles."""
        group = self._negotiation.group
        return not self.calls and (group is None or not len(group.handles))

    @property
    def authenticated(self) -> bool:
        """Whether the client has proved its identity, at least for some of its calls."""
        return self._negotiation.security.proved

    @property
    def signs_headers(self) -> bool:
        """Whether signing of headers was agreed on."""
        return self._negotiation.security.signs_headers

    def data_to_send(self) -> bytes:
        """Take the queued octets, in order, out of the queue."""
        data = b"".join(self.output)
        self.output.clear()
        return data

    def stop(self) -> None:
        """Refuse new requests, and end the connection once every call in flight is answered."""
        if self.state in (State.UNBOUND, State.BOUND):
            self._become(State.STOPPING)
            self._end_if_done()

    def end(self, reason: str) -> None:
        """Take nothing more from a peer that broke the protocol; queued output is still sent."""
        if self.state is not State.CLOSED:
            self._become(State.CLOSED)
            self.on_event(ProtocolError(reason, b""))

    @property
    def negotiated(self) -> Negotiation:
        """The outcome of the bind: security and presentation contexts, the association group."""
        return self._negotiation

    def take_no_more(self) -> None:
        """Take nothing more because the caller's account has ended; calls in flight go on."""
        self._become(State.CLOSED)

    def fault_all(self, status: FaultStatus) -> None:
        """Answer every call in flight with a fault; later outcomes of theirs are dropped."""
        while self.calls:
            call_id, call = self.calls.popitem()
            self._queue(_fault(call_id, call.context.context_id, status, True))
            call.notify_abandoned()

    def cut_off(self) -> None:
        """Take and send nothing more: the transport is about to go."""
        self.cut = True
        self._become(State.CLOSED)
        self.output.clear()

    def connection_lost(self) -> None:
        """The transport is gone: calls are abandoned, then the group loses this connection."""
        self._become(State.CLOSED)
        self.output.clear()
        self._requests.forget()
        while self.calls:
            self.calls.popitem()[1].notify_abandoned()
        self._leave_group()

    def _leave_group(self) -> None:
        group, self._joined_group = self._joined_group, None
        if group is not None:
            self.endpoint.groups.leave(group)

    def receive_data(self, data: bytes) -> None:
        """Take what the transport has read, in pieces of any size.

        Each PDU is dealt with before the next one is looked at.
        """
        if self._partial:
            data = self._joined(data)
        offset, end = 0, len(data)
        while self.state is not _CLOSED:
            if self.state is _BOUND:
                offset = self._requests.take_whole(data, offset)
                if offset == end:
                    return
            size = self._receive_pdu(data, offset) if end - offset >= HEADER_LENGTH else 0
            if not size:
                break
            offset += size
        if offset < end and self.state is not _CLOSED:
            self._partial += data[offset:]

    def _receive_pdu(self, data: bytes, offset: int) -> int:
        """Deal with one PDU; its size, 0 if it is not whole or has ended the connection."""
        vers, minor, ptype, flags, drep, length, auth_length, call_id = HEADER.unpack_from(
            data, offset
        )
        big_endian, size = False, int(length)
        if (
            drep != LITTLE_ENDIAN
            or vers != RPC_VERS
            or minor > 1
            or not HEADER_LENGTH <= size <= self._largest
        ):
            header = self._read_unusual_header(data[offset : offset + HEADER_LENGTH])
            if header is None:
                return 0
            size, auth_length = header.frag_length, header.auth_length
            call_id, big_endian = header.call_id, header.big_endian
        if len(data) - offset < size:
            self._wanted = size
            return 0
        pdu = data[offset : offset + size]
        self.pdus_in += 1
        try:
            receive = self._accepted.get(ptype) or self._unexpected(ptype)
            call = receive(pdu, flags, auth_length, call_id, big_endian)
        except Exception as error:  # whatever is wrong with a PDU, its sender gets an answer
            self._answer_failure(error, ptype, call_id, pdu)
        else:
            if call is not None:
                self.on_call(call)
        return size

    def _joined(self, data: bytes) -> bytes:
        """The octets that came before joined with `data`; empty until they hold a whole PDU."""
        partial = self._partial
        partial += data
        if len(partial) < self._wanted:
            return b""
        self._wanted = HEADER_LENGTH
        data = bytes(partial)
        partial.clear()
        return data

    def _read_unusual_header(self, octets: bytes) -> Header | None:
        """Read a header that is not the usual one; None if it has ended the connection."""
        ptype, call_id = octets[2], 0
        try:
            header = unpack_header(octets)
            call_id = header.call_id
            self._check_header(header)
        except DecodeError as error:
            reject = RejectReason.PROTOCOL_VERSION_NOT_SUPPORTED
            self._break(ConnectionBroken(error.reason, reject=reject), ptype, call_id, octets)
        except ConnectionBroken as error:
            self._break(error, ptype, call_id, octets)
        else:
            return header
        return None

    def _check_header(self, header: Header) -> None:
        if header.rpc_vers != RPC_VERS or header.rpc_vers_minor > 1:
            reason = RejectReason.PROTOCOL_VERSION_NOT_SUPPORTED
            version = f"{header.rpc_vers}.{header.rpc_vers_minor}"
            raise ConnectionBroken(f"RPC version {version}", reject=reason)
        largest = self._limits.token_size if header.ptype in _LEGS else self._largest
        if not HEADER_LENGTH <= header.frag_length <= max(largest, self._largest):
            raise ConnectionBroken(f"a fragment of {header.frag_length} octets")

    def _unexpected(self, ptype: int) -> Receive:
        raise ConnectionBroken(f"PDU type {ptype} in state {self.state.name}")

    def _answer_failure(self, error: Exception, ptype: int, call_id: int, pdu: bytes) -> None:
        """Answer a PDU for which receiving raised `error`."""
        if isinstance(error, RequestRefused):
            self._queue(_fault(call_id, error.context_id, error.status, False))
            shown, level = pdu[:SHOWN], error.level
            self.on_event(CallRefused(call_id, error.opnum, error.status, error.text, shown, level))
        elif isinstance(error, ConnectionBroken):
            self._break(error, ptype, call_id, pdu)
        elif isinstance(error, DecodeError):
            self._break(unreadable(error, ptype), ptype, call_id, pdu)
        else:
            raise error

    # Binding.

    def _receive_bind(self, pdu: bytes, *_: object) -> None:
        bind = unpack(pdu)
        assert isinstance(bind, Bind)
        try:
            ack = self._negotiation.bind(bind)
        except BindRejected as error:
            self._reject_bind(pdu, bind.call_id, error)
            return
        self._joined_group = self._negotiation.group
        self._become(State.BOUND)
        self._queue(ack.pack())
        self.on_event(BindReceived(ack.p_result_list))

    def _note_logon(self, context: SecurityContext) -> None:
        self.on_event(LoggedOn(context.identity, context.level, context.claim))

    def _receive_second_bind(self, pdu: bytes, *_: object) -> None:
        """Refuse a second bind, or begin anew where that is allowed (G254)."""
        if not self.endpoint.for_objects or self.calls:
            raise ConnectionBroken("a second bind")
        self._leave_group()
        self._begin()
        self._become(State.UNBOUND)
        self._receive_bind(pdu)

    def _receive_alter_context(self, pdu: bytes, *_: object) -> None:
        alter = unpack(pdu)
        assert isinstance(alter, AlterContext)
        try:
            response = self._negotiation.alter(alter)
        except BindRejected as error:
            self._reject_bind(pdu, alter.call_id, error)
            return
        except SecurityRefusal as error:
            self._authentication_failed(pdu, error)
            raise ConnectionBroken(str(error), error.status, executed=False) from error
        except RpcFault as error:
            raise ConnectionBroken(error.detail, error.status, executed=False) from error
        self._queue(response.pack())
        self.on_event(BindReceived(response.p_result_list))

    def _receive_auth3(self, pdu: bytes, *_: object) -> None:
        auth3 = unpack(pdu)
        assert isinstance(auth3, Auth3)
        try:
            self._negotiation.auth3(auth3)
        except SecurityRefusal as error:  # an rpc_auth_3 has no answer: the next request is refused
            self._authentication_failed(pdu, error)
        except RpcFault as error:
            raise ConnectionBroken(error.detail, error.status, executed=False) from error

    def _authentication_failed(self, pdu: bytes, error: SecurityRefusal) -> None:
        octets = pdu[:SHOWN]
        self.on_event(AuthenticationFailed(str(error), octets, error.claim, error.level))

    def _reject_bind(self, pdu: bytes, call_id: int, error: BindRejected) -> None:
        nak = BindNak(call_id=call_id, provider_reject_reason=error.reason)
        self._queue(nak.pack())
        self._become(State.CLOSED)
        self.on_event(BindRefused(error.reason, error.text, pdu[:SHOWN], error.claim, error.level))

    # Requests.

    def _refuse_request(
        self, pdu: bytes, flags: int, auth_length: int, call_id: int, big_endian: bool
    ) -> None:
        """Refuse a request because the server is stopping."""
        if flags & PfcFlags.PFC_FIRST_FRAG:
            raise RequestRefused(0, 0, FaultStatus.nca_s_server_too_busy, "the server is stopping")

    # Cancels, and the end.

    def _receive_co_cancel(
        self, pdu: bytes, flags: int, auth_length: int, call_id: int, big_endian: bool
    ) -> None:
        self._verify_bare(pdu, auth_length, big_endian)
        call = self.calls.get(call_id)
        if call is not None and self._may_end(call, auth_length):
            call.notify_cancelled()
            self.on_event(CallCancelled(call))

    def _receive_orphaned(
        self, pdu: bytes, flags: int, auth_length: int, call_id: int, big_endian: bool
    ) -> None:
        self._verify_bare(pdu, auth_length, big_endian)
        call = self.calls.get(call_id)
        if call is not None and self._may_end(call, auth_length):
            del self.calls[call_id]
            call.notify_abandoned()
            self._end_if_done()
            self.on_event(CallOrphaned(call))

    def _may_end(self, call: InFlight, auth_length: int) -> bool:
        """Whether a cancel or orphaned PDU is signed if the call that it means was signed (G82)."""
        security = call.security
        signed = auth_length > 0 or not security.signature_length or security.level < PKT_INTEGRITY
        if not signed:
            self.on_event(CancelIgnored(call))
        return signed

    def _verify_bare(self, pdu: bytes, auth_length: int, big_endian: bool) -> None:
        """Check the signature of a PDU without a body, which also keeps the count of PDUs."""
        if auth_length:
            self._requests.unprotected(pdu, HEADER_LENGTH, auth_length, 0, big_endian)

    def _break(self, error: ConnectionBroken, ptype: int, call_id: int, octets: bytes) -> None:
        """Answer a broken PDU, and end the connection."""
        if ptype == PduType.bind:
            self._queue(BindNak(call_id=call_id, provider_reject_reason=error.reject).pack())
        else:
            if error.call_id is not None:
                call_id = error.call_id
            self._queue(_fault(call_id, error.context_id, error.status, error.executed))
        self._become(State.CLOSED)
        self.on_event(ProtocolError(error.text, octets[:SHOWN]))

    def _end_if_done(self) -> None:
        if self.state is State.STOPPING and not self.calls:
            self._queue(Shutdown(call_id=0, rpc_vers_minor=self._negotiation.minor).pack())
            self._become(State.CLOSED)

    def _become(self, state: State) -> None:
        self.state = state
        self._accepted = {ptype: method(self) for ptype, method in _METHODS[state]}

    # Answers.

    def send_response(self, call: Call, stub: bytes) -> None:
        """Queue the response of a call, in as many fragments as it takes."""
        if call.fate or call.hooks is not None:
            if not self._take(call):
                return
        else:
            call.fate = ANSWERED
            del self.calls[call.call_id]
        if call.durations is not None:
            call.durations.add(stopwatch() - call.begun)
        self.send_stub(call.call_id, call.context, call.security, stub)

    def send_stub(
        self, call_id: int, context: PresentationContext, security: SecurityContext, stub: bytes
    ) -> None:
        """Queue the response of a request that is no longer in flight."""
        length, output, negotiation = len(stub), self.output, self._negotiation
        if not (output or self.watching):
            self.output_ready()
        context_id = context.context_id & 0xFF  # Windows answers with the low octet alone
        if length <= negotiation.fragment - RESPONSE_LENGTH and not security.signature_length:
            size, start = RESPONSE_LENGTH + length, _HEADS[negotiation.minor]
            head = WHOLE_RESPONSE.pack(start, size, 0, call_id, length, context_id, 0, 0)
            output.append(head + stub)
            self.pdus_out += 1
        else:
            self._send_fragments(call_id, context_id, security, stub)
        if self.state is _STOPPING:
            self._end_if_done()

    def _send_fragments(
        self, call_id: int, context_id: int, security: SecurityContext, stub: bytes
    ) -> None:
        if self.cut:
            return
        fragment, minor = self._negotiation.fragment, self._negotiation.minor
        try:
            if len(stub) <= security.body_space(fragment, RESPONSE_LENGTH):
                fixed = RESPONSE_BODY.pack(len(stub), context_id, 0, 0)
                self._queue(security.protect(_RESPONSE, _WHOLE, call_id, fixed, stub, minor))
                return
            for pdu in fragments(
                security,
                _RESPONSE,
                call_id,
                stub,
                lambda rest: RESPONSE_BODY.pack(rest, context_id, 0, 0),
                fragment,
                minor,
            ):
                self._queue(pdu)
        except RpcFault as error:  # a security context that has expired protects nothing more
            self._queue(_fault(call_id, context_id, error.status, True))
            self.end(error.detail)
        if len(self.output) > MOST_UNWRITTEN:
            self.output_full()

    def send_fault(self, call: Call, status: int, executed: bool = True) -> None:
        """Queue a fault as the answer of a call."""
        if self._take(call):
            if call.durations is not None:
                call.durations.add(stopwatch() - call.begun)
            context_id = call.context.context_id
            self._queue(_fault(call.call_id, context_id, status, executed))
            if self.state is _STOPPING:
                self._end_if_done()

    def _take(self, call: Call) -> bool:
        """Take the call out of those in flight; False if it may not be answered any more."""
        if call.answered:
            raise RuntimeError("the call is already answered")
        call.fate |= ANSWERED
        if call.abandoned:
            call.notify_undelivered()
            return False
        del self.calls[call.call_id]
        hooks = call.hooks
        if hooks is not None and (hooks.undelivered or hooks.opened):
            self.deliveries.append(call)
        return True

    def _queue(self, pdu: bytes) -> None:
        self.pdus_out += 1
        if not (self.output or self.watching):
            self.output_ready()
        self.output.append(pdu)


_RESPONSE = int(PduType.response)
_WHOLE = int(WHOLE)
_HEADS = whole_heads(PduType.response)


def _fault(call_id: int, context_id: int, status: int, executed: bool) -> bytes:
    flags = WHOLE if executed else WHOLE | PfcFlags.PFC_DID_NOT_EXECUTE
    return Fault(call_id=call_id, pfc_flags=flags, p_cont_id=context_id, status=status).pack()


_METHODS: dict[State, list[tuple[int, Callable[[ServerAssociation], Receive]]]] = {
    state: [(int(ptype), attrgetter(each.receive)) for ptype, each in row.items()]
    for state, row in TRANSITIONS.items()
}
