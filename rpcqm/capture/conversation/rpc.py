"""The calls of one connection: contexts, fragments, security, pairing."""

import struct
from collections.abc import Callable, Sequence

from rpcqm.base.errors import DecodeError
from rpcqm.capture.conversation.call import CapturedCall, Conversation, name_of_status
from rpcqm.capture.conversation.interfaces import Context
from rpcqm.capture.conversation.knowledge import Knowledge
from rpcqm.capture.conversation.pdu_stream import CapturedPdu, PduStream
from rpcqm.capture.conversation.recognition import Recognition
from rpcqm.capture.unsealing.accounts import UnsealingAccount
from rpcqm.capture.unsealing.contexts import INTEGRITY, PRIVACY, ObservedSecurityContext
from rpcqm.rpc.constants import (
    ContextResult,
    PduType,
    PfcFlags,
    ProviderReason,
    RejectReason,
)
from rpcqm.rpc.pdu import (
    BIG_REQUEST_BODY,
    BIG_TRAILER,
    REQUEST_BODY,
    TRAILER,
    TRAILER_LENGTH,
    AlterContext,
    AlterContextResp,
    Bind,
    BindAck,
    BindNak,
    ContextAnswer,
    ContextElement,
    Pdu,
    unpack,
)

_REQUEST = REQUEST_BODY.unpack_from
_WHOLE = int(PfcFlags.PFC_FIRST_FRAG | PfcFlags.PFC_LAST_FRAG)
_FIRST = int(PfcFlags.PFC_FIRST_FRAG)
_LAST = int(PfcFlags.PFC_LAST_FRAG)
_OBJECT = int(PfcFlags.PFC_OBJECT_UUID)
_REQUEST_PDU, _RESPONSE_PDU, _FAULT_PDU = 0, 2, 3
_BODY = 24
_MAPPER = "ept"
_STATUS = {False: struct.Struct("<I").unpack_from, True: struct.Struct(">I").unpack_from}
MAXIMUM_STUB = 1 << 26
"""Octets of a stub that are put together; a longer one is not decoded, to save memory."""
MAXIMUM_CALLS = 1 << 14
"""How many calls of a connection may wait for answers, so that memory is bounded."""


class _Partial:
    """The fragments of a request or response so far; `parts` is None once one is sealed."""

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        self.parts: list[bytes] | None = []
        self.size = 0

    def add(self, stub: bytes | None, size: int) -> None:
        self.size += size
        if stub is None or self.size > MAXIMUM_STUB:
            self.parts = None
        elif self.parts is not None:
            self.parts.append(stub)

    def joined(self) -> bytes | None:
        return None if self.parts is None else b"".join(self.parts)


def _without_calls(answers: Sequence[ContextAnswer]) -> str:
    """Why there are no calls behind the answer to a bind."""
    if any(each.result == ContextResult.acceptance for each in answers):
        return "no call was made"
    reasons = (ProviderReason._value2member_map_.get(each.reason) for each in answers)
    names = dict.fromkeys(each.name for each in reasons if isinstance(each, ProviderReason))
    return ": ".join(("no interface was accepted", *filter(None, [", ".join(names)])))


class RpcConversation:
    """Both sides of one connection that carries DCE/RPC.

    `emit` gets each call once it is answered, or when the connection ends.
    """

    def __init__(
        self,
        conversation: Conversation,
        knowledge: Knowledge,
        accounts: Sequence[UnsealingAccount],
        emit: Callable[[CapturedCall], None],
    ) -> None:
        self.conversation = conversation
        self.contexts: dict[int, Context] = {}
        self.calls: dict[int, CapturedCall] = {}
        self._knowledge = knowledge
        self._problems = knowledge.problems
        self._accounts = accounts
        self._emit = emit
        self._proposed: dict[int, tuple[ContextElement, ...]] = {}
        self._securities: dict[int, ObservedSecurityContext] = {}
        self._requests: dict[int, _Partial] = {}
        self._responses: dict[int, _Partial] = {}
        self._recognitions: dict[int, Recognition] = {}
        self._first_sealed = self._sealed_calls = 0
        self.from_client = PduStream(self._client_pdu, self._problems)
        self.from_server = PduStream(self._server_pdu, self._problems)

    @property
    def between_pdus(self) -> bool:
        """Whether no PDU and no fragmented message of either side is incomplete."""
        streams = self.from_client.empty and self.from_server.empty
        return streams and not self._requests and not self._responses

    # What the client sends.

    def _client_pdu(self, pdu: CapturedPdu) -> None:
        data, at, stop, kind, flags, drep, auth_length, call_id, time, offset = pdu
        if kind != _REQUEST_PDU:
            self._other(pdu)
            return
        if stop - at < _BODY:
            self._problems.add("pdu", offset, "a request without its fixed fields")
            return
        _, context_id, opnum = (
            _REQUEST(data, at + 16) if drep else BIG_REQUEST_BODY.unpack_from(data, at + 16)
        )
        start = at + _BODY
        if flags & _FIRST or call_id not in self.calls:
            call = self._open_call(call_id, context_id, opnum, time, offset)
            call.big_endian = not drep
            if not flags & _FIRST:
                call.note = "its first fragment was not captured"
        else:
            call = self.calls[call_id]
        if flags & _OBJECT:
            call.object_uuid = data[start : start + 16]
            start += 16
        if not auth_length and flags & _WHOLE == _WHOLE:
            call.request = data[start:stop]
            call.request_size = stop - start
            return
        partial = self._fragment(self._requests, call, pdu, start)
        if flags & _LAST:
            del self._requests[call_id]
            call.request, call.request_size = partial.joined(), partial.size

    def _open_call(
        self, call_id: int, context_id: int, opnum: int, time: int, offset: int
    ) -> CapturedCall:
        context = self.contexts.get(context_id)
        if context is None or context.uuid is None:
            context = self._knowledge.guess(self.conversation.server, context_id, offset)
            self.contexts[context_id] = context
        call = CapturedCall(self.conversation, call_id, context, opnum, time, offset)
        self.calls[call_id] = call
        if len(self.calls) > MAXIMUM_CALLS:
            self._give_up(next(iter(self.calls)))
        return call

    # What the server sends.

    def _server_pdu(self, pdu: CapturedPdu) -> None:
        data, at, stop, kind, flags, drep, auth_length, call_id, time, offset = pdu
        answer = kind == _RESPONSE_PDU and stop - at >= _BODY
        if not answer and (kind != _FAULT_PDU or stop - at < _BODY + 4):
            self._other(pdu)
            return
        if not answer and call_id in self._proposed and call_id not in self.calls:
            status = _STATUS[not drep](data, at + _BODY)[0]
            self._refused(call_id, f"the logon was refused: {name_of_status(status)}")
            return
        call = self.calls.get(call_id) or self._unasked(pdu)
        if not answer:
            if auth_length:
                # Its signature takes part in the order of messages.
                self._stub(pdu, at + _BODY, False)
            call.fault = _STATUS[not drep](data, at + _BODY)[0]
            self._answer(call, time, offset)
        elif not auth_length and flags & _WHOLE == _WHOLE:
            call.response = data[at + _BODY : stop]
            call.response_size = stop - at - _BODY
            self._answer(call, time, offset)
        else:
            partial = self._fragment(self._responses, call, pdu, at + _BODY)
            if flags & _LAST:
                del self._responses[call_id]
                call.response, call.response_size = partial.joined(), partial.size
                self._answer(call, time, offset)

    def _unasked(self, pdu: CapturedPdu) -> CapturedCall:
        """The call of an answer whose request was not captured."""
        layout = REQUEST_BODY if pdu.drep else BIG_REQUEST_BODY
        _, context_id, _ = layout.unpack_from(pdu.data, pdu.begin + 16)
        call = self._open_call(pdu.call_id, context_id, 0xFFFF, pdu.time, pdu.offset)
        call.note = "its request was not captured"
        return call

    def _answer(self, call: CapturedCall, time: int, offset: int) -> None:
        call.ended, call.response_offset = time, offset
        self.calls.pop(call.call_id, None)
        if call.context.uuid is None:
            self._recognise(call)
        if call.context.name == _MAPPER:
            self._knowledge.answered(call)
        self._finished(call)

    def _recognise(self, call: CapturedCall) -> None:
        """Find out what a context is whose bind was not captured."""
        old = call.context
        if call.request is None or call.response is None or call.fault is not None:
            return
        recognition = self._recognitions.setdefault(old.identifier, Recognition())
        found = recognition.look(
            old.identifier, call.opnum, call.request, call.response, call.big_endian
        )
        if found is None:
            return
        self.contexts[old.identifier] = found
        self._knowledge.bound(self.conversation.server, found, call.offset)
        for each in (call, *self.calls.values()):
            if each.context is old:
                each.context = found

    # Protection.

    def _fragment(
        self, partials: dict[int, _Partial], call: CapturedCall, pdu: CapturedPdu, start: int
    ) -> _Partial:
        """Add a fragment to those of its request or response that came before."""
        stub, size = self._stub(pdu, start, partials is self._requests)
        partial = partials.setdefault(call.call_id, _Partial())
        partial.add(stub, size)
        call.sealed = call.sealed or stub is None
        return partial

    def _stub(self, pdu: CapturedPdu, start: int, from_client: bool) -> tuple[bytes | None, int]:
        """The stub data of a fragment and its size on the wire; None if it stays sealed."""
        data, at, stop, _, _, drep, auth_length, _, _, offset = pdu
        if not auth_length:
            return data[start:stop], stop - start
        trailer = stop - auth_length - TRAILER_LENGTH
        if trailer < start:
            self._problems.add("pdu", offset, "an authentication trailer that does not fit its PDU")
            return None, max(stop - start, 0)
        layout = TRAILER if drep else BIG_TRAILER
        _, level, pad, _, context_id = layout.unpack_from(data, trailer)
        end = max(trailer - pad, start)
        security = self._securities.get(context_id)
        if security is None or not security.opens:
            return (None if level == PRIVACY else data[start:end]), end - start
        tail = trailer + TRAILER_LENGTH
        parts = data[at:start], data[start:trailer], data[trailer:tail], data[tail:stop]
        if level != PRIVACY:
            if level == INTEGRITY and (wrong := security.verify(from_client, *parts)):
                self._problems.add(
                    "signature", offset, f"a message is not what was signed: {wrong}"
                )
            return data[start:end], end - start
        body = security.unseal(from_client, *parts)
        if body is None:
            self._problems.add("sealed", offset, f"a message cannot be unsealed: {security.why}")
            return None, end - start
        return body[: end - start], end - start

    def _why_sealed(self) -> str:
        reasons = dict.fromkeys(each.why for each in self._securities.values())
        return "; ".join(filter(None, reasons)) or "its handshake was not captured"

    # Everything else.

    def _other(self, found: CapturedPdu) -> None:
        kind, call_id = found.kind, found.call_id
        if kind == PduType.co_cancel:
            if call_id in self.calls:
                self.calls[call_id].cancelled = found.time
            return
        if kind == PduType.orphaned:
            if call_id in self.calls:
                self.calls[call_id].orphaned = True
                self._give_up(call_id)
            return
        try:
            pdu = unpack(found.data[found.begin : found.end])
        except DecodeError as error:
            reason = f"a PDU of type {kind} cannot be read: {error}"
            self._problems.add("pdu", found.offset, reason)
            return
        self._negotiate(pdu, found.offset)

    def _negotiate(self, pdu: Pdu, offset: int) -> None:
        if pdu.auth is not None:
            self._authenticate(pdu)
        if isinstance(pdu, Bind | AlterContext):
            self._proposed[pdu.call_id] = pdu.p_context_elem
            self.conversation.without_calls = "the bind was not answered"
        elif isinstance(pdu, BindNak):
            reason = pdu.provider_reject_reason
            known = RejectReason._value2member_map_.get(reason)
            told = known.name if isinstance(known, RejectReason) else str(reason)
            self._refused(pdu.call_id, f"the bind was refused: {told}")
        elif isinstance(pdu, BindAck | AlterContextResp):
            self.conversation.group = pdu.assoc_group_id or self.conversation.group
            elements = self._proposed.pop(pdu.call_id, ())
            self.conversation.without_calls = _without_calls(pdu.p_result_list)
            for element, answer in zip(elements, pdu.p_result_list, strict=False):
                self._accept(element, answer, offset)

    def _refused(self, call_id: int, reason: str) -> None:
        self._proposed.pop(call_id, None)
        self.conversation.without_calls = reason

    def _accept(self, element: ContextElement, answer: ContextAnswer, offset: int) -> None:
        if answer.result == ContextResult.negotiate_ack:
            return
        accepted = answer.result == ContextResult.acceptance
        transfer = answer.transfer_syntax.uuid if accepted else None
        context = Context(element.p_cont_id, element.abstract_syntax, transfer, accepted)
        self.contexts[element.p_cont_id] = context
        if accepted:
            self._knowledge.bound(self.conversation.server, context, offset)

    def _authenticate(self, pdu: Pdu) -> None:
        auth = pdu.auth
        if auth is None:
            return
        security = self._securities.get(auth.auth_context_id)
        if security is None:
            security = ObservedSecurityContext(auth.auth_type, auth.auth_level, self._accounts)
            self._securities[auth.auth_context_id] = security
        security.token(auth.auth_value)
        self.conversation.level = max(self.conversation.level, auth.auth_level)
        self.conversation.account = security.account or self.conversation.account

    # Ends.

    def gap(self, from_client: bool, count: int, time: int, offset: int) -> None:
        """Octets were not captured."""
        side = "client" if from_client else "server"
        self._problems.add("gap", offset, f"{count} octets of the {side} were not captured")
        (self.from_client if from_client else self.from_server).gap(count)
        for security in self._securities.values():
            security.gap()

    def _give_up(self, call_id: int) -> None:
        call = self.calls.pop(call_id)
        self._requests.pop(call_id, None)
        self._responses.pop(call_id, None)
        call.note = call.note or ("orphaned" if call.orphaned else "never answered")
        self._finished(call)

    def _finished(self, call: CapturedCall) -> None:
        if call.sealed:
            self._first_sealed = self._first_sealed or call.offset
            self._sealed_calls += 1
        self._emit(call)

    def finish(self) -> None:
        """The connection ends: what was not answered never will be."""
        for call_id in list(self.calls):
            self._give_up(call_id)
        if self._sealed_calls:
            told = f"calls of {self.conversation.client} that stay sealed: {self._sealed_calls}; "
            self._problems.add("sealed", self._first_sealed, told + self._why_sealed())
