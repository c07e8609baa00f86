"""Operations of open transactions: on the disk as they arrive, invisible until the commit."""

from dataclasses import dataclass, field

PREPARED = 0
"""The number under which a prepared transaction keeps its record; operations follow."""

TRANSACTION_ID_LENGTH = 16
"""Bytes of an XACTUOW ([MS-MQMQ] 2.2.18.1.8)."""


@dataclass(slots=True)
class UncommittedOperation:
    """One operation; `serial` and `size` are set when it carries a packet for `queue_id`.

    `data` is the queue manager's own description of it. `charged` is whether the packet counts in
    the queue's account on behalf of this operation.
    """

    number: int
    data: bytes
    queue_id: int = 0
    serial: int | None = None
    size: int = 0
    charged: bool = False


@dataclass(slots=True)
class UncommittedTransaction:
    """What a transaction (16 bytes of XACTUOW) has staged; `record` is set once prepared."""

    transaction_id: bytes
    record: bytes | None = None
    operations: dict[int, UncommittedOperation] = field(default_factory=dict)
    next_number: int = PREPARED + 1
