"""qm2qm: reading by another queue manager, for its clients ([MS-MQQP] 3.1).

Queues are opened through qmcomm, whose 32-bit numbers a reader then takes over (G27). A number is
only good for the identity that has taken it over (G43).
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from uuid import UUID

from rpcqm.adm.descriptor import Cursor
from rpcqm.adm.message import Message, MessagePosition
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.codec.packet.binary_form import binary_form
from rpcqm.codec.packet.types import SEQUENTIAL_MASK
from rpcqm.codec.types.mqvalues import IP_HANDSHAKE, IP_READ, RR_ACK
from rpcqm.codec.types.qm2qm import (
    REMOTEREADDESC,
    REMOTEREADDESC2,
    RemoteQMCancelReceiveRequest,
    RemoteQMCloseCursorRequest,
    RemoteQMCloseQueueRequest,
    RemoteQMCloseQueueResponse,
    RemoteQMEndReceiveRequest,
    RemoteQMEndReceiveResponse,
    RemoteQMGetQMQMServerPortRequest,
    RemoteQMGetQMQMServerPortResponse,
    RemoteQmGetVersionRequest,
    RemoteQmGetVersionResponse,
    RemoteQMOpenQueueRequest,
    RemoteQMOpenQueueResponse,
    RemoteQMPurgeQueueRequest,
    RemoteQMStartReceive2Request,
    RemoteQMStartReceive2Response,
    RemoteQMStartReceiveByLookupIdRequest,
    RemoteQMStartReceiveByLookupIdResponse,
    RemoteQMStartReceiveRequest,
    RemoteQMStartReceiveResponse,
)
from rpcqm.interfaces._authentication import checks, require_level
from rpcqm.interfaces._client_handles import ClientHandles, RemoteQueueOpenContextHandle
from rpcqm.interfaces._open_queues import cursor_of, held_by, present, queue_of
from rpcqm.interfaces._receive_actions import PEEK_NEXT, check_lookup
from rpcqm.operations.audit import RPC, ordered_from
from rpcqm.operations.queue_changes import QueueOrders
from rpcqm.qm.messages import MessageEvents
from rpcqm.qm.queues import QueueEvents
from rpcqm.qm.readers import WaitingReaders
from rpcqm.qm.receive_actions import PEEKS, SEEKS
from rpcqm.rpc.call import Call
from rpcqm.rpc.context_handle import NULL_HANDLE, ContextHandle
from rpcqm.rpc.interface_registry import InterfacePolicy

POLICY = InterfacePolicy(
    throws=frozenset({"RemoteQMPurgeQueue"}),
    check_of=checks(unchecked={"RemoteQMGetQMQMServerPort", "RemoteQmGetVersion"}, reading=None),
)
"""Readers follow the switches of RemoteRead, and need the level at which their queue was opened
(G85)."""

VERSION = (6, 1, 7601)
"""Major, minor and build number of a server that has every method ([MS-MQQP] <24>)."""

MAXIMUM_READS = 65_536
"""Reads of one open queue by qm2qm that have begun and not ended.

This bounds the memory of one client.

Bound `rpc.pending_reads_of_qm2qm` [reads]: the read is refused with
MQ_ERROR_INSUFFICIENT_RESOURCES.
"""

_RETURNED_BY_SERVER = 1


class OpenQueueEntry:
    """The object behind a PCTX_RRSESSION_HANDLE_TYPE ([MS-MQQP] 3.1.1.4).

    `reads` are the remote reads of the queue that have not ended, by request id.
    """

    __slots__ = ("client_id", "descriptor", "minimum_level", "owner", "reads")

    def __init__(self, opened: RemoteQueueOpenContextHandle, client_id: UUID, owner: str) -> None:
        self.descriptor = opened.open_queue_descriptor_reference
        self.minimum_level = opened.minimum_level
        self.client_id = client_id
        self.owner = owner
        self.reads: dict[int, RemoteReadEntry] = {}


class RemoteReadEntry:
    """A read that has begun: the object behind a PCTX_REMOTEREAD_HANDLE_TYPE.

    It stays among the reads of its queue until the message is acknowledged (G64);
    `lookup_identifier` is 0 until there is one. Source: [MS-MQQP] 3.1.1.2.
    """

    __slots__ = ("action", "lookup_identifier", "open_queue_entry", "request_id", "timeout")

    def __init__(self, open_queue_entry: OpenQueueEntry, read: REMOTEREADDESC) -> None:
        self.open_queue_entry = open_queue_entry
        self.action = read.ulAction
        self.timeout = read.ulTimeout
        self.request_id = read.dwRequestID
        self.lookup_identifier = 0

    @property
    def tag(self) -> tuple[int, int]:
        """The tag under which the read waits (G12)."""
        return self.open_queue_entry.descriptor.handle, self.request_id

    def forget(self) -> bool:
        """Take it out of the reads of its queue; False when it has ended already."""
        return self.open_queue_entry.reads.pop(self.request_id, None) is self


class Qm2Qm:
    """The handlers of the interface; `handles` are those of qmcomm.

    `rpc_port` and `qm2qm_port` give the TCP ports of the interfaces, 0 without a listener;
    `version` is the one that clients get.
    """

    def __init__(
        self,
        queues: QueueEvents,
        readers: WaitingReaders,
        messages: MessageEvents,
        handles: ClientHandles,
        rpc_port: Callable[[], int] = int,
        qm2qm_port: Callable[[], int] = int,
    ) -> None:
        self._orders = QueueOrders(queues)
        self._readers = readers
        self._messages = messages
        self._handles = handles
        self.admission = handles.admission
        self._ports = {IP_HANDSHAKE: rpc_port, IP_READ: qm2qm_port}
        self._open: dict[int, OpenQueueEntry] = {}
        self.version = VERSION

    # About the server

    def RemoteQMGetQMQMServerPort(
        self, call: Call, request: RemoteQMGetQMQMServerPortRequest
    ) -> RemoteQMGetQMQMServerPortResponse:
        """A TCP port, 0 for an interface that is not served.

        Source: [MS-MQQP] 3.1.4.8 RemoteQMGetQMQMServerPort (Opnum 7).
        """
        port = self._ports.get(request.dwPortType, int)()
        return RemoteQMGetQMQMServerPortResponse(result=port)

    def RemoteQmGetVersion(
        self, call: Call, request: RemoteQmGetVersionRequest
    ) -> RemoteQmGetVersionResponse:
        """[MS-MQQP] 3.1.4.9 RemoteQmGetVersion (Opnum 8)."""
        major, minor, build = self.version
        return RemoteQmGetVersionResponse(pMajor=major, pMinor=minor, pBuildNumber=build)

    # Opening and closing

    def RemoteQMOpenQueue(
        self, call: Call, request: RemoteQMOpenQueueRequest
    ) -> RemoteQMOpenQueueResponse:
        """Take over a queue that was opened through qmcomm (G27).

        Source: [MS-MQQP] 3.1.4.3 RemoteQMOpenQueue (Opnum 2).
        """
        number = request.dwpContext
        if not number or request.pQueue != number:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "no queue, or two of them")
        opened = self._handles.adopt_remote(call, number)
        entry = OpenQueueEntry(opened, request.pLicGuid, call.identity.sid)
        try:
            handle = call.open_context_handle(
                "PCTX_RRSESSION_HANDLE_TYPE", entry, self._run_down, entry.minimum_level
            )
        except BaseException:
            self._handles.release_remote(entry.descriptor)
            raise
        held_by(call, entry.descriptor, handle)
        self._open[number] = entry
        return RemoteQMOpenQueueResponse(phContext=handle.wire, result=0)

    def RemoteQMCloseQueue(
        self, call: Call, request: RemoteQMCloseQueueRequest
    ) -> RemoteQMCloseQueueResponse:
        """Close a queue; its reads end first (G42).

        Source: [MS-MQQP] 3.1.4.4 RemoteQMCloseQueue (Opnum 3).
        """
        handle = present(request.pphContext)
        self._close(handle.value)
        call.close_context_handle(handle)
        return RemoteQMCloseQueueResponse(pphContext=NULL_HANDLE, result=0)

    def _run_down(self, handle: ContextHandle) -> None:
        """[MS-MQQP] 3.1.6.1 PCTX_RRSESSION_HANDLE_TYPE Rundown."""
        self._close(handle.value)

    def _close(self, entry: OpenQueueEntry) -> None:
        """Cancel the waiting reads first: a message that is given back would wake them (G64)."""
        self._open.pop(entry.descriptor.handle, None)
        for read in list(entry.reads.values()):
            self._cancel_wait(read)
        for read in list(entry.reads.values()):
            self._give_back(read)
        self._handles.release_remote(entry.descriptor)

    def _entry(self, call: Call, number: int, unknown: HResult) -> OpenQueueEntry:
        """The queue that the caller has taken over under a number; MQError(unknown) without one."""
        self._handles.check_wrong_numbers(call)
        entry = self._open.get(number)
        if entry is None or entry.owner != call.identity.sid:
            self._handles.wrong_number(call)
            raise MQError(unknown, f"queue {number:#x}")
        require_level(call, entry.minimum_level)
        return entry

    # Beginning to read

    async def RemoteQMStartReceive(
        self, call: Call, request: RemoteQMStartReceiveRequest
    ) -> RemoteQMStartReceiveResponse:
        """Peek at a message, or lock one until RemoteQMEndReceive.

        Source: [MS-MQQP] 3.1.4.1 RemoteQMStartReceive (Opnum 0).
        """
        description = request.lpRemoteReadDesc
        handle, _ = await self._read(call, description)
        return RemoteQMStartReceiveResponse(
            pphContext=handle, lpRemoteReadDesc=description, result=0
        )

    async def RemoteQMStartReceive2(
        self, call: Call, request: RemoteQMStartReceive2Request
    ) -> RemoteQMStartReceive2Response:
        """The same with the sequential identifier.

        Source: [MS-MQQP] 3.1.4.10 RemoteQMStartReceive2 (Opnum 9).
        """
        description = request.lpRemoteReadDesc2
        handle, message = await self._read(call, _inner(description))
        description.SequentialId = message.lookup_identifier & SEQUENTIAL_MASK
        return RemoteQMStartReceive2Response(
            pphContext=handle, lpRemoteReadDesc2=description, result=0
        )

    async def RemoteQMStartReceiveByLookupId(
        self, call: Call, request: RemoteQMStartReceiveByLookupIdRequest
    ) -> RemoteQMStartReceiveByLookupIdResponse:
        """Read by lookup identifier, in two phases when receiving (G42).

        Source: [MS-MQQP] 3.1.4.11 RemoteQMStartReceiveByLookupId (Opnum 10).
        """
        description = request.lpRemoteReadDesc2
        read = _inner(description)
        check_lookup(read.ulAction, request.LookupId, read.hCursor, read.ulTimeout)
        entry = self._begin(self._checked(call, read), read)
        descriptor, peek = entry.open_queue_entry.descriptor, entry.action in PEEKS
        reading = self._begun(
            entry,
            lambda: self._messages.read_message_by_lookup_identifier(
                descriptor, request.LookupId, peek, SEEKS[entry.action], None, not peek
            ),
        )
        handle, message = await self._answer(call, entry, read, reading)
        description.SequentialId = message.lookup_identifier & SEQUENTIAL_MASK
        return RemoteQMStartReceiveByLookupIdResponse(
            pphContext=handle, lpRemoteReadDesc2=description, result=0
        )

    async def _read(self, call: Call, read: REMOTEREADDESC) -> tuple[bytes, Message]:
        """Peek at a message or lock it; wait for one if the queue is empty."""
        opened = self._checked(call, read)
        cursor = (
            cursor_of(opened.descriptor, read.hCursor, NtStatus.STATUS_INVALID_PARAMETER)
            if read.hCursor
            else None
        )
        entry = self._begin(opened, read)
        reading = self._begun(entry, partial(self._start, entry, cursor))
        return await self._answer(call, entry, read, reading)

    def _checked(self, call: Call, read: REMOTEREADDESC) -> OpenQueueEntry:
        """The queue of a read; checks the parameters in the order of [MS-MQQP] 3.1.4.1."""
        if not read.dwQueue or read.dwQueue != read.hRemoteQueue:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "no queue, or two of them")
        opened = self._open.get(read.hRemoteQueue)
        if opened is not None and read.dwRequestID in opened.reads:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "the request id is in use")
        if read.ulAction == PEEK_NEXT and not read.hCursor:
            raise MQError(NtStatus.STATUS_INVALID_PARAMETER, "no cursor")
        return self._entry(call, read.hRemoteQueue, HResult.MQ_ERROR_INVALID_PARAMETER)

    def _begin(self, opened: OpenQueueEntry, read: REMOTEREADDESC) -> RemoteReadEntry:
        if len(opened.reads) >= MAXIMUM_READS:
            raise MQError(HResult.MQ_ERROR_INSUFFICIENT_RESOURCES, "too many pending reads")
        entry = opened.reads[read.dwRequestID] = RemoteReadEntry(opened, read)
        return entry

    def _begun(
        self, entry: RemoteReadEntry, start: Callable[[], Completion[Message]]
    ) -> Completion[Message]:
        """Start to read; a read that is refused leaves nothing behind."""
        try:
            return start()
        except BaseException:
            entry.forget()
            raise

    def _start(self, entry: RemoteReadEntry, cursor: Cursor | None) -> Completion[Message]:
        descriptor, timeout = entry.open_queue_entry.descriptor, entry.timeout
        if entry.action == PEEK_NEXT and cursor is not None:
            return self._messages.peek_next_message(descriptor, cursor, timeout, entry.tag)
        if entry.action in SEEKS:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "needs a lookup identifier")
        if entry.action in PEEKS:
            return self._messages.peek_message(descriptor, timeout, cursor, entry.tag)
        if entry.action:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"action {entry.action:#x}")
        return self._messages.dequeue_message_begin(descriptor, timeout, cursor, entry.tag)

    async def _answer(
        self,
        call: Call,
        entry: RemoteReadEntry,
        read: REMOTEREADDESC,
        reading: Completion[Message],
    ) -> tuple[bytes, Message]:
        """Fill in the message; returns the handle of the locked message, NULL after a peek."""
        if not reading.done:
            call.on_abandoned(partial(self._cancel_wait, entry))
        try:
            message = await reading
        except BaseException:
            entry.forget()
            raise
        handle = self._lock(call, entry, message)
        packet = bytes(binary_form(message.packet))
        read.lpBuffer, read.dwSize = packet, len(packet)
        read.dwArriveTime = message.arrival_time // 1000
        read.Reserved = _RETURNED_BY_SERVER
        return handle, message

    def _lock(self, call: Call, entry: RemoteReadEntry, message: Message) -> bytes:
        if entry.action in PEEKS:
            entry.forget()
            return NULL_HANDLE
        entry.lookup_identifier = message.lookup_identifier
        try:
            handle = call.open_context_handle(
                "PCTX_REMOTEREAD_HANDLE_TYPE",
                entry,
                self._run_down_read,
                entry.open_queue_entry.minimum_level,
            )
        except BaseException:
            self._give_back(entry, delivered=False)
            raise
        return handle.wire

    # Ending to read

    async def RemoteQMEndReceive(
        self, call: Call, request: RemoteQMEndReceiveRequest
    ) -> RemoteQMEndReceiveResponse:
        """Remove a message that was received, or give it back; the handle ends in any case.

        Source: [MS-MQQP] 3.1.4.2 RemoteQMEndReceive (Opnum 1).
        """
        handle = present(request.pphContext)
        entry: RemoteReadEntry = handle.value
        call.close_context_handle(handle)
        if not entry.forget():
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "the queue was closed")
        await self._end(entry, request.dwAck == RR_ACK)
        return RemoteQMEndReceiveResponse(pphContext=NULL_HANDLE, result=0)

    def _end(
        self, entry: RemoteReadEntry, delete_message: bool, delivered: bool = True
    ) -> Completion[None]:
        descriptor = entry.open_queue_entry.descriptor
        position = MessagePosition(queue_of(descriptor), entry.lookup_identifier)
        return self._messages.dequeue_message_end(
            descriptor, position, delete_message, delivered=delivered
        )

    def _give_back(self, entry: RemoteReadEntry, delivered: bool = True) -> None:
        """Give a message back for others, unless the read has ended already."""
        if entry.forget():
            with suppress(MQError):  # the queue may be gone, and its messages with it
                self._end(entry, False, delivered)

    def _run_down_read(self, handle: ContextHandle) -> None:
        """[MS-MQQP] 3.1.6.2 PCTX_REMOTEREAD_HANDLE_TYPE Rundown."""
        self._give_back(handle.value)

    def RemoteQMCancelReceive(self, call: Call, request: RemoteQMCancelReceiveRequest) -> HResult:
        """End a read that waits; it gets MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT.

        One that has its message already is left alone: STATUS_NOT_FOUND (G64). Source: [MS-MQQP]
        3.1.4.6 RemoteQMCancelReceive (Opnum 5).
        """
        if not request.pQueue or request.pQueue != request.hQueue:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "no queue, or two of them")
        opened = self._entry(call, request.hQueue, HResult.MQ_ERROR_INVALID_HANDLE)
        if not opened.reads:
            raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, "nothing is pending")
        entry = opened.reads.get(request.dwRequestID)
        if entry is None:
            raise MQError(HResult.MQ_ERROR, f"request {request.dwRequestID} is not pending")
        self._cancel(entry)
        return HResult.MQ_OK

    def _cancel(self, entry: RemoteReadEntry) -> None:
        queue = queue_of(entry.open_queue_entry.descriptor)
        status = HResult.MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT
        self._readers.cancel_waiting_message_read_request(queue, entry.tag, status)

    def _cancel_wait(self, entry: RemoteReadEntry) -> None:
        with suppress(MQError):  # the read may have ended meanwhile
            self._cancel(entry)

    # Cursors and purging

    def RemoteQMCloseCursor(self, call: Call, request: RemoteQMCloseCursorRequest) -> HResult:
        """[MS-MQQP] 3.1.4.5 RemoteQMCloseCursor (Opnum 4)."""
        opened = self._entry(call, request.hQueue, HResult.MQ_ERROR_INVALID_HANDLE)
        self._readers.close_cursor(cursor_of(opened.descriptor, request.hCursor))
        return HResult.MQ_OK

    async def RemoteQMPurgeQueue(self, call: Call, request: RemoteQMPurgeQueueRequest) -> HResult:
        """Purge a queue that is open for receiving (G42); failures are thrown (G66).

        Source: [MS-MQQP] 3.1.4.7 RemoteQMPurgeQueue (Opnum 6).
        """
        opened = self._entry(call, request.hQueue, HResult.MQ_ERROR_INVALID_HANDLE)
        queue, access = queue_of(opened.descriptor), opened.descriptor.access_type
        with ordered_from(call.peer, RPC):
            purged = self._orders.purge(call.identity, queue, access)
        await purged
        return HResult.MQ_OK


def _inner(description: REMOTEREADDESC2) -> REMOTEREADDESC:
    if description.pRemoteReadDesc is None:
        raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, "no REMOTEREADDESC")
    return description.pRemoteReadDesc
