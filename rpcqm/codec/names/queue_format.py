"""Format names as the QUEUE_FORMAT structures of RPC calls ([MS-MQMQ] 2.2.7)."""

from uuid import UUID

from rpcqm.codec.names.format_name import (
    DistributionListName,
    FormatName,
    FormatNameValue,
    MulticastAddress,
    PrivateQueueFormatName,
    from_queue_format,
    to_queue_format,
)
from rpcqm.codec.types.mqmq import (
    DL_ID,
    MULTICAST_ID,
    OBJECTID,
    QUEUE_FORMAT,
    QUEUE_FORMAT_u,
)

Arm = UUID | OBJECTID | str | DL_ID | MULTICAST_ID | None


def queue_format_of(name: FormatName | None) -> QUEUE_FORMAT:
    """The structure for a name; None is the unknown name.

    Raises MQError(MQ_ERROR_ILLEGAL_FORMATNAME) for MACHINE= without its suffix.
    """
    kind, flags, value = to_queue_format(name)
    arm = None if value is None else _arm(value)
    return QUEUE_FORMAT(m_qft=kind, m_SuffixAndFlags=flags, u=QUEUE_FORMAT_u(kind, arm))


def format_name_of(structure: QUEUE_FORMAT) -> FormatName:
    """The name in a structure; raises MQError(MQ_ERROR_ILLEGAL_FORMATNAME)."""
    return from_queue_format(structure.m_qft, structure.m_SuffixAndFlags, _plain(structure.u.value))


def _arm(value: FormatNameValue) -> Arm:
    if isinstance(value, PrivateQueueFormatName):
        return OBJECTID(Lineage=value[0], Uniquifier=value[1])
    if isinstance(value, DistributionListName):
        return DL_ID(m_DlGuid=value[0], m_pwzDomain=value[1])
    if isinstance(value, MulticastAddress):
        return MULTICAST_ID(m_address=value[0], m_port=value[1])
    return value


def _plain(value: Arm) -> FormatNameValue | None:
    if isinstance(value, OBJECTID):
        return PrivateQueueFormatName(value.Lineage, value.Uniquifier)
    if isinstance(value, DL_ID):
        return DistributionListName(value.m_DlGuid, value.m_pwzDomain)
    if isinstance(value, MULTICAST_ID):
        return MulticastAddress(value.m_address, value.m_port)
    return value
