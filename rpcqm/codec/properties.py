"""Properties of queues and of administration, and the variants that carry their values.

A PROPID means something within its kind of object only: 1 is a queue's path name to
administrators, and the list of active queues of a machine.
"""

import enum
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from rpcqm.base.errors import HResult, MQError
from rpcqm.codec.types.mqvalues import VARENUM, VT_VARIANT, VT_VECTOR


class VarType(enum.IntEnum):
    """Types that a PROPVARIANT can have ([MS-MQMQ] 2.2.12, 2.2.13.1)."""

    VT_EMPTY = VARENUM.VT_EMPTY
    VT_NULL = VARENUM.VT_NULL
    VT_I2 = VARENUM.VT_I2
    VT_I4 = VARENUM.VT_I4
    VT_BOOL = VARENUM.VT_BOOL
    VT_I1 = VARENUM.VT_I1
    VT_UI1 = VARENUM.VT_UI1
    VT_UI2 = VARENUM.VT_UI2
    VT_UI4 = VARENUM.VT_UI4
    VT_I8 = VARENUM.VT_I8
    VT_UI8 = VARENUM.VT_UI8
    VT_LPWSTR = VARENUM.VT_LPWSTR
    VT_BLOB = VARENUM.VT_BLOB
    VT_CLSID = VARENUM.VT_CLSID
    VT_VECTOR_I4 = VARENUM.VT_VECTOR | VARENUM.VT_I4
    VT_VECTOR_VARIANT = VARENUM.VT_VECTOR | VARENUM.VT_VARIANT
    VT_VECTOR_UI1 = VARENUM.VT_VECTOR | VARENUM.VT_UI1
    VT_VECTOR_UI2 = VARENUM.VT_VECTOR | VARENUM.VT_UI2
    VT_VECTOR_UI4 = VARENUM.VT_VECTOR | VARENUM.VT_UI4
    VT_VECTOR_UI8 = VARENUM.VT_VECTOR | VARENUM.VT_UI8
    VT_VECTOR_LPWSTR = VARENUM.VT_VECTOR | VARENUM.VT_LPWSTR
    VT_VECTOR_CLSID = VARENUM.VT_VECTOR | VARENUM.VT_CLSID

    @property
    def element(self) -> "VarType | None":
        """Type of a vector's elements; None for single values and for vectors of variants."""
        single = self - VT_VECTOR
        return VarType(single) if single >= 0 and single != VT_VARIANT else None


VARIANT_TRUE = 0xFFFF
VARIANT_FALSE = 0

_INTEGERS = {
    VarType.VT_I1: (-0x80, 0x7F),
    VarType.VT_UI1: (0, 0xFF),
    VarType.VT_I2: (-0x8000, 0x7FFF),
    VarType.VT_UI2: (0, 0xFFFF),
    VarType.VT_I4: (-0x80000000, 0x7FFFFFFF),
    VarType.VT_UI4: (0, 0xFFFFFFFF),
    VarType.VT_I8: (-(1 << 63), (1 << 63) - 1),
    VarType.VT_UI8: (0, (1 << 64) - 1),
}
_PYTHON_TYPES: dict[VarType, type] = {
    VarType.VT_EMPTY: type(None),
    VarType.VT_NULL: type(None),
    VarType.VT_BOOL: bool,
    VarType.VT_LPWSTR: str,
    VarType.VT_BLOB: bytes,
    VarType.VT_CLSID: UUID,
    VarType.VT_VECTOR_UI1: bytes,
}


@dataclass(frozen=True, slots=True)
class PropVariant:
    """A value and its type ([MS-MQMQ] 2.2.13).

    Values: None for VT_EMPTY and VT_NULL; int; bool; str; bytes for VT_BLOB and for vectors of
    octets; UUID; tuples of these for vectors; a tuple of PropVariants for VT_VARIANT vectors.
    Raises MQError: MQ_ERROR_ILLEGAL_PROPERTY_VT for an unknown type,
    MQ_ERROR_ILLEGAL_PROPERTY_VALUE for a value that is not of its type.
    """

    vt: VarType
    value: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.vt, VarType):
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT, f"variant of type {self.vt!r}")
        if not _fits(self.vt, self.value):
            raise MQError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"{self.value!r} is no {self.vt.name}"
            )

    @classmethod
    def of(cls, vt: int, value: object = None) -> Self:
        """A variant from a type's number; raises MQError as the class does."""
        try:
            kind = VarType(vt)
        except ValueError as error:
            raise MQError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT, f"variant of type 0x{vt:04X}"
            ) from error
        return cls(kind, value)


def _fits(vt: VarType, value: object) -> bool:
    limits = _INTEGERS.get(vt)
    if limits:
        if not isinstance(value, int) or isinstance(value, bool):
            return False
        return limits[0] <= value <= limits[1]
    kind = _PYTHON_TYPES.get(vt)
    if kind:
        return isinstance(value, kind)
    if not isinstance(value, tuple):
        return False
    element = vt.element
    if element is None:
        return all(isinstance(item, PropVariant) for item in value)
    return all(_fits(element, item) for item in value)


NULL_VARIANT = PropVariant(VarType.VT_NULL)


def variant_bool(value: bool) -> int:
    """VARIANT_BOOL as the signed 16-bit number that is marshalled ([MS-MQMQ] 2.2.14)."""
    return -1 if value else VARIANT_FALSE


def bool_of_variant(number: int) -> bool:
    """The inverse of `variant_bool`; raises MQError(MQ_ERROR_ILLEGAL_PROPERTY_VALUE)."""
    if number & 0xFFFF not in (VARIANT_TRUE, VARIANT_FALSE):
        raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPERTY_VALUE, f"{number} is no VARIANT_BOOL")
    return number != VARIANT_FALSE


class PropertyIdentifier(enum.IntEnum):
    """A PROPID with the type that its value has."""

    vartype: VarType

    def __new__(cls, number: int, vartype: VarType = VarType.VT_EMPTY) -> Self:
        member = int.__new__(cls, number)
        member._value_ = number
        member.vartype = vartype
        return member

    @classmethod
    def of(cls, number: int) -> Self:
        """The property with this number; raises MQError(MQ_ERROR_ILLEGAL_PROPID)."""
        try:
            return cls(number)
        except ValueError as error:
            raise MQError(HResult.MQ_ERROR_ILLEGAL_PROPID, f"property {number}") from error

    def variant(self, value: object) -> PropVariant:
        """The value as a variant of this property's type; raises MQError as that does."""
        return PropVariant(self.vartype, value)

    def check(self, variant: PropVariant) -> Any:
        """The value of a variant that came for this property.

        Raises MQError(MQ_ERROR_ILLEGAL_PROPERTY_VT) for another type.
        """
        if variant.vt is not self.vartype:
            raise MQError(
                HResult.MQ_ERROR_ILLEGAL_PROPERTY_VT,
                f"{self.name} as {variant.vt.name} instead of {self.vartype.name}",
            )
        return variant.value


class QueueProperty(PropertyIdentifier):
    """Properties of queues ([MS-MQMQ] 2.3.1)."""

    PROPID_Q_INSTANCE = 101, VarType.VT_CLSID
    PROPID_Q_TYPE = 102, VarType.VT_CLSID
    PROPID_Q_PATHNAME = 103, VarType.VT_LPWSTR
    PROPID_Q_JOURNAL = 104, VarType.VT_UI1
    PROPID_Q_QUOTA = 105, VarType.VT_UI4
    PROPID_Q_BASEPRIORITY = 106, VarType.VT_I2
    PROPID_Q_JOURNAL_QUOTA = 107, VarType.VT_UI4
    PROPID_Q_LABEL = 108, VarType.VT_LPWSTR
    PROPID_Q_CREATE_TIME = 109, VarType.VT_I4
    PROPID_Q_MODIFY_TIME = 110, VarType.VT_I4
    PROPID_Q_AUTHENTICATE = 111, VarType.VT_UI1
    PROPID_Q_PRIV_LEVEL = 112, VarType.VT_UI4
    PROPID_Q_TRANSACTION = 113, VarType.VT_UI1
    PROPID_Q_SCOPE = 114, VarType.VT_UI1
    PROPID_Q_QMID = 115, VarType.VT_CLSID
    PROPID_Q_PARTITIONID = 116, VarType.VT_CLSID
    PROPID_Q_SEQNUM = 117, VarType.VT_BLOB
    PROPID_Q_HASHKEY = 118, VarType.VT_UI4
    PROPID_Q_LABEL_HASHKEY = 119, VarType.VT_UI4
    PROPID_Q_FULL_PATH = 121, VarType.VT_LPWSTR
    PROPID_Q_NAME_SUFFIX = 123, VarType.VT_LPWSTR
    PROPID_Q_PATHNAME_DNS = 124, VarType.VT_LPWSTR
    PROPID_Q_MULTICAST_ADDRESS = 125, VarType.VT_LPWSTR
    PROPID_Q_ADS_PATH = 126, VarType.VT_LPWSTR
    PROPID_Q_SECURITY = 1101, VarType.VT_BLOB
    PROPID_Q_OBJ_SECURITY = 1102, VarType.VT_BLOB
    PROPID_Q_SECURITY_INFORMATION = 1103, VarType.VT_UI4


class ManagementMachineProperty(PropertyIdentifier):
    """What administration tells about a queue manager ([MS-MQMQ] 2.3.11)."""

    PROPID_MGMT_MSMQ_ACTIVEQUEUES = 1, VarType.VT_VECTOR_LPWSTR
    PROPID_MGMT_MSMQ_PRIVATEQ = 2, VarType.VT_VECTOR_LPWSTR
    PROPID_MGMT_MSMQ_DSSERVER = 3, VarType.VT_LPWSTR
    PROPID_MGMT_MSMQ_CONNECTED = 4, VarType.VT_LPWSTR
    PROPID_MGMT_MSMQ_TYPE = 5, VarType.VT_LPWSTR
    PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES = 6, VarType.VT_I8


class ManagementQueueProperty(PropertyIdentifier):
    """What administration tells about a queue ([MS-MQMQ] 2.3.12)."""

    PROPID_MGMT_QUEUE_PATHNAME = 1, VarType.VT_LPWSTR
    PROPID_MGMT_QUEUE_FORMATNAME = 2, VarType.VT_LPWSTR
    PROPID_MGMT_QUEUE_TYPE = 3, VarType.VT_LPWSTR
    PROPID_MGMT_QUEUE_LOCATION = 4, VarType.VT_LPWSTR
    PROPID_MGMT_QUEUE_XACT = 5, VarType.VT_LPWSTR
    PROPID_MGMT_QUEUE_FOREIGN = 6, VarType.VT_LPWSTR
    PROPID_MGMT_QUEUE_MESSAGE_COUNT = 7, VarType.VT_UI4
    PROPID_MGMT_QUEUE_BYTES_IN_QUEUE = 8, VarType.VT_UI4
    PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT = 9, VarType.VT_UI4
    PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL = 10, VarType.VT_UI4
    PROPID_MGMT_QUEUE_STATE = 11, VarType.VT_LPWSTR
    PROPID_MGMT_QUEUE_NEXTHOPS = 12, VarType.VT_VECTOR_LPWSTR
    PROPID_MGMT_QUEUE_EOD_LAST_ACK = 13, VarType.VT_BLOB
    PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME = 14, VarType.VT_I4
    PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT = 15, VarType.VT_UI4
    PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK = 16, VarType.VT_BLOB
    PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK = 17, VarType.VT_BLOB
    PROPID_MGMT_QUEUE_EOD_NEXT_SEQ = 18, VarType.VT_BLOB
    PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT = 19, VarType.VT_UI4
    PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT = 20, VarType.VT_UI4
    PROPID_MGMT_QUEUE_EOD_RESEND_TIME = 21, VarType.VT_I4
    PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL = 22, VarType.VT_UI4
    PROPID_MGMT_QUEUE_EOD_RESEND_COUNT = 23, VarType.VT_UI4
    PROPID_MGMT_QUEUE_EOD_SOURCE_INFO = 24, VarType.VT_VECTOR_VARIANT
    PROPID_MGMT_QUEUE_CONNECTION_HISTORY = 25, VarType.VT_VECTOR_VARIANT
    PROPID_MGMT_QUEUE_SUBQUEUE_COUNT = 26, VarType.VT_UI4
    PROPID_MGMT_QUEUE_SUBQUEUE_NAMES = 27, VarType.VT_VECTOR_LPWSTR
