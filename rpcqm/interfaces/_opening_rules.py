"""The rules for opening queues by qmcomm ([MS-MQMP] 3.1.4.2, 3.1.4.17, 3.1.4.21)."""

from rpcqm.adm.descriptor import OpenQueueDescriptor
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import FormatNameType
from rpcqm.codec.types.qmcomm import rpc_QMOpenQueueInternalRequest
from rpcqm.interfaces._remote_proxy import proxy_of
from rpcqm.qm.opening import READ_ACCESSES, check_modes
from rpcqm.rpc.context_handle import ContextHandle


def descriptor_of(handle: ContextHandle) -> OpenQueueDescriptor:
    """The open queue of an RPC_QUEUE_HANDLE on a queue here."""
    descriptor: OpenQueueDescriptor = handle.value.open_queue_descriptor_reference
    return descriptor


def names_of(handle: ContextHandle) -> tuple[FormatName, ...]:
    """The names that a queue was opened by; raises MQ_ERROR_INVALID_HANDLE if it is deleted."""
    proxy = proxy_of(handle)
    if proxy is not None:
        return (proxy.format_name,)
    descriptor = descriptor_of(handle)
    if descriptor.queue_reference is None and not descriptor.multiple:
        raise MQError(HResult.MQ_ERROR_INVALID_HANDLE, "the queue has been deleted")
    return descriptor.format_names


def remote_readable(name: FormatName) -> FormatName:
    """A name that R_QMOpenRemoteQueue takes: no list, no multicast address, no HTTP."""
    several = (
        FormatNameType.QUEUE_FORMAT_TYPE_DL,
        FormatNameType.QUEUE_FORMAT_TYPE_MULTICAST,
    )
    if name.type in several or name.is_http:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, str(name))
    return name


def check_opening(request: rpc_QMOpenQueueInternalRequest) -> None:
    """Raise MQError for contradictory parameters of rpc_QMOpenQueueInternal.

    The queue's kind is checked when it is opened.
    """
    access = request.dwDesiredAccess
    check_modes(access, request.dwShareMode)
    valid = access in READ_ACCESSES if request.hRemoteQueue else not request.dwpRemoteContext
    if not valid:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, f"access {access:#x}")
