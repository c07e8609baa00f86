"""The handles and open queues of calls."""

from functools import partial

from rpcqm.adm.descriptor import Cursor, OpenQueueDescriptor
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import HResult, MQError, NtStatus
from rpcqm.base.origin import RPC, origin_of_peer
from rpcqm.rpc.call import Call
from rpcqm.rpc.context_handle import ContextHandle


def present(handle: ContextHandle | None) -> ContextHandle:
    """The handle; raises MQError(MQ_ERROR_INVALID_HANDLE) if it is NULL."""
    if handle is None:
        raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, "NULL")
    return handle


def held_by(call: Call, descriptor: OpenQueueDescriptor, handle: ContextHandle) -> None:
    """Record the holder of an open queue, and how the client's handle is run down."""
    descriptor.origin = origin_of_peer(call.peer, RPC)
    descriptor.end = partial(call.association_group.handles.run_down, handle)


def queue_of(descriptor: OpenQueueDescriptor) -> Queue:
    """The open queue; raises MQError(MQ_ERROR_QUEUE_DELETED) if it has been deleted."""
    queue = descriptor.queue_reference
    if queue is None:
        raise MQError(HResult.MQ_ERROR_QUEUE_DELETED)
    return queue


def cursor_of(
    descriptor: OpenQueueDescriptor,
    handle: int,
    unknown: HResult | NtStatus = HResult.MQ_ERROR_INVALID_HANDLE,
) -> Cursor:
    """A cursor of an open queue; raises MQError(unknown) if it has none with that handle."""
    cursor = descriptor.cursor_collection.get(handle)
    if cursor is None:
        raise MQError(unknown, f"cursor {handle:#x}")
    return cursor
