"""qmcomm: queues, transactions and handles of dependent clients ([MS-MQMP] 3.1.4).

Over ncalrpc it serves the commands of this machine. Over TCP it serves clients only as their
supporting server, except for the methods that remote readers need.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.adm.enums import QueueType
from rpcqm.adm.queue import Queue
from rpcqm.adm.queue_manager import QueueManager
from rpcqm.base.completion import Completion
from rpcqm.base.errors import HResult, MQError, NtStatus, RpcFault
from rpcqm.base.text import folded, wide_length
from rpcqm.codec.names.format_name import FormatName, format_names
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.codec.names.queue_format import format_name_of, queue_format_of
from rpcqm.codec.packet.attributes import DEFAULT_TIME_TO_REACH_QUEUE
from rpcqm.codec.security.access_check import MQQUEUEACCESSMASK
from rpcqm.codec.security.descriptor import SecurityInformation
from rpcqm.codec.types.mqmq import QUEUE_FORMAT
from rpcqm.codec.types.mqvalues import (
    IP_HANDSHAKE,
    IP_READ,
    NO_CURSOR,
    QUEUE_OBJECT,
    FormatNameType,
    QueueAccessType,
    QueueShareMode,
)
from rpcqm.codec.types.qmcomm import (
    OBJECT_FORMAT,
    OBJECT_FORMAT_u,
    R_QMAbortTransactionRequest,
    R_QMAbortTransactionResponse,
    R_QMCloseRemoteQueueContextRequest,
    R_QMCloseRemoteQueueContextResponse,
    R_QMCommitTransactionRequest,
    R_QMCommitTransactionResponse,
    R_QMCreateObjectInternalRequest,
    R_QMCreateRemoteCursorRequest,
    R_QMCreateRemoteCursorResponse,
    R_QMDeleteObjectRequest,
    R_QMEnlistInternalTransactionRequest,
    R_QMEnlistInternalTransactionResponse,
    R_QMEnlistTransactionRequest,
    R_QMGetObjectPropertiesRequest,
    R_QMGetObjectPropertiesResponse,
    R_QMGetObjectSecurityInternalRequest,
    R_QMGetObjectSecurityInternalResponse,
    R_QMGetRemoteQueueNameRequest,
    R_QMGetRTQMServerPortRequest,
    R_QMGetRTQMServerPortResponse,
    R_QMGetTmWhereaboutsRequest,
    R_QMObjectPathToObjectFormatRequest,
    R_QMObjectPathToObjectFormatResponse,
    R_QMOpenRemoteQueueRequest,
    R_QMOpenRemoteQueueResponse,
    R_QMQueryQMRegistryInternalRequest,
    R_QMQueryQMRegistryInternalResponse,
    R_QMSetObjectPropertiesRequest,
    R_QMSetObjectSecurityInternalRequest,
    rpc_ACCloseCursorRequest,
    rpc_ACCloseHandleRequest,
    rpc_ACCloseHandleResponse,
    rpc_ACHandleToFormatNameRequest,
    rpc_ACHandleToFormatNameResponse,
    rpc_ACPurgeQueueRequest,
    rpc_ACSetCursorPropertiesRequest,
    rpc_QMOpenQueueInternalRequest,
    rpc_QMOpenQueueInternalResponse,
)
from rpcqm.interfaces._authentication import checks, level_of_queue, require_level
from rpcqm.interfaces._client_handles import ClientHandles
from rpcqm.interfaces._open_queues import cursor_of, present
from rpcqm.interfaces._opening_rules import (
    check_opening,
    descriptor_of,
    names_of,
    remote_readable,
)
from rpcqm.interfaces._queue_properties import attributes_of, security_in, values_of
from rpcqm.interfaces._remote_proxy import RemoteNumbers, proxy_of
from rpcqm.interfaces._wide_text import fitted
from rpcqm.operations.audit import RPC, ordered, ordered_from
from rpcqm.operations.queue_changes import QueueOrders
from rpcqm.qm.access import AccessControl
from rpcqm.qm.directory import Directory
from rpcqm.qm.machine import version_numbers
from rpcqm.qm.names import LocalNames
from rpcqm.qm.opening import READ_ACCESSES, Opening
from rpcqm.qm.queues import QueueEvents
from rpcqm.qm.readers import WaitingReaders
from rpcqm.qm.registry import QueueRegistry
from rpcqm.qm.transactions import Transactions
from rpcqm.rpc.call import Call
from rpcqm.rpc.context_handle import NULL_HANDLE, ContextHandle
from rpcqm.rpc.interface_registry import InterfacePolicy

POLICY = InterfacePolicy(
    check_of=checks(
        unchecked={"R_QMGetRTQMServerPort"},
        reading={"R_QMOpenRemoteQueue", "R_QMCloseRemoteQueueContext", "R_QMCreateRemoteCursor"},
    )
)
"""Callers must have logged on (G85); remote readers follow the switches of RemoteRead."""

_ALL_PARTS = int(
    SecurityInformation.OWNER_SECURITY_INFORMATION
    | SecurityInformation.GROUP_SECURITY_INFORMATION
    | SecurityInformation.DACL_SECURITY_INFORMATION
    | SecurityInformation.SACL_SECURITY_INFORMATION
)


@dataclass(eq=False, repr=False)
class QmComm:
    """The handlers of the interface; `handles` are shared with qmcomm2.

    `rpc_port` and `qm2qm_port` give the TCP ports of the interfaces, 0 without a listener.
    """

    _queue_manager: QueueManager
    _names: LocalNames
    _registry: QueueRegistry
    _access: AccessControl
    _directory: Directory
    _readers: WaitingReaders
    _queues: QueueEvents
    _opening: Opening
    _transactions: Transactions
    handles: ClientHandles
    _rpc_port: Callable[[], int] = int
    _qm2qm_port: Callable[[], int] = int

    def __post_init__(self) -> None:
        self.admission = self.handles.admission
        self._ports = {IP_HANDSHAKE: self._rpc_port, IP_READ: self._qm2qm_port}
        self._orders = QueueOrders(self._queues)

    # Remote readers

    def R_QMGetRemoteQueueName(self, call: Call, request: R_QMGetRemoteQueueNameRequest) -> HResult:
        """Obsolete: it throws; [MS-MQMP] 3.1.4.1 R_QMGetRemoteQueueName (Opnum 1)."""
        raise RpcFault(HResult.MQ_ERROR_ILLEGAL_OPERATION)

    def R_QMOpenRemoteQueue(
        self, call: Call, request: R_QMOpenRemoteQueueRequest
    ) -> R_QMOpenRemoteQueueResponse:
        """Open a queue for a remote reader, which gets 32-bit handles (G43).

        Source: [MS-MQMP] 3.1.4.2 R_QMOpenRemoteQueue (Opnum 2).
        """
        if (
            request.pQueueFormat is None
            or request.dwDesiredAccess not in READ_ACCESSES
            or request.dwShareMode not in tuple(QueueShareMode)
        ):
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER)
        name = remote_readable(format_name_of(request.pQueueFormat))
        security = self.admission.security
        minimum = level_of_queue(self._registry, self._access, security, name, workgroup=False)
        require_level(call, minimum)
        descriptor = self._open(
            call,
            name,
            request.dwDesiredAccess,
            request.dwShareMode,
            sharing_violation=NtStatus.STATUS_SHARING_VIOLATION,
        )
        handle = self.handles.open_remote(call, descriptor, minimum)
        number = descriptor.handle
        return R_QMOpenRemoteQueueResponse(
            pphContext=handle.wire, pdwContext=number, dwpQueue=number, phQueue=number, result=0
        )

    def R_QMCloseRemoteQueueContext(
        self, call: Call, request: R_QMCloseRemoteQueueContextRequest
    ) -> R_QMCloseRemoteQueueContextResponse:
        """Close it, unless a reader goes on with the queue (G27).

        Source: [MS-MQMP] 3.1.4.3 R_QMCloseRemoteQueueContext (Opnum 3).
        """
        handle: ContextHandle | None = request.pphContext
        if handle is not None:
            self.handles.close_remote(handle)
            call.close_context_handle(handle)
        return R_QMCloseRemoteQueueContextResponse(pphContext=NULL_HANDLE)

    def R_QMCreateRemoteCursor(
        self, call: Call, request: R_QMCreateRemoteCursorRequest
    ) -> R_QMCreateRemoteCursorResponse:
        """A cursor of a remote reader; [MS-MQMP] 3.1.4.4 R_QMCreateRemoteCursor (Opnum 4)."""
        descriptor = self.handles.find_remote(call, request.hQueue)
        cursor = self.handles.create_cursor(descriptor)
        return R_QMCreateRemoteCursorResponse(phCursor=cursor, result=0)

    # Queues as objects

    async def R_QMCreateObjectInternal(
        self, call: Call, request: R_QMCreateObjectInternalRequest
    ) -> HResult:
        """Create a private queue; [MS-MQMP] 3.1.4.5 R_QMCreateObjectInternal (Opnum 6)."""
        self.handles.admit(call)
        _require_queue_object(request.dwObjectType)
        path = self._own_private_path(request.lpwcsPathName)
        attributes = attributes_of(request.aProp, request.apVar, creating=True)
        named = str(attributes.pop("pathname", request.lpwcsPathName))
        if folded(self._own_private_path(named).queue) != folded(path.queue):
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, "PROPID_Q_PATHNAME")
        attributes.pop("base_priority", None)  # ignored for private queues, [MS-MQMQ] 2.3.1.6
        attributes |= security_in(request.pSecurityDescriptor)
        queue = self._queues.new_queue(str(path), call.identity, **attributes)
        with ordered_from(call.peer, RPC):
            created = self._orders.create(call.identity, queue)
        await created
        return HResult.MQ_OK

    def _own_private_path(self, text: str) -> PathName:
        path = PathName.parse(text)
        local = self._names.is_local(path.computer)
        if path.kind is not QueueKind.PRIVATE or path.suffix or not local:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, text)
        return path

    def R_QMSetObjectSecurityInternal(
        self, call: Call, request: R_QMSetObjectSecurityInternalRequest
    ) -> Completion[None]:
        """[MS-MQMP] 3.1.4.6 R_QMSetObjectSecurityInternal (Opnum 7)."""
        self.handles.admit(call)
        parts = _security_parts(request.SecurityInformation)
        if request.pSecurityDescriptor is None:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "no security descriptor")
        queue = self._object(request.pObjectFormat)
        descriptor = request.pSecurityDescriptor
        with ordered_from(call.peer, RPC):
            return self._orders.set_security(call.identity, queue, parts, descriptor)

    def R_QMGetObjectSecurityInternal(
        self, call: Call, request: R_QMGetObjectSecurityInternalRequest
    ) -> R_QMGetObjectSecurityInternalResponse:
        """The requested parts, each on its own (G43).

        Source: [MS-MQMP] 3.1.4.7 R_QMGetObjectSecurityInternal (Opnum 8).
        """
        self.handles.admit(call)
        parts = _security_parts(request.RequestedInformation)
        queue = self._object(request.pObjectFormat)
        descriptor = self._queues.get_security(queue, parts, identity=call.identity)
        fits = len(descriptor) <= request.nLength
        too_small = HResult.MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL
        return R_QMGetObjectSecurityInternalResponse(
            pSecurityDescriptor=(descriptor if fits else b"").ljust(request.nLength, b"\0"),
            lpnLengthNeeded=len(descriptor),
            result=HResult.MQ_OK if fits else too_small,
        )

    def R_QMDeleteObject(self, call: Call, request: R_QMDeleteObjectRequest) -> Completion[None]:
        """[MS-MQMP] 3.1.4.8 R_QMDeleteObject (Opnum 9)."""
        self.handles.admit(call)
        queue = self._object(request.pObjectFormat)
        with ordered_from(call.peer, RPC):
            return self._orders.delete(call.identity, queue)

    def R_QMGetObjectProperties(
        self, call: Call, request: R_QMGetObjectPropertiesRequest
    ) -> R_QMGetObjectPropertiesResponse:
        """[MS-MQMP] 3.1.4.9 R_QMGetObjectProperties (Opnum 10)."""
        self.handles.admit(call)
        queue = self._object(request.pObjectFormat)
        values = values_of(queue, request.aProp, request.apVar)
        rights = MQQUEUEACCESSMASK.MQSEC_GET_QUEUE_PROPERTIES
        self._access.check_queue(queue, call.identity, rights)
        return R_QMGetObjectPropertiesResponse(apVar=values, result=0)

    def R_QMSetObjectProperties(
        self, call: Call, request: R_QMSetObjectPropertiesRequest
    ) -> Completion[None]:
        """[MS-MQMP] 3.1.4.10 R_QMSetObjectProperties (Opnum 11)."""
        self.handles.admit(call)
        if request.aProp is None or request.apVar is None:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "no properties")
        queue = self._object(request.pObjectFormat)
        changes = attributes_of(request.aProp, request.apVar, creating=False)
        if queue.queue_type is QueueType.PRIVATE:
            changes.pop("base_priority", None)  # ignored, [MS-MQMQ] 2.3.1.6
        with ordered_from(call.peer, RPC):
            return self._orders.set_properties(call.identity, queue, changes)

    def R_QMObjectPathToObjectFormat(
        self, call: Call, request: R_QMObjectPathToObjectFormatRequest
    ) -> R_QMObjectPathToObjectFormatResponse:
        """[MS-MQMP] 3.1.4.11 R_QMObjectPathToObjectFormat (Opnum 12)."""
        self.handles.admit(call)
        _require_queue_object(request.pObjectFormat.ObjType)
        unknown = request.pObjectFormat.u.value
        if unknown is None or unknown.m_qft != FormatNameType.QUEUE_FORMAT_TYPE_UNKNOWN:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "not the unknown format")
        path = request.lpwcsPathName
        queue = self._registry.find_by_path(path)
        if queue is None or queue.queue_type is QueueType.PUBLIC:
            name = self._directory.find_path(path)
        else:
            name = self._format_name(queue)
        if name is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, path)
        structure = queue_format_of(name)
        found = OBJECT_FORMAT(ObjType=QUEUE_OBJECT, u=OBJECT_FORMAT_u(QUEUE_OBJECT, structure))
        return R_QMObjectPathToObjectFormatResponse(pObjectFormat=found, result=0)

    def _format_name(self, queue: Queue) -> FormatName:
        if queue.private_queue_number and queue.parent is None:
            return FormatName.private(self._queue_manager.identifier, queue.private_queue_number)
        return self._queues.format_name_of(queue)

    def _object(self, structure: OBJECT_FORMAT) -> Queue:
        """The application's queue that an OBJECT_FORMAT names, private or public (G550).

        Raises MQError for any other.
        """
        _require_queue_object(structure.ObjType)
        if not isinstance(structure.u.value, QUEUE_FORMAT):
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "no queue format")
        name = format_name_of(structure.u.value)
        queue = self._registry.find_application_queue(name)
        if queue is None:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, str(name))
        return queue

    # Transactions

    def R_QMGetTmWhereabouts(self, call: Call, request: R_QMGetTmWhereaboutsRequest) -> HResult:
        """Refused: there is no transaction coordinator (G65).

        Source: [MS-MQMP] 3.1.4.12 R_QMGetTmWhereabouts (Opnum 14).
        """
        self.handles.admit(call)
        raise MQError(HResult.MQ_ERROR_DTC_CONNECT, "no distributed transactions")

    def R_QMEnlistTransaction(self, call: Call, request: R_QMEnlistTransactionRequest) -> HResult:
        """Refused unless it is enlisted already, for want of a coordinator (G65).

        Source: [MS-MQMP] 3.1.4.13 R_QMEnlistTransaction (Opnum 15).
        """
        self.handles.admit(call)
        if not self._transactions.has(UUID(bytes_le=request.pUow.rgb), call.identity.sid):
            raise MQError(HResult.MQ_ERROR_DTC_CONNECT, "no distributed transactions")
        return HResult.MQ_OK

    def R_QMEnlistInternalTransaction(
        self, call: Call, request: R_QMEnlistInternalTransactionRequest
    ) -> R_QMEnlistInternalTransactionResponse:
        """Begin a transaction, for remote readers as well (G178).

        Source: [MS-MQMP] 3.1.4.14 R_QMEnlistInternalTransaction (Opnum 16).
        """
        if call.identity.is_anonymous:
            self.handles.admit(call)
        if not any(request.pUow.rgb):
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "no identifier")
        identifier, owner = UUID(bytes_le=request.pUow.rgb), call.identity.sid
        transaction = self._transactions.create_transaction(identifier, owner)
        handle = self.handles.open_transaction(call, transaction)
        return R_QMEnlistInternalTransactionResponse(phIntXact=handle.wire, result=0)

    async def R_QMCommitTransaction(
        self, call: Call, request: R_QMCommitTransactionRequest
    ) -> R_QMCommitTransactionResponse:
        """[MS-MQMP] 3.1.4.15 R_QMCommitTransaction (Opnum 17)."""
        handle = present(request.phIntXact)
        await self._transactions.transaction_commit(handle.value.identifier)
        call.close_context_handle(handle)
        return R_QMCommitTransactionResponse(phIntXact=NULL_HANDLE, result=0)

    async def R_QMAbortTransaction(
        self, call: Call, request: R_QMAbortTransactionRequest
    ) -> R_QMAbortTransactionResponse:
        """[MS-MQMP] 3.1.4.16 R_QMAbortTransaction (Opnum 18)."""
        handle = present(request.phIntXact)
        await self._transactions.transaction_abort(handle.value.identifier)
        call.close_context_handle(handle)
        return R_QMAbortTransactionResponse(phIntXact=NULL_HANDLE, result=0)

    # Open queues

    def rpc_QMOpenQueueInternal(
        self, call: Call, request: rpc_QMOpenQueueInternalRequest
    ) -> rpc_QMOpenQueueInternalResponse | Awaitable[rpc_QMOpenQueueInternalResponse]:
        """Open a local queue, or return its machine, or take it over there for the client.

        Source: [MS-MQMP] 3.1.4.17 rpc_QMOpenQueueInternal (Opnum 19).
        """
        self.handles.admit(call)
        check_opening(request)
        name = format_name_of(request.pQueueFormat)
        if request.hRemoteQueue:
            return self._open_elsewhere(call, request, name)
        try:
            descriptor = self._open(call, name, request.dwDesiredAccess, request.dwShareMode)
        except MQError as error:
            if error.status is not HResult.MQ_ERROR_QUEUE_NOT_FOUND or self._is_sought_here(
                name, request.dwDesiredAccess
            ):
                raise
            return rpc_QMOpenQueueInternalResponse(
                lplpRemoteQueueName=self._queue_path(name)[0],
                pdwQMContext=0,
                phQueue=NULL_HANDLE,
                result=0,
            )
        handle = self.handles.open_local(call, descriptor)
        return rpc_QMOpenQueueInternalResponse(
            lplpRemoteQueueName=None,
            pdwQMContext=descriptor.handle,
            phQueue=handle.wire,
            result=0,
        )

    async def _open_elsewhere(
        self, call: Call, request: rpc_QMOpenQueueInternalRequest, name: FormatName
    ) -> rpc_QMOpenQueueInternalResponse:
        """Take over a queue that the client has opened at another queue manager."""
        place = self._queue_path(name)
        numbers = RemoteNumbers(request.hRemoteQueue, request.dwpQueue, request.dwpRemoteContext)
        receiving = request.dwDesiredAccess == QueueAccessType.RECEIVE_ACCESS
        handle, context = await self.handles.proxies.open(call, place, name, numbers, receiving)
        return rpc_QMOpenQueueInternalResponse(
            lplpRemoteQueueName=None, pdwQMContext=context, phQueue=handle.wire, result=0
        )

    def _open(
        self,
        call: Call,
        name: FormatName,
        access: int,
        share_mode: int,
        sharing_violation: HResult | NtStatus = HResult.MQ_ERROR_SHARING_VIOLATION,
    ) -> OpenQueueDescriptor:
        try:
            return self._opening.open_queue(
                name, QueueAccessType(access), QueueShareMode(share_mode), identity=call.identity
            )
        except MQError as error:
            if error.status is HResult.MQ_ERROR_SHARING_VIOLATION:
                raise MQError(sharing_violation, error.detail) from error
            raise

    def _is_sought_here(self, name: FormatName, access: int) -> bool:
        """Whether a queue that was not found here cannot be elsewhere either."""
        if access == QueueAccessType.SEND_ACCESS:
            return True
        return isinstance(name.value, str) and self._registry.is_local_direct(name.direct_name)

    def _queue_path(self, name: FormatName) -> tuple[str, str]:
        path, machine = self._directory.get_queue_path(name)
        if not path:
            raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, str(name))
        return path, machine

    def rpc_ACCloseHandle(
        self, call: Call, request: rpc_ACCloseHandleRequest
    ) -> rpc_ACCloseHandleResponse:
        """[MS-MQMP] 3.1.4.18 rpc_ACCloseHandle (Opnum 20)."""
        self.handles.admit(call)
        handle = present(request.phQueue)
        self.handles.close_local(handle)
        call.close_context_handle(handle)
        return rpc_ACCloseHandleResponse(phQueue=NULL_HANDLE, result=0)

    async def rpc_ACCloseCursor(self, call: Call, request: rpc_ACCloseCursorRequest) -> HResult:
        """[MS-MQMP] 3.1.4.19 rpc_ACCloseCursor (Opnum 22)."""
        self.handles.admit(call)
        if request.hCursor == NO_CURSOR:
            return HResult.MQ_OK
        proxy = proxy_of(request.hQueue)
        if proxy is not None:
            await proxy.close_cursor(request.hCursor)
            return HResult.MQ_OK
        self._readers.close_cursor(cursor_of(descriptor_of(request.hQueue), request.hCursor))
        return HResult.MQ_OK

    def rpc_ACSetCursorProperties(
        self, call: Call, request: rpc_ACSetCursorPropertiesRequest
    ) -> HResult:
        """Obsolete: refused; [MS-MQMP] 3.1.4.20 rpc_ACSetCursorProperties (Opnum 23)."""
        raise MQError(HResult.MQ_ERROR_ILLEGAL_OPERATION)

    def rpc_ACHandleToFormatName(
        self, call: Call, request: rpc_ACHandleToFormatNameRequest
    ) -> rpc_ACHandleToFormatNameResponse:
        """The name that a queue was opened by, cut when the buffer is small.

        Source: [MS-MQMP] 3.1.4.21 rpc_ACHandleToFormatName (Opnum 26).
        """
        self.handles.admit(call)
        size = request.pdwLength
        if size != request.dwFormatNameRPCBufferLen:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "two different lengths")
        text = format_names(names_of(request.hQueue))
        needed = wide_length(text) + 1
        buffer = request.lpwcsFormatName
        if buffer is not None and size:
            buffer = fitted(fitted(text, min(size, needed) - 1) + "\0", size)
        too_small = HResult.MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL
        return rpc_ACHandleToFormatNameResponse(
            lpwcsFormatName=buffer,
            pdwLength=needed,
            result=too_small if needed > size else HResult.MQ_OK,
        )

    async def rpc_ACPurgeQueue(self, call: Call, request: rpc_ACPurgeQueueRequest) -> HResult:
        """Purge a queue that is open for receiving.

        Source: [MS-MQMP] 3.1.4.22 rpc_ACPurgeQueue (Opnum 27).
        """
        self.handles.admit(call)
        proxy = proxy_of(request.hQueue)
        if proxy is not None:
            about = str(proxy.format_name)
            with ordered_from(call.peer, RPC), ordered(call.identity, "purge", about):
                proxy.require_receiving()
            await proxy.purge()
            return HResult.MQ_OK
        descriptor = descriptor_of(request.hQueue)
        if descriptor.queue_reference is None:
            raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, "the queue has been deleted")
        queue, access = descriptor.queue_reference, descriptor.access_type
        with ordered_from(call.peer, RPC):
            purged = self._orders.purge(call.identity, queue, access)
        await purged
        return HResult.MQ_OK

    # About the server

    def R_QMQueryQMRegistryInternal(
        self, call: Call, request: R_QMQueryQMRegistryInternalRequest
    ) -> R_QMQueryQMRegistryInternalResponse:
        """One of five texts (G123, G554).

        Source: [MS-MQMP] 3.1.4.23 R_QMQueryQMRegistryInternal (Opnum 28).
        """
        self.handles.admit(call)
        queue_manager = self._queue_manager
        enterprise = queue_manager.enterprise_reference
        texts = (
            ",".join(queue_manager.directory_server_list),
            str(enterprise.default_time_to_live if enterprise else DEFAULT_TIME_TO_REACH_QUEUE),
            str(enterprise.identifier if enterprise else UUID(int=0)),
            ".".join(map(str, version_numbers(queue_manager))),
            str(queue_manager.identifier),
        )
        if request.dwQueryType >= len(texts):
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"query {request.dwQueryType}")
        text = texts[request.dwQueryType]
        return R_QMQueryQMRegistryInternalResponse(lplpMQISServer=text, result=0)

    def R_QMGetRTQMServerPort(
        self, call: Call, request: R_QMGetRTQMServerPortRequest
    ) -> R_QMGetRTQMServerPortResponse:
        """A TCP port, 0 for an interface that is not served; open to everybody.

        Source: [MS-MQMP] 3.1.4.24 R_QMGetRTQMServerPort (Opnum 31).
        """
        return R_QMGetRTQMServerPortResponse(result=self._ports.get(request.fIP, int)())


def _require_queue_object(kind: int) -> None:
    if kind != QUEUE_OBJECT:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"object of type {kind}")


def _security_parts(parts: int) -> int:
    if not parts or parts & ~_ALL_PARTS:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"parts {parts:#x}")
    return parts
