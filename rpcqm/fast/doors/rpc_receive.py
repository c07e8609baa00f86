"""rpc_ACReceiveMessageEx by templates: reads without waiting.

`QmComm2.rpc_ACReceiveMessageEx` stays the only definition of the call. A recognised request gets a
message of a form whose answers were learned: the message is locked on the careful path's terms and
removed with the others of the turn; the answer is filled into the octets of earlier ones
(docs/request-templates.md).
"""

from contextlib import nullcontext

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.message import CONSEQUENCES, FLAG_ALLOW_PEEK_WHEN_LOCKED, Message, MessagePosition
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.interface import Operation, TransferSyntax
from rpcqm.codec.types.mqvalues import (
    MQ_ACTION_PEEK_CURRENT,
    MQ_ACTION_RECEIVE,
)
from rpcqm.fast.doors.rpc_receive_answers import KnownAnswers, ReceiveTemplates
from rpcqm.fast.doors.rpc_recognition import Recognition, TemplatedCall
from rpcqm.fast.formats.stub_shapes import Holes, StubShape
from rpcqm.fast.learned import Patience
from rpcqm.fast.turn import Turn
from rpcqm.interfaces._client_handles import ClientHandles
from rpcqm.qm.messages import MessageEvents
from rpcqm.qm.positions import only_leaves
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import CarefulPath

_PATIENCE, _LOOKED_AT = 256, 8
"""After PATIENCE requests in a row that were not answered here, one of LOOKED_AT is examined."""
_UNWANTED = CONSEQUENCES | FLAG_ALLOW_PEEK_WHEN_LOCKED
"""Flags of messages whose removal has consequences, or that others may see until then."""

_RECEIVE = "ptb.old.u.value"
_OLD = (
    "pClass",
    "ppMessageID",
    "ppCorrelationID",
    "pSentTime",
    "pArrivedTime",
    "pPriority",
    "pDelivery",
    "pAcknowledge",
    "pAuditing",
    "pApplicationTag",
    "ppBody",
    "pBodySize",
    "ppTitle",
    "pulRelativeTimeToQueue",
    "pulRelativeTimeToLive",
    "pTrace",
    "pulSenderIDType",
    "ppSenderID",
    "pulSenderIDLenProp",
    "pulPrivLevel",
    "pAuthenticated",
    "pulHashAlg",
    "pulEncryptAlg",
    "ppSenderCert",
    "pulSenderCertLenProp",
    "ppwcsProvName",
    "pulAuthProvNameLenProp",
    "pulProvType",
    "ppSymmKeys",
    "pulSymmKeysSizeProp",
    "ppSignature",
    "pulSignatureSizeProp",
    "ppSrcQMID",
    "ppMsgExtension",
    "pMsgExtensionSize",
    "ppConnectorType",
    "pulBodyType",
    "pulVersion",
)
"""Fields of a buffer that an answer overwrites, whatever their values, if all buffers suffice."""
HOLES = Holes(
    values=(
        "hQMContext",
        f"{_RECEIVE}.RequestTimeout",
        f"{_RECEIVE}.Action",
        f"{_RECEIVE}.Cursor",
        "ptb.old.pUow.rgb",
    ),
    ignored=(
        *(f"ptb.old.{name}" for name in _OLD),
        *(f"{_RECEIVE}.pp{kind}FormatName" for kind in ("Response", "Admin", "Dest", "Ordering")),
        "ptb.pbFirstInXact",
        "ptb.pbLastInXact",
        "ptb.ppXactID",
    ),
    given=(("ptb.old.uTransferType", 1),),
)
"""The fields that differ between the requests of an application ([MS-MQMP] 3.1.5.3)."""


class TemplatedReceive(TemplatedCall):
    """A message on its way out of a queue, and the call that gets it (`fast.turn`)."""

    __slots__ = ("_messages", "_position", "descriptor", "response")

    def __init__(
        self,
        call: Call,
        path: CarefulPath,
        messages: MessageEvents,
        descriptor: OpenQueueDescriptor,
        position: MessagePosition,
        response: bytes,
    ) -> None:
        super().__init__(call, path)
        self._messages, self._position = messages, position
        self.descriptor, self.response = descriptor, response

    def removing(self) -> None:
        """Drop the request: the read is over."""
        self.descriptor.two_phase_reads.discard(self._position.lookup_identifier)
        self.call.stub_data = b""

    def removed(self) -> None:
        """Answer the call."""
        self.answer(self.response)

    def carefully(self) -> None:
        """Give the message back, for the careful path to find it."""
        self._messages.dequeue_message_end(self.descriptor, self._position, False)
        super().carefully()


class ReceiveRecogniser:
    """Recognises the requests of rpc_ACReceiveMessageEx (`rpc.interface_registry`)."""

    def __init__(
        self,
        templates: ReceiveTemplates,
        turn: Turn,
        messages: MessageEvents,
        handles: ClientHandles,
        operation: Operation,
        syntax: TransferSyntax,
    ) -> None:
        self._templates, self._turn = templates, turn
        self._messages, self._handles = messages, handles
        self._codec = operation.codec(syntax)
        self._recognition = Recognition(turn, operation, syntax, HOLES)
        self._patience = Patience(_PATIENCE, _LOOKED_AT)

    def take(self, call: Call, path: CarefulPath) -> bool:
        """Answer a read without a cursor or a transaction, if nothing about it is unusual."""
        if not self._patience.looks():
            return False
        found = self._recognition.of(call)
        if found is None:
            return False
        shape, (context, timeout, action, cursor, unit_of_work) = found
        usual = not cursor and (action in (MQ_ACTION_RECEIVE, MQ_ACTION_PEEK_CURRENT))
        if not usual or (unit_of_work and any(unit_of_work)):
            return False
        shadow = self._turn.shadow
        try:
            with nullcontext() if shadow is None else shadow.at_one_time():
                taken = self._read(call, path, shape, context, timeout, action)
        except (DecodeError, MQError):  # the careful path reports it
            return False
        if taken:
            self._patience.found()
        return taken

    def _read(
        self,
        call: Call,
        path: CarefulPath,
        shape: StubShape,
        context: int,
        timeout: int,
        action: int,
    ) -> bool:
        descriptor = self._descriptor(call, context)
        receiving = action == MQ_ACTION_RECEIVE
        message = descriptor and self._messages.first_message(descriptor, receiving=receiving)
        if not descriptor or not message or (receiving and not _can_remove_in_bulk(message)):
            return False
        response = self._templates.answer(
            self._known(shape), call.stub_data, message, timeout, action
        )
        if response is None:
            return False
        if self._turn.shadow is not None:
            self._compare(call, path, message, receiving, response)
        self._turn.count_read()
        if receiving:
            self._receive(call, path, descriptor, message, response)
        else:
            call.association.send_response(call, response)
        return True

    def _descriptor(self, call: Call, context: int) -> OpenQueueDescriptor | None:
        """The local queue that is open; None for a remote one. Raises MQError."""
        self._handles.admit(call)
        if self._handles.proxies.find(call, context) is not None:
            return None
        return self._handles.find_local(call, context)

    def _known(self, shape: StubShape) -> KnownAnswers:
        known = shape.attached
        if known is None:
            known = shape.attached = KnownAnswers(self._codec)
        assert isinstance(known, KnownAnswers)
        return known

    def _receive(
        self,
        call: Call,
        path: CarefulPath,
        descriptor: OpenQueueDescriptor,
        message: Message,
        response: bytes,
    ) -> None:
        """Lock a message, as the careful path does, and remove it when the turn ends."""
        queue, key = message.queue, message.lookup_identifier
        assert queue is not None
        self._messages.hold(descriptor, queue, message, settles=False)
        position = MessagePosition(queue, key)
        removal = TemplatedReceive(call, path, self._messages, descriptor, position, response)
        self._turn.remove(queue, key, removal)

    def _compare(
        self, call: Call, path: CarefulPath, message: Message, receiving: bool, response: bytes
    ) -> None:
        """Compare an answer with that of the careful path, which is taken back."""
        assert self._turn.shadow is not None
        assert message.queue is not None
        self._turn.shadow.compare_call(call, path, response)
        if receiving:
            message.queue.message_position_list.unlock(message.lookup_identifier)


def _can_remove_in_bulk(message: Message) -> bool:
    """Whether the removal has no consequences, and nobody else sees the message until then."""
    queue = message.queue
    usual = queue is not None and only_leaves(queue)
    return usual and not message.kept_flags & _UNWANTED
