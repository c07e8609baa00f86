"""The valid values of a queue's attributes ([MS-MQMQ] 2.3.1)."""

from collections.abc import Mapping
from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.base.text import wide_length
from rpcqm.codec.names.grammar import read_multicast
from rpcqm.codec.types.mqvalues import QueuePrivacyLevel

MAXIMUM_LABEL = 124
"""UTF-16 characters of a queue's label."""

CHANGEABLE = frozenset(
    {
        "label",
        "type",
        "journaling",
        "quota",
        "journal_quota",
        "authentication",
        "privacy_level",
        "multicast_address",
        "base_priority",
    }
)

_TYPES: dict[str, type | tuple[type, ...]] = {
    "label": str,
    "type": UUID,
    "pathname": str,
    "journaling": bool,
    "quota": int,
    "journal_quota": int,
    "authentication": bool,
    "privacy_level": QueuePrivacyLevel,
    "transactional": bool,
    "multicast_address": (str, type(None)),
    "security": bytes,
    "base_priority": int,
}


def check_properties(values: Mapping[str, object], changing: bool = False) -> None:
    """Raise MQError for an invalid value of an attribute.

    Raises MQ_ERROR_PROPERTY_NOTALLOWED for attributes that cannot be set (when `changing`: any
    more), MQ_ERROR_LABEL_TOO_LONG, MQ_ERROR_ILLEGAL_PROPERTY_VALUE, MQ_ERROR_PROPERTIES_CONFLICT.
    """
    for name, value in values.items():
        if name not in _TYPES or (changing and name not in CHANGEABLE):
            raise MQError(HResult.MQ_ERROR_PROPERTY_NOTALLOWED, name)
        if not isinstance(value, _TYPES[name]):
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, name)
        if name == "label" and wide_length(str(value)) > MAXIMUM_LABEL:
            raise MQError(HResult.MQ_ERROR_LABEL_TOO_LONG)
        if not _in_range(name, value):
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, name)
    if values.get("multicast_address") and values.get("transactional"):
        raise MQError(HResult.MQ_ERROR_PROPERTIES_CONFLICT, "a transactional multicast queue")


def _in_range(name: str, value: object) -> bool:
    if name == "label":
        return "\0" not in str(value)
    if name in ("quota", "journal_quota"):
        return isinstance(value, int) and 0 <= value <= 0xFFFF_FFFF
    if name == "base_priority":
        return isinstance(value, int) and -0x8000 <= value <= 0x7FFF
    if name == "multicast_address" and isinstance(value, str):
        return _is_multicast(value)
    return True


def _is_multicast(text: str) -> bool:
    """Whether it is a.b.c.d:port of an IPv4 group."""
    try:
        read_multicast(text)
    except MQError:  # the caller refuses it with an error of its own
        return False
    return True
