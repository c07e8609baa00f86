"""Properties of queues as their PROPIDs ([MS-MQMP] 3.1.1.12)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rpcqm.adm.queue import Queue
from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.properties import PropVariant, QueueProperty, VarType
from rpcqm.codec.propvariant import propvariant_of, variant_of
from rpcqm.codec.types.mqmq import PROPVARIANT
from rpcqm.codec.types.mqvalues import QueuePrivacyLevel


def _flag(value: int) -> bool:
    if value not in (0, 1):
        raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"{value} is neither 0 nor 1")
    return bool(value)


def _privacy_level(value: int) -> QueuePrivacyLevel:
    try:
        return QueuePrivacyLevel(value)
    except ValueError as error:
        raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"privacy {value}") from error


def _address(value: str | None) -> str | None:
    return value or None


class _Row(NamedTuple):
    """An attribute of a queue, when a client may set it, and how its wire value is converted."""

    attribute: str
    create: bool = False
    change: bool = False
    of_wire: Callable[..., object] | None = None


_ROWS: dict[QueueProperty, _Row] = {
    QueueProperty.PROPID_Q_INSTANCE: _Row("identifier"),
    QueueProperty.PROPID_Q_TYPE: _Row("type", True, True),
    QueueProperty.PROPID_Q_PATHNAME: _Row("pathname", True),
    QueueProperty.PROPID_Q_JOURNAL: _Row("journaling", True, True, _flag),
    QueueProperty.PROPID_Q_QUOTA: _Row("quota", True, True),
    QueueProperty.PROPID_Q_BASEPRIORITY: _Row("base_priority", True, True),
    QueueProperty.PROPID_Q_JOURNAL_QUOTA: _Row("journal_quota", True, True),
    QueueProperty.PROPID_Q_LABEL: _Row("label", True, True),
    QueueProperty.PROPID_Q_CREATE_TIME: _Row("create_time"),
    QueueProperty.PROPID_Q_MODIFY_TIME: _Row("modify_time"),
    QueueProperty.PROPID_Q_AUTHENTICATE: _Row("authentication", True, True, _flag),
    QueueProperty.PROPID_Q_PRIV_LEVEL: _Row("privacy_level", True, True, _privacy_level),
    QueueProperty.PROPID_Q_TRANSACTION: _Row("transactional", True, False, _flag),
    QueueProperty.PROPID_Q_PATHNAME_DNS: _Row("qualified_pathname"),
    QueueProperty.PROPID_Q_MULTICAST_ADDRESS: _Row("multicast_address", True, True, _address),
    QueueProperty.PROPID_Q_ADS_PATH: _Row("directory_path"),
}


def attributes_of(
    identifiers: Sequence[int], structures: Sequence[PROPVARIANT], creating: bool
) -> dict[str, object]:
    """The attributes that properties set, of a new or of an existing queue.

    The first value of a repeated property counts. Raises MQError: ILLEGAL_PROPID for other
    identifiers, PROPERTY_NOTALLOWED for one that cannot be set now, PROPERTY for a value of another
    type, ILLEGAL_PROPERTY_VALUE.
    """
    attributes: dict[str, object] = {}
    for number, structure in zip(identifiers, structures, strict=True):
        identifier = QueueProperty.of(number)
        row = _ROWS.get(identifier)
        if row is None or not (row.create if creating else row.change):
            raise MQError(HResult.MQ_ERROR_PROPERTY_NOTALLOWED, identifier.name)
        variant = variant_of(structure)
        if variant.vt is not identifier.vartype and not _unsets(identifier, variant):
            raise MQError(HResult.MQ_ERROR_PROPERTY, f"{identifier.name} as {variant.vt.name}")
        value = row.of_wire(variant.value) if row.of_wire else variant.value
        attributes.setdefault(row.attribute, value)
    return attributes


def _unsets(identifier: QueueProperty, variant: PropVariant) -> bool:
    return identifier is QueueProperty.PROPID_Q_MULTICAST_ADDRESS and variant.vt is VarType.VT_EMPTY


def security_in(descriptor: bytes | None) -> dict[str, object]:
    """The attribute that a security descriptor sets; none for NULL, which leaves the default.

    Raises MQError(MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR) for an empty one, which means the default
    elsewhere. Source: [MS-MQMP] 3.1.4.5.
    """
    if descriptor is None:
        return {}
    if not descriptor:
        raise MQError(HResult.MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR, "no octets")
    return {"security": descriptor}


def values_of(
    queue: Queue, identifiers: Sequence[int], structures: Sequence[PROPVARIANT]
) -> list[PROPVARIANT]:
    """The values of properties; each structure has the type of its property, or VT_NULL.

    Raises MQError: ILLEGAL_PROPID, PROPERTY_NOTALLOWED for a property that qmcomm does not have,
    PROPERTY for a structure of another type.
    """
    values = []
    for number, structure in zip(identifiers, structures, strict=True):
        identifier = QueueProperty.of(number)
        row = _ROWS.get(identifier)
        if row is None:
            raise MQError(HResult.MQ_ERROR_PROPERTY_NOTALLOWED, identifier.name)
        if structure.vt not in (identifier.vartype, VarType.VT_NULL):
            raise MQError(HResult.MQ_ERROR_PROPERTY, f"{identifier.name} as {structure.vt:#x}")
        values.append(propvariant_of(_variant(identifier, getattr(queue, row.attribute))))
    return values


def _variant(identifier: QueueProperty, value: object) -> PropVariant:
    if value is None:
        return PropVariant(VarType.VT_EMPTY)
    return identifier.variant(int(value) if isinstance(value, bool) else value)
