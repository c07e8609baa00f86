"""Public queues in the directory and in the local queue manager ([MC-MQAC] 3.10.4.1.29)."""

from rpcqm.adm.directory import equals
from rpcqm.adm.enums import DirectoryOperationResult
from rpcqm.adm.queue import Queue
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import QueueKind
from rpcqm.codec.types.mqvalues import FormatNameType
from rpcqm.mqac.machine import Machine

PUBLIC = FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC


def listed_queue(machine: Machine, name: FormatName) -> Queue:
    """A public queue by its PUBLIC= or direct name, from the directory ([MS-MQDMPR] 3.1.7.1.20).

    Raises MQ_ERROR_UNSUPPORTED_OPERATION for private queues of other machines, MQ_ERROR_NO_DS,
    MQ_ERROR_QUEUE_NOT_FOUND.
    """
    found = name if name.type is PUBLIC else _public_name(machine, name)
    wanted = [equals("identifier", found.value)]
    status, queue = machine.directory.read_directory(Queue, wanted)
    if status is DirectoryOperationResult.DIRECTORY_NOT_CONNECTED:
        raise MQError(HResult.MQ_ERROR_NO_DS)
    if queue is None:
        raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, str(name))
    return queue


def _public_name(machine: Machine, name: FormatName) -> FormatName:
    if not isinstance(name.value, str) or name.direct_name.kind is not QueueKind.PUBLIC:
        raise MQError(HResult.MQ_ERROR_UNSUPPORTED_OPERATION, f"{name} is not here")
    found = machine.directory.find_path(str(name.path_name))
    if found is None:
        raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, str(name))
    return found


def completed_queue(machine: Machine, listed: Queue) -> Queue:
    """Add properties that only this queue manager has to a copy of a directory's queue (G291)."""
    here = machine.registry.find_by_format_name(FormatName(PUBLIC, listed.identifier))
    if here is not None:
        for attribute in listed.unsaid:
            setattr(listed, attribute, getattr(here, attribute))
    return listed
