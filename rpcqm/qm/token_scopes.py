"""What the rights of a token mean for the descriptors of queues and of the queue manager (G350)."""

from functools import lru_cache, reduce
from operator import or_

from rpcqm.adm.queue import OutgoingQueue, Queue
from rpcqm.base.identity import TokenRight, TokenScope
from rpcqm.base.text import folded
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.path_name import PathName
from rpcqm.codec.names.written import is_format_name, path_name
from rpcqm.codec.security.access_check import (
    MQQMACCESSMASK,
    MQQUEUEACCESSMASK,
    QUEUE_MAPPING,
    GenericMapping,
)
from rpcqm.qm.names import LocalNames, local_key
from rpcqm.qm.registry import QueueRegistry

_QUEUE, _MACHINE = MQQUEUEACCESSMASK, MQQMACCESSMASK
_ON_QUEUES: dict[TokenRight, int] = {
    TokenRight.PEEK: _QUEUE.MQSEC_PEEK_MESSAGE | _QUEUE.MQSEC_GET_QUEUE_PROPERTIES,
    TokenRight.SEND: _QUEUE.MQSEC_WRITE_MESSAGE | _QUEUE.MQSEC_GET_QUEUE_PROPERTIES,
    TokenRight.RECEIVE: (
        _QUEUE.MQSEC_RECEIVE_MESSAGE
        | _QUEUE.MQSEC_RECEIVE_JOURNAL_MESSAGE
        | _QUEUE.MQSEC_GET_QUEUE_PROPERTIES
    ),
    TokenRight.MANAGE: (
        _QUEUE.MQSEC_SET_QUEUE_PROPERTIES
        | _QUEUE.MQSEC_GET_QUEUE_PROPERTIES
        | _QUEUE.MQSEC_DELETE_QUEUE
        | _QUEUE.MQSEC_GET_QUEUE_PERMISSIONS
        | _QUEUE.MQSEC_CHANGE_QUEUE_PERMISSIONS
        | _QUEUE.MQSEC_TAKE_QUEUE_OWNERSHIP
    ),
}
_ON_THE_MACHINE: dict[TokenRight, int] = {
    TokenRight.PEEK: (
        _MACHINE.MQSEC_PEEK_DEADLETTER_MESSAGE
        | _MACHINE.MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE
        | _MACHINE.MQSEC_GET_MACHINE_PROPERTIES
    ),
    TokenRight.SEND: _MACHINE.MQSEC_GET_MACHINE_PROPERTIES,
    TokenRight.RECEIVE: (
        _MACHINE.MQSEC_RECEIVE_DEADLETTER_MESSAGE
        | _MACHINE.MQSEC_RECEIVE_JOURNAL_QUEUE_MESSAGE
        | _MACHINE.MQSEC_GET_MACHINE_PROPERTIES
    ),
    TokenRight.MANAGE: (
        _MACHINE.MQSEC_CREATE_QUEUE
        | _MACHINE.MQSEC_SET_MACHINE_PROPERTIES
        | _MACHINE.MQSEC_GET_MACHINE_PROPERTIES
        | _MACHINE.MQSEC_DELETE_MACHINE
        | _MACHINE.MQSEC_GET_MACHINE_PERMISSIONS
        | _MACHINE.MQSEC_CHANGE_MACHINE_PERMISSIONS
        | _MACHINE.MQSEC_TAKE_MACHINE_OWNERSHIP
    ),
}


def permits(scope: TokenScope, mapping: GenericMapping, rights: int, queue: Queue | None) -> bool:
    """Whether a scope leaves all of `rights` on a queue; None is the queue manager itself.

    What has no queue is left to tokens that are not bound to queues.
    """
    if scope.queues is not None and (queue is None or scope_key_of(queue) not in scope.queues):
        return False
    return not mapping.map(int(rights)) & ~_left(scope.rights, mapping is QUEUE_MAPPING)


def permits_sending(scope: TokenScope, key: str) -> bool:
    """Whether a scope leaves sending to a queue of that key, which need not be here."""
    return TokenRight.SEND in scope.rights and (scope.queues is None or key in scope.queues)


@lru_cache(2 << len(TokenRight))
def _left(rights: frozenset[TokenRight], on_queues: bool) -> int:
    """The rights on a queue, or on the queue manager, that those of a token stand for."""
    meanings = _ON_QUEUES if on_queues else _ON_THE_MACHINE
    return int(reduce(or_, (meanings[right] for right in rights), 0))


def scope_key_of(queue: Queue) -> str:
    """The name by which scopes know a queue; subqueues and journals are part of their queue."""
    if isinstance(queue, OutgoingQueue):
        return folded(queue.destination_format_name)
    return _key_of_path(queue.main.pathname)


@lru_cache(1024)
def _key_of_path(pathname: str) -> str:
    path = PathName.parse(pathname)
    return folded(local_key(path.kind, path.queue))


def scope_key(text: str, names: LocalNames, registry: QueueRegistry) -> str:
    """The key of a queue that somebody names: by a short name, a path name or a format name.

    Raises MQError(MQ_ERROR_ILLEGAL_QUEUE_PATHNAME, MQ_ERROR_ILLEGAL_FORMATNAME).
    """
    if is_format_name(text):
        return key_of_format_name(FormatName.parse(text), registry)
    path = path_name(text)
    if names.is_local(path.computer):
        return folded(local_key(path.kind, path.queue))
    return folded(f"DIRECT=OS:{path.parent}")


def key_of_format_name(name: FormatName, registry: QueueRegistry) -> str:
    """The key of the queue that a format name means, be it here or elsewhere."""
    queue = registry.find_by_format_name(name)
    if queue is not None:
        return scope_key_of(queue)
    if isinstance(name.value, str) and registry.is_local_direct(name.direct_name):
        return folded(local_key(name.direct_name.kind, name.direct_name.queue))
    return folded(str(name))
