"""The rights of read-only accounts (G654)."""

from rpcqm.codec.security.access_check import (
    MQQMACCESSMASK,
    MQQUEUEACCESSMASK,
    QUEUE_MAPPING,
    GenericMapping,
)

_ON_QUEUES = (
    MQQUEUEACCESSMASK.MQSEC_PEEK_MESSAGE
    | MQQUEUEACCESSMASK.MQSEC_GET_QUEUE_PROPERTIES
    | MQQUEUEACCESSMASK.MQSEC_GET_QUEUE_PERMISSIONS
)
_ON_THE_MACHINE = (
    MQQMACCESSMASK.MQSEC_PEEK_DEADLETTER_MESSAGE
    | MQQMACCESSMASK.MQSEC_PEEK_JOURNAL_QUEUE_MESSAGE
    | MQQMACCESSMASK.MQSEC_GET_MACHINE_PROPERTIES
    | MQQMACCESSMASK.MQSEC_GET_MACHINE_PERMISSIONS
)


def only_looks(mapping: GenericMapping, rights: int) -> bool:
    """Whether rights on a queue, or on the queue manager, allow no change."""
    looking = _ON_QUEUES if mapping is QUEUE_MAPPING else _ON_THE_MACHINE
    return not mapping.map(int(rights)) & ~looking
