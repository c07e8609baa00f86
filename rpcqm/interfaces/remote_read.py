"""RemoteRead: reading, purging and moving messages over RPC ([MS-MQRR] 3.1)."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from rpcqm.adm.descriptor import Cursor, OpenQueueDescriptor
from rpcqm.adm.enums import OperationType
from rpcqm.adm.message import Message, MessagePosition
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.adm.transaction import Transaction, TransactionalOperation
from rpcqm.base.clock import Deadlines, Timers
from rpcqm.base.completion import Completion, start
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.packet.enums import MessageClass
from rpcqm.codec.types.mqmq import XACTUOW
from rpcqm.codec.types.mqvalues import RR_ACK, QueueAccessType, QueueShareMode
from rpcqm.codec.types.remoteread import (
    R_CancelReceiveRequest,
    R_CloseCursorRequest,
    R_CloseQueueRequest,
    R_CloseQueueResponse,
    R_CreateCursorRequest,
    R_CreateCursorResponse,
    R_EndReceiveRequest,
    R_EndTransactionalReceiveRequest,
    R_GetServerPortRequest,
    R_GetServerPortResponse,
    R_MoveMessageRequest,
    R_OpenQueueForMoveRequest,
    R_OpenQueueForMoveResponse,
    R_OpenQueueRequest,
    R_OpenQueueResponse,
    R_PurgeQueueRequest,
    R_QMEnlistRemoteTransactionRequest,
    R_SetUserAcknowledgementClassRequest,
    R_StartReceiveRequest,
    R_StartReceiveResponse,
    R_StartTransactionalReceiveRequest,
    R_StartTransactionalReceiveResponse,
)
from rpcqm.interfaces._authentication import (
    CallAdmission,
    RemoteReadSecurity,
    checks,
    level_of_queue,
    require_level,
)
from rpcqm.interfaces._message_packet import MessagePackets
from rpcqm.interfaces._open_queues import cursor_of, held_by, present, queue_of
from rpcqm.interfaces._pending import PendingRequestEntry
from rpcqm.interfaces._reading_names import readable_name, reads_outgoing
from rpcqm.interfaces._receive_actions import check_parameters
from rpcqm.interfaces._starting_reads import OpenedQueue, StartingReads, StartResponse
from rpcqm.operations.audit import RPC, note_work, ordered_from, refusals
from rpcqm.operations.queue_changes import QueueOrders
from rpcqm.qm.access import RECEIVING, AccessControl
from rpcqm.qm.messages import MessageEvents
from rpcqm.qm.opening import Opening
from rpcqm.qm.queues import QueueEvents
from rpcqm.qm.readers import WaitingReaders
from rpcqm.qm.receive_actions import PEEKS
from rpcqm.qm.registry import QueueRegistry
from rpcqm.qm.transactions import Transactions
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.context_handle import NULL_HANDLE, ContextHandle
from rpcqm.rpc.interface_registry import InterfacePolicy

__all__ = ["POLICY", "CallAdmission", "RemoteRead", "RemoteReadSecurity"]

POLICY = InterfacePolicy(check_of=checks(unchecked={"R_GetServerPort"}, reading=None))
"""Handles are strict as the IDL says; levels are those of each queue (`RemoteReadSecurity`)."""

PENDING_REQUEST_CLEANUP = 5 * 60 * 1000
"""Milliseconds after which an abandoned read is given back ([MS-MQRR] 3.1.2.2, <11>)."""

_NO_CURSOR = NtStatus.STATUS_INVALID_HANDLE
_HANDLE_TYPE = "QUEUE_CONTEXT_HANDLE_SERIALIZE"


_MOVING = "move messages"
_StartRequest = R_StartReceiveRequest | R_StartTransactionalReceiveRequest
_StartOutcome = StartResponse | Completion[StartResponse]
_EndRequest = R_EndReceiveRequest | R_EndTransactionalReceiveRequest
_OpenRequest = R_OpenQueueRequest | R_OpenQueueForMoveRequest


@dataclass(eq=False, repr=False)
class RemoteRead:
    """The handlers of the interface.

    `admission` holds the switches, which apply to later openings; `reads` are those that begin;
    `server_port` gives the TCP port of the interface, 0 without a listener;
    `pending_request_cleanup` is in milliseconds.
    """

    _queue_manager: QueueManager
    _timers: Timers
    _registry: QueueRegistry
    _access: AccessControl
    _readers: WaitingReaders
    _queues: QueueEvents
    _opening: Opening
    _transactions: Transactions
    _messages: MessageEvents
    _packets: MessagePackets
    admission: CallAdmission
    _server_port: Callable[[], int]
    _pending_request_cleanup: int = PENDING_REQUEST_CLEANUP

    def __post_init__(self) -> None:
        self._orders = QueueOrders(self._queues)
        self._move_targets: dict[int, OpenedQueue] = {}
        self.reads = StartingReads(
            self._messages,
            self._packets,
            Deadlines(self._timers, self._pending_request_cleanup),
        )

    def R_GetServerPort(
        self, call: Call, request: R_GetServerPortRequest
    ) -> R_GetServerPortResponse:
        """The TCP port of the interface; [MS-MQRR] 3.1.4.1 R_GetServerPort (Opnum 0)."""
        return R_GetServerPortResponse(result=self._server_port())

    # Opening and closing

    def R_OpenQueue(self, call: Call, request: R_OpenQueueRequest) -> R_OpenQueueResponse:
        """Open a queue for receiving or peeking; failures are thrown (G40).

        Administrators may read messages that wait for remote queues (G187). Source: [MS-MQRR]
        3.1.4.2 R_OpenQueue (Opnum 2).
        """
        receiving = request.dwAccess == QueueAccessType.RECEIVE_ACCESS
        access = QueueAccessType.RECEIVE_ACCESS if receiving else QueueAccessType.PEEK_ACCESS
        opened = self._open(call, request, access)
        return R_OpenQueueResponse(pphContext=self._handle(call, request, opened))

    def R_OpenQueueForMove(
        self, call: Call, request: R_OpenQueueForMoveRequest
    ) -> R_OpenQueueForMoveResponse:
        """Open the target of moves; failures are thrown (G40).

        Source: [MS-MQRR] 3.1.4.11 R_OpenQueueForMove (Opnum 11).
        """
        if request.dwAccess != QueueAccessType.MOVE_ACCESS:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"access {request.dwAccess:#x}")
        opened = self._open(call, request, QueueAccessType.MOVE_ACCESS)
        handle = self._handle(call, request, opened)
        while opened.move_context == 0 or opened.move_context in self._move_targets:
            opened.move_context = secrets.randbits(64)
        self._move_targets[opened.move_context] = opened
        return R_OpenQueueForMoveResponse(pMoveContext=opened.move_context, pphContext=handle)

    def _open(self, call: Call, request: _OpenRequest, access: QueueAccessType) -> OpenedQueue:
        """Open a queue; a caller with too little protection learns nothing of the queue."""
        if request.dwShareMode not in (QueueShareMode.DENY_NONE, QueueShareMode.DENY_RECEIVE):
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"sharing {request.dwShareMode:#x}")
        name = readable_name(request.pQueueFormat)
        outgoing = reads_outgoing(self._opening, name, request.dwAccess, call.identity)
        require_level(call, self._minimum_level(request, name))
        if outgoing:
            access = QueueAccessType(request.dwAccess)
        descriptor = self._opening.open_queue(
            name, access, QueueShareMode(request.dwShareMode), identity=call.identity
        )
        self._readers.charge_cursors(descriptor, call.association_group.cursors)
        return OpenedQueue(call, descriptor)

    def _handle(self, call: Call, request: _OpenRequest, opened: OpenedQueue) -> bytes:
        """A context handle that records the level which its later calls need."""
        minimum = self._minimum_level(request, opened.descriptor.format_name)
        try:
            handle = call.open_context_handle(_HANDLE_TYPE, opened, self._run_down, minimum)
        except BaseException:
            self._opening.close_queue(opened.descriptor)
            raise
        held_by(call, opened.descriptor, handle)
        return handle.wire

    def _minimum_level(self, request: _OpenRequest, name: FormatName) -> AuthenticationLevel:
        security = self.admission.security
        return level_of_queue(
            self._registry, self._access, security, name, bool(request.fWorkgroup)
        )

    def R_CloseQueue(self, call: Call, request: R_CloseQueueRequest) -> R_CloseQueueResponse:
        """Close a queue; pending reads end first (G37, G53).

        Source: [MS-MQRR] 3.1.4.3 R_CloseQueue (Opnum 3).
        """
        handle = present(request.pphContext)
        self._close(handle.value)
        call.close_context_handle(handle)
        return R_CloseQueueResponse(pphContext=NULL_HANDLE, result=0)

    def _run_down(self, handle: ContextHandle) -> None:
        """Close the queue of a handle that was lost ([MS-MQRR] 3.1.6.1, 3.1.6.2)."""
        self._close(handle.value)

    def _close(self, opened: OpenedQueue) -> None:
        """End the reads that wait, give back locked messages, close the cursors and the queue.

        In that order: a message that is given back would wake a waiting read (G53).
        """
        self._move_targets.pop(opened.move_context, None)
        cancelled = HResult.MQ_ERROR_OPERATION_CANCELLED
        self._readers.end_waits_of(opened.descriptor, cancelled)
        for entry in opened.pending:
            if entry.lookup_identifier:
                self.reads.give_back(opened, entry)
        self._opening.close_queue(opened.descriptor)

    # Cursors and purging

    def R_CreateCursor(self, call: Call, request: R_CreateCursorRequest) -> R_CreateCursorResponse:
        """[MS-MQRR] 3.1.4.4 R_CreateCursor (Opnum 4)."""
        descriptor = _descriptor(request.phContext)
        cursor = self._readers.open_cursor(descriptor)
        if cursor is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_DELETED)
        return R_CreateCursorResponse(phCursor=cursor.handle, result=0)

    def R_CloseCursor(self, call: Call, request: R_CloseCursorRequest) -> HResult:
        """[MS-MQRR] 3.1.4.5 R_CloseCursor (Opnum 5)."""
        self._readers.close_cursor(cursor_of(_descriptor(request.phContext), request.hCursor))
        return HResult.MQ_OK

    async def R_PurgeQueue(self, call: Call, request: R_PurgeQueueRequest) -> HResult:
        """[MS-MQRR] 3.1.4.6 R_PurgeQueue (Opnum 6)."""
        descriptor = _descriptor(request.phContext)
        queue = queue_of(descriptor)
        access, denied = descriptor.access_type, NtStatus.STATUS_ACCESS_DENIED
        with ordered_from(call.peer, RPC):
            purged = self._orders.purge(call.identity, queue, access, denied)
        await purged
        return HResult.MQ_OK

    # Beginning to read

    def R_StartReceive(self, call: Call, request: R_StartReceiveRequest) -> _StartOutcome:
        """Peek at a message, or lock one until R_EndReceive.

        Source: [MS-MQRR] 3.1.4.7 R_StartReceive (Opnum 7), with G32, G33, G52.
        """
        check_parameters(request.ulAction, request.LookupId, request.hCursor, request.ulTimeout)
        opened: OpenedQueue = request.phContext.value
        cursor = (
            cursor_of(opened.descriptor, request.hCursor, _NO_CURSOR) if request.hCursor else None
        )
        if request.ulAction in PEEKS:
            return self._peek(call, request, opened, cursor)
        return self._receive(call, request, opened, cursor, None)

    def R_StartTransactionalReceive(
        self, call: Call, request: R_StartTransactionalReceiveRequest
    ) -> _StartOutcome:
        """Receive in an enlisted transaction; without one it is R_StartReceive (G39).

        Source: [MS-MQRR] 3.1.4.13 R_StartTransactionalReceive (Opnum 13).
        """
        check_parameters(request.ulAction, request.LookupId, request.hCursor, request.ulTimeout)
        opened: OpenedQueue = request.phContext.value
        cursor = (
            cursor_of(opened.descriptor, request.hCursor, _NO_CURSOR) if request.hCursor else None
        )
        peek = request.ulAction in PEEKS
        transaction = None
        if any(request.pTransactionId.rgb):
            if peek or not queue_of(opened.descriptor).main.transactional:
                raise MQError(HResult.MQ_ERROR_TRANSACTION_USAGE)
            transaction = self._find_transaction(call, request.pTransactionId)
        if peek:
            return self._peek(call, request, opened, cursor)
        return self._receive(call, request, opened, cursor, transaction)

    def _find_transaction(self, call: Call, identifier: XACTUOW) -> Transaction:
        return self._transactions.find(UUID(bytes_le=identifier.rgb), call.identity.sid)

    def _receive(
        self,
        call: Call,
        request: _StartRequest,
        opened: OpenedQueue,
        cursor: Cursor | None,
        transaction: Transaction | None,
    ) -> _StartOutcome:
        entry, completion = self.reads.begin_receive(
            opened,
            request.ulAction,
            request.LookupId,
            request.ulTimeout,
            request.dwRequestId,
            cursor,
            transaction,
        )
        if completion.done:
            return self._received(call, request, opened, entry, completion.result())
        return start(self._wait_to_receive(call, request, opened, entry, completion))

    async def _wait_to_receive(
        self,
        call: Call,
        request: _StartRequest,
        opened: OpenedQueue,
        entry: PendingRequestEntry,
        completion: Completion[Message],
    ) -> StartResponse:
        tag = (opened.descriptor.handle, entry.request_id)
        call.on_abandoned(partial(self._readers.cancel_wait, opened.descriptor, tag))
        try:
            message = await completion
        except BaseException:
            opened.pending.remove(entry)
            raise
        return self._received(call, request, opened, entry, message)

    def _received(
        self,
        call: Call,
        request: _StartRequest,
        opened: OpenedQueue,
        entry: PendingRequestEntry,
        message: Message,
    ) -> StartResponse:
        """Answer with the locked message; give it back if answering fails (G52)."""
        self.reads.hold(call, opened, entry, message.lookup_identifier)
        try:
            return self._response(request, message)
        except BaseException:
            self.reads.give_back(opened, entry, delivered=False)
            raise

    def _peek(
        self, call: Call, request: _StartRequest, opened: OpenedQueue, cursor: Cursor | None
    ) -> _StartOutcome:
        completion = self.reads.find_to_peek(
            opened,
            request.ulAction,
            request.LookupId,
            request.ulTimeout,
            request.dwRequestId,
            cursor,
        )
        if completion.done:
            return self._response(request, completion.result())
        return start(self._wait_to_peek(call, request, opened, completion))

    async def _wait_to_peek(
        self,
        call: Call,
        request: _StartRequest,
        opened: OpenedQueue,
        completion: Completion[Message],
    ) -> StartResponse:
        request_id = request.dwRequestId
        tag = (opened.descriptor.handle, request_id)
        opened.pending.begin_peek(request_id)
        call.on_abandoned(partial(self._readers.cancel_wait, opened.descriptor, tag))
        try:
            message = await completion
        finally:
            opened.pending.end_peek(request_id)
        return self._response(request, message)

    def _response(self, request: _StartRequest, message: Message) -> StartResponse:
        kind = (
            R_StartReceiveResponse
            if request.__class__ is R_StartReceiveRequest
            else R_StartTransactionalReceiveResponse
        )
        return self.reads.response(
            kind, message, request.dwMaxBodySize, request.dwMaxCompoundMessageSize
        )

    # Ending to read

    def R_CancelReceive(self, call: Call, request: R_CancelReceiveRequest) -> HResult:
        """End a read that waits; it gets MQ_ERROR_OPERATION_CANCELLED.

        Source: [MS-MQRR] 3.1.4.8 R_CancelReceive (Opnum 8).
        """
        descriptor = _descriptor(request.phContext)
        tag = (descriptor.handle, request.dwRequestId)
        queue = queue_of(descriptor)
        self._readers.cancel_waiting_message_read_request(queue, tag)
        return HResult.MQ_OK

    def R_EndReceive(self, call: Call, request: R_EndReceiveRequest) -> Completion[None]:
        """Remove a message that was received, or give it back.

        Source: [MS-MQRR] 3.1.4.9 R_EndReceive (Opnum 9).
        """
        return self._end(request, False)

    def R_EndTransactionalReceive(
        self, call: Call, request: R_EndTransactionalReceiveRequest
    ) -> Completion[None]:
        """Leave a message to its transaction, or take it out and give it back (G38).

        Source: [MS-MQRR] 3.1.4.15 R_EndTransactionalReceive (Opnum 15).
        """
        return self._end(request, True)

    def _end(self, request: _EndRequest, transactional: bool) -> Completion[None]:
        """End a read; one that still waits keeps its entry, and has no message yet (G52)."""
        opened: OpenedQueue = request.phContext.value
        entry = opened.pending.find(request.dwRequestId)
        if (entry.transaction is not None) is not transactional:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "begun by the other method")
        if not entry.lookup_identifier:
            raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND, "the read is still waiting")
        opened.pending.remove(entry)
        position = MessagePosition(queue_of(opened.descriptor), entry.lookup_identifier)
        return self._messages.dequeue_message_end(
            opened.descriptor, position, request.dwAck == RR_ACK, entry.transaction, True
        )

    # Moving

    def R_MoveMessage(self, call: Call, request: R_MoveMessageRequest) -> Completion[None]:
        """Move a message to a related queue (G36, G60), also one that the caller holds (G179).

        Source: [MS-MQRR] 3.1.4.10 R_MoveMessage (Opnum 10).
        """
        opened: OpenedQueue = request.phContextFrom.value
        queue, key = queue_of(opened.descriptor), str(request.LookupId)
        with ordered_from(call.peer, RPC):
            with refusals(call.identity, _MOVING, queue.full_name):
                _require_receive_access(opened.descriptor)
            target = self._find_move_target(call, request.ullContextTo)
            moved = self._move(call, request, opened, target)
            to = target.pathname
            note_work(call.identity, _MOVING, queue.full_name, to=to, lookup_id=key)
        return moved

    def _move(
        self, call: Call, request: R_MoveMessageRequest, opened: OpenedQueue, target: Queue
    ) -> Completion[None]:
        source = opened.descriptor
        position = MessagePosition(queue_of(source), request.LookupId)
        if not any(request.pTransactionId.rgb):
            moved = self._messages.move_message(position, target, None, source)
            opened.pending.forget_message(request.LookupId)
            return moved
        identifier = UUID(bytes_le=request.pTransactionId.rgb)
        holder = self._queue_manager.transaction_collection.get(identifier)
        if holder is not None and holder.owner != call.identity.sid:
            holder = None  # it is unknown to this caller (G87)
        self._messages.check_move(position, target, True, holder)
        transaction = self._find_transaction(call, request.pTransactionId)
        moved = self._messages.move_message(position, target, transaction)
        opened.pending.forget_message(request.LookupId)
        return moved

    def _find_move_target(self, call: Call, context: int) -> Queue:
        """The queue of a move context, which is its group's and its opener's only (G53)."""
        opened = self._move_targets.get(context)
        if (
            opened is None
            or opened.association_group is not call.association_group
            or opened.owner != call.identity.sid
            or opened.descriptor.queue_reference is None
        ):
            raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, "unknown move context")
        return opened.descriptor.queue_reference

    # Transactions

    def R_QMEnlistRemoteTransaction(
        self, call: Call, request: R_QMEnlistRemoteTransactionRequest
    ) -> HResult:
        """Join a transaction of this queue manager; there is no coordinator for others (G65).

        Source: [MS-MQRR] 3.1.4.12 R_QMEnlistRemoteTransaction (Opnum 12).
        """
        identifier = UUID(bytes_le=request.pTransactionId.rgb)
        if not self._transactions.has(identifier, call.identity.sid):
            raise MQError(HResult.MQ_ERROR_TRANSACTION_ENLIST, "no distributed transactions")
        return HResult.MQ_OK

    def R_SetUserAcknowledgementClass(
        self, call: Call, request: R_SetUserAcknowledgementClassRequest
    ) -> HResult:
        """Mark a message that a transaction has received as rejected.

        Source: [MS-MQRR] 3.1.4.14 R_SetUserAcknowledgementClass (Opnum 14).
        """
        descriptor = _descriptor(request.phContext)
        queue = queue_of(descriptor)
        _require_receive_access(descriptor)
        if request.usClass not in (0, MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED):
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"class {request.usClass:#x}")
        if self._messages.position(queue, request.LookupId) is None:
            raise MQError(HResult.MQ_ERROR_MESSAGE_NOT_FOUND)
        operation = self._find_operation(call, queue, request.LookupId)
        if request.usClass:
            operation.dequeue_reason = MessageClass.MQMSG_CLASS_NACK_RECEIVE_REJECTED
        return HResult.MQ_OK

    def _find_operation(
        self, call: Call, queue: Queue, lookup_identifier: int
    ) -> TransactionalOperation:
        for transaction in self._queue_manager.transaction_collection.values():
            if transaction.owner != call.identity.sid:
                continue
            for operation in transaction.transactional_operation_collection:
                if (
                    operation.operation_type is OperationType.DEQUEUE
                    and operation.queue is queue
                    and operation.lookup_identifier == lookup_identifier
                ):
                    return operation
        raise MQError(HResult.MQ_ERROR_TRANSACTION_USAGE, "in no transaction")


def _descriptor(handle: ContextHandle) -> OpenQueueDescriptor:
    opened: OpenedQueue = handle.value
    return opened.descriptor


def _require_receive_access(descriptor: OpenQueueDescriptor) -> None:
    if descriptor.access_type not in RECEIVING:
        raise MQError(NtStatus.STATUS_ACCESS_DENIED, "not opened for receiving")
