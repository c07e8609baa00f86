"""qmcomm2: sending and receiving messages of dependent clients ([MS-MQMP] 3.1.5)."""

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from rpcqm.adm.descriptor import Cursor, OpenQueueDescriptor
from rpcqm.adm.message import Message
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.transaction import Transaction
from rpcqm.base.clock import Clock
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.packet.fields import MESSAGE_ID
from rpcqm.codec.types.mqmq import OBJECTID, XACTUOW
from rpcqm.codec.types.mqvalues import (
    MQ_ACTION_PEEK_CURRENT,
    MQ_ACTION_PEEK_NEXT,
    MQ_ACTION_RECEIVE,
    QueueAccessType,
)
from rpcqm.codec.types.qmcomm import CACTransferBufferV1_Receive
from rpcqm.codec.types.qmcomm2 import (
    QMSendMessageInternalExRequest,
    rpc_ACCreateCursorExRequest,
    rpc_ACCreateCursorExResponse,
    rpc_ACReceiveMessageExRequest,
    rpc_ACReceiveMessageExResponse,
    rpc_ACSendMessageExRequest,
    rpc_ACSendMessageExResponse,
)
from rpcqm.interfaces._authentication import checks
from rpcqm.interfaces._client_handles import ClientHandles
from rpcqm.interfaces._open_queues import cursor_of
from rpcqm.interfaces._received_buffer import fill
from rpcqm.interfaces._remote_proxy import RemoteQueueProxyHandle, proxy_of, read_through
from rpcqm.interfaces._sent_buffer import message_attributes
from rpcqm.qm.arrivals import Arrivals
from rpcqm.qm.composing import Composer
from rpcqm.qm.messages import MessageEvents
from rpcqm.qm.readers import WaitingReaders
from rpcqm.qm.remote_reading import RemotelyRead
from rpcqm.qm.transactions import Transactions
from rpcqm.rpc.call import Call
from rpcqm.rpc.interface_registry import InterfacePolicy

POLICY = InterfacePolicy(check_of=checks())
"""As qmcomm, whose handles it shares."""

_ACTIONS = frozenset({MQ_ACTION_RECEIVE, MQ_ACTION_PEEK_CURRENT, MQ_ACTION_PEEK_NEXT})


@dataclass(eq=False, repr=False)
class QmComm2:
    """The handlers of the interface; `handles` are those of qmcomm."""

    _queue_manager: QueueManager
    _clock: Clock
    _readers: WaitingReaders
    _composer: Composer
    _transactions: Transactions
    _messages: MessageEvents
    _arrivals: Arrivals
    handles: ClientHandles

    def __post_init__(self) -> None:
        self.admission = self.handles.admission

    def QMSendMessageInternalEx(
        self, call: Call, request: QMSendMessageInternalExRequest
    ) -> HResult:
        """Obsolete: refused; [MS-MQMP] 3.1.5.1 QMSendMessageInternalEx (Opnum 0)."""
        raise MQError(HResult.MQ_ERROR_ILLEGAL_OPERATION)

    # Sending

    def rpc_ACSendMessageEx(
        self, call: Call, request: rpc_ACSendMessageExRequest
    ) -> rpc_ACSendMessageExResponse | Completion[rpc_ACSendMessageExResponse]:
        """Send a message; it is answered when the message is as durable as it asks for.

        Source: [MS-MQMP] 3.1.5.2 rpc_ACSendMessageEx (Opnum 1).
        """
        self.handles.admit(call)
        if proxy_of(request.hQueue) is not None:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "opened for reading")
        descriptor: OpenQueueDescriptor = request.hQueue.value.open_queue_descriptor_reference
        identifier = self._queue_manager.identifier
        now, decrypt = self._clock.now() // 1000, self._arrivals.decrypt
        attributes = message_attributes(request.ptb, descriptor, identifier, now, decrypt)
        attributes.application_deadletter_queue = descriptor.application_deadletter_queue
        transaction = self._find_transaction(call, request.ptb.old.pUow)
        message = self._composer.compose(descriptor, attributes, call.identity, transaction)
        sent = self._messages.enqueue_message_to_an_open_queue(descriptor, message, transaction)
        message_id = None
        if request.pMessageID is not None:
            ordinal = int.from_bytes(message.packet[MESSAGE_ID], "little")
            message_id = OBJECTID(Lineage=identifier, Uniquifier=ordinal)
        response = rpc_ACSendMessageExResponse(pMessageID=message_id, result=0)
        return _answer_when(sent, response)

    def _find_transaction(self, call: Call, identifier: XACTUOW | None) -> Transaction | None:
        if identifier is None or not any(identifier.rgb):
            return None
        return self._transactions.find(UUID(bytes_le=identifier.rgb), call.identity.sid)

    # Receiving

    async def rpc_ACReceiveMessageEx(
        self, call: Call, request: rpc_ACReceiveMessageExRequest
    ) -> rpc_ACReceiveMessageExResponse:
        """Peek at a message, or receive one unless a buffer is too small for it (G43).

        Source: [MS-MQMP] 3.1.5.3 rpc_ACReceiveMessageEx (Opnum 2).
        """
        self.handles.admit(call)
        receive = request.ptb.old.u.value
        if not isinstance(receive, CACTransferBufferV1_Receive) or receive.Action not in _ACTIONS:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER)
        transaction = self._find_transaction(call, request.ptb.old.pUow)
        proxy = self.handles.proxies.find(call, request.hQMContext)
        if proxy is not None:
            if transaction is not None:
                raise MQError(HResult.MQ_ERROR_TRANSACTION_USAGE, "not from elsewhere")
            status = await self._read_elsewhere(call, request, receive, proxy)
            return rpc_ACReceiveMessageExResponse(ptb=request.ptb, result=status)
        descriptor = self.handles.find_local(call, request.hQMContext)
        if descriptor.access_type == QueueAccessType.SEND_ACCESS:
            raise MQError(HResult.MQ_ERROR_ACCESS_DENIED, "opened for sending")
        cursor = cursor_of(descriptor, receive.Cursor) if receive.Cursor else None
        if receive.Action != MQ_ACTION_RECEIVE:
            message = await self._peek(call, receive, descriptor, cursor)
            status = fill(request.ptb, message, self._clock.now() // 1000)
        else:
            status = await self._receive(call, request, receive, descriptor, cursor, transaction)
        return rpc_ACReceiveMessageExResponse(ptb=request.ptb, result=status)

    async def _read_elsewhere(
        self,
        call: Call,
        request: rpc_ACReceiveMessageExRequest,
        receive: CACTransferBufferV1_Receive,
        proxy: RemoteQueueProxyHandle,
    ) -> HResult:
        """Read at another queue manager for the client."""

        def translate(found: RemotelyRead) -> HResult:
            message = Message(found.packet)
            message.arrival_time = found.arrival_time * 1000
            return fill(request.ptb, message, self._clock.now() // 1000)

        return await read_through(
            call, proxy, receive.Action, receive.RequestTimeout, receive.Cursor, translate
        )

    async def _peek(
        self,
        call: Call,
        receive: CACTransferBufferV1_Receive,
        descriptor: OpenQueueDescriptor,
        cursor: Cursor | None,
    ) -> Message:
        timeout, tag = receive.RequestTimeout, (descriptor.handle, call)
        if receive.Action == MQ_ACTION_PEEK_CURRENT:
            peeking = self._messages.peek_message(descriptor, timeout, cursor, tag)
        elif cursor is None:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_CURSOR_ACTION, "no cursor")
        else:
            peeking = self._messages.peek_next_message(descriptor, cursor, timeout, tag)
        return await self._waited_for(call, descriptor, peeking)

    async def _receive(
        self,
        call: Call,
        request: rpc_ACReceiveMessageExRequest,
        receive: CACTransferBufferV1_Receive,
        descriptor: OpenQueueDescriptor,
        cursor: Cursor | None,
        transaction: Transaction | None,
    ) -> HResult:
        """Lock a message, look whether it fits, and only then remove it."""
        before = None if cursor is None else (cursor.key, cursor.cursor_state)
        beginning = self._messages.dequeue_message_begin(
            descriptor, receive.RequestTimeout, cursor, (descriptor.handle, call), transaction
        )
        message = await self._waited_for(call, descriptor, beginning)
        status: HResult | None = None
        try:
            status = fill(request.ptb, message, self._clock.now() // 1000)
        finally:
            if status is not HResult.MQ_OK:
                if cursor is not None and before is not None:
                    cursor.key, cursor.cursor_state = before
                await self._messages.end_read(descriptor, message, False, transaction)
        if status is HResult.MQ_OK:
            await self._messages.end_read(descriptor, message, True, transaction)
        return status

    async def _waited_for(
        self, call: Call, descriptor: OpenQueueDescriptor, reading: Completion[Message]
    ) -> Message:
        """The message, once it is there; the wait ends if the client disconnects."""
        if not reading.done:
            tag = (descriptor.handle, call)
            call.on_abandoned(partial(self._readers.cancel_wait, descriptor, tag))
        return await reading

    # Cursors

    async def rpc_ACCreateCursorEx(
        self, call: Call, request: rpc_ACCreateCursorExRequest
    ) -> rpc_ACCreateCursorExResponse:
        """[MS-MQMP] 3.1.5.4 rpc_ACCreateCursorEx (Opnum 3)."""
        self.handles.admit(call)
        proxy = proxy_of(request.hQueue)
        if proxy is not None:
            request.pcc.hCursor = await proxy.create_cursor()
        else:
            descriptor = request.hQueue.value.open_queue_descriptor_reference
            request.pcc.hCursor = self.handles.create_cursor(descriptor)
        return rpc_ACCreateCursorExResponse(pcc=request.pcc, result=0)


def _answer_when(
    sent: Completion[None], response: rpc_ACSendMessageExResponse
) -> rpc_ACSendMessageExResponse | Completion[rpc_ACSendMessageExResponse]:
    """The response, once the message is sent; raises MQError if it could not be."""
    if sent.done:
        sent.result()
        return response
    return sent.giving(response)
