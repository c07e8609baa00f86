"""Makes calls of request PDUs: joins fragments, checks protection and the order of PDUs."""

from collections.abc import Callable
from typing import Protocol

from rpcqm.base.errors import FaultStatus, RpcFault
from rpcqm.rpc.association_states import State
from rpcqm.rpc.call import Call, CallingAssociation, InFlight
from rpcqm.rpc.constants import WHOLE, PduType, PfcFlags
from rpcqm.rpc.limits import Limits
from rpcqm.rpc.negotiation import Negotiation
from rpcqm.rpc.pdu import (
    BIG_REQUEST_BODY,
    HEADER_LENGTH,
    OBJECT_LENGTH,
    REQUEST_BODY,
    REQUEST_LENGTH,
    TRAILER_LENGTH,
    WHOLE_REQUEST,
    unpack_uuid,
    whole_heads,
)
from rpcqm.rpc.refusal import ConnectionBroken, RequestRefused
from rpcqm.rpc.security.context import SecurityContext
from rpcqm.rpc.security.table import HandshakeUnfinished

_FIRST = int(PfcFlags.PFC_FIRST_FRAG)
_LAST = int(PfcFlags.PFC_LAST_FRAG)
_CANCEL = int(PfcFlags.PFC_PENDING_CANCEL)
_OBJECT = int(PfcFlags.PFC_OBJECT_UUID)
_WHOLE = int(WHOLE)
_WHOLE_OF_OBJECT = _WHOLE | _OBJECT
_OBJECT_END = REQUEST_LENGTH + OBJECT_LENGTH
_HEADS = whole_heads(PduType.request)
_BOUND = State.BOUND

LARGEST_CALL = 0x7FFFFFFF
"""Larger call_ids are refused, as Windows does ([MS-RPCE] 3.3.3.5.2 <123>)."""

OLD_CALLS = 150
"""How many call_ids a stray fragment may be behind and still be ignored ([MS-RPCE] 3.3.3.5.6)."""


class ReceivingAssociation(CallingAssociation, Protocol):
    """The members of `association.ServerAssociation` that receiving uses."""

    state: State
    pdus_in: int
    on_call: Callable[[Call], None]


class _Assembly:
    """A request whose last fragment has not come."""

    __slots__ = ("call", "parts", "signed", "size")

    def __init__(self, call: Call, signed: bool) -> None:
        self.call = call
        self.parts = [call.stub_data]
        self.size = len(call.stub_data)
        self.signed = signed


class RequestReceiver:
    """Makes calls of the request PDUs of one connection; `calls` are those in flight."""

    __slots__ = (
        "_assembly",
        "_association",
        "_calls",
        "_contexts",
        "_highest_call",
        "_largest",
        "_limits",
        "_most_calls",
        "_negotiation",
        "_security",
        "_shortcuts",
    )

    def __init__(
        self,
        association: ReceivingAssociation,
        calls: dict[int, InFlight],
        negotiation: Negotiation,
        limits: Limits,
    ) -> None:
        self._association = association
        self._calls = calls
        self._negotiation = negotiation
        self._contexts = negotiation.presentation.contexts
        self._security = negotiation.security
        self._limits = limits
        self._shortcuts, self._largest = association.shortcuts, limits.fragment_size
        self._most_calls = limits.calls
        self._assembly: _Assembly | None = None
        self._highest_call = -1

    @property
    def incomplete(self) -> object | None:
        """The request whose last fragment has not come; None if there is none."""
        return self._assembly

    @property
    def incomplete_bytes(self) -> int:
        """Octets of that request's stub data that have come."""
        return self._assembly.size if self._assembly is not None else 0

    def uses(self, security: SecurityContext) -> bool:
        """Whether a security context is used by a call in flight or by an unfinished request."""
        calls: list[InFlight] = [*self._calls.values()]
        if self._assembly is not None:
            calls.append(self._assembly.call)
        return any(call.security in (security, security.unsigned) for call in calls)

    def forget(self) -> None:
        self._assembly = None

    def take_whole(self, data: bytes, offset: int) -> int:
        """Take whole unprotected requests from `offset` on, and have them run.

        Returns where the first other PDU begins. Requests that no shortcut takes become calls as if
        they had been received one by one.
        """
        if self._assembly is not None or self._security.authenticated:
            return offset
        association, calls, base = self._association, self._calls, self._security.base
        end = len(data)
        while end - offset >= REQUEST_LENGTH and association.state is _BOUND:
            head, length, auth_length, call_id, _, context_id, opnum = WHOLE_REQUEST.unpack_from(
                data, offset
            )
            context = self._contexts.get(context_id)
            if (
                context is None
                or head not in _HEADS
                or auth_length
                or not REQUEST_LENGTH <= length <= self._largest
                or end - offset < length
                or call_id in calls
                or call_id > LARGEST_CALL
                or len(calls) >= self._most_calls
            ):
                break
            if call_id > self._highest_call:
                self._highest_call = call_id
            association.pdus_in += 1
            stub = data[offset + REQUEST_LENGTH : offset + length]
            offset += length
            shortcut = self._shortcuts.get(opnum)
            if shortcut is None or not shortcut.take(association, call_id, context, base, stub):
                call = calls[call_id] = Call(association, call_id, context, opnum, base, stub)
                association.on_call(call)
        return offset

    def receive(
        self, pdu: bytes, flags: int, auth_length: int, call_id: int, big_endian: bool
    ) -> Call | None:
        """The call that a request PDU completes; None if more fragments follow.

        Raises ConnectionBroken or RequestRefused.
        """
        if len(pdu) < REQUEST_LENGTH:
            raise ConnectionBroken("a request without its header")
        start = REQUEST_LENGTH
        if flags != _WHOLE or big_endian or self._assembly is not None:
            whole = flags == _WHOLE_OF_OBJECT and len(pdu) >= _OBJECT_END
            if not whole or big_endian or self._assembly is not None:
                return self._receive_part(pdu, flags, auth_length, call_id, big_endian)
            start = _OBJECT_END
        _, context_id, opnum = REQUEST_BODY.unpack_from(pdu, HEADER_LENGTH)
        context = self._contexts.get(context_id)
        if context is None:
            raise _unknown_context(opnum, context_id)
        if auth_length or self._security.authenticated:
            security, stub = self.unprotected(pdu, start, auth_length, context_id, False)
            shortcut = self._shortcuts.get(opnum) if start == REQUEST_LENGTH else None
            if (
                shortcut is not None
                and call_id not in self._calls
                and call_id <= LARGEST_CALL
                and len(self._calls) < self._most_calls
                and shortcut.take(self._association, call_id, context, security, stub)
            ):
                self._highest_call = max(call_id, self._highest_call)
                return None
        else:
            security, stub = self._security.base, pdu[start:]
        call = Call(self._association, call_id, context, opnum, security, stub)
        if start != REQUEST_LENGTH:
            call.object_octets = pdu[REQUEST_LENGTH:_OBJECT_END]
        self._admit(call)
        return call

    def _note_highest(self, call: Call) -> None:
        """Keep the Current call_id ([MS-RPCE] 3.3.3.1.1), which never rolls over."""
        if call.call_id > LARGEST_CALL:
            raise _broken(call, f"call_id {call.call_id}")
        self._highest_call = call.call_id

    def _receive_part(
        self, pdu: bytes, flags: int, auth_length: int, call_id: int, big_endian: bool
    ) -> Call | None:
        """A request PDU that is a fragment, or has more in its header than most."""
        layout = BIG_REQUEST_BODY if big_endian else REQUEST_BODY
        alloc_hint, context_id, opnum = layout.unpack_from(pdu, HEADER_LENGTH)
        if self._assembly is not None:
            return self._receive_further(self._assembly, pdu, flags, auth_length, call_id)
        if not flags & _FIRST:
            self._receive_stray(pdu, auth_length, call_id, context_id, big_endian)
            return None
        self._check_first(flags, alloc_hint, context_id)
        context = self._contexts.get(context_id)
        if context is None:
            raise _unknown_context(opnum, context_id)
        start = _OBJECT_END if flags & _OBJECT else REQUEST_LENGTH
        security, stub = self.unprotected(pdu, start, auth_length, context_id, big_endian)
        call = Call(self._association, call_id, context, opnum, security, stub)
        call.big_endian = big_endian
        if flags & _OBJECT:
            _read_object(call, pdu, big_endian)
        assembly = _Assembly(call, auth_length != 0)
        self._check_size(assembly)
        if flags & _LAST:
            return self._admit_joined(call)
        self._assembly = assembly
        return None

    def unprotected(
        self, pdu: bytes, start: int, auth_length: int, context_id: int, big_endian: bool
    ) -> tuple[SecurityContext, bytes]:
        """The security context of a PDU, and its octets behind `start` without protection."""
        try:
            security = self._security.of_request(pdu, auth_length, big_endian)
            if auth_length == 0:
                return security, pdu[start:]
            return security, security.unprotect(pdu, start, auth_length)
        except HandshakeUnfinished as error:
            raise ConnectionBroken(error.detail, error.status, executed=False) from error
        except RpcFault as error:
            raise ConnectionBroken(error.detail, error.status, context_id=context_id) from error

    def _check_first(self, flags: int, alloc_hint: int, context_id: int) -> None:
        """Check the first fragment of a request."""
        if flags & _CANCEL:
            status = FaultStatus.RPC_S_NO_CALL_ACTIVE
            raise ConnectionBroken("a cancel without a call", status, executed=False)
        if alloc_hint > self._limits.call_bytes and not flags & _LAST:
            raise ConnectionBroken(
                f"a request of {alloc_hint} octets",
                FaultStatus.RPC_S_ACCESS_DENIED,
                context_id=context_id,
            )

    def _receive_stray(
        self, pdu: bytes, auth_length: int, call_id: int, context_id: int, big_endian: bool
    ) -> None:
        """Take a fragment that belongs to no call in flight: ignore it if its call was recent."""
        if 0 < self._highest_call - call_id < OLD_CALLS:
            return
        if not self._negotiation.multiplexed:
            raise ConnectionBroken("a fragment without its first")
        if context_id not in self._contexts:
            raise _unknown_context(0, context_id)
        self.unprotected(pdu, REQUEST_LENGTH, auth_length, context_id, big_endian)
        raise ConnectionBroken("a fragment without its first", context_id=context_id)

    def _receive_further(
        self, assembly: _Assembly, pdu: bytes, flags: int, auth_length: int, call_id: int
    ) -> Call | None:
        """Take a further fragment: only its call_id and its stub data count."""
        call = assembly.call
        if call_id != call.call_id and self._negotiation.multiplexed:
            raise ConnectionBroken("the request before is not complete")
        if call_id != call.call_id:
            raise _broken(call, "the request before is not complete")
        stub = _stub_of_fragment(assembly, pdu, flags, auth_length)
        if flags & _FIRST:
            raise _broken(call, "a second first fragment")
        assembly.parts.append(stub)
        assembly.size += len(stub)
        self._check_size(assembly)
        if not flags & _LAST:
            return None
        self._assembly = None
        call.stub_data = b"".join(assembly.parts)
        return self._admit_joined(call)

    def _admit(self, call: Call) -> None:
        """Put a whole request in flight as a call."""
        self._check_admission(call)
        self._calls[call.call_id] = call

    def _admit_joined(self, call: Call) -> Call | None:
        """The call of a request that came in fragments; None if a shortcut takes it."""
        self._check_admission(call)
        call_id, shortcut = call.call_id, self._shortcuts.get(call.opnum)
        if shortcut is not None and not (call.big_endian or call.object_octets):
            security, stub = call.security, call.stub_data
            if shortcut.take(self._association, call_id, call.context, security, stub):
                return None
        self._calls[call_id] = call
        return call

    def _check_admission(self, call: Call) -> None:
        """Raise if a whole request may not be a call in flight."""
        if call.call_id in self._calls or len(self._calls) >= self._most_calls:
            raise self._not_admitted(call)
        if call.call_id > self._highest_call:
            self._note_highest(call)

    def _not_admitted(self, call: Call) -> ConnectionBroken | RequestRefused:
        """The error for a whole request that may not become a call in flight."""
        if call.call_id in self._calls:
            return _broken(call, "the call identifier is in use")
        busy = FaultStatus.nca_s_server_too_busy
        level, context_id = call.authentication_level, call.context.context_id
        return RequestRefused(call.opnum, context_id, busy, "too many calls", level)

    def _check_size(self, assembly: _Assembly) -> None:
        limits = self._limits
        if assembly.size > limits.call_bytes or len(assembly.parts) > limits.call_fragments:
            status = FaultStatus.RPC_S_ACCESS_DENIED
            raise _broken(assembly.call, "a request over its limits", status)


def _unknown_context(opnum: int, context_id: int) -> RequestRefused:
    text = f"presentation context {context_id}"
    return RequestRefused(opnum, 0, FaultStatus.nca_s_unk_if, text)


def _broken(
    call: Call, text: str, status: FaultStatus = FaultStatus.nca_s_proto_error
) -> ConnectionBroken:
    return ConnectionBroken(text, status, call_id=call.call_id, context_id=call.context.context_id)


def _stub_of_fragment(assembly: _Assembly, pdu: bytes, flags: int, auth_length: int) -> bytes:
    call = assembly.call
    if (auth_length != 0) != assembly.signed:
        raise _broken(call, "only some fragments are signed")
    start = _OBJECT_END if flags & _OBJECT else REQUEST_LENGTH
    if auth_length == 0:
        return pdu[start:]
    if len(pdu) - auth_length - TRAILER_LENGTH < start:
        raise _broken(call, "a token longer than its PDU")
    try:
        return call.security.unprotect(pdu, start, auth_length)
    except RpcFault as error:
        raise ConnectionBroken(
            error.detail, error.status, context_id=call.context.context_id
        ) from error


def _read_object(call: Call, pdu: bytes, big_endian: bool) -> None:
    octets = pdu[REQUEST_LENGTH:_OBJECT_END]
    if len(octets) < OBJECT_LENGTH:
        raise _broken(call, "a request without its object")
    call.object_octets = unpack_uuid(octets, True).bytes_le if big_endian else octets
