"""rpcqm_bulk: lists, reads and removes messages of a queue by the thousand (G700)."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.base.completion import Completion, start
from rpcqm.base.consecutive import consecutive
from rpcqm.base.errors import DecodeError, HResult, MQError
from rpcqm.base.settling import settling
from rpcqm.codec.packet.user_message import class_of
from rpcqm.codec.types import rpcqm_bulk
from rpcqm.codec.types.mqvalues import QueueAccessType, QueueShareMode
from rpcqm.codec.types.rpcqm_bulk import (
    BULK_REFUSAL,
    LOOKUP_RANGE,
    R_BulkCloseRequest,
    R_BulkCloseResponse,
    R_BulkCountRequest,
    R_BulkCountResponse,
    R_BulkListRequest,
    R_BulkListResponse,
    R_BulkOpenRequest,
    R_BulkOpenResponse,
    R_BulkReadRequest,
    R_BulkReadResponse,
    R_BulkRemoveRequest,
    R_BulkRemoveResponse,
    R_BulkSearchRequest,
    R_BulkSearchResponse,
    R_BulkSizesRequest,
    R_BulkSizesResponse,
)
from rpcqm.interfaces._authentication import CallAdmission, checks, require_level
from rpcqm.interfaces._message_packet import MessagePackets
from rpcqm.interfaces._open_queues import held_by, present
from rpcqm.interfaces._reading_names import readable_name, reads_outgoing
from rpcqm.interfaces._searching import answer_search
from rpcqm.operations.operations import Operations
from rpcqm.qm.access import RECEIVING
from rpcqm.qm.bulk import BulkEvents, Removal
from rpcqm.qm.opening import Opening
from rpcqm.rpc.call import Call
from rpcqm.rpc.constants import AuthenticationLevel
from rpcqm.rpc.context_handle import NULL_HANDLE, ContextHandle
from rpcqm.rpc.interface_registry import InterfacePolicy

POLICY = InterfacePolicy(check_of=checks(), advertised=False)
"""For callers that have logged on; reads need PKT_PRIVACY, whatever the switches say.

The endpoint mapper does not list it, so its answers to others stay unchanged: our client looks
beside RemoteRead.
"""

MOST_BULK_MESSAGES = rpcqm_bulk.MOST_BULK_MESSAGES
"""Messages that one call lists, reads or removes.

Bound `bulk.messages` [messages]: the call is refused; a list goes on in the next call.
"""
MOST_BULK_OCTETS = rpcqm_bulk.MOST_BULK_OCTETS
"""Octets of messages in one answer.

Bound `bulk.octets` [octets]: the next call reads on; a message that is larger comes alone.
"""
_PRIVACY = AuthenticationLevel.RPC_C_AUTHN_LEVEL_PKT_PRIVACY
_HANDLE_TYPE = "BULK_CONTEXT_HANDLE"
_ACCESSES = RECEIVING | {QueueAccessType.PEEK_ACCESS, QueueAccessType.PEEK_ADMIN_ACCESS}
_END = 1 << 64
_ENTRY = struct.Struct("<QIII")
"""Lookup identifier, seconds of arrival, status, size."""


@dataclass(eq=False, repr=False)
class Bulk:
    """The handlers of the interface; `admission` is that of RemoteRead."""

    _opening: Opening
    _events: BulkEvents
    _packets: MessagePackets
    _operations: Operations
    admission: CallAdmission

    def R_BulkOpen(self, call: Call, request: R_BulkOpenRequest) -> R_BulkOpenResponse:
        """Open a queue for peeking or receiving, as R_OpenQueue of RemoteRead does (Opnum 0)."""
        require_level(call, _PRIVACY)
        if request.dwAccess not in _ACCESSES:
            raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"access {request.dwAccess:#x}")
        name, access = readable_name(request.pQueueFormat), QueueAccessType(request.dwAccess)
        if not reads_outgoing(self._opening, name, access, call.identity):
            receiving = access in RECEIVING
            access = QueueAccessType.RECEIVE_ACCESS if receiving else QueueAccessType.PEEK_ACCESS
        descriptor = self._opening.open_queue(
            name, access, QueueShareMode.DENY_NONE, identity=call.identity
        )
        try:
            handle = call.open_context_handle(_HANDLE_TYPE, descriptor, self._run_down, _PRIVACY)
        except BaseException:
            self._opening.close_queue(descriptor)
            raise
        held_by(call, descriptor, handle)
        return R_BulkOpenResponse(pphContext=handle.wire, result=0)

    def R_BulkClose(self, call: Call, request: R_BulkCloseRequest) -> R_BulkCloseResponse:
        """Close a queue (Opnum 1)."""
        handle = present(request.pphContext)
        self._run_down(handle)
        call.close_context_handle(handle)
        return R_BulkCloseResponse(pphContext=NULL_HANDLE, result=0)

    def _run_down(self, handle: ContextHandle) -> None:
        self._opening.close_queue(handle.value)

    def R_BulkList(self, call: Call, request: R_BulkListRequest) -> R_BulkListResponse:
        """The messages that a peek would find behind another (Opnum 2)."""
        descriptor: OpenQueueDescriptor = request.phContext.value
        limit = request.cMost or MOST_BULK_MESSAGES
        keys, more = self._events.visible(descriptor, request.After, limit)
        ranges = [LOOKUP_RANGE(First=first, Count=count) for first, count in consecutive(keys)]
        return R_BulkListResponse(
            pcRanges=len(ranges),
            ppRanges=ranges,
            pNext=keys[-1] if keys and more else 0,
            result=0,
        )

    def R_BulkRead(self, call: Call, request: R_BulkReadRequest) -> R_BulkReadResponse:
        """Messages one behind the other, as many as one answer has room for (Opnum 3)."""
        descriptor: OpenQueueDescriptor = request.phContext.value
        parts: list[bytes] = []
        done = size = 0
        for key in _keys(request.pRanges):
            entry = self._entry(descriptor, key)
            if parts and size + len(entry) > MOST_BULK_OCTETS:
                break
            parts.append(entry)
            done += 1
            size += len(entry)
        octets = b"".join(parts)
        return R_BulkReadResponse(pcDone=done, pcbMessages=len(octets), ppMessages=octets, result=0)

    def _entry(self, descriptor: OpenQueueDescriptor, key: int) -> bytes:
        try:
            message = self._events.message(descriptor, key)
            octets = self._packets.message_packet(message, class_of(message.packet))
        except MQError as error:
            return _ENTRY.pack(key, 0, error.status, 0)
        except DecodeError:
            return _ENTRY.pack(key, 0, HResult.MQ_ERROR, 0)
        return _ENTRY.pack(key, message.arrival_time // 1000, 0, len(octets)) + octets

    def R_BulkRemove(
        self, call: Call, request: R_BulkRemoveRequest
    ) -> Completion[R_BulkRemoveResponse]:
        """Remove messages as by receiving them; answered when that is durable (Opnum 4)."""
        descriptor: OpenQueueDescriptor = request.phContext.value
        return start(_removed(self._events.remove(descriptor, _keys(request.pRanges))))

    def R_BulkSizes(self, call: Call, request: R_BulkSizesRequest) -> R_BulkSizesResponse:
        """How large messages are (Opnum 5)."""
        descriptor: OpenQueueDescriptor = request.phContext.value
        sizes = self._events.sizes(descriptor, _keys(request.pRanges))
        return R_BulkSizesResponse(pcSizes=len(sizes), ppSizes=sizes, result=0)

    def R_BulkCount(self, call: Call, request: R_BulkCountRequest) -> R_BulkCountResponse:
        """How many messages there are, without a list of them (Opnum 6)."""
        count = self._events.count(request.phContext.value)
        return R_BulkCountResponse(pMessages=count, result=0)

    async def R_BulkSearch(self, call: Call, request: R_BulkSearchRequest) -> R_BulkSearchResponse:
        """A page of the messages that meet conditions, for who may peek at them (Opnum 7)."""
        require_level(call, _PRIVACY)
        name = None if request.pQueueFormat is None else readable_name(request.pQueueFormat)
        answer = await settling(
            answer_search(self._operations, call.identity, name, request.pwszSearch)
        )
        return R_BulkSearchResponse(pcbAnswer=len(answer), ppAnswer=answer, result=0)


async def _removed(removal: Removal) -> R_BulkRemoveResponse:
    await removal.durable
    refused = [BULK_REFUSAL(LookupId=key, Status=error.status) for key, error in removal.refused]
    return R_BulkRemoveResponse(pcRefused=len(refused), ppRefused=refused, result=0)


def _keys(ranges: Sequence[LOOKUP_RANGE]) -> list[int]:
    """The identifiers of ranges; MQ_ERROR_INVALID_PARAMETER for more than one call allows."""
    if sum(each.Count for each in ranges) > MOST_BULK_MESSAGES:
        detail = f"more than {MOST_BULK_MESSAGES:,} messages"
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, detail)
    if any(each.First + each.Count > _END for each in ranges):
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, "identifiers of more than 64 bits")
    return [key for each in ranges for key in range(each.First, each.First + each.Count)]
