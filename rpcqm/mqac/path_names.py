"""Path names of queues as format names ([MC-MQAC] 3.1.6.2)."""

from dataclasses import replace

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.names.format_name import FormatName, SuffixType
from rpcqm.codec.names.path_name import PathName, QueueKind
from rpcqm.mqac.machine import Machine


def format_name_of_path(machine: Machine, text: str) -> FormatName:
    """Get Queue Format Name from Pathname ([MC-MQAC] 3.1.6.2).

    A private queue is named directly, also with a directory (G288), and so is a subqueue of a
    public one, which has no PUBLIC= name (G290). Raises MQ_ERROR_ILLEGAL_QUEUE_PATHNAME for any
    other text than the path name of an application's queue, MQ_ERROR_QUEUE_NOT_FOUND for a public
    queue that is not in the directory.
    """
    path = PathName.parse(text)
    if path.kind is QueueKind.SYSTEM:
        raise MQError(HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, text)
    if path.kind is QueueKind.PRIVATE:
        return FormatName.of_path(path)
    if machine.names.is_local(path.computer):
        path = replace(path, computer=machine.queue_manager.computer_name)
    name = machine.directory.find_path(str(path.parent))
    if name is None:
        raise MQError(HResult.MQ_ERROR_QUEUE_NOT_FOUND, text)
    if path.is_journal:
        return replace(name, suffix=SuffixType.QUEUE_SUFFIX_TYPE_JOURNAL)
    return FormatName.of_path(path) if path.suffix else name
