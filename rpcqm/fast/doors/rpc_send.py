"""rpc_ACSendMessageEx by templates: requests like earlier ones.

`QmComm2.rpc_ACSendMessageEx` stays the only definition of the request. When one of a shape comes a
second time, the result of the careful path is kept: the packet with its holes, the response with
its hole. The next one is recognised, checked for everything that may have changed since, and
carried out with the others of its turn (docs/request-templates.md).
"""

from functools import partial
from typing import Any, NamedTuple

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.clock import Clock
from rpcqm.base.errors import DecodeError, MQError
from rpcqm.codec.interface import Operation, OperationCodec, TransferSyntax
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.message import MessageAttributes
from rpcqm.codec.types.mqmq import OBJECTID
from rpcqm.codec.types.mqvalues import FormatNameType, QueueAccessType
from rpcqm.codec.types.qmcomm2 import rpc_ACSendMessageExRequest, rpc_ACSendMessageExResponse
from rpcqm.fast.doors.rpc_recognition import Recognition
from rpcqm.fast.doors.rpc_send_lane import Names, OpenForSending, SendLane
from rpcqm.fast.doors.rpc_sent_values import SendTemplate, values_of
from rpcqm.fast.formats.sent_packet import SentTemplate
from rpcqm.fast.formats.stub_shapes import Holes, StubShape
from rpcqm.fast.learned import Budget, Learned
from rpcqm.fast.rehearsing import RehearsingComposer
from rpcqm.fast.requests import Kind
from rpcqm.fast.turn import Turn
from rpcqm.interfaces._client_handles import ClientHandles, LocalQueueContextHandle
from rpcqm.interfaces._sent_buffer import message_attributes
from rpcqm.qm.arrivals import Arrivals
from rpcqm.rpc.call import Call
from rpcqm.rpc.context_handle import ContextHandle
from rpcqm.rpc.interface_registry import CarefulPath

TEMPLATES = 512
"""Templates of messages that clients send, of all of them.

Each has about two kilobytes.

Bound `rpc.request_templates` [templates]: the one that was used longest ago is forgotten.
"""
LEARNED_AT_ONCE = 64
"""Templates that are made in one moment.

Bound `rpc.request_templates_learned_at_once` [templates]: requests are carried out one by one.
"""
LEARNED_PER_SECOND = 32
"""Templates that are made in a second.

Learning costs as much as some twenty requests, and ever new shapes gain nothing by it.

Bound `rpc.request_templates_learned` [templates]: requests are carried out one by one.
"""
_MARK = 0x5AA5_C33C
"""Placeholder for the number of a message in a response; few other octets equal it."""


HOLES = Holes(
    values=(
        "hQueue",
        "ptb.old.u.value.pAdminQueueFormat.u.value",
        "ptb.old.u.value.pResponseQueueFormat.u.value",
        "ptb.old.ulAbsoluteTimeToQueue",
        "ptb.old.ulRelativeTimeToLive",
        "ptb.old.pPriority",
        "ptb.old.pApplicationTag",
        "ptb.old.ppCorrelationID",
        "ptb.old.ppBody",
        "ptb.old.ppTitle",
    ),
    sizes=(
        "ptb.old.ulBodyBufferSizeInBytes",
        "ptb.old.ulAllocBodyBufferInBytes",
        "ptb.old.ulTitleBufferSizeInWCHARs",
    ),
    ignored=("pMessageID", "ptb.old.ppMessageID", "ptb.old.pBodySize"),
    given=(("ptb.old.uTransferType", 0),),
)
"""The fields that differ between the requests of an application ([MS-MQMP] 2.2.3.2)."""


class _Key(NamedTuple):
    """The inputs of a packet besides the other holes of its request."""

    shape: StubShape
    names: Names
    destination: str
    sender: str


class SendTemplates:
    """The results of requests of each shape, for all clients."""

    def __init__(
        self,
        queue_manager: QueueManager,
        clock: Clock,
        composer: RehearsingComposer,
        arrivals: Arrivals,
    ) -> None:
        self._queue_manager = queue_manager
        self._clock = clock
        self._composer = composer
        self._arrivals = arrivals
        self._learned: Learned[_Key, SendTemplate] = Learned(TEMPLATES)
        self._budget = Budget(clock, LEARNED_AT_ONCE, LEARNED_PER_SECOND)

    def __len__(self) -> int:
        return len(self._learned)

    def find(
        self,
        call: Call,
        opened: OpenForSending,
        shape: StubShape,
        names: Names,
        codec: OperationCodec,
    ) -> SendTemplate | None:
        """The template of a kind of requests for an open queue; None for the careful path."""
        if (shape, names) in opened.templates:
            return opened.find(shape, names)
        key = _Key(shape, names, str(opened.descriptor.format_name), call.identity.sid)
        learn = partial(self._learn, call, opened.descriptor, codec)
        template = self._learned.find_or_learn(key, self._budget, learn)
        if key in self._learned:
            opened.keep(shape, names, template)
        return template

    def _learn(
        self, call: Call, descriptor: OpenQueueDescriptor, codec: OperationCodec
    ) -> SendTemplate | None:
        """Build the packet on the careful path, without sending it."""
        request: rpc_ACSendMessageExRequest = codec.request.decode(call.stub_data)
        try:
            attributes = self._attributes(request, descriptor)
            if attributes is None:
                return None
            message = self._composer.rehearsed(descriptor, attributes, call.identity)
        except (DecodeError, MQError):
            return None
        packet = SentTemplate.learn(message.packet)
        envelope = message.envelope
        kind = Kind(envelope.recoverable, message.position_flags(envelope))
        if packet is None or envelope.transactional or message.sender:
            return None
        administration = attributes.administration_queue_format_name
        return self._with_response(kind, packet, administration, request, codec)

    def _attributes(
        self, request: rpc_ACSendMessageExRequest, descriptor: OpenQueueDescriptor
    ) -> MessageAttributes | None:
        """The attributes in a request; None if the packet depends on more than the request."""
        identifier = request.ptb.old.pUow
        if identifier is not None and any(identifier.rgb):
            return None
        own, now = self._queue_manager.identifier, self._clock.now() // 1000
        attributes = message_attributes(request.ptb, descriptor, own, now, self._arrivals.decrypt)
        protected = attributes.privacy_level or attributes.symmetric_key
        signed = attributes.signature or attributes.sender_certificate
        return None if protected or signed else attributes

    def _with_response(
        self,
        kind: Kind,
        packet: SentTemplate,
        administration: FormatName | None,
        request: rpc_ACSendMessageExRequest,
        codec: OperationCodec,
    ) -> SendTemplate | None:
        identifier = None
        if request.pMessageID is not None:
            identifier = OBJECTID(Lineage=self._queue_manager.identifier, Uniquifier=_MARK)
        response = rpc_ACSendMessageExResponse(pMessageID=identifier, result=0)
        before, *behind = codec.response.encode(response).split(_MARK.to_bytes(4, "little"))
        if len(behind) != (identifier is not None):
            return None
        return SendTemplate(kind, packet, administration, before, *behind)


class SendRecogniser:
    """Recognises the requests of rpc_ACSendMessageEx in one syntax (`rpc.interface_registry`)."""

    def __init__(
        self,
        templates: SendTemplates,
        turn: Turn,
        handles: ClientHandles,
        operation: Operation,
        syntax: TransferSyntax,
    ) -> None:
        self._templates, self._turn, self._handles = templates, turn, handles
        self._codec = operation.codec(syntax)
        self._recognition = Recognition(turn, operation, syntax, HOLES)

    def take(self, call: Call, path: CarefulPath) -> bool:
        """Put a repeated message into the turn, if nothing has changed."""
        found = self._recognition.of(call)
        if found is None:
            return False
        shape, holes = found
        try:
            self._handles.admit(call)
        except MQError:
            return False
        handle = self._recognition.handle(call, holes[0])
        return handle is not None and self._send(call, path, handle, shape, holes)

    def _send(
        self,
        call: Call,
        path: CarefulPath,
        handle: ContextHandle,
        shape: StubShape,
        holes: tuple[Any, ...],
    ) -> bool:
        record, association = handle.value, call.association
        if record.__class__ is not LocalQueueContextHandle:
            return False
        descriptor = record.open_queue_descriptor_reference
        queue, values = _destination(descriptor), values_of(holes)
        if queue is None or values is None:
            return False
        lane = self._lane(call)
        opened = None if lane is None else lane.opened(holes[0])
        if opened is None or opened.queue is not queue:
            opened = OpenForSending(descriptor, queue)
        template = self._templates.find(call, opened, shape, holes[1:3], self._codec)
        if template is None or not handle.join(self._turn.drain):
            return False
        if lane is None:
            lane = SendLane(call, path, self._recognition, self._handles)
            association.shortcuts[call.opnum] = lane
        lane.remember(holes[0], handle, opened)
        lane.put(association, call.call_id, call.stub_data, handle, queue, template, values)
        return True

    def _lane(self, call: Call) -> SendLane | None:
        """The lane for the next sends of a connection; None if such calls have no lane."""
        found = call.association.shortcuts.get(call.opnum)
        if isinstance(found, SendLane) and found.fits(call.context, call.security):
            return found
        return None


def _destination(descriptor: OpenQueueDescriptor) -> Queue | None:
    """The one local queue that is open for sending; None for the careful path."""
    queue = descriptor.queue_reference
    usual = (
        descriptor.access_type == QueueAccessType.SEND_ACCESS
        and not descriptor.multiple
        and not descriptor.application_deadletter_queue
        and descriptor.format_name.type is not FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC
    )
    return queue if usual and not isinstance(queue, OutgoingQueue) else None
