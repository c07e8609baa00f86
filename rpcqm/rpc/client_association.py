"""The client's side of one connection, without input or output.

`bind`, `alter`, `request`, `cancel` and `orphan` queue PDUs for `data_to_send`; what comes back
goes into `receive_data`, which answers with events. The states are one table, TRANSITIONS:

- UNBOUND: `bind` is to be called.
- BINDING: the bind_ack, and further legs of authentication, are awaited.
- BOUND: requests may be sent, several at once.
- CLOSED: nothing is sent or received any more.
"""

import enum
import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from rpcqm.base.errors import DecodeError, RpcFault
from rpcqm.base.identity import ANONYMOUS
from rpcqm.rpc.constants import (
    WHOLE,
    ContextResult,
    PduType,
    PfcFlags,
)
from rpcqm.rpc.fragment import fragments
from rpcqm.rpc.limits import Limits, negotiated_fragment
from rpcqm.rpc.pdu import (
    HEADER_LENGTH,
    REQUEST_BODY,
    RESPONSE_LENGTH,
    AlterContext,
    AlterContextResp,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    ContextAnswer,
    ContextElement,
    Fault,
    Pdu,
    Response,
    SecurityTrailer,
    SyntaxId,
    pack_uuid,
    unpack,
    unpack_header,
)
from rpcqm.rpc.security.context import (
    NONE,
    PKT_INTEGRITY,
    Authentication,
    AuthenticationError,
    SecurityContext,
    unauthenticated,
)


@dataclass(frozen=True, slots=True)
class BindAccepted:
    """A bind or an alter_context was answered; `answers` follow the proposed elements."""

    answers: tuple[ContextAnswer, ...]


@dataclass(frozen=True, slots=True)
class BindFailed:
    """The server refused the bind, or the authentication failed; the connection is of no use."""

    text: str
    reason: int | None = None


@dataclass(frozen=True, slots=True)
class Responded:
    """A call was answered."""

    call_id: int
    stub_data: bytes


@dataclass(frozen=True, slots=True)
class Faulted:
    """A call was answered with a fault."""

    call_id: int
    status: int
    executed: bool


@dataclass(frozen=True, slots=True)
class ShutdownAsked:
    """The server wants the connection closed when its calls are done."""


@dataclass(frozen=True, slots=True)
class ServerBroken:
    """The server broke the protocol; the connection is of no use."""

    text: str


ClientEvent = BindAccepted | BindFailed | Responded | Faulted | ShutdownAsked | ServerBroken


class ClientState(enum.Enum):
    """See the module's text."""

    UNBOUND = enum.auto()
    BINDING = enum.auto()
    BOUND = enum.auto()
    CLOSED = enum.auto()


class _Reply:
    """The fragments of a response that have come."""

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0


class ClientAssociation:
    """The protocol machine of one client connection.

    `contexts` are the accepted presentation contexts: p_cont_id to abstract and transfer syntax.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        authentication: Authentication | None = None,
        response_bytes: int = 1 << 24,  # four times the largest request of a server of ours
    ) -> None:
        self._limits = limits or Limits()
        self._authentication = authentication
        self._response_bytes = response_bytes
        self._security = unauthenticated(ANONYMOUS, NONE)
        self._call_ids = itertools.count(1)
        self._context_ids = itertools.count(0)
        self._proposed: tuple[ContextElement, ...] = ()
        self._replies: dict[int, _Reply] = {}
        self._proposal_call_id = 0
        self._output: list[bytes] = []
        self._partial = b""
        self.fragment = self._limits.fragment_size
        self.group_id = 0
        self.multiplexed = False
        self.contexts: dict[int, tuple[SyntaxId, SyntaxId]] = {}
        self.state = ClientState.UNBOUND

    @property
    def calls_in_flight(self) -> int:
        return len(self._replies)

    def data_to_send(self) -> bytes:
        """Take the queued octets, in order, out of the queue."""
        data = b"".join(self._output)
        self._output.clear()
        return data

    def context_of(self, abstract_syntax: SyntaxId) -> tuple[int, SyntaxId] | None:
        """The accepted context of an interface: p_cont_id and transfer syntax."""
        for context_id, (abstract, transfer) in self.contexts.items():
            if abstract == abstract_syntax:
                return context_id, transfer
        return None

    def bind(
        self, interfaces: Iterable[tuple[SyntaxId, Iterable[SyntaxId]]], group_id: int = 0
    ) -> None:
        """Propose interfaces, each in one or more transfer syntaxes."""
        self._require(ClientState.UNBOUND)
        trailer = None
        if self._authentication is not None:
            self._security = SecurityContext(
                self._authentication.auth_type,
                self._authentication.level,
                0,
                self._authentication.begin(),
            )
            trailer = self._trailer(self._security.step(b""))
        self.state = ClientState.BINDING
        flags = WHOLE | PfcFlags.PFC_CONC_MPX
        if trailer is not None:
            flags |= PfcFlags.PFC_SUPPORT_HEADER_SIGN
        self._propose(Bind, interfaces, trailer, flags, group_id)

    def alter(self, interfaces: Iterable[tuple[SyntaxId, Iterable[SyntaxId]]]) -> None:
        """Propose more interfaces on a bound connection."""
        self._require(ClientState.BOUND)
        self._propose(AlterContext, interfaces, None, WHOLE, self.group_id)

    def request(
        self, context_id: int, opnum: int, stub_data: bytes, object_uuid: UUID | None = None
    ) -> int:
        """Send a request; the call_id that its answer will have."""
        self._require(ClientState.BOUND)
        call_id = next(self._call_ids) & 0xFFFFFFFF
        octets, flags = b"", 0
        if object_uuid is not None:
            octets, flags = pack_uuid(object_uuid), int(PfcFlags.PFC_OBJECT_UUID)
        self._replies[call_id] = _Reply()
        self._output.extend(
            fragments(
                self._security,
                PduType.request,
                call_id,
                stub_data,
                lambda rest: REQUEST_BODY.pack(rest, context_id, opnum) + octets,
                self.fragment,
                flags=flags,
            )
        )
        return call_id

    def cancel(self, call_id: int) -> None:
        """Ask for a call to be cancelled; it is answered all the same."""
        if call_id in self._replies:
            self._send_bare(PduType.co_cancel, call_id)

    def orphan(self, call_id: int) -> None:
        """Give a call up: its answer is not wanted, and ignored if it still comes."""
        if self._replies.pop(call_id, None) is not None:
            self._send_bare(PduType.orphaned, call_id)

    def _send_bare(self, ptype: PduType, call_id: int) -> None:
        """Send a PDU without a body; it is signed if the call that it means was signed (G82)."""
        with suppress(RpcFault):  # a security context that has expired has no calls either
            self._output.append(self._security.protect(ptype, WHOLE, call_id, b"", b""))

    def close(self) -> None:
        self.state = ClientState.CLOSED
        self._replies.clear()

    # Receiving.

    def receive_data(self, data: bytes) -> list[ClientEvent]:
        """Take what the transport has read, in whatever pieces; the events in their order."""
        data = self._partial + data
        events: list[ClientEvent] = []
        offset = 0
        try:
            while len(data) - offset >= HEADER_LENGTH and self.state is not ClientState.CLOSED:
                length = self._length(data[offset : offset + HEADER_LENGTH])
                if len(data) - offset < length:
                    break
                self._receive_pdu(data[offset : offset + length], events)
                offset += length
        except (DecodeError, RpcFault) as error:  # the caller learns it from the event
            events.append(ServerBroken(str(error)))
            self.close()
        self._partial = data[offset:]
        return events

    def _length(self, octets: bytes) -> int:
        length = unpack_header(octets).frag_length
        if not HEADER_LENGTH <= length <= self._limits.fragment_size:
            raise DecodeError(f"a fragment of {length} octets")
        return length

    def _receive_pdu(self, octets: bytes, events: list[ClientEvent]) -> None:
        header = unpack_header(octets)
        receive = TRANSITIONS[self.state].get(header.ptype)
        if receive is None:
            raise DecodeError(f"PDU type {header.ptype} in state {self.state.name}")
        receive(self, octets, events)

    def _receive_bind_ack(self, octets: bytes, events: list[ClientEvent]) -> None:
        ack = unpack(octets)
        assert isinstance(ack, BindAck)
        own = self._limits.fragment_size
        self.fragment = negotiated_fragment(ack.max_xmit_frag, ack.max_recv_frag, own)
        self.group_id = ack.assoc_group_id
        self.multiplexed = bool(ack.pfc_flags & PfcFlags.PFC_CONC_MPX)
        if ack.pfc_flags & PfcFlags.PFC_SUPPORT_HEADER_SIGN:
            self._security.sign_headers()
        self._accept(ack.p_result_list)
        self._go_on(ack.auth, events, BindAccepted(ack.p_result_list))

    def _receive_alter_context_resp(self, octets: bytes, events: list[ClientEvent]) -> None:
        response = unpack(octets)
        assert isinstance(response, AlterContextResp)
        self._accept(response.p_result_list)
        self._go_on(response.auth, events, BindAccepted(response.p_result_list))

    def _accept(self, answers: tuple[ContextAnswer, ...]) -> None:
        if len(answers) != len(self._proposed):
            raise DecodeError(f"{len(answers)} answers to {len(self._proposed)} contexts")
        for element, answer in zip(self._proposed, answers, strict=True):
            if answer.result == ContextResult.acceptance:
                syntaxes = (element.abstract_syntax, answer.transfer_syntax)
                self.contexts[element.p_cont_id] = syntaxes

    def _go_on(
        self, trailer: SecurityTrailer | None, events: list[ClientEvent], bound: BindAccepted
    ) -> None:
        """Send the next leg of authentication, or end the bind."""
        if self._authentication is not None and not self._security.established:
            try:
                token = self._security.step(trailer.auth_value if trailer is not None else b"")
            except AuthenticationError as error:  # the caller learns it from the event
                events.append(BindFailed(str(error)))
                self.close()
                return
            self._send_leg(token)
            if not self._security.established:
                return
        self.state = ClientState.BOUND
        events.append(bound)

    def _send_leg(self, token: bytes) -> None:
        if not token:
            return
        assert self._authentication is not None
        if self._authentication.odd_legs and self._security.established:
            leg: Pdu = Auth3(call_id=self._proposal_call_id, auth=self._trailer(token))
        else:
            leg = AlterContext(
                call_id=self._proposal_call_id,
                max_xmit_frag=self.fragment,
                max_recv_frag=self.fragment,
                assoc_group_id=self.group_id,
                p_context_elem=self._proposed,
                auth=self._trailer(token),
            )
        self._output.append(leg.pack())

    def _receive_bind_nak(self, octets: bytes, events: list[ClientEvent]) -> None:
        nak = unpack(octets)
        assert isinstance(nak, BindNak)
        reason = nak.provider_reject_reason
        events.append(BindFailed(f"the bind was rejected with reason {reason}", reason))
        self.close()

    def _receive_response(self, octets: bytes, events: list[ClientEvent]) -> None:
        response = unpack(octets)
        assert isinstance(response, Response)
        stub = self._unprotected(octets, response)
        reply = self._replies.get(response.call_id)
        if reply is None:
            return
        reply.parts.append(stub)
        reply.size += len(stub)
        if reply.size > self._response_bytes:
            raise DecodeError("a response over its limit")
        if response.pfc_flags & PfcFlags.PFC_LAST_FRAG:
            del self._replies[response.call_id]
            events.append(Responded(response.call_id, b"".join(reply.parts)))

    def _unprotected(self, octets: bytes, response: Response) -> bytes:
        """The stub data of a response; below PKT_INTEGRITY a server need not sign."""
        security = self._security
        auth_length = len(response.auth.auth_value) if response.auth is not None else 0
        if auth_length and security.is_unsigned(octets, auth_length):
            security = security.unsigned
        if auth_length:
            return security.unprotect(octets, RESPONSE_LENGTH, auth_length)
        if security.level >= PKT_INTEGRITY:
            raise DecodeError("a response without its signature")
        return response.stub_data

    def _receive_fault(self, octets: bytes, events: list[ClientEvent]) -> None:
        fault = unpack(octets)
        assert isinstance(fault, Fault)
        if self._replies.pop(fault.call_id, None) is not None:
            executed = not fault.pfc_flags & PfcFlags.PFC_DID_NOT_EXECUTE
            events.append(Faulted(fault.call_id, fault.status, executed))
        elif fault.call_id == self._proposal_call_id:
            self._receive_early_fault(octets, events)

    def _receive_early_fault(self, octets: bytes, events: list[ClientEvent]) -> None:
        fault = unpack(octets)
        assert isinstance(fault, Fault)
        text = f"the proposal was answered with fault 0x{fault.status:08X}"
        events.append(BindFailed(text))
        self.close()

    def _receive_shutdown(self, octets: bytes, events: list[ClientEvent]) -> None:
        unpack(octets)
        events.append(ShutdownAsked())

    # Sending.

    def _propose(
        self,
        kind: type[Bind] | type[AlterContext],
        interfaces: Iterable[tuple[SyntaxId, Iterable[SyntaxId]]],
        trailer: SecurityTrailer | None,
        flags: int,
        group_id: int,
    ) -> None:
        """Each transfer syntax is an element of its own ([MS-RPCE] 3.3.1.5.6)."""
        self._proposed = tuple(
            ContextElement(next(self._context_ids), abstract, (transfer,))
            for abstract, transfers in interfaces
            for transfer in transfers
        )
        self._proposal_call_id = next(self._call_ids)
        proposal = kind(
            call_id=self._proposal_call_id,
            pfc_flags=flags,
            max_xmit_frag=self.fragment,
            max_recv_frag=self.fragment,
            assoc_group_id=group_id,
            p_context_elem=self._proposed,
            auth=trailer,
        )
        self._output.append(proposal.pack())

    def _trailer(self, token: bytes) -> SecurityTrailer:
        security = self._security
        return SecurityTrailer(security.auth_type, security.wire_level, security.context_id, token)

    def _require(self, state: ClientState) -> None:
        if self.state is not state:
            raise RuntimeError(f"the association is {self.state.name}, not {state.name}")


Receive = Callable[[ClientAssociation, bytes, list[ClientEvent]], None]

_Client = ClientAssociation

TRANSITIONS: Mapping[ClientState, Mapping[int, Receive]] = {
    ClientState.UNBOUND: {},
    ClientState.BINDING: {
        PduType.bind_ack: _Client._receive_bind_ack,
        PduType.bind_nak: _Client._receive_bind_nak,
        PduType.alter_context_resp: _Client._receive_alter_context_resp,
        PduType.fault: _Client._receive_early_fault,
    },
    ClientState.BOUND: {
        PduType.response: _Client._receive_response,
        PduType.fault: _Client._receive_fault,
        PduType.alter_context_resp: _Client._receive_alter_context_resp,
        PduType.bind_nak: _Client._receive_bind_nak,
        PduType.shutdown: _Client._receive_shutdown,
    },
    ClientState.CLOSED: {},
}
