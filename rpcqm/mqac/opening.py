"""Opening queues for clients of COM ([MC-MQAC] 3.10.4.1.28)."""

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.origin import COM, origin_of_peer
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.types.mqvalues import FormatNameType, QueueAccessType, QueueShareMode
from rpcqm.dcom.com_object import ComCall, ComObject
from rpcqm.mqac.machine import Machine
from rpcqm.mqac.queue import MSMQQueue, OpenedQueue
from rpcqm.mqac.reading import LocalReading, Reading, RemoteReading
from rpcqm.qm.access import refuse_read_only
from rpcqm.qm.handles import new_handle
from rpcqm.qm.opening import READ_ACCESSES, check_modes

_SEVERAL = frozenset(
    {FormatNameType.QUEUE_FORMAT_TYPE_DL, FormatNameType.QUEUE_FORMAT_TYPE_MULTICAST}
)


def is_sent_only(names: tuple[FormatName, ...]) -> bool:
    """Whether a format name is of several queues, or of HTTP: such queues cannot be read."""
    return len(names) > 1 or names[0].type in _SEVERAL or names[0].is_http


async def open_queue(
    machine: Machine,
    call: ComCall,
    queue_info: ComObject,
    names: tuple[FormatName, ...],
    access: int,
    share_mode: int,
) -> MSMQQueue:
    """Open the queues of a format name, here or, for reading, at another queue manager.

    Raises MQError: INVALID_PARAMETER, UNSUPPORTED_FORMATNAME_OPERATION, those of
    `Opening.open_queue`, and of the other queue manager.
    """
    check_modes(access, share_mode)
    if access != QueueAccessType.SEND_ACCESS and is_sent_only(names):
        raise MQError(HResult.MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION, str(names[0]))
    reading: Reading
    try:
        reading = _open_here(machine, call, names, access, share_mode)
    except MQError as error:
        elsewhere = access in READ_ACCESSES and not machine.registry.is_here(names[0])
        if error.status is not HResult.MQ_ERROR_QUEUE_NOT_FOUND or not elsewhere:
            raise
        reading = await _open_elsewhere(machine, call, names[0], access, share_mode)
    opened = OpenedQueue(access, share_mode, queue_info, reading)
    machine.openers[reading.handle] = call.identity.sid
    queue = MSMQQueue(machine, opened)
    if call.call.abandoned:  # nobody would ever close it
        queue.released()
    return queue


def _open_here(
    machine: Machine, call: ComCall, names: tuple[FormatName, ...], access: int, share_mode: int
) -> LocalReading:
    descriptor = machine.opening.open_queue(
        names,
        QueueAccessType(access),
        QueueShareMode(share_mode),
        identity=call.identity,
    )
    descriptor.origin = origin_of_peer(call.peer, COM)
    return LocalReading(machine, descriptor)


async def _open_elsewhere(
    machine: Machine, call: ComCall, name: FormatName, access: int, share_mode: int
) -> RemoteReading:
    """Read at another queue manager, by the rules for accounts of a supporting server (G86)."""
    path, computer = machine.directory.get_queue_path(name)
    if machine.open_elsewhere is None:
        raise MQError(HResult.MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE, f"{path} at {computer}")
    receiving = access == QueueAccessType.RECEIVE_ACCESS
    exclusive = share_mode == QueueShareMode.DENY_RECEIVE
    if receiving or exclusive:  # that queue manager sees our account only (G725)
        refuse_read_only(call.identity)
    asker = call.identity.sid
    reader = await machine.open_elsewhere(computer, name, receiving, exclusive, asker)
    taken = machine.openers.keys() | machine.opening.descriptors.keys()
    return RemoteReading(reader, new_handle(taken), name, receiving)
