"""The queue names of readers ([MS-MQRR] 2.2.3), for RemoteRead and rpcqm_bulk alike."""

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.identity import Identity
from rpcqm.codec.names.format_name import FormatName
from rpcqm.codec.names.grammar import URL_PROTOCOLS
from rpcqm.codec.names.queue_format import format_name_of
from rpcqm.codec.types.mqmq import QUEUE_FORMAT
from rpcqm.codec.types.mqvalues import FormatNameType, QueueAccessType
from rpcqm.qm.opening import Opening

_FORMAT_TYPES = frozenset(
    {
        FormatNameType.QUEUE_FORMAT_TYPE_PUBLIC,
        FormatNameType.QUEUE_FORMAT_TYPE_PRIVATE,
        FormatNameType.QUEUE_FORMAT_TYPE_DIRECT,
        FormatNameType.QUEUE_FORMAT_TYPE_MACHINE,
        FormatNameType.QUEUE_FORMAT_TYPE_SUBQUEUE,
    }
)
_DIRECT_PROTOCOLS = frozenset({"TCP", "OS", *URL_PROTOCOLS})
_ADMINISTRATIVE = frozenset(
    {QueueAccessType.RECEIVE_ADMIN_ACCESS, QueueAccessType.PEEK_ADMIN_ACCESS}
)


def readable_name(structure: QUEUE_FORMAT) -> FormatName:
    """The name of a queue to open; only the kinds of [MS-MQRR] 2.2.3 are accepted."""
    try:
        name = format_name_of(structure)
        if name.type not in _FORMAT_TYPES:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_FORMATNAME, name.type.name)
        if isinstance(name.value, str) and name.direct_name.protocol not in _DIRECT_PROTOCOLS:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_FORMATNAME, name.direct_name.protocol)
    except MQError as error:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, error.detail) from error
    return name


def reads_outgoing(opening: Opening, name: FormatName, access: int, identity: Identity) -> bool:
    """Whether an administrator reads the messages waiting for a remote queue (G187).

    Raises MQ_ERROR_INVALID_PARAMETER for another HTTP name: only messages on their way by HTTP are
    here (G233).
    """
    outgoing = access in _ADMINISTRATIVE and opening.is_outgoing(name, identity)
    if name.is_http and not outgoing:
        raise MQError(HResult.MQ_ERROR_INVALID_PARAMETER, str(name))
    return outgoing
